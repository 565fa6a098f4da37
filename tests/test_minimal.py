"""The program of the book: equal to the library, to its cells, and short enough to read aloud."""

import ast
import copy
import io
import json
import math
import operator
import random
import re
import sys
import tokenize
from pathlib import Path

import greenlet
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from transformer import Translator, beam_search, greedy_search, load_corpus, minimal
from transformer.data import toy
from transformer.training.loss import TranslationLoss
from transformer.training.schedule import learning_rate

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "transformer" / "minimal.py"
SOURCE = PROGRAM.read_text(encoding="utf-8")
FIRST = ROOT / "notebooks" / "00_one_page.ipynb"


@pytest.fixture(scope="module")
def shipped(unchecked):
    return Translator.from_pretrained("tatoeba-en-de")


@pytest.fixture(scope="module")
def program(shipped):
    """The shipped weights in the program, with no name changed."""
    c = shipped.model.config
    model = minimal.Transformer(c.vocab_size, c.d_model, c.d_ff, c.num_heads, c.num_layers)
    model.load_state_dict(shipped.model.state_dict())
    return model.eval()


@pytest.fixture(scope="module")
def sentences(shipped):
    """The 2,000 sentences of the test set, in batches of similar length."""
    encoded = shipped.tokenizer.encode_batch(
        [english for english, _ in load_corpus("tatoeba-en-de").test]
    )
    ids = sorted(([*line, minimal.EOS] for line in encoded), key=len)
    assert len(ids) == 2000
    return [minimal.pad(ids[start : start + 100]) for start in range(0, 2000, 100)]


def test_logits_equal_those_of_the_library(shipped, program, sentences):
    """In double precision, so that no processor's rounding counts."""
    source, target = sentences[5], sentences[6]
    model, mine = copy.deepcopy(shipped.model).double().eval(), copy.deepcopy(program).double()
    with torch.no_grad():
        torch.testing.assert_close(mine(source, target), model(source, target), rtol=0, atol=1e-5)


@pytest.fixture
def searching(program):
    """The program, projecting the last position alone: searches look at no other."""
    hook = program.decoder.register_forward_hook(lambda *call: call[-1][:, -1:])
    yield program
    hook.remove()


def test_greedy_search_writes_what_the_library_writes(shipped, searching, sentences):
    for source in sentences:
        found = minimal.greedy_search(searching, source)
        assert found == [each.tokens for each in greedy_search(shipped.model, source)]


@torch.no_grad()
def beam_searches(program, source, monkeypatch):
    """Run the program's search for each row; the model computes a step of all rows at once.

    Each search is a greenlet, which waits where it asks for its next token.
    """
    next_token, main = minimal.next_token, greenlet.getcurrent()
    monkeypatch.setattr(minimal, "next_token", lambda model, *asked: main.switch(asked))
    searches = [greenlet.greenlet(minimal.beam_search) for _ in source]
    asked = [
        each.switch(program, row[row != minimal.PAD][None])
        for each, row in zip(searches, source, strict=True)
    ]
    while waiting := [i for i, each in enumerate(searches) if not each.dead]:
        target, *sides = zip(*[asked[i] for i in waiting], strict=True)
        beams = [len(each) for each in target]
        memory, of = (
            pad_sequence([side[0] for side in each], True).repeat_interleave(torch.tensor(beams), 0)
            for each in sides
        )
        found = next_token(program, torch.cat(target), memory, of).split(beams)
        for i, each in zip(waiting, found, strict=True):
            asked[i] = searches[i].switch(each)
    return asked  # what each search returned


def test_beam_search_writes_what_the_library_writes(shipped, searching, sentences, monkeypatch):
    same = 0
    for source in sentences:
        expected = [best.tokens for best in beam_search(shipped.model, source)]
        with monkeypatch.context() as patch:
            found = beam_searches(searching, source, patch)
        same += sum(map(operator.eq, found, expected))
    assert same >= 1990
    alone = sentences[0][:1, : int((sentences[0][0] != minimal.PAD).sum())]
    assert minimal.beam_search(searching, alone) == beam_search(shipped.model, alone)[0].tokens


def test_loss_and_gradients_equal_those_of_the_library(shipped, program, sentences):
    source, target = sentences[2], sentences[3]
    shifted = torch.cat([torch.full_like(target[:, :1], minimal.BOS), target[:, :-1]], dim=1)
    model, mine = copy.deepcopy(shipped.model).double().eval(), copy.deepcopy(program).double()
    loss = minimal.smoothed_loss(mine(source, shifted), target)
    loss.backward()
    total, _ = TranslationLoss(model, 0.1)(source, shifted, target)
    expected = total / (target != minimal.PAD).sum()
    expected.backward()
    assert abs(loss.item() - expected.item()) < 1e-5
    gradients = dict(model.named_parameters())
    for name, weight in mine.named_parameters():
        torch.testing.assert_close(weight.grad, gradients[name].grad, rtol=0, atol=1e-5)


def test_learning_rates_are_those_of_the_library():
    for step in range(1, 20_000, 7):
        assert minimal.learning_rate(step, 512, 4000) == learning_rate(step, 512, 4000)
        assert minimal.learning_rate(step, 64, 300, 0.4) == learning_rate(step, 64, 300, 0.4)


def test_training_takes_the_steps_that_adam_takes():
    """Two steps by hand, on the batches that the same seed draws."""
    pairs = [([5, 6, 2], [7, 2]), ([8, 2], [9, 5, 2]), ([6, 2], [8, 2])]
    torch.manual_seed(0)
    # In double precision: Adam makes a step of the rounding of a gradient that is zero.
    model = minimal.Transformer(12, 8, 16, 2, 1, dropout=0.0).double()
    other = copy.deepcopy(model)
    random.seed(1)
    losses = list(minimal.train(model, pairs, steps=2, tokens=9, warmup=10, factor=2.0))
    random.seed(1)
    drawn = [*minimal.batches(pairs, 9), *minimal.batches(pairs, 9)][:2]
    adam = torch.optim.Adam(other.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step, (source, shifted, target) in enumerate(drawn, start=1):
        loss = minimal.smoothed_loss(other(source, shifted), target)
        assert math.isclose(losses[step - 1], loss.item(), rel_tol=1e-5)
        adam.zero_grad()
        loss.backward()
        adam.param_groups[0]["lr"] = learning_rate(step, 8, 10, 2.0)
        adam.step()
    for mine, expected in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-6)


def test_a_batch_holds_each_pair_once_and_keeps_the_budget():
    rng = random.Random(0)
    line = lambda: [rng.randrange(3, 99) for _ in range(rng.randrange(1, 30))] + [minimal.EOS]  # noqa: E731
    pairs = [(line(), line()) for _ in range(500)]
    found = []
    for source, shifted, target in minimal.batches(pairs, 200):
        assert max(source.numel(), target.numel()) <= 200
        assert shifted.shape == target.shape and (shifted[:, 0] == minimal.BOS).all()
        real = target[:, :-1].masked_fill(target[:, :-1] == minimal.EOS, minimal.PAD)
        kept = shifted[:, 1:].masked_fill(shifted[:, 1:] == minimal.EOS, minimal.PAD)
        assert torch.equal(kept, real)
        unpadded = [[[i for i in row if i] for row in side.tolist()] for side in (source, target)]
        found += zip(*unpadded, strict=True)
    assert sorted(found) == sorted(pairs)


def test_one_pair_longer_than_the_budget_is_a_batch_of_its_own():
    pairs = [([5, 2], [6, 2]), ([5] * 9 + [2], [6, 2])]
    assert sorted(source.shape[0] for source, _, _ in minimal.batches(pairs, 4)) == [1, 1]


def test_the_average_is_the_mean_of_each_weight():
    made = [minimal.Transformer(12, 8, 16, 2, 1).state_dict() for _ in range(3)]
    mean = minimal.average(made)
    assert mean.keys() == made[0].keys()
    for name, weight in mean.items():
        torch.testing.assert_close(weight, torch.stack([each[name] for each in made]).mean(dim=0))


def test_the_program_has_at_most_200_lines_of_code():
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(SOURCE).readline):
        if token.type not in skipped | {tokenize.ENDMARKER}:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(SOURCE)):
        documented = isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        if documented and ast.get_docstring(node):
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    assert 150 < len(lines) <= 200


def test_the_program_runs_by_itself(capsys):
    """Its last lines, with fewer steps: `python -m transformer.minimal`."""
    tree = ast.parse(SOURCE)
    last = ast.unparse(tree.body[-1]).replace("3000", "4").replace("% 100", "% 2")
    threads = torch.get_num_threads()
    exec(compile(last, "minimal", "exec"), {**vars(minimal), "__name__": "__main__"})
    torch.set_num_threads(threads)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("step    2  loss ") and lines[1].startswith("step    4  loss ")
    assert lines[2].endswith(" of 300 new sentences are exactly right")
    assert [lines[3], lines[5]] == [toy.TIRED.english, toy.WIDE.english]


# ------------------------------------------------------------------ cell and file are one


def definitions(source):
    """The text of each function and class, decorators included."""
    lines = source.splitlines()
    return {
        node.name: "\n".join(
            lines[
                min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1 : node.end_lineno
            ]
        )
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def code_cells(path):
    """The code cells before the exercises: source and tags."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and "## Exercises" in source:
            return
        if cell["cell_type"] == "code":
            plain = re.sub(r"^( *)(%.*)$", r"\1pass  # \2", source, flags=re.MULTILINE)
            yield plain, set(cell["metadata"].get("tags", []))


def test_the_first_chapter_shows_the_whole_program():
    hidden = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
    shown = {}
    for source, tags in code_cells(FIRST):
        if not tags & hidden:
            shown |= definitions(source)
    program = definitions(SOURCE)
    assert {name: shown.get(name) for name in program} == program


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_what_a_chapter_defines_again_is_the_programs(path):
    program = definitions(SOURCE)
    for source, _ in code_cells(path):
        for name, text in definitions(source).items():
            assert text == program.get(name, text), f"{name} differs from transformer/minimal.py"


def test_the_first_chapter_holds_the_toy_language():
    """Cut into cells, in its order, with nothing between."""
    source = (ROOT / "transformer" / "data" / "toy.py").read_text(encoding="utf-8")
    wanted = [line for line in source.split('"""', 2)[2].splitlines() if line.strip()]
    shown = [line for cell, _ in code_cells(FIRST) for line in cell.splitlines() if line.strip()]
    start = shown.index(
        "import random", shown.index(definitions(SOURCE)["beam_search"].splitlines()[1])
    )
    assert shown[start : start + len(wanted)] == wanted


def test_the_first_half_of_the_first_chapter_needs_torch_alone(monkeypatch, capsys):
    """As in Colab, where drawing is there and this package is not."""
    monkeypatch.setitem(sys.modules, "transformer", None)
    monkeypatch.setitem(sys.modules, "transformer_book", None)
    space = {"__name__": "colab"}
    monkeypatch.setitem(sys.modules, "colab", type(sys)("colab"))
    for source, _ in code_cells(FIRST):
        if "%pip" in source:
            break
        source = source.replace("3000", "4").replace("% 200", "% 2").replace("assert ", "")
        exec(compile(source, "cell", "exec"), space)
    assert "new sentences are exactly right" in capsys.readouterr().out
    assert len(space["losses"]) == 4


# ------------------------------------------------------------------ the toy language


def test_the_toys_german_is_right():
    """Sentences checked by eye, one for each rule."""
    dog, cat, sheep = (toy.Phrase(toy.ANIMALS[i]) for i in (3, 6, 2))
    river = toy.Phrase(toy.PLACES[2])
    black = toy.Phrase(toy.ANIMALS[3], "black")
    saw = toy.Phrase(toy.ANIMALS[3], clause=(toy.SEE, toy.ANIMALS[6], True))
    seen = toy.Phrase(toy.ANIMALS[3], clause=(toy.SEE, toy.ANIMALS[6], False))
    expected = [
        (toy.TIRED, "Das Tier überquerte die Straße nicht, weil es zu müde war."),
        (toy.WIDE, "Das Tier überquerte die Straße nicht, weil sie zu breit war."),
        (
            toy.Sentence(dog, toy.FOLLOW, cat, "quiet", negated=False),
            "Der Hund folgte der Katze, obwohl sie sehr leise war.",
        ),
        (
            toy.Sentence(cat, toy.CATCH, black, "fast", adverb="yesterday"),
            "Die Katze fing den schwarzen Hund gestern nicht, weil er zu schnell war.",
        ),
        (
            toy.Sentence(black, toy.SEE, sheep, "old", adverb="today", adverb_first=True),
            "Heute sah der schwarze Hund das Schaf nicht, weil er zu alt war.",
        ),
        (
            toy.Sentence(saw, toy.REACH, river, "long", negated=False, clause_first=True),
            "Obwohl er sehr lang war, erreichte der Hund, der die Katze sah, den Fluss.",
        ),
        (
            toy.Sentence(seen, toy.FOLLOW, sheep, "weak"),
            "Der Hund, den die Katze sah, folgte dem Schaf nicht, weil er zu schwach war.",
        ),
    ]
    for sentence, german in expected:
        assert sentence.german() == german
    perfect = [
        "Das Tier hat die Straße nicht überquert, weil es zu müde war.",
        "Das Tier hat die Straße nicht überquert, weil sie zu breit war.",
        "Der Hund ist der Katze gefolgt, obwohl sie sehr leise war.",
        "Die Katze hat den schwarzen Hund gestern nicht gefangen, weil er zu schnell war.",
        "Heute hat der schwarze Hund das Schaf nicht gesehen, weil er zu alt war.",
        "Obwohl er sehr lang war, hat der Hund, der die Katze sah, den Fluss erreicht.",
        "Der Hund, den die Katze sah, ist dem Schaf nicht gefolgt, weil er zu schwach war.",
    ]
    assert [sentence.german(perfect=True) for sentence, _ in expected] == perfect
    assert toy.TIRED.is_right(perfect[0]) and not toy.TIRED.is_right(perfect[1])


def test_the_toys_test_asks_for_new_combinations():
    lines, test = toy.corpus(training=3000, test=200, seed=3)
    assert len(lines) == 3000 and len({english for english, _ in lines}) == 3000
    assert len({sentence.english for sentence in test}) == 200
    again, _ = toy.corpus(training=3000, test=200, seed=3)
    assert again == lines
    nouns = [noun.english for noun in toy.ANIMALS + toy.PLACES]

    def key(english):
        """Subject, object, adjective, read from the sentence alone."""
        words = [
            word
            for word in toy.split(english)
            if word in nouns or word in toy.ADJECTIVES or word == "that"
        ]
        (adjective,) = [word for word in words if word in toy.ADJECTIVES]
        words.remove(adjective)
        return words[0], words[-1], adjective

    trained = {key(english) for english, _ in lines}
    assert not trained & {key(sentence.english) for sentence in test}
    assert not trained & {("animal", "street", "tired"), ("animal", "street", "wide")}


def test_the_toy_knows_all_words_of_its_sentences_and_writes_them_back():
    lines, test = toy.corpus(training=2000, test=100, seed=1)
    both = [sentence for sentence in test for _ in range(2)]
    german = [s.german(perfect=bool(i % 2)) for i, s in enumerate(both)]
    for line in [text for pair in lines for text in pair] + german:
        ids = toy.encode(line)
        assert ids[-1] == minimal.EOS and toy.decode(ids[:-1]) == line
    assert (
        len(toy.WORDS) == len({*toy.WORDS}) and toy.WORDS[: minimal.EOS + 1][minimal.PAD] == "<pad>"
    )


def test_the_toy_refuses_words_that_it_does_not_know_by_name():
    with pytest.raises(ValueError, match="doesn't know 'elephant', 'slept'; its words: .* animal "):
        toy.encode("The elephant slept.")
    with pytest.raises(ValueError, match="needs a sentence"):
        toy.encode("  ")
