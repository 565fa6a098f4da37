"""Make what is missing from the record of a study.

    python -m transformer_book.studies.record why_attend

Most take minutes on one CPU core, and `left_out` takes two hours. Ctrl-C stops it, and the
same command continues, with the same version of the code; delete the file to record anew. Records
of the shipped weights (decoding, what_heads_learn) are made anew when those are replaced.
"""

from transformer_book.studies.recording import record_study

#: The studies, with the number of decimals that each record keeps.
STUDIES = {
    "one_page": 4,
    "why_attend": 4, "additive": 4, "heads": 5, "masks": 4, "positions": 4, "feed_forward": 4,
    "residuals": None, "embeddings": 4, "assembly": None, "splits": 4,
    "recipe": None, "recipe.warm_up": 4, "decoding": None, "layer_types": None,
    "parsing": None, "parsing.rates": 4, "what_heads_learn": 5, "what_heads_learn.french": 5,
    "left_out": None, "memory": 5, "sparse.long_steps": 5,
    "sparse.hops": 4, "sparse.segments": 4, "sparse.truncation": 4, "other_tasks": 4,
}  # fmt: skip


if __name__ == "__main__":
    record_study(__doc__, STUDIES)
