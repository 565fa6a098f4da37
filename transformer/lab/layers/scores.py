"""Models with another attention score, or with queries and keys of a chosen size.

Everything else stays the same: models made with one seed differ in the score alone.

Paper: section 3.2.1 (additive and dot-product attention, footnote 4)
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention, masked_softmax
from transformer.model.masks import causal_mask


class DotProductScore(nn.Module):
    """The score q . k times a factor.

    Paper: section 3.2.1, Eq. (1)
    """

    def __init__(self, scale: float | int):
        super().__init__()
        self.scale = scale

    def forward(
        self, query: Float[Tensor, "*batch T d_k"], key: Float[Tensor, "*batch S d_k"]
    ) -> Float[Tensor, "*batch T S"]:
        """Score each query with each key."""
        return query @ key.transpose(-2, -1) * self.scale


class AdditiveScore(nn.Module):
    """The score v^T tanh(q + k).

    Queries and keys are already projected, so this is the score of
    :class:`~transformer.model.attention.AdditiveAttention` with a hidden layer of size d_k. It
    has d_k more weights than a dot product.

    Paper: section 3.2.1 (additive attention)
    """

    def __init__(self, d_k: int):
        super().__init__()
        self.output = nn.Linear(d_k, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "*batch T d_k"], key: Float[Tensor, "*batch S d_k"]
    ) -> Float[Tensor, "*batch T S"]:
        """Score each query with each key."""
        return self.output(torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))).squeeze(-1)


class ScoredAttention(MultiHeadAttention):
    """Multi-head attention with any score, on the projections of an existing attention.

    Paper: section 3.2.2, with the score of section 3.2.1 left open
    """

    def __init__(self, attention: MultiHeadAttention, score: nn.Module):
        sizes = attention.d_model, attention.num_heads, attention.d_k, attention.d_v
        super().__init__(*sizes, dropout=attention.dropout)
        for name in ("query", "key", "value", "output"):
            setattr(self, f"{name}_projection", getattr(attention, f"{name}_projection"))
        self.score = score

    def attend(
        self,
        query: Float[Tensor, "B H T d_k"],
        key: Float[Tensor, "B H S d_k"],
        value: Float[Tensor, "B H S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "B T features"]:
        """Attend in every head by the score, and concatenate the heads."""
        if is_causal:
            mask = causal_mask(query.size(-2), query.device)
        weights = masked_softmax(self.score(query, key), mask)
        if self.on_weights is not None:
            self.on_weights(weights)
        heads = F.dropout(weights, self.dropout, self.training) @ value
        return heads.transpose(1, 2).flatten(2)


def exchange_score(model: nn.Module, make_score: Callable[[int], nn.Module]) -> None:
    """Give every attention of a model another score, in place."""
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, MultiHeadAttention):
                setattr(parent, name, ScoredAttention(child, make_score(child.d_k)))


@torch.no_grad()
def draw_queries_and_keys(model: nn.Module, query_std: float | int = 1.0) -> None:
    """Redraw W^Q and W^K of every attention, so that queries and keys have a chosen size.

    The default satisfies the assumption of footnote 4: if the components of an input have
    variance 1, those of queries and keys have it too, for every d_k. Under Glorot's
    initialisation they shrink as d_k grows relative to d_model.

    Args:
        query_std: standard deviation of a query's components; that of a key's is 1.

    Paper: section 3.2.1, footnote 4
    """
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.query_projection.weight.normal_(std=query_std * module.d_model**-0.5)
            module.key_projection.weight.normal_(std=module.d_model**-0.5)
