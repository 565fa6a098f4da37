"""The speed page: its tables are the record's, and nothing in its prose contradicts them."""

import json
from pathlib import Path

import pytest

from transformer.book.markers import fill_in, marked
from transformer.book.speed import Row, blocks, ratio, recorded_speed, speed_table, summarise

PAGE = Path(__file__).parents[2] / "book" / "speed.md"
OURS = "this package"


@pytest.fixture(scope="module")
def record():
    return recorded_speed()


def test_the_page_shows_the_record_and_all_of_it(record):
    page = PAGE.read_text(encoding="utf-8")
    assert fill_in(page, "speed", blocks(record)) == page
    assert set(marked(page, "speed")) == {*record["tables"], "machine", "export"}


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
