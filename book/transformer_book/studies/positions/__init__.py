"""The study of the chapter on positions."""
