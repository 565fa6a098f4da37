"""The tables that the book makes from records, notebooks and docstrings at build time."""

import copy
import json
import re
from dataclasses import replace

import generated
import pytest
from generated import api, claims, exercises, measured, paper_index, results
from generated.exercises import exercises_of
from generated.paper_index import PLACES, places, places_of_row

from transformer.book.tables import comparison
from transformer.lab.recipe.choices import CHOICES, Effect
from transformer.lab.speed import scale
from transformer.lab.speed.comparison import RECORD, STEP_TIME, Row, speed_table, summarise
from transformer.lab.speed.step_time import StepTime
from transformer.lab.table_2.recorded import recorded_runs
from transformer.lab.table_2.summary import hardware_of, metric_of, metric_title
from transformer.recipes.presets import PRESETS, get_preset
from transformer.recipes.record import write_record

ROOT = generated.ROOT
CHAPTERS = claims.chapters(ROOT).values()
GLOBAL = {"book/departures": {n for n, c in CHOICES.items() if c.group == "open"} - {"base"}}


@pytest.mark.parametrize("page", generated.PAGES)
def test_a_page_shows_all_of_its_texts(page):
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    asked = generated.FILLED.findall(text)
    assert len(asked) == len(set(asked))
    assert set(asked) == GLOBAL.get(page, generated.PAGES[page][0]().keys())
    assert all(list(ROOT.glob(pattern)) for pattern in generated.PAGES[page][1])
    assert "<!-- filled" not in generated.fill(page, text)


def test_an_unknown_text_is_an_error():
    with pytest.raises(KeyError):
        generated.fill("book/scale", "<!-- filled: nothing -->")
    assert generated.fill("book/other", "<!-- filled: nothing -->") == "<!-- filled: nothing -->"


def test_every_module_has_one_entry():
    pages = (ROOT / "book" / "api").glob("*.md")
    text = "".join(generated.fill("book/api/x", page.read_text()) for page in pages)
    listed = re.findall(r"automodule:: (\S+)", text)
    assert sorted(listed) == [name for name, _ in api.modules(ROOT)]
    assert text.index("transformer.model.attention") < text.index("transformer.model.base")


def test_packages_and_modules_must_exist():
    with pytest.raises(FileNotFoundError):
        api.entries(ROOT, "transformer.nothing")
    with pytest.raises(ValueError, match="transformer.model.nothing"):
        api.entries(ROOT, "transformer.model", "nothing")


def test_entries_of_the_lab_are_short():
    for name, left in (("transformer.lab.toys.toy.x", ["One."]), ("transformer.model.x", None)):
        lines = ["One.", "", "Args:"]
        api.shorten(None, "function", name, None, None, lines)
        assert lines == (left or ["One.", "", "Args:"])


@pytest.fixture
def book(tmp_path):
    """A book with one claim and one chapter, whose table holds signs of HTML and of Markdown."""
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks").mkdir()
    table = comparison([("3: a < b", "0.5 | 1.0 & more", "Nowhere"), ("3: a rest", "2", "All")])
    output = dict(data={"text/html": table._repr_html_().splitlines(keepends=True)})
    cells = [dict(cell_type="code", source=[], outputs=[dict(text="a stream"), output])]
    (tmp_path / "notebooks" / "07_here.ipynb").write_text(json.dumps(dict(cells=cells)))

    def claim(*evidence):
        entry = dict(section="3", claim="a is small", verdict="holds", evidence=evidence)
        (tmp_path / "book" / "claims.yml").write_text(json.dumps([entry]))
        return claims.texts(tmp_path)

    return claim


def test_a_claim_is_followed_by_its_evidence(book):
    found = book(["07", "3: a <"], ["07", "3: a r"])
    link = "[7](../notebooks/07_here.ipynb#the-paper-and-what-we-measured)"
    assert found["claims"].splitlines()[2:] == [
        f"| 3 | a is small | **holds** | 0.5 \\| 1.0 & more | Nowhere | {link} |",
        f"|  |  |  | 2 | All | {link} |",
    ]
    assert found["number"] == "1" and found["counts"].startswith("1 hold, 0 hold in part, 0 do")


@pytest.mark.parametrize("evidence", [("07", "3: b"), ("07", "3: a"), ("08", "3: a <")])
def test_evidence_is_exactly_one_row(book, evidence):
    with pytest.raises(LookupError, match="rows that begin with"):
        book(evidence)


def test_every_chapter_with_a_table_has_a_claim():
    text = claims.texts(ROOT)["claims"]
    used = set(re.findall(r"notebooks/(\w+)\.ipynb", text))
    assert used == {path.stem for path in CHAPTERS if claims.stored_rows(path)}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_exercise_is_overlooked(path):
    found = exercises_of(path)
    assert [each.number for each in found] == [*range(1, len(found) + 1)]
    assert len(found) == len(exercises.LEVELS[path.name[:2]])
    assert all(15 < len(each.question) <= 400 and each.level for each in found)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    solutions = sum("solution" in cell["metadata"].get("tags", []) for cell in cells)
    assert solutions >= sum(each.kind != "your own experiment" for each in found)


def test_every_place_of_the_paper_has_code_and_a_chapter():
    code = paper_index.names_by_place(paper_index.public_names(ROOT))
    treated = paper_index.chapters_by_place(ROOT)
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


def test_every_public_name_is_in_one_half_of_the_way_back():
    found = paper_index.texts(ROOT)
    names = paper_index.public_names(ROOT)
    listed = re.findall(r"\{py:obj\}`[^`<]+ <([\w.]+)>`", found["code"] + found["apart"])
    assert sorted(listed) == sorted(name.full_name for name in names)
    anchors = set(re.findall(r"^\((paper-[\w-]+)\)=", found["paper"], re.M))
    assert set(re.findall(r"\]\(#([\w-]+)\)", found["code"])) <= anchors


def test_places_are_read():
    for text, expected in {
        "section 3.2.1, Eq. (1)": ("3.2.1", "Eq. (1)"),
        "sections 5.1 to 5.4 and 6.1": ("5.1", "5.2", "5.3", "5.4", "6.1"),
        "sections 1 and 2 (recurrent), 3.2.1 (additive)": ("1", "2", "3.2.1"),
        "section 4, Figures 3 to 5; and more": ("4", "Figure 3", "Figure 4", "Figure 5"),
        "section 2 (ConvS2S); Gehring et al. 2017, section 3.3": ("2",),
        "all sections": ("all sections",),
    }.items():
        assert places(text) == expected
    for row, expected in {
        "6.2, Table 3 (A): BLEU 24.9 / 25.5 for h = 1 / 4": ("6.2", "Table 3"),
        "Abstract: attention alone": ("Abstract",),
        "Footnote 4: q · k": ("footnote 4",),
        "Nothing on cross-attention in 3": (),
    }.items():
        assert places_of_row(row) == expected
    for text in ("section 8", "section 3.6", "Table 5", "the appendix", ""):
        with pytest.raises(ValueError, match="no place of the paper"):
            places(text)


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
    text = results.texts()["runs"]
    for name, record in recorded_runs().items():
        assert f"[{name}](" in text and f"All scores of {name}" in text
        for fact in (results.run_command(record), f"{record['minutes']:,.1f}", hardware_of(record)):
            assert fact in text
        for entry in record["metrics"]:
            assert entry["signature"] in text and f"{entry['score']:.2f}" in text
            assert metric_title(metric_of(record, entry)) in text


def test_a_recipe_has_the_mean_and_the_range_of_its_seeds(make):
    scores = enumerate((41.0, 40.0, 42.5), 1)
    found = results.texts({f"t-seed{i}": make("multi30k-tiny", i, score) for i, score in scores})
    assert "41.17 (40.00 to 42.50, 3 seeds)" in found["runs"]
    assert "Transformer-Tiny, Wu et al. (41.02) lies within this spread" in found["runs"]
    assert "GRU with attention, LIUM-CVC (one run) (39.00)" not in found["runs"]
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


def test_a_published_score_moves_beside_our_run(make):
    alone = results.texts({})["published"]
    assert "Transformer-Tiny" in alone and "28.4" not in alone
    beside = results.texts({"tiny-seed1": make("multi30k-tiny", 1, 41.0)})["published"]
    assert "Transformer-Tiny" not in beside and "31.25" in beside  # 2017 is not scored here


def test_table_2_is_complete():
    rows = results.texts({})["table-2"].splitlines()
    assert len(rows) == 2 + 10
    assert rows[-1].startswith("| Transformer, big | 28.4 | 41.8 | 2.3e+19 | 2.3e+19 |")


def test_hardware_in_words():
    def words(device, devices, threads):
        hardware = dict(device=device, devices=devices, cpu="Some CPU", threads=threads)
        return hardware_of(dict(environment=dict(hardware=hardware)))

    assert words("cpu", 1, 1) == "Some CPU, 1 thread" and words("cpu", 1, 4)[-7:] == "threads"
    assert words("Some GPU", 1, 8) == "Some GPU" and words("Some GPU", 8, 8) == "8 × Some GPU"


def test_an_effect_has_mean_range_and_verdict():
    worse = Effect("glorot-init", (-0.5, -0.7), (-2.0, -4.0), 100, 0.1)
    assert measured.describe_effect(worse) == (
        "-0.60 nats (-0.70 to -0.50), -3.0 BLEU (-4.0 to -2.0): "
        "[worse](../notebooks/21_left_out.ipynb)"
    )
    level = Effect("x", (-0.1, 0.2), (0.0, 0.0), 1, 0.3)
    assert "[no clear difference](" in measured.describe_effect(level)


def test_the_runs_of_the_paper_on_paper():
    base, big, *_ = scale.planned_runs()
    assert base.target_tokens == 100_000 * 25_000 and big.target_tokens == 300_000 * 25_000
    # Six operations per weight and token, for roughly half of the weights of each side's layers.
    weights = 512 * 37_000 + 44e6  # the output projection and all layers
    assert base.flops == pytest.approx(6 * 2.5e9 * weights, rel=0.15)
    one, eight = base.seconds("H100"), base.seconds("H100", 8)
    assert one == pytest.approx(8 * eight) == pytest.approx(base.flops / 0.35 / 989e12)
    assert base.seconds("A100") == pytest.approx(one * 989 / 312)


def test_a_text_is_taken_in_proportion():
    found = dict(
        text_bytes=800,
        learn=dict(cpu_seconds=1.0),
        encode=dict(cpu_seconds=3.0, source_tokens=150, target_tokens=50),
        start_again=dict(cpu_seconds=0.5, peak_bytes=1400, idle_bytes=1000),
    )
    text = scale.planned_text(100, dict(pairs={"9": {}, "10": found}))  # 26 times the tokens
    assert (text.text_bytes, text.prepare_seconds) == (26 * 800, pytest.approx(26 * 4.0))
    assert (text.plan_bytes, text.start_seconds) == (10 * 400, pytest.approx(5.0))
    assert text.cache_bytes == 5200 * 2 + 100 * 32


def test_eight_gpus_share_weights_gradients_and_moments():
    count, alone, whole = scale.memory(get_preset("wmt14-big"))
    _, shared, _ = scale.memory(get_preset("wmt14-big"), 8)
    assert whole == 12 * count and alone - shared == 14 * count


def test_ratios_are_taken_within_a_round():
    rows = summarise({"a": [10.0, 100.0, 30.0], "b": [10.0, 50.0, 10.0]})
    assert rows[0] == dict(name="a", median=30.0, ratio=1.0, least=1.0, most=1.0)
    assert rows[1] == dict(name="b", median=10.0, ratio=2.0, least=1.0, most=3.0)
    with pytest.raises(ValueError):
        summarise({"a": [1.0, 2.0], "b": [1.0]})


def test_a_table_compares_the_first_with_the_others():
    rows = [Row("a", 30.0, 1.0, 1.0, 1.0), Row("b", 10.0, 3.0, 2.5, 3.5)]
    table = speed_table("tokens", rows)
    assert table.rows == [["a", "30.0", "", ""], ["b", "10.0", "3.00", "2.50 to 3.50"]]
    assert speed_table("MiB", rows).header[1:3] == ["MiB", "a: times its memory"]


def test_the_parts_of_a_step_are_shares_of_it():
    step = StepTime("cpu", "fp32", 3, 0.5, 1000.0, {"dropout": 0.1, "matrix products": 0.3})
    other = replace(step, kinds={"matrix products": 0.2})
    assert measured.step_table({"tiny": step, "base": other}).rows == [
        ["matrix products", "75.0%", "100.0%"], ["dropout", "25.0%", "0.0%"],
        ["seconds per step", "0.500", "0.500"], ["target tokens per second", "2,000", "2,000"],
    ]  # fmt: skip


def test_gpus_appear_once_they_are_measured(tmp_path):
    assert "Nothing on this page was measured on a GPU" in measured.speed(tmp_path)["gpu"]
    steps = json.loads(STEP_TIME.read_text(encoding="utf-8"))["sizes"]["base"]
    found = dict(
        kind="throughput", device="NVIDIA H200", precision="bf16", utilisation=0.371,
        target_tokens_per_second=731_234.0, step_time=steps | dict(kinds={"nothing at work": 1.0}),
    )  # fmt: skip
    write_record(tmp_path / "wmt14-base-throughput.json", found)
    write_record(tmp_path / "smoke-throughput.json", found | dict(device="cpu, 1 threads"))
    text = measured.speed(tmp_path)["gpu"]
    assert "| wmt14-base | NVIDIA H200 | bf16 | 731,000 | 37% |" in text
    assert "| nothing at work | 100.0% |" in text and "smoke" not in text


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
    served = "CTranslate2, float32"
    assert ratio("translate-1-1-1", served) < ratio("translate-64-1-1", served) < 1
    assert ratio("translate-1-4-1", served) < ratio("translate-64-4-1", served) < 1
