"""The study of the chapter on heads."""
