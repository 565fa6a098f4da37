"""The study of the chapter on decoding."""
