"""The colours of the book: figures, widgets and pages.

Every colour has a contrast of at least 4.5 to a light page, enough for small text, and its version
for a dark page has the same contrast there. Readers who cannot tell red from green, or see no red,
can tell the colours apart by their lightness.

Figures are drawn once, on white. On a dark page each colour has the opposite lightness and the same
hue, as :func:`on_dark` computes it.
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
GRID = "#e3e7ea"
TICK = "#4a545d"
GROUND = "#ffffff"
DARK_GROUND = "#121212"
#: The variable of the style sheet that holds a colour, by the colour.
VARIABLES = {
    **{colour: name for name, colour in COLOURS.items()},
    ROLES["hidden"]: "hidden",
    INK: "ink",
    SOFT: "soft",
    RULE: "rule",
    PALE: "pale",
    GRID: "grid",
    TICK: "tick",
    GROUND: "ground",
}

# Half a turn of hue at equal luminance: "hue-rotate" of the CSS filter effects.
_HALF_TURN = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])


def on_dark(colour: str) -> str:
    """Return the version of a figure's colour for a dark page."""
    red, green, blue = _turned(np.array(to_rgb(colour)))
    return to_hex((red, green, blue))


def dark_pixels(pixels: np.ndarray) -> np.ndarray:
    """Return the version of a picture (height, width, 4) for a dark page."""
    turned = _turned(pixels[..., :3] / 255)
    return np.concatenate([np.uint8(np.round(255 * turned)), pixels[..., 3:]], axis=-1)


def _turned(colours: np.ndarray) -> np.ndarray:
    """Invert the lightness of colours (..., 3) from 0 to 1, and keep their hues."""
    turned: np.ndarray = np.clip((0.93 - 0.86 * colours) @ _HALF_TURN.T, 0, 1)
    return turned


def css_variables() -> tuple[str, str]:
    """Write the colours as variables of a style sheet, for light and for dark pages."""
    shared = ROLES | {name: colour for colour, name in VARIABLES.items()}
    light = {**shared, "on": "#ffffff"}
    dark = {**{name: on_dark(colour) for name, colour in shared.items()}, "on": "#0c1216"}
    in_light, in_dark = (
        " ".join(f"--{name}: {colour};" for name, colour in colours.items())
        for colours in (light, dark)
    )
    return in_light, in_dark
