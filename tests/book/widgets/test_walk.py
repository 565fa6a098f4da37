"""The walk shows the tensors of the forward pass, and the numbers that follow from them."""

import pytest
import torch
import torch.nn.functional as F

from tests.self_contained import self_contained
from transformer import Transformer, TransformerConfig
from transformer_book.widgets.walk import LEVELS, TensorWalk, levels, record_walk

SOURCE, TARGET = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]])
TOKENS = [f"</script>{i}" for i in range(12)]


def make(**changes):
    torch.manual_seed(0)
    sizes = dict(d_model=128, d_ff=256, num_heads=2, num_layers=2, vocab_size=12)
    model = Transformer(TransformerConfig.from_dict(sizes | changes)).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def walk():
    model = make()
    return model, {f"{s.part}: {s.name}": s.values for s in record_walk(model, SOURCE, TARGET)}


def test_each_tensor_follows_from_those_before_it():
    model, found = walk()
    layer, one = model.encoder[0], "Encoder layer 1: "
    x = found["Source: embedding + position"]
    torch.testing.assert_close(found["Source: embedding"], model.embedding(SOURCE)[0])
    weights, value = found[one + "attention weights"], found[one + "value"]
    sums = weights @ value.unflatten(1, (2, -1)).transpose(0, 1)
    joined = found[one + "weighted sums of the values"]
    torch.testing.assert_close(sums.transpose(0, 1).flatten(1), joined)
    out = found[one + "output of self-attention"]
    torch.testing.assert_close(layer.self_attention.output_projection(joined), out)
    torch.testing.assert_close(found[one + "add"], x + out)
    normed = found[one + "norm"]
    torch.testing.assert_close(layer.self_attention_residual.norm(x + out), normed)
    hidden = found[one + "feed-forward, hidden layer"]
    torch.testing.assert_close(layer.feed_forward.hidden(normed).relu(), hidden)
    fed = found[one + "feed-forward, output"]
    torch.testing.assert_close(layer.feed_forward.output(hidden), fed)
    last = layer.feed_forward_residual.norm(normed + fed)
    torch.testing.assert_close(last, found[one + "add and norm"])
    torch.testing.assert_close(found["Encoder layer 2: output"], model.encode(SOURCE)[0])


def test_the_end_is_what_the_model_returns():
    model, found = walk()
    torch.testing.assert_close(found["Output: logits"], model(SOURCE, TARGET)[0])
    torch.testing.assert_close(found["Output: probabilities"].sum(dim=1), torch.ones(3))
    masked = found["Decoder layer 1: masked attention weights"]
    assert (masked.triu(1) == 0).all() and masked.shape == (2, 3, 3)
    assert found["Decoder layer 1: cross-attention weights"].shape == (2, 3, 4)


def test_the_model_is_left_as_it_was():
    model, _ = walk()
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((make(), SOURCE.repeat(2, 1), TARGET), "1 row"),
        ((make(norm="pre"), SOURCE, TARGET), "'post'"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        record_walk(*arguments)


def test_a_character_per_number():
    largest, text = levels(torch.tensor([[0.0, 2.0], [-2.0, 1.0]]))
    places = [LEVELS.index(letter) for letter in text]
    assert largest == 2.0 and places[:3] == [31, 62, 0] and places[3] in (46, 47)


def test_the_figure_holds_every_step_and_loads_nothing():
    steps = record_walk(make(), SOURCE, TARGET)
    figure = TensorWalk(steps, TOKENS[:4], TOKENS[:3], TOKENS, token=1, place=2, heads=2)
    data = figure.payload()
    assert [step["shape"] for step in data["steps"][:2]] == ["4", "4 × 128"]
    [shown] = [s for s in data["steps"] if s["name"] == "probabilities"]
    expected = F.softmax(make()(SOURCE, TARGET)[0, 2], dim=-1).max().item()
    assert shown["tops"][2][0][1] == pytest.approx(expected, abs=1e-4)
    self_contained(lambda: figure, 150_000)
    assert f"({expected:.0%})" in figure.alt
    with pytest.raises(ValueError, match="place must be in 0..2"):
        TensorWalk(steps, TOKENS[:4], TOKENS[:3], TOKENS, place=3)
