"""Pictures of mechanisms, one module per chapter."""

# The sentence that runs through the book.
SENTENCE = "The animal didn't cross the street because it was too tired."
