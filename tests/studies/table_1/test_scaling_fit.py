"""A power law yields its exponent, and counts their formula."""

import numpy as np
import pytest

from transformer_book.studies.layer_types.scaling_fit import crossover, fit_terms, local_exponents

SIZES = np.array([16, 32, 64, 128, 256])


@pytest.mark.parametrize("exponent", [0.0, 2.0, -0.5])
def test_a_power_law_yields_its_exponent(exponent):
    costs = 3 * SIZES.astype(float) ** exponent
    np.testing.assert_allclose(local_exponents(SIZES, costs), exponent, atol=1e-9)


def test_terms_are_whole_numbers():
    n, d = np.array([(n, d) for n in (8, 64, 500) for d in (16, 512)]).T
    found = fit_terms(n, d, 3 * n * d + 4 * n * d**2 + 2 * n**2 * d)
    assert found == pytest.approx({(1, 1): 3, (1, 2): 4, (2, 1): 2, (2, 2): 0}, abs=1e-6)
    with pytest.raises(ValueError, match="2 pairs.*4 coefficients"):
        fit_terms([1, 2], [1, 2], [1, 2])


def test_crossover():
    flat = np.full(5, 100.0)
    assert crossover(SIZES, SIZES, flat) == pytest.approx(100)
    assert crossover(SIZES, flat + 1, flat) == 0
    assert crossover(SIZES, flat - 1, flat) is None
    assert crossover(SIZES, flat, SIZES) is None  # larger at first, smaller at the end
    touched = [50.0, 200.0, 50.0, 200.0, 200.0]
    assert 64 < crossover(SIZES, touched, flat) < 128  # the last crossing counts
