"""The places of the paper, and the code and the chapters that belong to each.

The place of a public name is the text behind ``Paper:`` in its docstring; the places of a chapter
are in the table that ends it. ``book/paper.yml`` lists the places of the paper.
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from generated import api
from generated.claims import chapters, stored_rows

#: Packages that compute; the others compare, measure and show.
DEFINING = ("model", "fast", "data", "training", "inference")
#: The place of what belongs to the paper as a whole.
WHOLE = "all sections"
#: Names of one place that are shown; more of them are folded away.
SHOWN = 4

_NUMBER = r"\d(?:\.\d){0,2}"
_AND = r"(?:\s*,\s*|\s+and\s+|\s+to\s+)"


@dataclass(frozen=True)
class Place:
    """A section of the paper, or an equation, table, figure or footnote in one."""

    key: str  #: such as "3.2.1", "Eq. (1)", "Table 3", "Figure 1", "footnote 4"
    title: str  #: heading of the section, or what the other kinds show
    section: str = ""  #: the section that another kind of place belongs to
    names: Sequence[str] = ()  #: public names whose docstrings do not say so
    chapters: Sequence[str] = ()  #: notebooks that treat it although their tables do not say so

    @property
    def anchor(self) -> str:
        """Target of a link to the place, or to the section that it is in."""
        return "paper-" + re.sub(r"\W+", "-", (self.section or self.key).lower()).strip("-")


PLACES = {
    place["key"]: Place(**place)
    for place in yaml.safe_load((Path(__file__).parents[2] / "paper.yml").read_text("utf-8"))
}


@dataclass(frozen=True)
class Name:
    """A public class, function, method or property."""

    module: str  #: such as "transformer.model.masks"
    name: str  #: within the module, such as "Transformer.encode"
    places: tuple[str, ...]  #: keys of :data:`PLACES`, or :data:`WHOLE` alone
    is_property: bool = False  #: whether the page of the source has no anchor for it

    @property
    def full_name(self) -> str:
        """Name of its entry in the API reference."""
        return f"{self.module}.{self.name}"

    @property
    def package(self) -> str:
        """Package below ``transformer``."""
        return self.module.split(".")[1]

    def entry(self) -> str:
        """Link to the entry in the API reference."""
        return f"{{py:obj}}`{self.name} <{self.full_name}>`"

    def source(self) -> str:
        """Link to the lines of code, in HTML because the page does not exist yet."""
        anchor = self.name.rpartition(".")[0] if self.is_property else self.name
        return f'<a href="../../_modules/{self.module.replace(".", "/")}.html#{anchor}">source</a>'


def public_names(root: Path) -> list[Name]:
    """Read all public names with a docstring, in the order of the files."""
    found = []
    for module, tree in [each for name in api.PACKAGES for each in api.modules(root, name)]:
        for node in api.documented(tree.body):
            found.append(_name(module, node, node.name))
            bases = [ast.unparse(base) for base in getattr(node, "bases", ())]
            if isinstance(node, ast.ClassDef) and not any("Protocol" in base for base in bases):
                for member in api.documented(node.body):
                    found.append(_name(module, member, f"{node.name}.{member.name}"))
    return found


def _name(module: str, node: ast.ClassDef | ast.FunctionDef, name: str) -> Name:
    stated = re.search(
        r"^Paper: *(\S.*?)(?=\n\s*\n|\Z)", ast.get_docstring(node) or "", re.M | re.S
    )
    is_property = any("property" in ast.unparse(how) for how in node.decorator_list)
    try:
        keys = places(" ".join(stated[1].split())) if stated else ()
    except ValueError as error:
        raise ValueError(f"{module}.{name}: {error}") from None
    return Name(module, name, keys, is_property)


def places(text: str) -> tuple[str, ...]:
    """Read which places a text names; text in brackets and clauses with "et al." do not count."""
    if text.startswith("not in the paper"):
        return ()
    if text.startswith(WHOLE):
        return (WHOLE,)
    plain = re.sub(r"Eq\. \((\d)\)", r"Eq. <\1>", text)
    plain = re.sub(r"\([^)]*\)", "", plain)
    plain = re.sub(r"(?:^|[,;])[^,;]*et al\.[^;]*", "", plain)
    runs = re.findall(rf"[Ss]ections? ({_NUMBER}(?:{_AND}{_NUMBER})*)", plain)
    found = [number for run in runs for number in _numbers(run)]
    for kind in ("Table", "Figure"):
        for run in re.findall(rf"{kind}s? (\d(?:{_AND}\d)*)", plain):
            found += [f"{kind} {number}" for number in _numbers(run)]
    found += [f"Eq. ({number})" for number in re.findall(r"Eq\. <(\d)>", plain)]
    found += [f"footnote {number}" for number in re.findall(r"[Ff]ootnote (\d)", plain)]
    return _known(found, text)


def places_of_row(says: str) -> tuple[str, ...]:
    """Read the places from the first cell of a row, such as "6.2, Table 3 (A): one is worse"."""
    found: list[str] = []
    for piece in says.partition(": ")[0].split(","):
        if start := re.match(rf"(Abstract|{_NUMBER})(?:$|[:\s])", piece.strip()):
            found.append(start[1])
        elif named := re.match(r"(?:Eq\.|Tables?|Figures?|Footnote) .*", piece.strip()):
            found += places(named[0])
    return _known(found, says) if found else ()


def _numbers(text: str) -> list[str]:
    """Return the numbers of "1, 2 and 4" or "5.1 to 5.4"."""
    numbers: list[str] = []
    for joint, number in re.findall(rf"({_AND}|^)({_NUMBER})", text):
        head, dot, last = number.rpartition(".")
        first = int(last)
        if joint.strip() == "to":
            first = int(numbers[-1].rpartition(".")[2]) + 1
        numbers += [f"{head}{dot}{i}" for i in range(first, int(last) + 1)]
    return numbers


def _known(found: Iterable[str], text: str) -> tuple[str, ...]:
    unknown = [key for key in found if key not in PLACES]
    if unknown or not found:
        raise ValueError(f"no place of the paper in {text!r}: {', '.join(unknown) or 'none named'}")
    return tuple(sorted(set(found), key=list(PLACES).index))


def names_by_place(names: Sequence[Name]) -> dict[str, list[Name]]:
    """Sort names by the places of the paper, each only under its most precise place.

    A name of an equation, a table or a figure is not repeated under its section, nor a method under
    the place of its class.
    """
    by_name = {name.full_name: name for name in names}
    found = {
        key: [by_name[full_name] for full_name in place.names] for key, place in PLACES.items()
    }
    for name in names:
        above = by_name.get(name.full_name.rpartition(".")[0])
        known = {WHOLE, *(above.places if above else ())}
        known |= {PLACES[key].section for key in name.places if key != WHOLE}
        for key in name.places:
            if key not in known and name not in found[key]:
                found[key].append(name)
    return found


def chapters_by_place(root: Path) -> dict[str, list[str]]:
    """Find the chapters that treat each place: names of notebooks without ".ipynb"."""
    found = {key: set(place.chapters) for key, place in PLACES.items()}
    for path in chapters(root).values():
        for says, _, _ in stored_rows(path):
            for key in places_of_row(says):
                found[key].add(path.stem)
    return {key: sorted(stems) for key, stems in found.items()}


def code(root: Path) -> dict[str, str]:
    """Name the code and the chapters of each section, with its equations, tables and figures."""
    names, treated = names_by_place(public_names(root)), chapters_by_place(root)
    titles = {path.stem: _title(path) for path in chapters(root).values()}
    found = {}
    for section in (place for place in PLACES.values() if not place.section):
        below = [place for place in PLACES.values() if place.section == section.key]
        lines = [_line(place, names[place.key], treated[place.key], titles)
                 for place in (section, *below)]  # fmt: skip
        found[section.key] = "\n".join(filter(None, lines))
    return found


def _title(notebook: Path) -> str:
    text = json.loads(notebook.read_text(encoding="utf-8"))
    lines = [line for cell in text["cells"] for line in cell["source"]]
    return next(line[2:].strip() for line in lines if line.startswith("# "))


def _line(
    place: Place, names: Sequence[Name], treated: Sequence[str], titles: Mapping[str, str]
) -> str:
    """Write the line of a place: its chapters and its code; "" if it has neither."""
    ours = [f"{name.entry()} ({name.source()})" for name in names if name.package in DEFINING]
    links = [
        f'[{int(stem[:2])}](../../notebooks/{stem}.ipynb "{titles[stem]}")' for stem in treated
    ]
    parts = [f"chapter{'s' * (len(links) > 1)} {', '.join(links)}"] if links else []
    folded = len(ours) > SHOWN
    if ours and not folded:
        parts.append(", ".join(ours))
    label = "In this book" if not place.section else f"{place.key}, {place.title}"
    line = f"- **{label}**: {'; '.join(parts) or 'code'}" if parts or folded else ""
    if folded:
        summary = f'<summary aria-label="{len(ours)} names in the code for {place.key}">'
        fold = f'<details class="fold">{summary}{len(ours)} names in the code</summary>'
        line += f"\n\n  {fold}\n\n  {', '.join(ours)}\n\n  </details>\n"
    return line
