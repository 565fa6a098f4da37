"""The engine of the live page computes what the package computes, layer by layer.

The weights that the page loads are read back and loaded into the package's model as well: with the
same weights both agree to rounding, and with the shipped weights to the precision of int8.
"""

import base64
import json
import random
import re

import numpy as np
import pytest
import torch

from transformer import Tokenizer, Transformer, load_corpus
from transformer.inference.decoding import beam_search, greedy_search
from transformer.inference.sentences import encode_sentence
from transformer.saving.files import checksum

# One worker reads the weights for all of these tests.
pytestmark = pytest.mark.xdist_group("live engine")
SENTENCES = [
    "The animal didn't cross the street because it was too tired.",
    "Where is the train station?",
    "I have never seen such a beautiful garden.",
]
# How many sentences are translated, and how many outputs have to be the package's own at least. The
# rest are near ties: 38 and 15 were the same when this was written. The live page quotes 196 of the
# 200 sentences that these are the first of, by greedy search, which took a minute.
GREEDY, BEAM = (40, 37), (15, 14)

# The values of a trace that belong to one name of the package, flat and with their shape.
TRACE = """([source, target, broken]) => {
  const values = engine.trace(model, source, target, broken);
  const flat = rows => {
    const bytes = new Uint8Array(rows.length * rows[0].length * 4);
    rows.forEach((row, i) =>
      bytes.set(new Uint8Array(Float32Array.from(row).buffer), i * row.length * 4));
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return [rows.length, rows[0].length, btoa(text)];
  };
  const square = ([, rows]) => rows.every(row => row.length === rows[0].length);
  return Object.fromEntries(Object.entries(values).filter(square)
    .map(([name, rows]) => [name, flat(rows)]));
}"""
GREEDY_SEARCH = """([sources, broken]) => sources.map(source =>
  [...engine.greedy(model, source, { broken })].map(step => step.id))"""
BEAM_SEARCH = """sources => sources.map(source => {
  const search = engine.beamSearch(model, source);
  for (;;) {
    const { done, value } = search.next();
    if (done) return value;
  }
})"""


@pytest.fixture(scope="module")
def payload(html):
    """The header and the bytes of the weights, as the page gets them."""
    folder = html / "_static/live"
    texts = [path.read_text() for path in sorted(folder.glob("weights-*.js"))]
    header = json.loads(re.fullmatch(r"liveWeights\(0,(.*)\);\n", texts[0], re.DOTALL)[1])
    parts = [re.fullmatch(r'liveWeights\(\d+,"(.*)"\);\n', text)[1] for text in texts[1:]]
    assert len(parts) == header["count"]
    return header, b"".join(map(base64.b64decode, parts))


@pytest.fixture(scope="module")
def rounded(payload):
    """The package's model with the weights of the page."""
    header, content = payload
    model = Transformer.from_pretrained("tatoeba-en-de").eval()
    state = {}
    for tensor in header["tensors"]:
        shape, start = tensor["shape"], tensor["start"]
        if "scales" in tensor:
            rows, columns = shape
            values = np.frombuffer(content, np.int8, rows * columns, start).reshape(shape)
            scales = np.frombuffer(content, np.float32, rows, tensor["scales"])
            state[tensor["name"]] = torch.tensor(values * scales[:, None])
        else:
            numbers = np.frombuffer(content, np.float32, shape[0], start)
            state[tensor["name"]] = torch.tensor(numbers)
    model.load_state_dict(state)
    return model


@pytest.fixture(scope="module")
def shipped():
    return Transformer.from_pretrained("tatoeba-en-de").eval()


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained("tatoeba-en-de")


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("tatoeba-en-de").test


@pytest.fixture(scope="module")
def engine(browser, html):
    """A page with the engine and the weights, opened from a folder."""
    page = browser.new_page()
    page.goto("about:blank")
    page.add_script_tag(path=html / "_static/live/engine.js")
    page.evaluate("""() => {
      window.parts = [];
      window.liveWeights = (k, value) => {
        if (k) parts[k - 1] = value;
        else window.header = value;
      };
    }""")
    for path in sorted((html / "_static/live").glob("weights-*.js")):
        page.add_script_tag(path=path)
    page.evaluate("""() => {
      window.engine = makeEngine();
      Object.assign(window, engine.load({ ...header, parts }));
    }""")
    yield page
    page.close()


def encoded(tokenizer, text):
    return [*encode_sentence(text, "text", tokenizer), tokenizer.eos_id]


def held_out(corpus, tokenizer, count):
    """Source ids of sentences that the model was not trained on."""
    texts = list(dict.fromkeys(corpus.source))
    chosen = random.Random(0).sample(texts, 200)[:count]
    return [encoded(tokenizer, text) for text in chosen]


def searched(model, sources, search):
    """The package's ids of each sentence, EOS left out."""
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in sources], True)
    return [found.tokens for found in search(model, padded)]


def without_eos(rows):
    return [[token for token in row if token != 2] for row in rows]


def intermediate(model, source, target):
    """Every value that the engine records, under the same names, from the package's modules."""
    found = {}

    def keep(name, function=torch.clone):
        def hook(_module, _inputs, output):
            found[name] = function(output[0])

        return hook

    def keep_heads(name):
        def hook(_module, inputs, output):
            found[f"{name}.heads"], found[f"{name}.sublayer"] = inputs[0][0], output[0]

        return hook

    def keep_both(name):
        def hook(_module, inputs, output):
            found[f"{name}.sum"], found[f"{name}.norm"] = inputs[0][0], output[0]

        return hook

    handles = []
    for name, module in model.named_modules():
        attach = module.register_forward_hook
        if name.endswith(".hidden"):
            handles.append(attach(keep(name, torch.relu)))
        elif name.endswith(("query_projection", "key_projection", "value_projection")):
            handles.append(attach(keep(name.removesuffix("_projection"))))
        elif name.endswith(".output_projection"):
            handles.append(attach(keep_heads(name.removesuffix(".output_projection"))))
        elif name.endswith("feed_forward.output"):
            handles.append(attach(keep(name.replace("output", "sublayer"))))
        elif name.endswith("_residual.norm"):
            handles.append(attach(keep_both(name.replace("_residual.norm", ""))))
    with torch.no_grad():
        maps = model.attention_weights(source, target)
        found["logits"] = model(source, target)[0]
        for stack, ids in (("encoder", source), ("decoder", target)):
            found[f"{stack}.embedding"] = model.embedding(ids)[0]
            found[f"{stack}.input"] = model.positions(model.embedding(ids))[0]
    for handle in handles:
        handle.remove()
    for name, weights in maps.items():
        for head in range(weights.size(1)):
            found[f"{name}.weights.{head}"] = weights[0, head]
    return found


def traced(engine, source, target, **broken):
    """The engine's values as arrays; rows of self-attention in the decoder grow, so it has none."""
    found = engine.evaluate(TRACE, [source, target, broken])
    return {
        name: np.frombuffer(base64.b64decode(text), np.float32).reshape(rows, columns)
        for name, (rows, columns, text) in found.items()
    }


def test_the_weights_are_the_shipped_ones(payload, shipped):
    """Each is within half a step of its row, and the header has the checksum of the shipped."""
    header, content = payload
    state = shipped.state_dict()
    assert header["checksum"] == checksum(state)
    assert {tensor["name"] for tensor in header["tensors"]} == set(state)
    for tensor in header["tensors"]:
        if "scales" in tensor:
            rows, columns = tensor["shape"]
            values = np.frombuffer(content, np.int8, rows * columns, tensor["start"])
            scales = np.frombuffer(content, np.float32, rows, tensor["scales"])[:, None]
            expected = state[tensor["name"]].float().numpy()
            error = np.abs(values.reshape(rows, columns) * scales - expected)
            assert (error <= 0.5001 * scales).all(), tensor["name"]


@pytest.mark.parametrize("text", SENTENCES)
def test_every_layer(engine, rounded, shipped, tokenizer, text):
    source = encoded(tokenizer, text)
    target = [1, *searched(shipped, [source], greedy_search)[0]]
    ids = torch.tensor([source]), torch.tensor([target])
    found = traced(engine, source, target)
    same, whole = (intermediate(each, *ids) for each in (rounded, shipped))
    masked = {name for name in same if re.match(r"decoder.*self_attention\.weights", name)}
    assert set(found) == set(same) - masked  # every value that the engine records
    for name in found:
        expected = same[name]
        scale = expected.abs().max().item()
        worst = np.abs(found[name] - expected.numpy()).max()
        assert worst <= 2e-5 * max(scale, 1), (name, worst, scale)
        near = whole[name].numpy()
        error = np.linalg.norm(found[name] - near) / np.linalg.norm(near)
        assert error < 0.08, (name, error)  # int8: measured 0.04 at most


def test_masked_attention_of_the_decoder(engine, rounded, tokenizer):
    """Its rows have one weight per position so far; without the mask one per position."""
    source = encoded(tokenizer, SENTENCES[0])
    target = [1, *searched(rounded, [source], greedy_search)[0]]
    maps = rounded.attention_weights(torch.tensor([source]), torch.tensor([target]))
    rows = engine.evaluate(
        "([source, target]) => engine.trace(model, source, target)"
        '["decoder.1.self_attention.weights.2"].map(row => [...row])',
        [source, target],
    )
    assert [len(row) for row in rows] == list(range(1, len(target) + 1))
    for row, expected in zip(rows, maps["decoder.1.self_attention"][0, 2], strict=True):
        np.testing.assert_allclose(row, expected[: len(row)].numpy(), atol=1e-5)
    unmasked = traced(engine, source, target, causal_mask=True)
    assert unmasked["decoder.1.self_attention.weights.2"].shape == (len(target), len(target))


def test_decoding_with_a_cache_is_decoding_without(engine, tokenizer):
    source = encoded(tokenizer, SENTENCES[0])
    [ids] = engine.evaluate(GREEDY_SEARCH, [[source], {}])
    again = engine.evaluate(
        """([source, ids]) => engine.trace(model, source, [engine.BOS, ...ids.slice(0, -1)])
          .logits.map(row => engine.largest(engine.logProbabilities(row), 1)[0])""",
        [source, ids],
    )
    assert again == ids


def test_greedy_search_on_held_out_sentences(engine, rounded, shipped, tokenizer, corpus):
    count, floor = GREEDY
    sources = held_out(corpus, tokenizer, count)
    found = without_eos(engine.evaluate(GREEDY_SEARCH, [sources, {}]))
    expected = searched(shipped, sources, greedy_search)
    same = sum(map(list.__eq__, found, expected))
    print(f"greedy: {same} of {count} as the package")
    assert same >= floor
    # With the same weights only rounding is left.
    assert sum(map(list.__eq__, found, searched(rounded, sources, greedy_search))) >= count - 1


def test_beam_search_on_held_out_sentences(engine, rounded, shipped, tokenizer, corpus):
    count, floor = BEAM
    sources = held_out(corpus, tokenizer, count)
    found = engine.evaluate(BEAM_SEARCH, sources)
    best = [hypotheses[0]["tokens"] for hypotheses in found]
    expected = searched(shipped, sources, beam_search)
    same = sum(map(list.__eq__, best, expected))
    print(f"beam: {same} of {count} as the package")
    assert same >= floor
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in sources], True)
    equal = 0
    for ours, theirs in zip(found, beam_search(rounded, padded), strict=True):
        equal += ours[0]["tokens"] == theirs.tokens
        if ours[0]["tokens"] == theirs.tokens:
            assert ours[0]["score"] == pytest.approx(theirs.score, abs=1e-3)
    assert equal >= count - 1


def awkward_texts(corpus):
    """A thousand texts: sentences of both languages, and characters of every kind."""
    texts = [*corpus.source[:250], *corpus.target[:250]]
    texts += ["", " ", "\n", "🙂", "👩‍👩‍👧‍👦 family", "naïve café", "e\u0301", "<eos>", "<pad> x"]
    texts += ["Ich weiß, daß 1234567 Äpfel 3½ kosten.", "日本語のテキスト", "x" * 5000]
    texts += ["שלום", "x\u00a0y\u2009z\ufeffw"]
    texts += ["it's they'll WE'RE I'd 'tis", "  two   spaces  ", "tab\tand\r\nline", "a\x85b\x1cc"]
    texts += [" ".join(corpus.source[:300])]
    draw = random.Random(1)
    alphabets = [
        "abc'sdtrevml ",
        "aäöüß€§1234567890 .,;:!?-–—()\"' ",
        " \t\n\r\u00a0\u2003\u3000\x0b\x0cxy",
        "🙂🎉👍🏽🏳️‍🌈a 1",
        "".join(map(chr, range(32, 0x250))),
        "".join(map(chr, range(0x370, 0x600))),
        "日本語中文한국어ไทย १२३ ",
    ]
    while len(texts) < 1000:
        letters = draw.choice(alphabets)
        texts.append("".join(draw.choices(letters, k=draw.randrange(1, 60))))
    return texts


def test_the_tokenizer(engine, tokenizer, corpus):
    texts = awkward_texts(corpus)
    found = engine.evaluate(
        """texts => texts.map(text => {
          const ids = tokenizer.encode(text);
          return [ids, tokenizer.decode(ids), ids.map(id => tokenizer.label(id))];
        })""",
        texts,
    )
    for text, (ids, decoded, labels) in zip(texts, found, strict=True):
        expected = tokenizer.encode(text)
        assert ids == expected, repr(text)
        assert decoded == tokenizer.decode(expected), repr(text)
        assert labels == tokenizer.tokens(expected), repr(text)


def test_invalid_ids_decode_as_in_the_package(engine, tokenizer):
    draw = random.Random(2)
    rows = [[draw.randrange(8000) for _ in range(8)] for _ in range(300)]
    found = engine.evaluate("rows => rows.map(ids => tokenizer.decode(ids))", rows)
    assert found == tokenizer.decode_batch(rows)


@pytest.mark.parametrize(
    "part", ["residuals", "feed_forward", "positions", "cross_attention", "scale"]
)
def test_a_broken_part_is_broken_in_the_package_too(engine, rounded, tokenizer, part):
    """The same part taken out of the package's model gives the same logits."""
    source = encoded(tokenizer, SENTENCES[0])
    target = [1, *searched(rounded, [source], greedy_search)[0]]
    found = traced(engine, source, target, **{part: True})["logits"]
    broken = break_part(Transformer(rounded.config).eval(), rounded.state_dict(), part)
    with torch.no_grad():
        expected = broken(torch.tensor([source]), torch.tensor([target]))[0].numpy()
    np.testing.assert_allclose(found, expected, atol=2e-3)
    whole = traced(engine, source, target)["logits"]
    assert np.abs(found - whole).max() > 0.1


def break_part(model, state, part):
    """Take a part out of the package's model."""
    model.load_state_dict(state)
    for name, module in model.named_modules():
        if part == "residuals" and name.endswith("_residual"):
            module.forward = lambda x, sublayer, norm=module.norm: norm(sublayer(x))
        elif part == "feed_forward" and name.endswith(".feed_forward"):
            module.forward = torch.zeros_like
        elif part == "cross_attention" and name.endswith(".cross_attention"):
            module.forward = lambda x, *_others, **_options: torch.zeros_like(x)
        elif part == "scale" and name.endswith("attention"):
            module.scale = 1.0
    if part == "positions":
        model.positions.forward = lambda x, start=0: x
    return model


def test_a_muted_head_is_muted_in_the_package_too(engine, rounded, tokenizer):
    source = encoded(tokenizer, SENTENCES[0])
    target = [1, *searched(rounded, [source], greedy_search)[0]]
    found = traced(engine, source, target, heads=["decoder.2.cross_attention.1"])["logits"]
    model = Transformer(rounded.config).eval()
    model.load_state_dict(rounded.state_dict())
    with torch.no_grad():
        projection = model.decoder[2].cross_attention.output_projection
        projection.weight[:, 64:128] = 0
        expected = model(torch.tensor([source]), torch.tensor([target]))[0].numpy()
    np.testing.assert_allclose(found, expected, atol=2e-3)
