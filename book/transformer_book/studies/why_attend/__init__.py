"""The study of the chapter on why attend."""
