"""Sphinx extension: exercises that can be answered on the page.

Each exercise of a chapter becomes a block with a number, "20.4", and an anchor, in the order
question, answer, check, solution. Where the answer is a number, a word or a truth value, the page
has a form for it. Its checks, tolerances and hints are those of the notebook: the cell that is left
open stores them with its output (:func:`transformer_book.exercises.forms`).
"""

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, cast

from docutils import nodes
from public_address import BRANCH, COLAB
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain

from transformer.published import REPOSITORY
from transformer_book.exercises import HINTS

PRIORITY = 400  # before Sphinx collects titles and anchors
_HEAD = re.compile(r"(\d+)\. ?(.*)")
_CODE = re.compile(r"return \.\.\.|# your code")
_CHECK = "Show the check"


def answer_form(number: str, forms: Sequence[dict[str, Any]], question: str = "") -> str:
    """Write the fields of an exercise; a script shows and checks them.

    Args:
        number: of the exercise, as "20.4".
        forms: what :func:`transformer_book.exercises.forms` returns for each answer.
        question: its text, which gives the choices their order.
    """
    fields = []
    for place, each in enumerate(forms, 1):
        name = f"answer-{number.replace('.', '-')}-{place}"
        if each["choices"]:
            places = {choice: question.find(choice) for choice in each["choices"]}
            choices = sorted(each["choices"], key=lambda choice: places[choice])
            if each["kind"] == "truth":
                choices = ["True", "False"]
            inputs = "".join(
                f'<label><input type="radio" name="{name}" value="{escape(choice)}">'
                f"<span>{escape(choice)}</span></label>"
                for choice in choices
            )
            entry = f"<fieldset><legend>{escape(each['name'])}</legend>{inputs}</fieldset>"
        else:
            kind = "decimal" if each["kind"] == "number" else "text"
            entry = (
                f'<label for="{name}">{escape(each["name"])}</label>'
                f'<input id="{name}" type="text" size="14" inputmode="{kind}" autocomplete="off"'
                ' autocapitalize="off" spellcheck="false">'
            )
        fields.append(
            f'<form class="exercise-answer" hidden data-name="{name}" data-kind="{each["kind"]}"'
            f' data-key="{each["key"]}">{entry}<button type="submit">Check</button>'
            '<output aria-live="polite"></output></form>'
        )
    return "".join(fields)


def run_links(page: str, label: str, colab: str | None) -> str:
    """Write how to run an exercise: in Colab, if the book has an address, or as a download.

    Args:
        page: name of the chapter's page, as "notebooks/02_attention".
        label: of the chip in front.
        colab: address of the notebook in Colab, or None.
    """
    file = f"{page.rpartition('/')[2]}.ipynb"
    up = "../" * page.count("/")
    links = [f'<a href="{up}_sources/{page}.ipynb" download="{file}">Download the notebook</a>']
    if colab:
        links.insert(0, f'<a href="{escape(colab)}">Open in Colab</a>')
    return (
        f'<p class="exercise-run"><span class="exercise-chip">{label}</span> '
        f"{' or '.join(links)}, and write your answer in exercise "
    )


class Exercise:
    """The nodes of one exercise, sorted by what they are.

    Args:
        number: as "20.4".
        title: without its number.
        cells: the notebook's, by index.
    """

    def __init__(self, number: str, title: str, cells: Sequence[dict[str, Any]]) -> None:
        self.number, self.title, self._cells = number, title, cells
        self.question: list[nodes.Node] = []
        self.answer: list[nodes.Node] = []
        self.check: list[nodes.Node] = []
        self.solution: list[nodes.Node] = []
        self.after: list[nodes.Node] = []
        self.forms: list[dict[str, Any]] = []
        self.code = False

    def add(self, node: nodes.Node) -> None:
        """Add the next node of the chapter to the part that it belongs to."""
        cell = self._cell(node)
        if cell is None:
            (self.after if self.solution else self.question).append(node)
            return
        source = "".join(cell["source"])
        asked = [
            field
            for output in cell["outputs"]
            for field in output.get("metadata", {}).get("exercise", ())
        ]
        prompt = cell["metadata"].get("mystnb", {}).get("code_prompt_show", "")
        if "hide-cell" in cell["metadata"].get("tags", []):
            self.solution.append(node)
        elif prompt.startswith(_CHECK):
            self.check.append(node)
        elif asked or "○" in _printed(cell):
            self.answer.append(_without_output(node))
            self.code = self.code or bool(_CODE.search(source))
            self.forms += asked
        else:
            self.question.append(node)  # what the reader is given to work with

    def _cell(self, node: nodes.Node) -> dict[str, Any] | None:
        if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
            return self._cells[node["cell_index"]]
        return None

    def block(self, page: str, colab: str | None) -> nodes.container:
        """Return the exercise as one block: question, answer, check, solution."""
        name = f"exercise-{self.number.replace('.', '-')}"
        block = nodes.container(classes=["exercise"], ids=[name], names=[name])
        block += self.question
        asked = " ".join(node.astext() for node in self.question)
        on_page = bool(self.forms) and not self.code
        label = "Without Python" if on_page else "Needs Python"
        if on_page:
            block += _raw(answer_form(self.number, self.forms, asked))
            block += _raw(
                '<p class="exercise-without">Where scripts run, this page checks the answer. Here '
                "they do not: run the chapter in Python.</p>"
                '<details class="exercise-python"><summary>Answer in Python</summary>'
            )
        block += _raw(run_links(page, label, colab) + f"{self.number.split('.')[1]}.</p>")
        block += self.answer
        block += self.check
        if on_page:
            block += _raw("</details>")
        block += self.solution
        return block


def rebuilt(document: nodes.document, page: str, cells: list[Any], colab: str | None) -> list[str]:
    """Turn the exercises of a chapter into blocks; return their numbers and titles."""
    section = next(
        (s for s in document.findall(nodes.section) if s[0].astext() == "Exercises"), None
    )
    chapter = re.match(r"notebooks/(\d\d)_", page)
    if section is None or chapter is None:
        return []
    found: list[Exercise] = []
    kept: list[nodes.Node | Exercise] = []
    for node in section.children:
        bold = _bold(node)
        if bold is not None and (head := _HEAD.match(bold.astext())):
            number = f"{int(chapter[1])}.{head[1]}"
            exercise = Exercise(number, head[2].rstrip("."), cells)
            text = cast(nodes.Text, bold[0])
            bold.replace(text, nodes.Text(text.replace(f"{head[1]}.", number, 1)))
            bold.parent.insert(0, _raw(_anchor(number)))
            found.append(exercise)
            kept.append(exercise)
            exercise.add(node)
        elif found and not isinstance(node, nodes.section):
            found[-1].add(node)
        else:
            kept.append(node)
    section.children = []
    for each in kept:
        if isinstance(each, Exercise):
            section += each.block(page, colab)
            section += each.after
        else:
            section += each
    if found:
        hints = json.dumps(HINTS).replace("<", "\\u003c")
        section += _raw(f'<script type="application/json" id="exercise-hints">{hints}</script>')
    return [f"{exercise.number} {exercise.title}" for exercise in found]


def _bold(node: nodes.Node) -> nodes.strong | None:
    """Return the bold words at the start of a paragraph, None without any."""
    if not isinstance(node, nodes.paragraph):
        return None
    first = next((child for child in node.children if child.astext()), None)
    return first if isinstance(first, nodes.strong) else None


def _anchor(number: str) -> str:
    href = f"#exercise-{number.replace('.', '-')}"
    return f'<a class="headerlink" href="{href}" title="Link to exercise {number}">#</a>'


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _printed(cell: dict[str, Any]) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


def _without_output(node: nodes.Node) -> nodes.Node:
    """Remove "nothing to check yet", which would look as if the page ran the cell."""
    for part in list(node.findall(nodes.container)):
        if part.get("nb_element") == "cell_code_output":
            part.parent.remove(part)
    return node


def _colab(page: str) -> str | None:
    """Return the address of a chapter in Colab, None while the book has no address."""
    if REPOSITORY is None:
        return None
    path = REPOSITORY.removeprefix("https://github.com/")
    return f"{COLAB}/github/{path}/blob/{BRANCH}/{page}.ipynb"


def _on_document(app: Sphinx, document: nodes.document) -> None:
    env = app.env
    path = Path(env.doc2path(env.docname))
    if path.suffix != ".ipynb":
        return
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    labels = cast(StandardDomain, env.get_domain("std"))
    for title in rebuilt(document, env.docname, cells, _colab(env.docname)):
        name = f"exercise-{title.split()[0].replace('.', '-')}"
        labels.anonlabels[name] = env.docname, name
        labels.labels[name] = env.docname, name, f"Exercise {title}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-read", _on_document, priority=PRIORITY)
    app.add_css_file("exercises.css")
    app.add_js_file("exercises.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
