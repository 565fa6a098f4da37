"""Byte-pair encoding shared by both languages, based on the `tokenizers` library.

The pieces are built from bytes, so there is no unknown token, and decoding returns exactly the
encoded text, spaces included. Nothing is lower-cased or otherwise normalised.

The files are saved in Hugging Face's format, so ``AutoTokenizer.from_pretrained(folder)`` of
`transformers` gives the same ids, with ``<eos>`` at the end of each text.
"""

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from operator import index
from pathlib import Path
from typing import Any, Unpack

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from transformer.saving.files import require_unchanged, write_atomically, write_json
from transformer.saving.locate import HubOptions, locate, require_known, shipped_names
from transformer.settings import whole

PAD, BOS, EOS = SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")
#: Most tokens that are learned from a text; the library takes memory for all of them first.
LARGEST_VOCABULARY = 1_000_000
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"

# The library's threads do not survive a fork, and a worker that calls on them may wait for ever.
# Workers, and batches too small to gain from threads, go one text at a time.
_PROCESS = os.getpid()
_FEW = 100

# The library writes every byte as one printable character: printable ones stand for themselves,
# the others are numbered from U+0100 on.
_ALPHABET = pre_tokenizers.ByteLevel.alphabet()
_PRINTABLE = {c: ord(c) for c in _ALPHABET if ord(c) < 256}
_OTHERS = sorted({*range(256)} - {*_PRINTABLE.values()})
_BYTES = _PRINTABLE | {chr(256 + i): byte for i, byte in enumerate(_OTHERS)}


class Tokenizer:
    """Convert text to token ids and back, without loss.

    Ids 0, 1 and 2 are ``<pad>``, ``<bos>`` and ``<eos>``. Text never produces them: a literal
    ``<pad>`` in a sentence is encoded like any other characters.

    Args:
        backend: a tokenizer of the `tokenizers` library, as made by :meth:`train`.

    Raises:
        ValueError: if the backend is of another kind.

    Paper: section 5.1
    """

    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        ids = tuple(backend.token_to_id(token) for token in SPECIAL_TOKENS)
        if ids != (self.pad_id, self.bos_id, self.eos_id):
            raise ValueError(f"{', '.join(SPECIAL_TOKENS)} must have ids 0, 1, 2; got {ids}")
        if not isinstance(backend.decoder, decoders.ByteLevel):
            raise ValueError("backend must be a byte-level BPE tokenizer, its decoder is not")
        # Text is data: "<eos>" inside a sentence must not end it.
        backend.encode_special_tokens = True
        # For other programs that read the file; encode() leaves <eos> out.
        backend.post_processor = _untrained().post_processor
        self._backend = backend

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn the merges from text, deterministically.

        Args:
            texts: sentences; of both languages for a joint vocabulary.
            vocab_size: exact number of tokens, 259 to a million: 3 special tokens, 256 bytes, and
                the merges.

        Raises:
            ValueError: if ``vocab_size`` is out of range, or larger than the text supports.
        """
        # The special tokens and all bytes are always there.
        sizes = whole(len(SPECIAL_TOKENS) + len(_ALPHABET), LARGEST_VOCABULARY)
        vocab_size = sizes("vocab_size", vocab_size)
        _require_many(texts)
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
    def from_pretrained(
        cls, name_or_path: Path | str, **options: Unpack[HubOptions]
    ) -> "Tokenizer":
        """Load the tokenizer of a trained model, or one that :meth:`save_pretrained` wrote.

        Args:
            name_or_path: a shipped name ("tatoeba-en-de"), a folder, or a Hub id ("owner/name").
            options: of a download, see :class:`~transformer.saving.locate.HubOptions`.

        Raises:
            FileNotFoundError: if there is no such model, or the Hub cannot be reached.
            ValueError: if the tokenizer is damaged or of another kind.
        """
        require_known(options)
        folder = Path(name_or_path)
        if name_or_path in shipped_names() or not (folder / TOKENIZER).is_file():
            folder = locate(name_or_path, **options).folder
        require_unchanged(folder, TOKENIZER)
        return cls.load(folder / TOKENIZER)

    def save_pretrained(self, folder: Path | str, model_max_length: int | None = None) -> list[str]:
        """Write the files that :meth:`from_pretrained` and ``AutoTokenizer`` read; name them.

        Args:
            folder: made if it does not exist; files of these names are replaced.
            model_max_length: most tokens that the model takes, ``<eos>`` included; None for no
                limit.
        """
        self.save(Path(folder) / TOKENIZER)
        write_json(Path(folder) / TOKENIZER_CONFIG, hugging_face_config(EOS, model_max_length))
        return [TOKENIZER, TOKENIZER_CONFIG]

    @classmethod
    def load(cls, path: Path | str) -> "Tokenizer":
        """Load the file of a tokenizer, usually ``tokenizer.json``.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the file is damaged or of another kind of tokenizer.
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

    @cached_property
    def checksum(self) -> str:
        """CRC-32 of the vocabulary in the order of its ids, 8 hexadecimal digits.

        Ids are given in the order of the merges, so that equal vocabularies give equal ids.
        """
        ids = self._backend.get_vocab()
        return f"{zlib.crc32(chr(10).join(sorted(ids, key=ids.__getitem__)).encode()):08x}"

    def to_json(self) -> str:
        """Return the tokenizer as JSON; equal tokenizers have equal JSON."""
        return self._backend.to_str(pretty=True)

    def save(self, path: Path | str) -> None:
        """Write the tokenizer atomically to a file for :meth:`load`."""
        write_atomically(Path(path), lambda p: p.write_text(self.to_json(), encoding="utf-8"))

    @property
    def vocab_size(self) -> int:
        """Number of tokens, special ones included."""
        return self._backend.get_vocab_size()

    def __len__(self) -> int:
        return self.vocab_size

    def encode(self, text: str) -> list[int]:
        """Return the token ids of one text, in [3, vocab_size); so does ``tokenizer(text)``.

        Raises:
            ValueError: if the text contains half a surrogate pair, which is not valid Unicode.
        """
        return self.encode_batch([text])[0]

    __call__ = encode

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return the token ids of each text as :meth:`encode` does, using all threads.

        A forked process, such as a worker of a ``DataLoader``, uses one.
        """
        _require_many(texts)
        texts = list(texts)
        require_unicode("".join(texts))
        if _one_by_one(texts):
            encode = partial(self._backend.encode, add_special_tokens=False)
            return [encode(text).ids for text in texts]
        encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without special tokens and ids outside the vocabulary.

        Ids that :meth:`encode` did not make may spell invalid UTF-8, which becomes U+FFFD.
        """
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of token ids; see :meth:`decode`."""
        size = self.vocab_size
        rows = [[i for i in map(index, ids) if 0 <= i < size] for ids in batch]
        if _one_by_one(rows):
            return [self._backend.decode(row, skip_special_tokens=True) for row in rows]
        return self._backend.decode_batch(rows, skip_special_tokens=True)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return a readable label per id, for figures.

        Spaces are shown as ``▁``, parts of a character by their bytes, as in ``<0xC3>``.

        Raises:
            ValueError: if an id is outside the vocabulary.
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


def _require_many(texts: Iterable[str]) -> None:
    if isinstance(texts, str):
        raise TypeError("texts must be an iterable of sentences, got one string")


def require_unicode(text: str) -> None:
    """Refuse half a surrogate pair; of the libraries, some do, and some replace it by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise ValueError(f"texts must be valid Unicode, got {found!r}") from None


def _one_by_one(batch: Sequence[Any]) -> bool:
    return len(batch) < _FEW or os.getpid() != _PROCESS


def _untrained() -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE())
    # Text is first split at spaces and punctuation, so no merge can spell "<pad>".
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.TemplateProcessing(
        f"$A {EOS}", f"$A {EOS} $B:1 {EOS}:1", [(EOS, Tokenizer.eos_id)]
    )
    return backend


def hugging_face_config(eos: str, model_max_length: int | None) -> dict[str, Any]:
    """Return what ``tokenizer_config.json`` holds for Hugging Face's ``AutoTokenizer``."""
    settings: dict[str, Any] = dict(
        tokenizer_class="PreTrainedTokenizerFast",
        pad_token=PAD,
        bos_token=BOS,
        eos_token=eos,
        padding_side="right",
        split_special_tokens=True,  # text is data
        clean_up_tokenization_spaces=False,
        # No type ids: the models do not take them.
        model_input_names=["input_ids", "attention_mask"],
    )
    longest = {} if model_max_length is None else dict(model_max_length=model_max_length)
    return settings | longest


def _require_ours(file: Any) -> None:
    """Raise ValueError unless the content of a file is of the kind that training makes.

    The library has many more options. Some silently drop or change text; some combinations cause
    a panic, which ``except Exception`` does not catch.
    """
    expected = json.loads(_untrained().to_str())
    for options, theirs in ((expected, file), (expected["model"], file.get("model"))):
        if not isinstance(theirs, dict):
            raise ValueError("it must hold objects with a tokenizer's options")
        for name in (options | theirs).keys() - {"model", "added_tokens", "vocab", "merges"}:
            if name == "post_processor" and theirs.get(name) is None:
                continue  # a file of an earlier version of this package
            # Versions of the library differ in the options that they write.
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
