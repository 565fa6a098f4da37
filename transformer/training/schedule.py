"""The learning rate: linear warm-up, then decay with the inverse square root of the step."""


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
