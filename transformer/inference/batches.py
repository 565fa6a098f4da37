"""Search for the translations of many encoded sentences, batch by batch."""

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm.auto import tqdm

from transformer.data.model_tokenizers import TokenizerLike
from transformer.data.progress import in_live_notebook
from transformer.inference.decoding import beam_search
from transformer.inference.options import SearchOptions
from transformer.inference.results import Translation
from transformer.model.base import TranslationModel


def search_all(
    model: TranslationModel,
    tokenizer: TokenizerLike,
    sources: list[list[int]],
    options: SearchOptions,
    batch_size: int = 64,
    progress: bool | None = None,
) -> list[list[Translation]]:
    """Return up to ``n_best`` translations of each sentence, best first.

    Args:
        model: the model; its dropout is off during the search.
        tokenizer: that of the target language.
        sources: ids of each sentence with EOS; one of EOS alone gets an empty translation.
        options: search options.
        batch_size: sentences to translate at once.
        progress: show a progress bar; None shows one in a live notebook, after a second.
    """
    # The longest first, so that a run out of memory fails at once.
    order = sorted(
        (i for i, ids in enumerate(sources) if len(ids) > 1),
        key=lambda i: len(sources[i]),
        reverse=True,
    )
    translations = [[Translation("")] for _ in sources]
    with tqdm(
        total=len(order),
        unit=" sentences",
        disable=not (in_live_notebook() if progress is None else progress),
        delay=1 if progress is None else 0,
        leave=bool(progress),
    ) as bar:
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            found = beam_search(
                model,
                pad(model, [sources[i] for i in batch]),
                options.beam_size,
                options.alpha,
                options.max_length,
                n_best=options.n_best or 1,
                penalty=options.penalty,
            )
            flat = [hypothesis.tokens for best in found for hypothesis in best]
            texts = iter(tokenizer.decode_batch(flat))
            for i, best in zip(batch, found, strict=True):
                translations[i] = [
                    Translation(
                        next(texts).strip(), h.score, h.log_probability, h.finished, h.tokens
                    )
                    for h in best
                ]
            bar.update(len(batch))
    return translations


def pad(model: TranslationModel, rows: list[list[int]]) -> Int[Tensor, "B S"]:
    """Return rows of ids as a batch on the model's device, padded at the end."""
    tensors = [torch.tensor(row) for row in rows]
    padded = pad_sequence(tensors, batch_first=True, padding_value=model.config.pad_id)
    return padded.to(next(model.parameters()).device)
