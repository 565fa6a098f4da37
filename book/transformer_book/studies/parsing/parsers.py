"""Constituency parsing by translation, with the Transformer of Table 4 and a recurrent network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.baselines import RecurrentConfig, RecurrentTranslator
from transformer.inference.decoding import beam_search
from transformer.inference.options import LengthPenalty
from transformer.inference.stepwise import next_log_probabilities, read_ended
from transformer.model.base import TranslationModel, evaluation_mode
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.parsing.linearised_trees import Parse, PartialTree, from_brackets
from transformer_book.studies.parsing.tree_vocabulary import BOS_ID, EOS_ID, TreeVocabulary

#: Most pieces of an output beyond the number of words.
EXTRA_LENGTH = 300


class _BracketsOnly:
    """Restrict the logits to the first ``outputs`` ids: a parser never writes a word."""

    outputs: int | None = None

    @property
    def output_weight(self) -> Float[Tensor, "outputs d_model"]:
        # This class is only mixed into models.
        return super().output_weight[: self.outputs]  # type: ignore[misc]


class TransformerParser(_BracketsOnly, Transformer):
    """A Transformer whose output matrix has rows for brackets only, unlike the paper's 16K."""


class RecurrentParser(_BracketsOnly, RecurrentTranslator):
    """A recurrent network with attention whose output matrix has rows for brackets only."""


Parser = TransformerParser | RecurrentParser


def build_parser(config: TransformerConfig | RecurrentConfig, vocabulary: TreeVocabulary) -> Parser:
    """Make a parser with fresh weights; the vocabulary size of ``config`` is replaced."""
    kinds = {TransformerConfig: TransformerParser, RecurrentConfig: RecurrentParser}
    model = kinds[type(config)](replace(config, vocab_size=len(vocabulary)))
    model.outputs = len(vocabulary.outputs)
    return model


@dataclass(frozen=True)
class Search:
    """Options of the search; the defaults are the paper's (section 6.3)."""

    beam_size: int = 21  #: 1 is greedy
    alpha: float = 0.3  #: exponent of the length penalty
    extra_length: int = EXTRA_LENGTH  #: pieces of an output beyond the number of words
    penalty: LengthPenalty = "gnmt"
    trees_only: bool = False  #: search among trees only, for the most probable one


def search_trees(
    model: TranslationModel,
    vocabulary: TreeVocabulary,
    source: Int[Tensor, "B S"],
    num_words: int,
    max_length: int,
    beam_size: int = 1,
) -> list[list[int]]:
    """Keep only beginnings that can become a tree, with the model's own probabilities of them."""
    sentences, width = len(source), beam_size
    first = torch.arange(sentences)[:, None] * width  # row of each sentence's first hypothesis
    trees = [PartialTree(num_words, max_length - 1) for _ in range(sentences * width)]
    total = torch.full((sentences, width), -torch.inf)
    total[:, 0] = 0.0
    tokens = torch.full((sentences * width,), BOS_ID)
    with torch.inference_mode(), evaluation_mode(model):
        state = model.start_decoding(source, max_length, width)
        while True:
            log_probabilities = next_log_probabilities(model, tokens.to(source.device), state).cpu()
            allowed = torch.from_numpy(np.stack([vocabulary.allowed(tree) for tree in trees]))
            step = log_probabilities.masked_fill(~allowed, -torch.inf)
            step[tokens == EOS_ID, EOS_ID] = 0.0  # what has ended keeps its probability
            grown = (total[:, :, None] + step.view(sentences, width, -1)).flatten(1)
            total, choice = grown.topk(width)
            parents = (first + choice // step.shape[-1]).flatten()
            # A place that no beginning fills counts as ended.
            tokens = (choice % step.shape[-1]).where(total > -torch.inf, EOS_ID).flatten()
            trees = [trees[row].copy() for row in parents]
            for tree, token in zip(trees, tokens.tolist(), strict=True):
                if token != EOS_ID:
                    tree.add(vocabulary.outputs[token])
            # A probability only falls, so nothing can pass a best hypothesis that has ended.
            best = tokens.view(sentences, width)[:, 0]
            if all(read_ended(best == EOS_ID, log_probabilities, EOS_ID)):
                return [vocabulary.encode_brackets(tree.pieces) for tree in trees[::width]]
            state.reorder(parents.to(source.device))


def parse(
    model: TranslationModel,
    vocabulary: TreeVocabulary,
    sentences: Sequence[Sequence[str]],
    search: Search = Search(),  # noqa: B008 (frozen)
    batch_size: int = 64,
) -> list[Parse]:
    """Parse sentences, and repair outputs that are no trees; a batch has equally long sentences."""
    device = next(model.parameters()).device
    by_length: dict[int, list[int]] = {}
    for i, words in enumerate(sentences):
        by_length.setdefault(len(words), []).append(i)
    parses: dict[int, Parse] = {}
    for length, rows in sorted(by_length.items()):
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            read = [[*vocabulary.encode_words(sentences[i]), EOS_ID] for i in batch]
            source, longest = torch.tensor(read, device=device), length + search.extra_length
            if search.trees_only:
                found = search_trees(model, vocabulary, source, length, longest, search.beam_size)
            else:
                hypotheses = beam_search(
                    model, source, search.beam_size, search.alpha, longest, penalty=search.penalty
                )
                found = [each.tokens for each in hypotheses]
            for i, ids in zip(batch, found, strict=True):
                parses[i] = from_brackets(vocabulary.decode_brackets(ids), sentences[i])
    return [parses[i] for i in range(len(sentences))]


def malformed_share(parses: Sequence[Parse]) -> float:
    """Return the per cent of the outputs that were not trees over their words."""
    return 100 * sum(bool(parse.faults) for parse in parses) / len(parses)
