"""The ``transformer`` command: train, translate, evaluate, average, export, corpora, info.

This folder holds the options and the output; the work is done by the layers below. The exit code is
0, or 2 for bad input, 130 after Ctrl-C and 143 after SIGTERM. Only commands that compute import
torch, so ``--help`` is fast.
"""

from transformer.cli import train, translate, average, export, show  # noqa: F401, I001 (order of help)
from transformer.cli.frame import app, main

__all__ = ["app", "main"]
