"""Tables of claims, exercises and results: rows are chosen by menus, and all are there without."""

import re

import pytest

CLAIMS, EXERCISES, RESULTS = (f"book/{name}.html" for name in ("paper", "exercises", "results"))


def rows(page):
    return page.locator("table.filtered tbody tr:visible")


def choose(page, **values):
    for name, value in values.items():
        page.locator(f".row-filters select[name={name}]").select_option(value)


def said(page):
    return page.locator(".row-filters output").inner_text()


def numbers(page):
    """How many rows the page says that it shows, and of how many."""
    shown, of, _ = re.fullmatch(r"(\d+) of (\d+) (\w+)", said(page)).groups()
    return int(shown), int(of)


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_claims_of_a_verdict_and_a_chapter(visit, address, html, scheme):
    found = visit()
    page = found.page
    found.open((address if scheme == "http" else html.as_uri() + "/") + CLAIMS)
    shown, every = numbers(page)
    assert shown == every > 40
    choose(page, verdict="mixed")
    part, _ = numbers(page)
    heads = page.locator("table.filtered tbody tr:not([data-continues]):visible")
    assert 0 < part < every and heads.count() == part
    assert set(heads.locator("[data-label=verdict]").all_inner_texts()) == {"mixed"}
    choose(page, chapter="18")
    fewer, _ = numbers(page)
    assert 0 < fewer < part and heads.count() == fewer
    assert all("18" in row.get_attribute("data-chapter").split("|") for row in heads.all())
    assert "verdict=mixed" in page.url and "chapter=18" in page.url
    page.reload()  # the address keeps the choice
    assert numbers(page) == (fewer, every) and heads.count() == fewer
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("!location.search")
    assert numbers(page) == (every, every)
    assert found.errors == []


def test_a_menu_says_how_many_rows_are_left(visit, address):
    found = visit()
    found.open(f"{address}{EXERCISES}?level=hard")
    hard, _ = numbers(found.page)
    option = found.page.locator("select[name=answer] option[value=code]")
    left = int(re.search(r"\((\d+)\)", option.inner_text())[1])
    choose(found.page, answer="code")
    assert numbers(found.page)[0] == left < hard
    assert set(found.page.locator("[data-label=Level]:visible").all_inner_texts()) == {"hard"}


def test_a_section_without_rows_is_left_out(visit, address):
    found = visit()
    found.open(address + EXERCISES)
    sections = found.page.locator("article section section:visible")
    every = sections.count()
    choose(found.page, chapter="2")
    assert sections.count() == 1 < every and rows(found.page).count() >= 3
    assert found.page.locator("article h1").is_visible()


def test_results_are_ours_or_published(visit, address):
    found = visit()
    found.open(f"{address}{RESULTS}?corpus=Multi30K&origin=published")
    texts = rows(found.page).locator("[data-label=from]").all_inner_texts()
    assert texts and "ours" not in texts
    assert not found.page.locator("#table-2-of-the-paper").is_visible()


@pytest.mark.parametrize("page", [CLAIMS, EXERCISES, RESULTS])
def test_the_header_of_a_long_table_stays(visit, address, page):
    found = visit()
    found.open(address + page)
    tables = found.page.locator("table.filtered:visible")
    sizes = [tables.nth(i).locator("tbody tr").count() for i in range(tables.count())]
    table = tables.nth(sizes.index(max(sizes)))
    last = table.locator("tbody tr").last
    last.evaluate("row => scrollTo(0, row.getBoundingClientRect().top + scrollY - 300)")
    head = table.locator("thead th").first
    place, row = head.bounding_box(), last.bounding_box()
    below = found.page.locator(".bd-header-article").bounding_box()
    assert abs(place["y"] - (below["y"] + below["height"])) < 3
    assert place["y"] + place["height"] < row["y"]
    on_top = found.page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).closest('thead') !== null",
        [place["x"] + 8, place["y"] + place["height"] / 2],
    )
    assert on_top


@pytest.mark.parametrize("page", [CLAIMS, EXERCISES])
def test_rows_are_cards_on_a_phone(visit, address, page):
    found = visit(width=390)
    found.open(address + page)
    assert not found.page.locator("table.filtered thead").first.is_visible()
    labels = found.page.locator("table.filtered tbody td").evaluate_all(
        "all => new Set(all.map(cell => getComputedStyle(cell, '::before').content)).size"
    )
    assert labels >= 4
    wide = found.page.locator("table.filtered, form.row-filters").evaluate_all(
        "all => all.filter(node => node.getBoundingClientRect().right > innerWidth).length"
    )
    assert wide == 0 and found.page.evaluate("document.documentElement.scrollWidth") <= 390
    empty = found.page.locator("tr[data-continues] td:visible").evaluate_all(
        "all => all.filter(cell => !cell.innerText.trim()).length"
    )
    assert empty == 0


def test_without_scripts_all_rows_are_there_and_no_menus(visit, address):
    found = visit(java_script_enabled=False)
    found.page.goto(address + CLAIMS)
    assert rows(found.page).count() == found.page.locator("table.filtered tbody tr").count() > 40
    assert not found.page.locator("form.row-filters").is_visible()
