"""Release a version: build the packages, use each in a fresh environment, publish them."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).resolve().parents[2]
SENTENCE, TRANSLATION = "Where is the train station?", "Wo ist der Bahnhof?"
#: A chapter, run up to a cell in a folder that has nothing else.
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


def environment(place: Path, here: bool = False) -> Path:
    """Make a fresh environment in a folder; return its folder of programs."""
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


def try_out(package: Path, here: bool = False) -> None:
    """Install a package into a fresh environment; translate, and run a chapter, in an empty folder.

    With ``here``, its dependencies are those of the running environment.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        scripts, empty = environment(place, here), place / "empty"
        empty.mkdir()
        install: list[str | Path] = [scripts / "python", "-m", "pip", "install", "-q"]
        run(*install, f"{package.resolve()}[book]", "nbclient", "ipykernel", cwd=place)
        said = run(scripts / "transformer", "translate", SENTENCE, cwd=empty).strip()
        run(scripts / "python", "-m", "ipykernel", "install", "--sys-prefix", cwd=place)
        shutil.copy(ROOT / "notebooks" / NOTEBOOK, empty)
        path = run(scripts / "python", "-c", RUN, NOTEBOOK, str(CELLS), cwd=empty).strip()
    if said != TRANSLATION or not Path(path).is_relative_to(place / "clean"):
        raise RuntimeError(f"{package.name} translates {said!r} and imports {path}")


def release(
    output: Annotated[Path, typer.Option(help="where the packages go")] = ROOT / "dist",
    dry: Annotated[bool, typer.Option("--dry", help="everything but the upload")] = False,
) -> None:
    """Build both packages, try each in a fresh environment, and publish them on GitHub.

    A release is the commit with the tag of its version, such as v1.2.3.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tag = f"v{project['version']}"
    describe = ["git", "describe", "--tags", "--always", "--dirty", "--match", tag]
    here = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    if not dry and (here != tag or shutil.which("gh") is None):
        print(
            f"a release needs the program gh, and a clean checkout of {tag}; this is "
            f"{here}. DRY=1 uploads nothing",
            file=sys.stderr,
        )
        raise typer.Exit(2)
    output.mkdir(parents=True, exist_ok=True)
    packages = build(ROOT, output)
    for package in packages:
        try_out(package)
        print(f"{package.name}: installs, translates, runs a chapter", flush=True)
    upload = ["gh", "release", "create", tag, "--verify-tag", "--generate-notes"]
    upload += map(str, packages)
    if dry:
        print(f"not run: {' '.join(upload)}")
    else:
        subprocess.run(upload, cwd=ROOT, check=True)
