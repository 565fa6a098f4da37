"""Decoding, translation from text to text, and its scores (section 6.1)."""

from transformer.inference.decoding import Hypothesis, SearchOptions, beam_search, greedy_search
from transformer.inference.translator import AttentionWeights, Translation, Translator

__all__ = [
    "AttentionWeights",
    "Hypothesis",
    "SearchOptions",
    "Translation",
    "Translator",
    "beam_search",
    "greedy_search",
]
