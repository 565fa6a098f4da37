"""The study of the chapter on residuals."""
