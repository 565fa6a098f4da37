"""Scripts of the Makefile: python -m book.make COMMAND."""
