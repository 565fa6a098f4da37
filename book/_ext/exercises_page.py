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
    """Write the fields of an exercise; a script shows and checks them."""
    fields = []
    for place, each in enumerate(forms, 1):
        name, label = f"answer-{number.replace('.', '-')}-{place}", escape(each["name"])
        if each["choices"]:
            is_truth = each["kind"] == "truth"
            inputs = "".join(
                f'<label><input type="radio" name="{name}" value="{escape(choice)}">'
                f"<span>{escape(choice)}</span></label>"
                for choice in (
                    ["True", "False"] if is_truth else sorted(each["choices"], key=question.find)
                )
            )
            entry = f"<fieldset><legend>{label}</legend>{inputs}</fieldset>"
        else:
            kind = "decimal" if each["kind"] == "number" else "text"
            entry = (
                f'<label for="{name}">{label}</label><input id="{name}" type="text" size="14"'
                f' inputmode="{kind}" autocomplete="off" autocapitalize="off" spellcheck="false">'
            )
        fields.append(
            f'<form class="exercise-answer" hidden data-name="{name}" data-kind="{each["kind"]}"'
            f' data-key="{each["key"]}">{entry}<button type="submit">Check</button>'
            '<output aria-live="polite"></output></form>'
        )
    return "".join(fields)


def run_links(page: str, colab: str | None) -> str:
    """Write where to run an exercise: in Colab, if the book has an address, or as a download."""
    file = f"{page.rpartition('/')[2]}.ipynb"
    up = "../" * page.count("/")
    download = f'<a href="{up}_sources/{page}.ipynb" download="{file}">Download the notebook</a>'
    return f'<a href="{escape(colab)}">Open in Colab</a> or {download}' if colab else download


def _part(node: nodes.Node, cell: dict[str, Any] | None, is_solved: bool) -> str:
    """Name the part of its exercise that a node belongs to."""
    if cell is None:
        return "after" if is_solved else "question"
    if "hide-cell" in cell["metadata"].get("tags", []):
        return "solution"
    if cell["metadata"].get("mystnb", {}).get("code_prompt_show", "").startswith(_CHECK):
        return "check"
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
    return "answer" if _asked(cell) or "○" in printed else "question"  # else what it works with


def _asked(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the forms that an open cell stores with its output."""
    outputs = cell["outputs"]
    return [form for each in outputs for form in each.get("metadata", {}).get("exercise", ())]


def _block(
    number: str, found: list[nodes.Node], cells: list[Any], page: str, colab: str | None
) -> list[nodes.Node]:
    """Return an exercise as one block of question, answer, check, solution; and what follows it."""
    parts: dict[str, list[nodes.Node]] = {
        part: [] for part in ("question", "answer", "check", "solution", "after")
    }
    forms: list[dict[str, Any]] = []
    needs_code = False
    for node in found:
        is_cell = isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"
        cell = cells[node["cell_index"]] if is_cell else None
        part = _part(node, cell, bool(parts["solution"]))
        parts[part].append(node)
        if part == "answer" and cell:
            forms += _asked(cell)
            needs_code |= bool(_CODE.search("".join(cell["source"])))
            for output in list(node.findall(nodes.container)):  # "nothing to check yet"
                if output.get("nb_element") == "cell_code_output":
                    output.parent.remove(output)
    on_page = bool(forms) and not needs_code
    name = _name(number)
    block = nodes.container("", *parts["question"], classes=["exercise"], ids=[name], names=[name])
    if on_page:
        asked = " ".join(node.astext() for node in parts["question"])
        block += _raw(
            f"{answer_form(number, forms, asked)}"
            '<p class="exercise-without">Where scripts run, this page checks the answer. Here '
            "they do not: run the chapter in Python.</p>"
            '<details class="exercise-python"><summary>Answer in Python</summary>'
        )
    block += _raw(
        f'<p class="exercise-run"><span class="exercise-chip">'
        f"{'Without Python' if on_page else 'Needs Python'}</span> {run_links(page, colab)}, and "
        f"write your answer in exercise {number.split('.')[1]}.</p>"
    )
    block += [*parts["answer"], *parts["check"], _raw("</details>" * on_page), *parts["solution"]]
    return [block, *parts["after"]]


def rebuilt(document: nodes.document, page: str, cells: list[Any], colab: str | None) -> list[str]:
    """Turn the exercises of a chapter into blocks; return their numbers and titles."""
    sections = (s for s in document.findall(nodes.section) if s[0].astext() == "Exercises")
    section, chapter = next(sections, None), re.match(r"notebooks/(\d\d)_", page)
    if section is None or chapter is None:
        return []
    found: dict[str, list[nodes.Node]] = {}
    kept: list[nodes.Node] = []
    rest: list[nodes.Node] = []
    titles = []
    for node in section.children:
        bold = _bold(node)
        if bold is not None and (head := _HEAD.match(bold.astext())):
            number = f"{int(chapter[1])}.{head[1]}"
            text = cast(nodes.Text, bold[0])
            bold.replace(text, nodes.Text(text.replace(f"{head[1]}.", number, 1)))
            link = f'href="#{_name(number)}" title="Link to exercise {number}"'
            bold.parent.insert(0, _raw(f'<a class="headerlink" {link}>#</a>'))
            titles.append(f"{number} {head[2].rstrip('.')}")
            found[number] = [node]
        elif isinstance(node, nodes.section):
            rest.append(node)
        else:
            (found[number] if found else kept).append(node)
    section.children = []
    section += kept
    for number, group in found.items():
        section += _block(number, group, cells, page, colab)
    section += rest
    if found:
        hints = json.dumps(HINTS).replace("<", "\\u003c")
        section += _raw(f'<script type="application/json" id="exercise-hints">{hints}</script>')
    return titles


def _name(number: str) -> str:
    return f"exercise-{number.replace('.', '-')}"


def _bold(node: nodes.Node) -> nodes.strong | None:
    """Return the bold words at the start of a paragraph, None without any."""
    if not isinstance(node, nodes.paragraph):
        return None
    first = next((child for child in node.children if child.astext()), None)
    return first if isinstance(first, nodes.strong) else None


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _on_document(app: Sphinx, document: nodes.document) -> None:
    env = app.env
    path = Path(env.doc2path(env.docname))
    if path.suffix != ".ipynb":
        return
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    labels = cast(StandardDomain, env.get_domain("std"))
    place = (REPOSITORY or "").removeprefix("https://github.com/")
    colab = f"{COLAB}/github/{place}/blob/{BRANCH}/{env.docname}.ipynb" if place else None
    for title in rebuilt(document, env.docname, cells, colab):
        name = _name(title.split()[0])
        labels.anonlabels[name] = env.docname, name
        labels.labels[name] = env.docname, name, f"Exercise {title}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-read", _on_document, priority=PRIORITY)
    app.add_css_file("exercises.css")
    app.add_js_file("exercises.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
