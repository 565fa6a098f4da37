"""How fast the library is, and what that costs."""
