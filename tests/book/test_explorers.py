"""The explorers carry the package's numbers, a picture and words, and need nothing else."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer.book import BeamExplorer, MaskBuilder, PositionExplorer, SoftmaxExplorer
from transformer.book.widgets.base import Widget
from transformer.inference.decoding import length_penalty
from transformer.lab.search.steps import Continuation, RecordedSearch
from transformer.lab.search.trace import SearchTrace
from transformer.model.masks import causal_mask
from transformer.model.positional import sinusoidal_table

WORDS = ["<bos>", "the", "cat", "drank", "</script>", "milk"]
PENALTIES = [(0.0, "gnmt"), (0.6, "gnmt")]


class Letters:
    """A tokenizer of letters: id 0 is the end."""

    def tokens(self, ids):
        return ["<eos>" if i == 0 else chr(96 + i) for i in ids]

    def decode(self, ids):
        return "".join(self.tokens(ids))

    def encode(self, text):
        return [ord(letter) - 96 for letter in text]

    encode_batch = decode_batch = encode  # a tokenizer has them; nobody asks here
    vocab_size, pad_id, bos_id, eos_id = 27, 0, 0, 0


def tiny_search():
    steps = [
        [
            Continuation(-1, (1,), -0.5, "alive"),
            Continuation(-1, (2,), -1.0, "alive"),
            Continuation(-1, (3,), -3.0, "dropped"),
        ],
        [Continuation(0, (1, 0), -0.75, "ended"), Continuation(1, (2, 4), -1.5, "alive")],
    ]
    trace = SearchTrace(2, 2, [([1], -0.75)], [-0.5, -1.5], [False, True], -3.0)
    return RecordedSearch(steps, trace, PENALTIES)


def vectors(count=12, length=64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, length, generator=generator), torch.randn(
        8, length, generator=generator
    )


def explorers():
    return {
        "softmax": SoftmaxExplorer(*vectors(), labels=[f"<{i}>" for i in range(8)]),
        "positions": PositionExplorer(),
        "beam": BeamExplorer({"</script>": tiny_search()}, Letters()),
        "masks": MaskBuilder(WORDS, padding=1, window=3),
    }


@pytest.fixture(scope="module", params=["softmax", "positions", "beam", "masks"])
def shown(request):
    return explorers()[request.param]._repr_mimebundle_()


def data_of(shown):
    html = shown["text/html"]
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html).group(1))


def test_it_is_small_and_needs_nothing_from_elsewhere(shown):
    assert len(shown["text/html"].encode()) < 150_000
    html = re.sub(r"base64,[^\"]+", "", shown["text/html"]).replace(
        "http://www.w3.org/2000/svg", ""
    )
    assert not re.search(r"https?:|@import|import\(|url\(|fetch|//\w", html)
    assert "%" not in re.sub(r"\d%|%;", "", re.search("<div[^>]*>", html).group())


def test_no_label_ends_the_script(shown):
    # The data, the script; the style and the picture stand before them.
    assert shown["text/html"].count("</script>") == 2
    assert data_of(shown)["title"]


def test_it_has_a_picture_and_words_without_scripts(shown):
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert len(shown["text/plain"]) > 80
    before, _ = shown["text/html"].split('<script type="application/json">')
    assert re.search(r'<img alt="[^"<>]{80,}" src="data:image/png', before)


def test_it_is_the_same_in_every_run():
    for name, one in explorers().items():
        assert one._repr_mimebundle_() == explorers()[name]._repr_mimebundle_()
    ids = {
        re.search(r'id="([\w-]+)"', MaskBuilder(WORDS, padding=n)._repr_mimebundle_()["text/html"])[
            1
        ]
        for n in range(4)
    }
    assert len(ids) == 4 and all(name.startswith("mask-builder-") for name in ids)


def test_what_looks_like_a_place_holder_stays_as_it_is():
    class Plain(Widget):
        kind, alt, script = "plain", "%SCRIPT%", "%ID%"

        def payload(self):
            return {"label": "%PNG%"}

        def draw(self, figure):
            figure.text(0.5, 0.5, "x")

    html = Plain()._repr_mimebundle_()["text/html"]
    assert 'alt="%SCRIPT%"' in html and '{"label": "%PNG%"}' in html
    assert re.search(r"<script>plain-\w+</script>", html)


# --- the numbers ----------------------------------------------------------------------------


def test_scores_are_dot_products_of_beginnings():
    queries, keys = vectors()
    explorer = SoftmaxExplorer(queries, keys)
    data = explorer.payload()
    assert data["sizes"] == [1, 2, 4, 8, 16, 32, 64]
    for place, d in enumerate(data["sizes"]):
        expected = queries[3, :d] @ keys[:, :d].T
        assert np.allclose(data["scores"][3][place], expected, atol=1e-3)
    scores = queries[3, :16] @ keys[:, :16].T
    ours = explorer.weights(3, 16, divide=True, temperature=2.0)
    torch.testing.assert_close(ours.float(), F.softmax(scores / 4 / 2, dim=-1))
    assert data["farthest"] >= max(abs(s) for q in data["scores"] for row in q for s in row) - 1e-3


def test_slope_is_the_size_of_the_jacobian():
    scores = torch.randn(6, generator=torch.Generator().manual_seed(1))
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), scores)
    torch.testing.assert_close(SoftmaxExplorer.slope(scores.softmax(dim=-1)), jacobian.norm())
    even = SoftmaxExplorer.slope(torch.tensor([0.5, 0.5, 0.0]))
    assert even == pytest.approx(0.5)


def test_the_first_query_is_a_typical_one():
    queries, keys = vectors()
    slopes = SoftmaxExplorer.slope((queries @ keys.T).softmax(dim=-1))
    rank = slopes.argsort().tolist().index(SoftmaxExplorer(queries, keys).query)
    assert rank in (5, 6)  # of twelve
    assert SoftmaxExplorer(queries, keys, query=3).payload()["query"] == 3


def test_products_are_those_of_the_packages_table():
    explorer, table = PositionExplorer(position=50, width=16), sinusoidal_table(300, 16)
    expected = table[20:81] @ table[50] / 8
    assert np.allclose(explorer._products(50), expected, atol=1e-6)


def test_masks_are_the_packages():
    builder = MaskBuilder(WORDS)
    assert torch.equal(builder.mask(causal=True, padding=0, window=6), causal_mask(6))
    assert builder.mask(causal=False, padding=0, window=6).all()
    mask = builder.mask(causal=False, padding=2, window=2)
    assert [sum(row) for row in mask.tolist()] == [2, 3, 3, 2, 1, 0]
    assert "the sees 2" in repr(builder) and "milk sees 6" in repr(builder)


def test_beams_carry_every_step_and_the_scores_of_what_ended():
    [search] = BeamExplorer({"x": tiny_search()}, Letters()).payload()["searches"]
    assert [[one["fate"] for one in step] for step in search["steps"]] == [
        ["alive", "alive", "dropped"],
        ["ended", "alive"],
    ]
    ending = search["steps"][1][0]
    assert ending["text"] == "a" and ending["token"] == "<eos>" and ending["parent"] == 0
    assert ending["scores"] == pytest.approx([-0.75, -0.75 / length_penalty(2, 0.6)], abs=1e-4)
    assert search["settled"] == [tiny_search().trace.settled(*p) for p in PENALTIES]
    assert "“a” by probability alone, GNMT, alpha 0.6" in repr(
        BeamExplorer({"x": tiny_search()}, Letters())
    )


# --- what does not fit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SoftmaxExplorer(torch.ones(2, 8), torch.ones(3, 4)), "of one length, got 8 and 4"),
        (lambda: SoftmaxExplorer(torch.ones(2, 6), torch.ones(3, 6)), "power of two, got 6"),
        (lambda: SoftmaxExplorer(torch.ones(2, 8), torch.ones(1, 8)), "2 to 12 vectors, got 1"),
        (lambda: SoftmaxExplorer(*vectors(), d_k=48), "d_k must be one of"),
        (lambda: SoftmaxExplorer(*vectors(), query=12), "query must be in 0..11, got 12"),
        (lambda: SoftmaxExplorer(*vectors(), labels=["a"]), "labels must be 8"),
        (lambda: PositionExplorer(width=32), "width must be one of"),
        (lambda: PositionExplorer(widths=(15,), width=15), "even numbers from 16"),
        (lambda: PositionExplorer(position=3), "position must be in 30..200, got 3"),
        (lambda: PositionExplorer(offset=-31), "offset must be in -30..30"),
        (lambda: PositionExplorer(reach=0), "reach must be at least 1"),
        (lambda: MaskBuilder(["a"] * 3), "tokens must be 4 to 10, got 3"),
        (lambda: MaskBuilder(WORDS, padding=6), "padding must be in 0..5"),
        (lambda: MaskBuilder(WORDS, window=0), "window must be in 1..6"),
        (lambda: MaskBuilder(WORDS, query=-1), "query must be in 0..5"),
        (lambda: BeamExplorer({}, Letters()), "at least one"),
        (lambda: BeamExplorer({"x": tiny_search()}, Letters(), step=3), "step must be in 0..2"),
        (
            lambda: BeamExplorer(
                {"x": tiny_search(), "y": replace(tiny_search(), penalties=PENALTIES[:1])},
                Letters(),
            ),
            "all searches must have the penalties",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
