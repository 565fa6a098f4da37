"""The study of the chapter that shows the Transformer on one page."""
