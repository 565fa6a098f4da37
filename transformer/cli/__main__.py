"""Run ``python -m transformer.cli``, for ``accelerate launch -m`` and ``torchrun -m``."""

from transformer.cli import main

main()
