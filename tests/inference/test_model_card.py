"""A model card says what a user must know, in a form that the Hub reads."""

import pytest
from huggingface_hub import ModelCard

from transformer.inference.model_card import model_card, read_card, source_language, with_address
from transformer.saving.locate import SHIPPED_FOLDER, shipped_names
from transformer_book.studies.translation.recorded import recorded_runs
from transformer_book.studies.translation.ship import card

SHIPPED = SHIPPED_FOLDER / "tatoeba-en-de"
METRIC = dict(split="test", pairs=2000, weights="averaged", beam_size=4, alpha=0.6)
METRIC |= dict(name="BLEU", score=40.456, signature="nrefs:1|case:mixed")
RUN = dict(
    languages=["en", "fr"],
    corpus=dict(name="own", licence="of the user's own files", sha256="ab", pairs=dict(train=7)),
    metrics=[METRIC, METRIC | dict(weights="last", score=1.0)],
)


def test_the_metadata_is_what_the_hub_expects():
    data = ModelCard(model_card("owner/mine", **RUN)).data
    assert (data.language, data.license) == (["en", "fr"], "other")
    assert (data.pipeline_tag, data.library_name) == ("translation", "transformer-book")
    (result,) = data.eval_results  # of the averaged weights alone
    assert (result.metric_type, result.metric_value) == ("bleu", 40.46)
    assert result.metric_args == {"signature": "nrefs:1|case:mixed"}


@pytest.mark.parametrize(
    "licence, name",
    [
        ("CC BY 2.0 FR; www.manythings.org/anki and tatoeba.org", "cc-by-2.0"),
        ("CC BY-SA 4.0", "cc-by-sa-4.0"),
        ("CC0", "cc0-1.0"),
        ("for research; the texts belong to their publishers", "other"),
    ],
)
def test_the_licence_is_that_of_the_text(licence, name):
    text = model_card(corpus=dict(name="text", licence=licence))
    assert ModelCard(text).data.license == name
    assert licence in text


def test_what_is_unknown_is_left_out():
    text = model_card()
    assert ModelCard(text).data.eval_results is None
    assert "None" not in text and "## Data" not in text and "## Scores" not in text
    # User's own files have no language codes.
    files = model_card("runs/own/model", languages=["source", "target"])
    assert ModelCard(files).data.language is None
    assert "source to target" not in files and "\n# own\n" in files


def test_the_example_runs_and_can_get_another_address(capsys):
    text = (SHIPPED / "README.md").read_text(encoding="utf-8")
    example = text.partition("```python\n")[2].partition("```")[0]
    assert len(example.splitlines()) <= 6
    exec(example, {})
    assert capsys.readouterr().out == "['Wo ist der Bahnhof?']\n"
    assert 'from_pretrained("owner/mine")' in with_address(text, "owner/mine")


def test_a_fine_tuned_model_names_its_origin():
    def started(base):
        return model_card(training=dict(preset=dict(init_from=base), averaged=["a"], minutes=0.2))

    assert ModelCard(started("owner/base")).data.base_model == "owner/base"
    for base in ("tatoeba-en-de", str(SHIPPED), None):
        assert ModelCard(started(base)).data.base_model is None
    assert "Fine-tuned from `owner/base`." in started("owner/base")
    assert all("CC BY 2.0 FR" in started(name) for name in shipped_names())
    assert "The weights are the last checkpoint." in started(None)
    assert "under a minute" in started(None) and "Fine-tuned" not in started(None)


@pytest.mark.parametrize(
    "metadata, language",
    [
        ("language: [de, en]", "de"),
        ("language: fr", "fr"),
        ("language: no", "en"),  # False in YAML
        ("language: [de", "en"),
        ("- a list", "en"),
        ("tags: x", "en"),
    ],
)
def test_the_source_language_is_the_first_of_the_card(metadata, language):
    text = f"---\n{metadata}\n---\n# Title\n"
    assert source_language(text) == language
    assert "# Title" in read_card(text).text


def test_other_seeds_are_beside_the_score_of_the_same_kind():
    alone = model_card(metrics=[METRIC], training=dict(seed=1))
    assert "One run with seed 1; the spread over seeds was not measured." in alone
    changes = dict(score=39.5), dict(weights="last"), dict(beam_size=1), dict(split="other")
    others = [dict(seed=seed, metrics=[METRIC | each for each in changes]) for seed in (2, 3)]
    text = model_card(metrics=[METRIC], training=dict(seed=1), others=others)
    assert "| BLEU 40.46 (39.50, 39.50) |" in text and "not measured" not in text
    assert "One run with seed 1. In brackets: the same recipe with seeds 2, 3." in text


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_card_is_that_of_a_record(name):
    text = (SHIPPED_FOLDER / name / "README.md").read_text(encoding="utf-8")
    runs = [run for run in recorded_runs().values() if run["corpus"]["name"] == name]
    assert text in [card(name, run) for run in runs]
    assert "before rounding to float16" in text
