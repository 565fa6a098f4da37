"""tools/record_runs.py with presets that take seconds; the tests start it as a process."""

import sys
from dataclasses import replace
from pathlib import Path

import record_runs

from transformer.recipes.presets import PRESETS

TOY = PRESETS["smoke"].with_changes(
    vocab_size=300, d_model=16, d_ff=16, max_steps=30, batch_tokens=300, warmup_steps=4,
    log_every=1, validate_every=15, save_every=10, keep_last=2, train_pairs=300, test_pairs=8,
    score_pairs=4, beam_size=2,
)  # fmt: skip
TOYS = {
    "toy": replace(TOY, name="toy"),
    "toy-long": replace(TOY.with_changes(max_steps=100_000, save_every=50), name="toy-long"),
}


def write_data(folder: Path) -> Path:
    """Put a small Tatoeba into a folder, so that no process has to read the real one."""
    nouns = ["cat", "dog", "house", "tree", "river", "train", "book", "window"]
    katzen = ["Katze", "Hund", "Haus", "Baum", "Fluss", "Zug", "Buch", "Fenster"]
    numbers = range(4500)
    english = [f"the {nouns[i % 8]} sees {i} of the {nouns[i // 8 % 8]}s" for i in numbers]
    german = [f"{katzen[i % 8]} sieht {i} mal {katzen[i // 8 % 8]}" for i in numbers]
    (folder / "tatoeba-en-de").mkdir(parents=True, exist_ok=True)
    test = "tatoeba-test-v2021-08-07.deu-eng"
    files = {
        "deu.txt": [f"{source}\t{target}" for source, target in zip(english, german, strict=True)],
        f"{test}.eng": ["a challenge"] * 9,
        f"{test}.deu": ["eine Probe"] * 9,
    }
    for name, lines in files.items():
        (folder / "tatoeba-en-de" / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


if __name__ == "__main__":
    PRESETS.update(TOYS)
    record_runs.SCRIPT = Path(__file__)
    sys.exit(record_runs.main())
