"""Greedy and beam search, traced and measured."""
