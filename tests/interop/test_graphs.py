"""Encoder and decoder step as graphs compute what the model computes, at every length."""

import json
from functools import partial

import pytest
import torch

from tests.interop import small
from transformer.inference.translator import Translator
from transformer.interop import graphs, to_graphs
from transformer.interop.graphs import EncoderGraph, StepGraph
from transformer.saving.files import MANIFEST

make = partial(small.make, max_length=120, num_layers=1, num_decoder_layers=2)
VARIANTS = [
    dict(),
    dict(positions="rotary"),
    dict(norm="pre", positions="learned", first_input="zeros", d_k=4, d_v=6, sharing="none")
    | dict(norm_kind="rms", activation="swiglu", num_kv_heads=2),
]


def require_equal_logits(model, encoder, step, rows=3, source_length=9, target_length=11):
    torch.manual_seed(1)
    source = torch.randint(3, 300, (rows, source_length))
    source[1:, -2:] = 0
    target = torch.randint(3, 300, (rows, target_length))
    target[:, 0] = 1
    with torch.no_grad():
        expected = model(source, target)
        cross = encoder(source)
        past = [each.new_zeros(*each.shape[:3], 0, each.size(-1)) for each in cross]
        for i in range(target_length):
            logits, *past = step(target[:, i].clone(), source, *cross, *past)
            torch.testing.assert_close(logits, expected[:, i], rtol=1e-4, atol=1e-4)
    assert past[0].size(3) == past[1].size(3) == target_length


@pytest.mark.parametrize("changes", VARIANTS)
def test_the_parts_compute_what_the_model_computes(changes):
    model = make(**changes).model
    require_equal_logits(model, EncoderGraph(model), StepGraph(model))


@pytest.mark.parametrize(("kind", "changes"), [("torch", VARIANTS[2]), ("onnx", VARIANTS[0])])
def test_what_is_written_and_loaded_is_the_model(tmp_path, kind, changes, monkeypatch):
    # Lengths are symbols in a trace, which the type checker does not accept as ``int``.
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    if kind == "onnx":
        for name in ("onnx", "onnxscript", "onnxruntime"):
            pytest.importorskip(name)
    ours = make(**changes)
    folder = tmp_path / "new" / "folder"
    folder.mkdir(parents=True)
    former = dict.fromkeys(("step.pt2", "step.onnx"), "00000000")  # of graphs that were here before
    (folder / MANIFEST).write_text(json.dumps(former))
    for name in former:
        (folder / name).write_text("old")
        (folder / name.replace("step", "encoder")).write_text("old")
    assert to_graphs(ours, folder, kind) < 1e-4
    encoder, step = graphs.load_graphs(folder)
    for sizes in ((1, 3, 1), (4, 1, 2), (3, 120, 13)):  # none of them those of the export
        require_equal_logits(ours.model, encoder, step, *sizes)
    if kind == "onnx":
        require_named_dimensions(folder)
    files = sorted(path for path in folder.iterdir() if path.name not in (MANIFEST, "README.md"))
    names = ["config", "encoder", "step", "tokenizer", "tokenizer_config"]
    assert [path.stem for path in files] == names
    for path in files[1:3]:
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        with pytest.raises(ValueError, match=path.name):
            graphs.load_graphs(folder)
        path.write_bytes(whole)


def require_named_dimensions(folder):
    import onnxruntime

    batch, source, past = "batch", "source_length", "past_length"
    cross = [2, batch, 4, source, 4]
    for name, inputs, outputs in (
        ("encoder", [[batch, source]], [cross, cross]),
        (
            "step",
            [[batch], [batch, source], cross, cross, *[[2, batch, 4, past, 4]] * 2],
            [[batch, 300], *[[2, batch, 4, f"{past} + 1", 4]] * 2],
        ),
    ):
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx")
        assert [value.shape for value in session.get_inputs()] == inputs
        assert [value.shape for value in session.get_outputs()] == outputs


def test_what_cannot_be_exported_or_loaded(tmp_path):
    ours = make()
    with pytest.raises(ValueError, match="one joint Tokenizer"):
        two = Translator(ours.model, ours.tokenizer, target_tokenizer=make().tokenizer)
        to_graphs(two, tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="has no encoder and step"):
        graphs.load_graphs(tmp_path)
