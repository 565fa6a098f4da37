from dataclasses import replace

import pytest
import torch

from transformer.baselines import RecurrentConfig
from transformer.data.corpora.treebank import Treebank, read_trees
from transformer.model.config import TransformerConfig
from transformer.training.config import TrainingConfig
from transformer_book.studies.parsing.bracketing import compare_all
from transformer_book.studies.parsing.linearised_trees import PartialTree, to_brackets
from transformer_book.studies.parsing.parsers import Search, build_parser, parse, search_trees
from transformer_book.studies.parsing.study import (
    ParsingRecipe,
    ParsingText,
    outputs_of,
    parsing_text,
    parts_to_score,
    scores_of,
    train_parser,
)
from transformer_book.studies.parsing.tree_vocabulary import TreeVocabulary, word_class

pytestmark = pytest.mark.usefixtures("unchecked")

TREES = list(
    read_trees("""
    (S (NP (PRP We)) (VP (VBP see) (NP (DT the) (NN cat))) (. .))
    (S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (PRP us))) (. .))
    (NP (NP (DT the) (NN cat)) (PP (IN of) (NP (PRP us))))
    (HEADING (NP (NN cat)))
    (S (VP (VBP see) (NP (DT the) (NN cat)) (PP (IN of) (NP (PRP us)))))
    """)
)
WORDS = [tree.words() for tree in TREES]

CONFIGS = [
    TransformerConfig(8, d_model=32, d_ff=64, num_heads=2, num_layers=1, dropout=0.0),
    RecurrentConfig(8, d_model=32, dropout=0.0),
]


@pytest.fixture(scope="module")
def vocabulary():
    return TreeVocabulary.learn(TREES, min_count=1)


def test_the_outputs_come_first_and_hold_no_word(vocabulary):
    brackets = {side + label for label in ("HEADING", "NP", "PP", "S", "VP") for side in "()"}
    assert vocabulary.outputs[:4] == ["<pad>", "<bos>", "<eos>", "XX"]
    assert set(vocabulary.outputs[4:]) == brackets
    assert len(vocabulary) == 14 + len(vocabulary.inputs)
    pieces = to_brackets(TREES[0])
    ids = vocabulary.encode_brackets(pieces)
    assert max(ids) < 14 <= min(vocabulary.encode_words(["We", "cat", "never-seen"]))
    assert vocabulary.decode_brackets([1, *ids, 2, 0]) == pieces


def test_tags_take_the_place_of_the_word():
    vocabulary = TreeVocabulary.learn(TREES, min_count=1, tags=True)
    tags = [".", "DT", "IN", "NN", "PRP", "VBP", "VBZ"]
    assert vocabulary.tags and vocabulary.outputs[3:10] == tags
    [unseen] = read_trees("(NP (NNS cats))")
    pairs = vocabulary.encode_trees([TREES[3], unseen])  # a tag that the model cannot write
    assert len(pairs) == 1
    written = vocabulary.decode_brackets(pairs.target[0])
    assert written == ["(HEADING", "(NP", "NN", ")NP", ")HEADING"]


def test_rare_words_become_their_class():
    names = ["cat cat cat", "walking walking walking", "jumping", "running", "2003", "1999", "12.5"]
    trees = [next(read_trees("".join(["(NP", *(f" (N {w})" for w in line.split()), ")"])))
             for line in names]  # fmt: skip
    vocabulary = TreeVocabulary.learn(trees, min_count=2)
    assert vocabulary.inputs == ["<rare>", "<0>", "<a-ng>", "cat", "walking"]
    cat, walking, sleeping, year, greek = vocabulary.encode_words(
        ["cat", "walking", "sleeping", "1848", "ΑΒΓ"]
    )
    names = [vocabulary.inputs[i - len(vocabulary.outputs)]
             for i in (cat, walking, sleeping, year, greek)]  # fmt: skip
    assert names == ["cat", "walking", "<a-ng>", "<0>", "<rare>"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("cats", "<a-ts>"), ("Cats", "<Aa-ts>"), ("DNA", "<AA-na>"), ("mRNA", "<aA-na>"), ("a", "<a>"),
     ("3.5", "<0>"), ("p53", "<a0>"), ("%", "<?>"), ("10-fold", "<a0-ld>"), ("A", "<aA>")],
)  # fmt: skip
def test_classes_of_words(word, expected):
    assert word_class(word) == expected


def test_pairs_to_train_on(vocabulary):
    [unseen] = read_trees("(SINV (VP (VBP see)))")
    pairs = vocabulary.encode_trees([*TREES, unseen])
    assert len(pairs) == len(TREES)  # a label that the model cannot write cannot be trained on
    assert pairs.source[0] == [*vocabulary.encode_words(WORDS[0]), 2]
    assert pairs.target[0] == [*vocabulary.encode_brackets(to_brackets(TREES[0])), 2]


@pytest.mark.parametrize("config", CONFIGS, ids=["transformer", "recurrent"])
def test_logits_are_those_of_the_whole_model_for_brackets(config, vocabulary):
    torch.manual_seed(0)
    model = build_parser(config, vocabulary).eval()
    source, target = torch.tensor([[20, 21, 2]]), torch.tensor([[1, 4, 3]])
    found = model(source, target)
    assert found.shape == (1, 3, len(vocabulary.outputs))
    model.outputs = None
    torch.testing.assert_close(model(source, target)[..., : len(vocabulary.outputs)], found)


@pytest.mark.parametrize("width", [1, 3, 30])
@pytest.mark.parametrize("config", CONFIGS, ids=["transformer", "recurrent"])
def test_untrained_parsers_write_nothing_but_trees_if_restricted(config, width, vocabulary):
    torch.manual_seed(0)
    model = build_parser(config, vocabulary)
    free = parse(model, vocabulary, WORDS, Search(beam_size=1, extra_length=20))
    found = parse(model, vocabulary, WORDS, Search(width, 0.0, extra_length=20, trees_only=True))
    assert all(each.faults for each in free)
    assert not any(each.faults for each in found)
    assert [each.tree.words() for each in found] == WORDS


def all_trees(vocabulary, words, room):
    """The ids of every tree over some words with at most ``room`` pieces."""
    beginnings, found = [[]], []
    while beginnings:
        ids = beginnings.pop()
        tree = PartialTree(words, room)
        for piece in vocabulary.decode_brackets(ids):
            tree.add(piece)
        if tree.complete:
            found.append(ids)
        else:
            beginnings += [[*ids, int(i)] for i in vocabulary.allowed(tree).nonzero()[0]]
    return found


@pytest.mark.parametrize("config", CONFIGS, ids=["transformer", "recurrent"])
def test_a_wide_search_finds_the_most_probable_of_all_trees(config, vocabulary):
    torch.manual_seed(1)
    model = build_parser(replace(config, dropout=0.5), vocabulary)  # in training mode
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    sentences = ["the cat", "We see", "cat .", "sees us", "of the", "cat of"]
    source = torch.tensor([[*vocabulary.encode_words(s.split()), 2] for s in sentences])
    trees = all_trees(vocabulary, words=2, room=6)
    assert len(trees) == 5 + 3 * 25  # (A w w)A; (A (B w w)B )A, with B around one word or both
    found = search_trees(model, vocabulary, source, num_words=2, max_length=7, beam_size=40)
    assert model.training
    model.eval()
    for row, ids in zip(source, found, strict=True):
        longest = max(map(len, trees))
        target = torch.tensor([[1, *each, 2] + [0] * (longest - len(each)) for each in trees])
        logits = model(row.expand(len(trees), -1), target[:, :-1])
        steps = logits.log_softmax(-1).gather(-1, target[:, 1:, None]).squeeze(-1)
        total = steps.masked_fill(target[:, 1:] == 0, 0).sum(1)
        assert ids == trees[total.argmax()]


@pytest.mark.parametrize(
    ("options", "message"),
    [(dict(trees_only=True), "alpha must be 0 with trees_only, got 0.3"),
     (dict(beam_size=0), "beam_size must be at least 1, got 0"),
     (dict(extra_length=2), "extra_length must be at least 3, got 2")],
)  # fmt: skip
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Search(**options)


def test_logits_that_are_not_finite_are_refused(vocabulary):
    model = build_parser(CONFIGS[0], vocabulary)
    next(model.parameters()).data.fill_(torch.nan)
    with pytest.raises(ValueError, match="not finite"):
        parse(model, vocabulary, WORDS, Search(2, 0.0, trees_only=True))


@pytest.mark.parametrize("tags", [False, True], ids=["XX", "tags"])
@pytest.mark.parametrize("config", CONFIGS, ids=["transformer", "recurrent"])
def test_five_trees_can_be_learned_by_heart(tmp_path, config, tags):
    training = TrainingConfig(
        max_steps=120, batch_tokens=200, warmup_steps=40, learning_rate_factor=0.25,
        max_length=None, label_smoothing=0.0, log_every=120, validate_every=120,
        save_every=120, keep_last=1,
    )  # fmt: skip
    vocabulary = TreeVocabulary.learn(TREES, min_count=1, tags=tags)
    recipe, text = ParsingRecipe(config, training), ParsingText(TREES, TREES, TREES, vocabulary)
    model, _ = train_parser(recipe, text, tmp_path, watched=5, progress=False)
    for search in (Search(beam_size=1), Search(beam_size=3), Search(2, 0.0, trees_only=True)):
        parses = parse(model, vocabulary, WORDS, search)
        assert not any(found.faults for found in parses)
        assert compare_all(TREES, [found.tree for found in parses]).f1 == 100
    outputs = outputs_of(model, vocabulary, TREES, Search(beam_size=1))
    assert outputs == [" ".join(to_brackets(tree, tags)) for tree in TREES]


def test_scores_count_what_is_mended():
    trees = TREES[:2]
    right = " ".join(to_brackets(trees[1]))
    # The first output lacks a word and its end: S and VP still fit, the inner NP does not.
    scores = scores_of(trees, ["(S (NP XX )NP (VP XX (NP XX )NP XX", right])
    assert scores["malformed"] == 50
    assert scores["faults"] == {"too few words": 1, "brackets left open": 1}
    # (S 0-4) (NP 0-1) (VP 1-4) (NP 2-4) against (S 0-4) (NP 0-1) (VP 1-4) (NP 2-3); then 4 of 4.
    assert (scores["precision"], scores["recall"]) == (87.5, 87.5)
    assert scores["f1_skipping"] == 100 and scores["exact_match"] == 50
    assert scores["f1_by_length"]["1-5"] == {"sentences": 2, "f1": 87.5}


def test_text_is_split_and_cut():
    words = "".join(f" (N w{i})" for i in range(30))
    [long] = read_trees(f"(NP{words})")
    bank = Treebank("x", "y", "z", {f"a{i}": [*TREES, long] for i in range(20)})
    text = parsing_text(bank, max_words=25)
    assert len(text.train) == 16 * 5 and len(text.validation) == 5
    assert len(text.test) == 3 * 6  # a test keeps what is long
    parts = parts_to_score(text.test, max_words=25)
    assert [len(part) for part in parts.values()] == [15, 15, 3]
    assert all(len(tree.leaves()) == 30 for tree in parts["longer"])
