"""The flow of a river below a small catchment: a model of rain and runoff, and forecasts of it.

No measured series ships with this package, so the river is computed. Rain falls on some days and
not on others, more often in winter than in summer. It fills a soil that holds only so much: the
fuller it is, the more of the rain runs through it. What runs through goes in part to a quick
store, which drains within days, and in part to a slow one, which feeds the river for months. Each
store gives a fixed share of what it holds every day (a linear reservoir). The sun takes water
from the soil, in summer most.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

YEAR = 365


@dataclass(frozen=True)
class Catchment:
    """The numbers of a catchment; water in millimetres, that is litres a square metre.

    Args:
        capacity: what the soil can hold, above 0.
        curve: how steeply the share that runs through grows with the soil's filling.
        quick_share: of the water that runs through, the share that goes to the quick store.
        quick_days: mean time that water stays in the quick store, in days, at least 1.
        slow_days: the same for the slow store.
        gauge_error: standard deviation of the error of a reading, as a share of the flow.
    """

    capacity: int | float = 120.0
    curve: int | float = 3.0
    quick_share: int | float = 0.7
    quick_days: int | float = 2.5
    slow_days: int | float = 60.0
    gauge_error: int | float = 0.03


@dataclass(frozen=True)
class River:
    """Daily rain and flow.

    Args:
        rain: in millimetres a day.
        flow: at the gauge, in millimetres a day over the whole catchment.
    """

    rain: Float[np.ndarray, " days"]
    flow: Float[np.ndarray, " days"]


def draw_rain(days: int, random: np.random.Generator) -> Float[np.ndarray, " days"]:
    """Draw daily rain: wet spells and dry ones, and in summer fewer but heavier falls.

    A day is wet more often after a wet one. The amount of a wet day is gamma-distributed.

    Args:
        days: how many, from the first of January.
        random: the generator to draw with.
    """
    winter = 0.5 + 0.5 * np.cos(2 * np.pi * np.arange(days) / YEAR)
    after_dry, after_wet = 0.15 + 0.15 * winter, 0.5 + 0.15 * winter
    chance, wet = random.random(days), np.zeros(days, bool)
    for day in range(1, days):
        wet[day] = chance[day] < (after_wet if wet[day - 1] else after_dry)[day]
    return wet * random.gamma(0.8, 10.0 - 3.0 * winter)


def run_off(
    rain: Float[np.ndarray, " days"], catchment: Catchment | None = None
) -> Float[np.ndarray, " days"]:
    """Compute the flow that follows from rain: one soil and two linear reservoirs, day by day.

    Args:
        rain: in millimetres a day, from the first of January.
        catchment: its numbers; the defaults if None.

    Returns:
        The flow in millimetres a day, without any error of a gauge.
    """
    c = catchment or Catchment()
    winter = 0.5 + 0.5 * np.cos(2 * np.pi * np.arange(len(rain)) / YEAR)
    demand = 0.3 + 3.2 * (1 - winter)  # what the sun could take, millimetres a day
    soil, quick, slow = c.capacity / 2, 0.0, 40.0
    flow = np.zeros(len(rain))
    for day, fallen in enumerate(rain):
        through = fallen * min(soil / c.capacity, 1.0) ** c.curve
        soil += fallen - through
        through += max(soil - c.capacity, 0.0)
        soil = min(soil, c.capacity)
        soil -= min(soil, demand[day] * soil / c.capacity)
        quick += c.quick_share * through
        slow += (1 - c.quick_share) * through
        out = quick / c.quick_days, slow / c.slow_days
        quick, slow = quick - out[0], slow - out[1]
        flow[day] = sum(out)
    return flow


def make_river(years: int, seed: int, catchment: Catchment | None = None) -> River:
    """Draw rain, and measure the flow that follows from it; the same seed gives the same river.

    A year before the first one is computed and thrown away, so that the stores have filled.

    Args:
        years: of 365 days, at least 1.
        seed: of the rain and of the gauge's errors.
        catchment: its numbers; the defaults if None.
    """
    c, random = catchment or Catchment(), np.random.default_rng(seed)
    rain = draw_rain((years + 1) * YEAR, random)
    flow = run_off(rain, c) * np.exp(c.gauge_error * random.standard_normal(len(rain)))
    return River(rain[YEAR:], flow[YEAR:])


@dataclass(frozen=True)
class Windows:
    """Pieces of a river's record, each with the days that follow and are to be forecast.

    Args:
        inputs: of each day the square roots of rain and flow, the season as sine and cosine, and
            whether the day lies ahead. The flow of the days ahead is 0.
        targets: flow of the days ahead, in millimetres a day.
        last: flow of the last day that is known.
    """

    inputs: Float[Tensor, "windows days features"]
    targets: Float[Tensor, "windows horizon"]
    last: Float[Tensor, " windows"]

    def __len__(self) -> int:
        return len(self.last)


def cut_windows(
    river: River, history: int = 30, horizon: int = 5, rain_known: bool = True
) -> Windows:
    """Cut a record into overlapping windows, one for each day that has enough before and after it.

    Args:
        river: the record.
        history: days that are known.
        horizon: days to forecast.
        rain_known: whether the rain of the days ahead is given, as a forecast of the weather that
            is always right would give it.

    Raises:
        ValueError: if the record is too short for one window.
    """
    days = np.arange(len(river.rain))
    total = history + horizon
    if len(days) < total:
        raise ValueError(f"river must have at least {total} days, got {len(days)}")
    season = 2 * np.pi * days / YEAR
    # A few floods are far larger than all other days; roots bring them nearer.
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
    """Nash and Sutcliffe's efficiency of each day ahead.

    Returns:
        1 for perfect forecasts, 0 for those as good as always saying the mean flow; below 0 for
        worse ones.
    """
    wrong = (forecast - truth).square().sum(dim=0)
    return 1 - wrong / (truth - truth.mean(dim=0)).square().sum(dim=0)


class Forecaster(nn.Module):
    """A model of windows whose answer is added to the last known flow, in roots.

    With an answer of 0 it says what persistence says: tomorrow as today. The square roots of flows
    are what is forecast, as they are what comes in.

    Args:
        model: maps windows (B, days, features) to one number a day (B, days, 1), of which those
            of the days ahead are taken.
        horizon: days to forecast.
    """

    def __init__(self, model: nn.Module, horizon: int):
        super().__init__()
        self.model, self.horizon = model, horizon

    def forward(self, inputs: Float[Tensor, "B days features"]) -> Float[Tensor, "B horizon"]:
        """Return the square roots of the flows ahead."""
        last = inputs[:, -self.horizon - 1, 1]
        return last[:, None] + self.model(inputs)[:, -self.horizon :, 0]


class DailyGRU(nn.Module):
    """A recurrent network that reads day by day and answers from its state after each day.

    Args:
        features: numbers a day.
        d_hidden: size of the state.

    Paper: section 1 (recurrent networks)
    """

    def __init__(self, features: int, d_hidden: int):
        super().__init__()
        self.recurrent = nn.GRU(features, d_hidden, batch_first=True)
        self.answer = nn.Linear(d_hidden, 1)

    def forward(self, inputs: Float[Tensor, "B days features"]) -> Float[Tensor, "B days 1"]:
        """Answer for each day.

        Paper: section 1
        """
        return self.answer(self.recurrent(inputs)[0])


def linear_forecast(train: Windows, test: Windows) -> Float[Tensor, "windows horizon"]:
    """Fit a linear model of everything that a window holds, by least squares, and forecast.

    It works on roots, as the networks do, and adds its answer to the last known flow as they do.

    Args:
        train: to fit.
        test: to forecast.

    Returns:
        Flows in millimetres a day.
    """

    def columns(windows: Windows) -> Tensor:
        flat = windows.inputs.flatten(1).double()
        return torch.cat([flat, torch.ones(len(flat), 1, dtype=torch.double)], dim=1)

    roots = train.targets.sqrt() - train.last.sqrt()[:, None]
    # Some columns never change; the least of all solutions leaves them alone.
    fit = torch.linalg.lstsq(columns(train), roots.double(), driver="gelsd").solution
    return (test.last.sqrt()[:, None] + (columns(test) @ fit).float()).clamp(min=0).square()
