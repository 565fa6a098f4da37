"""Trees become brackets and come back, and phrases are counted as EVALB counts them."""

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.baselines import RecurrentConfig
from transformer.data.corpora.local import EMBEDDED
from transformer.data.corpora.treebank import (
    CRAFT_FILE,
    Tree,
    load_treebank,
    read_trees,
    split_articles,
)
from transformer.model.config import TransformerConfig
from transformer_book.studies.parsing import study
from transformer_book.studies.parsing.bracketing import Bracketing, compare, compare_all
from transformer_book.studies.parsing.linearised_trees import (
    PartialTree,
    from_brackets,
    to_brackets,
)
from transformer_book.studies.parsing.parsers import build_parser, search_trees
from transformer_book.studies.parsing.tree_vocabulary import TreeVocabulary
from transformer_book.studies.recording import stored_texts


def tree(text):
    [found] = read_trees(text)
    return found


def test_a_phrase_attached_elsewhere():
    # "with it" hangs from the verb: NP over "a cat with it" is missing, all else is there.
    other = "(S (NP (X I)) (VP (X saw) (NP (X a) (X cat)) (PP (X with) (NP (X it)))) (X .))"
    right = "(S (NP (A I)) (VP (A saw) (NP (NP (A a) (A cat)) (PP (A with) (NP (A it))))) (. .))"
    found = compare(tree(right), tree(other))
    assert (found.matched, found.gold, found.predicted) == (6, 7, 6)
    assert found.f1 == pytest.approx(1200 / 13) and found.exact_match == 0


@pytest.mark.parametrize(
    "gold, other, expected",
    [
        ("(S (NP (NN a)) (VP (VB b)))", "(S (NP (X a)) (NP (X b)))", (2, 3, 3)),  # labels count
        ("(S (NP (NN a)) (VB b))", "(S (NP (VB a)) (NN b))", (2, 2, 2)),  # tags do not
        ("(S (PRN (-LRB- [) (NN a) (-RRB- ])) (VP (VB c)))",  # brackets are not punctuation
         "(S (X [) (PRN (X a)) (X ]) (VP (X c)))", (2, 3, 3)),
        ("(TOP (S (NP (NN a)) (VB b)))", "(S (NP (X a)) (X b))", (2, 2, 2)),
        ("(S1 (S (NP (NN a)) (VB b)))", "(S (NP (X a)) (X b))", (2, 2, 2)),
        ("(VP (VB a) (PRT (RP b)))", "(VP (X a) (ADVP (X b)))", (2, 2, 2)),
        # Punctuation is that of the right tags, wherever it hangs.
        ("(S (NP (NN a) (, ,) (NN b)) (: ;) (VP (VB c)) (. .))",
         "(S (NP (, a) (X ,) (X b) (X ;)) (VP (X c) (X .)))", (3, 3, 3)),
        ("(S (PRN (: -)) (VP (VB c)))", "(S (NP (X -)) (VP (X c)))", (2, 2, 2)),
        # Two equal phrases must both be found.
        ("(S (NP (NP (NN a))) (VB b))", "(S (NP (X a)) (X b))", (2, 3, 2)),
        ("(S (NP (NP (NN a))) (VB b))", "(S (NP (NP (X a))) (X b))", (3, 3, 3)),
        ("(S (NP (NN a)) (VB b))", "(S (NP (NP (X a))) (X b))", (2, 2, 3)),
    ],
)  # fmt: skip
def test_rules_of_evalb(gold, other, expected):
    found = compare(tree(gold), tree(other))
    assert (found.matched, found.gold, found.predicted) == expected


def test_sentences_are_added_before_shares_are_taken():
    gold = [tree("(S (NP (NN a)) (VP (VB b)))"), tree("(NP (NN a))")]
    guess = [tree("(S (NP (X a)) (VP (X b)))"), tree("(VP (X a))")]
    found = compare_all(gold, guess)
    assert found == Bracketing(matched=3, gold=4, predicted=4, exact=1, sentences=2)
    assert found.f1 == 75 and found.exact_match == 50  # a mean over sentences would give F1 50


LABELS = ["S", "NP", "VP"]


def phrase_of(part):
    def make(label, parts):
        return Tree(label, tuple(parts))

    return st.builds(make, st.sampled_from(LABELS), st.lists(part, min_size=1, max_size=3))


LEAVES = st.sampled_from("abc").map(lambda word: Tree("NN", (), word))
TREES = phrase_of(st.recursive(LEAVES, phrase_of))


PIECES = ["XX", *(side + label for label in LABELS for side in "()")]


@given(TREES, st.booleans())
def test_there_and_back(tree, tags):
    parse = from_brackets(to_brackets(tree, tags), tree.words())
    assert parse.tree.phrases() == tree.phrases() and parse.tree.words() == tree.words()
    assert parse.faults == ()
    assert not tags or parse.tree == tree


@given(st.data(), st.integers(1, 6), st.integers(2, 20))
def test_whatever_is_chosen_becomes_a_tree(data, length, extra):
    partial, pieces = PartialTree(length, room=length + extra), []
    while not partial.complete:
        may = [f"({label}" for label in LABELS if partial.may_open()]
        may += ["XX"] if partial.may_take_word() else []
        may += [f"){partial.open[-1]}"] if partial.may_close() else []
        pieces.append(data.draw(st.sampled_from(may)))
        partial.add(pieces[-1])
    assert len(pieces) <= length + extra
    assert from_brackets(pieces, ["w"] * length).faults == ()


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(1, 8))
def test_whatever_comes_becomes_a_tree_over_the_words(pieces, length):
    words = [f"w{i}" for i in range(length)]
    parse = from_brackets(pieces, words)
    assert parse.tree.words() == words
    assert all(start < end for _, start, end in parse.tree.phrases())
    # No fault is reported if and only if the pieces were that tree.
    assert (to_brackets(parse.tree) == pieces) == (parse.faults == ())


@pytest.mark.parametrize(
    ("text", "words", "tree", "faults"),
    [
        ("(S XX )S", "a b", "(S (XX a) (XX b))", ("too few words",)),
        ("(S XX XX )S", "a", "(S (XX a))", ("too many words",)),
        ("(S (NP XX )S", "a", "(S (NP (XX a)))", ("brackets that do not match",)),
        ("(S XX )NP )S", "a", "(S (XX a))", ("brackets that do not match",)),
        ("(S (NP XX", "a", "(S (NP (XX a)))", ("brackets left open",)),
        ("(S (NP )NP XX )S", "a", "(S (XX a))", ("an empty phrase",)),
        ("(S XX )S (NP XX )NP", "a b", "(TOP (S (XX a)) (NP (XX b)))", ("several roots",)),
        ("XX", "a", "(TOP (XX a))", ("several roots",)),
        ("", "a b", "(TOP (XX a) (XX b))", ("too few words", "several roots")),
        # A root is mended with what is missing, and stays the root.
        ("(S (NP XX )NP", "a b", "(S (NP (XX a)) (XX b))", ("too few words", "brackets left open")),
    ],
)
def test_faults(text, words, tree, faults):
    parse = from_brackets(text.split(), words.split())
    assert (str(parse.tree), parse.faults) == (tree, faults)


pytestmark = pytest.mark.usefixtures("unchecked")

BANK = list(
    read_trees("""
    (S (NP (PRP We)) (VP (VBP see) (NP (DT the) (NN cat))) (. .))
    (S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (PRP us))) (. .))
    (HEADING (PP (IN of) (NP (PRP us))))
    """)
)

CONFIGS = [
    TransformerConfig(8, d_model=32, d_ff=64, num_heads=2, num_layers=1, dropout=0.5),
    RecurrentConfig(8, d_model=32, dropout=0.5),
]


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
def test_a_wide_search_finds_the_most_probable_of_all_trees(config):
    torch.manual_seed(1)
    vocabulary = TreeVocabulary.learn(BANK, min_count=1)
    model = build_parser(config, vocabulary)  # in training mode
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


def test_scores_count_what_is_mended():
    trees = BANK[:2]
    right = " ".join(to_brackets(trees[1]))
    # The first output lacks a word and its end: S and VP still fit, the inner NP does not.
    scores = study.scores_of(trees, ["(S (NP XX )NP (VP XX (NP XX )NP XX", right])
    assert scores["malformed"] == 50
    # (S 0-4) (NP 0-1) (VP 1-4) (NP 2-4) against (S 0-4) (NP 0-1) (VP 1-4) (NP 2-3); then 4 of 4.
    assert (scores["f1"], scores["exact_match"]) == (87.5, 50)


def test_the_recorded_scores_are_those_of_the_outputs(tmp_path):
    with tarfile.open(EMBEDDED / "craft-treebank" / CRAFT_FILE) as archive:
        members = [member for member in archive if member.isfile()]
        data = {Path(m.name).stem: archive.extractfile(m).read() for m in members}
    for name in split_articles(data)["test"]:  # the other articles would take a while
        (tmp_path / f"{name}.tree").write_bytes(data[name])
    parts, outputs = (
        study.parts_to_score(load_treebank(tmp_path).trees()),
        stored_texts(study.RECORD),
    )
    runs = study.recorded_study()["runs"]
    assert runs.keys() == {
        study.run_name(*key, seed) for key in study.RECIPES for seed in study.SEEDS
    }
    for name, run in runs.items():
        assert [(score["search"], score["part"]) for score in run["scores"]] == study.PLAN
        for score in run["scores"]:
            lines = outputs[f"{name}, {score['search']}, {score['part']}"]
            again = study.scores_of(parts[score["part"]], lines)
            assert {k: v for k, v in score.items() if k in again} == again
            assert not score["search"].startswith("trees") or score["malformed"] == 0


def test_a_parser_trains_and_writes_trees(tmp_path):
    text = study.ParsingText(BANK, BANK, BANK, TreeVocabulary.learn(BANK, min_count=1))
    recipe = study.RECIPES["transformer", "XX"]
    training = replace(recipe.training, max_steps=2, validate_every=2, save_every=1)
    small = replace(recipe, model=CONFIGS[0], training=training)
    model, trainer = study.train_parser(small, text, tmp_path)
    lines = study.outputs_of(model, text.vocabulary, BANK, study.SEARCHES["trees, greedy"])
    assert trainer.step == 2 and study.scores_of(BANK, lines)["malformed"] == 0
