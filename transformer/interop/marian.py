"""Load Marian models (OPUS-MT) in the form of Hugging Face's ``MarianMTModel``.

Here are the files and the settings; :mod:`transformer.interop.marian_weights` converts the weights,
and :mod:`transformer.data.sentencepiece` has the tokenizer.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from transformer.data.sentencepiece import (
    EOS,
    PAD,
    SOURCE_PIECES,
    TARGET_PIECES,
    TARGET_VOCABULARY,
    VOCABULARY,
    SentencePieceTokenizer,
    import_sentencepiece,
)
from transformer.inference.translator import Translator
from transformer.interop.marian_weights import convert, vocabulary_sizes
from transformer.model.config import Activation, TransformerConfig
from transformer.saving.locate import download

CONFIG, WEIGHTS, PICKLE = "config.json", "model.safetensors", "pytorch_model.bin"
NEEDED = (CONFIG, SOURCE_PIECES, TARGET_PIECES, VOCABULARY)

# The defaults of Hugging Face's MarianConfig, for what a configuration file leaves out.
DEFAULTS: dict[str, Any] = dict(
    vocab_size=58101, decoder_vocab_size=None, max_position_embeddings=1024, d_model=1024,
    encoder_layers=12, decoder_layers=12, encoder_attention_heads=16, decoder_attention_heads=16,
    encoder_ffn_dim=4096, decoder_ffn_dim=4096, activation_function="gelu",
    dropout=0.1, attention_dropout=0.0, activation_dropout=0.0,
    scale_embedding=False, share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
    decoder_start_token_id=58100, pad_token_id=58100, eos_token_id=0,
)  # fmt: skip
# Options of other Marian models that Hugging Face's model does not compute either.
ONLY = dict(
    normalize_before=False,
    normalize_embedding=False,
    add_final_layer_norm=False,
    static_position_embeddings=True,
)
#: Fields of our configuration, and what Marian's calls them.
NAMES = dict(
    d_model="d_model", d_ff="encoder_ffn_dim", num_heads="encoder_attention_heads",
    num_layers="encoder_layers", num_decoder_layers="decoder_layers", dropout="dropout",
    attention_dropout="attention_dropout", activation_dropout="activation_dropout",
    max_length="max_position_embeddings", pad_id="pad_token_id", eos_id="eos_token_id",
)  # fmt: skip
ACTIVATIONS: dict[str, Activation] = dict(relu="relu", gelu="gelu", swish="silu", silu="silu")
# The table of positions is computed, so the weights do not limit its size.
_MOST_POSITIONS = 1 << 27


def from_marian(name_or_path: str | Path, device: torch.device | str | None = None) -> Translator:
    """Load a Marian model of Hugging Face with its tokenizer, ready to translate.

    ::

        translator = from_marian("Helsinki-NLP/opus-mt-en-de")
        translator.translate(texts, beam_size=6, alpha=1.0, penalty="fairseq")

    *What is equal.* The logits of ``translator.model`` for the tokens of Marian's vocabulary, to
    rounding, for any padding, attention weights, and token ids; a decoder input starts with
    ``config.bos_id`` instead of their ``decoder_start_token_id``. Greedy translations are equal if
    theirs may not choose padding, as the settings of OPUS-MT say (``bad_words_ids`` and
    ``renormalize_logits=True``).

    *What differs.* With these, ``early_stopping="never"``, ``forced_eos_token_id=None`` and equal
    maximum lengths, their beams score as ours with ``penalty="fairseq"`` and alpha =
    ``length_penalty``, but a sentence ends only among the ``num_beams`` best continuations of a
    step, ours among twice as many. Their defaults stop sooner and allow more tokens. The folder's
    generation settings and layer drop are ignored. Weights become float32. Matrices that Marian
    shares are separate here.

    Args:
        name_or_path: a folder, or a Hub id such as "Helsinki-NLP/opus-mt-en-de", which is
            downloaded once. It must hold ``config.json``, ``source.spm``, ``target.spm``,
            ``vocab.json`` (and ``target_vocab.json`` if the target has its own) and the weights:
            ``model.safetensors`` or else ``pytorch_model.bin``, which is opened with
            ``torch.load(weights_only=True)`` and runs no code.
        device: where to put the model; None for the CPU.

    Raises:
        FileNotFoundError: if there is no such folder or repository, a file is missing, or the Hub
            cannot be reached.
        ModuleNotFoundError: if `sentencepiece` is not installed.
        ValueError: if a file is damaged, the files do not fit each other, or the model has an
            option that ours lacks, such as different heads in encoder and decoder.
    """
    import_sentencepiece()  # before anything is downloaded
    folder = locate_marian(name_or_path)
    try:
        settings = DEFAULTS | _read_json(folder / CONFIG)
        config = _configuration(settings)
        weights = read_weights(folder)
        _require_fitting(config, [tensor.numel() for tensor in weights.values()])
        model = convert(weights, settings, config)
        source, target = _tokenizers(folder, settings, config)
    except ValueError as error:
        raise ValueError(f"the Marian model in {str(folder)!r} does not load: {error}") from None
    return Translator(model, source, device, target)


def locate_marian(name_or_path: str | Path) -> Path:
    """Find the folder of a Marian model, or download it: a pickle if there are no safetensors.

    Raises:
        FileNotFoundError: if there is no such folder or repository, if it lacks a file, or if the
            Hub cannot be reached and the cache is empty.
    """
    name, folder = str(name_or_path), Path(name_or_path)
    if not folder.is_dir():
        if isinstance(name_or_path, Path):
            raise FileNotFoundError(f"no folder {name!r}")
        folder = _download(name)
    missing = [file for file in NEEDED if not (folder / file).is_file()]
    if not any((folder / file).is_file() for file in (WEIGHTS, PICKLE)):
        missing.append(f"{WEIGHTS} (or {PICKLE})")
    if missing:
        raise FileNotFoundError(f"{name!r} is no Marian model: {', '.join(missing)} missing")
    return folder


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a folder, on the CPU in float32; safetensors if there are any.

    Raises:
        ValueError: if the file is damaged or holds something else, or if a pickle would have to be
            opened with PyTorch before 2.6, where ``weights_only`` was not safe (CVE-2025-32434).
    """
    if (folder / WEIGHTS).is_file():
        tensors = _read(folder / WEIGHTS, load_file)
    elif torch.__version__ < "2.6":
        raise ValueError(
            f"{PICKLE} is only read with PyTorch 2.6 or newer, got {torch.__version__}; "
            f"or save the model as safetensors"
        )
    else:
        tensors = _read(folder / PICKLE, _load_pickle)
    return {name: tensor.float() for name, tensor in tensors.items()}


def _configuration(settings: dict[str, Any]) -> TransformerConfig:
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
    fewest, start = min(vocabulary_sizes(settings)), max(vocabulary_sizes(settings))
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        if not 0 <= settings[name] < fewest:
            raise ValueError(f"{name} must be in [0, {fewest}), got {settings[name]}")
    return TransformerConfig(
        vocab_size=start + 1,
        activation=ACTIVATIONS[activation],
        sharing="none",
        layer_norm_eps=1e-5,
        bos_id=start,
        **{ours: settings[theirs] for ours, theirs in NAMES.items()},
    )


def _require_fitting(config: TransformerConfig, sizes: list[int]) -> None:
    """Raise ValueError before memory is allocated that the weights could not fill."""
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
        raise ValueError(f"{layers} layers need more than the {len(sizes)} tensors in the file")
    if config.max_length * config.d_model > _MOST_POSITIONS:
        raise ValueError(f"max_position_embeddings must be smaller, got {config.max_length}")


def _tokenizers(
    folder: Path, settings: dict[str, Any], config: TransformerConfig
) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    separate = not settings["share_encoder_decoder_embeddings"]
    own = separate and (folder / TARGET_VOCABULARY).is_file()
    source_size, target_size = vocabulary_sizes(settings)
    target_file = TARGET_VOCABULARY if own else VOCABULARY
    return (
        _tokenizer(folder, SOURCE_PIECES, VOCABULARY, source_size, config),
        _tokenizer(folder, TARGET_PIECES, target_file, target_size, config),
    )


def _tokenizer(
    folder: Path, pieces: str, vocabulary: str, size: int, config: TransformerConfig
) -> SentencePieceTokenizer:
    ids = _read_json(folder / vocabulary)
    special = dict(pad_id=config.pad_id, bos_id=config.bos_id, eos_id=config.eos_id)
    try:
        tokenizer = SentencePieceTokenizer(
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


def _read_json(path: Path) -> dict[str, Any]:
    value = _read(path, lambda path: json.loads(path.read_text(encoding="utf-8")))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} must hold one object, it does not")
    return value


def _load_pickle(path: Path) -> dict[str, Tensor]:
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise ValueError("it must hold a dictionary of tensors")
    return tensors


def _read(path: Path, reader: Callable[[Path], Any]) -> Any:
    try:
        return reader(path)
    except Exception as error:  # damaged files make the libraries raise almost anything
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path.name} does not read: {reason}") from None


def _download(name: str) -> Path:
    unknown = f"no Marian model {name!r}: neither a folder nor"
    folder = download(name, [*NEEDED, TARGET_VOCABULARY, WEIGHTS], unknown)
    return folder if (folder / WEIGHTS).is_file() else download(name, [PICKLE], unknown)
