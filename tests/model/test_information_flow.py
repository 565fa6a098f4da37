"""What may depend on what: leaks, padding, batch mates, order, and rows that see nothing."""

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer.model.positional import NoPositions

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])


def influence(model, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Measure the norm of each output's gradient with respect to each embedded input.

    Returns matrices (outputs, inputs) for one sentence: "target" and "source" of the logits,
    "memory" of the encoder's output with respect to the source.
    """
    embedded: list[Tensor] = []

    def watch(module, inputs, output):
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    modules = {model.embedding, model._target_embedding}
    hooks = [module.register_forward_hook(watch) for module in modules]
    memory = model.encode(source)
    logits = model.decode(target, memory, source)
    for hook in hooks:
        hook.remove()
    generator = torch.Generator().manual_seed(0)

    def rows(outputs: Tensor, inputs: Tensor) -> Tensor:
        direction = torch.randn(outputs.size(-1), generator=generator, dtype=outputs.dtype)
        gradients = [
            torch.autograd.grad(output @ direction, inputs, retain_graph=True)[0][0].norm(dim=-1)
            for output in outputs[0]
        ]
        return torch.stack(gradients)

    from_source, from_target = embedded
    return {
        "target": rows(logits, from_target),
        "source": rows(logits, from_source),
        "memory": rows(memory, from_source),
    }


@NORMS
@pytest.mark.parametrize("sharing", ["three-way", "none"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_outputs_depend_on_the_past_and_the_source_and_on_nothing_else(
    make_model, make_ids, norm, sharing, mode
):
    model = make_model(norm=norm, sharing=sharing, dropout=0.0)
    model.train(mode == "train")  # the mask must not depend on it
    effect = influence(model, make_ids(4, width=6), make_ids(5, seed=1, bos=True))
    may = torch.ones(5, 5, dtype=torch.bool).tril()
    assert (effect["target"][~may] == 0).all()
    assert (effect["target"][may] > 1e-6).all()
    assert (effect["source"][:, :4] > 1e-6).all()
    assert (effect["source"][:, 4:] == 0).all()
    assert (effect["memory"][:4, :4] > 1e-6).all()
    assert (effect["memory"][:4, 4:] == 0).all()


def test_the_measure_sees_a_leak(make_model, make_ids, monkeypatch):
    import transformer.model.transformer as module

    everything = torch.ones(5, 5, dtype=torch.bool)
    monkeypatch.setattr(module, "causal_mask", lambda length, device=None: everything)
    effect = influence(make_model(), make_ids(4), make_ids(5, seed=1, bos=True))
    assert (effect["target"] > 1e-6).all()


def test_padding_inside_the_target_is_not_seen(make_model, make_ids):
    target = torch.tensor([[1, 5, 0, 6, 7]])
    effect = influence(make_model(), make_ids(4), target)["target"]
    assert (effect[3:, 2] == 0).all() and (effect[3:, [0, 1, 3]] > 1e-6).all()


@NORMS
@settings(deadline=None, derandomize=True, max_examples=15, phases=[Phase.generate])
@given(
    lengths=st.tuples(*[st.integers(1, 6)] * 4),
    more_source=st.integers(0, 4),
    more_target=st.integers(0, 4),
)
def test_padding_and_batch_mates_change_nothing(
    make_model, make_ids, norm, lengths, more_source, more_target
):
    model = make_model(norm=norm)
    s1, s2, t1, t2 = lengths
    source = make_ids(s1, s2, width=max(s1, s2) + more_source)
    target = make_ids(t1, t2, seed=1, bos=True, width=max(t1, t2) + more_target)
    together = model(source, target)
    for row, (s, t) in enumerate([(s1, t1), (s2, t2)]):
        alone = model(source[row : row + 1, :s], target[row : row + 1, :t])
        torch.testing.assert_close(together[row, :t], alone[0])
        memory = model.encode(source[row : row + 1, :s])
        torch.testing.assert_close(model.encode(source)[row, :s], memory[0])


def test_another_pad_id_is_honoured(make_model, make_ids):
    usual, other = make_model(), make_model(pad_id=18)
    source, target = make_ids(5, 2), make_ids(4, 3, seed=1, bos=True)
    source[source == 18], target[target == 18] = 17, 17
    exchanged = [ids.masked_fill(ids == 0, 18) for ids in (source, target)]
    outputs = usual(source, target), other(*exchanged)
    torch.testing.assert_close(outputs[0][0], outputs[1][0])
    torch.testing.assert_close(outputs[0][1, :3], outputs[1][1, :3])


@NORMS
def test_without_positions_the_encoder_sees_a_set(make_model, make_ids, norm):
    model = make_model(norm=norm)
    source = torch.tensor([[3, 4, 5, 6, 7, 8, 0]])
    order = torch.tensor([4, 0, 6, 2, 5, 1, 3])  # the padding moves too
    with_positions = model.encode(source)[:, order]
    assert not torch.allclose(model.encode(source[:, order]), with_positions, atol=1e-2)
    model.positions = NoPositions()
    torch.testing.assert_close(model.encode(source[:, order]), model.encode(source)[:, order])


def test_without_positions_the_decoder_does_not_see_the_order_of_the_source(make_model, make_ids):
    model = make_model()
    source, target = torch.tensor([[3, 4, 5, 6]]), make_ids(5, bos=True)
    order = torch.tensor([2, 0, 3, 1])
    memory = model.encode(source)
    torch.testing.assert_close(
        model.decode(target, memory[:, order], source[:, order]),
        model.decode(target, memory, source),
    )


@NORMS
@pytest.mark.parametrize("with_maps", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_source_of_padding_alone_gives_finite_numbers(
    make_model, make_ids, norm, with_maps, dtype
):
    model = make_model(norm=norm, dtype=dtype).train()
    source, target = make_ids(0, 3), make_ids(4, 4, seed=1, bos=True)
    maps = [[], [], []] if with_maps else [None, None, None]
    memory = model.encode(source, maps[0])
    states = model.decoder_states(target, memory, source, *maps[1:])
    assert memory.isfinite().all() and states.isfinite().all()
    states.float().sin().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    for weights in maps[0] + maps[2] if with_maps else []:
        assert (weights[0] == 0).all() and weights[1].any()


def test_a_source_of_padding_alone_does_not_spoil_the_others(make_model, make_ids):
    model = make_model()
    source, target = make_ids(0, 3), make_ids(4, 4, seed=1, bos=True)
    torch.testing.assert_close(model(source, target)[1:], model(source[1:], target[1:]))


def test_a_target_of_padding_alone_gives_finite_numbers(make_model, make_ids):
    model = make_model()
    source, target = make_ids(3, 3), make_ids(4, 0, seed=1)
    logits = model(source, target)
    logits.sin().sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())
