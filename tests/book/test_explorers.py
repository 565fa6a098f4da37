"""The explorers carry the numbers of the package, a picture and words, and load nothing."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.self_contained import self_contained
from transformer.inference.decoding import greedy_search, length_penalty
from transformer.inference.translator import Translator
from transformer.model.attention import scaled_dot_product_attention
from transformer.model.masks import causal_mask
from transformer.model.positional import sinusoidal_table
from transformer_book import (
    CompassExplorer,
    DecoderPasses,
    MaskBuilder,
    PositionExplorer,
    SoftmaxExplorer,
)
from transformer_book.studies.decoding.explorer import BeamExplorer, _tree
from transformer_book.studies.decoding.steps import Continuation, RecordedSearch
from transformer_book.studies.decoding.trace import SearchTrace

ENGLISH, GERMAN = "The animal was tired.", "Das Tier schlief."
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

    encode_batch = decode_batch = encode  # part of the protocol, unused
    vocab_size, pad_id, bos_id, eos_id = 27, 0, 0, 0


def tiny_search():
    alive, dropped = Continuation(-1, (1,), -0.5, "alive"), Continuation(-1, (3,), -3.0, "dropped")
    steps = [
        [alive, Continuation(-1, (2,), -1.0, "alive"), dropped],
        [Continuation(0, (1, 0), -0.75, "ended"), Continuation(1, (2, 4), -1.5, "alive")],
    ]
    trace = SearchTrace(2, 2, [([1], -0.75)], [-0.5, -1.5], [False, True], -3.0)
    return RecordedSearch(steps, trace, PENALTIES)


def vectors(count=12, length=64):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n, length, generator=generator) for n in (count, 8))


WEATHER = {"north": [2, 30], "<east>": [10, 10], "south": [20, 40], "west": [12, 80]}
COLUMNS = [("°C", 1), ("% rain", 0)]


def passes():
    return DecoderPasses(Translator.from_pretrained("tatoeba-en-de"), ENGLISH, GERMAN, position=1)


MAKE = {
    "compass": lambda: CompassExplorer(WEATHER, COLUMNS),
    "softmax": lambda: SoftmaxExplorer(*vectors(), labels=[f"<{i}>" for i in range(8)]),
    "positions": PositionExplorer,
    "beam": lambda: BeamExplorer({"</script>": tiny_search()}, Letters()),
    "masks": lambda: MaskBuilder(WORDS, padding=1, window=3),
    "passes": passes,
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_it_is_small_repeatable_and_loads_nothing(make):
    self_contained(make, 150_000)


def test_a_compass_computes_what_attention_does():
    compass = CompassExplorer(WEATHER, COLUMNS)
    key = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    value = torch.tensor(list(WEATHER.values())).float()
    for degrees, length in ((0, 0.0), (60, 4.0), (225, 2.5)):
        query = torch.from_numpy(compass.arrow(degrees, length)).float()[None]
        output, weights = scaled_dot_product_attention(query, key, value, need_weights=True)
        assert np.allclose(compass.weights(degrees, length), weights[0], atol=1e-6)
        assert np.allclose(compass.output(degrees, length), output[0], atol=1e-4)
    assert "6.2 °C, 21% rain" in repr(compass)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(values={"north": [1, 2]}), "2 to 8 keys"),
        (dict(columns=[("°C", 1)]), "1 components"),
        (dict(direction=42), "multiple of 5"),
        (dict(length=5.5), "0 to 5"),
    ],
)
def test_a_compass_says_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        CompassExplorer(**(dict(values=WEATHER, columns=COLUMNS) | wrong))


def test_scores_are_dot_products_of_beginnings():
    queries, keys = vectors()
    explorer = SoftmaxExplorer(queries, keys)
    data = explorer.payload()
    assert data["sizes"] == [1, 2, 4, 8, 16, 32, 64]
    for place, d in enumerate(data["sizes"]):
        assert np.allclose(data["scores"][3][place], queries[3, :d] @ keys[:, :d].T, atol=1e-3)
    scores = queries[3, :16] @ keys[:, :16].T
    ours = explorer.weights(3, 16, divide=True, temperature=2.0)
    torch.testing.assert_close(ours.float(), F.softmax(scores / 4 / 2, dim=-1))


def test_slope_is_the_norm_of_the_jacobian():
    scores = torch.randn(6, generator=torch.Generator().manual_seed(1))
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), scores)
    torch.testing.assert_close(SoftmaxExplorer.slope(scores.softmax(dim=-1)), jacobian.norm())
    queries, keys = vectors()
    slopes = SoftmaxExplorer.slope((queries @ keys.T).softmax(dim=-1))
    first = SoftmaxExplorer(queries, keys).query
    assert slopes.argsort().tolist().index(first) in (5, 6)  # the median of twelve


def test_products_are_those_of_the_sinusoidal_table():
    explorer, table = PositionExplorer(position=50, width=16), sinusoidal_table(300, 16)
    assert np.allclose(explorer._products(50), table[20:81] @ table[50] / 8, atol=1e-6)


def test_masks_are_those_of_the_model():
    builder = MaskBuilder(WORDS)
    assert torch.equal(builder.mask(causal=True, padding=0, window=6), causal_mask(6))
    assert builder.mask(causal=False, padding=0, window=6).all()
    mask = builder.mask(causal=False, padding=2, window=2)
    assert [sum(row) for row in mask.tolist()] == [2, 3, 3, 2, 1, 0]


def test_beams_carry_every_step_and_the_scores_of_ended_outputs():
    [search] = BeamExplorer({"x": tiny_search()}, Letters()).payload()["searches"]
    fates = [[one["fate"] for one in step] for step in search["steps"]]
    assert fates == [["alive", "alive", "dropped"], ["ended", "alive"]]
    ending = search["steps"][1][0]
    assert ending["text"] == "a" and ending["token"] == "<eos>" and ending["parent"] == 0
    assert ending["scores"] == pytest.approx([-0.75, -0.75 / length_penalty(2, 0.6)], abs=1e-4)


def test_the_picture_of_a_search_is_a_tree_without_crossing_lines():
    """A row per leaf, a node in its first child's row, and what was given up is marked."""
    alive, ended, dropped = "alive", "ended", "dropped"
    steps = [
        [Continuation(-1, (1,), -1.0, alive), Continuation(-1, (2,), -2.0, alive)],
        [Continuation(1, (2, 3), -3.0, alive), Continuation(0, (1, 3), -4.0, alive),
         Continuation(0, (1, 4), -5.0, dropped)],
        [Continuation(0, (2, 3, 5), -6.0, alive), Continuation(0, (2, 3, 0), -7.0, ended)],
    ]  # fmt: skip
    search = RecordedSearch(steps, SearchTrace(2, 3), PENALTIES)
    nodes = {node.found.tokens: node for node in _tree(search, 3)}
    assert {tokens: (node.column, node.row) for tokens, node in nodes.items()} == {
        (1,): (1, 0), (1, 3): (2, 0), (2,): (1, 1), (2, 3): (2, 1), (2, 3, 5): (3, 1),
        (2, 3, 0): (3, 2),
    }  # fmt: skip
    assert (nodes[2, 3, 0].parent_column, nodes[2, 3, 0].parent_row) == (2, 1)
    assert [tokens for tokens, node in nodes.items() if not node.lasts] == [(1, 3), (1,)]


def test_training_reads_the_given_translation_and_generating_its_own():
    translator = Translator.from_pretrained("tatoeba-en-de")
    tokenizer, model = translator.tokenizer, translator.model
    data = passes().payload()
    given, written = data["sides"]
    assert given["labels"] == ["Das", "Tier", "schlief", ".", "<eos>"]
    assert given["reads"] == ["<bos>", *given["labels"][:-1]]
    source = torch.tensor([[*tokenizer.encode(ENGLISH), tokenizer.eos_id]])
    labels = torch.tensor([*tokenizer.encode(GERMAN), tokenizer.eos_id])
    with torch.no_grad():
        target = torch.cat([torch.tensor([tokenizer.bos_id]), labels[:-1]])
        logs = model(source, target[None])[0].log_softmax(dim=-1)
    right = logs[range(len(labels)), labels]
    assert given["right"] == pytest.approx(right.exp().tolist(), abs=0.01)
    assert data["loss"] == pytest.approx(-right.mean().item(), abs=0.01)
    (found,) = greedy_search(model, source, 30)
    assert written["predicts"] == written["labels"]
    assert len(written["labels"]) == len(found.tokens) + 1
    with pytest.raises(ValueError, match="position"):
        DecoderPasses(translator, ENGLISH, GERMAN, position=6)
