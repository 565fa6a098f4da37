"""Byte-pair encoding shared by both languages (section 5.1), from the `tokenizers` library.

The pieces are built from bytes, so there is no unknown token and any Unicode text comes back
exactly as it went in, blanks included. Nothing is lower-cased or otherwise normalised.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

# Unset, the library prints a warning when a process that has encoded text forks. What the user
# has set is left alone.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

import tokenizers  # noqa: E402  (reads the variable above)
from tokenizers import decoders, models, pre_tokenizers, trainers  # noqa: E402

PAD, BOS, EOS = SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")

# The library writes every byte as one printable character. This is the way back.
_ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def _byte_of_character() -> dict[str, int]:
    """Characters of the library's byte alphabet -> bytes (bytes it can print stand for themselves,
    the others follow from U+0100 on, in order)."""
    printable = {c: ord(c) for c in _ALPHABET if ord(c) < 256}
    others = sorted(set(range(256)) - set(printable.values()))
    return printable | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_of_character()


class Tokenizer:
    """Text to token ids and back, without loss.

    Ids 0, 1 and 2 are ``<pad>``, ``<bos>`` and ``<eos>``. They never come out of text: a literal
    ``<pad>`` in a sentence is encoded as any other characters.

    Args:
        backend: A tokenizer of the `tokenizers` library as :meth:`train` makes it.

    Raises:
        ValueError: If the backend is of another kind.

    Paper: section 5.1
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        ids = tuple(backend.token_to_id(token) for token in SPECIAL_TOKENS)
        if ids != (0, 1, 2):
            raise ValueError(f"{', '.join(SPECIAL_TOKENS)} must have ids 0, 1, 2; got {ids}")
        if not isinstance(backend.decoder, decoders.ByteLevel):
            raise ValueError("backend must be a byte-level BPE tokenizer, its decoder is not")
        # Text is data: "<eos>" inside a sentence must not become the end of it.
        backend.encode_special_tokens = True
        self._backend = backend

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn the merges from text; the same text gives the same tokenizer.

        Args:
            texts: Sentences; of both languages for a joint vocabulary.
            vocab_size: Number of tokens, at least 259: 3 special tokens and 256 bytes.

        Returns:
            A tokenizer with exactly ``vocab_size`` tokens.

        Raises:
            ValueError: If ``vocab_size`` is below 259, or larger than the text supports.

        Paper: section 5.1
        """
        smallest = len(SPECIAL_TOKENS) + len(_ALPHABET)
        if vocab_size < smallest:
            raise ValueError(
                f"vocab_size must be at least {smallest} (the special tokens and all bytes), "
                f"got {vocab_size}"
            )
        if isinstance(texts, str):
            raise TypeError("texts must be an iterable of sentences, got one string")
        backend = _untrained()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=_ALPHABET,
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        if backend.get_vocab_size() < vocab_size:
            raise ValueError(
                f"vocab_size {vocab_size} is larger than the text supports: it gives "
                f"{backend.get_vocab_size()} tokens"
            )
        return cls(backend)

    @classmethod
    def load(cls, path: Path | str) -> "Tokenizer":
        """Load a tokenizer that :meth:`save` wrote.

        Args:
            path: The file, usually ``tokenizer.json``.

        Returns:
            The tokenizer.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is damaged or of another kind of tokenizer.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"no tokenizer file: {path}")
        try:
            text = path.read_text(encoding="utf-8")
            _require_ours(json.loads(text))
            return cls(tokenizers.Tokenizer.from_str(text))
        except Exception as error:  # the library raises no narrower class
            reason = " ".join(str(error).split())[:300]
            raise ValueError(f"{path} is not a readable tokenizer file: {reason}") from None

    def to_json(self) -> str:
        """Write the tokenizer as JSON: equal for equal tokenizers."""
        return self._backend.to_str(pretty=True)

    def save(self, path: Path | str) -> None:
        """Write the tokenizer to one JSON file, all of it or nothing.

        Args:
            path: The file, usually ``tokenizer.json``. An existing one is replaced.
        """
        path = Path(path)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            unfinished.write_text(self.to_json(), encoding="utf-8")
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)

    @property
    def vocab_size(self) -> int:
        """Number of tokens, special ones included.

        Paper: section 5.1
        """
        return self._backend.get_vocab_size()

    @property
    def pad_id(self) -> int:
        """Id that fills the ends of shorter rows, 0."""
        return 0

    @property
    def bos_id(self) -> int:
        """Id that starts the decoder's input, 1.

        Paper: section 3.1
        """
        return 1

    @property
    def eos_id(self) -> int:
        """Id that ends every sentence, 2."""
        return 2

    def encode(self, text: str) -> list[int]:
        """Token ids of one text, without special tokens.

        Args:
            text: Any text.

        Returns:
            Ids in [3, vocab_size); an empty list for an empty text.

        Raises:
            ValueError: If the text holds half a surrogate pair, which no UTF-8 can express.

        Paper: section 5.1
        """
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many texts, on all threads of the library.

        Args:
            texts: Any texts.

        Returns:
            One list of ids for each text.

        Raises:
            ValueError: If a text holds half a surrogate pair, which no UTF-8 can express.

        Paper: section 5.1
        """
        # Versions of the library differ: some refuse half a pair, some put U+FFFD in its place.
        try:
            "".join(texts).encode()
        except UnicodeEncodeError as error:
            found = error.object[error.start]
            raise ValueError(f"texts must be valid Unicode, got {found!r}") from None
        return [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids. Special tokens and ids outside the vocabulary are left out.

        Args:
            ids: Token ids.

        Returns:
            The text. Ids that were not made by :meth:`encode` may spell bytes that are not
            UTF-8; those become U+FFFD.

        Paper: section 5.1
        """
        return self._backend.decode(list(ids), skip_special_tokens=True)

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Texts of many rows of token ids; see :meth:`decode`.

        Args:
            batch: Rows of token ids.

        Returns:
            One text for each row.

        Paper: section 5.1
        """
        return self._backend.decode_batch([list(ids) for ids in batch], skip_special_tokens=True)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Readable pieces, for labels in figures.

        Args:
            ids: Token ids, special ones included.

        Returns:
            One label for each id, with blanks shown as ``▁``. Pieces that are only part of a
            character are shown by their bytes, as in ``<0xC3>``.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return [self._label(token_id) for token_id in ids]

    def _label(self, token_id: int) -> str:
        token = self._backend.id_to_token(token_id) if token_id >= 0 else None
        if token is None:
            raise ValueError(f"ids must be in [0, {self.vocab_size}), got {token_id}")
        if token in SPECIAL_TOKENS:
            return token
        piece = bytes(_BYTES[character] for character in token)
        try:
            return piece.decode("utf-8").replace(" ", "▁")
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in piece)


def _untrained() -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE())
    # Words are split at blanks and punctuation first, hence no merge can ever spell "<pad>".
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend


def _require_ours(file: Any) -> None:
    """Raise ValueError unless a file's content is what training makes.

    The library has many more options: some drop or change text in silence, and of some that do
    not fit together it does not raise an error but panics, which no ``except Exception`` stops.
    """
    expected = json.loads(_untrained().to_str())
    for options, theirs in ((expected, file), (expected["model"], file.get("model"))):
        if not isinstance(theirs, dict):
            raise ValueError("it must hold objects with a tokenizer's options")
        for name in (options | theirs).keys() - {"model", "added_tokens", "vocab", "merges"}:
            # Versions of the library differ in the options that they write down.
            if theirs.get(name, options.get(name)) != options.get(name):
                raise ValueError(f"{name} must be {options.get(name)}, got {theirs[name]!r:.60}")
    vocabulary = file["model"]["vocab"]
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError("vocab must number its tokens from 0 on, without a gap")
    pieces = vocabulary.keys() - SPECIAL_TOKENS
    if not pieces or {*"".join(pieces)} != _BYTES.keys() or not pieces >= _BYTES.keys():
        raise ValueError("vocab must have pieces of bytes, and all 256 bytes among them")
    added = [(token["id"], token["content"]) for token in file["added_tokens"]]
    if added != list(enumerate(SPECIAL_TOKENS)):
        raise ValueError(f"added_tokens must be {', '.join(SPECIAL_TOKENS)}, got {added!r:.60}")


@runtime_checkable
class TokenizerLike(Protocol):
    """What a translator asks of a tokenizer, be it a :class:`Tokenizer` or another library's.

    Its methods do what those of :class:`Tokenizer` do.
    """

    @property
    def vocab_size(self) -> int: ...
    @property
    def pad_id(self) -> int: ...
    @property
    def bos_id(self) -> int: ...
    @property
    def eos_id(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]: ...
    def tokens(self, ids: Sequence[int]) -> list[str]: ...
