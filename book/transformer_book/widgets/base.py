"""Base of all interactive figures.

A widget is one piece of markup with its data, style, script and a picture. It loads nothing, so
that it works from a file, offline, and in any viewer. Where scripts run, they replace the picture.
Both versions have a description in words.
"""

import base64
import hashlib
import io
import json
import re
from abc import ABC, abstractmethod
from html import escape
from importlib.resources import files
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from transformer_book.figures import STYLE as FIGURE_STYLE
from transformer_book.palette import css_variables

MARKUP = """<div class="themed %KIND%" id="%ID%">
<style>%STYLE%</style>
<img alt="%ALT%" src="data:image/png;base64,%PNG%">
<script type="application/json">%DATA%</script>
<script>%SCRIPT%</script>
</div>"""


class Widget(ABC):
    """An interactive figure: attributes, :meth:`payload` and :meth:`draw` are a subclass's."""

    # Name of the element's class, and the beginning of its id.
    kind = ""
    # Further classes of the element.
    classes = ""
    # The style sheet, every rule of which begins with the class.
    style = ""
    # The script; %ID% stands for the id of the element.
    script = ""
    # Description for readers who do not see the figure.
    alt = ""
    # Width and height of the picture, in inches.
    size: tuple[float, float] = (6.4, 3.6)

    @abstractmethod
    def payload(self) -> dict[str, Any]:
        """Collect the data of the script, as JSON has it."""

    @abstractmethod
    def draw(self, figure: Figure) -> None:
        """Draw the picture for places where scripts do not run."""

    def _png(self) -> bytes:
        with mpl.rc_context(FIGURE_STYLE):
            figure = Figure(figsize=self.size, dpi=100, layout="constrained")
            FigureCanvasAgg(figure)
            self.draw(figure)
            target = io.BytesIO()
            figure.savefig(target, format="png", metadata={"Software": None})
        # A palette of 128 colours halves the size of the picture, or better.
        small = io.BytesIO()
        Image.open(target).convert("RGB").quantize(128).save(small, format="png", optimize=True)
        return small.getvalue()

    def _html(self, png: str) -> str:
        # A "</script>" among the labels must not end the element that holds them.
        data = json.dumps(self.payload()).replace("<", "\\u003c")
        # The same widget has the same id in every run, so that the stored output does not change.
        digest = hashlib.sha256((data + self.alt).encode()).hexdigest()[:10]
        parts = {
            "KIND": f"{self.classes} {self.kind}".strip(),
            "ID": f"{self.kind}-{digest}",
            "STYLE": self.style,
            "ALT": escape(self.alt),
            "PNG": png,
            "DATA": data,
        }
        parts["SCRIPT"] = self.script.replace("%ID%", parts["ID"])
        # In one pass, so that a part may contain the name of another.
        return re.sub("%([A-Z]+)%", lambda found: parts[found[1]], MARKUP)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        png = base64.b64encode(self._png()).decode()
        return {"text/html": self._html(png), "image/png": png, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return self.alt


def read_asset(name: str) -> str:
    """Read a style sheet or a script beside this module."""
    return files("transformer_book.widgets").joinpath(name).read_text(encoding="utf-8")


class Explorer(Widget):
    """A widget with controls; its script and style are files of its name, after ``parts``."""

    classes = "explorer"
    # Scripts and style sheets that some explorers share.
    parts: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        light, dark = css_variables()
        colours = f'.explorer {{ {light} }}\n.explorer[data-theme="dark"] {{ {dark} }}\n'

        def joined(ending: str) -> str:
            shared = (part for part in cls.parts if part.endswith(ending))
            return "".join(map(read_asset, (f"explorer{ending}", *shared, f"{cls.kind}{ending}")))

        cls.style = colours + joined(".css")
        cls.script = "(() => {\n" + joined(".js") + "})();"
