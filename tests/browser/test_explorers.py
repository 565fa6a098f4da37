"""The explorers in a browser, each alone on a page: they compute what the package computes."""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer_book as book
from transformer import Translator
from transformer.data.corpora.treebank import read_trees
from transformer.data.tokenizer import Tokenizer
from transformer.model.positional import sinusoidal_table
from transformer.recipes.record import read_record
from transformer.training.schedule import learning_rate
from transformer_book.studies.decoding.explorer import BeamExplorer, record_search
from transformer_book.studies.other_tasks import study
from transformer_book.studies.other_tasks.patch_explorer import PatchExplorer
from transformer_book.studies.other_tasks.tasks import load_task
from transformer_book.studies.parsing.linearised_trees import to_brackets
from transformer_book.studies.parsing.tree_explorer import TreeExplorer
from transformer_book.studies.residuals.depth_explorer import DepthExplorer
from transformer_book.studies.residuals.study import RECORD as DEPTH
from transformer_book.studies.tokens.merges import WORD, count_words, read_merges
from transformer_book.studies.translation.learning_explorer import LearningExplorer
from transformer_book.widgets.fields import KINDS, FieldExplorer, receptive_fields
from transformer_book.widgets.masks import ReachExplorer
from transformer_book.widgets.memory import MemoryExplorer
from transformer_book.widgets.next_token import TEMPERATURES
from transformer_book.widgets.overlap import OverlapExplorer
from transformer_book.widgets.text import BatchPacker, MergeStepper
from transformer_book.widgets.training import ScheduleExplorer, TargetExplorer
from transformer_book.widgets.walk import record_walk

# One worker makes the explorers for all of these tests.
pytestmark = pytest.mark.xdist_group("explorers")
WORDS = ["<bos>", "die", "Katze", "trank", "Milch", "und", "schlief", "ein", "<eos>"]
LOGITS, VECTORS = (
    torch.randn(5, n, generator=torch.Generator().manual_seed(n)) * 3 for n in (40, 256)
)
DEPTHS = read_record(DEPTH)
LETTERS = [f"<{i}>" for i in range(40)]


@cache
def shipped():
    return Translator.from_pretrained("tatoeba-en-de")


def source_of(text):
    tokenizer = shipped().tokenizer
    return torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]])


def beam():
    searches = {
        text: record_search(shipped().model, source_of(text), 4, [(0.0, "gnmt"), (0.6, "gnmt")])
        for text in ("Tom warned you.", "She asked me to help her.")
    }
    return BeamExplorer(searches, shipped().tokenizer)


def walk():
    source = source_of("She asked me to help her.")
    steps = record_walk(shipped().model, source, torch.tensor([[1, 5, 6, 7]]))
    tokens = shipped().tokenizer.tokens([*range(shipped().tokenizer.vocab_size)])
    return book.TensorWalk(steps, [tokens[i] for i in source[0]], WORDS[:4], tokens, 2, 1)


def trees():
    (gold,) = read_trees("(S (NP (DT the) (NN cat)) (VP (VB sleeps)))")
    miscount = ["(S", "(NP", "XX", ")NP", ")S"]
    return TreeExplorer([("right", gold, to_brackets(gold)), ("wrong", gold, miscount)], step=2)


def learning():
    texts = ("die " * 40, "Die Katze", "Die Katze schläft.")
    rows = [dict(step=250 * i, translations=[text]) for i, text in enumerate(texts)]
    return LearningExplorer(["The cat sleeps."], rows, {250: 3.2})


def merges():
    lines = ["Das Tier war zu müde.", "The animal was too tired."] * 3
    found = read_merges(Tokenizer.train(lines, 3 + 256 + 20).to_json())
    texts = [WORD.findall("The animal was tired."), WORD.findall("too wild 🙂")]
    return MergeStepper(count_words(lines), found, texts, counted=12, leaps=[20], shown=3)


MAKE = {
    "compass": lambda: book.CompassExplorer(
        {"north": [2, 30], "east": [10, 10], "south": [20, 40], "west": [12, 80]},
        [("°C", 1), ("% rain", 0)],
    ),
    "softmax": lambda: book.SoftmaxExplorer(VECTORS, VECTORS.flip(0)),
    "positions": book.PositionExplorer,
    "masks": lambda: book.MaskBuilder(WORDS),
    "reach": lambda: ReachExplorer(WORDS, query=4),
    "memory": lambda: MemoryExplorer(6, 512, 2048, 8, 18_914_304),
    "fold": lambda: book.FoldExplorer(
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        [0, 1, 1, 0],
        ["none", "didn't", "fail to", "didn't fail to"],
    ),
    "next": lambda: book.NextTokenExplorer(LOGITS, LETTERS, WORDS[:5], step=1),
    "target": lambda: TargetExplorer(LOGITS, torch.arange(5), LETTERS, step=1),
    "schedule": ScheduleExplorer,
    "map": lambda: book.AttentionMap(
        VECTORS[:2, :36].reshape(2, 6, 6).softmax(dim=-1), WORDS[:6], WORDS[:6], row=3
    ),
    "fields": lambda: FieldExplorer(WORDS, 6, 1),
    "overlap": lambda: OverlapExplorer(WORDS, {"ours": ["das", *WORDS[2:]]}),
    "packer": lambda: BatchPacker(np.random.default_rng(0).integers(2, 31, size=150)),
    "patches": lambda: PatchExplorer(
        study.encoder(load_task("digits")), VECTORS[:2, :64].reshape(2, 8, 8), [3, 5]
    ),
    "depth": lambda: DepthExplorer(DEPTHS["found"], DEPTHS["tokens"]),
    "passes": lambda: book.DecoderPasses(shipped(), "The cat slept.", "Die Katze schlief ein."),
    "beam": beam,
    "walk": walk,
    "trees": trees,
    "learning": learning,
    "merges": merges,
}
# Settings by their labels, a menu's by the text or the number of the entry, and what the figure
# then says in an attribute.
CASES = {
    "compass": ({"direction": 225, "length": 2.5}, "weights", lambda it: it.weights(225, 2.5)),
    "softmax": (
        {"divide": False, "query": 4, "vector length": 8, "temperature": 4},
        "weights",
        lambda it: it.weights(3, 256, False, 2.0),
    ),
    "positions": (
        {"columns": 64, "position p": 77, "offset k": 30},
        "row",
        lambda it: sinusoidal_table(260, 64)[77],
    ),
    "masks": (
        {"causal": True, "padding": 3, "window": 2},
        "mask",
        lambda it: "".join(str(int(seen)) for seen in it.mask(True, 3, 2).flatten()),
    ),
    "reach": (
        {"pattern": "window and stride", "neighbourhood": 5, "layers": 3},
        "hops",
        lambda it: it.hops(it.mask("window and stride", 5), 3).flatten(),
    ),
    "memory": (
        {"tokens": 12, "sequences": 3, "accumulated": 2, "fused": True},
        "bytes",
        lambda it: sum(it.pieces(4096, 8, 4, True, False, False).values()),
    ),
    "fold": (
        {"direction": 45, "shift": 0.75, "strength": 2},
        "gap",
        lambda it: it.gap(it.moved(45, 0.75, 2)),
    ),
    "next": (
        {"step": 2, "temperature": 0},
        "shares",
        lambda it: it.probabilities(2, TEMPERATURES[0]),
    ),
    "target": ({"position": 2, "smoothing": 0.1}, "loss", lambda it: it.loss(2, 0.1)),
    "schedule": (
        {"warm-up": 3, "factor": 3},
        "peak",
        lambda it: learning_rate(1000, 512, 1000, 2.0),
    ),
    "fields": (
        {"layer": KINDS[3], "layers": 2, "output at": 6},
        "reached",
        lambda it: np.flatnonzero(receptive_fields(KINDS[3], 2, 6, 9)[0]),
    ),
    "overlap": ({"tokens kept": 6}, "bleu", lambda it: it.score("ours", 6)),
    "packer": ({"order": 1, "budget": 256}, "padding", lambda it: it.padding(50, 256)),
    "patches": ({"digit": 1, "head": 6, "patch": 9}, "weights", lambda it: it.weights[1, 1, 2, 9]),
    "depth": (
        {"residual": True, "norm": "pre-norm", "layers N": 24},
        "gradients",
        lambda it: it.measured["pre-norm"]["gradients"][23],
    ),
    "passes": ({"decoder passes": 3}, "loss", lambda it: it.payload()["loss"]),
    "trees": ({"sentence": 1, "step": 6}, "phrases", lambda it: "S:the cat sleeps|NP:the"),
    "learning": ({"training step": 1}, "share", lambda it: it.payload()["shares"][1]),
    "merges": ({"merges": 5}, "merges", lambda it: it.stops[5]),
}
PAGE, MISPLACED, HEIGHTS = (
    Path(__file__).with_name(name).read_text()
    for name in ("widget.html", "misplaced.js", "heights.js")
)
CONTROLS = ".explorer :is(td[tabindex='0'], input, select, button)"


@cache
def made(name):
    return MAKE[name]()


@cache
def markup(name):
    return made(name)._repr_mimebundle_()["text/html"]


@pytest.fixture
def opened(visit):
    def make(name, width=1280, theme="light"):
        found = visit(width, theme)
        found.page.set_content(PAGE.replace("WIDGET", markup(name)))
        return found

    return make


def said(page):
    return page.locator(".explorer output").inner_text()


def choose(page, label, value):
    """Set a slider, a menu or a box as a reader would, by its label."""
    control = page.locator(CONTROLS).and_(page.get_by_label(label)).first
    if isinstance(value, bool):
        control.set_checked(value)
    elif control.evaluate("node => node.matches('select')"):
        control.select_option(str(value))
    else:
        control.fill(str(value))


def step_of(page):
    return int(page.locator(".explorer").get_attribute("data-step"))


@pytest.mark.parametrize("name", MAKE)
def test_every_reader_can_use_it(opened, name):
    """On a desk in the light theme, by keyboard, and then on a phone in the dark one."""
    found = opened(name)
    page = found.page
    assert found.breaches() == []
    assert page.locator(".explorer > p.words").inner_text() == repr(made(name))
    assert page.locator(".explorer output").get_attribute("aria-live") == "polite"
    page.wait_for_function("() => document.querySelector('.explorer').style.minHeight")
    heights = page.evaluate(HEIGHTS)
    assert max(heights) - min(heights) < 1, heights
    controls = page.locator(CONTROLS)
    for place in range(controls.count()):
        page.keyboard.press("Tab")
        assert controls.nth(place).evaluate(
            "node => node === document.activeElement && getComputedStyle(node).outlineStyle"
        ) not in (False, "none")

    page.set_viewport_size(dict(width=390, height=900))
    page.emulate_media(color_scheme="dark")
    page.locator(".explorer[data-theme=dark]").wait_for()
    assert found.breaches() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(MISPLACED) == []
    assert found.errors == [] and not any("http" in url for url in found.requests)


@pytest.mark.parametrize("name", CASES)
def test_it_shows_what_the_package_computes(opened, name):
    settings, attribute, compute = CASES[name]
    page, wanted = opened(name).page, compute(made(name))
    for label, value in settings.items():
        choose(page, label, value)
    shown = page.locator(".explorer").get_attribute(f"data-{attribute}")
    if isinstance(wanted, str):
        assert shown == wanted
    else:
        numbers = np.array(shown.split(), dtype=float)
        wanted = np.atleast_1d(np.asarray(wanted, dtype=float))
        digits = 2 if name == "patches" else 12  # as many as it writes
        np.testing.assert_allclose(numbers, wanted.round(digits), rtol=0.01, atol=1e-4)


def test_without_scripts_there_are_pictures_with_words(visit):
    page = visit(java_script_enabled=False).page
    page.set_content(PAGE.replace("WIDGET", "".join(map(markup, MAKE))))
    for picture, name in zip(page.locator(".explorer img").all(), MAKE, strict=True):
        assert picture.is_visible() and picture.get_attribute("alt") == repr(made(name))


def test_buttons_and_arrows_step_through_a_search_to_its_winner(opened):
    page = opened("beam").page
    search = made("beam").searches["Tom warned you."]
    page.get_by_role("button", name="Next step").click()
    assert step_of(page) == 1 and "4 live on, 0 ended, 4 dropped" in said(page)
    for _ in search.steps:  # the arrow keys stop at the end
        page.keyboard.press("ArrowRight")
    assert step_of(page) == len(search.steps)
    best = made("beam")._text(search.best(0.0, "gnmt"))
    assert page.locator(".explorer").get_attribute("data-best") == best
    page.get_by_role("button", name="Back").click()
    assert step_of(page) == len(search.steps) - 1


def test_the_arrow_keys_move_through_a_map_of_weights(opened):
    page, cells = opened("map").page, ".explorer tbody td"
    choose(page, "map", 1)
    shown = [float(text) for text in page.locator(cells).all_text_contents()]
    assert shown == pytest.approx(made("map").weights[1].ravel(), abs=0.0051)
    page.locator(f"{cells}[tabindex='0']").focus()
    for key, place in (("ArrowDown", 24), ("End", 29), ("ArrowRight", 29), ("Home", 24)):
        page.keyboard.press(key)
        assert page.locator(cells).nth(place).evaluate("td => td === document.activeElement"), key
    assert said(page).startswith("Query “Milch” looks most at")


def test_the_query_of_the_compass_is_dragged(opened):
    page = opened("compass", 390).page
    page.locator(".rose").scroll_into_view_if_needed()
    box, tip = page.locator(".rose").bounding_box(), page.locator(".handle").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tip_x, tip_y = tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2
    unit = math.hypot(tip_x - x, tip_y - y) / float(re.search(r"length (\d+\.\d+)", said(page))[1])
    page.mouse.move(tip_x, tip_y)
    page.mouse.down()
    for right, down, shown in ((3, 0, "90°, length 3.00"), (-9, 0, "270°, length 5.00")):
        page.mouse.move(x + right * unit, y + down * unit)
        assert f"Query at {shown}" in said(page)


def test_a_tap_on_a_row_chooses_the_query(opened):
    page = opened("masks", width=390).page
    page.locator(".explorer tbody tr").nth(4).locator("td").nth(2).tap()
    assert said(page).startswith("Query 5, “Milch”, may attend to 1 <bos>, 2 die,")


def test_a_reader_who_wants_motion_can_play_and_take_over(opened):
    page = opened("merges").page
    play, pause = (page.get_by_role("button", name=text) for text in ("Play", "Pause"))
    assert play.count() == 0  # these visits want no motion
    page.emulate_media(reduced_motion="no-preference")
    for take_over in (pause.click, lambda: page.keyboard.press("ArrowLeft")):
        play.click()
        assert pause.is_visible()
        take_over()
        assert play.is_visible() and not pause.count()
