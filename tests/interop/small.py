"""A Transformer with random weights, and its tokenizer."""

import torch

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer

TEXTS = [
    "Where is the train station?",
    "The weather is fine today, and we go to the lake.",
    "Zwei Hunde rennen am Strand, und das Wetter ist schön.",
    "I don't know. It's 12:30 o'clock!",
]


def make(tokens: int = 300, **changes) -> Translator:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(TEXTS * 3, tokens)
    small = dict(vocab_size=tokens, d_model=16, d_ff=28, num_heads=4, num_layers=2)
    model = Transformer(TransformerConfig.from_dict(small | changes)).eval()
    with torch.no_grad():  # otherwise biases are 0 and gains 1
        for parameter in model.parameters():
            parameter += (0.3 if parameter.dim() == 1 else 0.1) * torch.randn_like(parameter)
    return Translator(model, tokenizer)
