"""The ``transformer`` command: train, translate, evaluate, average, export, corpora, info.

This folder holds the options and the output; the layers below do the work. The exit code is 0 for
success, 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM, and 1 for a bug in this package. Only
commands that compute import torch, so ``--help`` is fast.
"""

from transformer.cli import train, translate, average, export, show  # noqa: F401, I001 (order of help)
from transformer.cli.frame import app, main

__all__ = ["app", "main"]
