"""The explorers in a browser, each alone on a page: they compute what the package computes."""

import json
import math
import re
from itertools import product

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe

from transformer import Translator
from transformer.book import (
    CompassExplorer,
    DecoderPasses,
    FoldExplorer,
    MaskBuilder,
    NextTokenExplorer,
    PositionExplorer,
    SoftmaxExplorer,
    TensorWalk,
)
from transformer.book.widgets.walk import record_walk
from transformer.lab.layers.depth import KINDS
from transformer.lab.layers.depth import RECORD as DEPTH
from transformer.lab.layers.depth_explorer import DepthExplorer
from transformer.lab.search.explorer import BeamExplorer
from transformer.lab.search.steps import record_search
from transformer.model.positional import sinusoidal_table
from transformer.recipes.record import read_record

NAMES = ("compass", "softmax", "positions", "beam", "masks", "passes", "walk", "depth",
         "fold", "next")  # fmt: skip
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
    weather = {"north": [2, 30], "east": [10, 10], "south": [20, 40], "west": [12, 80]}
    return {
        "compass": CompassExplorer(weather, [("°C", 1), ("% rain", 0)]),
        "softmax": SoftmaxExplorer(*vectors),
        "positions": PositionExplorer(),
        "beam": BeamExplorer(searches, tokenizer),
        "masks": MaskBuilder(WORDS),
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_accessible_and_fits(opened, name, theme, width):
    page = opened(name, width, theme)
    assert root(page).get_attribute("data-theme") == theme
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = Axe().run(page, options={"runOnly": tags}).response["violations"]
    assert not found, json.dumps([(rule["id"], rule["nodes"][0]["html"]) for rule in found])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside, small = page.evaluate(
        """() => {
        const box = document.querySelector(".explorer").getBoundingClientRect();
        const all = selector => [...document.querySelectorAll(".explorer " + selector)]
            .map(element => [element, element.getBoundingClientRect()]);
        return [
            all("svg text").filter(([_, r]) => r.left < box.left || r.right > box.right),
            all(":is(input, select, button)").filter(([_, r]) => Math.min(r.width, r.height) < 24),
        ].map(list => list.map(([element]) => element.outerHTML));
    }"""
    )
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [390, 1280])
def test_its_height_stays_while_a_slider_moves(opened, name, width):
    page = opened(name, width)
    page.wait_for_function("() => document.querySelector('.explorer').style.minHeight")
    heights = page.evaluate(
        """() => {
        const root = document.querySelector(".explorer");
        const found = new Set([Math.round(root.getBoundingClientRect().height)]);
        for (const input of root.querySelectorAll("input[type=range]")) {
            const before = input.value;
            for (const value of [input.min, input.max, before]) {
                input.value = value;
                input.dispatchEvent(new Event("input", { bubbles: true }));
                found.add(Math.round(root.getBoundingClientRect().height));
            }
        }
        return [...found];
    }"""
    )
    assert len(heights) == 1, heights


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
            assert f"cosine of {shown:.2f}" in said(page)


def test_dragging_along_the_curve_moves_the_offset_as_the_slider_does(opened):
    page = opened("positions")
    box = page.locator(".explorer .curve").bounding_box()
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
    assert "pass 3 predicts \u201cüberqu\u201d, the next input" in said(page)
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
