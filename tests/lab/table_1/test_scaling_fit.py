"""A power law gives its exponent back, and what is none shows by its interval."""

import numpy as np
import pytest

from transformer.lab.table_1.scaling_fit import crossover, fit_exponent, fit_terms, local_exponents

SIZES = np.array([16, 32, 64, 128, 256])


def test_a_power_law_gives_its_exponent_back_exactly():
    for exponent in (0.0, 1.0, 2.0, -0.5):
        fit = fit_exponent(SIZES, 3 * SIZES.astype(float) ** exponent)
        assert fit.value == pytest.approx(exponent, abs=1e-9)
        assert fit.high - fit.low < 1e-9
        np.testing.assert_allclose(local_exponents(SIZES, 3.0 * SIZES**exponent), exponent, 1e-9)


def test_the_interval_holds_the_truth_and_grows_with_the_noise():
    widths = []
    for noise in (0.02, 0.2):
        held = 0
        for seed in range(12):
            generator = np.random.default_rng(seed)
            costs = SIZES**1.5 * np.exp(noise * generator.standard_normal((5, len(SIZES))))
            fit = fit_exponent(SIZES, costs, resamples=200, seed=seed)
            assert fit.low <= fit.value <= fit.high
            held += fit.low <= 1.5 <= fit.high
        assert held >= 9
        widths.append(fit.high - fit.low)
    assert widths[1] > 3 * widths[0]


def test_a_bent_curve_has_a_wide_interval():
    bent = SIZES * 64.0 + SIZES**2
    fit = fit_exponent(SIZES, bent)
    assert 1.2 < fit.value < 1.7 and fit.high - fit.low > 0.2
    local = local_exponents(SIZES, bent)
    assert (np.diff(local) > 0).all() and 1 < local[0] < local[-1] < 2


def test_repeats_count_by_their_median():
    costs = np.array([SIZES, SIZES, SIZES * np.array([1, 1, 1, 1, 50])], dtype=float)
    assert fit_exponent(SIZES, costs).value == pytest.approx(1)


def test_a_fit_can_be_written():
    assert str(fit_exponent(SIZES, SIZES**2)) == "2.00 [2.00, 2.00]"


def test_what_cannot_be_fitted():
    with pytest.raises(ValueError, match="three sizes"):
        fit_exponent([1, 2, 2], [1, 2, 2])
    with pytest.raises(ValueError, match="3 columns.*shape"):
        fit_exponent([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="above 0"):
        fit_exponent([1, 2, 3], [1, 0, 2])


def test_terms_come_out_whole():
    n, d = np.array([(n, d) for n in (8, 64, 500) for d in (16, 512)]).T
    found = fit_terms(n, d, 3 * n * d + 4 * n * d**2 + 2 * n**2 * d)
    expected = {(1, 1): 3, (1, 2): 4, (2, 1): 2, (2, 2): 0}
    assert found == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="2 pairs.*4 coefficients"):
        fit_terms([1, 2], [1, 2], [1, 2])


def test_crossover():
    flat = np.full(5, 100.0)
    assert crossover(SIZES, SIZES, flat) == pytest.approx(100)
    assert crossover(SIZES, SIZES**2, SIZES * 50.0) == pytest.approx(50)
    assert crossover(SIZES, flat + 1, flat) == 0
    assert crossover(SIZES, flat - 1, flat) is None
    assert crossover(SIZES, flat, SIZES) is None  # costs more at first, and less at the end
    touched = [50.0, 200.0, 50.0, 200.0, 200.0]
    assert 64 < crossover(SIZES, touched, flat) < 128  # from the last crossing on
