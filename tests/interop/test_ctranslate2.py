"""Our models in CTranslate2: the same numbers and translations, or a clear refusal."""

from dataclasses import dataclass
from functools import partial

import pytest
import torch

from tests.interop import small
from tests.interop.small import TEXTS
from transformer.data.corpora import load_corpus
from transformer.inference.metrics import bleu
from transformer.inference.translator import Translator
from transformer.interop import CTranslate2Translator, to_ctranslate2
from transformer.model.config import TransformerConfig

pytest.importorskip("ctranslate2", reason="needs ctranslate2: requirements-test.txt")

# More rows than tokens, and few positions.
make = partial(small.make, vocab_size=304, num_decoder_layers=3, max_length=60)


def our_scores(translator, source, target):
    """Log-probabilities of the tokens and EOS, without the share of padding and BOS."""
    ids = [translator.tokenizer.encode(text) for text in (source, target)]
    inputs = torch.tensor([[*ids[0], 2]]), torch.tensor([[1, *ids[1]]])
    with torch.no_grad():
        logits = translator.model(*inputs)[0]
    logits[:, [0, 1]] = -torch.inf
    return logits.log_softmax(dim=-1)[torch.arange(len(logits)), torch.tensor([*ids[1], 2])]


def their_scores(theirs, source, target):
    source, target = (
        [theirs._source[i] for i in [*theirs.tokenizer.encode(text), 2]]
        for text in (source, target)
    )
    scores = theirs.engine.score_batch([source], [target[:-1]])  # the engine adds EOS here
    return torch.tensor(scores[0].log_probs)


VARIANTS = [
    dict(),
    dict(norm="pre", activation="gelu", positions="learned", sharing="none"),
    dict(norm="pre", final_norm=False, positions="none", sharing="target", num_decoder_layers=1),
    dict(final_norm=True, layer_norm_eps=0.1, positions="sinusoidal-t2t", activation="silu"),
    dict(attention_bias=False, attention_scale=1.0, d_k=8, d_v=8, first_input="zeros"),
    dict(positions="rotary", norm_kind="rms", activation="swiglu", num_kv_heads=2, norm="pre"),
    dict(activation="geglu", num_kv_heads=1, num_heads=2),
]


@pytest.mark.parametrize("changes", VARIANTS)
def test_theirs_computes_what_ours_computes(tmp_path, changes):
    ours = make(**changes)
    to_ctranslate2(ours, tmp_path / "new" / "folder")
    theirs = CTranslate2Translator(tmp_path / "new" / "folder", threads=1)
    for source, target in ((TEXTS[0], TEXTS[2]), (TEXTS[1], "I")):
        expected, found = our_scores(ours, source, target), their_scores(theirs, source, target)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    expected = ours.translate(TEXTS, beam_size=1, max_length=8)
    assert theirs.translate(TEXTS, beam_size=1, max_length=8) == expected


def test_what_it_cannot_have_is_refused_before_a_folder_is_written(tmp_path):
    ours = make()
    two = Translator(ours.model, ours.tokenizer, target_tokenizer=make().tokenizer)
    for translator, options, saying in (
        (make(d_k=4, d_v=6), [], "d_v must be as large as d_k, 4, for CTranslate2, got 6"),
        (make(d_v=6), [], "d_v must be as large as d_k, 4,"),
        (ours, ["int4"], "quantization must be one of .*, got 'int4'"),
        (two, [], "one joint Tokenizer"),
    ):
        with pytest.raises(ValueError, match=saying):
            to_ctranslate2(translator, tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


@dataclass(frozen=True)
class Later(TransformerConfig):
    """A configuration with an option that came after the export."""

    gated_heads: bool = False


def test_an_option_that_the_export_does_not_know_is_refused(tmp_path):
    ours = make()
    sizes = ours.model.config.to_dict()
    for name in ("activation", "first_input", "norm", "norm_kind", "positions", "sharing"):
        config = TransformerConfig(**sizes)
        object.__setattr__(config, name, "later")  # as if its type allowed it
        ours.model.config = config
        with pytest.raises(ValueError, match=f"^{name} must be .* for CTranslate2, got 'later'$"):
            to_ctranslate2(ours, tmp_path / "out")
    ours.model.config = Later(**sizes, gated_heads=True)
    with pytest.raises(ValueError, match="gated_heads must be False for CTranslate2, got True"):
        to_ctranslate2(ours, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    ours.model.config = Later(**sizes)
    to_ctranslate2(ours, tmp_path / "out")


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_lengths_end_at_the_positions_of_the_export(tmp_path, positions):
    """Nothing is truncated silently: the export has ``max_length`` positions, of any kind."""
    ours = make(positions=positions)
    to_ctranslate2(ours, tmp_path)
    theirs = CTranslate2Translator(tmp_path, threads=1)
    longest = "0" * (ours.model.config.max_length - 1)
    assert theirs.translate(longest, beam_size=1) == ours.translate(longest, beam_size=1)
    assert theirs.translate([" ", longest[:3]], beam_size=1, max_length=3)[0] == ""
    for translator in (ours, theirs) if positions == "learned" else (theirs,):
        with pytest.raises(ValueError, match=r"texts\[1\] has 61 tokens, more than the 60"):
            translator.translate(["a", longest + "0"])


@pytest.fixture(scope="module")
def shipped(unchecked):
    return Translator.from_pretrained("tatoeba-en-de")


@pytest.fixture(scope="module")
def pairs():
    test = load_corpus("tatoeba-en-de").test
    return list(test.source[:80]), list(test.target[:80])


def test_the_shipped_model_translates_as_ours(tmp_path, shipped, pairs):
    to_ctranslate2(shipped, tmp_path)
    theirs = CTranslate2Translator(tmp_path, threads=1)
    for options in (dict(beam_size=1), dict()):
        assert theirs.translate(pairs[0], **options) == shipped.translate(pairs[0], **options)


def test_int8_is_smaller_costs_little_and_leaves_ours_alone(tmp_path, shipped, pairs):
    before = {name: value.clone() for name, value in shipped.model.state_dict().items()}
    to_ctranslate2(shipped, tmp_path / "whole")
    to_ctranslate2(shipped, tmp_path / "int8", "int8")
    for name, value in shipped.model.state_dict().items():
        assert torch.equal(value, before[name])
    whole, small = (tmp_path / name / "model.bin" for name in ("whole", "int8"))
    assert small.stat().st_size < 0.3 * whole.stat().st_size
    scores = {}
    for name in ("whole", "int8"):
        texts = CTranslate2Translator(tmp_path / name, threads=1).translate(pairs[0])
        scores[name] = bleu(texts, pairs[1]).score
    assert scores["int8"] > scores["whole"] - 1.0
