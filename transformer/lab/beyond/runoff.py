"""A rainfall-runoff model of a small catchment, and forecasts of the river's flow.

The series is simulated, since the package ships no measured one. Rain falls in wet spells, more
often in winter than in summer. It fills a soil of limited capacity: the fuller the soil, the larger
the share of the rain that runs through it. This water is divided between a quick store, which
drains within days, and a slow one, which feeds the river for months. Each store releases a fixed
share of its content every day (a linear reservoir). Evaporation takes water from the soil, most of
it in summer.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

YEAR = 365


# The catchment; water in millimetres, that is litres per square metre.
CAPACITY = 120.0  # of the soil
CURVE = 3.0  # exponent of the share that runs through as a function of the soil's filling
QUICK_SHARE = 0.7  # share of this water that goes to the quick store
QUICK_DAYS, SLOW_DAYS = 2.5, 60.0  # mean residence times
GAUGE_ERROR = 0.03  # standard deviation of the error of a reading, relative to the flow


@dataclass(frozen=True)
class River:
    """Daily rain and flow at the gauge, in millimetres per day over the catchment."""

    rain: Float[np.ndarray, " days"]
    flow: Float[np.ndarray, " days"]


def draw_rain(days: int, random: np.random.Generator) -> Float[np.ndarray, " days"]:
    """Draw daily rain from the first of January: wet and dry spells, heavier rain in summer.

    A day is wet more often after a wet one. The amount of a wet day is gamma-distributed.
    """
    winter = 0.5 + 0.5 * np.cos(2 * np.pi * np.arange(days) / YEAR)
    after_dry, after_wet = 0.15 + 0.15 * winter, 0.5 + 0.15 * winter
    chance, wet = random.random(days), np.zeros(days, bool)
    for day in range(1, days):
        wet[day] = chance[day] < (after_wet if wet[day - 1] else after_dry)[day]
    return wet * random.gamma(0.8, 10.0 - 3.0 * winter)


def run_off(rain: Float[np.ndarray, " days"]) -> Float[np.ndarray, " days"]:
    """Compute the flow from the rain, both from the first of January, without gauge error."""
    winter = 0.5 + 0.5 * np.cos(2 * np.pi * np.arange(len(rain)) / YEAR)
    demand = 0.3 + 3.2 * (1 - winter)  # potential evaporation, millimetres per day
    soil, quick, slow = CAPACITY / 2, 0.0, 40.0
    flow = np.zeros(len(rain))
    for day, fallen in enumerate(rain):
        through = fallen * min(soil / CAPACITY, 1.0) ** CURVE
        soil += fallen - through
        through += max(soil - CAPACITY, 0.0)
        soil = min(soil, CAPACITY)
        soil -= min(soil, demand[day] * soil / CAPACITY)
        quick += QUICK_SHARE * through
        slow += (1 - QUICK_SHARE) * through
        out = quick / QUICK_DAYS, slow / SLOW_DAYS
        quick, slow = quick - out[0], slow - out[1]
        flow[day] = sum(out)
    return flow


def make_river(years: int, seed: int) -> River:
    """Draw rain and measured flow, after an additional year in which the stores fill."""
    random = np.random.default_rng(seed)
    rain = draw_rain((years + 1) * YEAR, random)
    flow = run_off(rain) * np.exp(GAUGE_ERROR * random.standard_normal(len(rain)))
    return River(rain[YEAR:], flow[YEAR:])


@dataclass(frozen=True)
class Windows:
    """Windows of a river's record, each with the days to forecast at its end.

    Args:
        inputs: of each day the square roots of rain and flow, the season as sine and cosine, and
            whether the day is to be forecast. The flow of the days to forecast is 0.
    """

    inputs: Float[Tensor, "windows days features"]
    targets: Float[Tensor, "windows horizon"]
    last: Float[Tensor, " windows"]

    def __len__(self) -> int:
        return len(self.last)


def cut_windows(
    river: River, history: int = 30, horizon: int = 5, rain_known: bool = True
) -> Windows:
    """Cut a record into overlapping windows, one for each possible day."""
    days = np.arange(len(river.rain))
    total = history + horizon
    season = 2 * np.pi * days / YEAR
    # A few floods are far larger than all other days; roots reduce their weight.
    columns = [np.sqrt(river.rain), np.sqrt(river.flow), np.sin(season), np.cos(season)]
    columns.append(np.zeros(len(days)))
    record = torch.tensor(np.stack(columns, axis=1), dtype=torch.float32)
    inputs = record.unfold(0, total, 1).transpose(1, 2).clone()
    inputs[:, history:, 1], inputs[:, history:, 4] = 0.0, 1.0
    if not rain_known:
        inputs[:, history:, 0] = 0.0
    flow = torch.tensor(river.flow, dtype=torch.float32).unfold(0, total, 1)
    return Windows(inputs, flow[:, history:].clone(), flow[:, history - 1].clone())


def efficiency(
    forecast: Float[Tensor, "windows horizon"], truth: Float[Tensor, "windows horizon"]
) -> Float[Tensor, " horizon"]:
    """Return the Nash-Sutcliffe efficiency of each day ahead.

    It is 1 for perfect forecasts, 0 for forecasts as good as the mean flow, and negative for worse
    ones.
    """
    wrong = (forecast - truth).square().sum(dim=0)
    return 1 - wrong / (truth - truth.mean(dim=0)).square().sum(dim=0)


class Forecaster(nn.Module):
    """A model whose output is added to the last known flow, on the scale of square roots.

    With an output of 0 the forecast is persistence: the flow of today.

    Args:
        model: maps windows (B, days, features) to one number per day (B, days, 1), of which those
            of the days to forecast are used.
    """

    def __init__(self, model: nn.Module, horizon: int):
        super().__init__()
        self.model, self.horizon = model, horizon

    def forward(self, inputs: Float[Tensor, "B days features"]) -> Float[Tensor, "B horizon"]:
        """Return the square roots of the flows ahead."""
        last = inputs[:, -self.horizon - 1, 1]
        return last[:, None] + self.model(inputs)[:, -self.horizon :, 0]


class DailyGRU(nn.Module):
    """A recurrent network that answers from its state after each day."""

    def __init__(self, features: int, d_hidden: int):
        super().__init__()
        self.recurrent = nn.GRU(features, d_hidden, batch_first=True)
        self.answer = nn.Linear(d_hidden, 1)

    def forward(self, inputs: Float[Tensor, "B days features"]) -> Float[Tensor, "B days 1"]:
        """Answer for each day."""
        return self.answer(self.recurrent(inputs)[0])


def linear_forecast(train: Windows, test: Windows) -> Float[Tensor, "windows horizon"]:
    """Fit a linear model of all features of a window by least squares, and forecast the flows.

    It uses square roots and the last known flow in the same way as :class:`Forecaster`.
    """

    def columns(windows: Windows) -> Tensor:
        flat = windows.inputs.flatten(1).double()
        return torch.cat([flat, torch.ones(len(flat), 1, dtype=torch.double)], dim=1)

    roots = train.targets.sqrt() - train.last.sqrt()[:, None]
    # Some columns are constant; the minimum-norm solution ignores them.
    fit = torch.linalg.lstsq(columns(train), roots.double(), driver="gelsd").solution
    return (test.last.sqrt()[:, None] + (columns(test) @ fit).float()).clamp(min=0).square()
