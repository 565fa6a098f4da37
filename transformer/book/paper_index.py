"""The index of paper and code, both ways: from every place of the paper to the names that compute
or measure it and the chapters that treat it, and from every public name to its place.

Nothing is entered by hand. A name's place is what its docstring says behind ``Paper:``; a chapter's
places are those of the table that ends it.

Paper: all sections
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from transformer.book.anchors import headings
from transformer.book.claims import chapters, stored_rows
from transformer.book.paper_places import (
    BY_KEY,
    PLACES,
    SECTIONS,
    WHOLE,
    Place,
    is_outside,
    places,
    places_of_row,
)
from transformer.book.public_names import PublicName

#: What computes; the other packages compare, measure and show.
DEFINING = ("model", "data", "training", "inference")

_PACKAGES = {
    "model": "Model",
    "data": "Data",
    "training": "Training",
    "inference": "Inference",
    "baselines": "Baselines",
    "experiments": "Experiments",
    "interop": "Exchange of weights",
    "book": "The book",
}


def names_by_place(names: Iterable[PublicName]) -> dict[str, list[PublicName]]:
    """Sort public names by the places of the paper that they state.

    A name that states an equation, a table or a figure is found there, and not under its section
    as well. A method stands under a place only if its class does not.

    Args:
        names: of :func:`~transformer.book.public_names.public_names`.

    Returns:
        For each key of :data:`~transformer.book.paper_places.PLACES` its names, in the order of
        the packages.

    Raises:
        ValueError: if a name states no place, or one that the paper does not have.
        LookupError: if a place names what the package does not have.

    Paper: all sections
    """
    names = sorted(names, key=lambda name: list(_PACKAGES).index(_package(name)))
    by_name = {name.full_name: name for name in names}
    stated = {name.full_name: stated_places(name) for name in names}
    found: dict[str, list[PublicName]] = {place.key: [] for place in PLACES}
    for place in PLACES:
        for full_name in place.names:
            if full_name not in by_name:
                raise LookupError(f"{place.key}: the package has no public {full_name}")
            found[place.key].append(by_name[full_name])
    for name in names:
        keys = stated[name.full_name]
        above = stated.get(name.full_name.rpartition(".")[0], ())
        within = {BY_KEY[key].section for key in keys if key != WHOLE}
        for key in keys:
            known = key == WHOLE or key in above or key in within
            if not known and name not in found[key]:
                found[key].append(name)
    return found


def stated_places(name: PublicName) -> tuple[str, ...]:
    """Read the places that a name's docstring states.

    Returns:
        Keys of :data:`~transformer.book.paper_places.PLACES`; none for "not in the paper".

    Raises:
        ValueError: if it states nothing, or a place that the paper does not have.

    Paper: all sections
    """
    if name.paper is None:
        raise ValueError(f"{name.full_name} has no line 'Paper:' in its docstring")
    try:
        return places(name.paper)
    except ValueError as error:
        raise ValueError(f"{name.full_name}: {error}") from None


def chapters_by_place(notebooks: Path) -> dict[str, list[str]]:
    """Find the chapters that treat a place, by the tables that end them.

    Args:
        notebooks: folder of the chapters, with their outputs.

    Returns:
        For each key of :data:`~transformer.book.paper_places.PLACES` the names of notebooks, in
        order, without ".ipynb".

    Raises:
        ValueError: if a row names a place that the paper does not have.

    Paper: all sections
    """
    found = {place.key: set(place.chapters) for place in PLACES}
    for path in chapters(notebooks).values():
        for says, _, _ in stored_rows(path):
            for key in places_of_row(says):
                found[key].add(path.stem)
    return {key: sorted(stems) for key, stems in found.items()}


def render_paper_index(names: Sequence[PublicName], notebooks: Path) -> str:
    """Write the index as a page of the book.

    Args:
        names: of :func:`~transformer.book.public_names.public_names`.
        notebooks: folder of the chapters, with their outputs.

    Raises:
        ValueError: if a name or a chapter states a place that the paper does not have.

    Paper: all sections
    """
    code, treated = names_by_place(names), chapters_by_place(notebooks)
    outside = [name for name in names if is_outside(name.paper or "")]
    return _PAGE.format(
        sections=len(SECTIONS) - 1,  # the abstract has no number
        others=len(PLACES) - len(SECTIONS),
        names=len(names),
        outside=len(outside),
        paper="\n".join(_section(BY_KEY[key], code, treated, notebooks) for key in SECTIONS),
        code=_by_package(names, _table_of_names),
        apart=_by_package(names, _list_of_names),
    )


def _section(
    section: Place,
    code: Mapping[str, list[PublicName]],
    treated: Mapping[str, list[str]],
    notebooks: Path,
) -> str:
    """A section with its equations, tables, figures and footnotes, one row each."""
    title = section.title if section.key == section.title else f"{section.key} {section.title}"
    lines = ["| In the paper | Computed by | Compared, measured or shown by | Chapters |",
             "|---|---|---|---|"]  # fmt: skip
    for place in PLACES:
        if section.key not in (place.key, place.section):
            continue
        here = "text" if place is section else f"**{place.key}**: {place.title}"
        ours = [name for name in code[place.key] if _package(name) in DEFINING]
        others = [name for name in code[place.key] if _package(name) not in DEFINING]
        if place is section and _says_it_all_below(place, code, treated):
            continue
        cells = [
            here.replace("|", "\\|"),
            ", ".join(f"{_api(name)} ({_source(name)})" for name in ours),
            ", ".join(map(_api, others)),
            ", ".join(_chapter(stem, notebooks) for stem in treated[place.key]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([f"({section.anchor})=", f"### {title}", "", section.says, "", *lines, ""])


def _says_it_all_below(
    section: Place, code: Mapping[str, list[PublicName]], treated: Mapping[str, list[str]]
) -> bool:
    """Whether the rows of its equations, tables and figures have all that the section has."""
    below = [place.key for place in PLACES if place.section == section.key]
    chapters_below = {stem for key in below for stem in treated[key]}
    return bool(below) and not code[section.key] and chapters_below >= set(treated[section.key])


def _by_package(names: Sequence[PublicName], write: Callable[[Sequence[PublicName]], str]) -> str:
    parts = []
    for package, title in _PACKAGES.items():
        text = write([name for name in names if _package(name) == package])
        parts += [f"### {title}: `transformer.{package}`\n\n{text}"] if text else []
    return "\n".join(parts)


def _table_of_names(names: Sequence[PublicName]) -> str:
    lines = []
    for name in names:
        keys = stated_places(name)
        links = [f"[{key}](#{_anchor(key)})" for key in keys if key != WHOLE]
        if keys:
            lines.append(f"| {_api(name, True)} | {', '.join(links) or WHOLE} | {_source(name)} |")
    head = ["| Name | In the paper | |", "|---|---|---|"]
    return "\n".join([*head, *lines, ""]) if lines else ""


def _list_of_names(names: Sequence[PublicName]) -> str:
    modules: dict[str, list[str]] = {}
    for name in names:
        if not stated_places(name):
            modules.setdefault(name.module, []).append(_api(name))
    return "".join(f"- `{module}`: {', '.join(found)}\n" for module, found in modules.items())


def _anchor(key: str) -> str:
    """Equations and the like are found under their section."""
    place = BY_KEY[key]
    return BY_KEY[place.section or place.key].anchor


def _package(name: PublicName) -> str:
    return name.module.split(".")[1]


def _api(name: PublicName, with_module: bool = False) -> str:
    module = name.module.rpartition(".")[2]
    shown = f"{module}.{name.name}" if with_module else name.name
    return f"{{py:obj}}`{shown} <{name.full_name}>`"


def _source(name: PublicName) -> str:
    # A page of the built book and no file of the repository: Markdown's own link would be checked
    # before it exists.
    place = name.name.rpartition(".")[0] if name.is_property else name.name
    return f'<a href="../_modules/{name.module.replace(".", "/")}.html#{place}">source</a>'


def _chapter(stem: str, notebooks: Path) -> str:
    path = notebooks / f"{stem}.ipynb"
    title = headings(path)[0] if path.exists() else stem
    return f'[{int(stem[:2])}](../notebooks/{stem}.ipynb "{title}")'


_PAGE = """# The paper and the code, both ways

Where is Eq. (2) in the code? And where in the paper is `TokenBatches`? This page answers both: the
first half goes through all {sections} numbered sections of the paper, with {others} of their
equations, tables, figures and footnotes, the second through all {names} public names of the
package. {outside} of those have no place in the paper, and stand apart at the end.

**How to read it.** A name leads to its entry in the [API reference](api.md), *source* to the lines
of code, a number to the chapter. "Computed by" is the package's model, data, training and
inference; beside it stands what compares, measures or draws. A method is listed under a section
only where its class is not, and a name under an equation, a table or a figure is not repeated
under its section. Headings of sections are the paper's.

## From the paper to the code

{paper}
## From the code to the paper

{code}
## Not in the paper

What a program needs and a paper need not mention: files, messages, measurements of the program
itself, figures, exercises; and what came later. The docstrings say which.

{apart}
The page is generated from the docstrings and from the tables that end the chapters:
`python tools/make_paper_index.py`.
"""
