"""The learning rate: linear warm-up, then decay with the inverse square root of the step."""

from collections.abc import Callable

from transformer.training.config import TrainingConfig

#: The fields of a recipe that only its schedule reads.
FIELDS = ("warmup_steps", "learning_rate_factor")


def recipe_schedule(config: TrainingConfig, d_model: int) -> Callable[[int], float]:
    """Return the learning rate that a recipe prescribes, as a function of the step from 1 on."""
    warmup, factor = config.warmup_steps, config.learning_rate_factor
    return lambda step: learning_rate(step, d_model, warmup, factor)


def learning_rate(step: int, d_model: int, warmup_steps: int = 4000, factor: float = 1.0) -> float:
    """Return factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    Args:
        step: number of the optimizer step, counted from 1.
        d_model: size of the model's vectors; larger models get smaller learning rates.
        warmup_steps: the step with the highest learning rate.
        factor: 1 in the paper.

    Raises:
        ValueError: if ``step`` or ``warmup_steps`` is below 1.

    Paper: section 5.3, Eq. (3)
    """
    if step < 1 or warmup_steps < 1:
        raise ValueError(f"step and warmup_steps must be at least 1, got {step}, {warmup_steps}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
