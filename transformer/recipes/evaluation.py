"""Scores of translations: BLEU and chrF as the records of runs have them."""

from typing import Unpack

from transformer.data.moses import TextForm
from transformer.data.parallel import Split
from transformer.inference.metrics import Score, bleu, chrf
from transformer.inference.options import SearchKeywords, SearchOptions
from transformer.inference.translator import Translator


def evaluate(
    translator: Translator,
    split: Split,
    options: SearchOptions | None = None,
    *,
    batch_size: int = 64,
    progress: bool | None = None,
    text: TextForm = "plain",
    **search: Unpack[SearchKeywords],
) -> list[Score]:
    """Translate a split and return BLEU and chrF, with their signatures.

    BLEU tokenises plain text and leaves Moses tokens as they are.

    Args:
        translator: the model and its tokenizer.
        split: sentences and their references.
        options: search options; None for the paper's.
        batch_size: sentences to translate at once.
        progress: show a progress bar; None shows one in a live notebook, after a second.
        text: form of the split and of the model's training text.
        search: changes to ``options``, such as ``beam_size=1``.
    """
    translations = translator.translate(
        split.source,
        SearchOptions.of(options, **search),
        batch_size=batch_size,
        progress=progress,
        sentence_case=False,
    )
    return scores(translations, split, text)


def scores(translations: list[str], split: Split, text: TextForm = "plain") -> list[Score]:
    """Return BLEU and chrF of finished translations; arguments as in :func:`evaluate`."""
    return [bleu_of(translations, split, text), chrf(translations, split.target)]


def bleu_of(translations: list[str], split: Split, text: TextForm = "plain") -> Score:
    """Return BLEU on tokens that fit the form of the text."""
    return bleu(translations, split.target, "13a" if text == "plain" else "none")
