"""What each output depends on: leaks, padding, batch mates, order, sequences of padding alone."""

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.model.small import make_ids, make_model
from transformer import fast
from transformer.model.attention import MultiHeadAttention
from transformer.model.embedding import TokenEmbedding
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

    tables = [module for module in model.modules() if isinstance(module, TokenEmbedding)]
    hooks = [table.register_forward_hook(watch) for table in tables]
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
@pytest.mark.parametrize("mode", ["train", "eval", "fast"])
def test_outputs_depend_on_the_past_and_the_source_and_on_nothing_else(norm, sharing, mode):
    model = make_model(norm=norm, sharing=sharing, dropout=0.0)
    model.train(mode != "eval")  # the mask must not depend on it
    if mode == "fast":
        fast.enable(model)
    effect = influence(model, make_ids(4, width=6), make_ids(5, seed=1, bos=True))
    may = torch.ones(5, 5, dtype=torch.bool).tril()
    assert (effect["target"][~may] == 0).all()
    assert (effect["target"][may] > 1e-6).all()
    assert (effect["source"][:, :4] > 1e-6).all()
    assert (effect["source"][:, 4:] == 0).all()
    assert (effect["memory"][:4, :4] > 1e-6).all()
    assert (effect["memory"][:4, 4:] == 0).all()


def test_the_measure_detects_a_leak(monkeypatch):
    attend = MultiHeadAttention.attend
    monkeypatch.setattr(
        MultiHeadAttention,
        "attend",
        lambda self, q, k, v, mask=None, is_causal=False: attend(self, q, k, v, mask),
    )
    effect = influence(make_model(), make_ids(4), make_ids(5, seed=1, bos=True))
    assert (effect["target"] > 1e-6).all()


@NORMS
@settings(deadline=None, derandomize=True, max_examples=15, phases=[Phase.generate])
@given(
    lengths=st.tuples(*[st.integers(1, 6)] * 4),
    more_source=st.integers(0, 4),
    more_target=st.integers(0, 4),
)
def test_padding_and_batch_mates_change_nothing(norm, lengths, more_source, more_target):
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


def test_another_pad_id_is_honoured():
    source, target = make_ids(5, 2), make_ids(4, 3, seed=1, bos=True)
    source[source == 18], target[target == 18] = 17, 17
    expected = make_model()(source, target)
    exchanged = [ids.masked_fill(ids == 0, 18) for ids in (source, target)]
    found = make_model(pad_id=18)(*exchanged)
    torch.testing.assert_close(found[target != 0], expected[target != 0])


@NORMS
def test_without_positions_the_encoder_sees_a_set(norm):
    model = make_model(norm=norm)
    source = torch.tensor([[3, 4, 5, 6, 7, 8, 0]])
    order = torch.tensor([4, 0, 6, 2, 5, 1, 3])  # the padding moves too
    with_positions = model.encode(source)[:, order]
    assert not torch.allclose(model.encode(source[:, order]), with_positions, atol=1e-2)
    model.positions = NoPositions()
    torch.testing.assert_close(model.encode(source[:, order]), model.encode(source)[:, order])


@NORMS
@pytest.mark.parametrize("is_fast", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_sequences_of_padding_alone_give_finite_numbers(norm, is_fast, dtype):
    model = make_model(norm=norm, dtype=dtype).train()
    if is_fast:
        fast.enable(model)
    for source, target in [
        (make_ids(0, 3), make_ids(4, 4, seed=1, bos=True)),
        (make_ids(3, 3), make_ids(4, 0, seed=1, bos=False)),
    ]:
        logits = model(source, target)
        logits.float().sin().sum().backward()
        assert logits.isfinite().all()
        assert all(p.grad.isfinite().all() for p in model.parameters())
