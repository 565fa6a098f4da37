"""The experiments of the book, one folder per topic, with their recorded results."""
