"""The payload of the live page, and the recorded run for readers without scripts."""

import base64
import json
import re
from types import SimpleNamespace

import live
import numpy as np
import pytest
import torch

from transformer import Tokenizer, Transformer, TransformerConfig
from transformer_book.live import PART, Payload, make_payload, quantise


def test_rounding_moves_no_weight_by_more_than_half_a_step():
    torch.manual_seed(0)
    weight = torch.randn(50, 30) * torch.logspace(-3, 3, 50)[:, None]
    rounded, scale = quantise(weight)
    assert rounded.dtype == torch.int8
    assert (rounded.abs().amax(dim=1) == 127).all()
    assert ((rounded * scale[:, None] - weight).abs() <= 0.5001 * scale[:, None]).all()


def test_the_scripts_hold_the_payload():
    content = np.random.default_rng(0).bytes(2 * PART + 5)
    scripts = dict(Payload({"name": "x"}, content).scripts())
    assert list(scripts) == [f"weights-{number}.js" for number in range(4)]
    texts = [re.fullmatch(r"liveWeights\(\d,(.*)\);\n", each)[1] for each in scripts.values()]
    header, *parts = map(json.loads, texts)
    assert header == {"name": "x", "size": len(content), "count": 3}
    assert b"".join(map(base64.b64decode, parts)) == content
    # Decoded one after the other, as the page does it, without padding in between.
    assert not any(part.endswith("=") for part in parts[:-1])


def test_another_architecture_is_refused(tmp_path):
    config = TransformerConfig.tiny(vocab_size=300, norm="pre")
    Transformer(config).save_pretrained(tmp_path)
    tokenizer = Tokenizer.train(["aaabdaaabac abc " * 9, *map(chr, range(800))], 300)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'norm': 'pre'"):
        make_payload(str(tmp_path))


def test_the_recorded_run_shows_all_tokens_and_the_large_weights():
    cross = np.zeros((1, 2, 2, 3))
    cross[0, :, 0, 1], cross[0, :, 1, 2], cross[0, :, 1, 1], cross[0, 0, 1, 0] = 1, 0.5, 0.15, 0.1
    found = SimpleNamespace(
        cross=cross, source_tokens=["▁A", "▁<", "b"], predicted_tokens=["▁Z", "y"]
    )
    picture = live.draw(found)
    assert re.findall(r">([^<]+)</text>", picture)[2:] == ["A", "&lt;", "b", "Z", "y"]
    assert picture.count("<path") == 3  # the last has a mean of 0.05
