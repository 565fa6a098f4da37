"""Attention from pronouns to the name they refer to, over many sentences.

The corpus has many sentences in which "Tom" is followed by "he", "his" or "him". A head that
resolves pronouns attends from the pronoun to the name more than other words do from the same
distance. The comparison at equal distance matters: a head that looks a fixed number of positions
back attends to the name by position alone.

Paper: section 4, Figure 4 (heads apparently involved in anaphora resolution)
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from transformer.inference.stepwise import evaluation_mode
from transformer.inference.translator import Translator
from transformer.model.attention import record_attention
from transformer.model.transformer import Transformer

#: Masculine pronouns as the tokenizer of the shipped model writes them.
HE = ("▁he", "▁his", "▁him", "▁himself")


@dataclass(frozen=True)
class NameLooks:
    """Attention weights from later words to a name, in the encoder.

    Paper: section 4, Figure 4
    """

    weights: Float[np.ndarray, "looks layers H"]
    is_pronoun: np.ndarray
    distance: Int[np.ndarray, " looks"]
    sentence: Int[np.ndarray, " looks"]

    def excess(self) -> Float[np.ndarray, "layers H"]:
        """Return the mean weight from pronouns minus that of other words at the same distance.

        Distances without both kinds are ignored; the others are weighted by their pronouns.
        """
        return self._excess(np.ones(len(self.distance)))

    def excess_draws(self, samples: int = 200, seed: int = 0) -> np.ndarray:
        """Return bootstrap samples of :meth:`excess` over sentences.

        Returns:
            (samples, layers, H); NaN for a sample in which no distance has both kinds.
        """
        random, n = np.random.default_rng(seed), int(self.sentence.max()) + 1
        times = random.multinomial(n, np.full(n, 1 / n), size=samples)
        return np.stack([self._excess(row[self.sentence].astype(float)) for row in times])

    def _excess(self, times: np.ndarray) -> np.ndarray:
        total, count = np.zeros(self._flat.shape[1]), 0.0
        for distance in np.unique(self.distance[self.is_pronoun]):
            here = self.distance == distance
            ours, theirs = (
                np.where(here & m, times, 0.0) for m in (self.is_pronoun, ~self.is_pronoun)
            )
            if ours.sum() and theirs.sum():
                gap = ours @ self._flat / ours.sum() - theirs @ self._flat / theirs.sum()
                total, count = total + ours.sum() * gap, count + ours.sum()
        mean = total / count if count else np.full_like(total, np.nan)
        return mean.reshape(self.weights.shape[1:])

    @property
    def _flat(self) -> np.ndarray:
        return self.weights.reshape(len(self.weights), -1)


@torch.inference_mode()
def looks_at_name(
    translator: Translator,
    sentences: Sequence[str],
    name: str = "Tom",
    pronouns: Collection[str] = HE,
    batch_size: int = 64,
) -> NameLooks:
    """Collect the weights from all later words to a name.

    Paper: section 4, Figure 4
    """
    tokenizer, model = translator.tokenizer, translator.model
    assert isinstance(model, Transformer)
    rows = [tokenizer.encode(sentence) for sentence in sentences if sentence.startswith(name)]
    labels = [tokenizer.tokens(row) for row in rows]
    kept = [i for i, row in enumerate(labels) if row[0] == name and set(pronouns) & set(row)]
    if not kept:
        raise ValueError(f"no sentence begins with {name!r} and holds one of {sorted(pronouns)}")
    kept.sort(key=lambda i: len(rows[i]))
    weights: list[np.ndarray] = []
    is_pronoun: list[bool] = []
    distance: list[int] = []
    sentence: list[int] = []
    for start in range(0, len(kept), batch_size):
        some = kept[start : start + batch_size]
        source = translator._pad([[*rows[i], tokenizer.eos_id] for i in some])
        with evaluation_mode(model), record_attention(model) as recorded:
            model.encode(source)
        stacked = torch.stack(recorded.encoder, dim=1).numpy()  # (B, layers, H, S, S)
        for b, i in enumerate(some):
            words = labels[i][1:]
            weights.append(np.moveaxis(stacked[b, :, :, 1 : len(words) + 1, 0], -1, 0))
            is_pronoun += [word in pronouns for word in words]
            distance += range(1, len(words) + 1)
            sentence += [start + b] * len(words)
    return NameLooks(
        np.concatenate(weights), np.array(is_pronoun), np.array(distance), np.array(sentence)
    )
