"""The study of the chapter on recipe."""
