"""Training (sections 5.2 to 5.4): the loop, its recipe, and what runs beside it.

The names below are loaded on first use: reading a checkpoint does not need Accelerate.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.training.callbacks import Callback, EarlyStopping
    from transformer.training.checkpoint import average_checkpoints
    from transformer.training.config import TrainingConfig
    from transformer.training.curve import read_curve
    from transformer.training.loss import TranslationLoss, perplexity
    from transformer.training.schedule import learning_rate
    from transformer.training.trainer import Trainer

_HOMES = {
    "Callback": "callbacks",
    "EarlyStopping": "callbacks",
    "Trainer": "trainer",
    "TrainingConfig": "config",
    "TranslationLoss": "loss",
    "average_checkpoints": "checkpoint",
    "learning_rate": "schedule",
    "perplexity": "loss",
    "read_curve": "curve",
}

__all__ = [
    "Callback",
    "EarlyStopping",
    "Trainer",
    "TrainingConfig",
    "TranslationLoss",
    "average_checkpoints",
    "learning_rate",
    "perplexity",
    "read_curve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
