"""What `make gpu` is to run, best first, and how far each of it has come.

Best first means: an answer to every question of the results page before a spread for any. So
seed 1 of every recipe comes before seed 2 of any, and within a seed the order is that of the page:
the published figure on Multi30K that ours has to reach, the baselines beside it, the other
directions, then the larger texts. Throughput is measured before all that, since it takes minutes
and needs the device for itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from transformer.recipes.architectures import ARCHITECTURES, architecture
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.record import read_record

Where = Literal["gpu", "cpu", "named"]


@dataclass(frozen=True)
class Entry:
    """A line of the plan: where it belongs, and its seeds, or none for a measurement."""

    preset: str
    where: Where = "gpu"
    seeds: Sequence[int] = (1, 2, 3)


PLAN = (
    Entry("mixture-base", seeds=()),
    Entry("multi30k-tiny"),
    Entry("multi30k-tiny-cased"),
    Entry("multi30k-recurrent"),
    Entry("multi30k-convolutional"),
    Entry("multi30k-tiny-en-fr"),
    Entry("multi30k-small-de-en"),
    Entry("tatoeba-large"),
    Entry("mixture-base", seeds=(1,)),
    # What the same questions come down to in hours on a CPU.
    Entry("multi30k-tiny-cpu", "cpu"),
    Entry("multi30k-recurrent-cpu", "cpu"),
    Entry("multi30k-convolutional-cpu", "cpu"),
    Entry("tatoeba-small", "cpu", (1,)),
    # The paper's recipes: measured on random tokens, trained by whoever asks for it by name.
    Entry("wmt14-base", seeds=()),
    Entry("wmt14-big", seeds=()),
    Entry("wmt14-base", "named", (1,)),
    Entry("wmt14-big", "named", (1,)),
)


@dataclass(frozen=True)
class Item:
    """One thing to record: a run of a preset with a seed, or its throughput (no seed)."""

    preset_name: str
    seed: int | None

    @property
    def name(self) -> str:
        """Name of the record and of the run's folder."""
        return f"{self.preset_name}-{'throughput' if self.seed is None else f'seed{self.seed}'}"

    @property
    def alone(self) -> bool:
        """Whether nothing else may run beside it."""
        return self.seed is None

    def preset(self) -> Preset:
        """The recipe, with the seed."""
        preset = get_preset(self.preset_name)
        return preset if self.seed is None else preset.with_changes(seed=self.seed)

    @classmethod
    def named(cls, name: str) -> "Item":
        """The item of a name, such as "multi30k-tiny-seed2"."""
        preset, _, last = name.rpartition("-")
        if last != "throughput" and not (last.startswith("seed") and last[4:].isdigit()):
            raise ValueError(f"no run is called {name!r}; names end in -seed1 or -throughput")
        get_preset(preset)
        return cls(preset, None if last == "throughput" else int(last[4:]))


def items_of(entries: Iterable[Entry]) -> list[Item]:
    """Items in the order to run: the first seed of all entries, then the second of all, ...

    Measurements come before all runs if the plan begins with them, else after all runs.
    """
    entries = list(entries)
    begin = next((i for i, entry in enumerate(entries) if entry.seeds), len(entries))
    first, last = (
        [Item(entry.preset, None) for entry in part if not entry.seeds]
        for part in (entries[:begin], entries[begin:])
    )
    rounds = max((len(entry.seeds) for entry in entries), default=0)
    runs = [
        Item(entry.preset, entry.seeds[i])
        for i in range(rounds)
        for entry in entries
        if i < len(entry.seeds)
    ]
    return first + runs + last


def choose(names: Sequence[str], seeds: Sequence[int] | None, gpu: bool) -> list[Item]:
    """The items to record.

    Args:
        names: presets, of which everything planned is meant, or single items; none for the plan of
            this kind of machine.
        seeds: only these of a preset; also those that the plan does not have.
        gpu: whether this machine has one.

    Raises:
        ValueError: if a name is neither.
    """
    if not names:
        here = [entry for entry in PLAN if entry.where == ("gpu" if gpu else "cpu")]
        return [item for item in items_of(here) if seeds is None or item.seed in (*seeds, None)]
    entries, single = [], []
    for name in names:
        try:
            single.append(Item.named(name))
            continue
        except ValueError:
            get_preset(name)  # an unknown name ends it here, with the nearest one
        planned = [entry for entry in PLAN if entry.preset == name]
        if gpu:  # a measurement on a CPU has to be asked for by its own name
            entries += [entry for entry in planned if not entry.seeds]
        runs = [entry for entry in planned if entry.seeds]
        entries += runs if seeds is None and runs else [Entry(name, seeds=seeds or (1, 2, 3))]
    return list(dict.fromkeys(single + items_of(entries)))


@dataclass(frozen=True)
class State:
    """How far an item has come.

    Args:
        kind: "recorded" is the only one that needs no work.
        step: where an unfinished run goes on; None if it would begin.
        why: what a stale record differs in.
    """

    kind: Literal["recorded", "stale", "unfinished", "missing"]
    step: int | None = None
    why: str = ""

    def __str__(self) -> str:
        text = f"stale ({self.why})" if self.why else self.kind
        return text if self.step is None else f"{text} at step {self.step:,}"


def state_of(item: Item, folder: Path, record: Path) -> State:
    """Look at the record of an item and at the folder of its run.

    Args:
        item: what is to be recorded.
        folder: of the run, whether it exists or not.
        record: file of the record, likewise.
    """
    preset = item.preset()
    why = difference(read_record(record), preset) if record.exists() else None
    if why == "":
        return State("recorded")
    step = None if item.alone else step_of(folder, preset)
    if why is not None:
        return State("stale", step, why)
    return State("missing" if step is None else "unfinished", step)


def difference(record: dict[str, Any], preset: Preset) -> str:
    """Say in what a record's recipe differs from a preset; "" if in nothing.

    Another commit is no difference, nor is a field that the record's version did not have yet, if
    the preset leaves it at its default: that is how it was then. The text itself is not compared:
    reading it takes longer than all the rest, and the files of every planned corpus are fixed.
    """
    now = architecture(preset.model)
    if (then := record.get("architecture", "transformer")) != now:
        return f"architecture: {then} recorded, {now} now"
    for name, (now, default) in _flat(preset).items():
        value: Any = record.get("preset", {})
        for part in name.split("."):
            value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
        if value is MISSING and now == default:
            continue
        if value != now:
            then = "nothing" if value is MISSING else repr(value)
            return f"{name}: {then} recorded, {now!r} now"
    return ""


def _flat(part: Any, prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Dotted name -> (value, default) of all fields, those of nested dataclasses included."""
    found = {}
    for field in fields(part):
        value, name = getattr(part, field.name), prefix + field.name
        if is_dataclass(value):
            found |= _flat(value, f"{name}.")
        else:
            found[name] = (value, field.default)
    return found


def step_of(folder: Path, preset: Preset) -> int | None:
    """The step from which a folder's run goes on; None if it is none that this preset can use."""
    try:
        # Mapped, not read: two numbers are wanted of what may be gigabytes.
        state = torch.load(folder / "state.pt", map_location="cpu", weights_only=True, mmap=True)
        config, step = state["config"], int(state["progress"]["step"])
    except Exception:  # missing or damaged: torch's errors share no base class
        return None
    training, model = preset.training, preset.model
    expected = {f"model.{name}": value for name, value in model.to_dict().items()}
    expected["architecture"] = ARCHITECTURES[architecture(model)][1].__name__
    expected |= {
        name: value
        for name, value in training.to_dict().items()
        if name not in ("max_steps", "log_every", "keep_last")
    }
    same = all(config.get(name, value) == value for name, value in expected.items())
    return step if same and step <= training.max_steps else None
