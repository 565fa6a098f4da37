"""Export a model to CTranslate2, a C++ engine made for serving translations.

It supports many processors, 8-bit weights and concurrent requests. Our own decoding is meant to be
read and changed.
"""

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer.data.extras import import_extra
from transformer.data.model_tokenizers import TokenizerLike, load_tokenizers, save_tokenizers
from transformer.data.sentencepiece import UNKNOWN, SentencePieceTokenizer
from transformer.data.tokenizer import Tokenizer
from transformer.inference.decoding import length_penalty
from transformer.inference.options import SearchOptions
from transformer.inference.sentences import encode_sentences
from transformer.inference.stepwise import EXTRA_LENGTH
from transformer.inference.translator import Translator
from transformer.interop.export import checked, write_readme
from transformer.interop.marian_weights import IMPOSSIBLE
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.layers import DecoderLayer
from transformer.model.positional import Layout, LearnedPositionalEmbedding, sinusoidal_table
from transformer.model.transformer import Transformer
from transformer.settings import COUNT

QUANTIZATIONS = ("float32", "float16", "bfloat16", "int8", "int8_float16", "int8_bfloat16", "int16")
ACTIVATIONS = dict(relu="RELU", gelu="GELU", silu="SWISH", geglu="GELU", swiglu="SWISH")

# What the export knows how to write: each choice that has a name, and the fields that are numbers
# or switches, or matter in training only.
_KNOWN = dict(
    activation=tuple(ACTIVATIONS),
    first_input=("token", "zeros"),
    norm=("post", "pre"),
    norm_kind=("layer", "rms"),
    positions=("sinusoidal", "sinusoidal-t2t", "learned", "rotary", "none"),
    sharing=("three-way", "target", "none"),
)
_FREE = {"vocab_size", "d_model", "d_ff", "num_heads", "num_kv_heads", "d_k", "d_v", "num_layers"}
_FREE |= {"num_decoder_layers", "dropout", "attention_dropout", "activation_dropout", "init"}
_FREE |= {"attention_bias", "attention_scale", "final_norm", "max_length", "layer_norm_eps"}
_FREE |= {"pad_id", "bos_id", "eos_id"}


def to_ctranslate2(
    translator: Translator, folder: Path | str, quantization: str | None = None
) -> None:
    """Write a folder that CTranslate2 and :class:`CTranslate2Translator` load.

    Its vocabulary has the tokens of the tokenizer's files in the folder. A source must end with
    EOS, which Hugging Face's ``AutoTokenizer`` adds; the folder's README.md shows how. The logits
    are equal to ours, except that padding and BOS can no longer be chosen: their share of the
    probability, about 3e-5 in the shipped model, goes to the other tokens.

    Args:
        translator: a Transformer with one :class:`~transformer.data.tokenizer.Tokenizer`, or with
            two of :class:`~transformer.data.sentencepiece.SentencePieceTokenizer`.
        folder: created if missing; files of these names are replaced.
        quantization: how the weights are stored, such as "int8"; float32 if None.

    Raises:
        ModuleNotFoundError: if ``ctranslate2`` is not installed.
        ValueError: if the model is not a Transformer, its d_v differs from d_k or it has an option
            that the export does not know, the tokenizers are of another kind, or the quantization
            is unknown.
    """
    if quantization not in (None, *QUANTIZATIONS):
        raise ValueError(f"quantization must be one of {QUANTIZATIONS}, got {quantization!r}")
    model, (tokenizer, target_tokenizer) = checked(translator)
    c = model.config
    _require_known(c)
    d_k, d_v = (size or c.d_model // c.num_heads for size in (c.d_k, c.d_v))
    if d_v != d_k:
        raise ValueError(f"d_v must be as large as d_k, {d_k}, for CTranslate2, got {d_v}")
    spec = _specification(model)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_tokenizers(tokenizer, target_tokenizer, folder, c.max_length)
    source, target = _pieces(tokenizer, c), _pieces(target_tokenizer, c)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.bos_token = spec.config.decoder_start_token = target[c.bos_id]
    spec.config.eos_token = target[c.eos_id]
    # Required, although byte-level BPE has no unknown text.
    spec.config.unk_token = UNKNOWN if UNKNOWN in source else source[c.pad_id]
    spec.config.add_source_eos = False  # the tokenizer adds it
    spec.config.layer_norm_epsilon = c.layer_norm_eps
    spec.config.add_attribute("max_source_length", c.max_length)
    spec.config.add_attribute("max_target_length", len(_position_table(model, model.positions)))
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))
    write_readme(translator, folder, "ctranslate2")


class CTranslate2Translator:
    """Translate text with a folder that :func:`to_ctranslate2` wrote.

    Args:
        folder: the folder that :func:`to_ctranslate2` wrote.
        device: "cpu", "cuda" or "auto".
        threads: CPU threads for one translation; 0 for CTranslate2's default.
        compute_type: number format; None for that of the stored weights.

    Raises:
        FileNotFoundError: if a file is missing.
        ModuleNotFoundError: if ``ctranslate2`` is not installed.
    """

    def __init__(
        self,
        folder: Path | str,
        device: str = "cpu",
        threads: int = 0,
        compute_type: str | None = None,
    ):
        folder = Path(folder)
        self.tokenizer, self.target_tokenizer = load_tokenizers(folder)
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.max_source_length: int = settings["max_source_length"]
        self.max_target_length: int = settings["max_target_length"]
        self._source, self._target = (
            _own_pieces(tokenizer) for tokenizer in (self.tokenizer, self.target_tokenizer)
        )
        self._ids = {piece: i for i, piece in self._target.items()}
        self.engine = _ctranslate2().Translator(
            str(folder), device, intra_threads=threads, compute_type=compute_type or "default"
        )

    def translate(
        self,
        texts: str | Iterable[str],
        options: SearchOptions | None = None,
        *,
        batch_size: int = 64,
        **search: Any,
    ) -> str | list[str]:
        """Translate sentences as ``Translator.translate`` does, with fewer arguments.

        There is no ``n_best``, and a sentence in capitals is translated without a change of case.

        With float32 and ``beam_size`` 1 the result is the same up to rounding. Beam search differs
        in two rules. First, an ending counts only if it is among the ``beam_size`` best
        continuations of a step (ours considers twice as many), and the search continues until
        ``beam_size`` endings are found; only then does our
        :func:`~transformer.inference.decoding.length_penalty` rank them. Second, the longest
        sentence of a batch sets the length limit for all. The book's page on speed counts how many
        of 1,000 translations stay the same.
        """
        chosen = SearchOptions.of(options, **search)
        batch_size = COUNT("batch_size", batch_size)
        if chosen.n_best is not None:
            raise ValueError(f"n_best must be left out for CTranslate2, got {chosen.n_best}")
        if isinstance(texts, str):
            return self.translate([texts], chosen)[0]
        given = list(texts)
        names = [f"texts[{i}]" for i in range(len(given))]
        rows = encode_sentences(given, names, self.tokenizer, self.max_source_length)
        sources = [[self._source[i] for i in [*row, self.tokenizer.eos_id]] for row in rows]
        order = sorted((i for i, row in enumerate(rows) if row), key=lambda i: len(rows[i]))
        translations = [""] * len(sources)
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            limit = chosen.max_length or len(rows[batch[-1]]) + EXTRA_LENGTH
            found = self.engine.translate_batch(
                [sources[i] for i in batch],
                beam_size=chosen.beam_size,
                num_hypotheses=chosen.beam_size,
                length_penalty=0.0,
                return_scores=True,
                return_end_token=True,  # EOS counts in |Y|
                max_input_length=0,  # no silent truncation
                max_decoding_length=min(limit, self.max_target_length),
            )
            best = [_best(result, chosen) for result in found]
            # Rows of the model without a token have no text.
            ids = [[self._ids[p] for p in pieces if p in self._ids] for pieces in best]
            for i, text in zip(batch, self.target_tokenizer.decode_batch(ids), strict=True):
                translations[i] = text.strip()
        return translations


def _best(result: Any, options: SearchOptions) -> list[str]:

    def score(place: int) -> float:
        length = max(len(result.hypotheses[place]), 1)
        return result.scores[place] / length_penalty(length, options.alpha, options.penalty)

    return result.hypotheses[max(range(len(result.hypotheses)), key=score)]


def _ctranslate2() -> Any:
    return import_extra("CTranslate2", "export", "ctranslate2", "ctranslate2.converters")


def _pieces(tokenizer: Tokenizer | SentencePieceTokenizer, config: TransformerConfig) -> list[str]:
    """List a token for each row of a model, all different."""
    own = _own_pieces(tokenizer)
    return [own.get(i, f"<unused{i}>") for i in range(config.vocab_size)]


def _own_pieces(tokenizer: TokenizerLike) -> dict[int, str]:
    """Map ids to tokens: those of the ``tokenizers`` library for bytes, or of SentencePiece.

    The labels of :meth:`~transformer.data.tokenizer.Tokenizer.tokens` are not unique.
    """
    if isinstance(tokenizer, SentencePieceTokenizer):
        return {i: piece for piece, i in tokenizer.vocabulary.items()}
    assert isinstance(tokenizer, Tokenizer)
    contents = json.loads(tokenizer.to_json())
    ids = contents["model"]["vocab"] | {t["content"]: t["id"] for t in contents["added_tokens"]}
    return {i: piece for piece, i in ids.items()}


def _require_known(config: TransformerConfig) -> None:
    """Refuse what would be exported as something else, such as a norm that came later."""
    for field in fields(config):
        name, value = field.name, getattr(config, field.name)
        known = _KNOWN.get(name, (value if name in _FREE else field.default,))
        if value not in known:
            names = f"one of {known}" if name in _KNOWN else repr(*known)
            raise ValueError(f"{name} must be {names} for CTranslate2, got {value!r}")


@torch.no_grad()
def _specification(model: Transformer) -> Any:
    engine, c = _ctranslate2(), model.config
    kinds = engine.specs.transformer_spec
    has_norm = not isinstance(model.encoder_norm, nn.Identity)
    d_k = c.d_k or c.d_model // c.num_heads
    options = dict(
        pre_norm=has_norm,  # creates final norms; the place of the others is set below
        activation=engine.specs.Activation[ACTIVATIONS[c.activation]],
        ffn_glu=c.activation in ("swiglu", "geglu"),
        rms_norm=c.norm_kind == "rms",
        head_dim=d_k,
        num_heads_kv=c.num_kv_heads,
    )
    if c.positions == "rotary":
        options |= dict(rotary_dim=d_k, rotary_interleave=True)
    encoder = kinds.TransformerEncoderSpec(len(model.encoder), c.num_heads, **options)
    decoder = kinds.TransformerDecoderSpec(len(model.decoder), c.num_heads, **options)
    encoder.pre_norm = decoder.pre_norm = c.norm == "pre"
    decoder.start_from_zero_embedding = c.first_input == "zeros"
    target_embedding = model.embedding if c.sharing == "three-way" else model.target_embedding
    encoder.embeddings[0].weight = _array(model.embedding.weight)
    decoder.embeddings.weight = _array(target_embedding.weight)
    decoder.projection.weight = _array(model.output_weight)
    bias = torch.zeros(c.vocab_size)
    bias[[c.pad_id, c.bos_id]] = IMPOSSIBLE
    decoder.projection.bias = _array(bias)
    for theirs, layers, norm, positions in (
        (encoder, model.encoder, model.encoder_norm, model.positions),
        (decoder, model.decoder, model.decoder_norm, model.target_positions),
    ):
        if hasattr(theirs, "position_encodings"):
            theirs.position_encodings.encodings = _array(_position_table(model, positions))
        if has_norm:
            _fill_norm(theirs.layer_norm, norm)
        for place, layer in zip(theirs.layer, layers, strict=True):
            _fill_layer(place, layer, c)
    return kinds.TransformerSpec(encoder, decoder)


def _fill_layer(theirs: Any, ours: Any, config: TransformerConfig) -> None:
    _fill_attention(theirs.self_attention, ours.self_attention, config)
    _fill_norm(theirs.self_attention.layer_norm, ours.self_attention_residual.norm)
    if isinstance(ours, DecoderLayer):
        _fill_attention(theirs.attention, ours.cross_attention, config)
        _fill_norm(theirs.attention.layer_norm, ours.cross_attention_residual.norm)
    network = ours.feed_forward
    _fill_norm(theirs.ffn.layer_norm, ours.feed_forward_residual.norm)
    _fill_linear(theirs.ffn.linear_0, network.hidden if network.gate is None else network.gate)
    _fill_linear(theirs.ffn.linear_1, network.output)
    if network.gate is not None:
        _fill_linear(theirs.ffn.linear_0_noact, network.hidden)


def _fill_attention(theirs: Any, ours: MultiHeadAttention, config: TransformerConfig) -> None:
    """Fill one matrix for the three projections of self-attention, two for cross-attention."""
    parts = [ours.query_projection, ours.key_projection, ours.value_projection]
    groups = [parts] if len(theirs.linear) == 2 else [parts[:1], parts[1:]]
    for place, group in zip(theirs.linear, groups, strict=False):
        place.weight = _array(torch.cat([part.weight for part in group]))
        if config.attention_bias:
            place.bias = _array(torch.cat([part.bias for part in group]))
    _fill_linear(theirs.linear[-1], ours.output_projection)
    if config.attention_scale is not None:
        theirs.queries_scale = float(config.attention_scale)


def _fill_linear(theirs: Any, ours: nn.Linear) -> None:
    theirs.weight = _array(ours.weight)
    if ours.bias is not None:
        theirs.bias = _array(ours.bias)


def _fill_norm(theirs: Any, ours: Any) -> None:
    theirs.gamma = _array(ours.weight)
    if isinstance(ours, nn.LayerNorm):
        theirs.beta = _array(ours.bias)


def _position_table(model: Transformer, positions: nn.Module) -> Tensor:
    """Return a row for every position that a source or a translation can reach."""
    c = model.config
    if isinstance(positions, LearnedPositionalEmbedding):
        return positions.embedding.weight
    longest = c.max_length + EXTRA_LENGTH
    if c.positions in ("rotary", "none"):  # without a table, CTranslate2 adds sinusoids
        return torch.zeros(longest, c.d_model)
    layout: Layout = "t2t" if c.positions == "sinusoidal-t2t" else "paper"
    return sinusoidal_table(longest, c.d_model, layout)


def _array(tensor: Tensor) -> Any:
    # A copy, because quantization works in place.
    return tensor.detach().float().cpu().numpy().copy()
