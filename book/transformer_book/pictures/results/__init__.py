"""Pictures of the chapters that repeat the paper's results."""
