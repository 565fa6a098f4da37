"""What a training run needs: disk, memory, hours, and the arithmetic behind them."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from transformer.data.batching import EncodedPairs, Sentences, TokenBatches
from transformer.data.parallel import Split
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.layers import GATED
from transformer.recipes.architectures import ModelConfig, count_parameters
from transformer.recipes.presets import Preset
from transformer.training.config import TrainingConfig
from transformer.training.curve import duration
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

#: Bytes to download, and bytes of the unpacked text, of the large corpora.
LARGE_CORPORA = {
    "wmt14-en-de": (820_000_000, 1_360_000_000),
    "wmt14-de-en": (820_000_000, 1_360_000_000),
    "wmt14-en-fr": (7_800_000_000, 14_750_000_000),
    "wmt14-fr-en": (7_800_000_000, 14_750_000_000),
}

#: Mean length of a sentence of WMT's text, in tokens.
SENTENCE = 28

_SAMPLE = 64  # sentences to translate when the search is timed


def hardware_flops(hours: float | int, devices: int = 8, tflops: float | int = 9.5) -> float:
    """Return time x devices x sustained rate, which Table 2 prints as FLOPs.

    This is what the hardware could have computed, an upper bound on what it did compute. The paper
    takes 9.5 TFLOPS for a P100.
    """
    return hours * 3600 * devices * tflops * 1e12


def training_flops(
    config: TransformerConfig, source_length: float | int, target_length: float | int
) -> float:
    """Count the operations of the matrix products of a training step, for one sentence pair.

    A multiplication and an addition are two operations. The backward pass costs twice the forward
    pass. Masked scores are counted because they are computed; softmax, norms and the optimizer are
    few operations and are left out. Lengths are in tokens; they may be means.
    """
    S, T, d = source_length, target_length, config.d_model
    keys = config.num_heads * (config.d_k or d // config.num_heads)
    values = config.num_heads * (config.d_v or d // config.num_heads)
    # Multiply-adds per token: the projections W^Q and W^O, then W^K and W^V.
    queries = d * (keys + values)
    memory = queries * (config.num_kv_heads or config.num_heads) // config.num_heads
    feed_forward = (3 if config.activation in GATED else 2) * d * config.d_ff
    encoder = S * (queries + memory + feed_forward + S * (keys + values))
    # Cross-attention projects its keys and values from the source, the rest from the target.
    decoder = T * (2 * queries + memory + feed_forward + (T + S) * (keys + values)) + S * memory
    layers = config.num_decoder_layers or config.num_layers
    forward = config.num_layers * encoder + layers * decoder + T * d * config.vocab_size
    return 3.0 * 2 * forward


@dataclass(frozen=True)
class Requirements:
    """What a run needs. Sizes are in bytes; disk is computed, memory is estimated."""

    name: str  #: of the preset
    parameters: int
    download: int  #: upper bound; 0 if the corpus is small or already on this machine
    text: int  #: disk for the unpacked text
    folder: int  #: disk for the run folder at its fullest
    main_memory: int  #: for the program, the tokens, and copies that wait to be written
    device_memory: int | None  #: of training; None for models other than Transformers
    hours: float | None = None  #: None if no step has been timed
    devices: int = 1  #: GPUs that train together

    @property
    def disk(self) -> int:
        """Bytes of disk in all."""
        return self.download + self.text + self.folder

    def lines(self) -> list[str]:
        """Format the needs as a few lines of text."""
        disk, memory = f"disk: {size(self.disk)}", f"memory: about {size(self.main_memory)}"
        if self.download:
            disk += f" ({size(self.download)} of it to download at most, "
            disk += f"{size(self.text)} of text, {size(self.folder)} for the run)"
        if self.device_memory is not None:
            memory += f", and about {size(self.device_memory)} for weights, gradients and "
            memory += "activations"
        lines = [f"needs of {self.name}, {self.parameters:,} parameters", disk, memory]
        if self.hours is not None:
            time = duration(3600 * self.hours) + f" on {self.devices} devices" * (self.devices > 1)
            lines.append(f"time: about {time}, by the steps that were timed here")
        return lines


def requirements(
    preset: Preset,
    parameters: int | None = None,
    seconds: float | None = None,
    devices: int = 1,
    on_gpu: bool | None = None,
    at_hand: bool = False,
) -> Requirements:
    """Work out what a run of a preset needs.

    Args:
        preset: the recipe.
        parameters: of the model; None counts them.
        seconds: estimated duration; None leaves the time out.
        devices: processes that train together.
        on_gpu: whether a GPU trains; None looks for one on this machine.
        at_hand: the corpus is already on this machine.
    """
    if parameters is None:
        parameters = count_parameters(preset.model)
    on_gpu = torch.cuda.is_available() if on_gpu is None else on_gpu
    download, text = (0, 0) if at_hand else LARGE_CORPORA.get(preset.corpus, (0, 0))
    return Requirements(
        name=preset.name,
        parameters=parameters,
        download=download,
        text=text,
        folder=run_bytes(parameters, preset.training.keep_last),
        # A large text stays on disk. Copies: the best weights, a checkpoint, and Adam's moments.
        main_memory=2_000_000_000 + 16 * parameters,
        device_memory=training_bytes(preset.model, preset.training, parameters, on_gpu),
        hours=None if seconds is None else seconds / 3600,
        devices=devices,
    )


def run_bytes(parameters: int, keep_last: int) -> int:
    """Return the bytes of disk that a run folder takes at its fullest.

    It then holds ``keep_last`` checkpoints, the best one, the final model and a checkpoint being
    written, and twice the training state, which is three times as large as the weights.
    """
    return 4 * parameters * (keep_last + 3) + 2 * 12 * parameters


def require_disk(needs: Mapping[Path, int]) -> None:
    """Raise OSError if a disk lacks the bytes that folders on it will hold in all."""
    missing: dict[int, int] = {}  # by disk
    for folder, needed in needs.items():
        folder = folder.absolute()
        for path in folder.rglob("*"):
            with suppress(OSError):  # another program may have removed it
                needed -= path.stat().st_size
        present = next(parent for parent in (folder, *folder.parents) if parent.exists())
        disk = present.stat().st_dev
        missing[disk] = missing.get(disk, 0) + max(0, needed)
        free = shutil.disk_usage(present).free
        if missing[disk] > free:
            raise OSError(
                f"{folder} needs {size(missing[disk])} more, but its disk has {size(free)} free; "
                f"make room, or choose another folder"
            )


def training_bytes(
    model: ModelConfig, training: TrainingConfig, parameters: int, on_gpu: bool = True
) -> int | None:
    """Estimate the device memory of training, in bytes; None for models other than Transformers.

    Counted are weights, gradients, Adam's moments, the copies in half precision, the activations
    of one full batch, and one chunk of logits with its gradient (larger chunks on a GPU).
    """
    if not isinstance(model, TransformerConfig):
        return None
    half = training.precision != "fp32"
    rows = min(8192 if on_gpu else 256, training.batch_tokens)
    logits = rows * model.vocab_size * (8 + 4 * half) + 4 * model.vocab_size * model.d_model
    return (16 + 2 * half) * parameters + activation_bytes(model, training) + logits


def activation_bytes(model: TransformerConfig, training: TrainingConfig) -> int:
    """Estimate the bytes that the forward pass of one full batch keeps for the backward pass.

    The factors are bytes per position and layer, as PyTorch keeps them for the paper's choices:
    fused attention and ReLU. Dropout on attention weights or another activation takes more.
    """
    d, half = model.d_model, training.precision != "fp32"
    decoder_layers = model.num_decoder_layers or model.num_layers
    hidden = (2 if half else 4) * model.d_ff
    # An encoder layer; a decoder layer; the keys and values of the memory in each decoder layer.
    encoder, decoder, memory = (24 * d, 36 * d, 6 * d) if half else (36 * d, 54 * d, 8 * d)
    encoder, decoder = encoder + hidden, decoder + hidden
    layers = model.num_layers * encoder + decoder_layers * (decoder + memory)
    if training.checkpoint_activations:
        # The input of every layer, and all of the one layer that is being recomputed.
        layers = 4 * d * (model.num_layers + decoder_layers) + max(encoder, decoder + memory)
    ends = 10 * d  # dropout's masks at the embeddings, the final states and their gradient
    return training.batch_tokens * (layers + ends)


def estimate_time(
    preset: Preset, trainer: Trainer, translator: Translator, validation: Split, tests: list[Split]
) -> float:
    """Time a few steps and translations, and return the seconds that are left of a run.

    Training, validation, and the final evaluation (the last and the averaged weights, by greedy
    and beam search) are counted. Weights and random numbers stay as they are.
    """
    config = trainer.config
    if config.compile:
        measure_step(trainer)  # compiles
    step = measure_step(trainer, repeats=20 if trainer.accelerator.device.type == "cuda" else 3)
    seconds = step * max(0, config.max_steps - trainer.step)
    every = config.validate_every
    left = max(0, -(-config.max_steps // every) - trainer.step // every)
    batches = 0 if trainer.validation is None else len(trainer.validation)
    # A forward pass takes about a third of a step.
    perplexity = batches * step / config.accumulate / 3
    scored = min(preset.score_pairs, len(validation))
    seconds += left * (perplexity + scored * _seconds_per_sentence(translator, validation, 1))
    for split in tests:
        for beam_size in {1, preset.beam_size}:
            seconds += 2 * len(split) * _seconds_per_sentence(translator, split, beam_size)
    return seconds


def measure_step(trainer: Trainer, repeats: int = 3) -> float:
    """Time ``repeats`` batches after one to warm up, and return the seconds per step.

    No step is taken: weights and random numbers stay as they are.
    """
    accelerator = trainer.accelerator
    device = accelerator.device
    with torch.random.fork_rng([device.index or 0] if device.type == "cuda" else []):
        stream = step_batches(trainer.batches)
        for i in range(repeats + 1):
            batch = next(stream).batches[0].to(device)
            with accelerator.no_sync(trainer.loss), trainer.autocast():
                loss, _ = trainer.loss(batch.source, batch.target_input, batch.labels, batch.rows)
                (loss / batch.num_target_tokens).backward()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if i == 0:
                started = perf_counter()
    trainer.optimizer.zero_grad()
    return (perf_counter() - started) / repeats * trainer.config.accumulate


def random_batches(preset: Preset, count: int = 50_000) -> TokenBatches:
    """Make batches of ``count`` pairs of random tokens, to time a preset without its corpus.

    The time of a step depends on the lengths alone. They are spread about as in WMT's text.
    """
    config, training = preset.model, preset.training
    budget = training.batch_tokens
    longest = min(budget, training.max_length or budget)
    random = np.random.default_rng(training.seed)
    source = random.gamma(2.5, SENTENCE / 2.5, count)
    target = source * random.uniform(0.8, 1.2, count)

    def sentences(lengths: np.ndarray) -> Sentences:
        lengths = lengths.round().clip(2, longest).astype(np.int64)
        ids = random.integers(3, config.vocab_size, lengths.sum()).astype(np.int32)
        offsets = np.append(0, np.cumsum(lengths))
        ids[offsets[1:] - 1] = config.eos_id
        return Sentences(ids, offsets)

    pairs = EncodedPairs(sentences(source), sentences(target), config.pad_id, config.bos_id)
    return TokenBatches(pairs, budget, training.seed, training.max_length)


def _seconds_per_sentence(translator: Translator, split: Split, beam_size: int) -> float:
    # Untrained models never end a sentence: stop at 1.3 times the references' mean length.
    sources, references = split.source[:_SAMPLE], split.target[:_SAMPLE]
    lengths = [len(ids) for ids in translator.tokenizer.encode_batch(references)]
    longest = round(1.3 * sum(lengths) / len(lengths)) + 1
    translator.translate(sources[:2], beam_size=beam_size, max_length=2)  # warm up
    started = perf_counter()
    translator.translate(sources, beam_size=beam_size, max_length=longest)
    return (perf_counter() - started) / len(sources)


def size(count: float | int) -> str:
    """Write a number of bytes with its unit, such as "5.7 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"
