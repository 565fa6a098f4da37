"""Pictures of the chapters on training and decoding."""
