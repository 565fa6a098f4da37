"""The study of the chapter on what heads learn."""
