"""What a training run needs, said before it starts: disk, memory, hours, and what they cost.

Paper: section 5.2 (hardware and schedule), section 6.1 (training cost)
"""

from dataclasses import dataclass

import torch

from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import ModelConfig, build_model
from transformer.recipes.presets import Preset
from transformer.training.config import TrainingConfig

#: Dollars for one GPU for one hour, where nobody says what it is. An assumption, not a quotation:
#: offers for one large GPU differ several times over.
ASSUMED_PRICE = 3.0

#: Bytes to download, and bytes of the text once unpacked, of the corpora that are large.
LARGE_CORPORA = {
    f"wmt14-{pair}": sizes
    for pairs, sizes in (
        (("en-de", "de-en"), (820_000_000, 1_360_000_000)),
        (("en-fr", "fr-en"), (7_800_000_000, 14_750_000_000)),
    )
    for pair in pairs
}


@dataclass(frozen=True)
class Requirements:
    """What a run needs. Sizes are in bytes; memory is estimated, disk is computed.

    Args:
        name: of the preset.
        parameters: of the model.
        download: at most; 0 if the corpus is here or small.
        text: disk for the unpacked text.
        folder: disk for the run at its fullest: weights of the checkpoints that are kept, the
            state to go on from (twice while it is written), and the model at the end.
        main_memory: for the text, its tokens, and the program.
        device_memory: for weights, gradients, Adam's two moments and activations; None if this
            package cannot estimate the activations of such a model.
        hours: that it takes; None if no step has been timed.
        devices: how many GPUs work at once.
        price: dollars for a device and an hour; None where there is nothing to pay.
        price_is_assumed: whether that is :data:`ASSUMED_PRICE`.

    Paper: sections 5.2 and 6.1
    """

    name: str
    parameters: int
    download: int
    text: int
    folder: int
    main_memory: int
    device_memory: int | None
    hours: float | None = None
    devices: int = 1
    price: float | None = None
    price_is_assumed: bool = False

    @property
    def disk(self) -> int:
        """Bytes of disk in all."""
        return self.download + self.text + self.folder

    @property
    def cost(self) -> float | None:
        """Dollars for all devices and hours; None if hours or price are unknown."""
        if self.hours is None or self.price is None:
            return None
        return self.hours * self.devices * self.price

    def lines(self) -> list[str]:
        """Say it in a few lines for a person."""
        disk = f"disk: {size(self.disk)}"
        if self.download:
            disk += (
                f" ({size(self.download)} of it to download at most, {size(self.text)} of text, "
                f"{size(self.folder)} for the run)"
            )
        memory = f"memory: about {size(self.main_memory)}"
        if self.device_memory is not None:
            memory += f", and about {size(self.device_memory)} on the device that trains"
        lines = [f"needs of {self.name}, {self.parameters:,} parameters", disk, memory]
        if self.hours is not None:
            many = f" on {self.devices} devices" if self.devices > 1 else ""
            time = duration(3600 * self.hours)
            lines.append(f"time: about {time}{many}, by the steps that were timed here")
        if self.cost is not None:
            reason = (
                "an assumption; --price gives another" if self.price_is_assumed else "as you said"
            )
            per = "an hour and device" if self.devices > 1 else "an hour"
            lines.append(f"cost: about ${self.cost:,.2f} at ${self.price:.2f} {per} ({reason})")
        return lines


def requirements(
    preset: Preset,
    parameters: int | None = None,
    seconds: float | None = None,
    devices: int = 1,
    price: float | None = None,
    on_gpu: bool | None = None,
    at_hand: bool = False,
) -> Requirements:
    """Say what a run of a preset needs, from its numbers and, if it was estimated, its time.

    Args:
        preset: the recipe.
        parameters: of the model; None counts them on a model without memory.
        seconds: that it takes on the device that is to train; None leaves time and cost out.
        devices: processes that train together.
        price: dollars for a device and an hour; None assumes one on a GPU, and none on a CPU.
        on_gpu: whether a GPU trains; None asks this machine.
        at_hand: the corpus is on this machine already.

    Raises:
        ValueError: if a number is negative or ``devices`` is not positive.

    Paper: sections 5.2 and 6.1
    """
    for name, value in dict(seconds=seconds, price=price).items():
        if value is not None and value < 0:
            raise ValueError(f"{name} must be at least 0, got {value}")
    if devices < 1:
        raise ValueError(f"devices must be at least 1, got {devices}")
    on_gpu = torch.cuda.is_available() if on_gpu is None else on_gpu
    count = _count(preset.model) if parameters is None else parameters
    download, text = LARGE_CORPORA.get(preset.corpus, (0, 0))
    if price is None and on_gpu:
        assumed, price = True, ASSUMED_PRICE
    else:
        assumed = False
    return Requirements(
        name=preset.name,
        parameters=count,
        download=0 if at_hand else download,
        text=0 if at_hand else text,
        folder=run_bytes(count, preset.training.keep_last),
        main_memory=2_000_000_000,  # a large text stays on disk
        device_memory=training_bytes(preset.model, preset.training, count, on_gpu),
        hours=None if seconds is None else seconds / 3600,
        devices=devices,
        price=price,
        price_is_assumed=assumed,
    )


def run_bytes(parameters: int, keep_last: int) -> int:
    """Bytes of disk that the folder of a run takes at its fullest.

    Args:
        parameters: of the model, 4 bytes each.
        keep_last: checkpoints that are kept. To them come the best one, one that is being written
            and the model at the end; and the state, three times the weights, twice while it is
            written.

    Paper: section 6.1 (5 and 20 checkpoints)
    """
    return 4 * parameters * (keep_last + 3) + 2 * 12 * parameters


def training_bytes(
    model: ModelConfig, training: TrainingConfig, parameters: int, on_gpu: bool = True
) -> int | None:
    """Estimate the bytes of device memory that training takes.

    Args:
        model: the model's configuration.
        training: the recipe.
        parameters: of the model.
        on_gpu: larger chunks of logits are made on a GPU.

    Returns:
        Weights, gradients, Adam's moments, the copies in half precision, the activations of one
        full batch, and one chunk of logits with its gradient. None for a model that is no
        Transformer.

    Paper: section 5.1 (25,000 tokens a step)
    """
    if not isinstance(model, TransformerConfig):
        return None
    half = training.precision != "fp32"
    fixed = (16 + 2 * half) * parameters
    rows = min(8192 if on_gpu else 256, training.batch_tokens)
    logits = rows * model.vocab_size * (8 + 4 * half) + 4 * model.vocab_size * model.d_model
    return fixed + activation_bytes(model, training) + logits


def activation_bytes(model: TransformerConfig, training: TrainingConfig) -> int:
    """Estimate the bytes that the forward pass of one full batch keeps for the backward pass.

    Each term counts the bytes of a position and layer, as PyTorch keeps them for the paper's
    choices: attention that never writes its weights out, and ReLU. Dropout on the weights of
    attention, or another activation, takes more.

    Args:
        model: the model's configuration.
        training: the recipe; ``batch_tokens`` positions on both sides are counted.
    """
    d, half = model.d_model, training.precision != "fp32"
    encoder_layers = model.num_layers
    decoder_layers = model.num_decoder_layers or model.num_layers
    hidden = (2 if half else 4) * model.d_ff
    # d_model numbers of an encoder layer; of a decoder layer; of a source position in each
    # decoder layer, its keys and values.
    encoder, decoder, memory = (24 * d, 37 * d, 6 * d) if half else (38 * d, 59 * d, 8 * d)
    encoder, decoder = encoder + hidden, decoder + hidden
    layers = encoder_layers * encoder + decoder_layers * (decoder + memory)
    if training.checkpoint_activations:
        # Each layer's input, and all of the layer that is being computed again.
        layers = 4 * d * (encoder_layers + decoder_layers) + max(encoder, decoder + memory)
    ends = 10 * d  # dropout's masks at the embeddings, the states and their gradient
    return training.batch_tokens * (layers + ends)


def size(count: int | float) -> str:
    """Say a number of bytes as a person would."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"


def duration(seconds: float) -> str:
    """Say a number of seconds as a person would."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:,.1f} hours"


def _count(config: ModelConfig) -> int:
    with torch.device("meta"):
        return build_model(config).num_parameters()
