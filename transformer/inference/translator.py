"""Translate text with a model and its tokenizer."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy as np
import torch
from torch import Tensor

from transformer.data.model_tokenizers import (
    SPECIAL_IDS,
    TokenizerLike,
    joint_checksum,
    load_tokenizers,
    require_equal,
    require_own,
    save_tokenizers,
)
from transformer.fast import disable, enable, is_enabled
from transformer.fast.device import set_up
from transformer.inference.batches import pad, search_all
from transformer.inference.decoding import beam_search
from transformer.inference.device import choose_device, use_one_thread_after_fork
from transformer.inference.model_card import model_card, source_language, with_address
from transformer.inference.options import SearchKeywords, SearchOptions
from transformer.inference.results import AttentionWeights, Translation, joined
from transformer.inference.sentences import (
    encode_sentences,
    import_sentencex,
    in_capitals,
    require_text,
    split_into_sentences,
    to_sentence_case,
)
from transformer.model.base import TranslationModel, evaluation_mode
from transformer.model.transformer import Transformer
from transformer.saving.hub import load_model, upload, write_folder
from transformer.saving.locate import CARD, HubOptions, locate, require_known
from transformer.settings import COUNT


class TranslateKeywords(SearchKeywords, total=False):
    """The options of :meth:`Translator.translate` that do not change the type of its result."""

    batch_size: int
    progress: bool | None
    split_sentences: bool | str
    sentence_case: bool


class Translator:
    """A model and its tokenizer, ready to translate text.

    Args:
        model: a trained model (``attention`` needs a Transformer). It is not copied; its dropout is
            off during a translation. Several threads may translate at once; none may train it
            meanwhile.
        tokenizer: the tokenizer that the model was trained with.
        device: where to move the model; None to leave it where it is.
        target_tokenizer: that of the target language; None if both languages share ``tokenizer``.
        fast: on a CPU, run the model with the faster classes of :mod:`transformer.fast`. A model
            that has some of them stays as it is. False removes them.

    Raises:
        TypeError: if ``model`` is not a TranslationModel, or a tokenizer lacks the methods of
            Tokenizer.
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
        if not isinstance(model, TranslationModel):
            raise TypeError(f"model must be a TranslationModel, got {type(model).__name__}")
        config = model.config
        for side in (self.tokenizer, self.target_tokenizer):
            if not isinstance(side, TokenizerLike):
                raise TypeError(
                    "tokenizer must be a Tokenizer or a SentencePieceTokenizer, got "
                    f"{type(side).__name__}"
                )
            if side.vocab_size > config.vocab_size:
                raise ValueError(
                    f"tokenizer has {side.vocab_size} tokens, "
                    f"more than the model's vocab_size {config.vocab_size}"
                )
            require_equal(SPECIAL_IDS, side, config, "the model")
        require_own(model, joint_checksum(self.tokenizer, self.target_tokenizer))
        #: Text of the model card, the README.md of the folder that the model was loaded from.
        self.card: str | None = None
        self.model, self._fast = model, fast
        if device is not None:
            self.to(device)
        self._speed_up()

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        device: torch.device | str | None = None,
        fast: bool = True,
        **options: Unpack[HubOptions],
    ) -> "Translator":
        """Load a trained model with its tokenizer.

        Args:
            name_or_path: a shipped name ("tatoeba-en-de"), a folder of a model or of a training
                run, a weight file ("run/checkpoints/best.safetensors"), or a Hub id
                ("owner/name"); see :func:`~transformer.saving.locate.locate`.
            device: where to put the model; None for the CPU.
            fast: as for the class.
            options: for a download from the Hub, such as ``revision``; see
                :class:`~transformer.saving.locate.HubOptions`.

        Raises:
            FileNotFoundError: if there is no such model, or the Hub cannot be reached.
            ValueError: if a file is damaged, or the weights do not fit the configuration.
            TypeError: if an option is unknown.
        """
        require_known(options, "device", "fast")
        use_one_thread_after_fork()
        location = locate(name_or_path, **options)
        source, target = load_tokenizers(location.folder)
        try:
            translator = cls(load_model(location), source, device, target, fast)
        except ValueError as error:
            raise ValueError(f"the model in {location.name!r} does not load: {error}") from None
        card = location.weights.parent / CARD
        if card.is_file():
            translator.card = card.read_text(encoding="utf-8", errors="replace")
        return translator

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    def to(self, device: torch.device | str) -> "Translator":
        """Move the model to a device and return self; ValueError if there is no such device."""
        self.model.to(choose_device(str(device)))
        self._speed_up()
        return self

    def _speed_up(self) -> None:
        set_up(self.device)
        if not self._fast:
            disable(self.model)
        elif self.device.type == "cpu" and not is_enabled(self.model):
            enable(self.model)

    def save_pretrained(self, folder: str | Path, half: bool = False) -> Path:
        """Write everything that :meth:`from_pretrained` reads: model, tokenizer and card.

        Args:
            folder: created if it does not exist; files in it are replaced.
            half: store the weights as float16, half the size.

        Returns:
            The folder.

        Raises:
            ValueError: if the tokenizers are of a kind that cannot be saved together, or a weight
                is too large for float16.
            OSError: if a file cannot be written; existing files stay.
        """
        tokenizers = self.tokenizer, self.target_tokenizer
        longest = self.model.longest
        write_tokenizers = partial(save_tokenizers, *tokenizers, model_max_length=longest)
        return write_folder(folder, self.model, write_tokenizers, self.card, half)

    def push_to_hub(
        self,
        repo_id: str,
        private: bool | None = None,
        token: str | None = None,
        revision: str | None = None,
        commit_message: str | None = None,
        half: bool = False,
    ) -> str:
        """Upload everything that :meth:`from_pretrained` reads to the Hugging Face Hub.

        The example in the model card then loads ``repo_id``. A model without a card gets one that
        states its size and shows how to use it.

        Args:
            repo_id: "owner/name"; the repository is created if it does not exist.
            private: whether a new repository is private; None for the owner's default.
            token: access token of the Hub; None for that of ``hf auth login``.
            revision: branch, created if it does not exist; None for the main one.
            commit_message: None for "Upload model".
            half: store the weights as float16, half the size.

        Returns:
            The address of the repository.

        Raises:
            OSError: if the Hub refuses or cannot be reached.
            ValueError: if ``repo_id`` is not valid, or a weight is too large for float16.
        """

        def write(folder: Path) -> None:
            self.save_pretrained(folder, half)
            kind = dict(architecture=self.model.architecture)
            card = self.card or model_card(parameters=self.model.num_parameters(), training=kind)
            (folder / CARD).write_text(with_address(card, repo_id), encoding="utf-8")

        return upload(repo_id, write, private, token, revision, commit_message)

    # A string is an Iterable of strings too; mypy and this method try the first overload first.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        *,
        n_best: None = None,
        return_scores: Literal[False] = False,
        **keywords: Unpack[TranslateKeywords],
    ) -> str: ...

    @overload
    def translate(
        self,
        texts: Iterable[str],
        *,
        n_best: None = None,
        return_scores: Literal[False] = False,
        **keywords: Unpack[TranslateKeywords],
    ) -> list[str]: ...

    # With scores or several translations, the type of the result follows from the options.
    @overload
    def translate(
        self,
        texts: str | Iterable[str],
        options: SearchOptions | None = None,
        *,
        n_best: int | None = None,
        num_return_sequences: int = ...,
        return_scores: bool = False,
        **keywords: Unpack[TranslateKeywords],
    ) -> Any: ...

    def translate(
        self,
        texts: str | Iterable[str],
        options: SearchOptions | None = None,
        *,
        batch_size: int = 64,
        progress: bool | None = None,
        return_scores: bool = False,
        split_sentences: bool | str = False,
        sentence_case: bool = True,
        **search: Any,
    ) -> Any:
        """Translate sentences; ``translator(texts)`` does the same.

        Each text counts as one sentence; line breaks and runs of spaces become one space. An empty
        text gives an empty translation. The translations do not depend on the batch size.

        Args:
            texts: sentences, or one sentence.
            options: search options; None for the paper's.
            batch_size: sentences to translate at once.
            progress: show a progress bar; None shows one in a live notebook, after a second.
            return_scores: return a :class:`~transformer.inference.results.Translation` instead of
                each text.
            split_sentences: translate each sentence of a text separately and join the translations
                with a space. To recognise abbreviations that end in a period, True uses the source
                language that the model card names, or English; or pass a language code such as
                "de". Needs the package ``sentencex``.
            sentence_case: translate a sentence in all capitals (four letters or more) as if it were
                in lower case, and return the translation in capitals, because most training text
                has few such sentences. The initial capitals of names are lost.
            search: fields of :class:`~transformer.inference.options.SearchOptions`, which change
                ``options``: ``beam_size``, ``alpha``, ``penalty``, ``max_length``, ``n_best``.
                Hugging Face's names ``num_beams``, ``length_penalty``, ``max_new_tokens`` and
                ``num_return_sequences`` work too.

        Returns:
            The translations in the order of ``texts``, or one if ``texts`` is a string. With
            ``n_best`` each is a list of up to ``n_best`` translations, best first.

        Raises:
            TypeError: if ``texts`` contains something other than strings, or an option is unknown.
            ValueError: if a sentence has more tokens than the model takes, or an option is out of
                range or not a number where it must be one.
            ModuleNotFoundError: if ``sentencex`` is needed and not installed.
        """
        use_one_thread_after_fork()
        chosen = SearchOptions.of(options, **search)
        batch_size = COUNT("batch_size", batch_size)
        if split_sentences and chosen.n_best is not None:
            raise ValueError("n_best must be left out with split_sentences: it is per sentence")
        if not isinstance(texts, Iterable) or isinstance(texts, Mapping):
            raise TypeError(
                f"texts must be a string or several strings, got {type(texts).__name__}"
            )
        given = [texts] if isinstance(texts, str) else list(texts)
        splitter = self._splitter(split_sentences)
        sentences = [
            (i, sentence, capitals)
            for i, text in enumerate(given)
            for sentence, capitals in self._prepare(text, f"texts[{i}]", splitter, sentence_case)
        ]
        names = [f"texts[{i}]" for i, _, _ in sentences]
        sources = self._encode([sentence for _, sentence, _ in sentences], names)
        found = search_all(self.model, self.target_tokenizer, sources, chosen, batch_size, progress)
        results: list[list[list[Translation]]] = [[] for _ in given]
        for (i, _, capitals), best in zip(sentences, found, strict=True):
            if capitals:
                best = [replace(each, text=each.text.upper()) for each in best]
            results[i].append(best)
        answers = [_answer(parts, chosen.n_best, return_scores) for parts in results]
        return answers[0] if isinstance(texts, str) else answers

    __call__ = translate

    def require_translatable(
        self,
        text: str,
        name: str = "text",
        split_sentences: bool | str = False,
        sentence_case: bool = True,
    ) -> None:
        """Raise the error that :meth:`translate` would raise for a text with this name."""
        splitter = self._splitter(split_sentences)
        parts = [each for each, _ in self._prepare(text, name, splitter, sentence_case)]
        self._encode(parts, [name] * len(parts))

    def _prepare(
        self, text: object, name: str, splitter: Callable[[str], list[str]], sentence_case: bool
    ) -> Iterator[tuple[str, bool]]:
        """Yield each sentence of a text, and whether its translation gets its capitals back."""
        for sentence in splitter(require_text(text, name)):
            capitals = sentence_case and in_capitals(sentence)
            yield to_sentence_case(sentence, self._language) if capitals else sentence, capitals

    @property
    def _language(self) -> str:
        return source_language(self.card or "")

    def _splitter(self, split: bool | str) -> Callable[[str], list[str]]:
        if not split:
            return lambda text: [text]
        import_sentencex()  # before a text is read
        return partial(split_into_sentences, language=self._language if split is True else split)

    def attention(self, source_text: str, target_text: str | None = None) -> AttentionWeights:
        """Return the attention weights of all layers and heads for one sentence pair.

        Args:
            source_text: the sentence; one in all capitals counts as in lower case, as in
                :meth:`translate`.
            target_text: its translation, the decoder's input; None for the model's own. It is taken
                as it is, capitals too.

        Raises:
            TypeError: if the model is not a Transformer.
            ValueError: if the source is empty or a text has more tokens than the model takes.
        """
        use_one_thread_after_fork()
        if not isinstance(self.model, Transformer):
            raise TypeError(f"model must be a Transformer, got {type(self.model).__name__}")
        ((sentence, _),) = self._prepare(source_text, "source_text", self._splitter(False), True)
        (source,) = self._encode([sentence], ["source_text"])
        if len(source) == 1:
            raise ValueError("source_text must not be empty")
        inputs = pad(self.model, [source])
        if target_text is None:
            best = beam_search(self.model, inputs)[0]
            target = best.tokens + [self.tokenizer.eos_id] * best.finished
        else:
            (target,) = self._encode([target_text], ["target_text"], self.target_tokenizer)
        shifted = [self.tokenizer.bos_id, *target[:-1]]
        with evaluation_mode(self.model):
            maps = self.model.attention_weights(inputs, pad(self.model, [shifted]))
        return AttentionWeights(
            source_tokens=self.tokenizer.tokens(source),
            target_tokens=self.target_tokenizer.tokens(shifted),
            predicted_tokens=self.target_tokenizer.tokens(target),
            encoder=_stack(maps.encoder),
            decoder=_stack(maps.decoder),
            cross=_stack(maps.cross),
        )

    def _encode(
        self, texts: list[str], names: list[str], tokenizer: TokenizerLike | None = None
    ) -> list[list[int]]:
        rows = encode_sentences(texts, names, tokenizer or self.tokenizer, self.model.longest)
        return [[*ids, self.tokenizer.eos_id] for ids in rows]


def _answer(parts: list[list[Translation]], n_best: int | None, scores: bool) -> Any:
    """Return the result for a text: its sentences joined, with or without scores."""
    best = parts[0] if len(parts) == 1 else [joined([first for first, *_ in parts])]
    shown: list[Any] = best if scores else [each.text for each in best]
    return shown[0] if n_best is None else shown


def _stack(maps: list[Tensor]) -> np.ndarray:
    """Stack the weights of a batch of one to an array (layers, H, queries, keys)."""
    return torch.cat(maps).float().cpu().numpy()
