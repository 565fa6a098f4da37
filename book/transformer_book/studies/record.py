"""Make what is missing from the record of a study.

    python -m transformer_book.studies.record why_attend.bottleneck

Most take minutes on one CPU core, and `left_out.choices` takes two hours. Ctrl-C stops it, and the
same command continues, with the same version of the code; delete the file to record anew. Records
of the shipped weights (decoding, splits, what_heads_learn) are made anew when those are replaced.
"""

from transformer_book.studies.recording import record_study

#: The studies, with the number of decimals that each record keeps.
STUDIES = {
    "one_page.study": 4,
    "why_attend.bottleneck": 4,
    "additive.recall": 4,
    "heads.lookup_study": 5,
    "masks.unmasked": 4,
    "positions.left_neighbour": 4,
    "feed_forward.facts": 4,
    "residuals.depth": None,
    "residuals.warm_up": 4,
    "embeddings.embedding_scale": 4,
    "assembly.planted": None,
    "splits.leakage": 4,
    "recipe.study": None,
    "recipe.warm_up": 4,
    "decoding.searches": None,
    "layer_types.study": None,
    "layer_types.short": None,
    "layer_types.threads": None,
    "what_heads_learn.study": 5,
    "what_heads_learn.questions": 4,
    "left_out.choices": None,
    "memory.half_precision": 5,
    "sparse.long_steps": 5,
    "sparse.hops": 4,
    "sparse.segments": 4,
    "sparse.truncation": 4,
    "other_tasks.study": 4,
}


if __name__ == "__main__":
    record_study(__doc__, STUDIES)
