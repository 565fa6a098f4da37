"""Table 1: cost, sequential steps and path length of each kind of layer."""
