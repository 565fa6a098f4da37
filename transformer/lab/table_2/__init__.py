"""Table 2: recorded translation runs beside published scores."""
