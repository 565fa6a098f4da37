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
import yaml

ROOT = Path(__file__).resolve().parents[2]
_REPOSITORY = re.compile(r"(?!-)([A-Za-z0-9-]{1,39})/(?!\.{1,2}$)([\w.-]{1,100})(?<!\.git)", re.A)
_PAGES = re.compile(r"https?://[\w.-]+(:\d+)?(/[\w.~-]+)*/?", re.ASCII)
_EXTRAS = r"((?:\[[a-z,]+\])?)"
#: Patterns of files, what they say in a checkout, and what with an address.
PASSAGES: tuple[tuple[str, str, str], ...] = tuple(
    (passage["files"], passage["checkout"], passage["published"])
    for passage in yaml.safe_load(
        Path(__file__).with_name("passages.yml").read_text(encoding="utf-8")
    )
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
