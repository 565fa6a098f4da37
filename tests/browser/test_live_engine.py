"""The engine of the live page computes what the package computes.

The weights that the page loads are read back and loaded into the package's model as well: with the
same weights both agree to rounding, and with the shipped weights to the precision of int8.
"""

import base64
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer import Tokenizer, Transformer, load_corpus
from transformer.inference.decoding import beam_search, greedy_search

# One worker reads the weights for all of these tests.
pytestmark = pytest.mark.xdist_group("live engine")
SENTENCE = "The animal didn't cross the street because it was too tired."
# How many sentences are translated, and how many outputs have to be the package's own at least. The
# rest are near ties.
SENTENCES, SAME = 15, 14


@pytest.fixture(scope="module")
def shipped():
    return Transformer.from_pretrained("tatoeba-en-de").eval()


@pytest.fixture(scope="module")
def rounded(html, shipped):
    """The package's model with the weights of the page, each within half a step of the shipped."""
    texts = [path.read_text() for path in sorted((html / "_static/live").glob("weights-*.js"))]
    header = json.loads(re.fullmatch(r"liveWeights\(0,(.*)\);\n", texts[0], re.DOTALL)[1])
    parts = [re.fullmatch(r'liveWeights\(\d+,"(.*)"\);\n', text)[1] for text in texts[1:]]
    content = b"".join(map(base64.b64decode, parts))
    state = shipped.state_dict()
    read = {}
    for tensor in header["tensors"]:
        name, shape, start = tensor["name"], tensor["shape"], tensor["start"]
        if "scales" in tensor:
            whole = np.frombuffer(content, np.int8, np.prod(shape), start).reshape(shape)
            scales = np.frombuffer(content, np.float32, shape[0], tensor["scales"])[:, None]
            assert (np.abs(whole * scales - state[name].numpy()) <= 0.5001 * scales).all(), name
            read[name] = torch.tensor(whole * scales)
        else:
            read[name] = torch.tensor(np.frombuffer(content, np.float32, shape[0], start))
    model = Transformer(shipped.config).eval()
    model.load_state_dict(read)
    return model


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained("tatoeba-en-de")


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("tatoeba-en-de").test


@pytest.fixture(scope="module")
def engine(browser, html):
    """A page with the engine and the weights."""
    page = browser.new_page()
    page.goto("about:blank")
    page.add_script_tag(path=html / "_static/live/engine.js")
    page.add_script_tag(path=Path(__file__).with_name("ask.js"))
    for path in sorted((html / "_static/live").glob("weights-*.js")):
        page.add_script_tag(path=path)
    page.evaluate("ask.load()")
    yield page
    page.close()


def encoded(tokenizer, text):
    return [*tokenizer.encode(text), tokenizer.eos_id]


@pytest.fixture(scope="module")
def pair(rounded, tokenizer):
    """Source ids of a sentence, and target ids as the decoder reads them."""
    source = encoded(tokenizer, SENTENCE)
    return source, [1, *greedy_search(rounded, torch.tensor([source]))[0].tokens]


def logits_of(model, pair):
    with torch.no_grad():
        return model(*(torch.tensor([ids]) for ids in pair))[0, :, ::10].numpy()


def test_every_attention_weight_and_the_logits(engine, rounded, pair):
    """Rows of masked attention have one weight per position so far."""
    maps = rounded.attention_weights(*(torch.tensor([ids]) for ids in pair))
    wanted = {
        f"{name}.weights.{head}": weights[0, head].detach().numpy()
        for name, weights in maps.items()
        for head in range(weights.size(1))
    }
    wanted["logits"] = logits_of(rounded, pair)
    found = engine.evaluate("ask.trace", [*pair, {}, [*wanted]])
    for name, rows in wanted.items():
        for row, expected in zip(found[name], rows, strict=True):
            masked = re.match(r"decoder.*self_attention", name)
            short = expected[: len(row)] if masked else expected
            np.testing.assert_allclose(row, short, atol=1e-3 if name == "logits" else 2e-5)


def test_searches_on_held_out_sentences(engine, rounded, shipped, tokenizer, corpus):
    texts = random.Random(0).sample(list(dict.fromkeys(corpus.source)), SENTENCES)
    sources = [encoded(tokenizer, text) for text in texts]
    found = engine.evaluate("ask.search", sources)
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in sources], True)
    for place, search in enumerate((greedy_search, beam_search)):
        for model in (shipped, rounded):
            expected = [hypothesis.tokens for hypothesis in search(model, padded)]
            same = sum(each[place] == tokens for each, tokens in zip(found, expected, strict=True))
            assert same >= SAME, (search.__name__, same)


def test_the_tokenizer(engine, tokenizer, corpus):
    """Sentences of both languages, and characters of every kind."""
    texts = [*corpus.source[:50], *corpus.target[:50]]
    texts += ["", " ", "\n", "👩‍👩‍👧‍👦 family", "naïve café", "e\u0301", "<eos>", "<pad> x"]
    texts += ["x" * 5000, "שלום", "x\u00a0y\u2009z\ufeffw", "it's they'll WE'RE I'd 'tis"]
    texts += ["  two   spaces  ", "tab\tand\r\nline", "a\x85b\x1cc"]
    draw = random.Random(1)
    for letters in (
        "abc'sdtrevml ",
        "aäöüß€§1234567890 .,;:!?-–—()\"' ",
        " \t\n\r\u00a0\u2003\u3000\x0b\x0cxy",
        "🙂🎉👍🏽🏳️‍🌈a 1",
        "".join(map(chr, range(32, 0x600))),
        "日本語中文한국어ไทย १२३ ",
    ):
        texts += ["".join(draw.choices(letters, k=draw.randrange(1, 60))) for _ in range(40)]
    for text, (ids, decoded, labels) in zip(
        texts, engine.evaluate("ask.encode", texts), strict=True
    ):
        expected = tokenizer.encode(text)
        assert ids == expected, repr(text)
        assert decoded == tokenizer.decode(expected), repr(text)
        assert labels == tokenizer.tokens(expected), repr(text)


@pytest.mark.parametrize(
    "part", ["residuals", "feed_forward", "positions", "cross_attention", "scale", "heads"]
)
def test_a_broken_part_is_broken_in_the_package_too(engine, rounded, pair, part):
    """The same part taken out of the package's model gives the same logits."""
    broken = {part: ["decoder.2.cross_attention.1"] if part == "heads" else True}
    found = np.array(engine.evaluate("ask.trace", [*pair, broken, ["logits"]])["logits"])
    model = Transformer(rounded.config).eval()
    model.load_state_dict(rounded.state_dict())
    for name, module in model.named_modules():
        if part == "residuals" and name.endswith("_residual"):
            module.forward = lambda x, sublayer, norm=module.norm: norm(sublayer(x))
        elif part == "feed_forward" and name.endswith(".feed_forward"):
            module.forward = torch.zeros_like
        elif part == "cross_attention" and name.endswith(".cross_attention"):
            module.forward = lambda x, *_others, **_options: torch.zeros_like(x)
        elif part == "scale" and name.endswith("attention"):
            module.scale = 1.0
        elif part == "heads" and name == "decoder.2.cross_attention":
            module.output_projection.weight.data[:, 64:128] = 0
    if part == "positions":
        model.positions.forward = lambda x, start=0: x
    np.testing.assert_allclose(found, logits_of(model, pair), atol=2e-3)
    assert np.abs(found - logits_of(rounded, pair)).max() > 0.1
