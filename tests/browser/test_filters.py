"""Tables of exercises and results: rows are chosen by menus. The wall of claims leads to rows."""

import re

RESULTS, EXERCISES = "book/results.html", "book/exercises.html"


def rows(page):
    return page.locator("table.filtered tbody tr:visible")


def choose(page, **values):
    for name, value in values.items():
        page.locator(f".row-filters select[name={name}]").select_option(value)


def numbers(page):
    """How many rows the page says that it shows, and of how many."""
    said = page.locator(".row-filters output").inner_text()
    shown, of, _ = re.fullmatch(r"(\d+) of (\d+) (\w+)", said).groups()
    return int(shown), int(of)


def test_a_mark_of_the_wall_leads_to_its_claim(visit, address):
    found = visit()
    page = found.page
    for start in ("book/paper.html", "book/intro.html"):
        found.open(address + start)
        marks = page.locator(".verdict-wall a")
        assert marks.count() > 60
        place = marks.nth(12)
        said = place.get_attribute("title")
        place.click()
        page.wait_for_url("**/paper/*#claim-13")
        row = page.locator("tr:has(:target)")
        assert row.locator("td").first.inner_text() in said
        assert row.locator(".verdict").inner_text() in said and found.errors == []


def test_exercises_of_a_level_and_a_chapter(visit, html):
    """The address keeps the choice, and a button shows all again."""
    found = visit()
    page = found.page
    found.open((html / EXERCISES).as_uri())
    shown, every = numbers(page)
    assert shown == every > 40
    choose(page, level="hard", chapter="19")
    fewer, _ = numbers(page)
    assert 0 < fewer < every and rows(page).count() == fewer
    page.reload()
    assert numbers(page) == (fewer, every)
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("!location.search")
    assert numbers(page) == (every, every) and found.errors == []


def test_a_menu_says_how_many_rows_are_left(visit, address):
    """A menu says how many rows are left, and a section without rows is left out."""
    found = visit()
    page = found.page
    found.open(f"{address}{EXERCISES}?level=hard")
    hard, _ = numbers(page)
    option = page.locator("select[name=answer] option[value=code]")
    left = int(re.search(r"\((\d+)\)", option.inner_text())[1])
    choose(page, answer="code")
    assert numbers(page)[0] == left < hard
    assert set(page.locator("[data-label=Level]:visible").all_inner_texts()) == {"hard"}
    page.get_by_role("button", name="Show all").click()
    choose(page, chapter="2")
    assert page.locator("article section section:visible").count() == 1
    assert rows(page).count() >= 3


def test_the_header_of_a_long_table_stays_and_rows_are_cards_on_a_phone(visit, address):
    found = visit()
    page = found.page
    found.open(address + RESULTS)
    last = page.locator("table.filtered tbody tr").last
    last.evaluate("row => scrollTo(0, row.getBoundingClientRect().top + scrollY - 300)")
    head = page.locator("table.filtered thead").last
    below = page.locator(".bd-header-article").bounding_box()
    place = head.locator("th").first.bounding_box()
    assert abs(place["y"] - (below["y"] + below["height"])) < 3
    page.set_viewport_size(dict(width=390, height=900))
    assert not head.is_visible()
    labels = page.locator("table.filtered tbody td").evaluate_all(
        "all => new Set(all.map(cell => getComputedStyle(cell, '::before').content)).size"
    )
    assert labels >= 4
