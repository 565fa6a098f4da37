"""The study of the chapter on translation."""
