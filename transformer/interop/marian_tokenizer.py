"""The tokenizer of a Marian model: SentencePiece cuts the text, a list gives each piece its id."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

BOS, UNKNOWN = "<bos>", "<unk>"
_CODE = re.compile(r">>[^<]*<<")


class MarianTokenizer:
    """Text of one language to the ids of a Marian model and back.

    A piece that the vocabulary lacks becomes ``<unk>``, so not every text comes back as it went
    in. Apart from that, text is data: a literal ``</s>`` in a sentence is cut like any other
    characters. (Hugging Face's tokenizer makes it the end of the sentence.)

    Where the vocabulary has language codes such as ``>>fra<<``, a sentence may begin with one: it
    tells a multilingual model what to translate into. An unknown one is an error there, and plain
    text where there are no codes. (Hugging Face's tokenizer makes it ``<unk>`` in both cases.)

    Args:
        model: the bytes of a SentencePiece model, such as ``source.spm``.
        vocabulary: id of each piece.
        vocab_size: number of tokens V of the translating model.
        pad_id: id of padding.
        bos_id: id that begins a decoder input. No text has it.
        eos_id: id that ends a sentence.

    Raises:
        ModuleNotFoundError: if `sentencepiece` is not installed.
        ValueError: if ``model`` is no SentencePiece model, or the vocabulary lacks ``<unk>`` or has
            an id that is ``bos_id`` or outside [0, vocab_size).
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
        sentencepiece = import_sentencepiece()
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"model must be a SentencePiece model: {reason}") from None
        if UNKNOWN not in vocabulary:
            raise ValueError(f"vocabulary must have {UNKNOWN}, it does not")
        for piece, i in vocabulary.items():
            if type(i) is not int or not 0 <= i < vocab_size or i == bos_id:
                raise ValueError(
                    f"vocabulary must have whole numbers in [0, {vocab_size}) that are not "
                    f"bos_id = {bos_id}, got {i!r} for {piece!r}"
                )
        self._unknown = vocabulary[UNKNOWN]
        self._pieces = {i: piece for piece, i in vocabulary.items()} | {bos_id: BOS}
        self._silent = {pad_id, bos_id, eos_id, self._unknown}
        # SentencePiece joins characters that it does not know, and they may spell a special token.
        self._ids = {piece: i for piece, i in vocabulary.items() if i not in self._silent}
        self.vocab_size, self.pad_id, self.bos_id, self.eos_id = vocab_size, pad_id, bos_id, eos_id
        self.language_codes = sorted(piece for piece in vocabulary if _CODE.fullmatch(piece))

    def encode(self, text: str) -> list[int]:
        """Token ids of one text, without special tokens.

        Args:
            text: a sentence, after its language code if the model needs one.

        Returns:
            Ids; an empty list for an empty text.

        Raises:
            ValueError: if the text begins with a language code that the vocabulary does not have
                among others, or holds half a surrogate pair.

        Paper: section 5.1
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            found = error.object[error.start]
            raise ValueError(f"texts must be valid Unicode, got {found!r}") from None
        code = _CODE.match(text) if self.language_codes else None
        pieces = []
        if code:
            if code[0] not in self._ids:
                known = ", ".join(self.language_codes[:10])
                raise ValueError(f"unknown language code {code[0]!r}; there are {known}")
            pieces, text = [code[0]], text[code.end() :]
        pieces += self._processor.encode(text, out_type=str)
        return [self._ids.get(piece, self._unknown) for piece in pieces]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many texts; see :meth:`encode`.

        Paper: section 5.1
        """
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids. Padding, BOS, EOS, ``<unk>`` and ids without a piece are left out.

        Paper: section 5.1
        """
        pieces = [self._pieces[i] for i in ids if i in self._pieces and i not in self._silent]
        return self._processor.decode(pieces).replace("▁", " ").strip() if pieces else ""

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Texts of many rows of token ids; see :meth:`decode`.

        Paper: section 5.1
        """
        return [self.decode(ids) for ids in batch]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Readable pieces, for labels in figures; a leading ``▁`` is a blank.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        for i in ids:
            if not 0 <= i < self.vocab_size:
                raise ValueError(f"ids must be in [0, {self.vocab_size}), got {i}")
        return [self._pieces.get(i, UNKNOWN) for i in ids]


def import_sentencepiece() -> Any:
    """Return the module `sentencepiece`, which only Marian's models need.

    Raises:
        ModuleNotFoundError: if it is not installed.
    """
    try:
        import sentencepiece
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Marian models need the package sentencepiece: pip install 'transformer-book[marian]'",
            name=error.name,
        ) from None
    return sentencepiece
