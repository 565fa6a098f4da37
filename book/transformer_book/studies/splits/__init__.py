"""The study of the chapter on splits."""
