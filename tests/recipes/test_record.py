"""Records name their environment and can be read again."""

import json
import os
import shutil
import subprocess

import pytest

from transformer import __version__
from transformer.recipes import record
from transformer.recipes.record import describe_environment, read_record, write_record


def test_environment_names_code_hardware_and_libraries():
    environment = describe_environment()
    assert environment["code"].startswith(__version__)
    assert {"device", "devices", "cpu", "cores", "threads"} <= set(environment["hardware"])
    assert environment["hardware"]["cores"] == os.cpu_count()
    assert {"torch", "tokenizers", "sacrebleu"} <= set(environment["libraries"])
    json.dumps(environment)


def test_code_version_has_the_commit_of_this_package_and_of_no_other(tmp_path, monkeypatch):
    """An installation inside another project's repository must not show that project's commit."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    module = tmp_path / "record.py"
    module.touch()
    monkeypatch.setattr(record, "__file__", str(module))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "theirs"], check=True)
    assert describe_environment()["code"] == __version__
    subprocess.run([*git, "add", "record.py"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "ours"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert describe_environment()["code"] == f"{__version__} ({head[:12]})"


def test_a_record_comes_back_as_it_was(tmp_path):
    content = {"metrics": [{"score": 31.25}], "text": "Straße, 東京", "none": None}
    path = write_record(tmp_path / "new" / "run.json", content)
    assert read_record(path) == content
    assert "Straße" in path.read_text(encoding="utf-8")  # a person can read it too


def test_what_is_no_record_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_record(tmp_path / "run.json")
    (tmp_path / "run.json").write_text('{"metrics": [')
    with pytest.raises(ValueError, match=r"run\.json is not a recorded run"):
        read_record(tmp_path / "run.json")
