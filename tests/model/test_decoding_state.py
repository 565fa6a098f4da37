"""Decoding one token at a time equals decoding all at once, whatever is reordered or leaves."""

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.model.small import make_ids, make_model

OPTIONS = [
    dict(norm=norm, positions=positions, sharing=sharing, **sizes)
    for norm in ("post", "pre")
    for positions, sharing in [("sinusoidal-t2t", "target"), ("learned", "none")]
    for sizes in (dict(), dict(d_k=3, d_v=5, attention_bias=False, attention_scale=1.0))
] + [
    dict(positions="rotary", num_kv_heads=2, norm_kind="rms", activation="swiglu", norm="pre"),
    dict(positions="rotary", num_kv_heads=1, d_k=6, d_v=5, first_input="zeros"),
    dict(positions="none", activation="geglu", first_input="zeros", sharing="none"),
    dict(max_length=3),  # the table of sinusoids has to grow
]


def whole(model, source: Tensor, prefixes: Tensor) -> Tensor:
    """Logits after each prefix, computed afresh; the rows of a sentence are neighbours."""
    beams = len(prefixes) // len(source)
    return model(source.repeat_interleave(beams, 0), prefixes)[:, -1]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(str(v) for v in o.values()))
@torch.no_grad()
def test_step_by_step_equals_all_at_once(options, beam_size):
    model = make_model(**dict(max_length=7) | options)
    source = make_ids(6, 2, 0)  # the last is all padding
    target = make_ids(*[7] * (3 * beam_size), seed=1, bos=True)
    state = model.start_decoding(source, max_length=7, beam_size=beam_size)
    steps = [model.decode_next(target[:, position], state) for position in range(7)]
    expected = model(source.repeat_interleave(beam_size, 0), target)
    assert state.position == 7 and expected.isfinite().all()
    torch.testing.assert_close(torch.stack(steps, 1), expected)


@settings(deadline=None, derandomize=True, max_examples=10, phases=[Phase.generate])
@given(st.data())
@torch.no_grad()
def test_reordered_rows_continue_the_sequences_they_were_given(data):
    """Any choice of rows within a sentence, and any sentence may leave, at any step."""
    model = make_model(norm="pre")
    beams = data.draw(st.integers(1, 3), label="beam_size")
    sentences = data.draw(st.integers(1, 3), label="sentences")
    source = make_ids(*[5, 2, 4][:sentences])
    state = model.start_decoding(source, max_length=6, beam_size=beams)
    prefixes = torch.empty(sentences * beams, 0, dtype=torch.int64)
    for step in range(6):
        tokens = make_ids(*[1] * len(prefixes), seed=step)
        prefixes = torch.cat([prefixes, tokens], dim=1)
        logits = model.decode_next(tokens[:, 0], state)
        torch.testing.assert_close(logits, whole(model, source, prefixes))
        stays = data.draw(st.lists(st.booleans(), min_size=len(source), max_size=len(source)))
        stays[data.draw(st.integers(0, len(source) - 1))] = True
        kept = [sentence for sentence, stay in enumerate(stays) if stay]
        rows = torch.tensor(
            [s * beams + data.draw(st.integers(0, beams - 1)) for s in kept for _ in range(beams)]
        )
        state.reorder(rows)
        source, prefixes = source[kept], prefixes[rows]
        assert len(state) == len(source)


@pytest.mark.parametrize("order", [[1, 0], [1, 1]])
@torch.no_grad()
def test_sentences_may_change_places_and_repeat(order):
    model, source = make_model(), make_ids(5, 3)
    state = model.start_decoding(source, max_length=2, beam_size=2)
    tokens = make_ids(1, 1, 1, 1)[:, 0]
    model.decode_next(tokens, state)
    rows = torch.tensor([2 * sentence + beam for sentence in order for beam in (1, 0)])
    state.reorder(rows)
    expected = whole(model, source[order], torch.stack([tokens[rows], tokens], dim=1))
    torch.testing.assert_close(model.decode_next(tokens, state), expected)
    with pytest.raises(ValueError, match="grouped by sentence"):
        state.reorder(torch.tensor([0, 3, 2, 1]))


@torch.no_grad()
def test_the_past_is_not_moved_and_the_source_is_projected_once():
    model = make_model()
    calls: list[int] = []
    model.decoder[0].cross_attention.key_projection.register_forward_hook(
        lambda *_: calls.append(1)
    )
    state = model.start_decoding(make_ids(4, 3), max_length=5, beam_size=2)
    layer = state.layers[0]
    assert layer.key.shape == (2, 4, 2 * 5, 4)  # an entry for each beam at each step
    assert len(layer.cross_key) == 2  # one per sentence, not one per beam
    held = [layer.key.data_ptr(), layer.value.data_ptr(), layer.cross_key.data_ptr()]
    for _ in range(3):
        model.decode_next(torch.tensor([1, 5, 6, 7]), state)
        state.reorder(torch.tensor([1, 0, 2, 2]))
    assert [layer.key.data_ptr(), layer.value.data_ptr(), layer.cross_key.data_ptr()] == held
    assert len(calls) == 1


@torch.no_grad()
def test_there_is_room_for_the_stated_length_and_no_more():
    model = make_model(positions="learned", max_length=6)
    with pytest.raises(ValueError, match="max_length 7 is beyond the 6"):
        model.start_decoding(make_ids(4), max_length=7)
    state = model.start_decoding(make_ids(4), max_length=1)
    model.decode_next(torch.tensor([1]), state)
    with pytest.raises(IndexError):
        model.decode_next(torch.tensor([5]), state)


@pytest.mark.parametrize(
    "dtype, autocast, tolerance",
    [(torch.bfloat16, False, 0.15), (torch.float16, False, 0.02), (torch.float32, True, 0.15)],
)
@torch.no_grad()
def test_half_precision_and_autocast(dtype, autocast, tolerance):
    model = make_model(dtype=dtype)
    source, target = make_ids(4, 2), make_ids(5, 5, seed=1, bos=True)
    expected = model(source, target).float()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        state = model.start_decoding(source, max_length=5)
        steps = [model.decode_next(target[:, position], state) for position in range(5)]
    assert steps[0].dtype == (torch.bfloat16 if autocast else dtype)
    torch.testing.assert_close(
        torch.stack(steps, 1).float(), expected, atol=tolerance, rtol=tolerance
    )
