"""Begins a chapter: a notebook with every part that a chapter has, and a sentence on each.

    python tools/new_chapter.py 25_sparse_updates "Which weights move?"

Fill it in from top to bottom, execute it with ``tools/execute_notebooks.py``, and list it in
``_toc.yml`` and ``book/intro.md``. CONTRIBUTING.md says what is expected of each part.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from execute_notebooks import normalise
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"

# Kind of cell, tags, text. {title} is the question; everything else is to be replaced.
PARTS: Sequence[tuple[str, tuple[str, ...], str]] = (
    (
        "markdown",
        (),
        "# {title}\n\n"
        "> **You need** the chapters that this one builds on, with links.\n"
        ">\n"
        "> **You will be able to**\n"
        "> - do something that can be checked;\n"
        "> - and something else.",
    ),
    ("install", ("hide-cell", "nbval-skip"), ""),
    ("markdown", (), "**The answer in two sentences.** Written last, no surer than what was seen."),
    (
        "code",
        (),
        "import matplotlib.pyplot as plt\n\n"
        "from transformer.book import check, comparison, figure, plot_runs, setup\n\n"
        "setup(seed=0)",
    ),
    ("markdown", (), "## Build it\n\nNaively first, then vectorised, then the package's own\n"
     "source by `show_source`. Assert that all three agree."),
    ("code", (), "naive = [x * x for x in range(5)]\nassert naive[2] == 4\nprint(naive)"),
    ("markdown", (), "## Break it\n\nThe wrong version that looks right, and what it does."),
    ("code", (), "wrong = [x + x for x in range(5)]\nassert wrong != naive\nprint(wrong)"),
    ("markdown", (), "## Experiment\n\nOne question, at least three seeds, all else equal."),
    ("code", (), "runs = [[seed + x for x in range(5)] for seed in range(3)]"),
    ("figure", ("hide-input",), "fig, panel = figure()\n_ = plot_runs(panel, range(5), runs)\n"
     "plt.show()"),
    ("code", (), "assert all(run[-1] > run[0] for run in runs)  # what the caption says"),
    ("markdown", (), "## The paper, and what we measured"),
    (
        "code",
        (),
        "comparison([\n"
        '    ("Section 0: what it says", f"{{runs[0][-1]}}, by this cell", "nowhere"),\n'
        "])",
    ),
    ("markdown", (), "## Exercises\n\nEach comes with a check that tells you what is wrong, and a\n"
     "solution that is folded away.\n\n**1. Name it.** The task, in two lines."),
    ("check", ("hide-input",), "def check_it(answer):\n    check(answer, 4, name=\"two squared\",\n"
     "          mistakes={{\"Squared, not doubled once more.\": 8}})"),
    ("code", (), "answer = ...  # a number\ncheck_it(answer)"),
    ("solution", ("hide-cell", "solution"), "check_it(2**2)"),
    ("markdown", (), "## References of this chapter\n\n"
     "- A. Vaswani and others, *Attention Is All You Need*, 2017, section 0."),
)  # fmt: skip


def install_cell() -> str:
    """The first code cell, word for word that of the other chapters."""
    chapter = nbformat.read(min(NOTEBOOKS.glob("[0-9]*.ipynb")), as_version=4)
    return next(cell.source for cell in chapter.cells if cell.cell_type == "code")


def skeleton(name: str, title: str) -> NotebookNode:
    """Makes the notebook; its cells run, and it is not executed yet."""
    prompts = dict(
        figure="how the figure is drawn",
        check="the check (it gives the answer away)",
        solution="the solution",
    )
    cells = []
    for kind, tags, text in PARTS:
        text = install_cell() if kind == "install" else text.format(title=title)
        cell = new_markdown_cell(text) if kind == "markdown" else new_code_cell(text)
        cell["id"] = f"{name[:2]}-{len(cells):02d}"
        if tags:
            cell.metadata["tags"] = list(tags)
        if kind in prompts:
            cell.metadata["mystnb"] = dict(
                code_prompt_show=f"Show {prompts[kind]}", code_prompt_hide=f"Hide {prompts[kind]}"
            )
        if kind == "figure":
            cell.metadata["mystnb"] |= dict(
                figure=dict(name=f"fig-{name[3:].replace('_', '-')}", caption="The finding."),
                image=dict(alt="What is seen, for somebody who does not see it."),
            )
        cells.append(cell)
    notebook = new_notebook(cells=cells)
    normalise(notebook)
    return notebook


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="two digits and words: 25_sparse_updates")
    parser.add_argument("title", help='the question: "Which weights move?"')
    parser.add_argument("--folder", type=Path, default=NOTEBOOKS)
    options = parser.parse_args(arguments)
    path = options.folder / f"{options.name}.ipynb"
    if not re.fullmatch(r"\d\d_[a-z0-9_]+", options.name):
        parser.error(f"name must be two digits and lower-case words, got {options.name!r}")
    if not options.title.endswith("?"):
        parser.error(f"title must be a question, got {options.title!r}")
    if path.exists() or list(options.folder.glob(f"{options.name[:2]}_*.ipynb")):
        parser.error(f"there is a chapter {options.name[:2]} in {options.folder}")
    text = nbformat.writes(skeleton(options.name, options.title)) + "\n"
    path.write_text(text, encoding="utf-8")
    print(f"{path}: written. Next: python tools/execute_notebooks.py {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
