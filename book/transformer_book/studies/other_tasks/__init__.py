"""The study of the chapter on other tasks."""
