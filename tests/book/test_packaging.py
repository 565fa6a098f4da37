"""The packages that are released: what they hold, what they need, and that they work alone."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml

from book.make.release import SENTENCE, TRANSLATION, USE, build, run

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


def test_title_version_licence_and_addresses_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["title"] == config["project"] == citation["title"]
    assert PROJECT["version"] == citation["version"]
    assert PROJECT["license"] == citation["license"] == "MIT"
    urls = PROJECT["urls"]
    assert urls["Repository"] == citation["repository-code"] == config["repository"]["url"]
    assert urls["Homepage"] == citation["url"] == config["html"]["baseurl"]
    assert urls["Homepage"] == config["sphinx"]["config"]["ogp_site_url"]
