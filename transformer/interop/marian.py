"""Translation models of the Marian kind (OPUS-MT), as Hugging Face's ``MarianMTModel`` keeps them.

How their weights become ours is in :mod:`transformer.interop.marian_weights`.

Paper: section 3 (the same architecture in another program)
"""

from pathlib import Path
from typing import Any

import torch

from transformer.inference.translator import Translator
from transformer.interop.marian_files import (
    CONFIG,
    SOURCE_PIECES,
    TARGET_PIECES,
    TARGET_VOCABULARY,
    VOCABULARY,
    locate_marian,
    read_json,
    read_weights,
)
from transformer.interop.marian_tokenizer import MarianTokenizer, import_sentencepiece
from transformer.interop.marian_weights import convert, vocabulary_sizes
from transformer.model.config import TransformerConfig
from transformer.model.layers import Activation

# What a configuration file leaves out has the value that Hugging Face's MarianConfig gives it.
DEFAULTS: dict[str, Any] = dict(
    vocab_size=58101,
    decoder_vocab_size=None,
    max_position_embeddings=1024,
    d_model=1024,
    encoder_layers=12,
    decoder_layers=12,
    encoder_attention_heads=16,
    decoder_attention_heads=16,
    encoder_ffn_dim=4096,
    decoder_ffn_dim=4096,
    activation_function="gelu",
    dropout=0.1,
    attention_dropout=0.0,
    activation_dropout=0.0,
    scale_embedding=False,
    share_encoder_decoder_embeddings=True,
    tie_word_embeddings=True,
    decoder_start_token_id=58100,
    pad_token_id=58100,
    eos_token_id=0,
)
# Options of other Marian models that Hugging Face's model does not compute either.
ONLY = dict(
    normalize_before=False,
    normalize_embedding=False,
    add_final_layer_norm=False,
    static_position_embeddings=True,
)
ACTIVATIONS: dict[str, Activation] = dict(relu="relu", gelu="gelu", swish="silu", silu="silu")
EOS, PAD = "</s>", "<pad>"
# Positions are computed, so nothing in a file vouches for the size of their table.
_MOST_POSITIONS = 1 << 27


def from_marian(name_or_path: str | Path, device: torch.device | str | None = None) -> Translator:
    """Load a Marian model of Hugging Face with its tokenizer, ready to translate.

    ::

        translator = from_marian("Helsinki-NLP/opus-mt-en-de")
        translator.translate(texts, beam_size=6, alpha=1.0, penalty="fairseq")

    *What is equal.* The logits of ``translator.model`` for the tokens of Marian's vocabulary, to
    rounding, whatever the padding. Ids are Marian's own; a decoder input starts with
    ``config.bos_id`` where theirs starts with ``decoder_start_token_id``. Attention weights
    are equal too, and so are greedy translations where theirs may not choose padding.

    *What is not.* The logit of padding is -10,000 here. Hugging Face put padding into Marian's
    vocabulary, where its model can choose it; its ``generate`` takes it out of the softmax by
    ``bad_words_ids`` and ``renormalize_logits=True``, as the settings of OPUS-MT say. With
    these, ``early_stopping="never"``, ``forced_eos_token_id=None`` and the same maximum length,
    its beams score as ours do with ``penalty="fairseq"`` and alpha = ``length_penalty``. The
    searches still differ in one rule: theirs lets a sentence end only among the ``num_beams`` best
    continuations of a step, ours among twice as many, so that ours may find an ending of a better
    score. Their defaults stop sooner (``early_stopping=False``) and go on for longer
    (``max_length=512``; ours is the source's length plus 50).

    The folder's own generation settings (beam size, length limit, ``bad_words_ids`` and the like)
    are not read: padding is the only one of Marian's tokens that ours never produces. Weights
    become float32. Matrices that Marian shares are separate here, so that there are more
    parameters. Dropout is that of the folder, layer drop is not.

    Args:
        name_or_path: a folder, or a Hub id such as "Helsinki-NLP/opus-mt-en-de", which is
            downloaded once. It must hold ``config.json``, ``source.spm``, ``target.spm``,
            ``vocab.json`` (and ``target_vocab.json`` if the target has its own) and the weights:
            ``model.safetensors`` or else ``pytorch_model.bin``, which is opened with
            ``torch.load(weights_only=True)`` and runs no code.
        device: where to put the model; None for the CPU.

    Returns:
        A translator whose model is in evaluation mode. ``save_pretrained`` of the model saves it as
        any other of ours, without the tokenizer.

    Raises:
        FileNotFoundError: if there is no such folder or repository, a file is missing, or the
            network is needed and not there.
        ModuleNotFoundError: if `sentencepiece` is not installed.
        ValueError: if a file is damaged, the files do not fit each other, or the model has an
            option that ours lacks, such as different heads in encoder and decoder.
    """
    import_sentencepiece()  # before anything is downloaded
    folder = locate_marian(name_or_path)
    try:
        settings = DEFAULTS | read_json(folder / CONFIG)
        config = _configuration(settings)
        weights = read_weights(folder)
        _require_fitting(config, [tensor.numel() for tensor in weights.values()])
        model = convert(weights, settings, config)
        source, target = _tokenizers(folder, settings, config)
    except ValueError as error:
        raise ValueError(f"the Marian model in {str(folder)!r} does not load: {error}") from None
    return Translator(model, source, device, target)


def _configuration(settings: dict[str, Any]) -> TransformerConfig:
    """Our names for Marian's settings; an error for what we cannot do."""
    kind = settings.get("model_type", "marian")
    if kind != "marian":
        raise ValueError(f"model_type must be 'marian', got {kind!r}")
    for name, default in DEFAULTS.items():
        kinds: tuple[type, ...] = (type(default),)
        if kinds[0] in (float, type(None)):
            kinds = (float, int) if default is not None else (int, type(None))
        if type(settings[name]) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{name} must be of type {names}, got {settings[name]!r}")
    for name, only in ONLY.items():
        if settings.get(name, only) != only:
            raise ValueError(f"{name} must be {only}, got {settings[name]!r}")
    for name in ("attention_heads", "ffn_dim"):
        both = settings[f"encoder_{name}"], settings[f"decoder_{name}"]
        if both[0] != both[1]:
            raise ValueError(f"encoder_{name} and decoder_{name} must be equal, got {both}")
    activation = settings["activation_function"]
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation_function must be one of {[*ACTIVATIONS]}, got {activation!r}")
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        fewest = min(vocabulary_sizes(settings))
        if not 0 <= settings[name] < fewest:
            raise ValueError(f"{name} must be in [0, {fewest}), got {settings[name]}")
    start = max(vocabulary_sizes(settings))
    return TransformerConfig(
        vocab_size=start + 1,
        d_model=settings["d_model"],
        d_ff=settings["encoder_ffn_dim"],
        num_heads=settings["encoder_attention_heads"],
        num_layers=settings["encoder_layers"],
        num_decoder_layers=settings["decoder_layers"],
        dropout=settings["dropout"],
        attention_dropout=settings["attention_dropout"],
        activation_dropout=settings["activation_dropout"],
        activation=ACTIVATIONS[activation],
        max_length=settings["max_position_embeddings"],
        sharing="none",
        layer_norm_eps=1e-5,
        pad_id=settings["pad_token_id"],
        bos_id=start,
        eos_id=settings["eos_token_id"],
    )


def _require_fitting(config: TransformerConfig, sizes: list[int]) -> None:
    """Raise ValueError before memory is asked for that the weights could not fill."""
    stored = sum(sizes)
    needed = {
        "vocab_size": (config.vocab_size - 1) * config.d_model,
        "encoder_ffn_dim": config.d_ff * config.d_model,
        "d_model": config.d_model**2,
    }
    for name, size in needed.items():
        if size > stored:
            raise ValueError(f"{name} needs {size:,} numbers, the weights have {stored:,}")
    layers = config.num_layers + (config.num_decoder_layers or config.num_layers)
    if layers > len(sizes):
        raise ValueError(f"{layers} layers need more than the {len(sizes)} tensors that are there")
    if config.max_length * config.d_model > _MOST_POSITIONS:
        raise ValueError(f"max_position_embeddings must be smaller, got {config.max_length}")


def _tokenizers(
    folder: Path, settings: dict[str, Any], config: TransformerConfig
) -> tuple[MarianTokenizer, MarianTokenizer]:
    """Those of source and target; the target may have a vocabulary of its own."""
    separate = not settings["share_encoder_decoder_embeddings"]
    own = separate and (folder / TARGET_VOCABULARY).is_file()
    source_size, target_size = vocabulary_sizes(settings)
    return (
        _tokenizer(folder, SOURCE_PIECES, VOCABULARY, source_size, config),
        _tokenizer(
            folder, TARGET_PIECES, TARGET_VOCABULARY if own else VOCABULARY, target_size, config
        ),
    )


def _tokenizer(
    folder: Path, pieces: str, vocabulary: str, size: int, config: TransformerConfig
) -> MarianTokenizer:
    ids = read_json(folder / vocabulary)
    special = dict(pad_id=config.pad_id, bos_id=config.bos_id, eos_id=config.eos_id)
    try:
        tokenizer = MarianTokenizer(
            (folder / pieces).read_bytes(), ids, config.vocab_size, **special
        )
    except ValueError as error:
        raise ValueError(f"{pieces} and {vocabulary}: {error}") from None
    if max(ids.values()) >= size:
        raise ValueError(f"{vocabulary} has ids up to {max(ids.values())}, the weights {size} rows")
    for piece, i in ((EOS, config.eos_id), (PAD, config.pad_id)):
        if ids.get(piece) != i:
            raise ValueError(f"{piece} must have the id {i} in {vocabulary}, got {ids.get(piece)}")
    return tokenizer
