"""The same study of the English-French model; its corpus must be in the data directory."""

from functools import partial

from transformer_book.studies.what_heads_learn import study

RECORD, heading, fill = study.FRENCH, partial(study.heading, "tatoeba-en-fr"), study.fill
