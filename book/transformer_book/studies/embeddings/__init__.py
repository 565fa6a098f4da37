"""The study of the chapter on embeddings."""
