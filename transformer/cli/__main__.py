"""``python -m transformer.cli``, as ``accelerate launch -m`` and ``torchrun -m`` need it."""

from transformer.cli import main

main()
