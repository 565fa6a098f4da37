"""Make the runs of a study that are missing from its record.

    python -m transformer_book.studies.record why_attend.bottleneck

Ctrl-C stops it, and the same command continues.
"""

from transformer_book.studies.recording import record_study

#: The studies, with the number of decimals that each record keeps.
STUDIES = {
    "why_attend.bottleneck": 4,
    "heads.lookup_study": 5,
    "masks.unmasked": 4,
    "positions.left_neighbour": 4,
    "feed_forward.facts": 4,
    "embeddings.embedding_scale": 4,
    "assembly.planted": None,
    "memory.half_precision": 5,
    "sparse.long_steps": 5,
    "sparse.hops": 4,
    "sparse.segments": 4,
    "sparse.truncation": 4,
}


if __name__ == "__main__":
    record_study(__doc__, STUDIES)
