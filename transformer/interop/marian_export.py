"""Export a model as a Marian model of Hugging Face, the inverse of ``from_marian``."""

import json
import struct
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.interop.marian import (
    CONFIG,
    ONLY,
    SOURCE_PIECES,
    TARGET_PIECES,
    VOCABULARY,
    WEIGHTS,
)
from transformer.interop.marian_weights import IMPOSSIBLE, SHARED, coordinate_order, stack_names
from transformer.model.config import TransformerConfig
from transformer.model.positional import sinusoidal_table
from transformer.model.transformer import Transformer

# Settings that a model must share with Marian.
NEEDED = dict(
    norm="post",
    positions="sinusoidal",
    sharing="three-way",
    attention_bias=True,
    attention_scale=None,
    d_k=None,
    d_v=None,
)
ACTIVATIONS = dict(relu="relu", gelu="gelu", silu="swish")


def to_marian(translator: Translator, folder: Path | str) -> None:
    """Write a folder that Hugging Face's ``MarianMTModel`` and ``MarianTokenizer`` load.

    ``from_marian`` loads it too. *What is equal*: the logits of all tokens except padding and BOS,
    which can no longer be chosen, up to the epsilon of the layer norms, which is 1e-5 there.
    *What differs*: SentencePiece has no byte fallback, so a character without a token of its own
    becomes ``<unk>``, a token added at the end. Other text is nearly always cut the same way: the
    merges apply in the same order, but words are not split off first.

    Args:
        translator: a Transformer with one :class:`~transformer.data.tokenizer.Tokenizer`.
        folder: created if missing; files of these names are replaced.

    Raises:
        ValueError: if the model has an option that Marian lacks, or the tokenizer is of another
            kind.
    """
    tokenizer, model = translator.tokenizer, translator.model
    if not isinstance(tokenizer, Tokenizer) or translator.target_tokenizer is not tokenizer:
        raise ValueError("translator must have one joint tokenizer of transformer.data.tokenizer")
    if not isinstance(model, Transformer):
        raise ValueError(f"model must be a Transformer, got {type(model).__name__}")
    _require_marian(model)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [*tokenizer.tokens(range(model.config.vocab_size)), "<unk>"]
    pieces[model.config.eos_id] = "</s>"
    ids = {piece: i for i, piece in enumerate(pieces)}
    (folder / VOCABULARY).write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
    for name in (SOURCE_PIECES, TARGET_PIECES):
        (folder / name).write_bytes(sentencepiece_model(tokenizer))
    (folder / CONFIG).write_text(json.dumps(_settings(model.config), indent=1), encoding="utf-8")
    save_file(_tensors(model), folder / WEIGHTS, metadata={"format": "pt"})


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
    """Return the merges of a tokenizer as a ``.spm`` file, a SentencePiece model of type BPE.

    Pieces that are part of a character, and the null character, are left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(path := Path(folder) / "tokenizer.json")
        merges = json.loads(path.read_text(encoding="utf-8"))["model"]["merges"]
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
    theirs = {pair.ours for pair in stack_names(len(model.encoder), len(model.decoder))}
    ours = {name for name, _ in model.named_parameters()} - {"embedding.weight"}
    if ours != theirs:
        names = ", ".join(sorted(ours ^ theirs)[:3])
        raise ValueError(f"the model differs from Marian's in {names}")


@torch.no_grad()
def _tensors(model: Transformer) -> dict[str, Tensor]:
    """Return all tensors by Hugging Face's names."""
    c = model.config
    back = coordinate_order(c.d_model).argsort()
    parameters, tensors = model.state_dict(), {}
    for pair in stack_names(len(model.encoder), len(model.decoder)):
        tensor = parameters[pair.ours]
        tensor = tensor[back] if pair.rows else tensor
        tensors[pair.theirs] = tensor[:, back] if pair.columns else tensor
    rows = model.embedding.weight[:, back].clone()
    rows[c.pad_id] = rows[c.bos_id]  # padding starts a decoder input there
    tensors[SHARED] = torch.cat([rows, rows.mean(dim=0, keepdim=True)])  # the last is <unk>
    bias = torch.zeros(1, c.vocab_size + 1)
    bias[0, [c.pad_id, c.bos_id, c.vocab_size]] = IMPOSSIBLE
    tensors["final_logits_bias"] = bias
    for stack in ("encoder", "decoder"):
        positions = sinusoidal_table(c.max_length, c.d_model)[:, back]
        tensors[f"model.{stack}.embed_positions.weight"] = positions
    return {name: t.detach().float().cpu().contiguous().clone() for name, t in tensors.items()}


def _settings(config: TransformerConfig) -> dict[str, object]:
    decoder_layers = config.num_decoder_layers or config.num_layers
    return dict(
        model_type="marian",
        architectures=["MarianMTModel"],
        vocab_size=config.vocab_size + 1,
        d_model=config.d_model,
        encoder_layers=config.num_layers,
        decoder_layers=decoder_layers,
        encoder_attention_heads=config.num_heads,
        decoder_attention_heads=config.num_heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        activation_function=ACTIVATIONS[config.activation],
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
        max_position_embeddings=config.max_length,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        **ONLY,
        pad_token_id=config.pad_id,
        eos_token_id=config.eos_id,
        decoder_start_token_id=config.pad_id,
        bad_words_ids=[[config.pad_id]],
    )
