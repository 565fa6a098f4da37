"""The study of the chapter on assembly."""
