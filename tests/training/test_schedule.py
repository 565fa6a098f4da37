"""The learning rate of Eq. (3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.training.schedule import learning_rate


@pytest.mark.parametrize(
    "step, d_model, expected",
    [
        (1, 512, 1.746928e-7),
        (4000, 512, 6.987712e-4),
        (4001, 512, 6.986839e-4),
        (100_000, 512, 1.397542e-4),
        (4000, 1024, 4.941059e-4),
        (300_000, 1024, 5.705443e-5),
    ],
)
def test_the_papers_schedule(step, d_model, expected):
    assert learning_rate(step, d_model) == pytest.approx(expected, rel=1e-6)


@given(st.integers(1, 10_000), st.integers(1, 4096), st.integers(1, 500))
def test_up_in_a_line_then_down_with_the_root(step, d_model, warmup_steps):
    peak = learning_rate(warmup_steps, d_model, warmup_steps)
    assert peak == pytest.approx((d_model * warmup_steps) ** -0.5)
    before, after = step / warmup_steps, (warmup_steps / step) ** 0.5
    expected = peak * (before if step <= warmup_steps else after)
    assert learning_rate(step, d_model, warmup_steps) == pytest.approx(expected)
    assert learning_rate(step, d_model, warmup_steps, 3.0) == pytest.approx(3 * expected)
