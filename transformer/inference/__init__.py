"""Decoding, translation from text to text, and its scores (section 6.1)."""
