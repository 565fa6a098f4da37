"""Token embeddings."""

import pytest
import torch

from transformer.model.embedding import TokenEmbedding


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_each_id_gives_its_row_times_the_root_of_d_model(kind):
    embedding = TokenEmbedding(11, 9)
    ids = torch.tensor([[3, 10], [0, 3]], dtype=kind)
    expected = torch.stack([torch.stack([embedding.weight[i] * 3 for i in row]) for row in ids])
    torch.testing.assert_close(embedding(ids), expected)
