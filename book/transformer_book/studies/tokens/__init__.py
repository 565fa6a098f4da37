"""The study of the chapter on tokens."""
