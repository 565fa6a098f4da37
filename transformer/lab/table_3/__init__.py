"""Table 3: which choices of architecture matter."""
