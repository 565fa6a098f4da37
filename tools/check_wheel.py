"""Installs a wheel or a source distribution into an environment of its own, and uses it there.

    python tools/check_wheel.py dist/transformer_book-0.1.0-py3-none-any.whl

What a newcomer does first must work with nothing else around: import, translate, ask the command.
--here takes torch and the rest from the environment that runs this, in place of a registry.
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

SENTENCE, TRANSLATION = "Where is the train station?", "Wo ist der Bahnhof?"
IMPORT = """
import json, sys, transformer
from importlib.metadata import version
from transformer import Translator, load_corpus
from transformer.lab.table_2.recorded import recorded_runs
print(json.dumps(dict(
    path=transformer.__file__,
    version=version("transformer-book"),
    translation=Translator.from_pretrained("tatoeba-en-de")(sys.argv[1]),
    test_pairs=len(load_corpus("tatoeba-en-de").test.source),
    records=len(recorded_runs()),
)))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command far from this folder; what it prints."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        words = " ".join(str(word) for word in command[:4])
        raise RuntimeError(f"{words} ... failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def check(package: Path, here: bool = False) -> list[str]:
    """Installs and uses it; returns what is wrong."""
    name = package.name.removesuffix(".tar.gz").split("-")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "clean", with_pip=True)
        scripts = place / "clean" / ("Scripts" if os.name == "nt" else "bin")
        pip = [scripts / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if here:  # behind its own packages, so that the package itself is the new one
            (own,) = (place / "clean").glob("**/site-packages")
            (own / "here.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        extra = ["--no-deps", "--ignore-installed", "--no-build-isolation"] if here else []
        run(*pip, *extra, package.resolve(), cwd=place)
        found = json.loads(run(scripts / "python", "-c", IMPORT, SENTENCE, cwd=place))
        said = run(scripts / "transformer", "translate", SENTENCE, cwd=place).strip()
        shown = run(scripts / "transformer", "--help", cwd=place)
        wrong = {
            f"another package was imported, {found['path']}": not Path(found["path"])
            .resolve()
            .is_relative_to(place.resolve()),
            f"the version is {found['version']}": found["version"] != name[1],
            f"import translates: {found['translation']!r}": found["translation"] != TRANSLATION,
            f"the command translates: {said!r}": said != TRANSLATION,
            "the command has no help": "translate" not in shown,
            "the corpus is not in it": found["test_pairs"] < 100,
            "the recorded runs are not in it": found["records"] == 0,
        }
    return [fault for fault, there in wrong.items() if there]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, help="a wheel or a source distribution")
    parser.add_argument("--here", action="store_true", help="use the packages that are here")
    arguments = parser.parse_args()
    try:
        wrong = check(arguments.package, arguments.here)
    except RuntimeError as error:
        wrong = [str(error)]
    for fault in wrong:
        print(f"{arguments.package.name}: {fault}", file=sys.stderr)
    if not wrong:
        print(f"{arguments.package.name}: installs, imports, translates")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
