import pytest

from transformer.recipes.record import read_record, read_translations
from transformer_book.studies.parsing import record
from transformer_book.studies.parsing.study import RECIPES, outputs_file

pytestmark = pytest.mark.usefixtures("unchecked")

TREE = "(S (NP (PRP We)) (VP (VBP see) (NP (DT the) (NN cat))) (. .))\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Record parsers of a small treebank, in the folder of the test."""
    bank = tmp_path / "bank"
    bank.mkdir()
    for i in range(20):
        (bank / f"a{i}.tree").write_text(3 * TREE)
    monkeypatch.setattr(record, "PLAN", [("trees, greedy", "all")])

    def run(name, *options):
        output = tmp_path / f"{name}.json"
        words = ["record", "--treebank", str(bank), "--output", str(output), "--seeds", "1"]
        monkeypatch.setattr("sys.argv", [*words, *options, "--runs", str(tmp_path / name)])
        record.main()
        return output

    return run


def test_each_record_has_outputs_of_its_own_and_keeps_its_settings(run, capsys):
    one, two = run("one", "--steps", "2"), run("two", "--steps", "1")
    for output, steps in ((one, 2), (two, 1)):
        found, outputs = read_record(output)["runs"], read_translations(outputs_file(output))
        assert len(found) == len(RECIPES) and len(outputs) == len(RECIPES)
        assert {each["steps"] for each in found.values()} == {steps}
        assert f"--steps {steps}" in read_record(output)["command"]
    before = one.read_bytes()
    assert run("one", "--steps", "2").read_bytes() == before  # nothing is missing
    with pytest.raises(SystemExit) as stopped:
        run("one", "--steps", "3")
    assert stopped.value.code == 2 and "another command" in capsys.readouterr().err
    assert one.read_bytes() == before


def test_no_steps_are_refused(run):
    with pytest.raises(ValueError, match="max_steps"):
        run("none", "--steps", "0")


def test_a_treebank_without_longer_sentences_is_refused_before_training(run, monkeypatch, capsys):
    monkeypatch.setattr(record, "PLAN", [("greedy", "all"), ("greedy", "longer")])
    monkeypatch.setattr(record, "run_parser", lambda *_: pytest.fail("trained"))
    with pytest.raises(SystemExit):
        run("short")
    assert "no test sentences for longer" in capsys.readouterr().err
