"""The training loop: batches, loss, gradients, steps; and nothing lost when it stops.

Paper: sections 5.1 to 5.4
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from torch import nn
from tqdm import tqdm

from transformer.data.batching import Batch, TokenBatches
from transformer.training.checkpoint import load_state, save_state, save_weights
from transformer.training.config import TrainingConfig
from transformer.training.curve import Curve
from transformer.training.interrupt import Interruption
from transformer.training.loss import TranslationLoss
from transformer.training.schedule import learning_rate


class NonFiniteLossError(RuntimeError):
    """The loss became infinite or NaN; the message names the step and the last good checkpoint.

    Paper: not in the paper
    """


class Trainer:
    """Trains a model on batches of token ids.

    Works on any device and in any number of processes: Accelerate moves the tensors, wraps the
    model and scales the loss where half precision asks for it. The loss of a step is the mean over
    all real target tokens of the step, over all its batches and processes, so that accumulating
    gradients or adding processes changes speed and nothing else.

    ``folder`` receives ``state.pt`` (all that a resumed run needs), ``checkpoints/`` (weights of
    the last few checkpoints and of the best) and ``curve.jsonl``. If it holds a state of the same
    configuration, training goes on from there, and ends in the same weights as a run that was
    never interrupted.

    Args:
        model: a model with ``encode``, ``decoder_states``, ``output_weight`` and ``config``.
        batches: the training pairs.
        config: the recipe.
        folder: where to write.
        validation: pairs for the perplexity; None leaves it out.
        score: called with the model at each validation; returns further numbers, such as BLEU.
        tensorboard: also write the curve for TensorBoard.
        progress: show a progress bar; None shows it on a terminal only.

    Raises:
        ValueError: if ``folder`` holds a run of another configuration.

    Paper: sections 5.1 to 5.4
    """

    def __init__(
        self,
        model: nn.Module,
        batches: TokenBatches,
        config: TrainingConfig,
        folder: Path | str,
        validation: TokenBatches | None = None,
        score: Callable[[nn.Module], dict[str, float]] | None = None,
        tensorboard: bool = False,
        progress: bool | None = None,
    ):
        precision = "no" if config.precision == "fp32" else config.precision
        self.accelerator = Accelerator(mixed_precision=precision)
        self.model, self.batches, self.config = model, batches, config
        self.validation, self.score = validation, score
        self.progress = progress
        self.folder = Path(folder)
        self.state_file = self.folder / "state.pt"
        self.step = self.epoch = self.position = 0
        self.tokens = 0  # real target tokens seen so far
        self.seconds = 0.0  # spent training, over all sittings
        self.best = math.inf

        model.to(self.accelerator.device)
        model.checkpoint_activations = config.checkpoint_activations
        if config.compile:
            for layer in [*getattr(model, "encoder", []), *getattr(model, "decoder", [])]:
                layer.compile(dynamic=True)
        loss = TranslationLoss(model, config.label_smoothing, config.smoothing)
        optimizer = torch.optim.Adam(
            model.parameters(),
            lr=0.0,
            betas=(config.beta1, config.beta2),
            eps=config.adam_eps,
            fused=True,
        )
        self.loss, self.optimizer = self.accelerator.prepare(loss, optimizer)
        self.curve = Curve(self.folder, tensorboard) if self.accelerator.is_main_process else None
        # Dropout differs from process to process, the initial weights must not: they exist already.
        set_seed(config.seed, device_specific=True)
        if self.state_file.exists():
            self._resume()

    # ------------------------------------------------------------------ the loop

    def fit(self) -> bool:
        """Train up to ``max_steps``.

        Returns:
            True when done, False when Ctrl-C or SIGTERM ended it early, with its state saved.

        Raises:
            NonFiniteLossError: if the loss stops being a number.
            OSError: if a checkpoint cannot be written; the one before it is still there.

        Paper: sections 5.1 to 5.4
        """
        config = self.config
        bar = tqdm(
            total=config.max_steps,
            initial=self.step,
            unit="step",
            disable=None if self.progress is None else not self.progress,
            dynamic_ncols=True,
        )
        stream = self._stream()
        losses: list[torch.Tensor] = []  # of the steps since the last line of the curve
        tokens, started, self.saved_at = 0, time.perf_counter(), self.step
        self.loss.train()
        with bar, Interruption() as interruption:
            while self.step < config.max_steps:
                loss, count = self._train_step(next(stream))
                losses.append(loss)
                tokens += count
                self.step += 1
                bar.update()
                due = [self.step % n == 0 for n in (config.log_every, config.validate_every, config.save_every)]
                last = self.step == config.max_steps
                stop = self._any_process(interruption.requested)
                if any(due) or last or stop:
                    mean = self._mean_loss(losses)
                    seconds = time.perf_counter() - started
                    self.tokens, self.seconds = self.tokens + tokens, self.seconds + seconds
                    self._log(
                        loss=mean,
                        learning_rate=self.optimizer.param_groups[0]["lr"],
                        tokens_per_second=tokens / seconds,
                    )
                    bar.set_postfix_str(f"loss {mean:.3f}, {tokens / seconds:,.0f} tokens/s")
                    if due[1] or last:
                        self._validate(bar)
                    if due[2] or last or stop:
                        self._save(weights=due[2] or last)
                    tokens, started = 0, time.perf_counter()
                if stop:
                    return last
        return True

    def _train_step(self, group: list[Batch]) -> tuple[torch.Tensor, int]:
        """Take one optimiser step on this process's share of the batches of a step."""
        accelerator, config = self.accelerator, self.config
        device = accelerator.device
        count = sum(batch.num_target_tokens for batch in group)
        if accelerator.num_processes > 1:
            count = int(accelerator.reduce(torch.tensor(count, device=device), "sum"))
        rate = learning_rate(
            self.step + 1,
            self.model.config.d_model,
            config.warmup_steps,
            config.learning_rate_factor,
        )
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate

        total = torch.zeros((), device=device)
        for i, batch in enumerate(group):
            batch = batch.to(device, non_blocking=True)
            # Gradients travel between processes once a step, with the last batch.
            with accelerator.no_sync(self.loss) if i + 1 < len(group) else nullcontext():
                with accelerator.autocast():
                    loss, _ = self.loss(batch.source, batch.target_input, batch.labels)
                # Data-parallel gradients are averaged over the processes; we want their sum.
                accelerator.backward(loss * (accelerator.num_processes / count))
            total += loss.detach()
        if config.clip_norm is not None:
            accelerator.clip_grad_norm_(self.model.parameters(), config.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return accelerator.reduce(total, "sum") / count, count

    def _stream(self) -> Iterator[list[Batch]]:
        """Yield this process's batches of each step, from where the run stands, for ever."""
        accelerator = self.accelerator
        rank, processes = accelerator.process_index, accelerator.num_processes
        plan = self.batches.epoch(self.epoch)
        while True:
            group = []
            for turn in range(self.config.accumulate * processes):
                if self.position == len(plan):
                    self.epoch, self.position = self.epoch + 1, 0
                    plan = self.batches.epoch(self.epoch)
                if turn % processes == rank:
                    group.append(self.batches.batch(plan[self.position]))
                self.position += 1
            yield group

    def measure_step(self, repeats: int = 3) -> float:
        """Time a step without taking one: weights and random numbers stay as they are.

        Args:
            repeats: batches to time, after one to warm up.

        Returns:
            Seconds a step, measured on batches of typical size.

        Paper: section 5.2
        """
        device = self.accelerator.device
        devices = [device.index or 0] if device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            for i, rows in enumerate(self.batches.epoch(0)[: repeats + 1]):
                batch = self.batches.batch(rows).to(device)
                with self.accelerator.no_sync(self.loss), self.accelerator.autocast():
                    loss, _ = self.loss(batch.source, batch.target_input, batch.labels)
                    (loss / batch.num_target_tokens).backward()
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
                if i == 0:
                    started = time.perf_counter()
        self.optimizer.zero_grad()
        return (time.perf_counter() - started) / max(i, 1) * self.config.accumulate

    # ------------------------------------------------------------------ looking after the run

    def _mean_loss(self, losses: list[torch.Tensor]) -> float:
        """Empty the list into its mean; a loss that is no number ends the run."""
        values = torch.stack(losses).tolist()
        losses.clear()
        for step, value in enumerate(values, self.step - len(values) + 1):
            if not math.isfinite(value):
                saved = f"the last good checkpoint is step {self.saved_at} in {self.folder}"
                raise NonFiniteLossError(
                    f"loss is {value} at step {step}; "
                    + (saved if self.saved_at else "there is no checkpoint yet")
                    + "; a lower learning_rate_factor or longer warm-up may help"
                )
        return sum(values) / len(values)

    @torch.no_grad()
    def _validate(self, bar: tqdm) -> None:
        numbers: dict[str, float] = {}
        if self.accelerator.is_main_process:
            self.model.eval()
            if self.validation is not None:
                numbers["perplexity"] = self.perplexity(self.validation)
            if self.score is not None:
                with self.accelerator.autocast():
                    numbers |= self.score(self.model)
            self.model.train()
            self._log(**numbers)
            shown = ", ".join(f"{name} {value:.2f}" for name, value in numbers.items())
            tqdm.write(f"step {self.step}: {shown}", file=bar.fp) if not bar.disable else None
            if numbers.get("perplexity", math.inf) < self.best:
                self.best = numbers["perplexity"]
                save_weights(self.model.state_dict(), self.folder / "checkpoints/best.safetensors")
        self.accelerator.wait_for_everyone()

    @torch.no_grad()
    def perplexity(self, batches: TokenBatches) -> float:
        """Return exp of the mean negative log-likelihood a target token, smoothing off.

        Args:
            batches: pairs to measure on. Wordpieces, ``eos_id`` included, are the tokens.

        Paper: section 6.2, Table 3
        """
        plain = TranslationLoss(self.model, epsilon=0.0)
        nll = tokens = 0.0
        for rows in batches.epoch(0):
            batch = batches.batch(rows).to(self.accelerator.device)
            with self.accelerator.autocast():
                nll += plain(batch.source, batch.target_input, batch.labels)[1].item()
            tokens += batch.num_target_tokens
        return math.exp(min(nll / tokens, 700.0))

    def _save(self, weights: bool) -> None:
        # Each process has its own stream of random numbers, so each must hand it in.
        device = self.accelerator.device
        random = [torch.get_rng_state()]
        if device.type == "cuda":
            random.append(torch.cuda.get_rng_state(device))
        random = gather_object([random])
        if self.accelerator.is_main_process:
            if weights:
                self._keep_weights()
            state = dict(
                config=self._identity(),
                model=self.model.state_dict(),
                optimizer=self.optimizer.state_dict(),
                scaler=self.accelerator.scaler.state_dict() if self.accelerator.scaler else {},
                random=random,
                progress={name: getattr(self, name) for name in self.PROGRESS},
            )
            save_state(state, self.state_file)
        self.saved_at = self.step
        self.accelerator.wait_for_everyone()

    PROGRESS = ("step", "epoch", "position", "tokens", "seconds", "best")

    def _resume(self) -> None:
        state = load_state(self.state_file)
        mine, theirs = self._identity(), state["config"]
        differ = [k for k in mine if mine[k] != theirs.get(k)]
        if differ:
            changes = ", ".join(f"{k}: {theirs.get(k)!r} there, {mine[k]!r} here" for k in differ)
            raise ValueError(f"{self.folder} holds a run of another configuration ({changes})")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.accelerator.scaler:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        for name, value in state["progress"].items():
            setattr(self, name, value)
        random = state["random"][self.accelerator.process_index]
        torch.set_rng_state(random[0])
        if len(random) > 1:
            torch.cuda.set_rng_state(random[1], self.accelerator.device)
        if self.curve:
            self.curve.rewind(self.step)

    def _identity(self) -> dict[str, Any]:
        """Name all that must be equal for a run to go on. More steps may be asked for."""
        free = ("max_steps", "log_every", "keep_last")
        recipe = {k: v for k, v in self.config.to_dict().items() if k not in free}
        model = {f"model.{k}": v for k, v in self.model.config.to_dict().items()}
        data = dict(pairs=len(self.batches.pairs), processes=self.accelerator.num_processes)
        return recipe | model | data

    def _keep_weights(self) -> None:
        folder = self.folder / "checkpoints"
        save_weights(self.model.state_dict(), folder / f"step-{self.step:08d}.safetensors")
        for old in self.checkpoints()[: -self.config.keep_last]:
            old.unlink()

    def checkpoints(self) -> list[Path]:
        """Return the weight files of the last checkpoints, oldest first.

        Paper: section 6.1
        """
        return sorted((self.folder / "checkpoints").glob("step-*.safetensors"))

    def _log(self, **numbers: float) -> None:
        if self.curve:
            self.curve.write(self.step, minutes=self.seconds / 60, **numbers)

    def _any_process(self, flag: bool) -> bool:
        if self.accelerator.num_processes == 1:
            return flag
        return bool(self.accelerator.reduce(torch.tensor(float(flag), device=self.accelerator.device)))

