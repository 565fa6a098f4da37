"""Set the public address of the repository and of the book's pages.

``transformer/published.py`` defines it. Files that cannot read it there contain passages in one of
two forms: one that works from a checkout, and one that names the address.
"""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("README.md", "CONTRIBUTING.md", "book/**/*.md")
IN_COLAB = ("README.md", "book/troubleshooting.md")
_REPOSITORY = re.compile(r"(?!-)([A-Za-z0-9-]{1,39})/(?!\.{1,2}$)([\w.-]{1,100})(?<!\.git)", re.A)
_PAGES = re.compile(r"https?://[\w.-]+(:\d+)?(/[\w.~-]+)*/?", re.ASCII)
# What the placeholders of a passage may have been filled with.
_FILLED = dict(
    repository=r"https://github\.com/[\w.-]+/[\w.-]+",
    pages=r"""https?://[^\s"')}]+""",
    name=r"[\w.-]+",
    extras=r"(?P<extras>(?:\[[a-z,]+\])?)",
)


@dataclass(frozen=True)
class Address:
    """Where the repository and the book are published.

    Args:
        repository: as "https://github.com/owner/name".
        pages: as "https://owner.github.io/name/".
    """

    repository: str
    pages: str

    @classmethod
    def of(cls, repository: str, pages: str = "") -> "Address":
        """Make an address from what a person gives.

        Args:
            repository: "owner/name" on GitHub.
            pages: address of the built pages, "" for the one that GitHub Pages gives.

        Raises:
            ValueError: if one of them has another form.
        """
        found = _REPOSITORY.fullmatch(repository)
        if not found:
            raise ValueError(f"REPO must be owner/name, as on GitHub, got {repository!r}")
        owner, name = found.groups()
        host = f"{owner.lower()}.github.io"
        pages = pages or f"https://{host}/" + (f"{name}/" if name.lower() != host else "")
        if not _PAGES.fullmatch(pages):
            raise ValueError(f"PAGES must be an address such as https://{host}/, got {pages!r}")
        return cls(f"https://github.com/{repository}", pages.rstrip("/") + "/")


@dataclass(frozen=True)
class Passage:
    """A passage of some files, in both forms; placeholders are the names of ``_FILLED``.

    Args:
        files: patterns of paths, from the repository.
        checkout: the form without an address.
        published: the form with one.
    """

    files: tuple[str, ...]
    checkout: str
    published: str

    def written(self, text: str, address: Address | None) -> str:
        """Return a text with this passage in the form for an address, or for None."""
        text = _replaced(text, self.published, self.checkout, {})
        if address is None:
            return text
        name = address.repository.rpartition("/")[2]
        values = dict(repository=address.repository, pages=address.pages, name=name)
        return _replaced(text, self.checkout, self.published, values)


def _replaced(text: str, old: str, new: str, values: dict[str, str]) -> str:
    pattern = re.sub(r"\\{([a-z]+)\\}", lambda match: _FILLED[match[1]], re.escape(old))

    def filled(match: re.Match[str]) -> str:
        known = values | match.groupdict()
        return re.sub(r"{([a-z]+)}", lambda place: known.get(place[1], place[0]), new)

    return re.sub(rf"(?m){pattern}", filled, text)


PASSAGES = (
    Passage(
        ("transformer/published.py",),
        "REPOSITORY: str | None = None\n",
        'REPOSITORY: str | None = "{repository}"\n',
    ),
    Passage(
        ("transformer/published.py",),
        "PAGES: str | None = None\n",
        'PAGES: str | None = "{pages}"\n',
    ),
    Passage(
        ("pyproject.toml",),
        '\ntransformer = "transformer.cli:main"\n',
        '\ntransformer = "transformer.cli:main"\n\n[project.urls]\nHomepage = "{pages}"\n'
        'Repository = "{repository}"\nIssues = "{repository}/issues"\n',
    ),
    Passage(
        ("CITATION.cff",),
        "\nlicense: MIT\n",
        '\nlicense: MIT\nurl: "{pages}"\nrepository-code: "{repository}"\n',
    ),
    Passage(
        TEXTS,
        'pip install ".{extras}"  # in the folder of the repository',
        'pip install "transformer-book{extras} @ git+{repository}"',
    ),
    Passage(
        TEXTS,
        "\n# in the folder of the repository\n",
        "\ngit clone {repository} && cd {name}\n",
    ),
    Passage(
        ("transformer/pretrained/*/README.md",),
        "\n# needs the package transformer-book\n",
        "\n# pip install git+{repository}\n",
    ),
    Passage(
        ("README.md",),
        "\nThe book asks one question",
        "\n[The book]({pages}) asks one question",
    ),
    Passage(
        IN_COLAB,
        "choose *File, Upload notebook* on\n[colab.research.google.com]"
        "(https://colab.research.google.com). Then build the wheel with `pip wheel --no-deps .`\n"
        "in the folder of the repository, and drag it into Colab's *Files* pane",
        "press the rocket at the top of its page",
    ),
    Passage(
        ("book/intro.md",),
        "\n  year = {2026}\n}",
        "\n  year = {2026},\n  url = {{pages}}\n}",
    ),
    Passage(
        ("notebooks/*.ipynb",),
        "    # Upload the wheel beside the notebook; `pip wheel --no-deps .` builds it.\n"
        '    %pip install -q "$(ls transformer_book-*.whl){extras}"',
        '    %pip install -q "transformer-book{extras} @ git+{repository}@main"',
    ),
)


def rewritten(path: Path, change: Callable[[str], str]) -> str:
    """Return the content of a file after a change of its text; of a notebook, of its cells."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return change(content)
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        cell["source"] = change("".join(cell["source"])).splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def passages_by_file(root: Path) -> dict[Path, list[Passage]]:
    """Return each file that can contain a passage, with its passages."""
    found: dict[Path, list[Passage]] = {}
    for passage in PASSAGES:
        for path in sorted(path for pattern in passage.files for path in root.glob(pattern)):
            found.setdefault(path, []).append(passage)
    return found


def changes(root: Path, address: Address | None) -> dict[Path, str]:
    """Return the files of a checkout that an address changes, with their new content."""
    changed = {}
    for path, passages in passages_by_file(root).items():

        def change(text: str, passages: list[Passage] = passages) -> str:
            for passage in passages:
                text = passage.written(text, address)
            return text

        content = rewritten(path, change)
        if content != path.read_text(encoding="utf-8"):
            changed[path] = content
    return changed


def address(
    repository: Annotated[str, typer.Argument(help="owner/name on GitHub")] = "",
    pages: Annotated[str, typer.Argument(help="address of the pages, if GitHub's is not it")] = "",
) -> None:
    """Set the public address everywhere."""
    try:
        found = Address.of(repository, pages)
    except ValueError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    changed = changes(ROOT, found)
    for path, content in changed.items():
        path.write_text(content, encoding="utf-8")
    print(f"{found.repository}, pages at {found.pages}: {len(changed)} files changed")
