"""The study of the chapter on parsing."""
