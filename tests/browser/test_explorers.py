"""The explorers in a browser, each alone on a page: they compute what the package computes."""

import json
import math
import re
from decimal import ROUND_HALF_UP, Decimal
from itertools import product

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe

from transformer import Translator
from transformer.data.corpora.treebank import read_trees
from transformer.model.positional import sinusoidal_table
from transformer.recipes.record import read_record
from transformer.training.schedule import learning_rate
from transformer_book import (
    CompassExplorer,
    DecoderPasses,
    FoldExplorer,
    MaskBuilder,
    NextTokenExplorer,
    PositionExplorer,
    SoftmaxExplorer,
    TensorWalk,
)
from transformer_book.studies.decoding.explorer import BeamExplorer
from transformer_book.studies.decoding.steps import record_search
from transformer_book.studies.other_tasks import study
from transformer_book.studies.other_tasks.patch_explorer import PatchExplorer
from transformer_book.studies.other_tasks.tasks import load_task
from transformer_book.studies.parsing.linearised_trees import to_brackets
from transformer_book.studies.parsing.tree_explorer import TreeExplorer
from transformer_book.studies.residuals.depth import KINDS
from transformer_book.studies.residuals.depth import RECORD as DEPTH
from transformer_book.studies.residuals.depth_explorer import DepthExplorer
from transformer_book.studies.tokens.merges import count_words, learn_merges, split_words
from transformer_book.studies.translation.learning_explorer import LearningExplorer
from transformer_book.widgets.masks import PATTERNS, ReachExplorer
from transformer_book.widgets.memory import MemoryExplorer
from transformer_book.widgets.text import BatchPacker, MergeStepper
from transformer_book.widgets.training import ScheduleExplorer, TargetExplorer
from transformer_book.widgets.walk import record_walk

# One worker makes the explorers for all of these tests.
pytestmark = pytest.mark.xdist_group("explorers")
NAMES = ("compass", "softmax", "positions", "beam", "masks", "passes", "walk", "depth", "patches",
         "fold", "next", "learning", "target", "schedule", "trees", "merges",
         "packer", "memory", "reach")  # fmt: skip
WORDS = ["<bos>", "die", "Katze", "trank", "Milch", "und", "schlief", "ein", "<eos>"]
PENALTIES = [(0.0, "gnmt"), (0.6, "gnmt")]


@pytest.fixture(scope="session")
def explorers():
    depth = read_record(DEPTH)
    generator = torch.Generator().manual_seed(0)
    vectors = [torch.randn(n, 256, generator=generator) for n in (12, 8)]
    translator = Translator.from_pretrained("tatoeba-en-de")
    tokenizer, searches = translator.tokenizer, {}
    for text in ("Tom warned you.", "She asked me to help her."):
        source = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]])
        searches[text] = record_search(translator.model, source, 4, PENALTIES)
    steps = record_walk(translator.model, source, torch.tensor([[tokenizer.bos_id, 5, 6, 7]]))
    tokens = tokenizer.tokens(list(range(tokenizer.vocab_size)))
    (gold,) = read_trees("(S (NP (DT the) (NN cat)) (VP (VB sleeps)))")
    weather = {"north": [2, 30], "east": [10, 10], "south": [20, 40], "west": [12, 80]}
    spelling = count_words(["Das Tier war zu müde.", "The animal was too tired."] * 3)
    return {
        "merges": MergeStepper(
            spelling,
            learn_merges(spelling, 20),
            [split_words("The animal was tired."), split_words("too wild 🙂")],
            counted=12,
            leaps=[20],
            shown=3,
        ),
        "packer": BatchPacker(np.random.default_rng(0).integers(2, 31, size=150)),
        "compass": CompassExplorer(weather, [("°C", 1), ("% rain", 0)]),
        "softmax": SoftmaxExplorer(*vectors),
        "positions": PositionExplorer(),
        "beam": BeamExplorer(searches, tokenizer),
        "masks": MaskBuilder(WORDS),
        "memory": MemoryExplorer(6, 512, 2048, 8, 18_914_304),
        "reach": ReachExplorer(WORDS, query=4),
        "fold": FoldExplorer(
            np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
            [0, 1, 1, 0],
            ["none", "didn't", "fail to", "didn't fail to"],
        ),
        "next": NextTokenExplorer(
            torch.randn(5, 40, generator=generator) * 3,
            tokens[:40],
            ["", *(" ".join(WORDS[1 : n + 1]) for n in range(1, 5))],
            step=1,
        ),
        "target": TargetExplorer(
            torch.randn(5, 40, generator=generator) * 3, torch.arange(5), tokens[:40], step=1
        ),
        "schedule": ScheduleExplorer(),
        "patches": PatchExplorer(
            study.encoder(load_task("digits")), torch.rand(2, 8, 8, generator=generator), [3, 5]
        ),
        "trees": TreeExplorer(
            [
                ("right", gold, to_brackets(gold)),
                ("a miscount", gold, ["(S", "(NP", "XX", ")NP", ")S"]),
            ],
            step=2,
        ),
        "learning": LearningExplorer(
            ["The cat sleeps.", "It is late."],
            [
                dict(step=250 * i, translations=[text, "Es ist spät."[: 4 * i]])
                for i, text in enumerate(("die " * 40, "Die Katze", "Die Katze schläft."))
            ],
            {250: 3.2},
        ),
        "depth": DepthExplorer(depth["found"]["fused"], depth["tokens"]),
        "walk": TensorWalk(steps, [tokens[i] for i in source[0]], WORDS[:4], tokens, 2, 1),
        "passes": DecoderPasses(
            translator,
            "The animal didn't cross the street.",
            "Das Tier ging nicht über die Straße.",
        ),
    }


@pytest.fixture(scope="session")
def files(explorers, alone, tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("explorers"), {}
    for name, explorer in explorers.items():
        path = folder / f"{name}.html"
        html = explorer._repr_mimebundle_()["text/html"]
        path.write_text(alone(html), encoding="utf-8")
        made[name] = path.as_uri()
    return made


@pytest.fixture
def opened(visit, files):
    visits = []

    def make(name, width=1280, theme="light", **options):
        found = visit(width, theme, **options)
        found.page.goto(files[name])
        visits.append(found)
        return found.page

    yield make
    for found in visits:
        assert found.errors == []
        assert all(url.startswith(("file:", "data:")) for url in found.requests)


def root(page):
    return page.locator(".explorer")


def said(page):
    return page.locator(".explorer output").inner_text()


def numbers(page, name):
    return np.array(root(page).get_attribute(f"data-{name}").split(), dtype=float)


def slide(page, label, value):
    """Set a slider as a reader would, by its label."""
    page.get_by_role("slider", name=label).fill(str(value))


def select(page, label, value):
    page.get_by_role("combobox", name=label).select_option(str(value))


# --- what holds for each --------------------------------------------------------------------


# Words outside of the figure, and controls that are too small for a finger.
MISPLACED = """() => {
    const box = document.querySelector(".explorer").getBoundingClientRect();
    const all = selector => [...document.querySelectorAll(".explorer " + selector)]
        .map(element => [element, element.getBoundingClientRect()]);
    return [
        all("svg text").filter(([_, r]) => r.left < box.left || r.right > box.right),
        all(":is(input, select, button)").filter(([_, r]) => Math.min(r.width, r.height) < 24),
    ].map(list => list.map(([element]) => element.outerHTML));
}"""
EVERYTHING = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast", "link-in-text-block"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width, themes", [(390, ("dark", "light")), (1280, ("light", "dark"))])
def test_it_is_accessible_and_fits(opened, name, width, themes):
    """In the theme that it is opened in, and in the other one after the reader's system changes."""
    page = opened(name, width, themes[0])
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        page.locator(f".explorer[data-theme={theme}]").wait_for()
        rules = EVERYTHING if theme == themes[0] else COLOURS
        found = Axe().run(page, options={"runOnly": rules}).response["violations"]
        assert not found, json.dumps([(rule["id"], rule["nodes"][0]["html"]) for rule in found])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        outside, small = page.evaluate(MISPLACED)
        assert not outside and not small


@pytest.mark.parametrize("name", NAMES)
def test_every_control_is_reached_by_tab_and_shows_it(opened, name):
    page = opened(name)
    count = page.locator(".explorer :is(input, select, button)").count()
    for place in range(count):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "() => [...document.querySelectorAll('.explorer :is(input, select, button)')]"
            ".indexOf(document.activeElement)"
        )
        assert focused == place
        style = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
        assert style != "none", "a reader who uses keys must see where they are"


@pytest.mark.parametrize("name", ["compass", "softmax", "positions", "masks", "walk"])
def test_arrow_keys_move_each_slider_and_the_words_follow(opened, name):
    page = opened(name)
    sliders = page.locator(".explorer input[type=range]")
    for place in range(sliders.count()):
        sliders.nth(place).focus()
        before = sliders.nth(place).get_attribute("aria-valuetext"), root(page).inner_html()
        edge = sliders.nth(place).evaluate("input => input.value === input.max")
        page.keyboard.press("ArrowLeft" if edge else "ArrowRight")
        after = sliders.nth(place).get_attribute("aria-valuetext"), root(page).inner_html()
        assert before[0] != after[0] and before[1] != after[1]


# Heights of the figure at first and while each slider goes to its ends and back, each in a frame of
# its own, and the free room below its last part at first.
HEIGHTS = """async () => {
    const root = document.querySelector(".explorer");
    const frame = () => new Promise(requestAnimationFrame);
    const height = () => Math.round(root.getBoundingClientRect().height);
    await document.fonts.ready;
    await frame();
    await frame();
    const inside = parseFloat(getComputedStyle(root).paddingBottom) + 1;
    const ends = Math.max(...[...root.children].map(part => part.getBoundingClientRect().bottom));
    const room = root.getBoundingClientRect().bottom - inside - ends;
    const found = [height()];
    for (const input of root.querySelectorAll("input[type=range]")) {
        const before = input.value;
        for (const value of [input.min, input.max, before]) {
            input.value = value;
            input.dispatchEvent(new Event("input", { bubbles: true }));
            await frame();
            await frame();
            found.push(height());
        }
    }
    return [found, room];
}"""


@pytest.mark.parametrize("name", NAMES)
def test_its_height_stays_while_a_slider_moves(opened, name):
    page = opened(name)
    page.wait_for_function("() => document.querySelector('.explorer').style.minHeight")
    heights, _ = page.evaluate(HEIGHTS)
    assert len(set(heights)) == 1, heights


@pytest.mark.parametrize("name", NAMES)
def test_on_a_phone_it_has_no_empty_room_and_never_shrinks_under_a_slider(opened, name):
    heights, room = opened(name, 390).evaluate(HEIGHTS)
    assert abs(room) <= 1 and heights == sorted(heights), (room, heights)


def test_on_a_phone_a_moment_without_width_leaves_no_room(opened):
    """A screenshot of a long figure, or a page that is folded, makes it narrow for a moment."""
    page = opened("passes", 390)
    slide(page, "decoder passes", 1)
    before = root(page).bounding_box()["height"]
    for width in (1, 390):
        page.set_viewport_size(dict(width=width, height=900))
        page.wait_for_function("width => innerWidth === width", arg=width)
        page.wait_for_timeout(200)
    assert root(page).bounding_box()["height"] == pytest.approx(before, abs=1)


def test_on_a_phone_another_sentence_gives_the_room_back(opened, explorers):
    page = opened("beam", 390)
    frames = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(frames)
    first = root(page).bounding_box()["height"]
    slide(page, "step", len(explorers["beam"].searches["Tom warned you."].steps))
    page.evaluate(frames)
    last = root(page).bounding_box()["height"]
    select(page, "sentence", 1)
    page.evaluate(frames)
    assert first < last > root(page).bounding_box()["height"]


@pytest.mark.parametrize("name", NAMES)
def test_without_scripts_there_is_a_picture_with_words(opened, name, explorers):
    page = opened(name, java_script_enabled=False)
    picture = page.locator(".explorer img")
    assert picture.is_visible() and picture.get_attribute("alt") == repr(explorers[name])
    box = picture.bounding_box()
    assert box["width"] > 300 and box["height"] > 150


@pytest.mark.parametrize("name", NAMES)
def test_the_words_of_the_picture_stay_for_those_who_listen(opened, name, explorers):
    page = opened(name)
    assert page.locator(".explorer img").count() == 0
    assert page.locator(".explorer > p.words").inner_text() == repr(explorers[name])
    assert page.get_by_role("group").first.get_attribute("aria-label")
    assert page.locator(".explorer output").get_attribute("aria-live") == "polite"


# --- compass --------------------------------------------------------------------------------


def test_weights_follow_the_sliders_of_the_compass(opened, explorers):
    page = opened("compass")
    for direction, length in ((0, 0), (60, 4), (225, 2.5)):
        slide(page, "direction", direction)
        slide(page, "length", length)
        weights = explorers["compass"].weights(direction, length)
        assert np.allclose(numbers(page, "weights"), weights, atol=1e-6)
        output = explorers["compass"].output(direction, length)
        assert np.allclose(numbers(page, "output"), output, atol=1e-6)
        assert f"Query at {direction}°, length {length:.2f}" in said(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_query_of_the_compass_is_dragged(opened, width):
    page = opened("compass", width)
    page.locator(".rose").scroll_into_view_if_needed()
    box, tip = page.locator(".rose").bounding_box(), page.locator(".handle").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tip_x, tip_y = tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2
    unit = math.hypot(tip_x - x, tip_y - y) / float(re.search(r"length (\d+\.\d+)", said(page))[1])
    page.mouse.move(tip_x, tip_y)
    page.mouse.down()
    for right, down, shown in ((3, 0, "90°, length 3.00"), (0, 4, "180°, length 4.00"),
                               (-9, 0, "270°, length 5.00")):  # fmt: skip
        page.mouse.move(x + right * unit, y + down * unit)
        assert f"Query at {shown}" in said(page)
    page.mouse.up()
    page.mouse.move(x, y - 40)
    assert "270°" in said(page)


# --- softmax --------------------------------------------------------------------------------


def test_weights_and_slope_are_the_packages(opened, explorers):
    explorer, page = explorers["softmax"], opened("softmax")
    settings = ((0, 6, 0), (5, 8, 4), (11, 0, -8))
    for divide, (query, size, warmth) in product((False, True), settings):
        page.get_by_role("checkbox").set_checked(divide)
        slide(page, "query", query + 1)
        slide(page, "vector length", size)
        slide(page, "temperature", warmth)
        weights = explorer.weights(query, 2**size, divide, 2 ** (warmth / 4))
        assert np.allclose(numbers(page, "weights"), weights, atol=1e-4)
        slope = explorer.slope(weights).item()
        assert numbers(page, "slope")[0] == pytest.approx(slope, abs=1e-4)
        assert f"d_k = {2**size}" in said(page)
        assert f"{weights.max():.2f} of the weight" in said(page)
        assert ("divided by its root" in said(page)) is divide


# --- positions ------------------------------------------------------------------------------


def test_rows_and_products_are_the_packages(opened, explorers):
    page, places = opened("positions"), ((30, -30), (77, 0), (200, 30))
    for width, (position, offset) in product((16, 64, 512), places):
        table = sinusoidal_table(260, width).double()
        select(page, "columns", explorers["positions"].widths.index(width))
        slide(page, "position p", position)
        slide(page, "offset k", offset)
        assert np.allclose(numbers(page, "row"), table[position, :64], atol=1e-6)
        dot = (table[position] @ table[position + offset]).item()
        assert numbers(page, "product")[0] == pytest.approx(dot, abs=1e-4)
        assert f"Positions {position} and {position + offset}" in said(page)
        assert f"{dot:.2f}".replace("-", "\u2212") in said(page)
        assert "-" not in said(page)  # a minus is a minus


# --- depth --------------------------------------------------------------------------------


def test_depth_shows_the_record(opened, explorers):
    page, measured = opened("depth"), explorers["depth"].measured
    for residual, (place, norm) in product((True, False), enumerate(("post", "pre", "none"))):
        name = next(n for n, kind in KINDS.items() if tuple(kind) == (residual, norm))
        page.get_by_role("checkbox").set_checked(residual)
        select(page, "layer norm", place)
        for layers in (1, 6, 24):
            slide(page, "layers N", layers)
            seen = measured[name]
            assert np.allclose(numbers(page, "gradients"), seen["gradients"][layers - 1], rtol=0.01)
            assert numbers(page, "size")[0] == pytest.approx(seen["size"][layers], rel=0.01)
            shown = float(f"{seen['likeness'][layers]:.3g}")  # as the widget has it
            rounded = Decimal(shown).quantize(Decimal("0.01"), ROUND_HALF_UP)  # as toFixed does
            assert f"cosine of {rounded}" in said(page)


def test_dragging_along_the_curve_moves_the_offset_as_the_slider_does(opened):
    page = opened("positions")
    curve = page.locator(".explorer .curve")
    curve.wait_for()
    box = curve.bounding_box()
    y = box["y"] + box["height"] / 2
    middle = box["x"] + 40 + (box["width"] - 50) / 2
    page.mouse.move(middle, y)
    page.mouse.down()
    assert page.get_by_label("offset k").input_value() == "0"
    page.mouse.move(box["x"] + box["width"] + 50, y)
    page.mouse.up()
    assert page.get_by_label("offset k").input_value() == "30"
    page.mouse.move(middle, y)
    assert page.get_by_label("offset k").input_value() == "30"
    assert "Positions 40 and 70" in said(page)


# --- masks ----------------------------------------------------------------------------------


def test_masks_are_the_packages(opened, explorers):
    page, settings = opened("masks"), ((0, 9), (3, 9), (0, 2), (4, 3), (8, 1))
    for causal, (padding, window) in product((False, True), settings):
        page.get_by_role("checkbox").set_checked(causal)
        slide(page, "padding", padding)
        slide(page, "window", window)
        mask = explorers["masks"].mask(causal, padding, window)
        expected = "".join(str(int(seen)) for row in mask.tolist() for seen in row)
        assert root(page).get_attribute("data-mask") == expected
        cells = page.locator(".explorer td .words").all_inner_texts()
        assert [text == "may attend" for text in cells] == [c == "1" for c in expected]
        assert f"{int(mask.sum())} of 81 pairs are open" in said(page)
        blind = not mask.any(dim=1).all()
        assert ("output is zero" in said(page)) is blind
        code = page.locator(".explorer code").inner_text()
        assert ("causal_mask" in code, "padding_mask" in code) == (causal, padding > 0)


def test_a_tap_on_a_row_chooses_the_query(opened):
    page = opened("masks", width=390)
    page.locator(".explorer tbody tr").nth(4).locator("td").nth(2).tap()
    assert said(page).startswith("Query 5, \u201cMilch\u201d, may attend to 1 <bos>, 2 die,")
    assert page.get_by_role("slider", name="query").input_value() == "5"


# --- beams ----------------------------------------------------------------------------------


def test_buttons_and_arrows_step_through_the_search(opened, explorers):
    page, explorer = opened("beam"), explorers["beam"]
    search = explorer.searches["Tom warned you."]
    last = len(search.steps)
    button = page.get_by_role("button", name="Next step")
    button.click()
    assert root(page).get_attribute("data-step") == "1"
    assert "4 live on, 0 ended, 4 dropped" in said(page)
    for _ in range(last + 3):  # the arrow keys go on, and stop at the end
        page.keyboard.press("ArrowRight")
    assert root(page).get_attribute("data-step") == str(last)
    assert button.get_attribute("aria-disabled") == "true"
    page.keyboard.press("ArrowLeft")
    assert root(page).get_attribute("data-step") == str(last - 1)
    page.get_by_role("button", name="Back").click()
    assert root(page).get_attribute("data-step") == str(last - 2)


def test_the_winner_and_the_end_depend_on_the_penalty(opened, explorers):
    page, explorer = opened("beam"), explorers["beam"]
    for place, (text, search) in enumerate(explorer.searches.items()):
        select(page, "sentence", place)
        assert root(page).get_attribute("data-step") == "0"
        for number, penalty in enumerate(PENALTIES):
            select(page, "length penalty", number)
            settled = search.trace.settled(*penalty)
            for step, words in ((settled - 1, "may still be beaten"), (settled, "may stop")):
                slide(page, "step", step)
                found = search.trace.best(*penalty, step)
                if found is None:  # nothing has ended yet, so there is nothing to be beaten
                    continue
                best = explorer.tokenizer.decode(found.tokens).strip()
                assert root(page).get_attribute("data-best") == best, (text, penalty, step)
                assert words in said(page) and best in said(page)
        slide(page, "step", len(search.steps))
        rows = page.locator(".explorer .lists table").nth(1).locator("tbody tr")
        assert rows.count() == len(search.trace.endings)


# --- training and generating ----------------------------------------------------------------


def test_passes_fill_the_rows_and_play_is_for_readers_who_want_motion(opened):
    page = opened("passes")
    made = page.locator(".explorer .side:nth-child(2) .made")
    assert page.get_by_role("button", name="Play").count() == 0  # these visits want no motion
    for passes in (1, 2, 3):
        page.get_by_role("button", name="Next pass").click()
        assert root(page).get_attribute("data-passes") == str(passes)
        assert made.count() == passes
        assert page.locator(".explorer .side:nth-child(1) .made").count() == 9
    assert "pass 3 predicts “überqu”, the next input" in said(page)
    for _ in range(12):  # the arrow keys go on, and stop at the end
        page.keyboard.press("ArrowRight")
    assert made.count() == 9 and "finished" in said(page)
    slide(page, "marked position", 1)
    assert page.locator(".explorer .seen").count() == 2
    assert "Position 1 in training sees \u201c<bos>\u201d" in said(page)
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => document.querySelector('.explorer').dataset.passes === '1'")
    page.get_by_role("button", name="Pause").click()


@pytest.mark.parametrize("name, slider", [("passes", "decoder passes"), ("merges", "merges")])
def test_play_ends_when_a_reader_takes_over_or_wants_no_motion(opened, name, slider):
    page = opened(name)
    page.emulate_media(reduced_motion="no-preference")
    play, pause = (page.get_by_role("button", name=text) for text in ("Play", "Pause"))
    slide(page, slider, page.get_by_role("slider", name=slider).get_attribute("max"))
    for take_over in (
        pause.click,
        lambda: page.keyboard.press("ArrowLeft"),
        page.get_by_role("button", name="Next").click,
        lambda: page.get_by_role("slider", name=slider).dispatch_event("pointerdown"),
        lambda: page.get_by_role("slider", name=slider).press("ArrowRight"),
    ):
        play.click()
        assert pause.is_visible()
        take_over()
        assert play.is_visible() and not pause.count()
    play.click()
    page.emulate_media(reduced_motion="reduce")
    play.or_(pause).wait_for(state="detached")


def test_a_new_word_moves_to_the_next_input_after_one_more_pass(opened):
    page, moving = opened("passes"), "() => document.getAnimations().length"
    following = page.get_by_role("button", name="Next pass")
    following.click()
    assert page.evaluate(moving) == 0  # these visits want no motion
    page.emulate_media(reduced_motion="no-preference")
    following.click()
    assert page.evaluate(moving) == 1
    slide(page, "marked position", 1)  # draws the same pass again
    assert page.evaluate(moving) == 0
    slide(page, "decoder passes", 5)
    assert page.evaluate(moving) == 0


@pytest.mark.parametrize(("step", "epsilon"), [(0, 0), (2, 0.1), (4, 0.4)])
def test_loss_and_floor_of_the_target_are_the_packages(opened, explorers, step, epsilon):
    page, explorer = opened("target"), explorers["target"]
    slide(page, "position", step)
    slide(page, "smoothing", epsilon)
    assert numbers(page, "loss") == pytest.approx(explorer.loss(step, epsilon), abs=1e-3)
    assert numbers(page, "least") == pytest.approx(explorer.floor(epsilon), abs=1e-3)


def test_the_schedule_is_eq_3(opened):
    page = opened("schedule")
    assert numbers(page, "peak") == pytest.approx(learning_rate(4000, 512))
    slide(page, "warm-up", 3)
    slide(page, "factor", 3)
    assert numbers(page, "peak") == pytest.approx(learning_rate(1000, 512, 1000, 2.0))
    page.get_by_role("checkbox", name="count batches").check()
    assert numbers(page, "end") == pytest.approx(learning_rate(1_000_000, 512, 1000, 2.0))


def test_the_words_and_the_share_follow_the_step(opened, explorers):
    page, shares = opened("learning"), explorers["learning"].payload()["shares"]
    for place, kept in enumerate((["die"], ["Die", "Katze", "Es"], 6)):
        slide(page, "training step", place)
        found = page.locator(".explorer .kept").all_inner_texts()
        assert found == kept or len(found) == kept
        assert float(root(page).get_attribute("data-share")) == shares[place]
    assert "BLEU on validation sentences at step 250: 3.2" in said(page)
    slide(page, "training step", 0)
    assert "BLEU" not in said(page)
    assert "and 28 more" in page.locator(".explorer dd").first.inner_text()


def test_the_brackets_become_the_tree_of_the_repairs(opened):
    page = opened("trees")
    assert "takes the next word" not in said(page) and "opens a phrase" in said(page)
    select(page, "sentence", 1)
    slide(page, "step", 6)
    assert "Faults: too few words" in said(page)
    assert "1 phrase is right, of 3 in the right tree and 2 here: F1 40%" in said(page)
    assert root(page).get_attribute("data-phrases") == "S:the cat sleeps|NP:the"


# --- merges and batches -----------------------------------------------------------------------


def test_the_merges_step_by_button_key_and_slider(opened, explorers):
    page, stepper = opened("merges"), explorers["merges"]
    assert root(page).get_attribute("data-merges") == "3"
    page.get_by_role("button", name="Next merge").click()
    page.keyboard.press("ArrowRight")
    assert root(page).get_attribute("data-merges") == "5"
    page.get_by_role("button", name="Back").click()
    for place, stop in enumerate(stepper.stops):
        slide(page, "merges", place)
        assert root(page).get_attribute("data-merges") == str(stop)
        shown = root(page).get_attribute("data-pieces").split("\n")
        for line, pieces in zip(shown, stepper.pieces[place], strict=True):
            text = [piece.decode(errors="replace").replace(" ", "▁") for piece in pieces]
            assert line.split("|") == text
        if place < 12:
            (_, count), *_ = stepper.most_frequent[place]
            assert f"{count} times" in said(page)


def test_batches_are_packed_as_the_package_packs_them(opened, explorers):
    page, packer = opened("packer"), explorers["packer"]
    for place, width in enumerate(packer.ORDERS.values()):
        select(page, "order of the sentences", place)
        for budget in (64, 256, 512):
            slide(page, "budget of a batch", budget)
            assert numbers(page, "batches")[0] == len(packer.plan(width, budget))
            wanted = packer.padding(width, budget)
            assert numbers(page, "padding")[0] == pytest.approx(wanted, abs=1e-5)
            assert f"{round(100 * wanted)}% padding" in said(page)


# --- memory and reach ----------------------------------------------------------------------


def test_memory_is_that_of_the_package(opened, explorers):
    page = opened("memory")
    sliders, ticks = page.locator("input[type=range]"), page.locator("input[type=checkbox]")
    for powers, switches in (((9, 0, 0), ()), ((12, 3, 2), (0,)), ((12, 3, 4), (1, 2))):
        for i, power in enumerate(powers):
            sliders.nth(i).fill(str(power))
        for i in range(3):
            ticks.nth(i).set_checked(i in switches)
        length, many, parts = (2**power for power in powers)
        fused, again, half = (i in switches for i in range(3))
        pieces = explorers["memory"].pieces(length, many, min(parts, many), fused, again, half)
        assert float(root(page).get_attribute("data-bytes")) == sum(pieces.values())


@pytest.mark.parametrize("number, pattern", [*enumerate(PATTERNS)])
def test_hops_are_those_of_the_package(opened, explorers, number, pattern):
    page, shown = opened("reach"), explorers["reach"]
    page.locator("select").select_option(str(number))
    for width, layers, causal in ((3, 1, False), (5, 3, False), (3, 4, True)):
        for i, value in enumerate((width, layers)):
            page.locator("input[type=range]").nth(i).fill(str(value))
        page.locator("input[type=checkbox]").set_checked(causal)
        mask = shown.mask(pattern, width, causal)
        expected = " ".join(str(hop) for hop in shown.hops(mask, layers).flatten().tolist())
        assert root(page).get_attribute("data-hops") == expected
        assert f"{int(mask.sum())} of 81 scores" in said(page)


def test_patch_weights_are_the_models_and_a_tap_chooses_the_patch(opened, explorers):
    page, weights = opened("patches"), explorers["patches"].weights
    select(page, "digit", 1)
    select(page, "head", 6)
    slide(page, "patch", 9)
    assert numbers(page, "weights") == pytest.approx(weights[1, 1, 2, 9], abs=0.006)
    page.locator(".explorer svg rect[fill=transparent]").nth(2).click()
    assert page.get_by_role("slider", name="patch").input_value() == "2"
    assert numbers(page, "weights") == pytest.approx(weights[1, 1, 2, 2], abs=0.006)
