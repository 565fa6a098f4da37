"""Compare model, batches, tokenizer and recipe before the first step of a run."""

import math
import os
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from torch import nn

from transformer import fast
from transformer.data.batching import EncodedPairs, TokenBatches
from transformer.data.model_tokenizers import (
    SPECIAL_IDS,
    TokenizerLike,
    joint_checksum,
    require_equal,
    require_own,
    require_savable,
)
from transformer.fast.device import missing_for_compiling
from transformer.model.base import TranslationModel
from transformer.model.transformer import Transformer
from transformer.training.config import TrainingConfig
from transformer.training.state import layers_of

_NAMES_OF_THE_CURVE = ("step", "minutes", "loss", "learning_rate", "tokens_per_second")


def require_model(model: Any, config: Any) -> None:
    """Refuse a model that cannot be trained, at all or as the recipe says."""
    if not isinstance(model, TranslationModel):
        hint = "Transformer(TransformerConfig(...))"
        if isinstance(model, nn.Transformer):
            hint = "transformer.interop.from_torch to convert the layers of torch.nn"
        elif isinstance(model, type):
            hint = f"an instance, {model.__name__}(config)"
        raise TypeError(f"model must be a TranslationModel, got {_kind(model)}; use {hint}")
    if not isinstance(config, TrainingConfig):
        raise TypeError(f"config must be a TrainingConfig, got {_kind(config)}")
    devices = {str(parameter.device) for parameter in model.parameters()}
    if "meta" in devices or len(devices) > 1:
        found = ", ".join(sorted(devices))
        raise ValueError(f"model must have its weights on one device, but they are on {found}")
    if any(parameter.dtype == torch.float16 for parameter in model.parameters()):
        raise ValueError(
            "model must have float32 weights, got float16, in which Adam's epsilon is 0; convert "
            'it with model.float(), and choose precision="bf16" or "fp16" for half precision'
        )
    kind = fast.plain_class(model).__name__
    if config.checkpoint_activations and not isinstance(model, Transformer):
        raise ValueError(f"checkpoint_activations needs a Transformer, got a {kind}")
    if config.compile and not layers_of(model):
        raise ValueError(f"compile needs a model of layers, got a {kind}")


def can_compile(device: torch.device) -> bool:
    """Say whether this machine can compile a model; warn if it cannot."""
    missing = missing_for_compiling(device.type)
    if missing is not None:
        warnings.warn(
            f"compile=True needs {missing}; training runs uncompiled, which is slower",
            stacklevel=3,
        )
    return missing is None


def compiles_loss(device: torch.device) -> bool:
    """Say whether the loss is compiled even if the model is not.

    On CUDA this takes seconds, and spares about three quarters of the traffic of the logits.
    """
    return device.type == "cuda" and missing_for_compiling("cuda") is None


def require_all_processes(joined: int) -> None:
    """Raise ValueError if the launcher started more processes than train together."""
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != joined:
        raise ValueError(
            f"{started} processes were started, but Accelerate joins {joined}; on a machine "
            "without a GPU, set ACCELERATE_USE_CPU=true"
        )


def training_batches(
    given: TokenBatches | EncodedPairs, config: TrainingConfig, model: TranslationModel
) -> TokenBatches:
    """Batch pairs by a recipe, or compare batches with it.

    If positions are learned, pairs longer than these are left out, too.
    """
    _require_pairs("batches", given)
    limits = [limit for limit in (config.max_length, model.longest) if limit is not None]
    longest = min(limits, default=None)
    if isinstance(given, EncodedPairs):
        return TokenBatches(given, config.batch_tokens, config.seed, longest)
    for name in ("batch_tokens", "seed", "max_length"):
        theirs, mine = getattr(given, name), getattr(config, name)
        if theirs != mine and not (name == "max_length" and theirs == longest):
            raise ValueError(
                f"batches were made with {name}={theirs}, config says {name}={mine}; pass the "
                "pairs themselves (batches.pairs) to have them batched by config"
            )
    return given


def validation_batches(
    given: TokenBatches | EncodedPairs | None, config: TrainingConfig
) -> TokenBatches | None:
    """Batch all pairs, even those longer than the budget; leave batches as they are."""
    if given is None:
        return None
    _require_pairs("validation", given)
    if isinstance(given, TokenBatches):
        return given
    if not len(given):
        raise ValueError("validation must hold at least one pair, got none")
    return TokenBatches(given, max(config.batch_tokens, int(_longest(given).max())))


def warn_of_dropped(name: str, batches: TokenBatches | None) -> None:
    """Warn of pairs that are too long for their batches."""
    if batches is None or not batches.num_dropped:
        return
    limits = {"batch_tokens": batches.batch_tokens, "max_length": batches.max_length or math.inf}
    limit = min(limits, key=limits.__getitem__)
    warnings.warn(
        f"{name}: left out {batches.num_dropped:,} of {len(batches.pairs):,} pairs with more than "
        f"{limits[limit]:,} tokens ({limit})",
        stacklevel=3,
    )


def require_fitting(name: str, batches: TokenBatches | None, model: TranslationModel) -> None:
    """Refuse pairs that were encoded for another model."""
    if batches is None:
        return
    pairs, config = batches.pairs, model.config
    require_own(model, pairs.tokenizer, f"{name}: their tokenizer")
    for special in ("pad_id", "bos_id"):
        theirs, mine = getattr(pairs, special), getattr(config, special)
        if theirs != mine:
            raise ValueError(f"{name}: {special} is {theirs} in the pairs, {mine} in the model")
    for side in ("source", "target"):
        sentences = getattr(pairs, side)
        low, high = int(sentences.ids.min()), int(sentences.ids.max())
        if low < 0 or high >= config.vocab_size:
            raise ValueError(
                f"{name}: a {side} has the id {low if low < 0 else high}, but the model has "
                f"0 to {config.vocab_size - 1} (vocab_size {config.vocab_size})"
            )
        empty = sentences.lengths() == 0
        ends = sentences.ids[sentences.offsets[1:] - 1] != config.eos_id
        if (empty | ends).any():
            row = int(np.flatnonzero(empty | ends)[0])
            last = sentences[row][-1:] or "empty"
            raise ValueError(
                f"{name}: every {side} must end with eos_id {config.eos_id}, but the end "
                f"of number {row} is {last}"
            )
    known = model.longest
    if known is not None:
        limit = min(batches.batch_tokens, batches.max_length or batches.batch_tokens)
        lengths = _longest(pairs)
        longest = int(lengths[lengths <= limit].max())
        if longest > known:
            raise ValueError(
                f"{name}: one sentence has {longest} tokens, the model has {known} learned "
                f"positions; pass TokenBatches(pairs, batch_tokens, max_length={known})"
            )


def require_tokenizer(tokenizer: Any, model: TranslationModel) -> None:
    """Refuse a tokenizer of another model or library, or one that the run could not save."""
    if tokenizer is None:
        return
    pair = tokenizer if isinstance(tokenizer, tuple) else (tokenizer, tokenizer)
    if len(pair) != 2:
        raise ValueError(f"tokenizer must be one, or those of source and target, got {len(pair)}")
    for each in pair:
        if not isinstance(each, TokenizerLike):
            raise TypeError(
                f"tokenizer must be a Tokenizer or SentencePieceTokenizer, got {_kind(each)}"
            )
        require_equal(("vocab_size", *SPECIAL_IDS), each, model.config, "the model")
    require_own(model, joint_checksum(*pair))
    require_savable(*pair)


def require_device(model: nn.Module, device: torch.device) -> None:
    """Raise ValueError if a model has left the device that it trains on."""
    for parameter in model.parameters():
        if parameter.device.type != device.type:
            raise ValueError(
                f"model is on {parameter.device}, but training runs on {device}; move it back "
                f"with model.to({str(device)!r})"
            )


def require_score(score: Any) -> None:
    """Raise TypeError unless ``score`` is None or can be called."""
    if score is not None and not callable(score):
        raise TypeError(f"score must be a function of the model, got {_kind(score)}")


def numbers_of(scores: Any, measured: Collection[str] = ()) -> dict[str, float]:
    """Return the result of ``score`` as numbers by name, none of them the curve's own."""
    try:
        numbers = {str(name): float(value) for name, value in scores.items()}
    except (AttributeError, TypeError, ValueError):
        raise TypeError(
            f"score must return numbers by name, such as {{'bleu': 27.3}}, got {scores!r:.80}"
        ) from None
    for name in numbers:
        if name in (*_NAMES_OF_THE_CURVE, *measured):
            raise ValueError(f"score must not return {name!r}, a name that the curve uses itself")
    return numbers


def _require_pairs(name: str, given: Any) -> None:
    if not isinstance(given, (TokenBatches, EncodedPairs)):
        raise TypeError(
            f"{name} must be TokenBatches or EncodedPairs, got {_kind(given)}; "
            "transformer.data.batching.encode_pairs(tokenizer, split) makes pairs from text"
        )
    pairs = given.pairs if isinstance(given, TokenBatches) else given
    if len(pairs.source) != len(pairs.target):
        counts = f"{len(pairs.source)} sources, but {len(pairs.target)} targets"
        raise ValueError(f"{name} must hold pairs, got {counts}")


def _longest(pairs: EncodedPairs) -> Int64[np.ndarray, " pairs"]:
    return np.maximum(pairs.source.lengths(), pairs.target.lengths())


def _kind(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
