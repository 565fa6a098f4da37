"""The explorer of a training run has every row, counts the words that stay, and loads nothing."""

import pytest

from tests.self_contained import self_contained
from transformer_book.studies.translation.learning_explorer import LearningExplorer

SOURCE = "The cat sleeps, because it is tired."
LAST = "Die Katze schläft, weil sie müde ist."
STEPS = [0, 50, 100, 500, 1000, 1500]
TEXTS = ["", "liest " * 40, "Ich ist ist", "Die Katze", "Die Katze schläft </script>", LAST]
ROWS = [
    dict(step=step, tokens=10 * step, translations=[text.strip(), text.strip()[::-1]])
    for step, text in zip(STEPS, TEXTS, strict=True)
]


def test_the_explorer_has_every_row_and_the_share_of_kept_words():
    data = self_contained(
        lambda: LearningExplorer([SOURCE, "again"], ROWS, {500: 1.26, 1500: 30}, step=2), 100_000
    )
    assert data["steps"] == STEPS and data["scores"] == {"500": 1.3, "1500": 30.0}
    assert data["words"][2] == [["Ich", "ist", "ist"], ["tsi", "tsi", "hcI"]]
    counts = [sum(map(sum, row)) for row in data["kept"]]
    assert data["shares"] == [round(count / counts[-1], 3) for count in counts]
    assert data["shares"][0] == 0 and data["shares"][-1] == 1
    with pytest.raises(ValueError, match="must have 1 translations"):
        LearningExplorer([SOURCE], ROWS)
    with pytest.raises(ValueError, match="one of 6 rows"):
        LearningExplorer([SOURCE, "again"], ROWS, step=6)
