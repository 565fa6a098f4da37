"""The study of the chapter on feed forward."""
