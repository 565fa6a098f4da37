"""The ``transformer`` command: train, translate, evaluate, average, export, corpora, info.

What a command does is done by the layers below. Here are its options and what it prints. Its exit
code is 0, or 2 for bad input, 130 after Ctrl-C and 143 after SIGTERM. torch is imported by the
commands that compute, so that ``--help`` answers at once.
"""

from transformer.cli import train, translate, average, export, show  # noqa: F401, I001 (order of help)
from transformer.cli.frame import app, main

__all__ = ["app", "main"]
