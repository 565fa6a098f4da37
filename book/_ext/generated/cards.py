"""The presets of the paper on the cards that people have, estimated from counts."""

from transformer.recipes.cards import CARDS, on_card, step_seconds
from transformer.recipes.estimate import requirements, size
from transformer.recipes.presets import get_preset
from transformer.training.curve import duration


def texts() -> dict[str, str]:
    """Make the table of cards, by its name."""
    rows = [
        "| Preset | Card | Batches of a step | Memory | Training | Cost |",
        "|---|" + "---:|" * 5,
    ]
    for name in ("wmt14-base", "wmt14-big"):
        for card in CARDS.values():
            preset = on_card(get_preset(name), card)
            training = preset.training
            memory = requirements(preset, on_gpu=True).device_memory or 0
            seconds = training.max_steps * step_seconds(preset, card)
            rows.append(
                f"| `{name}` | {card.title}, {training.precision} "
                f"| {training.accumulate} x {training.batch_tokens:,} tokens | {size(memory)} "
                f"| {duration(seconds)} | ${seconds / 3600 * card.dollars:,.0f} |"
            )
    return {"cards": "\n".join(rows)}
