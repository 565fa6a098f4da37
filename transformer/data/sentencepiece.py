"""SentencePiece tokenizers with a separate vocabulary, as Marian models (OPUS-MT) have them."""

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any

from transformer.data.extras import import_extra
from transformer.data.tokenizer import TOKENIZER_CONFIG, hugging_face_config, require_unicode
from transformer.saving.files import read_json, require_unchanged, write_atomically, write_json

SOURCE_PIECES, TARGET_PIECES = "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
EOS, PAD, BOS, UNKNOWN = "</s>", "<pad>", "<bos>", "<unk>"
_CODE = re.compile(r">>[^<]*<<")


class SentencePieceTokenizer:
    """Encode text of one language with SentencePiece and a vocabulary, as Marian models do.

    SentencePiece splits the text into pieces, and the vocabulary gives each piece its id. A piece
    outside the vocabulary becomes ``<unk>``, so not every text survives the round trip. Otherwise
    text is data: unlike in Hugging Face's tokenizer, a literal ``</s>`` does not end a sentence.

    If the vocabulary has language codes such as ``>>fra<<``, a sentence may begin with one: it
    selects the target language of a multilingual model, and an unknown one is an error. Without
    codes in the vocabulary it is plain text.

    Args:
        model: contents of a SentencePiece model file, such as ``source.spm``.
        vocabulary: id of each piece.
        vocab_size: number of tokens V of the translating model.
        pad_id: id of padding.
        bos_id: id that begins a decoder input; no text contains it.
        eos_id: id that ends a sentence.

    Raises:
        ModuleNotFoundError: if `sentencepiece` is not installed.
        ValueError: if ``model`` is not a SentencePiece model, or the vocabulary lacks ``<unk>`` or
            has an id that is ``bos_id`` or outside [0, vocab_size).
    """

    def __init__(
        self,
        model: bytes,
        vocabulary: Mapping[str, int],
        vocab_size: int,
        pad_id: int,
        bos_id: int,
        eos_id: int,
    ):
        try:
            self._processor = import_sentencepiece().SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"model must be a SentencePiece model: {reason}") from None
        if UNKNOWN not in vocabulary:
            raise ValueError(f"vocabulary must contain {UNKNOWN}")
        for piece, i in vocabulary.items():
            if type(i) is not int or not 0 <= i < vocab_size or i == bos_id:
                raise ValueError(
                    f"vocabulary must have whole numbers in [0, {vocab_size}) that are not "
                    f"bos_id = {bos_id}, got {i!r} for {piece!r}"
                )
        self._model, self.vocabulary = model, dict(vocabulary)
        self._unknown = vocabulary[UNKNOWN]
        self._pieces = {i: piece for piece, i in vocabulary.items()} | {bos_id: BOS}
        self._silent = {pad_id, bos_id, eos_id, self._unknown}
        # SentencePiece joins unknown characters, and the result may look like a special token.
        self._ids = {piece: i for piece, i in vocabulary.items() if i not in self._silent}
        self.vocab_size, self.pad_id, self.bos_id, self.eos_id = vocab_size, pad_id, bos_id, eos_id
        self.language_codes = sorted(piece for piece in vocabulary if _CODE.fullmatch(piece))

    @classmethod
    def load_pair(
        cls, folder: Path | str
    ) -> tuple["SentencePieceTokenizer", "SentencePieceTokenizer"]:
        """Load the tokenizers of source and target that :meth:`save_pretrained` wrote.

        Raises:
            FileNotFoundError: if a file is missing.
            ModuleNotFoundError: if `sentencepiece` is not installed.
            ValueError: if a file is damaged.
        """
        folder = Path(folder)
        names = [TOKENIZER_CONFIG, SOURCE_PIECES, TARGET_PIECES, VOCABULARY]
        if (folder / TARGET_VOCABULARY).is_file():
            names.append(TARGET_VOCABULARY)
        for name in names:
            if not (folder / name).is_file():
                raise FileNotFoundError(f"no tokenizer file: {folder / name}")
        require_unchanged(folder, *names)
        settings = read_json(folder / TOKENIZER_CONFIG)
        pair = []
        for pieces, file in ((SOURCE_PIECES, VOCABULARY), (TARGET_PIECES, names[-1])):
            ids = read_json(folder / file)
            try:
                special = ids[PAD], settings["bos_id"], ids[EOS]
                model = (folder / pieces).read_bytes()
                pair.append(cls(model, ids, settings["model_vocab_size"], *special))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{folder / pieces} and {file} do not load: {error}") from None
        return pair[0], pair[1]

    def save_pretrained(
        self,
        folder: Path | str,
        model_max_length: int | None = None,
        target: "SentencePieceTokenizer | None" = None,
    ) -> list[str]:
        """Write the files that :meth:`load_pair` and ``MarianTokenizer`` read; return their names.

        Args:
            folder: created if it does not exist; files of these names are replaced.
            model_max_length: most tokens that the model takes, EOS included; None for no limit.
            target: the tokenizer of the target language; None for this one.
        """
        folder, target = Path(folder), target or self
        separate = target.vocabulary != self.vocabulary
        settings = hugging_face_config(EOS, model_max_length) | dict(
            tokenizer_class="MarianTokenizer",
            unk_token=UNKNOWN,
            separate_vocabs=separate,
            model_vocab_size=self.vocab_size,
            bos_id=self.bos_id,
        )
        del settings["bos_token"]  # it has no place in the vocabulary
        contents: dict[str, object] = {TOKENIZER_CONFIG: settings, VOCABULARY: self.vocabulary}
        if separate:
            contents[TARGET_VOCABULARY] = target.vocabulary
        for name, content in contents.items():
            write_json(folder / name, content)
        write_atomically(folder / SOURCE_PIECES, lambda path: path.write_bytes(self._model))
        write_atomically(folder / TARGET_PIECES, lambda path: path.write_bytes(target._model))
        return [*contents, SOURCE_PIECES, TARGET_PIECES]

    @cached_property
    def checksum(self) -> str:
        """CRC-32 of the SentencePiece model and the ids of its pieces, 8 hexadecimal digits."""
        ids = json.dumps(sorted(self.vocabulary.items(), key=lambda item: item[1]))
        return f"{zlib.crc32(ids.encode(), zlib.crc32(self._model)):08x}"

    def __len__(self) -> int:
        return self.vocab_size

    def encode(self, text: str) -> list[int]:
        """Return the token ids of one text, without special tokens; so does ``tokenizer(text)``.

        The text begins with a language code if the model needs one.

        Raises:
            ValueError: if the text begins with an unknown language code although the vocabulary
                has others, or if it holds half a surrogate pair.
        """
        require_unicode(text)
        code = _CODE.match(text) if self.language_codes else None
        pieces = []
        if code:
            if code[0] not in self._ids:
                known = ", ".join(self.language_codes[:10])
                raise ValueError(f"unknown language code {code[0]!r}; known codes: {known}")
            pieces, text = [code[0]], text[code.end() :]
        pieces += self._processor.encode(text, out_type=str)
        return [self._ids.get(piece, self._unknown) for piece in pieces]

    __call__ = encode

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text; see :meth:`encode`."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without special tokens and ids that lack a piece."""
        known = (i for i in map(index, ids) if i in self._pieces and i not in self._silent)
        pieces = [self._pieces[i] for i in known]
        return self._processor.decode(pieces).replace("▁", " ").strip() if pieces else ""

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of token ids; see :meth:`decode`."""
        return [self.decode(ids) for ids in batch]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return readable pieces, for labels in figures; a leading ``▁`` is a blank.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        ids = [*map(index, ids)]  # the elements of a tensor are not found in a dictionary
        for i in ids:
            if not 0 <= i < self.vocab_size:
                raise ValueError(f"ids must be in [0, {self.vocab_size}), got {i}")
        return [self._pieces.get(i, UNKNOWN) for i in ids]


def import_sentencepiece() -> Any:
    """Import `sentencepiece`, or raise the error that says how to install it."""
    return import_extra("a Marian model", "marian", "sentencepiece")
