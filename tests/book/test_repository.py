"""The files around the package agree with one another and with what is there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
URL = "https://github.com/transformer-book/transformer-book"
PAGES = "https://transformer-book.github.io/transformer-book/"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load(read("_config.yml"))


def names_and_versions(lines):
    """{"torch": "2.13.0"} of ["torch==2.13.0", "# why", "-e ."]."""
    pattern = re.compile(r"([A-Za-z0-9._-]+)(?:==|>=)([0-9][\w.]*)")
    found = filter(None, (pattern.match(line) for line in lines))
    return {match[1].lower().replace("_", "-"): match[2] for match in found}


def number(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def toc_files():
    toc = yaml.safe_load(read("_toc.yml"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"]] + [
        file["file"] for entry in entries for file in [entry, *entry.get("sections", [])]
    ]


def test_addresses_agree(project, config):
    citation = yaml.safe_load(read("CITATION.cff"))
    assert project["urls"]["Repository"] == citation["repository-code"] == URL
    assert config["repository"]["url"] == URL
    assert project["urls"]["Homepage"] == citation["url"] == config["html"]["baseurl"] == PAGES
    assert config["sphinx"]["config"]["ogp_site_url"] == PAGES


def test_title_version_and_licence_agree(project, config):
    citation = yaml.safe_load(read("CITATION.cff"))
    assert config["title"] == config["project"] == citation["title"]
    assert project["version"] == citation["version"]
    assert project["license"] == citation["license"] == "MIT"
    assert read("LICENSE").startswith("MIT License")


def test_no_other_address_of_the_repository_is_used():
    pattern = re.compile(r"https://github\.com/[\w-]+/transformer[\w-]*book[\w-]*")
    files = ["README.md", "pyproject.toml", "_config.yml", "CITATION.cff"]
    files += [p.relative_to(ROOT) for folder in ("book", "notebooks") for p in
              (ROOT / folder).rglob("*") if p.suffix in {".md", ".ipynb"}]  # fmt: skip
    for name in files:
        if (ROOT / name).exists():
            assert set(pattern.findall(read(name))) <= {URL}, name


def test_pins_satisfy_the_floors(project):
    pins = names_and_versions(read("requirements.txt").splitlines())
    floors = names_and_versions(project["dependencies"])
    # Tests of these extras skip without them, but not in CI.
    for extra in ("dev", "moses", "marian", "digits"):
        floors |= names_and_versions(project["optional-dependencies"][extra])
    bench = names_and_versions(project["optional-dependencies"]["bench"])
    floors |= {name: floor for name, floor in bench.items() if name in pins}
    for name, floor in floors.items():
        assert number(pins[name]) >= number(floor), name


def test_the_package_sets_no_ceilings(project):
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    for requirement in project["dependencies"] + extras:
        assert not re.search(r"==|<|~=", requirement), requirement


def test_everything_in_requirements_is_pinned_but_the_package():
    lines = [line for line in read("requirements.txt").splitlines() if line.strip()]
    *pins, last = [line for line in lines if not line.startswith("#")]
    assert last == "-e ." and all("==" in line for line in pins)


def test_the_contents_list_what_exists_and_all_of_it():
    listed = toc_files()
    pages = [p for folder in ("book", "notebooks") for p in (ROOT / folder).rglob("*")]
    existing = {str(p.relative_to(ROOT).with_suffix("")) for p in pages
                if p.suffix in {".md", ".ipynb"}}  # fmt: skip
    assert sorted(listed) == sorted(existing)


def test_every_chapter_stands_on_the_first_page():
    start = read("book/intro.md")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        assert f"../notebooks/{path.name})" in start, path.name


def test_the_api_pages_document_each_module_once():
    pages = sorted((ROOT / "book" / "api").glob("*.md"))
    documented = [m for page in pages for m in re.findall(r"automodule:: (\S+)", page.read_text())]
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "transformer").rglob("*.py")
        if not path.name.startswith("__")
    ]
    # The command explains itself: `transformer --help`.
    modules = [name for name in modules if not name.startswith("transformer.cli")]
    assert sorted(documented) == sorted(modules)


def test_mypy_finds_nothing(tmp_path):
    """Strictly, in the package and in what a user's checker sees of it (tests/typed_use.py)."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr
    checked = int(re.search(r"in (\d+) source files", found.stdout)[1])
    assert checked == 1 + len(list((ROOT / "transformer").rglob("*.py")))


def test_types_are_checked_without_exceptions():
    mypy = tomllib.loads(read("pyproject.toml"))["tool"]["mypy"]
    assert mypy["strict"] and "tests/typed_use.py" in mypy["files"]
    for rule in [mypy, *mypy["overrides"]]:
        assert "ignore_errors" not in rule and "disable_error_code" not in rule
        assert not any("transformer" in name for name in rule.get("module", []))
    assert "$(BIN)/mypy" in read("Makefile") and "/mypy" in read(".pre-commit-config.yaml")
    for path in [*(ROOT / "transformer").rglob("*.py"), ROOT / "tests/typed_use.py"]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"type: ignore(?!\[)|mypy: ", text), f"{path}: ignore by name"


def test_ci_runs_what_a_reader_types():
    assert "make test" in read(".ci/run")
    assert (ROOT / ".ci/run").stat().st_mode & 0o100
    assert "make test" in read(".github/workflows/test.yml")
