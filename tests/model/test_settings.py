"""Settings: every kind of number, plain afterwards; one sentence for everything else."""

import io
import json

import numpy as np
import pytest
import torch

from transformer.baselines import ConvolutionalConfig, RecurrentConfig
from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.parallel import Split
from transformer.data.tokenizer import Tokenizer
from transformer.inference.options import SearchOptions
from transformer.model.config import TransformerConfig
from transformer.recipes.presets import PRESETS
from transformer.training.callbacks import EarlyStopping
from transformer.training.config import TrainingConfig

pytestmark = pytest.mark.usefixtures("unchecked")

PLAIN = [
    TransformerConfig(100, d_k=8, dropout=0.5, final_norm=True, norm="pre"),
    TrainingConfig(max_steps=7, max_length=9, clip_norm=0.5, state_minutes=2.0, compile=True),
    SearchOptions(3, 0.5, "fairseq", 9, 2),
    RecurrentConfig(100, d_hidden=6, dropout=0.5),
    ConvolutionalConfig(100, kernel=5, dropout=0.5),
    PRESETS["smoke"],
]


@pytest.mark.parametrize(
    "wrap", [np.array, lambda x: np.array([x])[0], lambda x: torch.from_numpy(np.array(x))]
)
@pytest.mark.parametrize("plain", PLAIN, ids=lambda plain: type(plain).__name__)
def test_numbers_of_numpy_and_tensors_without_axes_become_plain(plain, wrap):
    values = {
        name: wrap(value) if isinstance(value, (int, float)) else value
        for name, value in vars(plain).items()
    }
    made = type(plain)(**values)
    assert made == plain and hash(made) == hash(plain)
    assert json.dumps(made.to_dict()) == json.dumps(plain.to_dict())
    torch.save(made.to_dict(), file := io.BytesIO())
    file.seek(0)
    assert torch.load(file, weights_only=True) == plain.to_dict()


def test_numbers_of_numpy_are_numbers_wherever_one_is_given():
    n, texts = np.int64, ["a b", "c"]
    tokenizer = Tokenizer.train(texts, n(259))
    batches = TokenBatches(encode_pairs(tokenizer, Split(texts, texts)), n(8), n(1), n(8))
    assert json.dumps([batches.batch_tokens, batches.seed, batches.max_length]) == "[8, 1, 8]"
    watching = EarlyStopping(patience=n(2), minimum_change=np.float32(0.5))
    assert json.dumps([watching.patience, watching.minimum_change]) == "[2, 0.5]"
    preset = PRESETS["smoke"].with_changes(max_length=n(5000), dropout=np.float16(0))
    assert json.loads(json.dumps(preset.to_dict()))["model"]["max_length"] == 5000


@pytest.mark.parametrize(
    "make, error, told",
    [
        (lambda: TransformerConfig(9, num_layer=3), TypeError, "model field .*'num_layers'"),
        (lambda: TrainingConfig(learning_rate=1), TypeError, "'learning_rate_factor'"),
        (lambda: TrainingConfig(epochs=3), TypeError, "training field 'epochs'; .*max_steps"),
        (lambda: SearchOptions(beem_size=3), TypeError, "search option .*'beam_size'"),
        (lambda: RecurrentConfig(9, d_hiden=3), TypeError, "'d_hidden'"),
        (
            lambda: TransformerConfig(9, max_length=10**9),
            ValueError,
            "max_length must be .* 1000000",
        ),
        (lambda: TransformerConfig(9, num_layers=10**9), ValueError, "num_layers must be"),
        (lambda: TransformerConfig(10**12), ValueError, "vocab_size must be"),
        (
            lambda: TransformerConfig(np.array([9])),
            ValueError,
            r"vocab_size .*, got array\(\[9\]\)",
        ),
        (lambda: TrainingConfig(max_steps=np.True_), ValueError, "max_steps must be .*, got True"),
        (lambda: TrainingConfig(fast=1), ValueError, "fast must be True or False, got 1"),
        (lambda: TrainingConfig(clip_norm=-1), ValueError, "None or a .* above 0, got -1"),
        (lambda: Tokenizer.train(["a"], 10**9), ValueError, "vocab_size must be .* to 1,000,000"),
        (lambda: TokenBatches(None, 2.5), ValueError, "batch_tokens must be a whole .*, got 2.5"),
        (lambda: EarlyStopping(patience=1.5), ValueError, "patience must be a whole .*, got 1.5"),
    ],
)
def test_a_wrong_name_or_value_is_one_sentence(make, error, told):
    with pytest.raises(error, match=told) as found:
        make()
    assert "\n" not in str(found.value) and type(found.value) is error
