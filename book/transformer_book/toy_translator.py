"""The toy translator in the chapters: trained, looked into, and with parts taken out."""

from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from safetensors.torch import load_file
from torch import Tensor

from transformer import minimal
from transformer.data import toy
from transformer.recipes.record import read_record
from transformer_book.figures import figure
from transformer_book.tables import Table

FOLDER = Path(__file__).parent / "studies" / "one_page"
SIZES: dict[str, Any] = dict(d_model=64, d_ff=128, heads=2, layers=2)


def trained() -> minimal.Transformer:
    """Load the toy translator as the first chapter trains it."""
    model = minimal.Transformer(len(toy.WORDS), **SIZES)
    weights = load_file(FOLDER / "weights.safetensors")
    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    return model.eval()


def translate(model: minimal.Transformer, english: list[str]) -> list[str]:
    """Translate sentences by greedy search."""
    source = minimal.pad([toy.encode(line) for line in english])
    return [toy.decode(ids) for ids in minimal.greedy_search(model, source)]


def runs_of(part: str) -> list[dict[str, Any]]:
    """Return the recorded models that were trained without a part; "nothing" is the whole."""
    found = [run for run in read_record(FOLDER / "record.json")["runs"] if run["without"] == part]
    if not found:
        raise ValueError(f"no model was recorded without {part!r}")
    return sorted(found, key=lambda run: run["seed"])


def without(*parts: str) -> Table:
    """Compare the whole translator with those that never had a part: means over recorded models.

    The translations are those of the first model.
    """
    rows = []
    for part in ("nothing", *parts):
        runs = runs_of(part)
        mean = {key: sum(run[key] for run in runs) / len(runs) for key in ("exact", "pronoun")}
        rows.append(
            (
                part,
                len(runs),
                f"{mean['exact']:.0%}",
                f"{mean['pronoun']:.0%}",
                shortened(runs[0]["tired"]),
                shortened(runs[0]["wide"]),
            )
        )
    header = [
        "without",
        "models",
        "exactly right",
        "right pronoun",
        "... too tired.",
        "... too wide.",
    ]
    return Table(header, rows)


def shortened(german: str, letters: int = 75) -> str:
    """Cut a translation that goes on and on."""
    return german if len(german) <= letters else german[:letters].rsplit(" ", 1)[0] + " …"


def weights_at_pronoun(model: Any, sentence: toy.Sentence) -> dict[str, Tensor]:
    """Attention to the English words: as German writes the pronoun, and of English *it*.

    For each layer, "encoder.0" to "decoder.1", a row per head and a column per English word, the
    end included.
    """
    source, target = toy.encode(sentence.english), toy.encode(sentence.german())
    writes = target.index(toy.IDS[toy.PRONOUNS[sentence.meant.gender]])
    it = source.index(toy.IDS["it"])
    with torch.no_grad():
        model.eval()(torch.tensor([source]), torch.tensor([[minimal.BOS, *target[:-1]]]))
    found = {
        f"encoder.{n}": a.self_attention.weights[0, :, it] for n, a in enumerate(model.encoder)
    }
    for number, layer in enumerate(model.decoder):
        found[f"decoder.{number}"] = layer.cross_attention.weights[0, :, writes]
    return found


def pronoun_picture(model: minimal.Transformer, layer: str = "decoder.1") -> Figure:
    """Draw where the heads of a layer look as the pronoun is written, for both adjectives."""
    tired, wide = (weights_at_pronoun(model, each)[layer] for each in (toy.TIRED, toy.WIDE))
    drawn, _ = figure(1, len(tired), height=4.2, sharey=True)
    for head, axes in enumerate(drawn.axes):
        weights = torch.stack([tired[head], wide[head]], dim=1)
        axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set_title(f"head {head + 1}")
        axes.set_xticks([0, 1], ["tired: es", "wide: sie"])
        words = [*toy.split(toy.TIRED.english)[:-2], "tired / wide", ".", "<eos>"]
        axes.set_yticks(range(len(words)), words)
        axes.grid(False)
        axes.tick_params(length=0)
    return drawn
