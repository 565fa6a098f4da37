"""The colours of the book: figures, widgets and pages.

Every colour has a contrast of at least 4.5 to a light page, enough for small text, and its version
for a dark page has the same contrast there. Readers who cannot tell red from green, or see no red,
can tell the colours apart by their lightness.

Figures are drawn once, on white. On a dark page the style sheet of the book inverts their lightness
and keeps their hues, as :func:`on_dark` does.
"""

import numpy as np
from matplotlib.colors import to_hex, to_rgb

COLOURS = {
    "blue": "#0072b2",
    "vermilion": "#c24e00",
    "green": "#12603c",
    "purple": "#701c52",
    "brown": "#5a4200",
    "grey": "#6b747c",
}
# The parts of attention have the same colours in all figures.
ROLES = {
    "query": COLOURS["vermilion"],
    "key": COLOURS["blue"],
    "value": COLOURS["green"],
    "hidden": "#d9dee2",  # background of masked and padding positions
}
INK = "#222b33"  # text
SOFT = "#58636d"  # remarks
RULE = "#8a949d"  # axes and edges
PALE = "#eceff2"  # highlighted background

# The filter that the style sheet of the book applies to pictures on a dark page.
DARK_FILTER = "invert(0.93) hue-rotate(180deg)"
DARK_GROUND = "#121212"

# Half a turn of hue at equal luminance: "hue-rotate" of the CSS filter effects.
_HALF_TURN = np.array(
    [[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]],
)


def on_dark(colour: str) -> str:
    """Return the colour that the filter of a dark page makes of a colour of a figure.

    Args:
        colour: any colour of matplotlib.

    Returns:
        The colour as "#rrggbb".
    """
    inverted = 0.93 - 0.86 * np.array(to_rgb(colour))
    red, green, blue = np.clip(_HALF_TURN @ inverted, 0, 1)
    return to_hex((red, green, blue))


def css_variables() -> tuple[str, str]:
    """Write the colours as variables of a style sheet, for light and for dark pages.

    Returns:
        Two lists of declarations: ``--blue`` and so on for the colours, ``--query``, ``--key``,
        ``--value`` and ``--hidden`` for the roles, ``--ink``, ``--soft``, and ``--on`` for text
        on a coloured background.
    """
    shared = {**COLOURS, **ROLES, "ink": INK, "soft": SOFT}
    light = {**shared, "on": "#ffffff"}
    dark = {**{name: on_dark(colour) for name, colour in shared.items()}, "on": "#0c1216"}
    in_light, in_dark = (
        " ".join(f"--{name}: {colour};" for name, colour in colours.items())
        for colours in (light, dark)
    )
    return in_light, in_dark
