"""What training costs: hardware time, as the paper counts it, and the arithmetic that is done.

Paper: section 6.1, Table 2
"""

from transformer.model.config import TransformerConfig
from transformer.model.layers import GATED


def hardware_flops(hours: float | int, devices: int = 8, tflops: float | int = 9.5) -> float:
    """Return time x devices x sustained rate, which Table 2 prints as FLOPs.

    It is what the hardware could have computed, and so an upper bound on what it did.

    Args:
        hours: duration of the training.
        devices: number of GPUs.
        tflops: rate of one of them, in 10^12 operations a second; the paper takes 9.5 for a P100.

    Raises:
        ValueError: if a number is not positive.

    Paper: section 6.1, footnote 5
    """
    for name, value in (("hours", hours), ("devices", devices), ("tflops", tflops)):
        if value <= 0:
            raise ValueError(f"{name} must be above 0, got {value}")
    return hours * 3600 * devices * tflops * 1e12


def training_flops(
    config: TransformerConfig, source_length: float | int, target_length: float | int
) -> float:
    """Count the operations of the matrix products of a training step, for one sentence pair.

    A multiplication and an addition are two. The backward pass costs twice the forward pass.
    Softmax, norms and the optimiser are left out: they are few. Masked scores are counted, since
    they are computed.

    Args:
        config: the model.
        source_length: tokens of the source sentence S; a mean will do.
        target_length: tokens of the target sentence T.

    Raises:
        ValueError: if a length is not positive.
    """
    for name, value in (("source_length", source_length), ("target_length", target_length)):
        if value <= 0:
            raise ValueError(f"{name} must be above 0, got {value}")
    S, T, d = source_length, target_length, config.d_model
    keys = config.num_heads * (config.d_k or d // config.num_heads)
    values = config.num_heads * (config.d_v or d // config.num_heads)
    asking = d * (keys + values)  # the projections of queries and output: multiply-adds a token
    answering = asking * (config.num_kv_heads or config.num_heads) // config.num_heads
    feed_forward = (3 if config.activation in GATED else 2) * d * config.d_ff
    encoder = S * (asking + answering + feed_forward + S * (keys + values))
    # Cross-attention projects its keys and values from the source, the rest from the target.
    decoder = T * (2 * asking + answering + feed_forward + (T + S) * (keys + values))
    decoder += S * answering
    layers = config.num_decoder_layers or config.num_layers
    forward = config.num_layers * encoder + layers * decoder + T * d * config.vocab_size
    return 3.0 * 2 * forward
