"""Models in which the score of attention is exchanged, or starts as wide as one likes.

Everything else stays: with the same seed two models differ in the score alone.

Paper: section 3.2.1 (additive and dot-product attention, footnote 4)
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention, masked_softmax
from transformer.model.packing import UNPACKED, Packing


class DotProductScore(nn.Module):
    """The score q . k times a factor.

    Args:
        scale: the factor; 1 / sqrt(d_k) gives Eq. (1), and 1 plain dot-product attention.

    Paper: section 3.2.1, Eq. (1)
    """

    def __init__(self, scale: float | int):
        super().__init__()
        self.scale = scale

    def forward(
        self, query: Float[Tensor, "*batch T d_k"], key: Float[Tensor, "*batch S d_k"]
    ) -> Float[Tensor, "*batch T S"]:
        """Score each query with each key.

        Paper: section 3.2.1, Eq. (1)
        """
        return query @ key.transpose(-2, -1) * self.scale


class AdditiveScore(nn.Module):
    """The score v^T tanh(q + k).

    Queries and keys have been projected before, so this is the score of
    :class:`~transformer.model.attention.AdditiveAttention` with d_k as the size of its hidden
    layer. Against a dot product it has d_k more weights.

    Args:
        d_k: size of a query and of a key.

    Paper: section 3.2.1 (additive attention)
    """

    def __init__(self, d_k: int):
        super().__init__()
        self.output = nn.Linear(d_k, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "*batch T d_k"], key: Float[Tensor, "*batch S d_k"]
    ) -> Float[Tensor, "*batch T S"]:
        """Score each query with each key.

        Paper: section 3.2.1
        """
        return self.output(torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))).squeeze(-1)


class ScoredAttention(MultiHeadAttention):
    """Multi-head attention with any score, on the projections of an attention that exists.

    Args:
        attention: gives its projections and its dropout; its own score is not used.
        score: maps queries (..., T, d_k) and keys (..., S, d_k) to scores (..., T, S).

    Paper: section 3.2.2, with the score of section 3.2.1 left open
    """

    def __init__(self, attention: MultiHeadAttention, score: nn.Module):
        sizes = attention.d_model, attention.num_heads, attention.d_k, attention.d_v
        super().__init__(*sizes, dropout=attention.dropout)
        self.in_projection = attention.in_projection
        self.out_projection = attention.out_projection
        self.score = score

    def attend(
        self,
        query: Float[Tensor, "B H T d_k"],
        key: Float[Tensor, "B H S d_k"],
        value: Float[Tensor, "B H S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        maps: list[Float[Tensor, "B H T S"]] | None = None,
        packing: Packing = UNPACKED,
    ) -> Float[Tensor, "*B_T d_model"]:
        """Attend in every head by the score, concatenate the heads and mix them.

        Paper: section 3.2.2
        """
        weights = masked_softmax(self.score(query, key), mask)
        if maps is not None:
            maps.append(weights)
        heads = F.dropout(weights, self.dropout, self.training) @ value
        return self.out_projection(packing.pack(heads.transpose(1, 2).flatten(2)))


def exchange_score(model: nn.Module, make_score: Callable[[int], nn.Module]) -> None:
    """Give every attention of a model another score, in place.

    Args:
        model: any module with :class:`~transformer.model.attention.MultiHeadAttention` inside.
        make_score: takes d_k and returns the score of one attention.

    Paper: section 3.2.1
    """
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, MultiHeadAttention):
                setattr(parent, name, ScoredAttention(child, make_score(child.d_k)))


@torch.no_grad()
def draw_queries_and_keys(model: nn.Module, query_std: float | int = 1.0) -> None:
    """Draw W^Q and W^K of every attention anew, for components of a chosen size.

    The default brings about what footnote 4 assumes: where the components of an input have
    variance 1, so have those of queries and keys, whatever d_k is. Glorot's initialisation makes
    them smaller the larger d_k is against d_model.

    Args:
        model: any module with :class:`~transformer.model.attention.MultiHeadAttention` inside.
        query_std: standard deviation of a query's components; that of a key's is 1.

    Paper: section 3.2.1, footnote 4
    """
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            query, key, _ = module.in_projection.weight.split(module.sizes)
            query.normal_(std=query_std * module.d_model**-0.5)
            key.normal_(std=module.d_model**-0.5)
