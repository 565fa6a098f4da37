"""The study of the chapter on memory."""
