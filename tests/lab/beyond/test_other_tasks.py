"""The tasks of the chapter beyond translation."""

import numpy as np
import pytest
import torch

from transformer.lab.beyond import digits, headlines, reviews, runoff


def verdict(text):
    """The sentiment of a review, derived from its text."""
    words = text.split(" but ")[-1].split()
    sign = 1 if words[-1] in reviews.GOOD else -1
    turned = any(word in ("not", "never", "anything") for word in words)
    if "anything but" in text and text.split(" but ")[-2].endswith("anything"):
        turned = True
    return sign * (-1 if turned else 1) > 0


def test_reviews_say_what_their_label_says():
    found = reviews.make_reviews(600, seed=0)
    assert [verdict(r.text) for r in found] == [r.positive for r in found]
    assert 0.45 < np.mean([r.positive for r in found]) < 0.55


def test_kinds_come_in_their_shares_and_look_it():
    found = reviews.make_reviews(2000, seed=1)
    for kind, share in reviews.KINDS.items():
        texts = [r.text for r in found if r.kind == kind]
        assert len(texts) / 2000 == pytest.approx(share, abs=0.04)
        turns = [any(f" {t} " in text for t in ("not", "never", "anything but")) for text in texts]
        assert all(turns) if kind.endswith("negated") else not any(turns)
        clauses = [text.replace("anything but", "").count(" but ") for text in texts]
        assert set(clauses) == ({1} if kind.startswith("contrast") else {0})


def test_reviews_of_another_part_are_left_out_and_seeds_repeat():
    first = reviews.make_reviews(300, seed=0)
    assert first == reviews.make_reviews(300, seed=0) != reviews.make_reviews(300, seed=1)
    texts = {r.text for r in first}
    other = reviews.make_reviews(300, seed=1, without=texts)
    assert len(other) == 300 and not texts & {r.text for r in other}


def test_a_bag_of_words_ignores_the_order_and_a_bag_of_pairs_does_not():
    ids, turned = torch.tensor([[4, 5, 6, 0]]), torch.tensor([[6, 5, 4, 0]])
    for runs, equal in ((1, True), (2, False)):
        torch.manual_seed(0)
        bag = reviews.BagOfWords(8, runs)
        torch.nn.init.normal_(bag.weights.weight)
        assert torch.allclose(bag(ids), bag(turned)) == equal
        torch.testing.assert_close(bag(ids), bag(torch.tensor([[4, 5, 6, 0, 0, 0]])))
    expected = bag.weights.weight[[4, 5, 6, 8 + 4 * 8 + 5, 8 + 5 * 8 + 6]].sum() + bag.bias
    torch.testing.assert_close(bag(ids)[0], expected)


def test_the_headline_is_today_s_event_whatever_the_voice():
    news, voices, places = headlines.make_reports(300, seed=0), set(), set()
    present = dict(headlines.DEEDS)
    for report, headline in news:
        parts = headlines.sentences_of(report)
        today = headlines.todays_sentence(report)
        assert len(parts) == 2 and sum("today" in part.split() for part in parts) == 1
        places.add(parts.index(today))
        who, does, what = headline.split()
        words = today.split()
        voices.add("was" in words)
        assert present[next(word for word in words if word in present)] == does
        actor = words.index("by") + 2 if "was" in words else words.index("the") + 1
        assert words[actor] == who and what in words and what in headlines.PLACES
        assert headlines.lead(report) == parts[0]
    assert voices == {True, False} and places == {0, 1}


@pytest.mark.parametrize(
    ("summary", "reference", "score"),
    [
        ("a b", "a b", 1.0),
        ("a a", "a b", 0.5),
        ("c", "a", 0.0),
        ("a a b", "a a", 0.8),
    ],
)
def test_rouge_counts_each_word_as_often_as_both_have_it(summary, reference, score):
    assert headlines.rouge_1(summary, reference) == score


def test_water_is_neither_made_nor_lost():
    """The flow is at most the rain plus the initial content of the stores."""
    rain = runoff.draw_rain(3000, np.random.default_rng(0))
    flow = runoff.run_off(rain)
    assert (flow >= 0).all() and 60 + 40 < flow.sum() < rain.sum() + 100


def test_a_linear_reservoir_drains_by_its_share():
    flow = runoff.run_off(np.zeros(50))  # which the slow store feeds alone
    np.testing.assert_allclose(flow[1:] / flow[:-1], 1 - 1 / runoff.SLOW_DAYS)
    assert flow[0] == 40 / runoff.SLOW_DAYS


def test_windows_hold_the_days_before_and_ask_for_those_after():
    river = runoff.make_river(1, seed=0)
    found = runoff.cut_windows(river, history=4, horizon=2)
    assert len(found) == runoff.YEAR - 5 and found.inputs.shape == (len(found), 6, 5)
    i = 10
    np.testing.assert_allclose(found.targets[i], river.flow[i + 4 : i + 6], rtol=1e-5)
    np.testing.assert_allclose(found.last[i], river.flow[i + 3], rtol=1e-5)
    np.testing.assert_allclose(found.inputs[i, :, 0] ** 2, river.rain[i : i + 6], atol=1e-4)
    np.testing.assert_allclose(found.inputs[i, :4, 1] ** 2, river.flow[i : i + 4], rtol=1e-4)
    assert (
        found.inputs[i, 4:, 1].eq(0).all() and found.inputs[i, :, 4].tolist() == [0] * 4 + [1] * 2
    )
    blind = runoff.cut_windows(river, 4, 2, rain_known=False)
    assert blind.inputs[:, 4:, 0].eq(0).all() and blind.inputs[:, :4, 0].gt(0).any()


def test_efficiency():
    truth = torch.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]])
    assert runoff.efficiency(truth, truth).tolist() == [1, 1]
    torch.testing.assert_close(
        runoff.efficiency(truth.mean(dim=0).expand(3, 2), truth), torch.zeros(2)
    )
    assert runoff.efficiency(truth + 10, truth).max() < 0  # a bias is not forgiven


def test_the_linear_forecast_finds_a_linear_rule():
    river = runoff.make_river(2, seed=0)
    found = runoff.cut_windows(river, 5, 2)
    root = found.inputs[:, 4, 1:2] + 0.02 * found.inputs[:, 5:, 0]
    made = runoff.Windows(found.inputs, root**2, found.last)
    torch.testing.assert_close(
        runoff.linear_forecast(made, made), made.targets, rtol=1e-3, atol=1e-3
    )


def test_patches_are_squares_row_by_row():
    image = torch.arange(24.0).view(1, 4, 6)
    found = digits.cut_patches(image, 2)
    assert found.shape == (1, 6, 4)
    assert found[0, :4].tolist() == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11], [12, 13, 18, 19]]


def test_digits_are_split_in_the_order_of_the_file():
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn: see [digits]")
    learn, probe = digits.load_digits(test_size=97)
    theirs = datasets.load_digits()
    assert len(learn) == 1700 and len(probe) == 97 and learn.images.max() == 1.0
    np.testing.assert_array_equal(probe.labels, theirs.target[-97:])
    np.testing.assert_allclose(probe.images * 16, theirs.images[-97:])
