"""Constituency parsing by translation: the Transformer of the paper's Table 4, and a recurrent one.

Paper: section 6.3, Table 4
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.baselines import RecurrentConfig, RecurrentTranslator
from transformer.data.corpora.treebank import Tree
from transformer.inference.decoding import LengthPenalty, beam_search
from transformer.inference.stepwise import StepwiseModel
from transformer.lab.parsing.linearised_trees import Parse, from_brackets
from transformer.lab.parsing.tree_vocabulary import EOS_ID, TreeVocabulary
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer

#: Most pieces of an output beyond the number of words.
EXTRA_LENGTH = 300


class _BracketsOnly:
    """Computes logits for the first ``outputs`` ids only: a parser never writes a word."""

    outputs: int | None = None

    @property
    def output_weight(self) -> Float[Tensor, "outputs d_model"]:
        # The model's own: this class is only ever mixed into one.
        return super().output_weight[: self.outputs]  # type: ignore[misc]


class TransformerParser(_BracketsOnly, Transformer):
    """A Transformer whose output matrix has rows for brackets only.

    All else is the :class:`~transformer.model.transformer.Transformer`. The paper keeps one softmax
    over all 16K tokens, of which parsing uses a few dozen.

    Paper: section 6.3
    """


class RecurrentParser(_BracketsOnly, RecurrentTranslator):
    """A recurrent network with attention whose output matrix has rows for brackets only.

    All else is the :class:`~transformer.baselines.recurrent.RecurrentTranslator`.

    Paper: section 6.3 (what RNN sequence-to-sequence models did before)
    """


Parser = TransformerParser | RecurrentParser


def build_parser(config: TransformerConfig | RecurrentConfig, vocabulary: TreeVocabulary) -> Parser:
    """Make a parser with fresh weights.

    Args:
        config: sizes; its vocabulary is replaced.
        vocabulary: of the parser.

    Raises:
        TypeError: if the configuration is of neither kind.

    Paper: section 6.3
    """
    kinds = {TransformerConfig: TransformerParser, RecurrentConfig: RecurrentParser}
    if type(config) not in kinds:
        raise TypeError(f"config must be one of {[k.__name__ for k in kinds]}, got {config!r}")
    model = kinds[type(config)](replace(config, vocab_size=len(vocabulary)))
    model.outputs = len(vocabulary.outputs)
    return model


@dataclass(frozen=True)
class Search:
    """How outputs are searched for; the defaults are the paper's.

    Args:
        beam_size: 1 is greedy.
        alpha: exponent of the length penalty.
        extra_length: most pieces of an output, the end counted, beyond the number of words.
        penalty: formula of the length penalty.

    Paper: section 6.3
    """

    beam_size: int = 21
    alpha: float = 0.3
    extra_length: int = EXTRA_LENGTH
    penalty: LengthPenalty = "gnmt"


@torch.inference_mode()
def parse(
    model: StepwiseModel,
    vocabulary: TreeVocabulary,
    sentences: Sequence[Sequence[str]],
    search: Search = Search(),  # noqa: B008 (frozen)
    batch_size: int = 64,
) -> list[Parse]:
    """Parse sentences, and mend what is no tree.

    The rules are those of :func:`~transformer.lab.parsing.linearised_trees.from_brackets`.

    Args:
        model: made by :func:`build_parser`.
        vocabulary: of the model.
        sentences: words of each, at least one.
        search: beam and limits.
        batch_size: sentences at a time; those of a batch have the same number of words.

    Returns:
        A tree over exactly the words of each sentence, with the faults that were mended.

    Raises:
        ValueError: if a sentence has no words.

    Paper: section 6.3
    """
    device = next(model.parameters()).device
    by_length: dict[int, list[int]] = {}
    for i, words in enumerate(sentences):
        if not words:
            raise ValueError(f"sentences must have words, number {i} has none")
        by_length.setdefault(len(words), []).append(i)
    parses: dict[int, Parse] = {}
    for length, rows in sorted(by_length.items()):
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            ids = [[*vocabulary.encode_words(sentences[i]), EOS_ID] for i in batch]
            found = beam_search(
                model,
                torch.tensor(ids, device=device),
                search.beam_size,
                search.alpha,
                length + search.extra_length,
                penalty=search.penalty,
            )
            for i, hypothesis in zip(batch, found, strict=True):
                pieces = vocabulary.decode_brackets(hypothesis.tokens)
                parses[i] = from_brackets(pieces, sentences[i])
    return [parses[i] for i in range(len(sentences))]


def malformed_share(parses: Sequence[Parse]) -> float:
    """Per cent of the outputs that were no tree over their words.

    Args:
        parses: at least one.
    """
    return 100 * sum(bool(parse.faults) for parse in parses) / len(parses)


def no_longer_than(trees: Sequence[Tree], max_words: int) -> list[Tree]:
    """Return the trees of at most ``max_words`` words, punctuation included."""
    return [tree for tree in trees if len(tree.leaves()) <= max_words]
