"""The tokenizers of a model, of whatever kind: what it needs of them, their files, their match."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from transformer.data.sentencepiece import SOURCE_PIECES, SentencePieceTokenizer
from transformer.data.tokenizer import TOKENIZER, TOKENIZER_CONFIG, Tokenizer
from transformer.saving.files import require_unchanged
from transformer.saving.locate import TOKENIZER_FILES

#: Attributes with their ids, of tokenizers and configurations.
SPECIAL_IDS = ("pad_id", "bos_id", "eos_id")


@runtime_checkable
class TokenizerLike(Protocol):
    """The interface that a translator needs, with the methods of ``Tokenizer``."""

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


def require_savable(source: TokenizerLike, target: TokenizerLike) -> None:
    """Raise ValueError unless :func:`save_tokenizers` can write the tokenizers of a model."""
    kinds = type(source), type(target)
    joint = isinstance(source, Tokenizer) and target is source
    if not joint and not all(issubclass(kind, SentencePieceTokenizer) for kind in kinds):
        raise ValueError(
            f"tokenizers must be one joint Tokenizer or two of SentencePiece, "
            f"got {kinds[0].__name__} and {'another ' * (source is not target)}"
            f"{kinds[1].__name__}"
        )


def save_tokenizers(
    source: TokenizerLike,
    target: TokenizerLike,
    folder: Path | str,
    model_max_length: int | None = None,
) -> list[str]:
    """Write the tokenizers of a model for :func:`load_tokenizers`; return the files' names.

    Args:
        source: a :class:`~transformer.data.tokenizer.Tokenizer`, or a
            :class:`~transformer.data.sentencepiece.SentencePieceTokenizer`.
        target: the same object if both languages share it.
        folder: made if it does not exist; its former tokenizers are removed.
        model_max_length: most tokens that the model takes, ``eos_id`` included; None for no limit.

    Raises:
        ValueError: if the tokenizers are of another kind, or two separate byte-pair encodings.
    """
    require_savable(source, target)
    if isinstance(source, SentencePieceTokenizer):
        assert isinstance(target, SentencePieceTokenizer)
        names = source.save_pretrained(folder, model_max_length, target)
    else:
        assert isinstance(source, Tokenizer)
        names = source.save_pretrained(folder, model_max_length)
    for name in {*TOKENIZER_FILES} - {*names}:  # a tokenizer of another kind is found first
        (Path(folder) / name).unlink(missing_ok=True)
    return names


def load_tokenizers(folder: Path | str) -> tuple[TokenizerLike, TokenizerLike]:
    """Load the tokenizers of source and target from the folder of a model.

    They are one object if both share ``tokenizer.json``. Checksums in the folder are compared.

    Raises:
        FileNotFoundError: if there are no such files.
        ValueError: if a file is damaged.
        ModuleNotFoundError: if `sentencepiece` is needed and not installed.
    """
    folder = Path(folder)
    if not (folder / TOKENIZER).is_file():
        if (folder / SOURCE_PIECES).is_file():
            return SentencePieceTokenizer.load_pair(folder)
        raise FileNotFoundError(f"{str(folder)!r} has no tokenizer: {TOKENIZER} missing")
    names = TOKENIZER, TOKENIZER_CONFIG  # older folders have only the first
    require_unchanged(folder, *(name for name in names if (folder / name).is_file()))
    joint = Tokenizer.load(folder / TOKENIZER)
    return joint, joint


def joint_checksum(source: TokenizerLike, target: TokenizerLike) -> str | None:
    """Return a checksum of the ids that two tokenizers give; None if one does not offer any."""
    sums = [getattr(each, "checksum", None) for each in (source, target)]
    return None if None in sums else "-".join(dict.fromkeys(map(str, sums)))


def require_equal(names: Iterable[str], tokenizer: Any, other: Any, owner: str) -> None:
    """Raise ValueError if a tokenizer differs in an attribute from what the error calls ``owner``.

    Args:
        names: of the attributes to compare, such as ``SPECIAL_IDS``.
        tokenizer: the tokenizer.
        other: another one, or a model's configuration.
        owner: what the error calls it.
    """
    for name in names:
        mine, theirs = getattr(tokenizer, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(f"tokenizer has {name} {mine}, {owner} {theirs}")


def require_own(model: Any, checksum: str | None, name: str = "tokenizer") -> None:
    """Refuse ids of another tokenizer than that of a model; a model without one adopts it.

    Args:
        model: a :class:`~transformer.model.base.TranslationModel`.
        checksum: from :func:`joint_checksum`; None passes.
        name: what the error calls the tokenizer.

    Raises:
        ValueError: if the model belongs to another one.
    """
    own = model.tokenizer_checksum
    if own is None:
        model.tokenizer_checksum = checksum
    elif checksum not in (own, None):
        raise ValueError(
            f"{name} (checksum {checksum}) is not the one that the model was trained with ({own}): "
            "the same id would mean another token"
        )
