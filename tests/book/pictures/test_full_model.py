"""The picture of a training run shows the rows that it is given, and which words stay."""

import pytest
from drawn import require_equal_variants, words

from transformer_book.pictures.after.full_model import as_it_learns, kept_words

SOURCE = "The cat sleeps, because it is tired."
LAST = "Die Katze schläft, weil sie müde ist."
STEPS = [0, 50, 100, 150, 200, 300, 500, 750, 1000, 1250, 1500]
TEXTS = ["", "liest " * 40, "Ich ist ist", "x" * 60, "Die die Katze", "Die Katze", "Die Katze ist",
         "Der Hund, weil sie", "Die Katze schläft </script>", "Sie ist müde.", LAST]  # fmt: skip
ROWS = [
    dict(step=step, tokens=10 * step, translations=[text.strip(), text.strip()[::-1]])
    for step, text in zip(STEPS, TEXTS, strict=True)
]


def test_steps_at_least_double_and_the_last_is_there():
    shown = words(as_it_learns(ROWS, SOURCE).drawn[0])
    steps = [word for word in shown if word.startswith("step ")]
    assert steps == [f"step {n}" for n in ("0", "50", "100", "200", "500", "1,000", "1,500")]
    assert "(nothing)" in shown and "and 30 more" in shown and "Hund," not in shown
    averaged = words(as_it_learns(ROWS, SOURCE, "Die Katze ruht.").drawn[0])
    assert averaged[-4:] == ["average", "Die", "Katze", "ruht."]
    one = as_it_learns(ROWS[:1], SOURCE)
    assert "step 0: nothing" in repr(one)
    with pytest.raises(ValueError, match="at least one"):
        as_it_learns([], SOURCE)


def test_both_variants_show_the_same_words_within_their_frames():
    require_equal_variants(as_it_learns(ROWS, SOURCE))


def test_kept_words_are_a_longest_common_subsequence():
    def kept(text, last=LAST):
        return [word for word, is_kept in kept_words(text, last) if is_kept]

    assert kept("die KATZE, sie müde") == ["die", "KATZE,", "sie", "müde"]
    assert kept(LAST) == LAST.split() and kept("") == [] == kept("x", "")
    assert kept("ist Die , Katze") == ["Die", "Katze"]
    assert [word for word, _ in kept_words("a  b, a", "b a")] == ["a", "b,", "a"]
    assert kept("a  b, a", "b a") == ["b,", "a"]
