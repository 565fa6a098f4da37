"""Tries the package in other versions of Python, with the oldest and the newest of what it needs.

    python tools/check_environments.py                     every Python that is found
    python tools/check_environments.py 3.12 --at newest    one of them

For each: a virtual environment in _build/environments, the wheel, nothing of this folder. There the
versions must agree with the golden record (tests/agreement), and some chapters must run, each in a
folder that holds nothing else. A Python that is not on this machine is named and left out.

Each takes a few gigabytes (the torch of PyPI brings CUDA) and about ten minutes; --torch-index
names a smaller one, such as https://download.pytorch.org/whl/cpu.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "_build" / "environments"
PYTHONS = ("3.11", "3.12", "3.13")
HAVE_FLOORS = ("3.11", "3.12")  # the oldest torch and numpy have no wheels for later ones
CHAPTERS = ("02_attention", "04_scaling", "14_decoding", "16_training")
PARAMETERS = {"16_training": ["preset=smoke"]}
TOOLS = ("ipykernel", "nbclient", "nbformat", "papermill", "pytest")


def floors(project: dict[str, object]) -> list[str]:
    """The oldest versions that pyproject.toml allows: "torch>=2.4" gives "torch==2.4"."""
    found = []
    for line in project["dependencies"]:
        name, floor = re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups()
        found.append(f"{name}=={floor}")
    return found


def interpreter(version: str) -> str | None:
    """The command of a Python, if it is there and works."""
    for command in (f"python{version}", sys.executable):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        path = shutil.which(command)
        if path is None:
            continue
        said = subprocess.run([path, "-c", code], capture_output=True, text=True)
        if said.stdout.strip() == version:
            return path
    return None


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this folder."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(pip, check=True)
    return next(folder.glob("*.whl"))


def install(python: str, name: str, at: str, wheel: Path, index: str | None) -> Path:
    """Makes an environment anew; returns its Python."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    own = folder / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [str(wheel), *(floors(project) if at == "floor" else []), *TOOLS]
    extra = ["--extra-index-url", index] if index else []
    pip = [str(own), "-m", "pip", "install", "-q", "--disable-pip-version-check", *extra]
    subprocess.run([*pip, *wanted], check=True)
    return own


def try_out(own: Path, chapters: tuple[str, ...]) -> list[str]:
    """What fails in an environment, by name; what is printed says why."""
    failed = []
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MPLBACKEND")}
    with tempfile.TemporaryDirectory() as folder:
        tests = Path(folder, "agreement")
        shutil.copytree(ROOT / "tests" / "agreement", tests)
        options = dict(cwd=folder, env=clean)
        pytest = [str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
        if subprocess.run(pytest, **options).returncode:
            failed.append("agreement")
        subprocess.run([str(own), str(tests / "measure.py")], **options)
    for chapter in chapters:
        with tempfile.TemporaryDirectory() as folder:
            alone = Path(folder, f"{chapter}.ipynb")
            shutil.copy2(ROOT / "notebooks" / alone.name, alone)
            run = [str(own), str(ROOT / "tools" / "run_notebook.py"), alone.name, "out.ipynb"]
            run += PARAMETERS.get(chapter, [])
            path = f"{own.parent}{os.pathsep}{clean['PATH']}"
            if subprocess.run(run, cwd=folder, env=clean | {"PATH": path}).returncode:
                failed.append(chapter)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=PYTHONS, metavar="3.x")
    parser.add_argument("--at", choices=("floor", "newest"), help="default: both")
    parser.add_argument("--torch-index", help="where pip finds torch, if not on PyPI")
    arguments = parser.parse_args()

    failed, tried = [], 0
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        for version in arguments.pythons:
            python = interpreter(version)
            if python is None:
                print(f"Python {version}: not on this machine, left out", flush=True)
                continue
            for at in [arguments.at] if arguments.at else ["floor", "newest"]:
                if at == "floor" and version not in HAVE_FLOORS:
                    print(f"{version}-floor: has no wheels of the oldest versions", flush=True)
                    continue
                tried += 1
                name = f"{version}-{at}"
                try:
                    own = install(python, name, at, wheel, arguments.torch_index)
                    wrong = try_out(own, CHAPTERS)
                except subprocess.CalledProcessError as error:
                    wrong = [f"installation ({error})"]
                print(
                    f"{name}: {', '.join(wrong) + ' failed' if wrong else 'all well'}", flush=True
                )
                failed += wrong
    if not tried:
        print("No environment was tried.")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
