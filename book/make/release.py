"""Build the wheel and the source distribution, and use each in an environment of its own."""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Annotated

import typer

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


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without this checkout on the path; return what it prints."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        words = " ".join(map(str, command[:4]))
        raise RuntimeError(f"{words} ... failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def build(source: Path, output: Path) -> list[Path]:
    """Build the source distribution and, from it, the wheel; return both."""
    for old in output.glob("transformer_book-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", output, source, cwd=output)
    return [next(output.glob("*.whl")), next(output.glob("*.tar.gz"))]


def problems(package: Path, here: bool = False) -> list[str]:
    """Install a package into a fresh environment and use it; return what is wrong.

    Args:
        package: a wheel or a source distribution.
        here: take the dependencies from the running environment instead of the package index.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        venv.create(place / "clean", with_pip=True)
        scripts = place / "clean" / ("Scripts" if os.name == "nt" else "bin")
        pip: list[str | Path] = [scripts / "python", "-m", "pip", "install", "--quiet"]
        if here:  # after the packages of the new environment on the path
            (own,) = (place / "clean").glob("**/site-packages")
            (own / "here.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
            pip += ["--no-deps", "--ignore-installed"]
        run(*pip, package.resolve(), cwd=place)
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


def release(
    output: Annotated[Path, typer.Option(help="where the packages go")] = ROOT / "dist",
    here: Annotated[
        bool, typer.Option("--here", help="use the dependencies of this environment")
    ] = False,
) -> None:
    """Build both packages, and try each in a fresh environment."""
    output.mkdir(parents=True, exist_ok=True)
    failed = False
    for package in build(ROOT, output):
        wrong = problems(package, here)
        failed |= bool(wrong)
        print(f"{package.name}: {'; '.join(wrong) or 'installs, imports, translates'}", flush=True)
    raise typer.Exit(1 if failed else 0)
