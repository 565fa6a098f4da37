"""The start page: translations and attention of the shipped models, and the clickable Figure 1."""

import re

import numpy as np

from transformer.inference.translator import Translator
from transformer_book.architecture import Architecture
from transformer_book.interactive import AttentionMap
from transformer_book.tables import Table

# None is in the training text, except the first in the French one. The page says so, and which
# translations are wrong.
SENTENCES = (
    "Where is the train station?",
    "If it rains tomorrow, we will stay at home.",
    "She reads a book every evening before she goes to bed.",
    "I would have helped you if I had known that.",
    "The dog that I saw yesterday belongs to my neighbor.",
    "Attention is all you need.",
)
LOOKED_INTO = "I have never seen such a beautiful garden."
_ALT = (
    "Cross-attention in the last layer while it writes the German sentence: Garten looks at "
    "garden, schönen at beautiful, and gesehen, at the end, at seen, far to the left."
)


def texts() -> dict[str, str]:
    """Make the texts of the page by name."""
    german = Translator.from_pretrained("tatoeba-en-de")
    french = Translator.from_pretrained("tatoeba-en-fr")
    found = [translator.translate(list(SENTENCES)) for translator in (german, french)]
    table = Table(["English", "German", "French"], [*zip(SENTENCES, *found, strict=True)])
    figure_1 = Architecture()._repr_mimebundle_()["text/html"]
    return {
        "translations": table.markdown(),
        "attention": attention_map(german)._repr_mimebundle_()["text/html"],
        "figure-1": re.sub(r'href="(\d\d_)', r'href="../notebooks/\1', figure_1),
    }


def attention_map(translator: Translator) -> AttentionMap:
    """Return the cross-attention from each German token to the English ones."""
    found = translator.attention(LOOKED_INTO, translator(LOOKED_INTO))
    maps, names = [], []
    for layer, heads in reversed([*enumerate(found.cross, 1)]):
        maps += [heads.mean(axis=0), *heads]
        names.append(f"layer {layer}, mean of its heads")
        names += [f"layer {layer}, head {head}" for head in range(1, len(heads) + 1)]
    # Each row is labelled with the token that it predicts.
    keys, queries = (
        [token.lstrip("▁") for token in tokens]
        for tokens in (found.source_tokens, found.predicted_tokens)
    )
    weights = np.stack(maps).round(3)
    return AttentionMap(weights, queries, keys, names, _ALT, queries.index("gesehen"))
