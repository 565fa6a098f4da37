"""The training recipe: its parts, their effect, and the choices that the paper leaves open."""
