"""Export a model as a Marian model of Hugging Face, the inverse of ``from_marian``."""

import json
import struct
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer.data.sentencepiece import (
    EOS,
    SOURCE_PIECES,
    TARGET_PIECES,
    VOCABULARY,
    SentencePieceTokenizer,
)
from transformer.data.tokenizer import TOKENIZER, TOKENIZER_CONFIG, Tokenizer, hugging_face_config
from transformer.inference.translator import Translator
from transformer.interop.export import LENGTH_PENALTY, checked, write_readme
from transformer.interop.marian import CONFIG, NAMES, ONLY, WEIGHTS
from transformer.interop.marian_weights import (
    IMPOSSIBLE,
    OUTPUT,
    SHARED,
    SOURCE,
    TARGET,
    coordinate_order,
    stack_names,
    unfold_bias,
)
from transformer.model.config import TransformerConfig
from transformer.model.positional import sinusoidal_table
from transformer.model.transformer import Transformer
from transformer.saving.files import write_atomically, write_json

# Settings that a model must share with Marian.
NEEDED = dict(
    norm="post",
    positions="sinusoidal",
    attention_bias=True,
    attention_scale=None,
    d_k=None,
    d_v=None,
    first_input="token",
)
ACTIVATIONS = dict(relu="relu", gelu="gelu", silu="swish")
GENERATION = "generation_config.json"


def to_marian(translator: Translator, folder: Path | str) -> None:
    """Write a folder that Hugging Face's ``MarianMTModel`` and ``AutoTokenizer`` load.

    ``from_marian`` loads it too. The logits are equal, up to the epsilon of the layer norms, always
    1e-5 in Marian; padding and BOS can no longer be chosen.

    A model with one joint :class:`~transformer.data.tokenizer.Tokenizer` gets its
    ``tokenizer.json``, with the same ids for any text, and SentencePiece files, which
    ``MarianTokenizer`` and ``from_marian`` read. These have no byte fallback: a character without a
    token of its own becomes ``<unk>``, a token added at the end. Other text is nearly always split
    the same way: the merges apply in the same order, but the text is not split into words first.

    A model of ``from_marian`` is restored up to rounding: the same vocabulary, the same shared
    matrices, and the bias of the logits in its place. After further training the matrices differ,
    and the folder holds each of them.

    Args:
        translator: a Transformer with one :class:`~transformer.data.tokenizer.Tokenizer`, or with
            two of :class:`~transformer.data.sentencepiece.SentencePieceTokenizer`.
        folder: created if missing; files of these names are replaced.

    Raises:
        ValueError: if the model has an option that Marian lacks, or the tokenizers are of another
            kind.
    """
    model, (tokenizer, target) = checked(translator)
    _require_marian(model)
    folder, c = Path(folder), model.config
    sizes = None
    if isinstance(tokenizer, SentencePieceTokenizer):
        assert isinstance(target, SentencePieceTokenizer)
        if c.bos_id != c.vocab_size - 1:
            raise ValueError(f"bos_id must be the last id, {c.vocab_size - 1}, got {c.bos_id}")
        sizes = c.bos_id, c.bos_id
        if tokenizer.vocabulary != target.vocabulary:
            sizes = 1 + max(tokenizer.vocabulary.values()), 1 + max(target.vocabulary.values())
        tokenizer.save_pretrained(folder, c.max_length, target)
    else:
        _write_tokenizer(tokenizer, folder, c)
    settings, tensors = _convert(model, sizes)
    write_json(folder / CONFIG, settings)
    write_json(folder / GENERATION, _generation(c))
    metadata = {"format": "pt"}
    write_atomically(folder / WEIGHTS, lambda path: save_file(tensors, path, metadata=metadata))
    write_readme(translator, folder, "marian")


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
    """Return the merges of a tokenizer as a ``.spm`` file, a SentencePiece model of type BPE.

    It leaves out pieces that are part of a character, and the null character.
    """
    merges = json.loads(tokenizer.to_json())["model"]["merges"]
    labels = tokenizer.tokens(range(tokenizer.vocab_size))
    first = tokenizer.vocab_size - len(merges)  # merged pieces have the last ids
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]  # kinds: unknown, control
    for i, label in enumerate(labels[3:], start=3):
        if not label.startswith("<0x") and label != "\0":
            pieces.append((label, float(min(first - 1 - i, 0)), 1))
    body = b"".join(
        _message(1, _message(1, text.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18%c" % k)
        for text, score, k in pieces
    )
    trainer = b"\x18\x02"  # model_type: BPE
    # No blank before the first word, one blank for a run of them, blanks visible as a piece.
    normalizer = _message(1, b"identity") + b"\x18\x00\x20\x01\x28\x01"
    return body + _message(2, trainer) + _message(3, normalizer)


def _message(field: int, content: bytes) -> bytes:
    """Encode a length-delimited field of Protocol Buffers."""
    size, length = bytearray(), len(content)
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([field << 3 | 2, *size, length]) + content


def _require_marian(model: Transformer) -> None:
    for name, only in NEEDED.items():
        if (value := getattr(model.config, name)) != only:
            raise ValueError(f"{name} must be {only!r} for Marian, got {value!r}")
    heads, kv_heads = model.config.num_heads, model.config.num_kv_heads
    if kv_heads not in (None, heads):
        raise ValueError(f"num_kv_heads must be num_heads = {heads} for Marian, got {kv_heads}")
    theirs = {pair.ours for pair in stack_names(len(model.encoder), len(model.decoder))}
    vocabulary = {"embedding.weight", "target_embedding.weight", "output.weight"}
    ours = {name for name, _ in model.named_parameters()} - vocabulary
    if ours != theirs:
        names = ", ".join(sorted(ours ^ theirs)[:3])
        raise ValueError(f"the model differs from Marian's in {names}")


def _write_tokenizer(tokenizer: Tokenizer, folder: Path, config: TransformerConfig) -> None:
    """Write a byte-level tokenizer, with Marian's name for EOS, and its SentencePiece form."""
    content = json.loads(tokenizer.to_json().replace("<eos>", EOS))
    write_json(folder / TOKENIZER, content)
    write_json(folder / TOKENIZER_CONFIG, hugging_face_config(EOS, config.max_length))
    pieces = [*tokenizer.tokens(range(tokenizer.vocab_size))]
    # A model may have more rows than its tokenizer has tokens.
    pieces += [f"<unused{i}>" for i in range(len(pieces), config.vocab_size)] + ["<unk>"]
    pieces[config.eos_id] = EOS
    write_json(folder / VOCABULARY, {piece: i for i, piece in enumerate(pieces)})
    model = sentencepiece_model(tokenizer)
    for name in (SOURCE_PIECES, TARGET_PIECES):
        write_atomically(folder / name, lambda path: path.write_bytes(model))


@torch.no_grad()
def _convert(
    model: Transformer, sizes: tuple[int, int] | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return Marian's settings, and all tensors by Hugging Face's names.

    ``sizes`` are the rows of source and target in vocabularies of Marian, which lack our BOS; None
    for all our rows and one more, for ``<unk>``.
    """
    c = model.config
    back = coordinate_order(c.d_model).argsort()
    parameters, tensors = model.state_dict(), {}
    for pair in stack_names(len(model.encoder), len(model.decoder)):
        tensor = parameters[pair.ours]
        tensor = tensor[back] if pair.rows else tensor
        tensors[pair.theirs] = tensor[:, back] if pair.columns else tensor
    for stack in ("encoder", "decoder"):
        positions = sinusoidal_table(c.max_length, c.d_model)
        tensors[f"model.{stack}.embed_positions.weight"] = positions[:, back]

    source: Tensor = model.embedding.weight
    output: Tensor = model.output_weight
    target: Tensor = source if c.sharing == "three-way" else model.target_embedding.weight
    tied, scaled, bias = c.sharing != "none", True, output.new_zeros(c.vocab_size)
    bias[[c.pad_id, c.bos_id]] = IMPOSSIBLE
    if sizes and not tied and (found := _unfold(model, source, target, output, sizes[1])):
        source, target, bias, shift, scaled = found
        tensors[f"model.decoder.layers.{len(model.decoder) - 1}.final_layer_norm.bias"] = shift[
            back
        ]
        tied = True
    target = target.clone()
    target[c.pad_id] = target[c.bos_id]  # padding starts a decoder input there
    real = torch.arange(c.vocab_size, device=target.device) != c.pad_id
    if sizes is None:
        source, target, output = (
            torch.cat([rows, rows.mean(dim=0, keepdim=True)]) for rows in (source, target, output)
        )
        bias, real = torch.cat([bias, bias[[c.pad_id]]]), torch.cat([real, real[[c.eos_id]]])
    else:
        source, target, output = source[: sizes[0]], target[: sizes[1]], output[: sizes[1]]
        bias, real = bias[: sizes[1]], real[: sizes[1]]
    shared = source.shape == target.shape and torch.equal(source[real], target[real])
    tensors |= {SHARED: target} if shared else {SOURCE: source, TARGET: target}
    if not tied:
        tensors[OUTPUT] = output
    for name in (SHARED, SOURCE, TARGET, OUTPUT):
        if name in tensors:
            tensors[name] = tensors[name][:, back]
    tensors["final_logits_bias"] = bias[None]
    settings = _settings(c) | dict(
        vocab_size=len(source),
        decoder_vocab_size=len(target),
        scale_embedding=scaled,
        share_encoder_decoder_embeddings=shared,
        tie_word_embeddings=tied,
    )
    tensors = {name: t.detach().float().cpu().contiguous().clone() for name, t in tensors.items()}
    return settings, tensors


def _unfold(
    model: Transformer, source: Tensor, target: Tensor, output: Tensor, size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, bool] | None:
    """Undo what ``from_marian`` did to a model whose output matrix was that of the target.

    Return the embeddings of source and target, the bias of the logits, the shift of the last norm,
    and whether Marian scales embeddings; None if the output matrix is another.
    """
    norm = model.decoder[-1].feed_forward_residual.norm
    assert isinstance(norm, nn.LayerNorm)
    real = [i for i in range(size) if i != model.config.pad_id]
    for factor in (1.0, model.embedding.scale):
        if found := unfold_bias(output[real], factor * target[real], norm):
            bias = output.new_zeros(len(output))
            bias[real], shift = found
            return factor * source, factor * target, bias, shift, factor == 1.0
    return None


def _settings(c: TransformerConfig) -> dict[str, Any]:
    return dict(
        model_type="marian",
        architectures=["MarianMTModel"],
        decoder_attention_heads=c.num_heads,
        decoder_ffn_dim=c.d_ff,
        activation_function=ACTIVATIONS[c.activation],
        decoder_start_token_id=c.pad_id,
        **{theirs: getattr(c, ours) for ours, theirs in NAMES.items()}
        | dict(decoder_layers=c.num_decoder_layers or c.num_layers),
        **ONLY,
    )


def _generation(config: TransformerConfig) -> dict[str, Any]:
    """Return settings for ``generate`` that come closest to our default search.

    Padding would begin a decoder input there, so it may not be chosen.
    """
    return dict(
        num_beams=4,
        length_penalty=LENGTH_PENALTY,
        early_stopping=False,
        max_length=config.max_length,
        bad_words_ids=[[config.pad_id]],
        renormalize_logits=True,
        pad_token_id=config.pad_id,
        eos_token_id=config.eos_id,
        decoder_start_token_id=config.pad_id,
    )
