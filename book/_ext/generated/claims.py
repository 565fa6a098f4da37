"""The claims of the paper, the evidence about each, and the verdict that follows from it by a rule.

The claims are in ``book/claims.yml``. What was measured is read from the table "The paper, and what
we measured" that ends a chapter, as its notebook stores it. The rule is on the page.
"""

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from transformer_book.tables import Table

#: What evidence says about a claim, and what it is: free of chance, or a sample.
SAYS, KINDS = ("supports", "against", "open"), ("counted", "sampled")
#: The verdicts, and how the page counts them.
VERDICTS = {
    "holds": "{} hold",
    "holds in part": "{} hold in part",
    "mixed": "{} are mixed",
    "does not hold here": "{} do not hold here",
    "undecided": "{} are undecided",
    "wrong as printed": "{} are wrong as printed",
}
#: In place of a verdict, where nothing was to be found out: how the model is built, and what
#: follows from the paper's own tables.
UNTESTED = ("design", "the paper's own numbers")
#: How large the evidence is, from what holds at any size to the paper's.
SCALES = ("algebra", "toy", "small", "the paper's")
#: Share of studies without an effect in which a 95% interval excludes zero.
ERROR = 0.05

#: The pages of the annotated paper, one for each section.
SECTIONS = tuple(path.stem for path in sorted((Path(__file__).parents[2] / "paper").glob("*.md")))

# What the paper says, what was measured, where they differ.
Row = tuple[str, str, str]
Claim = Mapping[str, Any]


def verdict(says: Sequence[str]) -> str:
    """Apply the rule to what all pieces of evidence about a claim say, one word for each."""
    if "supports" in says:
        if "against" in says:
            return "mixed"
        return "holds in part" if "open" in says else "holds"
    return "does not hold here" if "against" in says else "undecided"


def read_claims(root: Path) -> list[Claim]:
    """Read the claims, and give a verdict to each that is not one already."""
    claims = yaml.safe_load((root / "book" / "claims.yml").read_text(encoding="utf-8"))
    for claim in claims:
        pieces, name = claim["evidence"], claim["claim"]
        judged = [word for piece in pieces for word in words(piece)]
        kinds = {piece.get("kind") for piece in pieces}
        if "verdict" in claim:
            fits = claim["verdict"] in (*UNTESTED, "wrong as printed") and kinds == {None}
        else:
            fits = {*judged} <= {*SAYS} and kinds <= {*KINDS} and all(map(words, pieces))
            fits = fits and {piece.get("scale") for piece in pieces} <= {*SCALES}
        if not fits:
            raise ValueError(f"claim {name!r} does not follow the rule: {claim}")
        claim.setdefault("verdict", verdict(judged))
    return claims


def words(piece: Claim) -> list[str]:
    """Return what a piece of evidence says, one word per comparison; none if it is not judged."""
    says = piece.get("says", [])
    return [says] if isinstance(says, str) else says


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


def page_of(section: str) -> str:
    """Return the page of the annotated paper that has a section: "3.2.1" is on 3_architecture."""
    first = "1" if section == "Abstract" else str(section)[0]
    return next(stem for stem in SECTIONS if stem.startswith(first))


def texts(root: Path) -> dict[str, str]:
    """Make the number of claims, the count of each verdict, the wall, and each section's table.

    Statements that are not tested are in the tables and not among the claims that are counted.
    """
    claims, paths = read_claims(root), chapters(root)
    rows = {chapter: stored_rows(path) for chapter, path in paths.items()}
    lines: dict[str, list[list[str]]] = {}
    for number, claim in enumerate(claims, 1):
        mark = f'<span class="verdict" data-verdict="{claim["verdict"]}">{claim["verdict"]}</span>'
        about = [f'<span id="claim-{number}">{claim["claim"]}</span>', mark]
        for piece in claim["evidence"]:
            chapter, found = _found(piece, rows, claim["claim"])
            place = ""
            if chapter:
                anchor = "#the-paper-and-what-we-measured" if "row" in piece else ""
                place = f"[{int(chapter)}](../../notebooks/{paths[chapter].name}{anchor})"
            line = [*about, _judgement(piece), *found, place]
            lines.setdefault(str(claim["section"]), []).append(line)
            about = ["", ""]
    header = ["the paper claims", "verdict", "evidence", "measured here", "where they differ"]
    header += ["chapter"]
    given = [claim["verdict"] for claim in claims]
    counts = [said.format(given.count(name)) for name, said in VERDICTS.items()]
    sampled = sum(
        len(words(piece))
        for claim in claims
        for piece in claim["evidence"]
        if piece.get("kind") == "sampled"
    )
    design, arithmetic = map(given.count, UNTESTED)
    tables = {f"claims-{key}": Table(header, found).markdown() for key, found in lines.items()}
    return {
        "number": str(len(given) - design - arithmetic),
        "counts": f"{', '.join(counts[:-1])}, and {counts[-1]}",
        "untested": str(design + arithmetic),
        "design": str(design),
        "arithmetic": str(arithmetic),
        "sampled": str(sampled),
        "mistakes": f"{sampled * ERROR:.0f}",
        "wall": wall(claims),
        **tables,
    }


def wall(claims: Sequence[Claim]) -> str:
    """Draw a mark for each claim, in the paper's order, that leads to its row."""
    sections: dict[str, str] = {}
    for number, claim in enumerate(claims, 1):
        section, name = str(claim["section"]), claim["verdict"]
        said = html.escape(f"{claim['claim']}: {name}")
        link = f"paper/{page_of(section)}.html#claim-{number}"
        mark = f'<a href="{link}" class="verdict" data-verdict="{name}" title="{said}">'
        sections.setdefault(section, "")
        sections[section] += f'{mark}<span class="visually-hidden">{said}</span></a>'
    marks = "".join(
        f'<li><span class="place">{section}</span> {found}</li>'
        for section, found in sections.items()
    )
    given = [claim["verdict"] for claim in claims]
    disc = '<span class="verdict" data-verdict="{}"></span>'
    legend = "".join(
        f"<li>{disc.format(name)} {name} <b>{given.count(name)}</b></li>"
        for name in (*VERDICTS, *UNTESTED)
    )
    drawn = f'<ol class="verdict-wall">{marks}</ol><ul class="verdict-legend">{legend}</ul>'
    return f"```{{raw}} html\n{drawn}\n```"


def _found(
    piece: Claim, rows: Mapping[str, Sequence[Row]], claim: str
) -> tuple[str, Sequence[str]]:
    """Return the chapter of a piece of evidence, what was found, and where it differs."""
    if "text" in piece:
        return piece.get("chapter", ""), piece["text"]
    chapter, start = piece["row"]
    fitting = [row for row in rows.get(chapter, ()) if row[0].startswith(start)]
    if len(fitting) != 1:
        raise LookupError(
            f"claim {claim!r}: chapter {chapter} has {len(fitting)} rows that begin with {start!r}"
        )
    return chapter, fitting[0][1:]


def _judgement(piece: Claim) -> str:
    if "kind" not in piece:
        return ""
    margin = str(piece.get("margin", "")).strip("[]")
    notes = filter(None, (margin and f"margin {margin}", piece.get("because")))
    said = "; ".join(notes)
    reason = f" ({said})" if said else ""
    return f"{piece['scale']}, {piece['kind']}: {', '.join(words(piece))}{reason}"
