"""Text in, translation out.

Paper: section 6.1
"""

import contextlib
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from transformer.data.tokenizer import Tokenizer, TokenizerLike
from transformer.inference.decoding import LengthPenalty, beam_search
from transformer.inference.pretrained import locate_pretrained
from transformer.inference.stepwise import StepwiseModel, evaluation_mode
from transformer.model.manifest import require_unchanged
from transformer.model.transformer import Transformer
from transformer.training import progress as live


@dataclass(frozen=True)
class AttentionWeights:
    """Who attends to whom in one sentence pair, with the labels of both axes.

    A row is a query and sums to 1; a column is a key. Row i of ``decoder`` and ``cross`` is the
    position that reads ``target_tokens[i]`` and predicts ``predicted_tokens[i]``.

    Args:
        source_tokens: labels of the encoder's positions, "<eos>" at the end.
        target_tokens: labels of what the decoder reads, "<bos>" at the start.
        predicted_tokens: labels of what comes next at each position, "<eos>" at the end unless
            the translation was cut off.
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
            off during a translation and as it was afterwards.
        tokenizer: what the model was trained with.
        device: where to move the model; None to leave it where it is.
        target_tokenizer: the target's, where it has one of its own; None if ``tokenizer`` is that
            of both languages.

    Raises:
        ValueError: if a tokenizer does not fit the model.

    Paper: section 6.1
    """

    def __init__(
        self,
        model: StepwiseModel,
        tokenizer: TokenizerLike,
        device: torch.device | str | None = None,
        target_tokenizer: TokenizerLike | None = None,
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

    @classmethod
    def from_pretrained(
        cls, name_or_path: str | Path, device: torch.device | str | None = None
    ) -> "Translator":
        """Load a trained model with its tokenizer.

        Args:
            name_or_path: a name that ships with the package ("tatoeba-en-de"), a folder, or a
                Hub id ("owner/name").
            device: where to put the model; None for the CPU.

        Raises:
            FileNotFoundError: if there is no such model, or the network is needed and missing.
            ValueError: if a file is damaged, or the weights do not fit the configuration.
        """
        folder = locate_pretrained(name_or_path)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # the Hub's mixin prints a line
                model = Transformer.from_pretrained(str(folder))
        except (SafetensorError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"the model in {str(folder)!r} does not load: {reason}") from None
        require_unchanged(folder, "tokenizer.json")
        return cls(model, Tokenizer.load(folder / "tokenizer.json"), device)

    @overload
    def __call__(self, texts: str, **options: Any) -> str: ...

    @overload
    def __call__(self, texts: Iterable[str], **options: Any) -> list[str]: ...

    def __call__(self, texts: str | Iterable[str], **options: Any) -> str | list[str]:
        """The same as :meth:`translate`.

        Paper: section 6.1
        """
        return self.translate(texts, **options)

    # A text is an Iterable of texts too; the first that fits counts, for mypy as for us.
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
        """Translate sentences.

        Each text is taken for one sentence; line breaks and runs of blanks become one blank. A
        text without any character but blanks gives an empty text. Sentences of similar length
        share a batch, which costs nothing but time to know: the result does not depend on it.

        Args:
            texts: sentences, or one sentence.
            beam_size: see :func:`~transformer.inference.decoding.beam_search`; 1 is greedy.
            alpha: exponent of the length penalty.
            batch_size: sentences to translate at once.
            max_length: most tokens of a translation, EOS counted; None for those of the sentence
                plus 50.
            progress: whether to show a progress bar.
            penalty: formula of the length penalty, see
                :func:`~transformer.inference.decoding.length_penalty`.

        Returns:
            As many translations, in the same order; one text for one text.

        Raises:
            TypeError: if something in ``texts`` is not text.
            ValueError: if a sentence has more tokens than the model takes, or an option is out
                of its range.

        Paper: section 6.1
        """
        if isinstance(texts, str):
            options = (beam_size, alpha, batch_size, max_length, progress, penalty)
            return self.translate([texts], *options)[0]
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        sources = [self._encode(text, f"texts[{i}]") for i, text in enumerate(texts)]
        # The longest first: if the memory does not suffice, it shows at once.
        order = sorted(
            (i for i, ids in enumerate(sources) if len(ids) > 1),
            key=lambda i: len(sources[i]),
            reverse=True,
        )
        translations = [""] * len(sources)
        with tqdm(total=len(order), unit=" sentences", disable=not progress) as bar:
            for start in live.progress(range(0, len(order), batch_size)):
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

    def require_translatable(self, text: str, name: str = "text") -> None:
        """Raise what :meth:`translate` would raise for a text, before any time is spent on it.

        Args:
            text: a sentence.
            name: what the error calls it, such as "line 7".

        Raises:
            TypeError: if it is not text.
            ValueError: if it has more tokens than the model takes.
        """
        self._encode(text, name)

    def attention(self, source_text: str, target_text: str | None = None) -> AttentionWeights:
        """Return the attention weights of all layers and heads for one sentence pair.

        Args:
            source_text: the sentence.
            target_text: its translation, fed to the decoder; None for the model's own.

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
            maps = self.model.attention_maps(inputs, self._pad([shifted]))
        return AttentionWeights(
            source_tokens=self.tokenizer.tokens(source),
            target_tokens=self.target_tokenizer.tokens(shifted),
            predicted_tokens=self.target_tokenizer.tokens(target),
            encoder=_stack(maps.encoder),
            decoder=_stack(maps.decoder),
            cross=_stack(maps.cross),
        )

    def _encode(self, text: object, name: str, tokenizer: TokenizerLike | None = None) -> list[int]:
        """Ids with EOS after them. ``name`` is what an error calls the text."""
        tokenizer = self.tokenizer if tokenizer is None else tokenizer
        if not isinstance(text, str):
            raise TypeError(f"{name} must be text, got {type(text).__name__}")
        try:
            ids = tokenizer.encode(" ".join(text.split()))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        longest = getattr(self.model.config, "max_length", None)
        if longest is not None and len(ids) >= longest:
            raise ValueError(
                f"{name} has {len(ids) + 1} tokens, more than the {longest} that the model takes: "
                f"{text.strip()[:30]!r}..."
            )
        return [*ids, self.tokenizer.eos_id]

    def _pad(self, rows: list[list[int]]) -> Int[Tensor, "B S"]:
        device = next(self.model.parameters()).device
        tensors = [torch.tensor(row, device=device) for row in rows]
        return pad_sequence(tensors, batch_first=True, padding_value=self.tokenizer.pad_id)


def _stack(maps: list[Tensor]) -> np.ndarray:
    """One array (layers, H, queries, keys) of the maps of a batch of one."""
    return torch.cat(maps).float().cpu().numpy()
