"""A beam search written down in full: every continuation that it looked at, and what became of it.

:mod:`transformer.lab.search.trace` keeps what is needed to judge a search. This keeps what
is needed to show one.

Paper: section 6.1
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.inference.stepwise import evaluation_mode
from transformer.lab.search.trace import Penalty, SearchTrace, trace_search
from transformer.model.transformer import Transformer

Fate = Literal["alive", "ended", "dropped"]


@dataclass(frozen=True)
class Continuation:
    """A text that the search looked at: a beginning of the step before, and one token more.

    Args:
        parent: its place among the continuations of the step before; -1 at the first step.
        tokens: token ids from the first on, without BOS; the last is EOS if it ended.
        log_probability: natural logarithm of the model's probability of these tokens.
        fate: "alive" if the next step goes on with it, "ended" if its last token is EOS,
            "dropped" if the beam had no room for it.

    Paper: section 6.1
    """

    parent: int
    tokens: tuple[int, ...]
    log_probability: float
    fate: Fate


@dataclass(frozen=True)
class RecordedSearch:
    """A beam search of one sentence, step by step.

    Args:
        steps: for each step, the continuations that it looked at, the most probable first.
        trace: the same search, as :func:`~transformer.lab.search.trace.trace_search`
            wrote it down.
        penalties: (alpha, formula) of the length penalties under which its result is settled.

    Paper: section 6.1
    """

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
    """Search for the translation of one sentence, and keep all that was seen.

    It goes on until the result is settled under every penalty. Each step looks at the
    2 * beam_size most probable continuations, as ``beam_search`` does.

    Args:
        model: the model; it is switched to evaluation mode for the duration of the search.
        source: token ids of one sentence.
        beam_size: beginnings to follow, from 2 on.
        penalties: (alpha, formula) of every length penalty of interest, at least one.

    Raises:
        ValueError: if ``beam_size`` is below 2 or there is no penalty.

    Paper: section 6.1
    """
    if beam_size < 2:
        raise ValueError(f"beam_size must be at least 2, got {beam_size}")
    if not penalties:
        raise ValueError("penalties must hold at least one, got none")
    [trace] = trace_search(model, source, beam_size, penalties)
    config = model.config
    steps: list[list[Continuation]] = []
    beginnings: list[tuple[int, tuple[int, ...], float]] = [(-1, (), 0.0)]
    with evaluation_mode(model):
        memory = model.encode(source)
        for _ in trace.alive:
            grown = []
            for place, tokens, total in beginnings:
                # Without a cache: slower than the package's search, and plainly the same.
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
