"""Speed and scale, measured and estimated."""
