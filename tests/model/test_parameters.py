"""How many parameters there are, which of them are shared, and how they start."""

import pytest
import torch
from torch import nn

from tests.model.small import make_batch, make_ids, make_model
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes.table_3 import table_3


def count(config: TransformerConfig) -> int:
    """Count without allocating anything."""
    with torch.device("meta"):
        model = Transformer(config)
    assert all(parameter.is_meta for parameter in model.parameters())
    return model.num_parameters()


# line, the number that the paper prints (millions), count at V = 40,960, count at V = 37,000
TABLE_3 = [
    ("base", 1, 65, 65_110_016, 63_082_496),
    *[("A", place, 65, 65_110_016, 63_082_496) for place in (1, 2, 3, 4)],
    ("B", 1, 58, 58_018_304, 55_990_784),
    ("B", 2, 60, 60_382_208, 58_354_688),
    ("C", 1, 36, 35_684_352, 33_656_832),
    ("C", 2, 50, 50_397_184, 48_369_664),
    ("C", 3, 80, 79_822_848, 77_795_328),
    ("C", 4, 28, 27_848_704, 26_834_944),
    ("C", 5, 168, 167_944_192, 163_889_152),
    ("C", 6, 53, 52_514_816, 50_487_296),
    ("C", 7, 90, 90_300_416, 88_272_896),
    ("D", 1, 65, 65_110_016, 63_082_496),
]


@pytest.mark.parametrize("row, place, printed, at_40960, at_37000", TABLE_3)
def test_counts_of_table_3(row, place, printed, at_40960, at_37000):
    assert count(table_3(row, place, 40_960)) == at_40960
    assert round(at_40960 / 1e6) == printed
    assert count(table_3(row, place)) == at_37000


def test_other_known_counts():
    assert count(TransformerConfig.big(40_960)) == 218_300_416
    assert count(TransformerConfig.tiny(9_712)) == 2_568_192
    base = count(TransformerConfig.base())
    assert count(table_3("E")) == base + 2 * 1024 * 512
    assert count(TransformerConfig.base(sharing="target")) == base + 512 * 37_000
    assert count(TransformerConfig.base(sharing="none")) == base + 2 * 512 * 37_000
    without = count(TransformerConfig.base(40_960, d_ff=1024, attention_bias=False))
    assert without == 52_477_952 and round(without / 1e6) == 52  # the paper prints 53


def test_torch_has_two_more_norms():
    with torch.device("meta"):
        theirs = nn.Transformer(512, 8, 6, 6, 2048, batch_first=True)
    their_count = sum(parameter.numel() for parameter in theirs.parameters())
    stacks = count(TransformerConfig.base()) - 512 * 37_000
    assert their_count == stacks + 2 * 2 * 512 == 44_140_544
    assert count(TransformerConfig.base(norm="pre")) == 512 * 37_000 + their_count


# ---------------------------------------------------------------------- sharing


SHARING = {
    "three-way": {"embedding.weight"},
    "target": {"embedding.weight", "target_embedding.weight"},
    "none": {"embedding.weight", "target_embedding.weight", "output.weight"},
}


@pytest.mark.parametrize("sharing", SHARING)
def test_shared_matrices_are_one_tensor(sharing):
    model = make_model(sharing=sharing)
    state = model.state_dict()
    assert {name for name, value in state.items() if len(value) == 19} == SHARING[sharing]
    assert len(list(model.parameters())) == len(state)
    last = {"three-way": "embedding", "target": "target_embedding", "none": "output"}[sharing]
    assert model.output_weight is model.get_parameter(f"{last}.weight")


@pytest.mark.parametrize("sharing", ["three-way", "target"])
def test_gradient_of_a_shared_matrix_is_the_sum_over_its_uses(sharing):
    source, target = make_batch()
    shared, apart = make_model(sharing=sharing), make_model(sharing="none")
    state = {name: shared.embedding.weight for name in SHARING["none"]} | shared.state_dict()
    state["output.weight"] = shared.output_weight
    apart.load_state_dict(state)
    for model in (shared, apart):
        model(source, target).sin().sum().backward()
    total = apart.target_embedding.weight.grad + apart.output.weight.grad
    if sharing == "three-way":
        total += apart.embedding.weight.grad
    torch.testing.assert_close(shared.output_weight.grad, total)


def test_learned_positions_of_source_and_target_are_separate():
    model = make_model(positions="learned")
    tables = {name for name in model.state_dict() if "positions" in name}
    assert tables == {"positions.embedding.weight", "target_positions.embedding.weight"}
    model(make_ids(4), make_ids(3, bos=True)).sin().sum().backward()
    both = (model.positions, model.target_positions)
    # As many rows have a gradient as there were positions.
    assert [p.embedding.weight.grad.any(dim=1).sum().item() for p in both] == [4, 3]
    sinusoidal = make_model(positions="sinusoidal-t2t").state_dict()
    assert not [name for name in sinusoidal if "positions" in name]


# ---------------------------------------------------------------------- initialisation


def glorot(rows: int, columns: int) -> float:
    """Return the standard deviation of Glorot-uniform weights."""
    return (2 / (rows + columns)) ** 0.5


def initial(**changes) -> Transformer:
    torch.manual_seed(0)
    sizes = dict(vocab_size=3000, d_model=128, d_ff=512, num_heads=4, num_layers=2)
    return Transformer(TransformerConfig(**sizes | changes))


@pytest.mark.parametrize("init", ["fused", "separate", "glorot"])
def test_projections_of_attention_start_as_stated(init):
    model = initial(init=init, d_v=64)
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    assert len(attentions) == 2 + 2 * 2
    for attention in attentions:
        for name, part in attention.named_children():
            fused = init == "fused" and name != "output_projection"
            expected = glorot(512 if fused else part.out_features, part.in_features)
            assert part.weight.std().item() == pytest.approx(expected, rel=0.03)
            assert part.weight.abs().max().item() == pytest.approx(expected * 3**0.5, rel=0.01)
            assert not part.bias.any()


def test_feed_forward_and_norms_start_as_stated():
    model = initial(norm="pre")
    for layer in [*model.encoder, *model.decoder]:
        for linear in (layer.feed_forward.hidden, layer.feed_forward.output):
            assert linear.weight.std().item() == pytest.approx(glorot(512, 128), rel=0.03)
            assert not linear.bias.any()
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    assert len(norms) == 2 * 2 + 2 * 3 + 2
    for norm in norms:
        assert (norm.weight == 1).all() and not norm.bias.any() and norm.eps == 1e-6


@pytest.mark.parametrize("init", ["fused", "separate", "glorot"])
@pytest.mark.parametrize("sharing", SHARING)
def test_embeddings_and_output_start_as_stated(init, sharing):
    model = initial(init=init, sharing=sharing, positions="learned")
    expected = glorot(3000, 128) if init == "glorot" else 128**-0.5
    for weight in (model.get_parameter(name) for name in SHARING[sharing]):
        assert weight.std().item() == pytest.approx(expected, rel=0.02)
        bound = weight.abs().max().item() / expected
        assert bound < 1.74 if init == "glorot" else bound > 3  # uniform or normal
    for positions in (model.positions, model.target_positions):
        assert positions.embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.02)


def test_reset_draws_the_same_weights_from_the_same_seed():
    first, model = initial(), initial()
    assert torch.equal(first.embedding.weight, model.embedding.weight)
    for each in (first, model):
        torch.manual_seed(1)
        each.reset_parameters()
    assert not torch.equal(initial().embedding.weight, model.embedding.weight)
    matrices = [p for p in model.parameters() if p.dim() == 2]  # no layer is a copy of another
    assert len({matrix[0, 0].item() for matrix in matrices}) == len(matrices)
    torch.testing.assert_close(first.state_dict(), model.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-t2t", "rotary"])
def test_a_model_made_without_memory_gets_its_tables_from_a_reset(positions):
    model, batch = make_model(positions=positions), make_batch()
    with torch.device("meta"):
        later = Transformer(model.config)
    later = later.double().to_empty(device="cpu").eval()
    for buffer in later.buffers():
        buffer.fill_(torch.nan)
    later.reset_parameters()
    later.load_state_dict(model.state_dict())
    torch.testing.assert_close(later(*batch), model(*batch))
