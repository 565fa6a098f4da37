"""The speed page: its tables are the record's, and nothing in its prose contradicts them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from transformer.book.markers import fill_in, marked
from transformer.book.speed import (
    STEP_TIME,
    Row,
    blocks,
    ratio,
    recorded_speed,
    speed_table,
    step_table,
    summarise,
)
from transformer.lab.speed.step_time import KINDS, StepTime
from transformer.recipes.record import write_record

PAGE = Path(__file__).parents[2] / "book" / "speed.md"
OURS = "this package"


@pytest.fixture(scope="module")
def record():
    return recorded_speed()


def test_the_page_shows_the_record_and_all_of_it(record):
    page = PAGE.read_text(encoding="utf-8")
    assert fill_in(page, "speed", blocks(record)) == page
    assert set(marked(page, "speed")) == {*record["tables"], "machine", "export", "step", "gpu"}


def test_ratios_are_taken_within_a_round_and_not_between_medians():
    rows = summarise({"a": [10.0, 100.0, 30.0], "b": [10.0, 50.0, 10.0]})
    assert rows[0] == dict(name="a", median=30.0, ratio=1.0, least=1.0, most=1.0)
    assert rows[1] == dict(name="b", median=10.0, ratio=2.0, least=1.0, most=3.0)
    with pytest.raises(ValueError):
        summarise({"a": [1.0, 2.0], "b": [1.0]})


def test_a_table_compares_the_first_with_the_others():
    rows = [Row("a", 30.0, 1.0, 1.0, 1.0), Row("b", 10.0, 3.0, 2.5, 3.5)]
    table = speed_table("tokens", rows)
    assert table.header == ["", "tokens a second", "a: times its speed", "range"]
    assert table.rows == [["a", "30.0", "", ""], ["b", "10.0", "3.00", "2.50 to 3.50"]]
    assert speed_table("MiB", rows).header[1:3] == ["MiB", "a: times its memory"]


@pytest.fixture
def steps():
    record = json.loads(STEP_TIME.read_text(encoding="utf-8"))
    assert record["command"] == "python tools/record_step_time.py"
    return {name: StepTime(**found) for name, found in record["sizes"].items()}


def test_the_parts_of_a_step_are_shares_of_it():
    kinds = {"dropout": 0.1, "matrix products": 0.3}
    step = StepTime("cpu", "fp32", 3, 0.5, 1000.0, kinds)
    other = replace(step, kinds={"matrix products": 0.2})
    table = step_table({"tiny": step, "base": other})
    assert table.header == ["of a step", "tiny", "base"]
    assert table.rows == [
        ["matrix products", "75.0%", "100.0%"], ["dropout", "25.0%", "0.0%"],
        ["seconds a step", "0.500", "0.500"], ["target tokens a second", "2,000", "2,000"],
    ]  # fmt: skip


def test_a_step_of_a_cpu_goes_where_the_page_says(steps):
    products = [steps[size].shares["matrix products"] for size in ("tiny", "small", "base")]
    assert products == sorted(products), "the larger the model, the more is matrix products"
    for step in steps.values():
        assert step.device.startswith("cpu") and step.precision == "fp32"
        assert set(step.kinds) <= set(KINDS) and next(iter(step.shares)) == "matrix products"


def test_gpus_appear_when_they_were_measured(record, tmp_path, steps):
    assert "Nothing on this page was measured on a GPU yet" in blocks(record, tmp_path)["gpu"]
    found = dict(
        kind="throughput", device="NVIDIA H200", precision="bf16", utilisation=0.371,
        target_tokens_per_second=731_234.0,
        step_time=replace(steps["base"], kinds={"nothing at work": 1.0}).to_record(),
    )  # fmt: skip
    write_record(tmp_path / "wmt14-base-throughput.json", found)
    write_record(tmp_path / "smoke-throughput.json", found | dict(device="cpu, 1 threads"))
    text = blocks(record, tmp_path)["gpu"]
    assert "| wmt14-base | NVIDIA H200 | bf16 | 731,000 | 37% |" in text
    assert "| nothing at work | 100.0% |" in text and "smoke" not in text


def test_the_record_comes_from_a_whole_run_of_committed_code(record):
    assert record["command"] == "make bench"
    assert "dirty" not in record["environment"]["code"]
    for name, table in record["tables"].items():
        assert len(table["rows"]) > 1, name
        assert all(row["least"] <= row["ratio"] <= row["most"] for row in table["rows"]), name
    json.dumps(record)


def test_what_the_prose_says_is_what_was_measured(record):
    peers = ("torch.nn.Transformer", "Hugging Face Marian", "x-transformers")
    for size in ("tiny", "small", "base"):
        assert all(ratio(record, f"train-{size}", peer) > 1 for peer in peers), size
    for size in ("tiny", "small"):  # "the peers lose less"
        fastest = [min(ratio(record, f"train-{size}{tuned}", peer) for peer in peers)
                   for tuned in ("", "-allocator")]  # fmt: skip
        assert fastest[1] < fastest[0]
    assert all(ratio(record, "memory", peer) < 1 for peer in peers)
    assert ratio(record, "train-threads", "one thread") > 1
    # "One sentence at a time is where an engine without Python wins by most"
    served = "CTranslate2, float32"
    assert ratio(record, "translate-1-1-1", served) < ratio(record, "translate-64-1-1", served) < 1
    assert ratio(record, "translate-1-4-1", served) < ratio(record, "translate-64-4-1", served) < 1
