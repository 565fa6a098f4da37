"""The presets of the paper on the cards that people have: what fits."""

from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.estimate import requirements, size
from transformer.recipes.presets import get_preset


def texts() -> dict[str, str]:
    """Make the table of cards, by its name."""
    rows = ["| Preset | Card | Batches of a step | Memory |", "|---|---|---:|---:|"]
    for name in ("wmt14-base", "wmt14-big"):
        for card in CARDS.values():
            preset = on_card(get_preset(name), card)
            training = preset.training
            memory = requirements(preset, on_gpu=True).device_memory or 0
            rows.append(
                f"| `{name}` | {card.title}, {training.precision} "
                f"| {training.accumulate} x {training.batch_tokens:,} tokens | {size(memory)} |"
            )
    return {"cards": "\n".join(rows)}
