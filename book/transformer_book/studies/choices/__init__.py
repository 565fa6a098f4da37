"""The study of the chapter on choices."""
