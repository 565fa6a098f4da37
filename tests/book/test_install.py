"""A notebook alone in a folder: its own first cell installs the package, and its next cells run.

The address in the cell is redirected to a copy of this checkout, so that no network is needed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve()
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
# The one place where the address stands; every other is held to it.
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
ADDRESS = URLS["Repository"]
PACKED = ["pyproject.toml", "README.md", "LICENSE", "transformer"]


def first_cell(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def git(*arguments, cwd):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def _setuptools():
    try:
        return int(version("setuptools").partition(".")[0])
    except PackageNotFoundError:
        return 0


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """What the notebook's Python is told: where the address leads, and where packages go."""
    if not (ROOT / ".git").exists():
        pytest.skip("what git would take is not known outside of a clone")
    folder = tmp_path_factory.mktemp("install")
    copy, target = folder / "copy", folder / "target"
    target.mkdir()
    # What git would take: a file that is ignored by mistake is missing here as it is there.
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", *PACKED, cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # one that was deleted is still listed
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    git("init", "--quiet", "--initial-branch=main", cwd=copy)
    git("add", "--all", cwd=copy)
    git("commit", "--quiet", "--message=All", cwd=copy)
    set_to = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{copy.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
        "GIT_TERMINAL_PROMPT": "0",
        "PIP_TARGET": str(target),
        "PIP_NO_DEPS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": str(target),
    }
    if _setuptools() >= 77:
        # Builds with what is here; the variable says the opposite of its name.
        set_to |= {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
    return set_to


@pytest.fixture(scope="module")
def executed(environment, tmp_path_factory):
    """The beginning of chapter 2, run in a folder that holds nothing but the notebook."""
    chapter = next(path for path in CHAPTERS if path.name.startswith("02"))
    notebook = nbformat.read(chapter, 4)
    # The cell installs where the package is missing; here it may be there, so the line is taken.
    line = re.search(r"%pip .*", first_cell(chapter))[0]
    where = "import transformer\nprint(transformer.__file__)"
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in [line, where, *code[:6]]]
    folder = tmp_path_factory.mktemp("alone")
    nbformat.write(notebook, folder / chapter.name)
    before = {name: os.environ.get(name) for name in (*environment, "MPLBACKEND")}
    os.environ.update(environment)
    os.environ.pop("MPLBACKEND", None)
    try:
        options = dict(timeout=300, resources={"metadata": {"path": str(folder)}})
        NotebookClient(notebook, kernel_name="python3", **options).execute()
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    assert [path.name for path in folder.iterdir()] == [chapter.name]
    return notebook


def test_every_chapter_installs_from_the_same_address():
    extra = re.compile(r"transformer-book(\[[a-z,]+\])?( @ .*)?")
    for path in CHAPTERS:
        line = re.search(r'^    %pip install -q "(.*)"$', first_cell(path), re.M)
        assert line, path.name
        assert extra.fullmatch(line[1])[2] == f" @ git+{ADDRESS}@main", path.name
        assert 'if importlib.util.find_spec("transformer") is None' in first_cell(path)


def addresses(text):
    """Every address of this repository, of its pages and of its badges in a text, cut to size."""
    name = r"[\w.-]+/transformer-book"
    found = re.findall(rf"https://(?:www\.)?github\.com/{name}(?=$|[^\w.-]|\.git|\.\W)", text)
    found += re.findall(rf"(?:colab\.research\.google\.com|shields\.io)[\w/]*?/({name})", text)
    return found, re.findall(r"https://[\w-]+\.github\.io/transformer-book/?", text)


def test_every_other_address_is_the_one_of_pyproject():
    owner_and_name = ADDRESS.removeprefix("https://github.com/")
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    seen = set()
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if (
            path.suffix in {".png", ".gz", ".safetensors", ".parquet"}
            or not path.is_file()
            or path == HERE
        ):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        code, pages = addresses(text)
        assert {a.replace("www.", "") for a in code} <= {ADDRESS, owner_and_name}, name
        assert {page.rstrip("/") for page in pages} <= {URLS["Homepage"].rstrip("/")}, name
        if code:
            seen.add(name)
    assert {"README.md", "_config.yml", "CITATION.cff", "transformer/book/source.py"} <= seen
    assert {str(path.relative_to(ROOT)) for path in CHAPTERS} <= seen


def test_a_wrong_address_is_seen():
    wrong = "x https://github.com/someone/transformer-book.git@main y"
    assert addresses(wrong)[0] == ["https://github.com/someone/transformer-book"]
    badge = "https://colab.research.google.com/github/someone/transformer-book/blob/main/a.ipynb"
    assert addresses(badge)[0] == ["github/someone/transformer-book"[7:]]
    assert addresses("https://someone.github.io/transformer-book/a.html")[1]
    assert addresses("https://github.com/pytorch/pytorch") == ([], [])


def test_the_first_cell_is_quiet_and_leaves_torch_alone():
    """Nothing runs where the package is there; where it is not, pip keeps what satisfies it."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert "torch>=2.4" in dependencies and not any(
        "=" in d.replace(">=", "") for d in dependencies
    )
    for path in CHAPTERS:
        line = re.search(r"%pip .*", first_cell(path))[0]
        assert line.startswith("%pip install -q ")
        assert not re.search(r"-U\b|--upgrade|--force|torch(?!\w)|==", line), path.name


def test_the_first_cell_installs_from_its_address_and_the_next_ones_run(executed, environment):
    found = executed.cells[1].outputs[0].text.strip()
    assert Path(found).is_relative_to(environment["PIP_TARGET"])
    assert not [
        out for cell in executed.cells for out in cell.outputs if out.output_type == "error"
    ]
    assert not [out for out in executed.cells[0].outputs if "ERROR" in out.get("text", "")]


def test_what_is_installed_translates_without_the_checkout(executed, environment, tmp_path):
    """The shipped weights, corpora and recorded runs came along."""
    code = (
        "from transformer import Translator, load_corpus\n"
        "from transformer.lab.table_2.recorded import recorded_runs\n"
        "print(Translator.from_pretrained('tatoeba-en-de')('Where is the train station?'))\n"
        "print(len(load_corpus('tatoeba-en-de').test.source) > 100, len(recorded_runs()) > 0)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert found.stdout.splitlines() == ["Wo ist der Bahnhof?", "True True"], found.stderr


def test_a_wheel_holds_the_same_files(executed, environment, tmp_path):
    """Built from the copy, as the release is; nothing that the package reads is left out."""
    copy = Path(
        environment["GIT_CONFIG_KEY_0"].removeprefix("url.file://").removesuffix(".insteadOf")
    )
    options = {**os.environ, **environment}
    options.pop("PIP_TARGET")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--wheel-dir", tmp_path, copy]
    subprocess.run(command, env=options, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("transformer_book-*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("transformer/")}
    there = {
        str(path.relative_to(copy))
        for path in (copy / "transformer").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there - packed == set()
    target = Path(environment["PIP_TARGET"])
    assert packed == {
        str(path.relative_to(target))
        for path in (target / "transformer").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
