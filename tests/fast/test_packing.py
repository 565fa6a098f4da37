"""Packing: the padding is gone, and nothing else is different."""

import pytest
import torch

from tests.model.small import make_batch, make_ids, make_model
from transformer import fast
from transformer.fast.packing import Packing
from transformer.model.attention import MultiHeadAttention

IDS = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0], [9, 2, 0, 0]])


def test_real_positions_are_taken_in_order_and_put_back_in_their_places():
    packing, x = Packing.of(IDS), torch.randn(3, 4, 6)
    packed = packing.pack(x)
    torch.testing.assert_close(packed[0], torch.stack([*x[0], *x[1, :2], *x[2, :2]]))
    torch.testing.assert_close(packing.pad(packed), x * (IDS != 0)[:, :, None])


def test_values_and_gradients_are_right_to_second_order():
    packing, real = Packing.of(IDS), (IDS != 0)[:, :, None].double()
    x = torch.randn(3, 4, 2, dtype=torch.double, requires_grad=True)
    packed = torch.randn(1, 8, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(packing.pack, x)
    assert torch.autograd.gradcheck(packing.pad, packed)
    assert torch.autograd.gradgradcheck(lambda x: packing.pad(packing.pack(x).pow(2)), x)
    (gradient,) = torch.autograd.grad(packing.pack(x).pow(2).sum(), x)
    torch.testing.assert_close(gradient, 2 * x * real)


def test_with_little_padding_all_positions_stay():
    ids, x = torch.ones(10, 10, dtype=torch.long), torch.randn(10, 10, 3)
    ids[0, 5:] = 0  # 95 of 100 are real
    packing = Packing.of(ids)
    assert packing.rows is None and packing.pack(x).shape == (1, 100, 3)
    assert torch.equal(packing.pad(packing.pack(x)), x)
    ids[1:4, 5:] = 0  # 80 of 100
    assert Packing.of(ids).pack(x).shape == (1, 80, 3)


def test_no_ids_are_read_on_other_devices_or_under_vmap():
    assert Packing.of(IDS.to("meta")).rows is None
    found = []
    torch.func.vmap(lambda x: found.append(Packing.of(IDS).rows) or x)(torch.ones(2))
    assert found == [None]


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, about tracing
def test_a_traced_model_is_right_for_other_padding(monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)  # sizes are traced, too
    model = make_model()
    fast.enable(model)
    traced = torch.jit.trace(model, (make_ids(6, 6), make_ids(7, 7, seed=1, bos=True)))
    torch.testing.assert_close(traced(*make_batch()), model(*make_batch()))


def test_under_autocast_only_the_attention_itself_is_in_float32(monkeypatch):
    model, seen = make_model(dropout=0.0).float().train(), set()
    fast.enable(model)
    attend = MultiHeadAttention.attend

    def spy(self, query, key, value, *rest):
        heads = attend(self, query, key, value, *rest)
        seen.add((query.dtype, key.dtype, value.dtype, heads.dtype))
        return heads

    monkeypatch.setattr(MultiHeadAttention, "attend", spy)
    projected = []
    layer = model.encoder[0].self_attention.output_projection
    layer.register_forward_hook(lambda *call: projected.append(call[-1].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        model(*make_batch())
    assert seen == {(torch.float32,) * 4} and projected == [torch.bfloat16]
