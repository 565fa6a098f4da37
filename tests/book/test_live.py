"""The payload of the live page."""

import base64
import json
import re

import numpy as np
import torch

from transformer_book.live import PART, Payload, quantise


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
