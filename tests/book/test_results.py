"""The results page: made from the records, all of them, and no two ways to count in one column."""

import copy
import re

import make_results
import pytest

from transformer.book.results import hardware_of, render_results, run_command
from transformer.book.tables import Table
from transformer.lab.table_2.recorded import recorded_runs
from transformer.lab.table_2.summary import metric_of, metric_title
from transformer.recipes.presets import PRESETS

LOWERCASE = "BLEU on lower-cased Moses tokens"


@pytest.fixture(scope="module")
def template():
    """A record that was really made, as a form to fill in."""
    return recorded_runs()["tatoeba-small-seed1"]


@pytest.fixture
def make(template):
    def make_record(name, seed, score, text="moses-lowercase", **fields):
        record = copy.deepcopy(template)
        record["preset"] |= dict(name=name, text=text, beam_size=4)
        record["preset"]["training"]["seed"] = record["seed"] = seed
        record["corpus"] |= dict(name="multi30k-en-de", languages=["en", "de"])
        signature = f"nrefs:1|case:mixed|eff:no|tok:{'13a' if text == 'plain' else 'none'}|made"
        entry = dict(split="test", pairs=1000, weights="averaged", beam_size=4, alpha=1.0,
                     penalty="fairseq", name="BLEU", score=score, signature=signature)  # fmt: skip
        record["metrics"] = [entry, entry | dict(name="chrF2", score=score + 20, signature="nc:6")]
        return record | fields

    return make_record


def tables(page):
    """Header and rows of every table of a page."""
    blocks = re.findall(r"((?:^\|.*\|\n)+)", page, re.M)
    split = [[line.strip("|\n ").split(" | ") for line in b.splitlines()] for b in blocks]
    return [(rows[0], rows[2:]) for rows in split]


def test_the_page_is_what_the_records_say():
    """It fails after a new run, until somebody calls: python tools/make_results.py."""
    assert make_results.PAGE.read_text(encoding="utf-8") == render_results()


def test_every_record_is_there_with_all_that_it_holds():
    page = render_results()
    for name, record in recorded_runs().items():
        assert f"[{name}](" in page and f"All scores of {name}" in page
        for fact in (run_command(record), f"{record['minutes']:,.1f}", hardware_of(record)):
            assert fact in page
        for entry in record["metrics"]:
            assert entry["signature"] in page and f"{entry['score']:.2f}" in page
            assert metric_title(metric_of(record, entry)) in page


def test_a_recipe_has_the_mean_and_the_range_of_its_seeds(make):
    scores = enumerate((41.0, 40.0, 42.5), 1)
    page = render_results({f"tiny-seed{i}": make("multi30k-tiny", i, score) for i, score in scores})
    assert "41.17 (40.00 to 42.50, 3 seeds)" in page
    assert "Transformer-Tiny, Wu et al. (41.02) lies within this spread" in page
    assert "GRU with attention, LIUM-CVC (one run) (39.00)" not in page.split("## Table 2")[0]
    assert "fewer than three seeds" not in page


def test_no_column_holds_two_ways_to_count(make):
    runs = {
        "tiny-seed1": make("multi30k-tiny", 1, 41.77),
        "cased-seed1": make("multi30k-tiny-cased", 1, 37.77, text="plain"),
    }
    section = render_results(runs).split("\n## ")[1]
    parts = re.split(r"\n(?=\*\*)", section)
    lowercase, cased, chrf, chrf_lowercase = (
        next(part for part in parts if part.startswith(f"**{title}.**"))
        for title in (LOWERCASE, "sacreBLEU", "chrF2", "chrF2 on lower-cased Moses tokens")
    )
    assert "41.77" in lowercase and "41.02" in lowercase and "37.77" not in lowercase
    assert "37.77" in cased and "41" not in cased and "Wu et al." not in cased
    assert "57.77" in chrf and "61.77" not in chrf and "61.77" in chrf_lowercase
    assert "do not compare it with sacreBLEU" in lowercase


def test_a_baseline_of_the_same_budget_is_set_against_the_transformer(make):
    runs = {f"tiny-seed{i}": make("multi30k-tiny", i, 41.0 + i) for i in (1, 2)}
    for i in (1, 2):
        runs[f"recurrent-seed{i}"] = make(
            "multi30k-recurrent", i, 41.5 + i, architecture="recurrent"
        )
    page = render_results(runs)
    assert "the ranges overlap, so the seeds do not tell them apart" in page
    assert "recurrent: num_layers" in page


def test_presets_without_a_record_are_listed_and_only_those(make):
    page = render_results({"tiny-seed1": make("multi30k-tiny", 1, 41.0)})
    missing = page.partition("## Not run yet")[2]
    listed = set(re.findall(r"^\| `([\w-]+)` \|", missing, re.M))
    assert listed == set(PRESETS) - {"smoke", "multi30k-tiny"}
    assert "fewer than three seeds: `multi30k-tiny` (1)" in missing
    (base,) = (row for _, rows in tables(missing) for row in rows if row[0] == "`wmt14-base`")
    assert "63,082,496" in base and "100,000 × 25,000" in base and "9.5e+17" in base


def test_where_everything_has_run_the_page_says_so(make):
    runs = {name: make(name, 1, 40.0) for name in PRESETS}
    assert "Every preset has a record." in render_results(runs)


def test_published_figures_leave_their_own_section_once_a_run_stands_beside_them(make):
    def alone(runs):
        page = render_results(runs)
        return page.partition("## Published, with no run")[2].partition("\n## ")[0]

    assert "Transformer-Tiny" in alone({}) and "28.4" not in alone({})
    beside = alone({"tiny-seed1": make("multi30k-tiny", 1, 41.0)})
    assert "Transformer-Tiny" not in beside and "31.25" in beside  # 2017 is not scored here


def test_the_papers_table_is_whole_and_without_records_nothing_is_ours():
    page = render_results({})
    (table,) = (rows for head, rows in tables(page) if "training FLOPs, English to German" in head)
    assert len(table) == 10 and table[-1][:5] == [
        "Transformer, big", "28.4", "41.8", "2.3e+19", "2.3e+19",
    ]  # fmt: skip
    assert "| **ours** |" not in page


def test_a_command_is_the_recorded_one_or_follows_from_preset_and_seed(template):
    record = template | dict(command="transformer train smoke --set seed=7")
    assert run_command(record) == "transformer train smoke --set seed=7"
    old = {name: value for name, value in template.items() if name != "command"}
    assert run_command(old | dict(seed=3)).endswith(" --set seed=3")


@pytest.mark.parametrize(
    "hardware, words",
    [
        (dict(device="cpu", devices=1, cpu="Some CPU", threads=1), "Some CPU, 1 thread"),
        (dict(device="cpu", devices=1, cpu="Some CPU", threads=4), "Some CPU, 4 threads"),
        (dict(device="Some GPU", devices=1, cpu="-", threads=8), "Some GPU"),
        (dict(device="Some GPU", devices=8, cpu="-", threads=8), "8 × Some GPU"),
    ],
)
def test_hardware_in_words(hardware, words):
    assert hardware_of(dict(environment=dict(hardware=hardware))) == words


def test_a_table_in_markdown_keeps_its_columns():
    assert Table(["a", "b"], [["x|y", 1]]).markdown() == "| a | b |\n| --- | --- |\n| x\\|y | 1 |\n"
