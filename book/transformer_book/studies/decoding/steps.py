"""A complete record of a beam search: every continuation that it considered, and its fate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.model.base import evaluation_mode
from transformer.model.transformer import Transformer
from transformer_book.studies.decoding.trace import Penalty, SearchTrace, trace_search

Fate = Literal["alive", "ended", "dropped"]


@dataclass(frozen=True)
class Continuation:
    """A text that the search considered: a beginning of the step before, and one more token."""

    parent: int  #: its index among the continuations of the step before; -1 at the first step.
    tokens: tuple[int, ...]
    log_probability: float
    #: "alive" if the next step continues it, "ended" if its last token is EOS, "dropped" if the
    #: beam had no room for it.
    fate: Fate


@dataclass(frozen=True)
class RecordedSearch:
    """A beam search of one sentence, step by step."""

    steps: list[list[Continuation]]
    trace: SearchTrace
    penalties: list[Penalty]


@torch.inference_mode()
def record_search(
    model: Transformer,
    source: Int[Tensor, "1 S"],
    beam_size: int = 4,
    penalties: Sequence[Penalty] = ((0.0, "gnmt"), (0.6, "gnmt")),
) -> RecordedSearch:
    """Search for the translation of one sentence until it is settled; keep all continuations."""
    [trace] = trace_search(model, source, beam_size, penalties)
    config = model.config
    steps: list[list[Continuation]] = []
    beginnings: list[tuple[int, tuple[int, ...], float]] = [(-1, (), 0.0)]
    with evaluation_mode(model):
        memory = model.encode(source)
        for _ in trace.alive:
            grown = []
            for place, tokens, total in beginnings:
                # Without a cache: slower than the package's search, but simpler.
                given = source.new_tensor([[config.bos_id, *tokens]])
                logits = model.decode(given, memory, source)[0, -1].float()
                logs = logits.log_softmax(dim=-1)
                logs[[config.pad_id, config.bos_id]] = -math.inf
                best = logs.topk(min(2 * beam_size, len(logs)))
                grown += [
                    (place, (*tokens, token), total + log_p)
                    for log_p, token in zip(
                        best.values.tolist(), best.indices.tolist(), strict=True
                    )
                ]
            grown = sorted(grown, key=lambda entry: -entry[2])[: 2 * beam_size]
            step: list[Continuation] = []
            beginnings = []
            for number, (place, tokens, total) in enumerate(grown):
                fate: Fate = "dropped"
                if tokens[-1] == config.eos_id:
                    fate = "ended"
                elif len(beginnings) < beam_size:
                    fate = "alive"
                    beginnings.append((number, tokens, total))
                step.append(Continuation(place, tokens, total, fate))
            steps.append(step)
    return RecordedSearch(steps, trace, list(penalties))
