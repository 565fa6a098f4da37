"""Model, pairs, tokenizer and recipe are compared before anything is written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_training import VOCAB_SIZE, assert_equal, make_model, make_pairs, make_trainer, weights_of
from torch.utils.data import DataLoader

from transformer.baselines import RecurrentConfig, RecurrentTranslator
from transformer.data.batching import Sentences, TokenBatches, encode_pairs
from transformer.data.parallel import Split
from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training.callbacks import Callback
from transformer.training.checkpoint import load_state
from transformer.training.checks import require_all_processes
from transformer.training.config import TrainingConfig
from transformer.training.curve import read_curve
from transformer.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("unchecked")
ROOT = Path(__file__).parents[2]
CONFIG = TrainingConfig(max_steps=2, batch_tokens=40, log_every=1)


def sentences(*rows) -> Sentences:
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Sentences(np.array([i for row in rows for i in row], dtype=np.int32), offsets)


NO_PAIRS = replace(make_pairs(1), source=sentences(), target=sentences())


def with_target(*rows):
    pairs = make_pairs(len(rows))
    return replace(pairs, target=sentences(*rows))


@pytest.mark.parametrize(
    "arguments, says",
    [
        (dict(model=torch.nn.Transformer(16, 2, 1, 1)), "TranslationModel, got .*nn.*from_torch"),
        (dict(model=Transformer), r"an instance, Transformer\(config\)"),
        (dict(model=torch.nn.Linear(2, 2)), "use Transformer"),
        (dict(model=make_model().to("meta")), "on one device, but they are on meta"),
        (dict(model=make_model().half()), r"float32 weights, got float16.*model\.float\(\)"),
        (dict(batches=DataLoader([1])), "batches must be TokenBatches or EncodedPairs, got .*Data"),
        (dict(batches=[1]), "batches must be TokenBatches or EncodedPairs, got list"),
        (dict(validation=[1]), "validation must be TokenBatches or EncodedPairs, got list"),
        (dict(validation=NO_PAIRS), "validation must hold at least one pair"),
        (dict(config=TransformerConfig(50)), "config must be a TrainingConfig, got .*Transformer"),
        (dict(tokenizer="bpe"), "tokenizer must be a Tokenizer .*, got str"),
        (dict(score="bleu"), "score must be a function of the model, got str"),
        (dict(trackers=["papyrus"]), "unknown tracker 'papyrus'; known are .*tensorboard"),
        (dict(trackers="tensorboard"), r"trackers must be a sequence .*\('tensorboard',\)"),
        (dict(config=replace(CONFIG, compile=True),
              model=RecurrentTranslator(RecurrentConfig(50, d_model=16))), "compile needs a model"),
        (dict(config=replace(CONFIG, checkpoint_activations=True),
              model=RecurrentTranslator(RecurrentConfig(50, d_model=16))), "needs a Transformer"),
    ],
)  # fmt: skip
def test_arguments_of_another_kind(tmp_path, arguments, says):
    usual = dict(model=make_model(), batches=make_pairs(), config=CONFIG, folder=tmp_path / "run")
    with pytest.raises((TypeError, ValueError), match=says) as caught:
        Trainer(**usual | arguments)
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "model, pairs, says",
    [
        (dict(pad_id=5), make_pairs(), "pad_id is 0 in the pairs, 5 in the model"),
        (dict(bos_id=7), make_pairs(), "bos_id is 1 in the pairs, 7 in the model"),
        (dict(eos_id=7), make_pairs(), "must end with eos_id 7, but the end of number 0 is"),
        ({}, with_target([5, 2], [5, 6], [2]), r"every target.*number 1 is \[6\]"),
        ({}, with_target([5, 2], [], [2]), "every target.*number 1 is empty"),
        ({}, with_target([50, 2]), "a target has the id 50, but the model has 0 to 49"),
        ({}, with_target([-1, 2]), "a target has the id -1"),
        ({}, replace(make_pairs(3), target=sentences([2], [2])), "3 sources, but 2 targets"),
    ],
)
@pytest.mark.parametrize("argument", ["batches", "validation"])
def test_pairs_that_were_encoded_for_another_model(tmp_path, model, pairs, says, argument):
    model = Transformer(replace(make_model().config, **model))
    right = replace(make_pairs(), pad_id=model.config.pad_id, bos_id=model.config.bos_id)
    if model.config.eos_id != 2:
        right = pairs
    given = dict(batches=right, validation=right) | {argument: pairs}
    with pytest.raises(ValueError, match=says):
        Trainer(model, config=CONFIG, folder=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_learned_positions_limit_the_pairs(tmp_path):
    model = make_model(positions="learned", max_length=5)
    pairs = with_target([5] * 6 + [2], [5] * 4 + [2], [2])
    config = replace(CONFIG, max_length=None)
    trainer = Trainer(model, pairs, config, tmp_path)
    assert trainer.batches.max_length == 5 and trainer.batches.num_dropped >= 1
    Trainer(model, trainer.batches, config, tmp_path)  # made with the same limit
    with pytest.raises(ValueError, match="one sentence has 7 tokens, .* 5 learned .* max_length=5"):
        Trainer(model, TokenBatches(pairs, 40), config, tmp_path)
    advice = r"validation: one sentence has 7 tokens, .* TokenBatches\(.*, max_length=5\)"
    with pytest.raises(ValueError, match=advice):
        Trainer(model, pairs, replace(config, max_length=5), tmp_path, validation=pairs)
    Trainer(model, pairs, config, tmp_path, validation=TokenBatches(pairs, 40, max_length=5))


@pytest.mark.parametrize("name, theirs", [("batch_tokens", 80), ("seed", 3), ("max_length", 5)])
def test_batches_that_were_made_with_other_settings(tmp_path, name, theirs):
    same = dict(batch_tokens=40, seed=0, max_length=256)
    Trainer(make_model(), TokenBatches(make_pairs(), **same), CONFIG, tmp_path)
    batches = TokenBatches(make_pairs(), **same | {name: theirs})
    with pytest.raises(ValueError, match=f"with {name}={theirs}, config says {name}={same[name]}"):
        Trainer(make_model(), batches, CONFIG, tmp_path)


def test_pairs_are_batched_by_the_recipe_and_validation_keeps_all(tmp_path):
    config = replace(CONFIG, seed=4, max_length=6, batch_tokens=7)
    trainer = Trainer(make_model(), make_pairs(), config, tmp_path, validation=make_pairs(9, 1))
    plan = TokenBatches(make_pairs(), 7, 4, 6).epoch(0)
    made = trainer.batches.epoch(0)
    assert len(made) == len(plan) and all(map(np.array_equal, made, plan))
    assert trainer.validation.num_dropped == 0 and trainer.validation.batch_tokens == 8


def test_pairs_that_are_too_long_are_counted_in_one_warning(tmp_path):
    config = replace(CONFIG, max_length=None, batch_tokens=6)
    for given in (make_pairs(), TokenBatches(make_pairs(), 6)):
        with pytest.warns(UserWarning) as caught:
            Trainer(make_model(), given, config, tmp_path, validation=given)
        dropped = TokenBatches(make_pairs(), 6).num_dropped
        told = f"left out {dropped} of 45 pairs with more than 6 tokens (batch_tokens)"
        expected = [f"training: {told}"]
        if isinstance(given, TokenBatches):  # else validation keeps all
            expected.append(f"validation: {told}")
        assert [str(each.message) for each in caught] == expected
    with pytest.warns(UserWarning, match=r"with more than 3 tokens \(max_length\)"):
        Trainer(make_model(), make_pairs(), replace(CONFIG, max_length=3), tmp_path)


def test_a_model_that_was_moved_is_noticed(tmp_path):
    trainer = make_trainer(tmp_path, max_steps=1)
    trainer.model.to("meta")
    with pytest.raises(ValueError, match=r"model is on meta, but training runs on cpu"):
        trainer.fit()


@pytest.mark.parametrize("scores", [None, 3.0, dict(bleu="high"), dict(bleu=None)])
def test_a_score_without_numbers_is_refused(tmp_path, scores):
    with pytest.raises(TypeError, match="score must return numbers by name"):
        make_trainer(tmp_path, score=lambda model: scores, max_steps=1).fit()


@pytest.mark.parametrize("name", ["step", "perplexity"])
def test_a_score_with_a_name_of_the_curve_is_refused_and_no_step_is_lost(tmp_path, name):
    held_out = make_pairs(9, 1)
    trainer = make_trainer(tmp_path, None, None, held_out, lambda model: {name: 1.0}, max_steps=2)
    with pytest.raises(ValueError, match=f"score must not return '{name}'"):
        trainer.fit()
    assert load_state(trainer.state_file)["progress"]["step"] == 2


def test_a_score_that_is_not_finite_is_a_warning_and_nothing_else(tmp_path):
    def score(model):
        return dict(bleu=float("nan"), chrf=np.float32(4.5), ter=torch.tensor(2))

    trainer = make_trainer(tmp_path, score=score, max_steps=1)
    with pytest.warns(UserWarning, match="bleu is nan at step 1; it is left out"):
        assert trainer.fit()
    assert "NaN" not in (tmp_path / "curve.jsonl").read_text()
    (line,) = [line for line in read_curve(tmp_path / "curve.jsonl") if "chrf" in line]
    assert line["chrf"] == 4.5 and line["ter"] == 2 and "bleu" not in line


# ---------------------------------------------------------------------- a folder that loads

TEXT = Split(["a cat sat", "the dog ran", "a dog sat"], ["eine katze", "der hund", "ein hund"])


def test_the_folder_loads_as_a_translator_from_the_first_checkpoint_on(tmp_path):
    tokenizer = Tokenizer.train([*TEXT.source, *TEXT.target], 280)
    model = Transformer(replace(make_model().config, vocab_size=tokenizer.vocab_size))
    pairs = encode_pairs(tokenizer, TEXT)
    seen = []

    class Load(Callback):
        def on_checkpoint(self, trainer, path):
            seen.append(Translator.from_pretrained(tmp_path))

    config = replace(CONFIG, max_steps=4, save_every=2)
    trainer = Trainer(model, pairs, config, tmp_path, tokenizer=tokenizer, callbacks=[Load()])
    assert not any(tmp_path.iterdir()), "the constructor writes nothing"
    trainer.fit()
    assert len(seen) == 2 and seen[0].tokenizer.encode("a cat") == tokenizer.encode("a cat")
    translator = Translator.from_pretrained(tmp_path)
    assert_equal(weights_of(translator.model), weights_of(model))
    with pytest.raises(ValueError, match=r"tokenizer has vocab_size \d+, the model \d+"):
        make_trainer(tmp_path, own=dict(tokenizer=tokenizer))
    assert tokenizer.vocab_size != VOCAB_SIZE


def test_pairs_and_tokenizers_of_another_model_are_refused(tmp_path):
    own, other = (Tokenizer.train([text] * 3, 262) for text in ("one and the other", "rehto eht"))
    model = Transformer(replace(make_model().config, vocab_size=262))
    Trainer(model, encode_pairs(own, TEXT), CONFIG, tmp_path, tokenizer=own)
    assert model.tokenizer_checksum == own.checksum
    for pairs, options in ((other, {}), (own, dict(tokenizer=other))):
        with pytest.raises(ValueError, match="is not the one that the model was trained with"):
            Trainer(model, encode_pairs(pairs, TEXT), CONFIG, tmp_path, **options)


def test_processes_that_do_not_know_of_each_other(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    require_all_processes(2)
    with pytest.raises(ValueError, match="2 processes .* joins 1; .*ACCELERATE_USE_CPU"):
        require_all_processes(1)
