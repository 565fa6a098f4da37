"""Roles of heads, as shares of their attention beside those of uniform and untrained attention."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer.data.batching import Batch
from transformer.data.model_tokenizers import TokenizerLike
from transformer.model.base import evaluation_mode
from transformer.model.transformer import Transformer
from transformer_book.studies.what_heads_learn.ablation import KINDS, Head, Kind, heads_of

#: The roles in each kind of attention. "start" is BOS, "end" is EOS, "mark" is punctuation,
#: "translated" a source token linked to the token about to be written, "just read" one linked to
#: the token written last.
ROLES: dict[Kind, tuple[str, ...]] = {
    "encoder": ("itself", "previous", "next", "same word", "mark", "end"),
    "decoder": ("itself", "previous", "same word", "mark", "start"),
    "cross": ("same place", "translated", "just read", "mark", "end"),
}

# A link matrix per pair: links[i][s, t] is True if source token s belongs to target token t.
Links = Sequence[np.ndarray]

# By the name of a head, such as "encoder 1.1", its score in each role.
Named = Mapping[str, Mapping[str, float]]


def mark_ids(tokenizer: TokenizerLike) -> list[int]:
    """Return the ids of all tokens that consist of punctuation."""
    labels = tokenizer.tokens(range(tokenizer.vocab_size))
    return [
        i
        for i, label in enumerate(labels)
        if (text := label.strip("▁")) and not any(c.isalnum() or c in "<>" for c in text)
    ]


def role_patterns(
    kind: Kind,
    queries: Int[Tensor, "B T"],
    keys: Int[Tensor, "B S"],
    model: Transformer,
    marks: Collection[int],
    links: Links | None = None,
) -> tuple[Bool[Tensor, "B T S"], dict[str, Bool[Tensor, "B T S"]]]:
    """Return which keys each query may see, and which of these belong to each role."""
    c = model.config
    t, s = torch.arange(queries.size(1))[:, None], torch.arange(keys.size(1))
    asks, asked = (queries != c.pad_id)[:, :, None], (keys != c.pad_id)[:, None, :]
    visible = asks & asked & ((s <= t) if kind == "decoder" else torch.ones_like(s <= t))
    same = queries[:, :, None] == keys[:, None, :]
    on_mark = torch.isin(keys, torch.tensor(sorted(marks)))[:, None, :]
    found = {"itself": s == t, "previous": s == t - 1, "next": s == t + 1}
    found |= {"same word": same & (s != t), "mark": on_mark}
    found |= {"start": (keys == c.bos_id)[:, None, :], "end": (keys == c.eos_id)[:, None, :]}
    if kind == "cross":
        long, wide = ((ids != c.pad_id).sum(dim=1)[:, None, None] for ids in (queries, keys))
        found["same place"] = s == torch.round(t * (wide - 1) / (long - 1).clamp(min=1))
        if links is not None:
            found |= _linked(links, visible)
    names = [role for role in ROLES[kind] if role in found]
    return visible, {role: found[role] & visible for role in names}


def _linked(links: Links, visible: Tensor) -> dict[str, Tensor]:
    """Return the keys linked to the token about to be written, and to the one before."""
    writes = torch.zeros_like(visible)
    for row, matrix in enumerate(links):
        wide, long = matrix.shape
        writes[row, :long, :wide] = torch.from_numpy(matrix.T)
    reads = torch.zeros_like(visible)
    reads[:, 1:] = writes[:, :-1]
    return {"translated": writes, "just read": reads}


@torch.inference_mode()
def role_scores(
    model: Transformer,
    batches: Sequence[Batch],
    marks: Collection[int],
    links: Sequence[Links] | None = None,
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return the share of each head's attention on each role, and that of uniform attention.

    Shares are means over the queries that have a key of the role.
    """
    shares: dict[str, dict[str, float]] = {}
    even: dict[str, dict[str, float]] = {}
    sums: dict[tuple[Kind, str], list[Any]] = {}
    for i, batch in enumerate(batches):
        with evaluation_mode(model):
            maps = model.attention_weights(batch.source, batch.target_input)
        sides: dict[Kind, tuple[Tensor, Tensor]] = {
            "encoder": (batch.source, batch.source),
            "decoder": (batch.target_input, batch.target_input),
            "cross": (batch.target_input, batch.source),
        }
        for kind, (queries, keys) in sides.items():
            weights = torch.stack(getattr(maps, kind), dim=1)  # (B, layers, H, T, S)
            linked = links[i] if links is not None else None
            visible, patterns = role_patterns(kind, queries, keys, model, marks, linked)
            for role, pattern in patterns.items():
                there = (weights * pattern[:, None, None]).sum(dim=(0, 3, 4)).double()
                uniform = pattern.sum(dim=-1) / visible.sum(dim=-1).clamp(min=1)
                found = [there.numpy(), uniform.double().sum().numpy(), pattern.any(-1).sum()]
                old: list[Any] = sums.get((kind, role), [0, 0, 0])
                sums[kind, role] = [x + y for x, y in zip(old, found, strict=True)]
    for (kind, role), (total, uniform, count) in sums.items():
        even.setdefault(kind, {})[role] = float(uniform / max(int(count), 1))
        for head in heads_of(model.config):
            if head.kind == kind:
                share = total[head.layer, head.index] / max(int(count), 1)
                shares.setdefault(str(head), {})[role] = float(share)
    return shares, even


def threshold(untrained: Sequence[Named], kind: Kind) -> dict[str, float]:
    """Return the best score of any head of any untrained model in each role."""
    best: dict[str, float] = {}
    for model in untrained:
        for name, scores in model.items():
            if Head.named(name).kind == kind:
                best |= {role: max(score, best.get(role, 0.0)) for role, score in scores.items()}
    return best


def roles_of(
    scores: Named, untrained: Sequence[Named], at_least: float = 0.5
) -> dict[str, list[tuple[str, float]]]:
    """Return the roles of each head: shares of ``at_least`` and above those by chance."""
    chance = {kind: threshold(untrained, kind) for kind in KINDS}
    return {
        name: sorted(
            (
                (role, share)
                for role, share in shares.items()
                if share >= at_least and share > chance[Head.named(name).kind][role]
            ),
            key=lambda pair: -pair[1],
        )
        for name, shares in scores.items()
    }
