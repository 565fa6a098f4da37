"""Text, tokens and batches.

Paper: section 5.1

- :mod:`transformer.data.corpora`: parallel corpora by name, split into training and test text.
- :mod:`transformer.data.parallel`: splits, corpora, and any two aligned text files.
- :mod:`transformer.data.tokenizer`: byte-pair encoding shared by both languages.
- :mod:`transformer.data.batching`: batches by token budget, reproducible and resumable.
"""
