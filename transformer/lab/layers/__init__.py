"""Scores, depth and gradients of single layers."""
