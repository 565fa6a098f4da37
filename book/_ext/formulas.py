r"""Sphinx extension: formulas as MathML, which browsers draw themselves.

No script runs, nothing moves while a page loads, and screen readers speak the formulas. A formula
that the converter does not know is a warning, so it fails the build.
"""

import html
import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

#: Browsers do not break inline formulas. One of more characters of LaTeX is set smaller on a phone.
LONG = 34
_CONVERTER = LatexToMathML(fancy_error=False)
_LOG = logging.getLogger(__name__)
#: Space between two formulas of one display; there they may break onto two lines.
_BREAK = re.compile(r"(?:\\qquad\s*)+")


def mathml(latex: str, display: bool = False) -> str:
    r"""Convert a formula."""
    return _CONVERTER.convert_with_local_state(latex, displaystyle=display)


def parts(latex: str) -> list[str]:
    r"""Divide a display at each \qquad; environments stay whole."""
    return [latex] if r"\begin" in latex else [part for part in _BREAK.split(latex) if part.strip()]


def _converted(latex: str, display: bool, node: nodes.Element) -> str:
    try:
        return mathml(latex, display)
    except LatexError as error:
        _LOG.warning("formula %r: %s", latex, error, location=node)
        return f"<code>{html.escape(latex)}</code>"


def _visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    latex = node.astext()
    size = " long" if len(latex) > LONG else ""
    self.body.append(f'<span class="math{size}">{_converted(latex, False, node)}</span>')
    raise nodes.SkipNode


def _visit_display(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math display"))
    if node["number"]:
        number = f'<span class="eqno">({get_node_equation_number(self, node)})'
        self.body.append(number)
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body += [_converted(part, True, node) for part in parts(node.astext())]
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
