"""Presets, a run from text to score, and its record: what the command line runs."""
