"""The public address: one command sets it everywhere, and files agree with its definition."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from book.make.address import PASSAGES, address, address_of, files_of, pattern_of
from transformer.published import REPOSITORY

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, cwd=ROOT):
    command = [sys.executable, "-m", "book.make", "address", "--", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def text_of(path):
    """What a file says, a notebook in its cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "".join(line for cell in json.loads(text)["cells"] for line in cell["source"])


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
@pytest.mark.skipif(REPOSITORY is not None, reason="the checkout has an address")
def test_every_form_of_it_is_the_last_address(tmp_path):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    assert run("first-owner/one", cwd=tmp_path).returncode == 0
    assert run("second/two", "https://two.example/b", cwd=tmp_path).returncode == 0
    repository, pages = "https://github.com/second/two", "https://two.example/b/"
    paths = [path for patterns, _, _ in PASSAGES for path in files_of(patterns)]
    texts = {str(path): text_of(tmp_path / path) for path in (p.relative_to(ROOT) for p in paths)}
    assert not any("first-owner" in text for text in texts.values())
    definition = {}
    exec(texts["transformer/published.py"], definition)
    assert (definition["REPOSITORY"], definition["PAGES"]) == (repository, pages)
    urls = {"Homepage": pages, "Repository": repository, "Issues": f"{repository}/issues"}
    assert tomllib.loads(texts["pyproject.toml"])["project"]["urls"] == urls
    citation = yaml.safe_load(texts["CITATION.cff"])
    assert (citation["repository-code"], citation["url"]) == (repository, pages)
    assert f'pip install "transformer-book @ git+{repository}"' in texts["README.md"]
    assert f"]({pages})" in texts["README.md"] and f"url = {{{pages}}}" in texts["book/intro.md"]
    assert f"git clone {repository} " in texts["CONTRIBUTING.md"]
    install = rf'    %pip install -q "transformer-book\[book[a-z,]*\] @ git\+{repository}@main"'
    assert all(re.search(install, texts[n]) for n in texts if n.endswith(".ipynb"))


@pytest.mark.parametrize(("patterns", "checkout", "published"), PASSAGES)
def test_all_files_agree_with_the_definition(patterns, checkout, published):
    """After an edit by hand: make address REPO=owner/name."""
    there = [bool(pattern_of(checkout).search(text_of(path))) for path in files_of(patterns)]
    assert not any(there) if REPOSITORY else any(there) if "**" in patterns else all(there)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [([""], "REPO"), (["https://github.com/a/b"], "REPO"), (["a/b.git"], "REPO"),
     (["a/.."], "REPO"), (["-a/b"], "REPO"), (["a/b", "example.org"], "PAGES")],
)  # fmt: skip
def test_a_wrong_address_is_one_line(arguments, named, capsys):
    with pytest.raises(typer.Exit) as stop:
        address(*arguments)
    out, said = capsys.readouterr()
    assert stop.value.exit_code == 2 and out == ""
    assert said.startswith(f"{named} must be ") and said.count("\n") == 1


def test_pages_are_by_default_where_github_puts_them():
    assert address_of("Owner/name")[1] == "https://owner.github.io/name/"
    assert address_of("owner/Owner.github.io")[1] == "https://owner.github.io/"


def test_the_pages_workflow_takes_the_repository_that_runs_it():
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())
    commands = [step.get("run", "") for step in workflow["jobs"]["build"]["steps"]]
    (at,) = [i for i, command in enumerate(commands) if command.startswith("make address")]
    assert 'REPO="$GITHUB_REPOSITORY"' in commands[at]
    assert "make check" in commands[at + 1 :]
