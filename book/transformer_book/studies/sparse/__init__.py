"""The study of the chapter on sparse."""
