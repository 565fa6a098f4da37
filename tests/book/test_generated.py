"""The tables that the book makes from records, notebooks and docstrings at build time."""

import copy
import json
import re
from functools import cache

import generated
import pytest
from generated import api, charts, claims, exercises, places, results
from generated.exercises import exercises_of
from generated.places import PLACES

from transformer.published import REPOSITORY
from transformer.recipes.presets import PRESETS
from transformer.recipes.record import hardware_of, recorded_command
from transformer_book.speed.comparison import RECORD
from transformer_book.studies.left_out.study import CHOICES
from transformer_book.studies.translation.recorded import recorded_runs
from transformer_book.studies.translation.summary import metric_of, metric_title
from transformer_book.tables import comparison

ROOT = generated.ROOT
CHAPTERS = claims.chapters(ROOT).values()


@cache
def texts_of(page):
    """The texts of a page, made once: the intervals of the results take seconds."""
    return generated.PAGES[page]()


def asked_by(*pages):
    """The names of the texts that pages ask for; none of them twice."""
    texts = [(ROOT / f"{page}.md").read_text(encoding="utf-8") for page in pages]
    asked = [name for text in texts for name in generated.FILLED.findall(text)]
    assert len(asked) == len(set(asked))
    return set(asked)


@pytest.mark.parametrize("page", generated.PAGES)
def test_a_page_shows_all_of_its_texts(page, monkeypatch):
    asked, made = asked_by(page), texts_of(page).keys()
    assert asked <= made if page.startswith("book/paper") else asked == made
    monkeypatch.setitem(generated.PAGES, page, lambda: texts_of(page))
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    assert "<!-- filled" not in generated.fill(page, text)


def test_the_annotated_paper_has_every_claim_figure_and_table_and_the_whole_program():
    asked = asked_by(*(page for page in generated.PAGES if page.startswith("book/paper")))
    # The other choices of chapter 23 are younger than the paper.
    younger = {name for name, choice in CHOICES.items() if choice.group != "open"} | {"base"}
    assert asked == texts_of("book/paper").keys() - younger
    marks = re.findall(r"paper/(\w+)\.html#(claim-\d+)", texts_of("book/paper")["wall"])
    assert len(marks) == len(claims.read_claims(ROOT)) == len(set(marks))
    for stem, anchor in marks:
        names = [name for name in asked_by(f"book/paper/{stem}") if name.startswith("claims-")]
        assert any(f'id="{anchor}"' in texts_of("book/paper")[name] for name in names), anchor


def test_the_tables_beside_the_papers_hold_what_was_recorded():
    found = texts_of("book/paper")
    assert "| 4 n d² + 2 n² d | O(1) | 7, 7, 7 |" in found["table-1"]
    assert "| 27.3 | 38.1 |" in found["table-2"] and "| recurrent | 8,000 |" in found["table-2"]
    assert found["table-3"].count("95% interval") == 2 and "| big | 4.33 |" in found["table-3"]
    assert "| WSJ only | 88.3 | 79 and 79 |" in found["table-4"]


def test_code_in_the_annotated_paper_is_the_programs():
    shown = texts_of("book/paper")["program-greedy_search"]
    assert "@torch.no_grad()\ndef greedy_search(" in shown
    lines = (ROOT / "transformer" / "minimal.py").read_text(encoding="utf-8").splitlines()
    first, last = map(int, re.search(r"lines (\d+) to (\d+)", shown).groups())
    assert "\n".join(lines[first - 1 : last]) in shown


def test_every_module_has_one_entry():
    pages = (ROOT / "book" / "api").glob("*.md")
    text = "".join(generated.fill("book/api/x", page.read_text()) for page in pages)
    listed = re.findall(r"automodule:: (\S+)", text)
    assert sorted(listed) == sorted(
        name for package in api.PACKAGES for name, _ in api.modules(ROOT, package)
    )
    assert text.index("transformer.model.attention") < text.index("transformer.model.base")


@pytest.fixture
def book(tmp_path):
    """A book with one claim and one chapter, whose table holds signs of HTML and of Markdown."""
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks").mkdir()
    table = comparison([("3: a < b", "0.5 | 1.0 & more", "Nowhere"), ("3: a rest", "2", "All")])
    output = dict(data={"text/html": table._repr_html_().splitlines(keepends=True)})
    cells = [dict(cell_type="code", source=[], outputs=[dict(text="a stream"), output])]
    (tmp_path / "notebooks" / "07_here.ipynb").write_text(json.dumps(dict(cells=cells)))

    def claim(*pieces, **fields):
        entry = dict(section="3", claim="a is small", evidence=list(pieces)) | fields
        (tmp_path / "book" / "claims.yml").write_text(json.dumps([entry]))
        return claims.texts(tmp_path)

    return claim


def piece(start, says=(), kind="sampled", chapter="07", **fields):
    return dict(row=[chapter, start], scale="toy", kind=kind, says=says) | fields


def test_a_claim_is_followed_by_its_evidence(book):
    found = book(
        piece("3: a <", ["supports", "open"], because="one run each"),
        piece("3: a r", "supports", kind="counted"),
        dict(text=["by hand", "Table 4"], scale="algebra", kind="counted", says="supports"),
    )
    link = "[7](../../notebooks/07_here.ipynb#the-paper-and-what-we-measured)"
    assert found["claims-3"].splitlines()[2:] == [
        '| <span id="claim-1">a is small</span> | <span class="verdict" '
        'data-verdict="holds in part">holds in part</span> '
        "| toy, sampled: supports, open (one run each) "
        f"| 0.5 \\| 1.0 & more | Nowhere | {link} |",
        f"|  |  | toy, counted: supports | 2 | All | {link} |",
        "|  |  | algebra, counted: supports | by hand | Table 4 |  |",
    ]
    assert 'data-verdict="holds in part" title="a is small: holds in part"' in found["wall"]
    assert found["number"] == "1"
    assert found["counts"].startswith("0 hold, 1 hold in part, 0 are mixed, 0 do not hold")
    assert found["sampled"] == "2" and found["mistakes"] == "0"


@pytest.mark.parametrize(
    "says, verdict",
    [
        ("supports", "holds"),
        ("supports supports", "holds"),
        ("supports open", "holds in part"),
        ("open supports against", "mixed"),
        ("supports against", "mixed"),
        ("against open", "does not hold here"),
        ("open open", "undecided"),
    ],
)
def test_the_verdict_follows_from_the_evidence(book, says, verdict):
    assert f">{verdict}</span> |" in book(piece("3: a <", says.split()))["claims-3"]


@pytest.mark.parametrize(
    "judged, fields",
    [
        (dict(says="perhaps"), {}),
        (dict(says="open", kind="guessed"), {}),
        (dict(says="open", scale="huge"), {}),
        (dict(says=[]), {}),
        (dict(says="open"), dict(verdict="design")),  # judged, and given a verdict as well
        (dict(says=[], kind=None), dict(verdict="holds")),  # a verdict by hand
    ],
)
def test_no_verdict_departs_from_the_rule(book, judged, fields):
    with pytest.raises(ValueError, match="does not follow the rule"):
        book(piece("3: a <", **judged), **fields)


def test_a_comparison_is_open_where_its_interval_includes_zero_or_crosses_the_margin():
    """What the claims say agrees with the intervals that the chapters' rows print today."""
    paths, compared = claims.chapters(ROOT), 0
    for claim in claims.read_claims(ROOT):
        for found in claim["evidence"]:
            if found.get("kind") != "sampled" or "because" in found:
                continue
            chapter, start = found["row"]
            rows = claims.stored_rows(paths[chapter])
            [measured] = [row[1] for row in rows if row[0].startswith(start)]
            ends = re.findall(r"\(([+-][\d.]+) to ([+-][\d.]+)\)", measured)
            margins = found.get("margin")
            margins = margins if isinstance(margins, list) else [margins] * len(ends)
            for word, (low, high), margin in zip(claims.words(found), ends, margins, strict=False):
                low, high = float(low), float(high)
                if margin:
                    inside = -margin <= low and high <= margin
                    outside = high < -margin or margin < low
                    expected = "supports" if inside else "against" if outside else "open"
                    assert word == expected, (start, measured)
                else:
                    assert (word == "open") == (low <= 0 <= high), (start, measured)
                compared += 1
    assert compared > 10


def test_every_chapter_with_a_table_has_a_claim():
    text = "".join(claims.texts(ROOT).values())
    used = set(re.findall(r"notebooks/(\w+)\.ipynb", text))
    assert used == {path.stem for path in CHAPTERS if claims.stored_rows(path)}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_exercise_is_overlooked(path):
    found = exercises_of(path)
    assert [each.number for each in found] == [*range(1, len(found) + 1)]
    assert len(found) == len(exercises.LEVELS[path.name[:2]])
    assert all(15 < len(each.question) <= 650 and each.level for each in found)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    solutions = sum("solution" in cell["metadata"].get("tags", []) for cell in cells)
    assert solutions >= len(found)


def test_every_place_of_the_paper_has_code_and_a_chapter():
    code = places.names_by_place(places.public_names(ROOT))
    treated = places.chapters_by_place(ROOT)
    numbered = "1 2 3 3.1 3.2 3.2.1 3.2.2 3.2.3 3.3 3.4 3.5 4 5 5.1 5.2 5.3 5.4 6 6.1 6.2 6.3 7"
    others = [f"Eq. ({i})" for i in (1, 2, 3)] + [f"Table {i}" for i in (1, 2, 3, 4)]
    others += [f"Figure {i}" for i in (1, 2, 3, 4, 5)] + ["footnote 4", "footnote 5"]
    assert {*numbered.split(), *others} <= PLACES.keys()
    for key, place in PLACES.items():
        assert treated[key], f"{key} has no chapter"
        below = [
            k for k, other in PLACES.items() if other.section == key or k.startswith(f"{key}.")
        ]
        assert any(code[k] for k in (key, *below)) or key == "Abstract", f"{key} has no code"
        assert place.section in {"", *numbered.split()}


def test_each_section_names_its_code_and_its_chapters():
    found = places.code(ROOT)
    pages = [ROOT / "book" / "paper" / f"{stem}.md" for stem in claims.SECTIONS]
    page = "".join(each.read_text(encoding="utf-8") for each in pages)
    assert re.findall(r"^\((paper-[\w-]+)\)=", page, re.M) == [PLACES[key].anchor for key in found]
    assert "`scaled_dot_product_attention <transformer.model" in found["3.2.1"]
    assert "_modules/transformer/model/attention.html#scaled_dot" in found["3.2.1"]
    assert "[2](../../notebooks/02_attention.ipynb" in found["3.2.1"]
    assert "**Eq. (1), " in found["3.2.1"] and "- ****" not in "".join(found.values())


@pytest.fixture
def make():
    """Make a record from one that was really recorded."""

    def make_record(name, seed, score, text="moses-lowercase", **fields):
        record = copy.deepcopy(recorded_runs()["tatoeba-small-seed1"])
        record["preset"] |= dict(name=name, text=text, beam_size=4)
        record["preset"]["training"]["seed"] = record["seed"] = seed
        record["corpus"] |= dict(name="multi30k-en-de", languages=["en", "de"])
        signature = f"nrefs:1|case:mixed|eff:no|tok:{'13a' if text == 'plain' else 'none'}|made"
        entry = dict(split="test", pairs=1000, weights="averaged", beam_size=4, alpha=1.0,
                     penalty="fairseq", name="BLEU", score=score, signature=signature)  # fmt: skip
        record["metrics"] = [entry, entry | dict(name="chrF2", score=score + 20, signature="nc:6")]
        return record | fields

    return make_record


def test_every_record_is_there_with_all_its_scores():
    text = texts_of("book/results")["runs"]
    for name, record in recorded_runs().items():
        run = f"[{name}](" if REPOSITORY else f"`{name}`"
        assert run in text and f"All scores of {name}" in text
        for fact in (recorded_command(record), f"{record['minutes']:,.1f}", hardware_of(record)):
            assert fact in text
        for entry in record["metrics"]:
            assert entry["signature"] in text and f"{entry['score']:.2f}" in text
            assert metric_title(metric_of(record, entry)) in text


def test_the_chart_keeps_languages_apart(make, monkeypatch):
    german, french = make("german", 1, 41.0), make("french", 1, 60.0)
    french["corpus"] |= dict(name="multi30k-en-fr", languages=["en", "fr"], sha256="french")
    drawn = []
    monkeypatch.setattr(results.charts, "chart", lambda parts, *_, **__: drawn.append(parts) or "")
    results.texts({"german-seed1": german, "french-seed1": french})
    [beside] = [parts for parts in drawn if "BLEU" in next(iter(parts))]
    own = {title: [row.value for row in rows if not row.hollow] for title, rows in beside.items()}
    pair = "multi30k-test2016, English to {}, BLEU".format
    assert own == {pair("French"): [60.0], pair("German"): [41.0]}


def test_a_recipe_has_the_mean_and_the_range_of_its_seeds(make):
    scores = enumerate((41.0, 40.0, 42.5), 1)
    found = results.texts({f"t-seed{i}": make("multi30k-tiny", i, score) for i, score in scores})
    assert "41.17 (40.00 to 42.50, 3 seeds)" in found["runs"]
    assert "fewer than three seeds" not in found["not-run"]


def test_no_column_holds_two_metrics(make):
    runs = {
        "tiny-seed1": make("multi30k-tiny", 1, 41.77),
        "cased-seed1": make("multi30k-tiny-cased", 1, 37.77, text="plain"),
    }
    parts = re.findall(
        r"^\*\*(.*?)\.\*\*(.*?)(?=^\*\*|\Z)", results.texts(runs)["runs"], re.M | re.S
    )
    tables = dict(parts)
    lowercase, cased = tables["BLEU on lower-cased Moses tokens"], tables["sacreBLEU"]
    chrf, chrf_lowercase = tables["chrF2"], tables["chrF2 on lower-cased Moses tokens"]
    assert "41.77" in lowercase and "41.02" in lowercase and "37.77" not in lowercase
    assert "37.77" in cased and "41" not in cased and "Wu et al." not in cased
    assert "57.77" in chrf and "61.77" not in chrf and "61.77" in chrf_lowercase


def test_presets_without_a_record_are_listed(make):
    missing = results.texts({"tiny-seed1": make("multi30k-tiny", 1, 41.0)})["not-run"]
    listed = re.findall(r"^\| `([\w-]+)` \|(.*)", missing, re.M)
    assert {name for name, _ in listed} == set(PRESETS) - {"smoke", "multi30k-tiny"}
    assert "`multi30k-tiny` (1)" in missing
    base = dict(listed)["wmt14-base"]
    assert "63,082,496" in base and "100,000 × 25,000" in base and "9.5e+17" in base
    runs = {name: make(name, 1, 40.0) for name in PRESETS}
    assert "Every preset has a record." in results.texts(runs)["not-run"]


def test_the_prose_of_the_speed_page_agrees_with_the_record():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert record["command"] == "make bench" and "dirty" not in record["environment"]["code"]

    def ratio(table, name):
        rows = {row["name"]: row["ratio"] for row in record["tables"][table]["rows"]}
        return rows[name]

    peers = ("torch.nn.Transformer", "Hugging Face Marian", "x-transformers")
    for size in ("tiny", "small", "base"):
        assert all(ratio(f"train-{size}", peer) > 1 for peer in peers), size
    for size in ("tiny", "small"):  # "the peers become faster"
        fastest = [min(ratio(f"train-{size}{tuned}", peer) for peer in peers)
                   for tuned in ("", "-allocator")]  # fmt: skip
        assert fastest[1] < fastest[0]
    assert all(ratio("memory", peer) < 1 for peer in peers)
    assert ratio("train-threads", "one thread") > 1
    alike = "this package, MKL's products"
    with_mkl = [
        ratio(f"train-{size}", peer) / ratio(f"train-{size}", alike)
        for size in ("tiny", "small", "base")
        for peer in peers
    ]
    assert 0.99 < min(with_mkl) < max(with_mkl) < 1.5  # "a factor of 1.0 to 1.5"
    leads = {
        table: [ratio(table, peer) / ratio(table, alike) for peer in peers]
        for table in ("train-tiny-allocator", "train-small-allocator", "train-base")
    }
    small = leads["train-tiny-allocator"] + leads["train-small-allocator"]
    assert 0.03 < min(small) - 1 < max(small) - 1 < 0.14
    assert leads["train-base"] == pytest.approx([1.19, 1.00, 1.05], abs=0.04)
    served = "CTranslate2, float32"
    assert ratio("translate-1-1", served) < ratio("translate-64-1", served) < 1
    assert ratio("translate-1-4", served) < ratio("translate-64-4", served) < 1


def test_a_chart_has_every_number_and_a_variant_for_phones():
    rows = [charts.Row("one", 1.25, 1.0, 1.5), charts.Row("other", 0.5, colour="vermilion")]
    found = charts.chart({"Part": rows}, "ratio", "Two ratios", reference=1, log=True)
    wide, narrow = found.split('data-width="narrow"')
    for drawn in (wide, narrow):
        for text in ("Part", "one", "other", "1.25", "0.50", "ratio"):
            assert f">{text}<" in drawn, text
        assert "var(--vermilion" in drawn
    assert found.count('aria-label="Two ratios"') == 2 and found.startswith("```{raw} html\n")
