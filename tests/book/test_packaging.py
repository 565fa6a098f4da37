"""The packages that are released: what they hold, what they need, and that they work alone."""

import ast
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
import yaml

from book.make.release import (
    SENTENCE,
    TRANSLATION,
    USE,
    build,
    faults_in_notebook,
    metadata,
    metadata_faults,
    obstacle,
    release,
    run,
)

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The wheel and the source distribution of what git has: an ignored file would be missing."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    copy, output = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # a deleted one is still listed
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).symlink_to(ROOT / name)
    return build(copy, output)


def test_the_wheel_holds_the_package_and_nothing_else(packages):
    packed = {name for name in zipfile.ZipFile(packages[0]).namelist() if ".dist-info/" not in name}
    there = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "transformer").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == there
    assert any(name.endswith(".safetensors") for name in packed)


def test_the_wheel_needs_no_library_of_the_book(packages):
    wheel = zipfile.ZipFile(packages[0])
    name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    needed = message_from_bytes(wheel.read(name)).get_all("Requires-Dist")
    library = {re.match(r"[\w-]+", line)[0] for line in needed if "extra ==" not in line}
    assert "torch" in library
    assert not library & {"matplotlib", "ipython", "ipykernel", "papermill", "scikit-learn"}


def test_the_wheel_works_without_this_checkout(packages, tmp_path):
    """In the environment of the tests; ``make release`` tries it in a fresh one."""
    zipfile.ZipFile(packages[0]).extractall(tmp_path)
    found = json.loads(run(sys.executable, "-c", USE, SENTENCE, cwd=tmp_path))
    assert Path(found["path"]).is_relative_to(tmp_path) and found["version"] == PROJECT["version"]
    assert found["translation"] == TRANSLATION and found["test_pairs"] > 100 and found["records"]


def test_the_package_sets_no_ceilings():
    for extra in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]:
        assert all(re.fullmatch(r"[\w-]+>=[\d.]+", requirement) for requirement in extra)


def test_the_book_needs_nothing_that_only_the_tests_install():
    """Neither its chapters, nor its build, nor what a module of the package imports at once."""

    def imported(path):
        if path.suffix == ".py":
            trees = [ast.parse(path.read_text(encoding="utf-8"))]
        else:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
            trees = [ast.parse(re.sub(r"^ *%.*", "    pass", text, flags=re.M)) for text in code]
        for node in (node for tree in trees for node in tree.body):
            if isinstance(node, ast.Import):
                yield from (name.name.partition(".")[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]

    pins = (ROOT / "requirements-test.txt").read_text(encoding="utf-8")
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in re.findall(r"^(.+)==", pins, re.M)}
    providers = packages_distributions()
    for pattern in ("transformer/**/*.py", "book/_ext/**/*.py", "notebooks/*.ipynb"):
        for path in ROOT.glob(pattern):
            found = {each for name in imported(path) for each in providers.get(name, ())}
            needed = {re.sub(r"[-_.]+", "-", name).lower() for name in found}
            assert not needed & pinned, path


def test_a_reader_starts_with_the_wheel_and_a_notebook(packages):
    """In an empty folder, with the dependencies at hand; ``make release`` installs its own."""
    assert faults_in_notebook(packages[0], here=True) == []


def test_metadata_of_both_packages_are_valid_and_without_dead_links(packages, capsys):
    for package in packages:
        found = metadata(package)
        assert str(found.version) == PROJECT["version"]
        assert (found.project_urls or {}) == PROJECT.get("urls", {})
        text = found.description
        # A relative link of a README would lead nowhere from the page of a package.
        assert found.description_content_type == "text/markdown" and "](" not in text
        example = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
        exec(example, {})
        assert capsys.readouterr().out == f"{[TRANSLATION]}\n"


def test_invalid_metadata_are_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a-1.dist-info/METADATA", "Metadata-Version: 2.4\nName: a b\nVersion: x\n")
    faults = metadata_faults(tmp_path / "a-1-py3-none-any.whl")
    assert any("name" in fault for fault in faults) and any("version" in fault for fault in faults)


def test_a_release_needs_the_tag_of_its_version(capsys, tmp_path, monkeypatch):
    """Without it nothing is built, let alone uploaded."""
    monkeypatch.setattr("shutil.which", lambda program: program)
    assert "v0.0.0" in obstacle("v0.0.0")
    git = {"tag": "v0.0.0\n", "status": " M README.md\n"}
    with monkeypatch.context() as patch:
        answer = lambda command, **_: SimpleNamespace(stdout=git[command[1]])  # noqa: E731
        patch.setattr(subprocess, "run", answer)
        assert "changes" in obstacle("v0.0.0")
        git["status"] = ""
        assert obstacle("v0.0.0") == ""
    monkeypatch.setattr("book.make.release.obstacle", lambda tag: obstacle("v0.0.0"))
    with pytest.raises(typer.Exit) as stop:
        release(output=tmp_path / "dist")
    assert stop.value.exit_code == 2 and not [*tmp_path.iterdir()]
    assert capsys.readouterr().err.count("\n") == 1


def test_title_version_and_licence_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["title"] == config["project"] == citation["title"]
    assert PROJECT["version"] == citation["version"]
    assert PROJECT["license"] == citation["license"] == "MIT"
