"""The explorers compute what the package computes, and load nothing."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sacrebleu.metrics import BLEU
from torch import nn
from torch.utils.checkpoint import checkpoint

import transformer_book as book
from tests.self_contained import self_contained
from transformer import Transformer, TransformerConfig, Translator
from transformer.data.batching import EncodedPairs, Sentences, TokenBatches, padding_waste
from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import Tokenizer
from transformer.inference.decoding import greedy_search
from transformer.model.attention import scaled_dot_product_attention
from transformer.model.masks import causal_mask
from transformer.model.positional import sinusoidal_table
from transformer_book.studies.layer_types import reach
from transformer_book.studies.layer_types.reach import Convolution
from transformer_book.studies.tokens import merges as byte_pairs
from transformer_book.widgets.fields import KINDS, receptive_fields
from transformer_book.widgets.masks import PATTERNS, ReachExplorer
from transformer_book.widgets.memory import MemoryExplorer
from transformer_book.widgets.next_token import TEMPERATURES
from transformer_book.widgets.overlap import OverlapExplorer
from transformer_book.widgets.text import BatchPacker, MergeStepper
from transformer_book.widgets.training import TargetExplorer
from transformer_book.widgets.walk import record_walk

WORDS = ["<bos>", "the", "cat", "drank", "</script>", "milk"]
WEATHER = {"north": [2, 30], "<east>": [10, 10], "south": [20, 40], "west": [12, 80]}
LOGITS = torch.randn(3, 20, generator=torch.Generator().manual_seed(0)) * 3
LETTERS = [f"<{i}>" for i in range(20)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: book.CompassExplorer(WEATHER, [("°C", 1), ("% rain", 0)]),
        lambda: book.MaskBuilder(WORDS, padding=1, window=3),
        lambda: book.NextTokenExplorer(LOGITS, LETTERS, WORDS[3:]),
    ],
)
def test_it_is_small_repeatable_and_loads_nothing(make):
    self_contained(make, 100_000)


def test_a_compass_computes_what_attention_does():
    compass = book.CompassExplorer(WEATHER, [("°C", 1), ("% rain", 0)])
    key = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    value = torch.tensor(list(WEATHER.values())).float()
    query = torch.from_numpy(compass.arrow(60, 4.0)).float()[None]
    output, weights = scaled_dot_product_attention(query, key, value, need_weights=True)
    assert np.allclose(compass.weights(60, 4.0), weights[0], atol=1e-6)
    assert np.allclose(compass.output(60, 4.0), output[0], atol=1e-4)


def test_softmax_and_its_slope():
    queries, keys = torch.randn(12, 64), torch.randn(8, 64)
    ours = book.SoftmaxExplorer(queries, keys).weights(3, 16, divide=True, temperature=2.0)
    scores = queries[3, :16] @ keys[:, :16].T / 4 / 2
    torch.testing.assert_close(ours.float(), scores.softmax(dim=-1))
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), scores)
    torch.testing.assert_close(book.SoftmaxExplorer.slope(scores.softmax(dim=-1)), jacobian.norm())


def test_products_are_those_of_the_sinusoidal_table():
    explorer, table = book.PositionExplorer(position=50, width=16), sinusoidal_table(300, 16)
    assert np.allclose(explorer._products(50), table[20:81] @ table[50] / 8, atol=1e-6)


def test_masks_are_those_of_the_model():
    builder = book.MaskBuilder(WORDS)
    assert torch.equal(builder.mask(causal=True, padding=0, window=6), causal_mask(6))
    mask = builder.mask(causal=False, padding=2, window=2)
    assert mask.sum(dim=1).tolist() == [2, 3, 3, 2, 1, 0]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_hops_are_powers_of_the_mask(pattern):
    shown = ReachExplorer(LETTERS[:14], query=8)
    mask = shown.mask(pattern, 3, True)
    found, step = shown.hops(mask, 4), mask.float() + torch.eye(14)
    assert not mask.triu(1).any()
    for layers in range(1, 5):
        power = torch.linalg.matrix_power(step, layers) > 0
        assert torch.equal(power, (found >= 0) & (found <= layers))


def test_training_reads_the_given_translation_and_generating_its_own():
    translator = Translator.from_pretrained("tatoeba-en-de")
    tokenizer, model = translator.tokenizer, translator.model
    english, german = "The animal was tired.", "Das Tier schlief."
    data = book.DecoderPasses(translator, english, german).payload()
    given, written = data["sides"]
    assert given["reads"] == ["<bos>", *given["labels"][:-1]]
    source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
    labels = torch.tensor([*tokenizer.encode(german), tokenizer.eos_id])
    with torch.no_grad():
        target = torch.cat([torch.tensor([tokenizer.bos_id]), labels[:-1]])
        loss = F.cross_entropy(model(source, target[None])[0], labels)
    assert data["loss"] == pytest.approx(loss.item(), abs=0.01)
    (found,) = greedy_search(model, source, 30)
    assert written["predicts"] == written["labels"]
    assert len(written["labels"]) == len(found.tokens) + 1


def test_a_fold_separates_what_no_line_does():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    explorer = book.FoldExplorer(points, [0, 1, 1, 0], ["none", "a", "b", "both"])
    assert explorer.gap(explorer.points) < 1e-9
    normal = np.array([np.cos(np.deg2rad(30)), np.sin(np.deg2rad(30))])
    hidden = np.maximum(points @ normal - 0.25, 0)[:, None]
    assert np.allclose(explorer.moved(30, 0.25, 1.5), points - 1.5 * hidden * normal)
    assert explorer.gap(explorer.moved(45, 0.75, 2)) > 0.6


def test_probabilities_are_a_softmax_over_the_whole_vocabulary():
    shares = book.NextTokenExplorer(LOGITS, LETTERS, WORDS[3:]).payload()["shares"]
    for warmth, found in zip(TEMPERATURES, shares[1], strict=True):
        every = (LOGITS[1] / warmth).softmax(dim=-1).sort(descending=True).values
        assert np.allclose(found[:-1], every[: len(found) - 1], atol=1e-3)
        assert sum(found) == pytest.approx(1, abs=1e-3)


def test_target_loss_and_floor_are_those_of_pytorch():
    labels = torch.tensor([3, 0, 19])
    explorer = TargetExplorer(LOGITS, labels, LETTERS, step=1)
    wanted = F.cross_entropy(LOGITS, labels, label_smoothing=0.1, reduction="none")
    q = F.one_hot(labels, 20)[0] * 0.9 + 0.1 / 20
    assert explorer.loss(2, 0.1) == pytest.approx(wanted[2].item(), rel=1e-5)
    assert explorer.floor(0.1) == pytest.approx(-torch.xlogy(q, q).sum().item(), abs=1e-6)


FIELDS = [
    lambda m: nn.Sequential(*(reach.SelfAttention(4) for _ in range(m))),
    # The first step of a recurrence reads a word, and each other one the state before, too.
    lambda m: nn.Sequential(nn.Linear(4, 4), *(Convolution(4, 2, causal=True),) * (m - 1)),
    lambda m: nn.Sequential(*(Convolution(4, 3) for _ in range(m))),
    lambda m: nn.Sequential(*(Convolution(4, 3, gap=2**i) for i in range(m))),
    lambda m: nn.Sequential(*(reach.RestrictedAttention(4, 5) for _ in range(m))),
]


@pytest.mark.parametrize("kind, layers", [*zip(KINDS, FIELDS, strict=True)])
def test_a_field_is_where_the_gradient_is_not_zero(kind, layers):
    torch.manual_seed(0)
    x = torch.randn(1, 12, 4, dtype=torch.double, requires_grad=True)
    layers(2).double()(x)[0, 8].sum().backward()
    wanted = (x.grad[0] != 0).any(dim=-1).numpy()
    assert np.array_equal(receptive_fields(kind, 2, 8, 12)[0], wanted)


@pytest.mark.parametrize("kept", [5, 9])
def test_the_score_is_that_of_sacrebleu(kept):
    reference = "das Tier überquerte die Straße nicht weil es müde war"
    ours = "das Tier überquerte nicht die Straße weil es müde war"
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    wanted = metric.corpus_score([" ".join(ours.split()[:kept])], [[reference]]).score
    explorer = OverlapExplorer(reference.split(), {"ours": ours.split()})
    assert explorer.score("ours", kept) == pytest.approx(wanted)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_memory_is_what_pytorch_stores(checkpointing):
    """Bytes that the backward pass of an encoder needs, without parameters."""
    with torch.device("meta"):
        layers = Transformer(TransformerConfig(50, 32, 64, 4, num_layers=3)).encoder
        x = torch.empty(2, 64, 32, requires_grad=True)
    known = {weight.untyped_storage()._cdata for weight in layers.parameters()}
    alive = {}

    def pack(tensor):  # alive, so that no id comes twice
        alive[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for layer in layers:
            if checkpointing:
                pack(x)
                x = checkpoint(layer, x, None, use_reentrant=True)
            else:
                x = layer(x, None)
    stored = sum(t.untyped_storage().nbytes() for key, t in alive.items() if key not in known)
    explorer = MemoryExplorer(3, 32, 64, 4, 1000)
    whole, found = explorer.pieces(64, 2), explorer.pieces(64, 2, checkpointing=checkpointing)
    if checkpointing:  # the inputs of all layers, and all of one layer
        assert found["activations"] == whole["activations"] / 3 + stored
    else:
        wanted = found["activations"] + found["attention weights"]
        assert stored == pytest.approx(wanted, rel=0.03)


def test_merges_and_their_counts_are_those_of_all_words():
    """A merge that isn't the most frequent pair would raise."""
    split = load_corpus("tatoeba-en-de").validation
    # Overlapping pairs, which are joined from left to right.
    texts = [*split.source[:300], *["aaa aaaa"] * 200]
    words, tokenizer = byte_pairs.count_words(texts), Tokenizer.train(texts, 3 + 256 + 100)
    merges, text = byte_pairs.read_merges(tokenizer.to_json()), "aaa aaaa 🙂 <b>naïve</b>"
    spelled = [byte_pairs.WORD.findall(text)]
    stepper = MergeStepper(words, merges, spelled, counted=30, leaps=[100])
    assert all(b"".join(shown[0]).decode() == text for shown in stepper.pieces)
    assert len(stepper.pieces[-1][0]) == len(tokenizer.encode(text))
    count = Counter()
    for word, times in words.items():
        for pair in pairwise(word.encode()):
            count[pair] += times
    found = [times for _, times in stepper.most_frequent[0]]
    assert found == sorted(count.values(), reverse=True)[: len(found)]
    with pytest.raises(ValueError, match="is not the next one"):
        MergeStepper(words, merges[3:], spelled, counted=3)


def test_sorted_batches_are_the_packages():
    lengths = np.random.default_rng(1).integers(2, 31, size=120)
    packer = BatchPacker(lengths)
    ids, ends = np.ones(sum(lengths), np.int32), np.cumsum([0, *lengths])
    pairs = EncodedPairs(Sentences(ids, ends), Sentences(ids, ends), 0, 1)
    made = TokenBatches(pairs, 256)
    sizes = sorted(len(rows) for rows in made.epoch(0))
    assert sorted(map(len, packer.plan(10**9, 256))) == sizes
    waste = padding_waste(made.batch(rows) for rows in made.epoch(0))
    assert packer.padding(10**9, 256) == pytest.approx(waste)
    assert packer.padding(1, 256) > packer.padding(50, 256) > waste


def test_each_tensor_of_the_walk_follows_from_those_before_it():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(12, 128, 256, 2, num_layers=2)).eval()
    source, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]])
    found = {f"{s.part}: {s.name}": s.values for s in record_walk(model, source, target)}
    layer, one = model.encoder[0], "Encoder layer 1: "
    x = found["Source: embedding + position"]
    value = found[one + "value"].unflatten(1, (2, -1)).transpose(0, 1)
    joined = (found[one + "attention weights"] @ value).transpose(0, 1).flatten(1)
    torch.testing.assert_close(joined, found[one + "weighted sums of the values"])
    out = found[one + "output of self-attention"]
    torch.testing.assert_close(layer.self_attention.output_projection(joined), out)
    torch.testing.assert_close(found[one + "add"], x + out)
    fed = layer.feed_forward(found[one + "norm"][None])[0]
    torch.testing.assert_close(fed, found[one + "feed-forward, output"])
    torch.testing.assert_close(found["Output: logits"], model(source, target)[0])
    masked = found["Decoder layer 1: masked attention weights"]
    assert (masked.triu(1) == 0).all() and masked.shape == (2, 3, 3)
