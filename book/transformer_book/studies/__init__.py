"""The experiments of the chapters: one folder each, with its records."""
