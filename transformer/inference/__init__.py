"""Decoding, translation from text to text, and its scores (section 6.1)."""

from transformer.inference.decoding import Hypothesis, beam_search, greedy_search
from transformer.inference.options import SearchOptions
from transformer.inference.results import AttentionWeights, Translation
from transformer.inference.translator import Translator

__all__ = [
    "AttentionWeights",
    "Hypothesis",
    "SearchOptions",
    "Translation",
    "Translator",
    "beam_search",
    "greedy_search",
]
