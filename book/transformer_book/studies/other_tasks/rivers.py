"""Daily rain, temperature and flow of four rivers, and windows to forecast the flow from.

The record is of 2000 to 2002: the Narraguagus River at Cherryfield, Maine; Marsh Creek at
Blanchard and Brokenstraw Creek at Youngsville, Pennsylvania; and the Falling River near Naruna,
Virginia. The flows were measured by the U.S. Geological Survey and are in the public domain. Rain
and temperature are means over each catchment, from Daymet, which NASA's ORNL DAAC distributes
openly. Newman et al. (2015, doi:10.5194/hess-19-209-2015) compiled both, and CAMELS includes them;
this part is taken from the test data of the library NeuralHydrology.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

NAMES = ("Narraguagus", "Marsh Creek", "Falling River", "Brokenstraw")
DAYS = 1096  # of the three years
TEST_FROM = 731  # 1 January 2002
HISTORY, HORIZON = 20, 5


@dataclass(frozen=True)
class Rivers:
    """A record of several rivers; rain and flow in millimetres per day over the catchment."""

    rain: Float[np.ndarray, "rivers days"]
    temperature: Float[np.ndarray, "rivers days"]
    flow: Float[np.ndarray, "rivers days"]


def load_rivers() -> Rivers:
    """Load the three years of the four rivers."""
    with np.load(Path(__file__).with_name("rivers.npz")) as file:
        return Rivers(file["rain"] / 100, file["temperature"] / 10, file["flow"] / 1000)


@dataclass(frozen=True)
class Windows:
    """Windows of 25 days, the last 5 of which are to be forecast, one river after the other."""

    #: for each day the square roots of rain and flow, the temperature divided by 10, the season as
    #: sine and cosine, and whether the day is to be forecast. Rain and temperature of the days to
    #: forecast are known, as from a perfect weather forecast; their flow is 0.
    inputs: Float[Tensor, "windows days features"]
    flow: Float[Tensor, "windows horizon"]  #: of the days to forecast.
    today: Float[Tensor, " windows"]  #: flow of the last day before them.
    river: Float[Tensor, " windows"]  #: index into ``NAMES``.


def cut_windows(rivers: Rivers, first: int, end: int) -> Windows:
    """Cut days into overlapping windows, one for each start day and river."""
    total = HISTORY + HORIZON
    if end - first < total:
        raise ValueError(f"a window has {total} days, got the days from {first} to {end}")
    season = np.tile(2 * np.pi * np.arange(DAYS) / 365.25, (len(rivers.rain), 1))
    columns = np.stack(
        [
            np.sqrt(rivers.rain), np.sqrt(rivers.flow), rivers.temperature / 10,
            np.sin(season), np.cos(season), np.zeros_like(season),
        ],
        axis=-1,
    )[:, first:end]  # fmt: skip
    record = torch.tensor(columns, dtype=torch.float32).unfold(1, total, 1)
    inputs = record.permute(1, 0, 3, 2).flatten(0, 1).clone()  # (windows, days, features)
    flow = inputs[:, HISTORY:, 1].square()
    inputs[:, HISTORY:, 1], inputs[:, HISTORY:, 5] = 0.0, 1.0
    today = inputs[:, HISTORY - 1, 1].square()
    river = torch.arange(len(rivers.rain)).repeat(record.size(1)).float()
    return Windows(inputs, flow, today, river)


def efficiency(
    forecast: Float[Tensor, "windows horizon"], truth: Float[Tensor, "windows horizon"]
) -> Float[Tensor, " horizon"]:
    """Return the Nash-Sutcliffe efficiency of each day: 1 is perfect, 0 as good as the mean."""
    wrong = (forecast - truth).square().sum(dim=0)
    return 1 - wrong / (truth - truth.mean(dim=0)).square().sum(dim=0)
