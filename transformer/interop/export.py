"""The parts that all exports share: a check of the translator, and the README of the folder.

The README shows a program that translates with the other library and the tokenizer's files in the
folder, without this package. ``readmes/`` has one for each form, with gaps for the tokenizer.
"""

from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal, cast

from transformer.data.model_tokenizers import require_savable
from transformer.data.sentencepiece import (
    TARGET_VOCABULARY,
    VOCABULARY,
    SentencePieceTokenizer,
)
from transformer.data.tokenizer import Tokenizer
from transformer.inference.model_card import read_card
from transformer.inference.stepwise import EXTRA_LENGTH
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer.saving.files import write_atomically

Form = Literal["ctranslate2", "marian", "onnx", "torch"]
Tokenizers = tuple[Tokenizer, Tokenizer] | tuple[SentencePieceTokenizer, SentencePieceTokenizer]

README = "README.md"
#: Exponent of the length penalty ``|Y|^alpha`` that ranks sentences of usual length much as our
#: default does, which is the paper's penalty with alpha = 0.6.
LENGTH_PENALTY = 0.4

#: The library that loads the weights, by its name in model cards.
_LIBRARIES: dict[Form, str] = dict(
    ctranslate2="ctranslate2", marian="transformers", onnx="onnx", torch="pytorch"
)
_READMES = files("transformer.interop").joinpath("readmes")


def checked(translator: Translator) -> tuple[Transformer, Tokenizers]:
    """Return the model and the tokenizers of a translator, or raise ValueError."""
    model, source, target = translator.model, translator.tokenizer, translator.target_tokenizer
    if not isinstance(model, Transformer):
        raise ValueError(f"model must be a Transformer, got {type(model).__name__}")
    require_savable(source, target)
    return model, cast(Tokenizers, (source, target))


def write_readme(translator: Translator, folder: Path, form: Form) -> None:
    """Write a README that shows how to use an export, with the model card if there is one."""
    text = _fill(f"{form}.md", translator)
    codes = getattr(translator.tokenizer, "language_codes", [])
    if codes:
        text += f"A text begins with the code of its target language, such as `{codes[0]}`.\n"
    if translator.card is not None:
        card = read_card(translator.card)
        card.data.library_name = _LIBRARIES[form]  # type: ignore[attr-defined]
        text = f"---\n{card.data.to_yaml()}\n---\n\n{text}\n{card.text.strip()}\n"
    write_atomically(folder / README, lambda path: path.write_text(text, encoding="utf-8"))


def _fill(name: str, translator: Translator) -> str:
    source, target = translator.tokenizer, translator.target_tokenizer
    c, in_bytes = translator.model.config, isinstance(source, Tokenizer)
    own = getattr(source, "vocabulary", None) != getattr(target, "vocabulary", None)
    settings = dict(
        package="tokenizers" if in_bytes else "sentencepiece",
        imports="import tokenizers\n"
        if in_bytes
        else "import json\nimport re\nimport sentencepiece\n",
        source_file=VOCABULARY,
        target_file=TARGET_VOCABULARY if own else VOCABULARY,
        code=r">>\w+<<|" if getattr(source, "language_codes", []) else "",
        penalty=LENGTH_PENALTY,
        pad=c.pad_id,
        bos=c.bos_id,
        eos=c.eos_id,
        extra=EXTRA_LENGTH - 1,  # the source has EOS
        longest=c.max_length,
    )
    if name.endswith(".md"):
        settings["coding"] = _fill("bytes.txt" if in_bytes else "pieces.txt", translator)
    return Template(_READMES.joinpath(name).read_text(encoding="utf-8")).substitute(settings)
