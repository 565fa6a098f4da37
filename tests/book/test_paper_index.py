"""The index of paper and code: every public name states its place and its shapes, every section of
the paper is there, and every link leads to something."""

import ast
import re

import make_paper_index
import pytest

from transformer.book.anchors import anchors
from transformer.book.paper_index import (
    chapters_by_place,
    names_by_place,
    render_paper_index,
    stated_places,
)
from transformer.book.paper_places import PLACES, SECTIONS, places, places_of_row
from transformer.book.public_names import PublicName, paper_line, public_names

ROOT, NOTEBOOKS = make_paper_index.ROOT, make_paper_index.NOTEBOOKS
NAMES = public_names()
PAGE = make_paper_index.PAGE.read_text(encoding="utf-8")
NUMBERED = "1 2 3 3.1 3.2 3.2.1 3.2.2 3.2.3 3.3 3.4 3.5 4 5 5.1 5.2 5.3 5.4 6 6.1 6.2 6.3 7"
OTHERS = [f"Eq. ({i})" for i in (1, 2, 3)] + [f"Table {i}" for i in (1, 2, 3, 4)]
OTHERS += [f"Figure {i}" for i in (1, 2, 3, 4, 5)] + ["footnote 4", "footnote 5"]


# --- the page -------------------------------------------------------------------------------


def test_the_page_is_what_the_docstrings_say():
    """It fails after one has changed, until somebody calls: python tools/make_paper_index.py."""
    assert render_paper_index(NAMES, NOTEBOOKS) == PAGE


def test_every_place_of_the_paper_leads_to_code_and_to_a_chapter():
    code, treated = names_by_place(NAMES), chapters_by_place(NOTEBOOKS)
    assert [key for key in SECTIONS if key != "Abstract"] == NUMBERED.split()
    assert set(OTHERS) <= code.keys()
    for place in PLACES:
        assert treated[place.key], f"{place.key} has no chapter"
        below = [other.key for other in PLACES if place.key == other.section]
        below += [key for key in SECTIONS if key.startswith(f"{place.key}.")]
        reached = any(code[key] for key in (place.key, *below)) or place.key == "Abstract"
        assert reached, f"{place.key} has no code"
        if not place.section:
            title = f"{place.key} {place.title}" if place.key[0].isdigit() else place.title
            assert f"({place.anchor})=\n### {title}\n" in PAGE


def test_every_public_name_is_on_the_page_once_in_the_way_back():
    back = PAGE.partition("## From the code to the paper")[2]
    listed = re.findall(r"\{py:obj\}`[^`<]+ <([\w.]+)>`", back)
    assert sorted(listed) == sorted(name.full_name for name in NAMES)
    inside, _, outside = back.partition("## Not in the paper")
    for name in NAMES:
        part = inside if stated_places(name) else outside
        assert f"<{name.full_name}>`" in part, name.full_name


def test_links_lead_to_what_is_there():
    own = anchors(make_paper_index.PAGE)
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= own
    chapters = set(re.findall(r"\]\(\.\./notebooks/(\w+\.ipynb)", PAGE))
    missing = [name for name in chapters if not (NOTEBOOKS / name).is_file()]
    assert len(chapters) >= 20 and not missing
    assert {int(place.chapters[0][:2]) for place in PLACES if place.chapters} <= set(range(1, 25))
    # The names of API entries are checked by Sphinx, too, and the source pages by check_book.
    known = {name.full_name for name in NAMES}
    assert set(re.findall(r"\{py:obj\}`[^`<]+ <([^>]+)>`", PAGE)) == known
    api = "".join(page.read_text() for page in (ROOT / "book" / "api").glob("*.md"))
    assert {name.module for name in NAMES} <= set(re.findall(r"automodule:: (\S+)", api))
    for module, name in re.findall(r'"\.\./_modules/([\w/]+)\.html#([\w.]+)">source', PAGE):
        assert f"{module.replace('/', '.')}.{name}" in known


# --- what every public name has to say ------------------------------------------------------


def test_every_public_name_states_its_place_in_the_paper():
    silent = [name.full_name for name in NAMES if not name.paper]
    assert not silent, f"no line 'Paper:' in {', '.join(silent)}"
    for name in NAMES:
        stated_places(name)


def test_every_public_name_states_its_shapes():
    silent = {name.full_name: name.unshaped for name in NAMES if not name.says_its_shapes}
    assert not silent, f"tensors without a shape, in annotation or docstring: {silent}"


def test_no_public_name_is_overlooked():
    """The same by another way: every 'def' and 'class' line that could be public."""
    public = re.compile(r"^(?:    )?(?:async )?(?:def|class) [A-Za-z]", re.M)
    member = re.compile(r"^    (?:async )?(?:def|class) [A-Za-z]", re.M)
    overload = re.compile(r"@overload\n *def [A-Za-z]")  # the definition behind them counts
    count = 0
    for path in (ROOT / "transformer").rglob("*.py"):
        if "cli" in path.parts or path.name.startswith("__"):
            continue
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        count += len(public.findall(source)) - len(overload.findall(source))
        for node in ast.parse(source).body:
            inside = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            # Of a function, a private class and a protocol, what is inside is its own.
            own = isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            closed = not own or any("Protocol" in ast.unparse(base) for base in node.bases)
            count -= len(member.findall(inside)) if closed else 0
    assert count == len(NAMES)


# --- reading --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("section 3.2.1, Eq. (1)", ("3.2.1", "Eq. (1)")),
        ("sections 5.1 to 5.4 and 6.1", ("5.1", "5.2", "5.3", "5.4", "6.1")),
        ("sections 1 and 2 (recurrent), 3.2.1 (additive attention)", ("1", "2", "3.2.1")),
        ("section 4, Figures 3 to 5; the rest is not in the paper",
         ("4", "Figure 3", "Figure 4", "Figure 5")),
        ("section 2 (ConvS2S); Gehring et al. 2017, section 3.3", ("2",)),
        ("section 3.2.2, with the scores of Dai et al. 2019; section 4", ("3.2.2", "4")),
        ("section 6.1, footnote 5 (9.5 TFLOPS)", ("6.1", "footnote 5")),
        ("Table 3 (D)", ("Table 3",)),
        ("all sections", ("all sections",)),
        ("not in the paper; its training text is WMT14 (section 5.1)", ()),
    ],
)  # fmt: skip
def test_places_are_read(text, expected):
    assert places(text) == expected


@pytest.mark.parametrize("text", ["section 8", "section 3.6", "Table 5", "the appendix", ""])
def test_places_that_the_paper_does_not_have_are_refused(text):
    with pytest.raises(ValueError, match="no place of the paper"):
        places(text)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("6.2, Table 3 (A): BLEU 24.9 / 25.5 for h = 1 / 4", ("6.2", "Table 3")),
        ("Abstract: attention alone", ("Abstract",)),
        ("3.3, Eq. (2), also as two convolutions with kernel size 1", ("3.3", "Eq. (2)")),
        ("Footnote 4: q · k", ("footnote 4",)),
        ("(not in the paper: padding)", ()),
        ("Nothing on cross-attention in 3", ()),
    ],
)
def test_places_of_rows_are_read(row, expected):
    assert places_of_row(row) == expected


def test_the_line_may_go_on_in_the_next():
    assert paper_line("What.\n\nPaper: not in the paper (a\nlong story)\n\nMore.") == (
        "not in the paper (a long story)"
    )
    assert paper_line("What. See Paper: section 3") is None


SOURCE = '''
from typing import Protocol

def shaped(x: Float[Tensor, "B T"], names: dict[str, Tensor]) -> Int[Tensor, " B"]:
    """Paper: section 4"""

def bare(x: Tensor, y: int) -> list[Tensor]:
    """Paper: section 4"""

def told(x: torch.Tensor):
    """It takes (B, T) numbers.

    Paper: section 4"""

class Thing:
    """Paper: section 4"""

    field: np.ndarray

    def __init__(self, given: Tensor | None): ...

    @property
    def size(self) -> int: return 1

    def _hidden(self): ...

class Like(Protocol):
    """Paper: section 4"""

    def member(self, x: Tensor): ...

def _private(x: Tensor): ...

@overload
def twice(x: int) -> int: ...

def twice(x: float) -> float:
    """Paper: section 4"""
'''


def test_names_places_and_shapes_are_found(tmp_path):
    (tmp_path / "pack" / "sub").mkdir(parents=True)
    (tmp_path / "pack" / "sub" / "thing.py").write_text(SOURCE)
    (tmp_path / "pack" / "sub" / "__init__.py").write_text("def public(): ...")
    names = {name.name: name for name in public_names(tmp_path / "pack")}
    assert list(names) == ["shaped", "bare", "told", "Thing", "Thing.size", "Like", "twice"]
    assert names["bare"].full_name == "pack.sub.thing.bare" and names["bare"].line == 7
    assert names["bare"].unshaped == ("x", "return") and not names["bare"].says_its_shapes
    assert names["Thing"].unshaped == ("field", "given") and not names["Thing"].says_its_shapes
    assert names["shaped"].unshaped == () and names["told"].says_its_shapes
    assert names["Thing.size"].paper is None and names["Like"].paper == "section 4"


def test_a_silent_name_is_named():
    name = PublicName("transformer.model.x", "f", 1, "What it does.")
    with pytest.raises(ValueError, match="transformer.model.x.f has no line 'Paper:'"):
        names_by_place([name])
    name = PublicName("transformer.model.x", "f", 1, "Paper: section 9")
    with pytest.raises(ValueError, match="transformer.model.x.f: no place of the paper"):
        stated_places(name)
