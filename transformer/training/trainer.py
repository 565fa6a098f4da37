"""The training loop: batches, loss, gradients, steps, checkpoints.

Paper: sections 5.1 to 5.4
"""

import copy
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import gather_object, set_seed
from filelock import FileLock
from tqdm.auto import tqdm

from transformer import fast
from transformer.data.batching import Batch, TokenBatches
from transformer.data.progress import in_live_notebook
from transformer.model.base import TranslationModel
from transformer.model.transformer import Transformer
from transformer.training import run_folder, state
from transformer.training.checkpoint import remove_unfinished, save_weights
from transformer.training.config import TrainingConfig, require_precision
from transformer.training.curve import Curve
from transformer.training.loss import TranslationLoss, perplexity
from transformer.training.schedule import learning_rate
from transformer.training.stopping import Interruption, SharedStop, require_finite
from transformer.training.stream import send, step_batches


class Trainer:
    """Train a model on batches of token ids.

    Runs on any device and in any number of processes, on one machine or several: Accelerate moves
    the tensors, wraps the model and scales the loss for half precision. The loss of a step is the
    mean over all real target tokens in all batches and processes of the step, so that accumulating
    gradients or adding processes changes only the speed. A run may resume with another number of
    processes if ``accumulate`` changes so that a step takes as many batches as before; dropout then
    draws other numbers. Between two lines of the curve the host never blocks on the device, except
    that several processes synchronise about once per second.

    ``folder`` receives ``state.pt`` (everything that a resumed run needs) and the previous state,
    ``checkpoints/`` (weights of the last few checkpoints and of the best) and ``curve.jsonl``. If
    it holds a state of the same configuration, training resumes from there, and ends with the same
    weights as an uninterrupted run. Only one run at a time may use it, and all processes of that
    run must see it: with several machines, it must be a shared folder.

    Args:
        model: a model with ``encode``, ``decoder_states``, ``output_weight`` and ``config``.
        batches: the training pairs.
        config: the recipe.
        folder: where to write.
        validation: pairs for the perplexity; None leaves it out.
        score: called with the model at each validation; returns further numbers, such as BLEU.
        tensorboard: also write the curve for TensorBoard.
        progress: show a progress bar; None shows it on a terminal and in a live notebook.

    Raises:
        ValueError: if ``folder`` holds a run of another configuration or only damaged states, or
            if "fp16" is requested on a CPU or for sharded weights.
        OSError: if ``folder`` cannot be written, or another process is training in it.

    Paper: sections 5.1 to 5.4
    """

    def __init__(
        self,
        model: TranslationModel,
        batches: TokenBatches,
        config: TrainingConfig,
        folder: Path | str,
        validation: TokenBatches | None = None,
        score: Callable[[Any], dict[str, float]] | None = None,
        tensorboard: bool = False,
        progress: bool | None = None,
    ):
        # Accelerate fixes the precision of a process; it has no public way to change it again.
        AcceleratorState._reset_state()
        precision = "no" if config.precision == "fp32" else config.precision
        self.accelerator = Accelerator(mixed_precision=precision)
        require_precision(config.precision, self.accelerator.device.type)
        self.model, self.batches, self.config = model, batches, config
        self.validation, self.score = validation, score
        self.progress = progress
        self.folder = Path(folder)
        self.state_file = self.folder / run_folder.STATE
        self.step = self.epoch = self.position = 0
        self.tokens = 0  # real target tokens seen so far
        self.seconds = 0.0  # spent training, over all sittings
        self.best = math.inf
        self.stopped_by: int | None = None  # the signal that ended training early, if one did

        model.to(self.accelerator.device)
        if config.fast and not config.compile and self.accelerator.device.type == "cpu":
            fast.enable(model)
        if isinstance(model, Transformer):
            model.checkpoint_activations = config.checkpoint_activations
        self.sharded = config.shard and self.accelerator.num_processes > 1
        if self.sharded and precision == "fp16":
            raise ValueError('precision "fp16" cannot be sharded; use "bf16" or "fp32"')
        # A shard cannot translate: ``model`` stays whole, and receives the weights of ``trained``
        # in the main process when they are validated or saved.
        self.trained = copy.deepcopy(model) if self.sharded else model
        if config.compile:
            for layer in state.layers_of(self.trained):
                layer.compile(dynamic=True)
        loss = TranslationLoss(self.trained, config.label_smoothing, config.smoothing)
        if self.sharded:
            state.shard(loss, self.accelerator.device, self.accelerator.num_processes)
        optimizer = torch.optim.Adam(
            loss.parameters(),
            lr=0.0,
            betas=(config.beta1, config.beta2),
            eps=config.adam_eps,
            fused=True,
        )
        self.loss = loss if self.sharded else self.accelerator.prepare(loss)
        self.optimizer = self.accelerator.prepare(optimizer)
        # Dropout differs between processes; the initial weights are equal and exist already.
        set_seed(config.seed, device_specific=True)
        # Before anything is read or removed: another process may be writing there.
        self.claim = self._claim_folder()
        self._resume()
        self.curve = None
        if self.accelerator.is_main_process:
            self.curve = Curve(self.folder, tensorboard, self.step)
            for written in (self.folder, self.folder / "checkpoints"):
                remove_unfinished(written)

    # ------------------------------------------------------------------ the loop

    def fit(self) -> bool:
        """Train up to ``max_steps``.

        Returns:
            True when done, False when Ctrl-C or SIGTERM ended it early, with its state saved.

        Raises:
            NonFiniteLossError: if loss or weights become infinite or NaN.
            OSError: if a checkpoint cannot be written; the previous one stays.

        Paper: sections 5.1 to 5.4
        """
        config, accelerator = self.config, self.accelerator
        show = self.progress if self.progress is not None else (in_live_notebook() or None)
        bar = tqdm(
            total=config.max_steps,
            initial=self.step,
            unit="step",
            disable=not accelerator.is_main_process or (None if show is None else not show),
            dynamic_ncols=True,
        )
        rank, processes = accelerator.process_index, accelerator.num_processes
        stream = step_batches(
            self.batches, config.accumulate, rank, processes, self.epoch, self.position
        )
        losses: list[torch.Tensor] = []  # of the steps since the last line of the curve
        tokens, started, self.saved_at = 0, time.perf_counter(), self.step
        self.loss.train()
        with bar, Interruption() as interruption, self._claimed_folder():
            shared_stop = SharedStop(accelerator, interruption, self.step)
            while self.step < config.max_steps:
                group, self.epoch, self.position, count = next(stream)
                losses.append(self._train_step(group, count))
                tokens += count
                self.step += 1
                bar.update()
                last = self.step == config.max_steps
                validate = last or self.step % config.validate_every == 0
                save = last or self.step % config.save_every == 0
                line = self.step % config.log_every == 0 or validate or save
                stop = shared_stop.requested(self.step, waiting=line)
                if line or stop:
                    mean = self._mean_loss(losses)
                    seconds = max(time.perf_counter() - started, 1e-9)  # avoids division by 0
                    self.tokens, self.seconds = self.tokens + tokens, self.seconds + seconds
                    self._log(
                        loss=mean,
                        learning_rate=self.optimizer.param_groups[0]["lr"],
                        tokens_per_second=tokens / seconds,
                    )
                    bar.set_postfix_str(f"loss {mean:.3f}, {tokens / seconds:,.0f} tokens/s")
                    if validate or save or stop:
                        self._gather_weights()
                    if validate:
                        self._validate(bar)
                    if save or stop:
                        self._save(weights=save)
                    tokens, started = 0, time.perf_counter()
                if stop:
                    self.stopped_by = interruption.number
                    return last
        return True

    def _train_step(self, group: list[Batch], count: int) -> torch.Tensor:
        """Take one optimiser step.

        Args:
            group: this process's batches of the step.
            count: real target tokens of the whole step.

        Returns:
            Their part of the mean loss, on the device, which may still be computing it.
        """
        accelerator, config = self.accelerator, self.config
        d_model, factor = self.model.config.d_model, config.learning_rate_factor
        rate = learning_rate(self.step + 1, d_model, config.warmup_steps, factor)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate

        total = torch.zeros((), device=accelerator.device)
        for i, batch in enumerate(group):
            batch = send(batch, accelerator.device)
            # Gradients are exchanged once per step, with the last batch.
            with accelerator.no_sync(self.loss) if i + 1 < len(group) else nullcontext():
                with accelerator.autocast():
                    loss, _ = self.loss(batch.source, batch.target_input, batch.labels, batch.rows)
                # Data-parallel gradients are averaged over the processes, but the sum is needed.
                accelerator.backward(loss * (accelerator.num_processes / count))
            total += loss.detach()
        if config.clip_norm is not None:
            accelerator.clip_grad_norm_(self.loss.parameters(), config.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total / count

    # ------------------------------------------------------------------ validation, checkpoints

    def _claim_folder(self) -> FileLock | None:
        main = self.accelerator.is_main_process
        return run_folder.claim_folder(self.folder) if main else None

    @contextmanager
    def _claimed_folder(self) -> Iterator[None]:
        self.claim = self._claim_folder()
        try:
            yield
        finally:
            self.claim = None

    def _mean_loss(self, losses: list[torch.Tensor]) -> float:
        """Return the mean and empty the list; raise if a number is not finite."""
        values = self.accelerator.reduce(torch.stack(losses), "sum").tolist()
        losses.clear()
        saved = f"the last good checkpoint is step {self.saved_at} in {self.folder}"
        last_good = saved if self.saved_at else "there is no checkpoint yet"
        require_finite(values, self.step, self.trained, last_good, self._anywhere)
        return sum(values) / len(values)

    def _anywhere(self, flag: bool) -> bool:
        """Say whether a condition holds in any process; each must call this."""
        flags = torch.tensor(float(flag), device=self.accelerator.device)
        return bool(self.accelerator.reduce(flags, "sum"))

    def _gather_weights(self) -> None:
        if self.sharded:
            main = self.accelerator.is_main_process
            weights = state.gather(self.trained.state_dict(), keep=main)
            if main:
                self.model.load_state_dict(weights)

    @torch.no_grad()
    def _validate(self, bar: tqdm) -> None:
        numbers: dict[str, float] = {}
        if self.accelerator.is_main_process:
            if self.validation is not None:
                numbers["perplexity"] = perplexity(
                    self.model, self.validation, self.accelerator.autocast()
                )
            if self.score is not None:
                self.model.eval()
                with self.accelerator.autocast():
                    numbers |= self.score(self.model)
            self.model.train()
            if numbers:
                self._log(**numbers)
            if numbers and not bar.disable:
                shown = ", ".join(f"{name} {value:.2f}" for name, value in numbers.items())
                tqdm.write(f"step {self.step}: {shown}", file=bar.fp)
            if numbers.get("perplexity", math.inf) < self.best:
                self.best = numbers["perplexity"]
                save_weights(self.model.state_dict(), self.folder / "checkpoints/best.safetensors")
        self.accelerator.wait_for_everyone()

    def _save(self, weights: bool) -> None:
        main = self.accelerator.is_main_process
        parts = state.collect(self.accelerator, self.model, self.optimizer)
        if main:
            if weights:
                self._keep_weights()
            progress = {name: getattr(self, name) for name in self.PROGRESS}
            whole = dict(config=self._identity(), **parts, progress=progress)
            run_folder.keep_state(whole, self.folder)
        self.saved_at = self.step
        self.accelerator.wait_for_everyone()

    PROGRESS = ("step", "epoch", "position", "tokens", "seconds", "best")

    def _resume(self) -> None:
        found = run_folder.load_newest_state(self.folder)
        run_folder.require_shared(gather_object([found and found[1].name]), self.folder)
        if found is None:
            return
        saved, file = found
        run_folder.require_same(self._identity(), saved["config"], self.folder)
        try:
            state.restore(self.accelerator, self.model, self.trained, self.optimizer, saved)
            for name in self.PROGRESS:
                setattr(self, name, saved["progress"][name])
        except (AttributeError, LookupError, RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())[:120]
            raise ValueError(f"{file} is not the state of a run: {reason}") from None
        self.accelerator.wait_for_everyone()  # until it has read the file
        if self.accelerator.is_main_process:
            run_folder.settle_on(file)

    def _identity(self) -> dict[str, Any]:
        pairs, processes = self.batches.pairs, self.accelerator.num_processes
        return state.identity(self.config, self.model, pairs, processes)

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
