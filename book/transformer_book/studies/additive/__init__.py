"""The study of the chapter on additive."""
