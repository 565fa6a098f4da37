"""How many parameters there are, which of them are shared, and how they start."""

import pytest
import torch
from torch import nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer


def count(config: TransformerConfig) -> int:
    """Count without allocating anything."""
    with torch.device("meta"):
        model = Transformer(config)
    assert all(parameter.is_meta for parameter in model.parameters())
    return model.num_parameters()


# line, the number that the paper prints (millions), count at V = 40,960, count at V = 37,000
TABLE_3 = [
    ("base", 1, 65, 65_110_016, 63_082_496),
    ("B", 1, 58, 58_018_304, 55_990_784),
    ("B", 2, 60, 60_382_208, 58_354_688),
    ("C", 1, 36, 35_684_352, 33_656_832),
    ("C", 2, 50, 50_397_184, 48_369_664),
    ("C", 3, 80, 79_822_848, 77_795_328),
    ("C", 4, 28, 27_848_704, 26_834_944),
    ("C", 5, 168, 167_944_192, 163_889_152),
    ("C", 6, 53, 52_514_816, 50_487_296),
    ("C", 7, 90, 90_300_416, 88_272_896),
]


@pytest.mark.parametrize("row, place, printed, at_40960, at_37000", TABLE_3)
def test_counts_of_table_3(row, place, printed, at_40960, at_37000):
    assert count(TransformerConfig.table3(row, place, 40_960)) == at_40960
    assert round(at_40960 / 1e6) == printed
    assert count(TransformerConfig.table3(row, place)) == at_37000


@pytest.mark.parametrize("line", [("A", 1), ("A", 2), ("A", 3), ("A", 4), ("D", 1), ("D", 4)])
def test_lines_that_leave_the_count_alone(line):
    assert count(TransformerConfig.table3(*line, vocab_size=40_960)) == 65_110_016


def test_other_known_counts():
    assert count(TransformerConfig.big(40_960)) == 218_300_416
    assert count(TransformerConfig.tiny(9_712)) == 2_568_192
    small = TransformerConfig(9_712, d_ff=1024, num_heads=4)
    assert count(small) == 36_515_840
    assert count(TransformerConfig.base(9_712)) == 49_111_040


def test_attention_biases_decide_row_c6():
    without = count(TransformerConfig.base(40_960, d_ff=1024, attention_bias=False))
    assert without == 52_477_952 and round(without / 1e6) == 52  # the paper prints 53
    assert count(TransformerConfig.base(attention_bias=False)) == 63_045_632


def test_torch_has_two_norms_more():
    with torch.device("meta"):
        theirs = nn.Transformer(512, 8, 6, 6, 2048, batch_first=True)
    their_count = sum(parameter.numel() for parameter in theirs.parameters())
    stacks = count(TransformerConfig.base()) - 512 * 37_000
    assert their_count == stacks + 2 * 2 * 512 == 44_140_544
    assert count(TransformerConfig.base(norm="pre")) == 512 * 37_000 + their_count


@pytest.mark.parametrize(
    "changes, more",
    [(dict(sharing="target"), 1), (dict(sharing="none"), 2)],
)
def test_matrices_that_are_not_shared_are_counted(changes, more):
    assert count(TransformerConfig.base(**changes)) == 63_082_496 + more * 512 * 37_000


def test_learned_positions_are_counted_on_both_sides():
    assert count(TransformerConfig.table3("E")) == 63_082_496 + 2 * 1024 * 512


# ---------------------------------------------------------------------- sharing


@pytest.mark.parametrize(
    "sharing, tables",
    [
        ("three-way", {"embedding.weight"}),
        ("target", {"embedding.weight", "target_embedding.weight"}),
        ("none", {"embedding.weight", "target_embedding.weight", "output.weight"}),
    ],
)
def test_shared_matrices_are_one_tensor(make_model, sharing, tables):
    model = make_model(sharing=sharing)
    state = model.state_dict()
    assert {name for name, value in state.items() if len(value) == 19} == tables
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert len(held) == len({id(parameter) for parameter in held}) == len(state)
    last = {"three-way": "embedding", "target": "target_embedding", "none": "output"}[sharing]
    assert names[id(model.output_weight)] == f"{last}.weight"


@pytest.mark.parametrize("sharing, users", [("three-way", 3), ("target", 2), ("none", 1)])
def test_changing_a_shared_matrix_changes_all_its_uses(make_model, make_ids, sharing, users):
    source, target = make_ids(4), make_ids(3, seed=1, bos=True)
    matrices = {"source embedding", "target embedding", "output"}
    for name in matrices:
        model = make_model(sharing=sharing)
        memory = model.encode(source)
        states = model.decoder_states(target, memory, source)
        with torch.no_grad():
            if name == "source embedding":
                model.embedding.weight += torch.randn(19, 16)
            elif name == "target embedding":
                model._target_embedding.weight += torch.randn(19, 16)
            else:
                model.output_weight.add_(torch.randn(19, 16))
        changed = {
            "source embedding": not torch.equal(model.encode(source), memory),
            "target embedding": not torch.equal(
                model.decoder_states(target, memory, source), states
            ),
            "output": not torch.equal(
                model.decode(target, memory, source),
                states @ make_model(sharing=sharing).output_weight.T,
            ),
        }
        expected = {
            "three-way": matrices,
            "target": {"source embedding"}
            if name == "source embedding"
            else matrices - {"source embedding"},
            "none": {name},
        }[sharing]
        # New target embeddings give new states, hence new logits, in any case.
        if "target embedding" in expected:
            expected = expected | {"output"}
        assert {what for what, did in changed.items() if did} == expected


def test_gradient_of_a_shared_matrix_is_the_sum_over_its_uses(make_model, make_ids):
    source, target = make_ids(4, 3), make_ids(3, 2, seed=1, bos=True)
    shared, apart = make_model(), make_model(sharing="none")
    state = shared.state_dict()
    for name in ("target_embedding.weight", "output.weight"):
        state[name] = state["embedding.weight"]
    apart.load_state_dict(state)
    for model in (shared, apart):
        model(source, target).sin().sum().backward()
    torch.testing.assert_close(
        shared.embedding.weight.grad,
        apart.embedding.weight.grad + apart.target_embedding.weight.grad + apart.output.weight.grad,
    )


def test_learned_positions_of_source_and_target_are_separate(make_model, make_ids):
    model = make_model(positions="learned")
    tables = {name for name in model.state_dict() if "positions" in name}
    assert tables == {"positions.embedding.weight", "target_positions.embedding.weight"}
    model(make_ids(4), make_ids(3, bos=True)).sin().sum().backward()
    ends = [
        positions.embedding.weight.grad.any(dim=1).sum().item()
        for positions in (model.positions, model.target_positions)
    ]
    assert ends == [4, 3]  # rows with a gradient: as many as there were positions


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-t2t"])
def test_sinusoids_are_no_part_of_the_weights(make_model, positions):
    assert not [
        name for name in make_model(positions=positions).state_dict() if "positions" in name
    ]


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
        query, key, value = attention.in_projection.weight.split([128, 128, 256])
        for part in (query, key, value):
            expected = glorot(512 if init == "fused" else len(part), 128)
            assert part.std().item() == pytest.approx(expected, rel=0.03)
            assert part.abs().max().item() == pytest.approx(expected * 3**0.5, rel=0.01)
        assert attention.out_projection.weight.std().item() == pytest.approx(
            glorot(256, 128), rel=0.03
        )
        assert not attention.in_projection.bias.any() and not attention.out_projection.bias.any()


def test_fused_attention_of_base_starts_as_in_the_published_code():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.base(100, num_layers=1))
    weight = model.encoder[0].self_attention.in_projection.weight
    assert weight.std().item() == pytest.approx(0.03125, rel=0.01)


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
@pytest.mark.parametrize("sharing", ["three-way", "target", "none"])
def test_embeddings_and_output_start_as_stated(init, sharing):
    model = initial(init=init, sharing=sharing)
    expected = glorot(3000, 128) if init == "glorot" else 128**-0.5
    for weight in (model.embedding.weight, model._target_embedding.weight, model.output_weight):
        assert weight.std().item() == pytest.approx(expected, rel=0.02)
        bound = weight.abs().max().item() / expected
        assert bound < 1.74 if init == "glorot" else bound > 3  # uniform or normal


def test_learned_positions_start_as_stated():
    model = initial(positions="learned")
    for positions in (model.positions, model.target_positions):
        assert positions.embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.02)


def test_no_two_matrices_start_alike():
    """Layers made by copying one layer would."""
    model = initial(positions="learned", sharing="none")
    matrices = [p for p in model.parameters() if p.dim() == 2]
    for i, matrix in enumerate(matrices):
        for other in matrices[:i]:
            assert matrix.shape != other.shape or not torch.equal(matrix, other)


def test_reset_draws_the_same_weights_from_the_same_seed():
    model = initial()
    first = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(1)
    model.reset_parameters()
    assert not torch.equal(first["embedding.weight"], model.embedding.weight)
    torch.manual_seed(1)
    other = initial()
    torch.manual_seed(1)
    other.reset_parameters()
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
