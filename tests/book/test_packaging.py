"""What is tried before a release and in other versions of Python: a wheel, old and new packages."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import check_environments
import check_wheel
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def workflow(name):
    return yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))


def test_floors_are_read_from_pyproject():
    found = check_environments.floors({"dependencies": ["torch>=2.4", "some-thing>=1.0.3"]})
    assert found == ["torch==2.4", "some-thing==1.0.3"]
    assert len(check_environments.floors(PROJECT)) == len(PROJECT["dependencies"])


def test_a_python_is_found_or_missed(capsys):
    here = ".".join(map(str, sys.version_info[:2]))
    assert check_environments.interpreter(here)
    assert check_environments.interpreter("3.0") is None


def test_chapters_to_try_are_there():
    for name in check_environments.CHAPTERS:
        assert (ROOT / "notebooks" / f"{name}.ipynb").exists()
    assert set(check_environments.PARAMETERS) <= set(check_environments.CHAPTERS)


def test_ci_tries_old_and_new():
    matrix = workflow("test.yml")["jobs"]["environments"]["strategy"]["matrix"]["include"]
    tried = {(each["python"], each["at"]) for each in matrix}
    assert {("3.11", "floor"), ("3.12", "newest"), ("3.13", "newest")} <= tried
    for python, at in tried:
        assert python in check_environments.PYTHONS
        assert at == "newest" or python in check_environments.HAVE_FLOORS
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest == check_environments.PYTHONS[0] == min(tried)[0]


def test_a_release_uses_the_same_check():
    jobs = workflow("release.yml")["jobs"]
    steps = "\n".join(step.get("run", "") for step in jobs["wheel"]["steps"])
    assert "tools/check_wheel.py dist/*.whl" in steps and "dist/*.tar.gz" in steps
    assert jobs["release"]["needs"] == "wheel"
    assert jobs["wheel"]["strategy"]["matrix"]["python"] == [*check_environments.PYTHONS]


@pytest.fixture
def wheel(tmp_path):
    """A package of the same name that does next to nothing, and that wrongly."""
    path = tmp_path / "transformer_book-0.0.1-py3-none-any.whl"
    about = "transformer_book-0.0.1.dist-info"
    code = (
        "class Translator:\n    def __init__(self, *a): pass\n    __call__ = lambda *a: 'Ja.'\n"
        "    from_pretrained = classmethod(lambda c, *a: c())\n"
        "def load_corpus(name):\n    class A: pass\n    A.test, A.source = A, []\n    return A\n"
        "def main(): print('Nein.')\n"
    )
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("transformer/__init__.py", code)
        packed.writestr("transformer/experiments/__init__.py", "")
        packed.writestr("transformer/recipes/record.py", "recorded_runs = lambda: []")
        packed.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: transformer-book\n"
                        "Version: 0.0.1\n")  # fmt: skip
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\n"
                        "Root-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        packed.writestr(f"{about}/entry_points.txt", "[console_scripts]\n"
                        "transformer = transformer:main\n")  # fmt: skip
        packed.writestr(f"{about}/RECORD", "")
    return path


def test_a_bad_wheel_is_caught(wheel):
    command = [sys.executable, ROOT / "tools" / "check_wheel.py", "--here", wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    for fault in ("import translates: 'Ja.'", "the command translates: 'Nein.'", "has no help",
                  "the corpus is not in it", "recorded runs are not in it"):  # fmt: skip
        assert fault in done.stderr, done.stderr
    assert "another package" not in done.stderr and "the version is" not in done.stderr


def test_one_that_does_not_import_is_caught(wheel, tmp_path):
    broken = tmp_path / "sub" / wheel.name
    broken.parent.mkdir()
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            text = "raise ImportError('no torch')" if name.endswith("r/__init__.py") else None
            new.writestr(name, text or old.read(name))
    with pytest.raises(RuntimeError, match="no torch"):
        check_wheel.check(broken, here=True)
