"""The public address: one command sets it everywhere, and files agree with its definition."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from book.make.address import PASSAGES, TEXTS, Address, changes, passages_by_file, rewritten
from transformer import published

ROOT = Path(__file__).resolve().parents[2]
OWN = Address(published.REPOSITORY, published.PAGES) if published.REPOSITORY else None
FIRST, SECOND = Address.of("first-owner/one"), Address.of("second/two", "https://two.example/b")


@pytest.fixture
def copy(tmp_path):
    """A copy of the checkout."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # a deleted one is still listed
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(*arguments, cwd=ROOT):
    command = [sys.executable, "-m", "book.make", "address", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def holding(folder, *words):
    """The files that contain one of some words, by path."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words)
    }


def write(changed):
    for path, content in changed.items():
        path.write_text(content, encoding="utf-8")


def test_setting_it_twice_leaves_no_trace_of_the_first(copy):
    before = holding(copy, "first-owner", "second/two", "two.example")  # this file
    assert run("first-owner/one", cwd=copy).returncode == 0
    set_once = holding(copy, "first-owner") - before
    assert {"README.md", "CITATION.cff", "pyproject.toml", "transformer/published.py"} <= set_once
    assert {p.relative_to(ROOT).as_posix() for p in ROOT.glob("notebooks/*.ipynb")} <= set_once
    assert run("second/two", "https://two.example/b", cwd=copy).returncode == 0
    assert holding(copy, "first-owner") <= before
    assert holding(copy, "second/two") - before == set_once
    assert not changes(copy, SECOND)
    write(changes(copy, OWN))
    for path in set_once:
        assert (copy / path).read_bytes() == (ROOT / path).read_bytes()


def test_every_form_of_it_is_the_same_address(copy):
    write(changes(copy, SECOND))
    definition = {}
    exec((copy / "transformer/published.py").read_text(), definition)
    assert definition["REPOSITORY"] == SECOND.repository == "https://github.com/second/two"
    assert definition["PAGES"] == SECOND.pages == "https://two.example/b/"
    urls = tomllib.loads((copy / "pyproject.toml").read_text())["project"]["urls"]
    assert (urls["Repository"], urls["Homepage"]) == (SECOND.repository, SECOND.pages)
    assert urls["Issues"] == "https://github.com/second/two/issues"
    citation = yaml.safe_load((copy / "CITATION.cff").read_text())
    assert (citation["repository-code"], citation["url"]) == (SECOND.repository, SECOND.pages)
    readme = (copy / "README.md").read_text()
    assert 'pip install "transformer-book @ git+https://github.com/second/two"' in readme
    assert "](https://two.example/b/)" in readme
    assert (
        "git clone https://github.com/second/two && cd two"
        in (copy / "CONTRIBUTING.md").read_text()
    )
    for path in (copy / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        code = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        line = r'    %pip install -q "transformer-book\[book.*\] @ git\+(\S+)@main"'
        assert re.search(line, code)[1] == SECOND.repository


def test_without_an_address_nothing_names_a_repository(copy):
    write(changes(copy, None))
    for path in passages_by_file(copy):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"git\+http|git clone http|\[project.urls\]|repository-code", text)


def test_all_files_agree_with_the_definition():
    """After an edit by hand: make address REPO=owner/name."""
    assert changes(ROOT, OWN) == {}


@pytest.mark.parametrize("passage", PASSAGES, ids=lambda passage: passage.checkout.strip()[:30])
def test_every_passage_occurs(passage):
    def occurs(pattern):
        return any(
            rewritten(path, lambda text: passage.written(text, None))
            != rewritten(path, lambda text: passage.written(text, FIRST))
            for path in ROOT.glob(pattern)
        )

    missing = [pattern for pattern in passage.files if not occurs(pattern)]
    assert len(missing) < len(passage.files) if passage.files == TEXTS else not missing


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "REPO"),
        (["name"], "REPO"),
        (["a/b/c"], "REPO"),
        (["https://github.com/a/b"], "REPO"),
        (["a/.."], "REPO"),
        (["-a/b"], "REPO"),
        (["a/b c"], "REPO"),
        (["a/b.git"], "REPO"),
        (["a/b", "example.org"], "PAGES"),
        (["a/b", 'https://example.org/"'], "PAGES"),
    ],
)
def test_a_wrong_address_is_one_line(arguments, named):
    before = (ROOT / "transformer/published.py").read_bytes()
    done = run("--", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"{named} must be ") and done.stderr.count("\n") == 1
    assert repr(arguments[-1] if arguments else "") in done.stderr
    assert (ROOT / "transformer/published.py").read_bytes() == before


def test_pages_are_by_default_where_github_puts_them():
    assert Address.of("Owner/name").pages == "https://owner.github.io/name/"
    assert Address.of("owner/Owner.github.io").pages == "https://owner.github.io/"


def test_the_pages_workflow_takes_the_repository_that_runs_it():
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())
    commands = [step.get("run", "") for step in workflow["jobs"]["build"]["steps"]]
    (at,) = [i for i, command in enumerate(commands) if command.startswith("make address")]
    assert 'REPO="$GITHUB_REPOSITORY"' in commands[at]
    assert "make check" in commands[at + 1 :]
