"""The small study of the recipe: its measurements and its record."""

import pytest
from sacrebleu.metrics import BLEU, CHRF

from transformer.data.corpora import load_corpus
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.recipes.evaluation import evaluate
from transformer.recipes.presets import Preset
from transformer.training.config import TrainingConfig
from transformer_book.studies.recipe.study import (
    RECORD,
    SETTINGS,
    SPLIT,
    first_pairs,
    recorded_study,
    run_variant,
)
from transformer_book.studies.recording import stored_texts
from transformer_book.studies.training import make_model, mean_weights, quality, short_text, train

SHORT = Preset(
    "short",
    TransformerConfig(300, d_model=16, d_ff=16, num_heads=2, num_layers=1, dropout=0.1),
    TrainingConfig(
        max_steps=60, batch_tokens=300, warmup_steps=20, validate_every=20, save_every=4,
        keep_last=3,
    ),
    train_pairs=60,
)  # fmt: skip


@pytest.fixture(scope="module")
def text(corpus):
    return short_text(corpus, SHORT, longest=7)


def test_a_run_measures_what_it_says(text):
    found = run_variant(SHORT, text)
    model = make_model(SHORT)
    steps = (20, 40, 52, 56, 60)
    training = train(model, text.train, SHORT.training, keep=steps)
    weights = training.snapshots
    assert found["losses"] == pytest.approx(training.losses.reshape(3, 20).mean(axis=1).tolist())
    for line, step in zip(found["curve"], (20, 40, 60), strict=True):
        expected = quality(model, text.held_out, weights[step])
        assert line == dict(step=step) | vars(expected)
    expected = quality(model, first_pairs(text.train, len(text.held_out)))
    assert found["train"] == vars(expected) != found["curve"][-1]

    means = {"last": weights[60], "averaged": mean_weights([weights[s] for s in (52, 56, 60)])}
    for name, mean in means.items():
        expected = vars(quality(model, text.held_out, mean))
        assert {key: found[name][key] for key in expected} == pytest.approx(expected)
        for score in evaluate(Translator(model, text.tokenizer), text.text, beam_size=1):
            assert found[name][score.name] == score.score
            assert found["signatures"][score.name] == score.signature
        again = BLEU().corpus_score(found["translations"][name], [text.text.target])
        assert found[name]["BLEU"] == pytest.approx(again.score)


def test_the_recorded_scores_follow_from_the_translations():
    texts = stored_texts(RECORD)
    split = load_corpus("tatoeba-en-de").splits[SPLIT]
    short = [pair for pair in split if max(len(side.split()) for side in pair) <= 4]
    for run in recorded_study()["runs"][::7]:  # every setting, every variant and every seed
        right = [target for _, target in short[: SETTINGS[run["setting"]].test_pairs]]
        for weights in ("last", "averaged"):
            name = f"{run['setting']}, {run['variant']}, seed {run['seed']}, {weights}"
            for key, metric in (("BLEU", BLEU()), ("chrF2", CHRF())):
                again = metric.corpus_score(texts[name], [right]).score
                assert run[weights][key] == pytest.approx(again)
