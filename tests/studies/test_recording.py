"""What every recorder shares, and what every record keeps to."""

import argparse
import json
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest
import typer

import transformer_book
from transformer.cli import app
from transformer.data.corpora import load_corpus
from transformer.data.corpora.download import sha256
from transformer.recipes import record
from transformer.recipes.overrides import parse_changes
from transformer.recipes.presets import get_preset
from transformer.recipes.record import read_record
from transformer.saving.locate import locate
from transformer_book.studies import recording
from transformer_book.studies.record import STUDIES
from transformer_book.studies.recording import Recording, same_recipe, stored_texts, study_module

BOOK = Path(transformer_book.__file__).parent
TEXTS = {path: path.read_text(encoding="utf-8") for path in BOOK.rglob("*.json")}


def test_measurements_are_rounded_and_settings_are_kept(tmp_path):
    path = tmp_path / "record.json"
    made = Recording(path, "module", digits=3, training=dict(adam_eps=1e-9))
    made.content["runs"] = [dict(loss=1.23456)]
    made.save("one run")
    written = read_record(path)
    assert written["training"] == dict(adam_eps=1e-9)
    assert written["runs"] == [dict(loss=1.235)]


def test_translations_lie_beside_the_record_and_go_with_it(tmp_path):
    path = tmp_path / "record.json"
    made = Recording(path, "module")
    made.texts["one"] = ["Ein Satz."]
    made.save("one")
    again = Recording(path, "module")
    again.texts["two"] = ["Noch einer."]
    again.save("two")
    assert stored_texts(path) == {"one": ["Ein Satz."], "two": ["Noch einer."]}
    path.unlink()
    assert stored_texts(path) == {} == Recording(path, "module").texts


def test_a_record_is_continued_by_the_code_that_began_it(tmp_path, monkeypatch):
    path, code = tmp_path / "record.json", ["1 (abc)"]
    monkeypatch.setattr(recording, "describe_environment", lambda: dict(code=code[0]))
    made = Recording(path, "module")
    made.content["runs"] = [1]
    made.save("one run")
    assert Recording(path, "module").content["runs"] == [1]
    code[0] = "1 (def)"
    with pytest.raises(ValueError, match=r"record.json .*1 \(abc\).*1 \(def\).* delete"):
        Recording(path, "module")
    assert read_record(path)["environment"] == dict(code="1 (abc)")
    assert "runs" not in Recording(path, "module", keep=False).content
    path.unlink()
    assert "runs" not in Recording(path, "module").content


def test_a_record_is_continued_under_the_heading_that_began_it(tmp_path):
    path = tmp_path / "record.json"
    Recording(path, "module", sizes=(1, 2)).save("begun")
    assert Recording(path, "module", sizes=(1, 2)).content["sizes"] == (1, 2)
    with pytest.raises(ValueError, match="different value of sizes: delete the file"):
        Recording(path, "module", sizes=(1, 3))


def test_a_record_that_was_written_does_not_change_the_code_version(tmp_path, monkeypatch):
    def git(*words):
        own = ["user.name=n", "user.email=e", "commit.gpgsign=false", "core.hooksPath=/dev/null"]
        options = [word for each in own for word in ("-c", each)]
        subprocess.run(["git", "-C", tmp_path, *options, *words], check=True, capture_output=True)

    code, result = tmp_path / "package/recipes/record.py", tmp_path / "package/studies/a.json"
    for path in (code, result):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    monkeypatch.setattr(record, "__file__", str(code))
    clean = record.describe_environment()["code"]
    result.write_text("{1: 2}")
    (tmp_path / "page.md").write_text("new")
    assert record.describe_environment()["code"] == clean and "dirty" not in clean
    code.write_text("{1: 2}")
    assert record.describe_environment()["code"] == clean.replace(")", "-dirty)")


def test_records_are_of_a_clean_commit():
    dirty = {path for path, text in TEXTS.items() if re.search(r'"code":\s*"[^"]*dirty', text)}
    assert not dirty, "made from a changed working tree: commit, and record again"


def test_records_of_a_shipped_model_belong_to_its_weights_and_corpus():
    contents = map(json.loads, TEXTS.values())
    found = [each for each in contents if "sha256" in dict(each.get("model", {}))]
    for each in found:
        weights = locate(each["model"]["name"]).folder / "model.safetensors"
        assert each["model"]["sha256"] == sha256(weights), each["command"]
    assert len(found) >= 4
    corpora = {(each["corpus"]["name"], each["corpus"]["sha256"]) for each in found}
    shipped = {(name, checksum) for name, checksum in corpora if name == recording.SHIPPED}
    assert all(load_corpus(name).checksum == checksum for name, checksum in shipped) and shipped


@pytest.mark.parametrize("name", STUDIES)
def test_no_run_of_a_study_is_missing(name):
    study = study_module(name)
    record = read_record(study.RECORD)
    if hasattr(study, "missing"):  # the others fill their records in another way
        assert next(iter(study.missing(record["runs"])), None) is None
    if hasattr(study, "record"):  # of a form of its own
        return
    if name == "what_heads_learn.french":
        try:
            load_corpus("tatoeba-en-fr")
        except FileNotFoundError:
            pytest.skip("this corpus does not come with the package")
    heading = study.HEADING if hasattr(study, "HEADING") else study.heading()
    assert json.loads(json.dumps(heading)).items() <= record.items()


@pytest.mark.parametrize(
    "changes", [dict(beam_size=7), dict(d_ff=32), dict(max_steps=31), dict(corpus="multi30k-en-de")]
)
def test_a_change_of_any_part_is_another_recipe(changes):
    smoke = get_preset("smoke")
    old = smoke.to_dict()
    del old["penalty"], old["training"]["accumulate"]  # they had their defaults
    assert same_recipe(dict(preset=old), smoke)
    assert not same_recipe(dict(preset=smoke.with_changes(**changes).to_dict()), smoke)


class Understood(Exception):
    """A recorder read its options, and would start to work."""


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")  # of runpy
def test_the_command_of_every_record_exists(monkeypatch):
    """A recorder and the command line take all its options; a target is in the Makefile.

    A record whose code has left names the commit that had it.
    """
    read = argparse.ArgumentParser.parse_args

    def stop(self, *given):
        read(self, *given)
        raise Understood

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    contents = map(json.loads, TEXTS.values())
    commands = {content["command"] for content in contents if "command" in content}
    for command in sorted(commands):
        words = shlex.split(command)
        if words[0] == "commit":  # the code has left since
            assert re.fullmatch(r"commit [0-9a-f]{7,}: python -m( [\w.]+)+", command), command
        elif words[:2] == ["python", "-m"]:
            monkeypatch.setattr("sys.argv", words[2:])
            with pytest.raises(Understood):
                runpy.run_module(words[2], run_name="__main__")
        elif words[:2] == ["transformer", "train"]:
            train = typer.main.get_command(app).commands["train"]
            given = train.make_context("train", words[2:]).params
            parse_changes(get_preset(given["preset"]), given["changes"] or [])
        else:
            program, target = words
            makefile = (BOOK.parents[1] / "Makefile").read_text(encoding="utf-8")
            assert program == "make" and f"\n{target}:" in makefile, command
    assert len(commands) > 40
