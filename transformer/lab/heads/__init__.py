"""Figures 3 to 5: what attention heads learn."""
