"""The study of the chapter on masks."""
