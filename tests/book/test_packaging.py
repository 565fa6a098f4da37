"""The packages that are released: what they hold, what they need, and that they work alone."""

import ast
import json
import re
import subprocess
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import typer
import yaml
from packaging.metadata import Metadata

from book.make.release import TRANSLATION, build, release, try_out

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of what git has: an ignored file would be missing."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    copy, output = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # a deleted one is still listed
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).symlink_to(ROOT / name)
    return build(copy, output)[0]


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    there = {
        str(path.relative_to(place))
        for place, package in ((ROOT, "transformer"), (ROOT / "book", "transformer_book"))
        for path in (place / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed <= there
    left = there - packed  # texts and counts of recorded runs that no chapter reads
    assert left and all(re.search(r"\.(translations\.json\.[gx]z|counts\.npz)$", n) for n in left)
    assert wheel.stat().st_size < 30 * 2**20  # of which the weights are 21
    assert any(name.endswith(".safetensors") for name in packed)


def test_the_wheel_says_what_it_is_and_needs_no_library_of_the_book(wheel, capsys):
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith("METADATA"))
    found = Metadata.from_email(archive.read(name))  # an invalid field is an error
    assert str(found.version) == PROJECT["version"]
    needed = {each.name for each in found.requires_dist if not each.marker}
    assert "torch" in needed
    assert not needed & {"matplotlib", "ipython", "ipykernel", "papermill", "scikit-learn"}
    # A relative link of a README would lead nowhere from the page of a package.
    assert found.description_content_type == "text/markdown" and "](" not in found.description
    exec(re.search(r"```python\n(.*?)```", found.description, re.DOTALL)[1], {})
    assert capsys.readouterr().out == f"{[TRANSLATION]}\n"


def test_a_reader_starts_with_the_wheel_and_a_notebook(wheel):
    """In an empty folder, with the dependencies at hand; ``make release`` installs its own."""
    try_out(wheel, here=True)


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
    for pattern in ("transformer/**/*.py", "book/transformer_book/**/*.py", "notebooks/*.ipynb"):
        for path in ROOT.glob(pattern):
            found = {each for name in imported(path) for each in providers.get(name, ())}
            needed = {re.sub(r"[-_.]+", "-", name).lower() for name in found}
            assert not needed & pinned, path


def test_a_release_needs_the_tag_of_its_version(capsys, tmp_path):
    """Without it nothing is built, let alone uploaded."""
    with pytest.raises(typer.Exit) as stop:
        release(output=tmp_path / "dist")
    assert stop.value.exit_code == 2 and not [*tmp_path.iterdir()]
    assert f"a clean checkout of v{PROJECT['version']}; this is" in capsys.readouterr().err


def test_title_version_and_licence_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["title"] == config["project"] == citation["title"]
    assert PROJECT["version"] == citation["version"]
    assert PROJECT["license"] == citation["license"] == "MIT"
