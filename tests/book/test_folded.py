"""Scaffolding is behind one line under its own name, checks of exercises stay as they are."""

import folded
from docutils import nodes
from docutils.utils import new_document


def cell(source, **attributes):
    box = nodes.container("", nodes.literal_block(source, source), nb_element="cell_code_source")
    return nodes.container("", box, nb_element="cell_code", **attributes)


def test_hidden_inputs_are_folded_except_among_the_exercises():
    metadata = {"mystnb": {"code_prompt_show": "Show the imports"}}
    hidden = dict(hide_mode="input", cell_metadata=metadata)
    document = new_document("chapter")
    document += [
        cell("%pip install", classes=["tag_nbval-skip"]),
        cell("idea"),
        cell("re", **hidden),
    ]
    document += nodes.section("", cell("check", **hidden), ids=["exercises"])
    folded._fold(None, document)
    (fold,) = document.findall(folded.Fold)
    assert fold["label"] == "Imports" and fold.astext() == "re"
    assert [c.get("hide_mode") for c in document.children[:2]] == [None, None]
    assert "pip" not in document.astext() and "check" in document.astext()
