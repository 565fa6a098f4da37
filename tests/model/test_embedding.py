"""Token embeddings."""

import pytest
import torch

from transformer.model.embedding import TokenEmbedding


def test_each_id_gives_its_row_times_the_root_of_d_model():
    embedding = TokenEmbedding(11, 9)
    ids = torch.tensor([[3, 10], [0, 3]])
    expected = torch.stack([torch.stack([embedding.weight[i] * 3 for i in row]) for row in ids])
    torch.testing.assert_close(embedding(ids), expected)


def test_embeddings_start_with_variance_one_and_rows_of_norm_one():
    torch.manual_seed(0)
    embedding = TokenEmbedding(2000, 64)
    assert embedding(torch.arange(2000)[None]).std().item() == pytest.approx(1, abs=0.02)
    assert embedding.weight.norm(dim=1).mean().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("bad", [-1, 11, 2**40])
def test_ids_out_of_range_are_a_value_error(bad):
    embedding = TokenEmbedding(11, 8)
    with pytest.raises(ValueError, match=rf"0\.\.10.*{bad}"):
        embedding(torch.tensor([[2, bad, 3]]))


def test_gradient_reaches_the_rows_that_were_used_and_no_other():
    embedding = TokenEmbedding(5, 4)
    embedding(torch.tensor([[1, 1, 3]])).sum().backward()
    assert embedding.weight.grad[:, 0].tolist() == [0, 4, 0, 2, 0]  # uses times sqrt(4)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_integer_types(kind):
    ids = torch.tensor([[1, 2]], dtype=kind)
    assert TokenEmbedding(5, 4)(ids).shape == (1, 2, 4)
