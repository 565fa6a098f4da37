"""Toy tasks that a small model learns in seconds."""
