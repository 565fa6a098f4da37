"""Set the public address of the repository and of the book's pages.

``transformer/published.py`` defines it. Files that cannot read it there have passages that work
from a checkout; the first address replaces them by others that name it, the next one replaces it.
"""

import json
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).resolve().parents[2]
_REPOSITORY = re.compile(r"(?!-)([A-Za-z0-9-]{1,39})/(?!\.{1,2}$)([\w.-]{1,100})(?<!\.git)", re.A)
_PAGES = re.compile(r"https?://[\w.-]+(:\d+)?(/[\w.~-]+)*/?", re.ASCII)
_EXTRAS = r"((?:\[[a-z,]+\])?)"
_TEXTS = "README.md CONTRIBUTING.md book/**/*.md"
_UPLOAD = (
    "choose *File, Upload notebook* on\n[colab.research.google.com](https://colab.research.google."
    "com). Then build the wheel with `pip wheel --no-deps .`\nin the folder of the repository, and "
    "drag it into Colab's *Files* pane"
)
_WHEEL = (
    "    # Upload the wheel beside the notebook; `pip wheel --no-deps .` builds it.\n"
    '    %pip install -q "$(ls transformer_book-*.whl){extras}"'
)
_URLS = (
    '\n[project.urls]\nHomepage = "{pages}"\nRepository = "{repository}"\n'
    'Issues = "{repository}/issues"\n'
)
_CLONE = "\ngit clone {repository} transformer-book && cd transformer-book\n"
#: Patterns of files, what they say in a checkout, and what with an address.
PASSAGES = (
    (
        "transformer/published.py",
        "\nREPOSITORY: str | None = None",
        '\nREPOSITORY: str | None = "{repository}"',
    ),
    ("transformer/published.py", "\nPAGES: str | None = None", '\nPAGES: str | None = "{pages}"'),
    ("pyproject.toml", '"transformer.cli:main"\n', '"transformer.cli:main"\n' + _URLS),
    ("CITATION.cff", "\nlicense:", '\nurl: "{pages}"\nrepository-code: "{repository}"\nlicense:'),
    (
        _TEXTS,
        'pip install ".{extras}"  # in the folder of the repository',
        'pip install "transformer-book{extras} @ git+{repository}"',
    ),
    (_TEXTS, "\n# in the folder of the repository\n", _CLONE),
    (
        "transformer/pretrained/*/README.md",
        "# needs the package transformer-book",
        "# pip install git+{repository}",
    ),
    ("README.md", "\nThe book asks one question", "\n[The book]({pages}) asks one question"),
    ("README.md book/troubleshooting.md", _UPLOAD, "press the rocket at the top of its page"),
    ("book/intro.md", "\n  year = {2026}\n}", "\n  year = {{2026}},\n  url = {{{pages}}}\n}}"),
    (
        "notebooks/*.ipynb",
        _WHEEL,
        '    %pip install -q "transformer-book{extras} @ git+{repository}@main"',
    ),
)


def address_of(repository: str, pages: str = "") -> tuple[str, str]:
    """Return the addresses of "owner/name" on GitHub and of its pages, by default GitHub's own."""
    found = _REPOSITORY.fullmatch(repository)
    if not found:
        raise ValueError(f"REPO must be owner/name, as on GitHub, got {repository!r}")
    owner, name = found.groups()
    host = f"{owner.lower()}.github.io"
    pages = pages or f"https://{host}/" + (f"{name}/" if name.lower() != host else "")
    if not _PAGES.fullmatch(pages):
        raise ValueError(f"PAGES must be an address such as https://{host}/, got {pages!r}")
    return f"https://github.com/{repository}", pages.rstrip("/") + "/"


def pattern_of(checkout: str) -> re.Pattern[str]:
    """Return what finds the passage of a checkout in a text."""
    return re.compile(re.escape(checkout).replace(re.escape("{extras}"), _EXTRAS))


def files_of(patterns: str) -> list[Path]:
    """Return the files of some patterns."""
    return sorted(path for pattern in patterns.split() for path in ROOT.glob(pattern))


def rewrite(path: Path, change: Callable[[str], str]) -> bool:
    """Change the text of a file, of a notebook that of its cells; return whether it is another."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        notebook = json.loads(content)
        for cell in notebook["cells"]:
            cell["source"] = change("".join(cell["source"])).splitlines(keepends=True)
        changed = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    else:
        changed = change(content)
    path.write_text(changed, encoding="utf-8")
    return changed != content


def address(
    repository: Annotated[str, typer.Argument(help="owner/name on GitHub")] = "",
    pages: Annotated[str, typer.Argument(help="address of the pages, if GitHub's is not it")] = "",
) -> None:
    """Set the public address everywhere."""
    try:
        new = address_of(repository, pages)
    except ValueError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    known = runpy.run_path(str(ROOT / "transformer/published.py"))
    old = known["REPOSITORY"], known["PAGES"]
    changed = set()
    for patterns, checkout, published in PASSAGES:

        def change(text: str, checkout: str = checkout, published: str = published) -> str:
            if old[0] is None:
                values = dict(repository=new[0], pages=new[1])
                return pattern_of(checkout).sub(
                    lambda found: published.format(**values, extras="".join(found.groups())), text
                )
            return text.replace(old[0], new[0]).replace(old[1], new[1])

        changed |= {path for path in files_of(patterns) if rewrite(path, change)}
    print(f"{new[0]}, pages at {new[1]}: {len(changed)} files changed")
