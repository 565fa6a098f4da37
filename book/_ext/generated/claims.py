"""The claims of the paper: the rows of the chapters' tables that speak about each, and the verdict.

The claims are in ``book/claims.yml``. What was measured is read from the table "The paper, and what
we measured" that ends a chapter, as its notebook stores it.
"""

import html
import json
import re
from pathlib import Path

import yaml

from transformer.book.tables import Table

VERDICTS = (
    "holds", "holds in part", "does not show at this scale", "undecided", "wrong as printed"
)  # fmt: skip

# In place of a verdict, of a statement about how the model is built: there is nothing to find out.
DESIGN = "design"

# What the paper says, what was measured, where they differ.
Row = tuple[str, str, str]


def chapters(root: Path) -> dict[str, Path]:
    """Find the notebooks of the chapters by their two-digit numbers."""
    return {path.name[:2]: path for path in sorted(root.glob("notebooks/[0-9][0-9]_*.ipynb"))}


def stored_rows(notebook: Path) -> list[Row]:
    """Read the rows of a chapter's table of the paper and the measurements; none without one."""
    found: list[Row] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            table = "".join(output.get("data", {}).get("text/html", []))
            if "What the paper says" in table:
                for line in re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.S):
                    cells = re.findall(r"<td.*?>(.*?)</td>", line, re.S)
                    says, measured, differ = (
                        html.unescape(re.sub(r"<[^>]*>", "", text)) for text in cells
                    )
                    found.append((says, measured, differ))
    return found


def texts(root: Path) -> dict[str, str]:
    """Make the number of claims, the count of each verdict, and a table for each section.

    Statements about the design are in the tables and not among the claims that are counted.

    Args:
        root: of the repository.

    Returns:
        "number", "counts", "design", and "claims-3.2.1" and the like.

    Raises:
        LookupError: if a piece of evidence is not exactly one row of its chapter.
    """
    claims = yaml.safe_load((root / "book" / "claims.yml").read_text(encoding="utf-8"))
    paths = chapters(root)
    rows = {chapter: stored_rows(path) for chapter, path in paths.items()}
    lines: dict[str, list[list[str]]] = {}
    for claim in claims:
        about = [claim["claim"], f"**{claim['verdict']}**"]
        for chapter, start in claim["evidence"]:
            fitting = [row for row in rows.get(chapter, ()) if row[0].startswith(start)]
            if len(fitting) != 1:
                raise LookupError(
                    f"claim {claim['claim']!r}: chapter {chapter} has {len(fitting)} rows that "
                    f"begin with {start!r}"
                )
            link = f"../notebooks/{paths[chapter].name}#the-paper-and-what-we-measured"
            row = [*about, *fitting[0][1:], f"[{int(chapter)}]({link})"]
            lines.setdefault(str(claim["section"]), []).append(row)
            about = ["", ""]
    header = ["the paper claims", "verdict", "measured here", "where they differ", "chapter"]
    given = [claim["verdict"] for claim in claims]
    counts = [given.count(verdict) for verdict in VERDICTS]
    said = (
        "{} hold, {} hold in part, {} do not show at this scale, {} are undecided, and {} are "
        "wrong as printed"
    )
    tables = {f"claims-{key}": Table(header, found).markdown() for key, found in lines.items()}
    return {
        "number": str(sum(counts)),
        "counts": said.format(*counts),
        "design": str(given.count(DESIGN)),
        **tables,
    }
