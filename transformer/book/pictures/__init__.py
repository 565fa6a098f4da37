"""Pictures of mechanisms, one module per chapter."""
