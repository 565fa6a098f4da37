"""Pictures of mechanisms, drawn without any data: one module per chapter."""
