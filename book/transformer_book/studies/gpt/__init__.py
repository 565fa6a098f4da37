"""From here to GPT: a decoder alone, on the toy and on German sentences."""
