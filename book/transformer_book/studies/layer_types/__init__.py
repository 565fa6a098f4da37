"""The study of the chapter on layer types."""
