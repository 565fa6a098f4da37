"""The configuration of a Transformer: one frozen dataclass, with the paper's models by name."""

from dataclasses import dataclass
from typing import Any, Literal

from transformer.settings import NOT_NEGATIVE, RATE, Settings, require_fields, whole

NormPlacement = Literal["post", "pre"]
NormKind = Literal["layer", "rms"]
Activation = Literal["relu", "gelu", "silu", "swiglu", "geglu"]
Positions = Literal["sinusoidal", "sinusoidal-t2t", "learned", "rotary", "none"]
FirstInput = Literal["token", "zeros"]
Sharing = Literal["three-way", "target", "none"]
Init = Literal["fused", "separate", "glorot"]


def require_heads(
    d_model: int, num_heads: int, d_k: int | None, d_v: int | None, num_kv_heads: int | None
) -> None:
    """Raise ValueError unless d_model is divisible by num_heads, and that by num_kv_heads."""
    if None in (d_k, d_v) and d_model % num_heads:
        raise ValueError(
            "d_model must be divisible by num_heads unless d_k and d_v are given: "
            f"got d_model={d_model}, num_heads={num_heads}"
        )
    if num_kv_heads is not None and (num_kv_heads < 1 or num_heads % num_kv_heads):
        raise ValueError(
            "num_heads must be divisible by num_kv_heads, "
            f"got num_heads={num_heads}, num_kv_heads={num_kv_heads}"
        )


@dataclass(frozen=True)
class TransformerConfig(Settings):
    """Sizes and options of a :class:`~transformer.model.transformer.Transformer`.

    The defaults are the paper's base model. Where the paper is silent they follow the code that
    produced its results; the annotated paper in the book lists each such choice.

    Args:
        vocab_size: number of tokens V, source and target together.
        d_model: size of the vectors between sub-layers.
        d_ff: size of the feed-forward network's hidden layer.
        num_heads: number of heads h.
        num_kv_heads: number of heads of keys and values, each shared by a group of query heads;
            ``num_heads`` if None, as in the paper.
        d_k: size of a head's queries and keys; d_model / num_heads if None.
        d_v: size of a head's values; d_model / num_heads if None.
        num_layers: number of encoder layers N, and of decoder layers unless
            ``num_decoder_layers`` is set.
        num_decoder_layers: number of decoder layers; ``num_layers`` if None.
        dropout: P_drop on each sub-layer's output and on the sum of embedding and position.
        attention_dropout: on attention weights. 0 in the paper's translation models.
        activation_dropout: on the feed-forward network's hidden layer; the paper has none.
        activation: "relu" as in the paper, "gelu" or "silu"; "swiglu" and "geglu" have a gate, a
            third matrix of the feed-forward network.
        norm: "post" normalises after the residual sum, as in the paper; "pre" before each
            sub-layer, and once more at the end of each stack.
        norm_kind: "layer" as in the paper, or "rms", which does not subtract the mean.
        final_norm: one more norm at the end of each stack; None means True for pre-norm only. True
            with "post" is what ``torch.nn.Transformer`` does.
        positions: "sinusoidal" as in the paper, "sinusoidal-t2t" as in its code, "learned",
            "rotary", which rotates queries and keys of self-attention, or "none".
        max_length: longest sequence that learned positions can take. Sinusoids have no limit.
        attention_bias: biases on the attention's projections. The equations write none; the
            parameter counts of Table 3 need them.
        attention_scale: factor on the scores; 1 / sqrt(d_k) if None.
        sharing: "three-way" uses one matrix for both embeddings and the output projection,
            "target" for the decoder's two, "none" for none of them.
        init: "fused" is Glorot-uniform with W^Q, W^K, W^V drawn as one matrix, as in the published
            code; "separate" draws them one by one; "glorot" does so and uses Glorot for the
            embeddings too, which leaves them small compared with the positions.
        first_input: the decoder's input before the first token: "token" is the embedding of
            ``bos_id``, "zeros" is a vector of zeros, as in the published code.
        layer_norm_eps: added to the variance; 1e-6 as in the published code.
        pad_id: id of padding.
        bos_id: id that begins a decoder input.
        eos_id: id that ends a sentence.

    Raises:
        TypeError: if there is no such field.
        ValueError: if a value is of another type or out of range, or two do not fit together.

    Paper: sections 3 and 6.2, Table 3
    """

    vocab_size: int
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    num_kv_heads: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    num_layers: int = 6
    num_decoder_layers: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: Activation = "relu"
    norm: NormPlacement = "post"
    norm_kind: NormKind = "layer"
    final_norm: bool | None = None
    positions: Positions = "sinusoidal"
    max_length: int = 1024
    attention_bias: bool = True
    attention_scale: float | None = None
    sharing: Sharing = "three-way"
    init: Init = "fused"
    first_input: FirstInput = "token"
    layer_norm_eps: float = 1e-6
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    _kind = "model field"
    _numbers = dict(
        vocab_size=whole(1, 10_000_000),
        max_length=whole(1, 1_000_000),  # its sinusoids are computed in advance
        **dict.fromkeys(("d_model", "d_ff", "d_k", "d_v"), whole(1, 1_000_000)),
        **dict.fromkeys(("num_heads", "num_kv_heads"), whole(1, 1_000_000)),
        **dict.fromkeys(("num_layers", "num_decoder_layers"), whole(1, 10_000)),
        **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), RATE),
        **dict.fromkeys(("pad_id", "bos_id", "eos_id"), whole(0)),
        layer_norm_eps=NOT_NEGATIVE,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pad_id", "bos_id", "eos_id"):
            if (value := getattr(self, name)) >= self.vocab_size:
                raise ValueError(f"{name} must be below vocab_size {self.vocab_size}, got {value}")
        if len({self.pad_id, self.bos_id, self.eos_id}) < 3:
            raise ValueError(
                f"pad_id, bos_id and eos_id must differ, "
                f"got {self.pad_id}, {self.bos_id}, {self.eos_id}"
            )
        require_heads(self.d_model, self.num_heads, self.d_k, self.d_v, self.num_kv_heads)
        d_k = self.d_k or self.d_model // self.num_heads
        if self.positions == "rotary" and d_k % 2:
            raise ValueError(f"d_k must be even for rotary positions, got {d_k}")

    @classmethod
    def base(cls, vocab_size: int = 37_000, **changes: Any) -> "TransformerConfig":
        """The base model: 6 layers, d_model 512, d_ff 2048, 8 heads, dropout 0.1."""
        return cls.from_dict(dict(vocab_size=vocab_size, **changes))

    @classmethod
    def big(cls, vocab_size: int = 37_000, **changes: Any) -> "TransformerConfig":
        """The big model: d_model 1024, d_ff 4096, 16 heads, dropout 0.3."""
        big = dict(d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)
        return cls.from_dict(dict(vocab_size=vocab_size) | big | changes)

    @classmethod
    def tiny(cls, vocab_size: int = 10_000, **changes: Any) -> "TransformerConfig":
        """A model for small corpora: 4 layers, d_model 128, d_ff 256, 4 heads, dropout 0.3.

        Reference: Transformer-Tiny of Wu et al. 2021, made for Multi30K.
        """
        tiny = dict(d_model=128, d_ff=256, num_heads=4, num_layers=4, dropout=0.3)
        return cls.from_dict(dict(vocab_size=vocab_size) | tiny | changes)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TransformerConfig":
        """Make a configuration from field names and values, such as those of a ``config.json``.

        Raises:
            ValueError: if a name is no field, or the values are of another architecture.
        """
        architecture = values.get("architecture", "transformer")
        if architecture != "transformer":
            raise ValueError(f"architecture must be 'transformer', got {architecture!r}")
        besides = ("architecture", "tokenizer_checksum")
        values = {name: value for name, value in values.items() if name not in besides}
        require_fields(cls, values)
        return cls(**values)
