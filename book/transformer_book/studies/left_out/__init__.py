"""The study of the chapter on left out."""
