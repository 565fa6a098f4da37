"""Table 4 at a small size: two parsers, trained on the same articles and tested on unseen ones."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from transformer.baselines import RecurrentConfig
from transformer.data.batching import TokenBatches
from transformer.data.corpora.treebank import (
    Tree,
    load_treebank,
    no_longer_than,
    split_articles,
)
from transformer.model.config import TransformerConfig
from transformer.recipes.record import read_record
from transformer.training.checkpoint import average_checkpoints
from transformer.training.config import TrainingConfig
from transformer.training.trainer import Trainer
from transformer_book.studies.parsing.bracketing import compare_all
from transformer_book.studies.parsing.linearised_trees import from_brackets
from transformer_book.studies.parsing.parsers import (
    Parser,
    Search,
    build_parser,
    malformed_share,
    parse,
)
from transformer_book.studies.parsing.tree_vocabulary import TreeVocabulary
from transformer_book.studies.recording import Recording

#: Words of the longest training sentence.
MAX_WORDS = 20

#: The results; the outputs of the parsers lie beside them.
RECORD = Path(__file__).parent / "record.json"

#: Greedy search, an ordinary beam, the paper's, and the same three among trees only.
SEARCHES = {
    "greedy": Search(beam_size=1),
    "beam 4": Search(beam_size=4),
    "beam 21": Search(),
    "trees, greedy": Search(beam_size=1, alpha=0.0, trees_only=True),
    "trees, beam 4": Search(beam_size=4, alpha=0.0, trees_only=True),
    "trees, beam 21": Search(alpha=0.0, trees_only=True),
}

# All see the same sentences in each step. Gradients of recurrent networks can explode over many
# steps, so they are clipped, and the Transformer's are as well.
_TRAINING = TrainingConfig(
    max_steps=6000, batch_tokens=1200, max_length=None, warmup_steps=800, learning_rate_factor=0.4,
    clip_norm=1.0, log_every=100, validate_every=500, save_every=250, keep_last=5,
)  # fmt: skip


@dataclass(frozen=True)
class ParsingRecipe:
    """A parser, what it writes, and its training."""

    model: TransformerConfig | RecurrentConfig
    training: TrainingConfig = _TRAINING
    tags: bool = False  #: whether it writes the tag of each word, not ``XX``


# The vocabulary size is replaced by that of the treebank.
_MODELS: dict[str, TransformerConfig | RecurrentConfig] = {
    "transformer": TransformerConfig(
        vocab_size=8, d_model=128, d_ff=256, num_heads=4, num_layers=2, dropout=0.1,
        attention_dropout=0.1,
    ),
    "recurrent": RecurrentConfig(vocab_size=8, d_model=128, d_hidden=192, dropout=0.1),
}  # fmt: skip

#: Seeds of the recorded runs.
SEEDS = (1, 2)

#: What is recorded, by architecture and by what is written for a word.
RECIPES: dict[tuple[str, str], ParsingRecipe] = {
    (name, word): ParsingRecipe(model, tags=word == "tags")
    for word in ("XX", "tags")
    for name, model in _MODELS.items()
}


def run_name(architecture: str, word: str, seed: int) -> str:
    """Name a run in the record, and its outputs."""
    return f"{architecture}, {word}, seed {seed}"


@dataclass(frozen=True)
class ParsingText:
    """The trees of a treebank, split by article, and the vocabulary of the training part."""

    train: list[Tree]
    validation: list[Tree]
    test: list[Tree]  #: of any length
    vocabulary: TreeVocabulary


def parsing_text(tags: bool = False) -> ParsingText:
    """Split CRAFT by article, and leave long sentences out of training and validation."""
    treebank = load_treebank("craft")
    parts = {name: treebank.trees(a) for name, a in split_articles(treebank.articles).items()}
    train = no_longer_than(parts["train"], MAX_WORDS)
    validation = no_longer_than(parts["validation"], MAX_WORDS)
    return ParsingText(train, validation, parts["test"], TreeVocabulary.learn(train, tags=tags))


def train_parser(
    recipe: ParsingRecipe, text: ParsingText, folder: Path | str
) -> tuple[Parser, Trainer]:
    """Train a parser; return it with the mean of its last weights, and its trainer."""
    training = recipe.training
    torch.manual_seed(training.seed)
    model = build_parser(recipe.model, text.vocabulary)
    encode = text.vocabulary.encode_trees
    validation = TokenBatches(encode(text.validation), training.batch_tokens)
    trainer = Trainer(model, encode(text.train), training, folder, validation=validation)
    if not trainer.fit():
        raise InterruptedError(f"training stopped at step {trainer.step}; run it again to resume")
    model.load_state_dict(average_checkpoints(trainer.checkpoints()))
    return model, trainer


def parts_to_score(test: Sequence[Tree]) -> dict[str, list[Tree]]:
    """Choose test trees: "all" as long as in training, a "sample" of them, "longer" ones."""
    short, double = no_longer_than(test, MAX_WORDS), no_longer_than(test, 2 * MAX_WORDS)
    longer = [tree for tree in double if len(tree.leaves()) > MAX_WORDS]
    return {"all": short, "sample": _spread(short, 300), "longer": _spread(longer, 150)}


def _spread(trees: Sequence[Tree], count: int) -> list[Tree]:
    """Select about ``count`` trees at equal distances."""
    return list(trees[:: max(1, len(trees) // count)][:count])


#: The trees on which each search is scored.
PLAN = [
    ("greedy", "all"),
    ("greedy", "longer"),
    ("trees, greedy", "all"),
    ("trees, beam 4", "all"),
    ("trees, beam 4", "longer"),
    ("beam 4", "sample"),
    ("beam 21", "sample"),
    ("trees, beam 21", "sample"),
]


def outputs_of(
    model: Parser, vocabulary: TreeVocabulary, trees: Sequence[Tree], search: Search
) -> list[str]:
    """Return the unrepaired outputs for the words of some trees: brackets separated by spaces."""
    found = parse(model, vocabulary, [tree.words() for tree in trees], search)
    return [" ".join(each.pieces) for each in found]


def scores_of(trees: Sequence[Tree], outputs: Sequence[str]) -> dict[str, Any]:
    """Repair the outputs of :func:`outputs_of`; compare them with the right trees, in per cent."""
    pairs = zip(outputs, trees, strict=True)
    parses = [from_brackets(line.split(), tree.words()) for line, tree in pairs]
    found = compare_all(trees, [each.tree for each in parses])
    return dict(
        sentences=found.sentences,
        f1=found.f1,
        exact_match=found.exact_match,
        malformed=malformed_share(parses),
    )


HEADING = dict(searches={name: asdict(search) for name, search in SEARCHES.items()})


def fill(recording: Recording) -> None:
    """Train and test what is missing, the first seed of all parsers before the second of any."""
    texts = {word: parsing_text(word == "tags") for word in ("XX", "tags")}
    parts = parts_to_score(texts["XX"].test)
    runs = recording.content.setdefault("runs", {})
    for seed in SEEDS:
        for (architecture, word), recipe in RECIPES.items():
            name = run_name(architecture, word, seed)
            if name not in runs:
                seeded = replace(recipe, training=replace(recipe.training, seed=seed))
                found = _run(name, seeded, texts[word], parts, recording.texts)
                runs[name] = dict(architecture=architecture, word=word, seed=seed) | found
                recording.save(f"{name}: F1 {found['scores'][0]['f1']:.1f}")


def _run(
    name: str,
    recipe: ParsingRecipe,
    text: ParsingText,
    parts: dict[str, list[Tree]],
    outputs: dict[str, list[str]],
) -> dict[str, Any]:
    """Train a parser, add what it writes to ``outputs``, and return its results."""
    with TemporaryDirectory() as folder:
        model, trainer = train_parser(recipe, text, folder)
    scores = []
    for search, part in PLAN:
        found = outputs_of(model, text.vocabulary, parts[part], SEARCHES[search])
        outputs[f"{name}, {search}, {part}"] = found
        scores.append(dict(search=search, part=part) | scores_of(parts[part], found))
    return dict(
        model=model.config.to_dict(),
        training=recipe.training.to_dict(),
        parameters=model.num_parameters(),
        minutes=trainer.seconds / 60,
        scores=scores,
    )


def recorded_study() -> dict[str, Any]:
    """Read the record."""
    return read_record(RECORD)
