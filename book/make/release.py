"""Release a version: build the packages, check them, use each in a fresh environment, publish."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from packaging.metadata import Metadata

from .address import PASSAGES, rewritten

ROOT = Path(__file__).resolve().parents[2]
SENTENCE, TRANSLATION = "Where is the train station?", "Wo ist der Bahnhof?"
USE = """
import json, sys
from pathlib import Path
from importlib.metadata import version
import transformer
from transformer import Translator, load_corpus
print(json.dumps(dict(
    path=transformer.__file__,
    version=version("transformer-book"),
    translation=Translator.from_pretrained("tatoeba-en-de")(sys.argv[1]),
    test_pairs=len(load_corpus("tatoeba-en-de").test.source),
    records=len(list(Path(transformer.__file__).parent.glob("lab/**/*.json"))),
)))
"""
# What a reader does in Colab: a notebook, the wheel beside it, and nothing installed.
NOTEBOOK, CELLS = "02_attention.ipynb", 12
RUN = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
where = nbformat.v4.new_code_cell("import transformer; print(transformer.__file__)")
notebook.cells = [*notebook.cells[: int(sys.argv[2])], where]
nbclient.NotebookClient(notebook, timeout=1800, kernel_name="python3").execute()
print(where.outputs[-1].text)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without this checkout on the path; return what it prints."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MPLBACKEND"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        words = " ".join(map(str, command[:4]))
        raise RuntimeError(f"{words} ... failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def build(source: Path, output: Path) -> list[Path]:
    """Build the source distribution and, from it, the wheel; return both."""
    output = output.resolve()
    for old in output.glob("transformer_book-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", output, source, cwd=output)
    return [next(output.glob("*.whl")), next(output.glob("*.tar.gz"))]


def metadata(package: Path) -> Metadata:
    """Read the metadata of a wheel or a source distribution.

    Raises:
        ExceptionGroup: of all fields that are not valid.
    """
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return Metadata.from_email(wheel.read(name))
    with tarfile.open(package) as archive:
        file = archive.extractfile(f"{package.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert file is not None
        return Metadata.from_email(file.read())


def environment(place: Path, here: bool = False) -> Path:
    """Make a fresh environment in a folder; return its folder of programs.

    Args:
        place: the folder.
        here: put the packages of the running environment on its path, all but this one.
    """
    # The borrowed packages have pip among them.
    venv.create(place / "clean", with_pip=not here)
    if here:
        borrowed = place / "borrowed"
        borrowed.mkdir()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if not entry.name.startswith(("transformer_book", "__editable__")):
                (borrowed / entry.name).symlink_to(entry)
        (own,) = (place / "clean").glob("**/site-packages")
        (own / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")
    return place / "clean" / ("Scripts" if os.name == "nt" else "bin")


def metadata_faults(package: Path) -> list[str]:
    """Return what is wrong with the metadata of a package."""
    try:
        found = metadata(package)
    except ExceptionGroup as group:
        return [str(error) for error in group.exceptions]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    return [] if str(found.version) == version else [f"has version {found.version}"]


def faults_in_use(package: Path) -> list[str]:
    """Install a wheel or a source distribution into a fresh environment, use it, and report."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        scripts = environment(place)
        run(scripts / "python", "-m", "pip", "install", "-q", package.resolve(), cwd=place)
        found = json.loads(run(scripts / "python", "-c", USE, SENTENCE, cwd=place))
        said = run(scripts / "transformer", "translate", SENTENCE, cwd=place).strip()
        wrong = {
            f"imports another package, {found['path']}": not Path(found["path"])
            .resolve()
            .is_relative_to(place),
            f"has version {found['version']}": found["version"] not in package.name,
            f"translates {found['translation']!r}": found["translation"] != TRANSLATION,
            f"translates {said!r} on the command line": said != TRANSLATION,
            "holds no corpus": found["test_pairs"] < 100,
            "holds no records": found["records"] == 0,
        }
    return [fault for fault, there in wrong.items() if there]


def faults_in_notebook(wheel: Path, here: bool = False) -> list[str]:
    """Run the first cells of a chapter in a folder with only the notebook and the wheel.

    The environment can run notebooks, but does not have this package: the first cell installs it.

    Args:
        wheel: the wheel.
        here: take the dependencies from the running environment instead of the package index.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        python = environment(place, here) / "python"
        run(python, "-m", "pip", "install", "-q", "nbclient", "ipykernel", cwd=place)
        run(python, "-m", "ipykernel", "install", "--sys-prefix", cwd=place)
        empty = place / "empty"
        empty.mkdir()
        shutil.copy(wheel, empty)
        # With a public address, the stored cell installs from there instead of from the wheel.
        cell = next(each for each in PASSAGES if "notebooks/*.ipynb" in each.files)
        text = rewritten(ROOT / "notebooks" / NOTEBOOK, lambda text: cell.written(text, None))
        (empty / NOTEBOOK).write_text(text, encoding="utf-8")
        path = run(python, "-c", RUN, NOTEBOOK, str(CELLS), cwd=empty).strip()
        own = Path(path).resolve().is_relative_to(place / "clean")
    return [] if own else [f"{NOTEBOOK} imports another package, {path}"]


def obstacle(tag: str) -> str:
    """Return why a release cannot be published, "" if it can."""

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout

    tags = git("tag", "--points-at", "HEAD").split()
    if tag not in tags:
        return f"the commit must have the tag {tag}, it has {', '.join(tags) or 'none'}"
    if git("status", "--porcelain"):
        return f"the checkout has changes that {tag} does not have"
    return "" if shutil.which("gh") else "the program gh publishes a release; it is not installed"


CHECKS: tuple[tuple[str, str, Callable[[Path], list[str]]], ...] = (
    ("metadata", "", metadata_faults),
    ("installs, imports, translates", "", faults_in_use),
    (f"installed by the first cell of {NOTEBOOK}", ".whl", faults_in_notebook),
)


def release(
    output: Annotated[Path, typer.Option(help="where the packages go")] = ROOT / "dist",
    dry: Annotated[bool, typer.Option("--dry", help="everything but the upload")] = False,
) -> None:
    """Build both packages, try each in a fresh environment, and publish them on GitHub.

    A release is the commit with the tag of its version, such as v1.2.3.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tag = f"v{project['version']}"
    if not dry and (reason := obstacle(tag)):
        print(f"{reason}; DRY=1 does everything but the upload", file=sys.stderr)
        raise typer.Exit(2)
    output.mkdir(parents=True, exist_ok=True)
    failed = False
    packages = build(ROOT, output)
    for package in packages:
        for what, suffix, check in CHECKS:
            if package.name.endswith(suffix):
                faults = check(package)
                failed |= bool(faults)
                print(f"{package.name}: {what}: {'; '.join(faults) or 'passed'}", flush=True)
    if failed:
        raise typer.Exit(1)
    upload = ["gh", "release", "create", tag, "--verify-tag", "--generate-notes"]
    upload += map(str, packages)
    if dry:
        print(f"not run: {' '.join(upload)}")
    else:
        subprocess.run(upload, cwd=ROOT, check=True)
