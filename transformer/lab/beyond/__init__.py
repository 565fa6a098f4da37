"""Tasks other than translation."""
