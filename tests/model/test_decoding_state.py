"""Decoding one token at a time equals decoding all at once, whatever is reordered or leaves."""

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

OPTIONS = [
    dict(norm=norm, positions=positions, sharing=sharing, **sizes)
    for norm in ("post", "pre")
    for positions in ("sinusoidal", "sinusoidal-t2t", "learned")
    for sharing in ("three-way", "target", "none")
    for sizes in (dict(), dict(d_k=3, d_v=5, attention_bias=False, attention_scale=1.0))
] + [
    dict(positions="rotary", num_kv_heads=2, norm_kind="rms", activation="swiglu", norm="pre"),
    dict(positions="rotary", num_kv_heads=1, d_k=6, d_v=5, first_input="zeros"),
    dict(positions="none", activation="geglu", first_input="zeros", sharing="none"),
]


def whole(model, source: Tensor, prefixes: Tensor) -> Tensor:
    """Logits after each prefix, computed afresh; the rows of a sentence stand together."""
    beams = len(prefixes) // len(source)
    return model(source.repeat_interleave(beams, 0), prefixes)[:, -1]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(str(v) for v in o.values()))
@torch.no_grad()
def test_step_by_step_equals_all_at_once(make_model, make_ids, options, beam_size):
    model = make_model(**options)
    source = make_ids(6, 2, 4)
    target = make_ids(*[7] * (3 * beam_size), seed=1, bos=True)
    expected = model(source.repeat_interleave(beam_size, 0), target)
    state = model.start_decoding(source, max_length=7, beam_size=beam_size)
    for position in range(7):
        assert state.position == position
        logits = model.decode_next(target[:, position], state)
        torch.testing.assert_close(logits, expected[:, position])


@torch.no_grad()
def test_decoding_goes_on_beyond_the_prepared_sinusoids(make_model, make_ids):
    model = make_model(max_length=3)
    source, target = make_ids(2, 5), make_ids(9, 9, seed=1, bos=True)
    expected = model(source, target)
    model = make_model(max_length=3)  # a fresh one, whose table has not grown yet
    state = model.start_decoding(source, max_length=9)
    for position in range(9):
        logits = model.decode_next(target[:, position], state)
        torch.testing.assert_close(logits, expected[:, position])


@settings(deadline=None, derandomize=True, max_examples=10, phases=[Phase.generate])
@given(st.data())
@torch.no_grad()
def test_reordered_rows_continue_the_sequences_they_were_given(make_model, make_ids, data):
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
        masks = [state.source_mask, state.ancestors]
        assert all(len(mask) == len(source) for mask in masks if mask is not None)
        for layer in state.layers:
            assert len(layer.key) == len(layer.value) == len(source)
            assert len(layer.cross_key) == len(layer.cross_value) == len(source)


@torch.no_grad()
def test_beams_can_change_places(make_model, make_ids):
    model = make_model()
    source = make_ids(4, 3)
    state = model.start_decoding(source, max_length=5, beam_size=2)
    first = torch.tensor([1, 1, 1, 1])
    second = torch.tensor([5, 6, 7, 8])
    model.decode_next(first, state)
    model.decode_next(second, state)
    state.reorder(torch.tensor([1, 0, 3, 3]))
    third = torch.tensor([9, 10, 11, 12])
    prefixes = torch.stack([first, second[[1, 0, 3, 3]], third], dim=1)
    torch.testing.assert_close(model.decode_next(third, state), whole(model, source, prefixes))


@torch.no_grad()
def test_keys_and_values_are_written_in_place(make_model, make_ids):
    model = make_model()
    state = model.start_decoding(make_ids(4, 3), max_length=5, beam_size=2)
    layer = state.layers[0]
    assert layer.key.shape == (2, 4, 2 * 5, 4)  # an entry for each beam at each step
    held = [layer.key.data_ptr(), layer.value.data_ptr()]
    cross = [layer.cross_key, layer.cross_value]
    for _ in range(3):
        model.decode_next(torch.tensor([1, 5, 6, 7]), state)
        state.reorder(torch.tensor([1, 0, 2, 2]))
    assert [layer.key.data_ptr(), layer.value.data_ptr()] == held
    # Every sentence stayed, so nothing about the source was touched.
    assert cross[0] is layer.cross_key and cross[1] is layer.cross_value
    assert len(layer.cross_key) == 2  # once a sentence, not once a beam


@torch.no_grad()
def test_a_mask_is_kept_only_where_something_is_hidden(make_model, make_ids):
    model = make_model()
    state = model.start_decoding(make_ids(4, 4), max_length=3)
    assert state.source_mask is None and state.visible() is None
    state = model.start_decoding(make_ids(4, 3), max_length=3, beam_size=2)
    assert state.source_mask.tolist()[1] == [[[True, True, True, False]]]
    assert state.visible().tolist()[0] == [[[True, False], [False, True]]]


@torch.no_grad()
def test_the_source_is_projected_once(make_model, make_ids, monkeypatch):
    model = make_model()
    calls = []
    for layer in model.decoder:
        project = layer.cross_attention.project_memory
        monkeypatch.setattr(
            layer.cross_attention, "project_memory", lambda m, p=project: calls.append(1) or p(m)
        )
    state = model.start_decoding(make_ids(4, 3), max_length=3)
    for _ in range(3):
        model.decode_next(torch.tensor([1, 1]), state)
    assert len(calls) == len(model.decoder)


@torch.no_grad()
def test_a_source_of_padding_alone(make_model, make_ids):
    model = make_model()
    source, target = make_ids(0, 3), make_ids(3, 3, seed=1, bos=True)
    state = model.start_decoding(source, max_length=3)
    for position in range(3):
        logits = model.decode_next(target[:, position], state)
        assert logits.isfinite().all()
        torch.testing.assert_close(logits, model(source, target)[:, position])


@torch.no_grad()
def test_learned_positions_must_reach_far_enough(make_model, make_ids):
    model = make_model(positions="learned", max_length=6)
    model.start_decoding(make_ids(4), max_length=6)
    with pytest.raises(ValueError, match="max_length 7 is beyond the 6"):
        model.start_decoding(make_ids(4), max_length=7)


@torch.no_grad()
def test_more_steps_than_announced_are_an_error_and_not_a_wrong_answer(make_model, make_ids):
    model = make_model()
    state = model.start_decoding(make_ids(4), max_length=1)
    model.decode_next(torch.tensor([1]), state)
    with pytest.raises(IndexError):
        model.decode_next(torch.tensor([5]), state)


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.15), (torch.float16, 0.02)])
@torch.no_grad()
def test_half_precision(make_model, make_ids, dtype, tolerance):
    model = make_model(dtype=dtype)
    source, target = make_ids(4, 2), make_ids(5, 5, seed=1, bos=True)
    expected = model(source, target)
    state = model.start_decoding(source, max_length=5)
    for position in range(5):
        logits = model.decode_next(target[:, position], state)
        assert logits.dtype == dtype
        torch.testing.assert_close(logits, expected[:, position], atol=tolerance, rtol=tolerance)


@torch.no_grad()
def test_autocast(make_model, make_ids):
    model = make_model(dtype=torch.float32)
    source, target = make_ids(4, 2), make_ids(5, 5, seed=1, bos=True)
    expected = model(source, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = model.start_decoding(source, max_length=5)
        for position in range(5):
            logits = model.decode_next(target[:, position], state)
            torch.testing.assert_close(logits.float(), expected[:, position], atol=0.15, rtol=0.15)
