"""Facts follow from no rule; the networks are as large as they say; the record is whole."""

import numpy as np
import pytest
import torch

from transformer.recipes.record import read_record
from transformer_book.studies.feed_forward.facts import (
    BARE,
    DEEPER,
    FEED_FORWARD,
    RATES,
    RECORD,
    SEEDS,
    STEPS,
    SYMBOLS,
    WIDER,
    FactNetwork,
    Shape,
    all_pairs,
    best_rate,
    learn,
    parameters,
    shares_of,
)


def test_answers_are_fixed_and_depend_on_both_symbols():
    pairs, answers = all_pairs("know")
    table = answers.view(SYMBOLS, SYMBOLS)
    assert torch.equal(answers, all_pairs("know")[1]) and len(pairs.unique(dim=0)) == SYMBOLS**2
    assert all(len(line.unique()) > SYMBOLS / 3 for line in [*table, *table.T])
    assert torch.equal(all_pairs("move")[1], pairs[:, 0])


def test_without_a_feed_forward_layer_it_is_the_network_whose_layer_gives_zero():
    torch.manual_seed(0)
    whole = FactNetwork(Shape(d_ff=8))
    bare = FactNetwork(BARE)
    bare.load_state_dict({n: w for n, w in whole.state_dict().items() if "feed_forward." not in n})
    for layer in whole.layers:
        for weight in layer.feed_forward.parameters():
            torch.nn.init.zeros_(weight)
    assert not bare.layers[0].feed_forward(torch.ones(1, 2, 16)).any()
    pairs, _ = all_pairs("know")
    torch.testing.assert_close(bare(pairs), whole(pairs))
    assert parameters(whole_shape := Shape(d_ff=8)) - parameters(BARE) == 2 * 16 * 8 + 8 + 16
    assert whole_shape.name == "16-1-8"


def test_a_run_is_repeatable_and_learns():
    (shares,) = learn(Shape(d_ff=32), "move", 0.01, seeds=(3,), steps=(5, 150))
    assert shares == learn(Shape(d_ff=32), "move", 0.01, seeds=(3,), steps=(5, 150))[0]
    assert shares[1] > 0.9 > shares[0]


def test_the_record_has_every_run_and_its_controls_are_of_equal_size():
    runs = read_record(RECORD)["runs"]
    sizes = {run["shape"]: run["parameters"] for run in runs}
    for shape in (BARE, *FEED_FORWARD, *WIDER, *DEEPER):
        assert sizes[shape.name] == parameters(shape)
        for rate in RATES:
            shares = shares_of(runs, shape, rate)
            assert shares.shape == (len(SEEDS), len(STEPS))
            # Shares of 576 facts, rounded to four digits.
            assert np.allclose(shares * SYMBOLS**2, (shares * SYMBOLS**2).round(), atol=0.05)
    assert shares_of(runs, BARE, best_rate(runs, BARE, STEPS[-1], "move"), "move").min() > 0.9
    fed = {shape.d_ff: parameters(shape) for shape in FEED_FORWARD}
    for units, shape in [
        *zip((32, 64, 128), WIDER, strict=True),
        *zip((32, 64), DEEPER[:2], strict=True),
    ]:
        assert parameters(shape) == pytest.approx(fed[units], rel=0.05)
    assert 1 < parameters(DEEPER[-1]) / fed[128] < 1.07  # no number of layers is as near


def test_the_best_rate_is_of_one_step_and_one_task():
    def run(task, rate, *means):
        return dict(shape=BARE.name, task=task, rate=rate, shares=[means, means])

    low, usual, high, highest = RATES
    runs = [run("know", low, 0.1, 0.4), run("know", usual, 0.2, 0.3), run("know", high, 0.0, 0.0)]
    runs += [run("know", highest, 0.1, 0.1), *(run("move", rate, rate, rate) for rate in RATES)]
    assert best_rate(runs, BARE, STEPS[0]) == usual
    assert best_rate(runs, BARE, STEPS[1]) == low
    assert best_rate(runs, BARE, STEPS[1], "move") == highest
