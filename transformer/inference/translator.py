"""Translate text with a model and its tokenizer.

Paper: section 6.1
"""

import contextlib
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm.auto import tqdm

from transformer.data.progress import in_live_notebook
from transformer.data.tokenizer import Tokenizer, TokenizerLike
from transformer.fast import enable
from transformer.inference.decoding import LengthPenalty, beam_search
from transformer.inference.pretrained import locate_pretrained
from transformer.inference.stepwise import evaluation_mode
from transformer.model.base import TranslationModel
from transformer.model.files import require_unchanged
from transformer.model.transformer import Transformer


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of one sentence pair, with the labels of both axes.

    A row is a query and sums to 1; a column is a key. Row i of ``decoder`` and ``cross`` is the
    position that reads ``target_tokens[i]`` and predicts ``predicted_tokens[i]``.

    Args:
        source_tokens: labels of the encoder's positions, "<eos>" at the end.
        target_tokens: labels of the decoder's input, "<bos>" at the start.
        predicted_tokens: labels of the next token at each position, "<eos>" at the end unless the
            translation was truncated.
        encoder: encoder self-attention, ``source_tokens`` by ``source_tokens``.
        decoder: masked decoder self-attention, ``target_tokens`` by ``target_tokens``.
        cross: encoder-decoder attention, ``target_tokens`` by ``source_tokens``.

    Paper: section 3.2.3, Figures 3 to 5
    """

    source_tokens: list[str]
    target_tokens: list[str]
    predicted_tokens: list[str]
    encoder: Float[np.ndarray, "layers H S S"]
    decoder: Float[np.ndarray, "decoder_layers H T T"]
    cross: Float[np.ndarray, "decoder_layers H T S"]


class Translator:
    """A model and its tokenizer, ready to translate text.

    Args:
        model: a trained model (``attention`` needs a Transformer). It is not copied; its dropout is
            off during a translation.
        tokenizer: the tokenizer of the model's training.
        device: where to move the model; None to leave it where it is.
        target_tokenizer: that of the target language; None if both languages share ``tokenizer``.
        fast: on a CPU, run the model with the classes of :mod:`transformer.fast`.

    Raises:
        ValueError: if a tokenizer does not fit the model.

    Paper: section 6.1
    """

    def __init__(
        self,
        model: TranslationModel,
        tokenizer: TokenizerLike,
        device: torch.device | str | None = None,
        target_tokenizer: TokenizerLike | None = None,
        fast: bool = True,
    ):
        self.tokenizer = tokenizer
        self.target_tokenizer = tokenizer if target_tokenizer is None else target_tokenizer
        config = model.config
        for side in (self.tokenizer, self.target_tokenizer):
            if side.vocab_size > config.vocab_size:
                raise ValueError(
                    f"tokenizer has {side.vocab_size} tokens, "
                    f"more than the model's vocab_size {config.vocab_size}"
                )
            for name in ("pad_id", "bos_id", "eos_id"):
                if getattr(side, name) != getattr(config, name):
                    raise ValueError(
                        f"tokenizer has {name} {getattr(side, name)}, "
                        f"the model {getattr(config, name)}"
                    )
        self.model = model if device is None else model.to(device)
        if fast and next(model.parameters()).device.type == "cpu":
            enable(model)

    @classmethod
    def from_pretrained(
        cls, name_or_path: str | Path, device: torch.device | str | None = None
    ) -> "Translator":
        """Load a trained model with its tokenizer.

        Args:
            name_or_path: a shipped name ("tatoeba-en-de"), a folder, or a Hub id ("owner/name").
            device: where to put the model; None for the CPU.

        Raises:
            FileNotFoundError: if there is no such model, or the Hub cannot be reached.
            ValueError: if a file is damaged, or the weights do not fit the configuration.
        """
        folder = locate_pretrained(name_or_path)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # silence the Hub's mixin
                model = Transformer.from_pretrained(str(folder))
        except (SafetensorError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"the model in {str(folder)!r} does not load: {reason}") from None
        require_unchanged(folder, "tokenizer.json")
        return cls(model, Tokenizer.load(folder / "tokenizer.json"), device)

    # A string is an Iterable of strings too; mypy and this method try the first overload first.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        beam_size: int = 4,
        alpha: float = 0.6,
        batch_size: int = 64,
        max_length: int | None = None,
        progress: bool = False,
        penalty: LengthPenalty = "gnmt",
    ) -> str: ...

    @overload
    def translate(
        self,
        texts: Iterable[str],
        beam_size: int = 4,
        alpha: float = 0.6,
        batch_size: int = 64,
        max_length: int | None = None,
        progress: bool = False,
        penalty: LengthPenalty = "gnmt",
    ) -> list[str]: ...

    def translate(
        self,
        texts: str | Iterable[str],
        beam_size: int = 4,
        alpha: float = 0.6,
        batch_size: int = 64,
        max_length: int | None = None,
        progress: bool = False,
        penalty: LengthPenalty = "gnmt",
    ) -> str | list[str]:
        """Translate sentences; ``translator(texts)`` does the same.

        Each text counts as one sentence; line breaks and runs of blanks become one blank. A blank
        text gives an empty text. The translations do not depend on the batches.

        Args:
            texts: sentences, or one sentence.
            beam_size: see :func:`~transformer.inference.decoding.beam_search`; 1 is greedy.
            alpha: exponent of the length penalty.
            batch_size: sentences to translate at once.
            max_length: most tokens of a translation, including EOS; None for the sentence's length
                plus 50.
            progress: whether to show a progress bar.
            penalty: formula of the length penalty, see
                :func:`~transformer.inference.decoding.length_penalty`.

        Returns:
            The translations in the order of ``texts``; a string if ``texts`` is a string.

        Raises:
            TypeError: if ``texts`` holds something other than strings.
            ValueError: if a sentence has more tokens than the model takes, or an option is out of
                range.

        Paper: section 6.1
        """
        if isinstance(texts, str):
            options = (beam_size, alpha, batch_size, max_length, progress, penalty)
            return self.translate([texts], *options)[0]
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        sources = [self._encode(text, f"texts[{i}]") for i, text in enumerate(texts)]
        # The longest first, so that a lack of memory shows at once.
        order = sorted(
            (i for i, ids in enumerate(sources) if len(ids) > 1),
            key=lambda i: len(sources[i]),
            reverse=True,
        )
        translations = [""] * len(sources)
        hide = not (progress or in_live_notebook())
        delay = 0 if progress else 1
        with tqdm(
            total=len(order), unit=" sentences", disable=hide, delay=delay, leave=progress
        ) as bar:
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                source = self._pad([sources[i] for i in batch])
                found = beam_search(
                    self.model, source, beam_size, alpha, max_length, penalty=penalty
                )
                outputs = self.target_tokenizer.decode_batch([best.tokens for best in found])
                for i, output in zip(batch, outputs, strict=True):
                    translations[i] = output.strip()
                bar.update(len(batch))
        return translations

    __call__ = translate

    def require_translatable(self, text: str, name: str = "text") -> None:
        """Raise the error that :meth:`translate` would raise for a sentence.

        Args:
            text: a sentence.
            name: of the sentence in the error, such as "line 7".
        """
        self._encode(text, name)

    def attention(self, source_text: str, target_text: str | None = None) -> AttentionWeights:
        """Return the attention weights of all layers and heads for one sentence pair.

        Args:
            source_text: the sentence.
            target_text: its translation, the decoder's input; None for the model's own.

        Raises:
            ValueError: if the source is empty or a text has more tokens than the model takes.

        Paper: section 3.2.3, Figures 3 to 5
        """
        source = self._encode(source_text, "source_text")
        if len(source) == 1:
            raise ValueError("source_text must not be empty")
        inputs = self._pad([source])
        if target_text is None:
            best = beam_search(self.model, inputs)[0]
            target = best.tokens + [self.tokenizer.eos_id] * best.finished
        else:
            target = self._encode(target_text, "target_text", self.target_tokenizer)
        shifted = [self.tokenizer.bos_id, *target[:-1]]
        if not isinstance(self.model, Transformer):
            raise TypeError(f"model must be a Transformer, got {type(self.model).__name__}")
        with evaluation_mode(self.model):
            maps = self.model.attention_weights(inputs, self._pad([shifted]))
        return AttentionWeights(
            source_tokens=self.tokenizer.tokens(source),
            target_tokens=self.target_tokenizer.tokens(shifted),
            predicted_tokens=self.target_tokenizer.tokens(target),
            encoder=_stack(maps.encoder),
            decoder=_stack(maps.decoder),
            cross=_stack(maps.cross),
        )

    def _encode(self, text: object, name: str, tokenizer: TokenizerLike | None = None) -> list[int]:
        longest = getattr(self.model.config, "max_length", None)
        ids = encode_sentence(text, name, tokenizer or self.tokenizer, longest)
        return [*ids, self.tokenizer.eos_id]

    def _pad(self, rows: list[list[int]]) -> Int[Tensor, "B S"]:
        device = next(self.model.parameters()).device
        tensors = [torch.tensor(row, device=device) for row in rows]
        return pad_sequence(tensors, batch_first=True, padding_value=self.tokenizer.pad_id)


def encode_sentence(
    text: object, name: str, tokenizer: TokenizerLike, longest: int | None = None
) -> list[int]:
    """Return the ids of a sentence without EOS, runs of blanks as one.

    Args:
        text: the sentence.
        name: of the sentence in errors, such as "texts[3]".
        tokenizer: of its language.
        longest: most tokens that the model takes, including EOS; None for no limit.

    Raises:
        TypeError: if ``text`` is not a string.
        ValueError: if it has too many tokens or the tokenizer refuses it.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, got {type(text).__name__}")
    try:
        ids = tokenizer.encode(" ".join(text.split()))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if longest is not None and len(ids) >= longest:
        raise ValueError(
            f"{name} has {len(ids) + 1} tokens, more than the {longest} that the model takes: "
            f"{text.strip()[:30]!r}..."
        )
    return ids


def _stack(maps: list[Tensor]) -> np.ndarray:
    """Stack the weights of a batch of one to an array (layers, H, queries, keys)."""
    return torch.cat(maps).float().cpu().numpy()
