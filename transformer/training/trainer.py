"""The training loop: batches, loss, gradients, steps, checkpoints."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import (
    InitProcessGroupKwargs,
    ProjectConfiguration,
    broadcast_object_list,
)
from torch.optim import Optimizer

from transformer.data.batching import EncodedPairs, TokenBatches
from transformer.data.sentencepiece import SentencePieceTokenizer
from transformer.data.tokenizer import Tokenizer
from transformer.model.base import TranslationModel, evaluation_mode
from transformer.training import checks, run_folder, state
from transformer.training.callbacks import Callback, Callbacks
from transformer.training.checkpoint import require_loadable
from transformer.training.config import TrainingConfig
from transformer.training.curve import Tracker, require_trackers
from transformer.training.kept_run import KeptRun, Writer, host_copy
from transformer.training.loss import perplexity
from transformer.training.step import MakeOptimizer, Schedule
from transformer.training.stopping import Interruption, anywhere, require_finite
from transformer.training.stream import step_batches


class Trainer(KeptRun):
    """Train a model on batches of token ids.

    Runs on any device and in any number of processes, on one machine or several: Accelerate joins
    the processes. The loss of a step is the mean over all real target tokens in all batches and
    processes of the step, so that accumulating gradients or adding processes changes only the
    speed. A run may resume with another number of processes if ``accumulate`` changes so that a
    step takes as many batches as before; dropout then draws different numbers.

    The constructor checks that everything fits together, and touches no file. :meth:`fit` claims
    ``folder``, resumes the run that it holds, and trains; a resumed run ends with the same weights
    as an uninterrupted one. ``folder`` receives ``config.json`` and the files of the tokenizer,
    ``state.pt`` (all that a resumed run needs), ``checkpoints/`` (weights of the last few and of
    the best) and ``curve.jsonl``, written by a thread while training goes on. After the first
    checkpoint, ``Translator.from_pretrained(folder)`` can load it. One run at a time may use the
    folder, and all processes of that run must see it.

    Args:
        model: the model; it moves to the device of the process.
        batches: the training pairs. EncodedPairs are batched as ``config`` says; TokenBatches must
            have been. A warning says how many are too long.
        config: the recipe.
        folder: the run folder, where everything is written.
        optimizer: None for Adam with the settings of ``config``; a PyTorch optimizer over the
            parameters of ``model``; or a function from parameters to one, which sharded weights
            need.
        schedule: None for Eq. (3), or for the learning rates of your own ``optimizer``; a function
            from the step, counted from 1, to the learning rate; or a PyTorch scheduler for
            ``optimizer``, which advances after each step.
        callbacks: your own code and early stopping, see :mod:`transformer.training.callbacks`.
        validation: pairs for the perplexity; None leaves it out. EncodedPairs are kept whatever
            their length, so they must not be longer than learned positions; TokenBatches may have
            a ``max_length``.
        score: called with the model at each validation; returns further numbers by name.
        tokenizer: that of the pairs, or those of source and target, which SentencePiece has. It is
            compared with the model and written to ``folder``.
        trackers: "tensorboard", "wandb" or other names that Accelerate knows, or trackers of
            Accelerate; they receive the numbers of the curve.
        progress: show a progress bar; None shows it on a terminal and in a live notebook.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if model, pairs, tokenizer and recipe do not fit together, the recipe sets
            what your own optimizer or schedule ignores, or "fp16" is requested on a CPU or for
            sharded weights.
        ModuleNotFoundError: if a tracker is not installed.

    Paper: sections 5.1 to 5.4
    """

    #: Steps between two questions to the other processes whether a signal has arrived.
    ASK_EVERY = 10

    def __init__(
        self,
        model: TranslationModel,
        batches: TokenBatches | EncodedPairs,
        config: TrainingConfig,
        folder: Path | str,
        optimizer: Optimizer | MakeOptimizer | None = None,
        schedule: Schedule | None = None,
        callbacks: Sequence[Callback] = (),
        *,
        validation: TokenBatches | EncodedPairs | None = None,
        score: Callable[[Any], dict[str, float]] | None = None,
        tokenizer: Tokenizer
        | SentencePieceTokenizer
        | tuple[SentencePieceTokenizer, SentencePieceTokenizer]
        | None = None,
        trackers: Sequence[Tracker] = (),
        progress: bool | None = None,
    ):
        checks.require_model(model, config)
        self.batches = checks.training_batches(batches, config, model)
        self.validation = checks.validation_batches(validation, config)
        self.score, self.tokenizer = score, tokenizer
        checks.require_fitting("batches", self.batches, model)
        checks.require_fitting("validation", self.validation, model)
        checks.require_tokenizer(tokenizer, model)
        checks.require_score(score)
        require_trackers(trackers)
        checks.warn_of_dropped("training", self.batches)
        checks.warn_of_dropped("validation", self.validation)

        place = ProjectConfiguration(logging_dir=str(Path(folder) / "tensorboard"))
        # While the main process validates, the others wait, by default at most ten minutes.
        patient = InitProcessGroupKwargs(timeout=timedelta(hours=12))
        accelerator = Accelerator(
            log_with=list(trackers) or None, project_config=place, kwargs_handlers=[patient]
        )
        checks.require_all_processes(accelerator.num_processes)
        super().__init__(model, config, accelerator, optimizer, schedule)
        self.keep_in(Path(folder), Callbacks(callbacks), progress)
        self.stopped_by: int | None = None  # the signal that ended training early, if one did

    # ------------------------------------------------------------------ the loop

    def fit(self) -> bool:
        """Train up to ``max_steps``, from where the run in the folder was left.

        The model stays in training mode; switch dropout off with ``model.eval()``. If ``score`` or
        a callback raises an error at a validation, the state is saved first in a run of one
        process, and that validation is not repeated.

        Returns:
            True when done or ended by :meth:`stop`, False when Ctrl-C or SIGTERM ended it early,
            with its state saved.

        Raises:
            NonFiniteLossError: if loss or weights become infinite or NaN.
            TypeError: if ``score`` returns no numbers, or the state of a callback cannot be saved.
            ValueError: as :meth:`~transformer.training.kept_run.KeptRun.resume`; if the model has
                left its device; or if ``score`` returns a name that the curve uses itself.
            OSError: if a checkpoint cannot be written; the previous one stays. It is raised after
                the next step, or at the end.
        """
        config = self.config
        with self._session():
            rank, processes = self.accelerator.process_index, self.accelerator.num_processes
            stream = step_batches(
                self.batches, config.accumulate, rank, processes, self.epoch, self.position
            )
            losses: list[torch.Tensor] = []  # of the steps since the last line of the curve
            tokens, started = 0, time.perf_counter()
            while self.step < config.max_steps and not self.stopping:
                group, epoch, position, count = next(stream)
                losses.append(self.train_step(group, count))
                self.epoch, self.position = epoch, position  # a step that fails has used no batch
                self.step += 1
                self.tokens, tokens = self.tokens + count, tokens + count
                self.report.advance()
                self.report_written()
                self.callbacks.call("on_step", self)
                last = self.step == config.max_steps
                validate = last or self.step % config.validate_every == 0
                save = last or self.step % config.save_every == 0
                line = self.step % config.log_every == 0 or validate or save
                # Asking the others blocks until the slowest is done.
                ask = processes == 1 or line or self.step % self.ASK_EVERY == 0
                stop = ask and anywhere(self.interruption.requested, self.accelerator)
                if line or stop:
                    self._log(self._mean_loss(losses), tokens, started)
                    if validate:
                        self._validate_or_save(save)
                    self.stopping = anywhere(self.stop_requested, self.accelerator)
                    self.save(save or self.stopping, ending=last or stop or self.stopping)
                    tokens, started = 0, time.perf_counter()
                if stop:
                    self.stopped_by = self.interruption.number
                    break
        return self.stopping or self.step >= config.max_steps

    def stop(self) -> None:
        """End the run after the current step, with everything saved; callbacks call this.

        Several processes end together, up to ten steps later.
        """
        self.stop_requested = self.interruption.requested = True

    # ------------------------------------------------------------------ around the loop

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Claim the folder, resume, and report, for the duration of one :meth:`fit`."""
        self.resume()
        self.fitting = True
        self.stop_requested, self.stopped_by = False, None
        self.state_seconds = self.seconds
        self.swaps = None  # modules may have been replaced since the last call
        try:
            checks.require_device(self.model, self.accelerator.device)
            require_loadable(host_copy(self.own_state()), "state")
            self.loss.train()
            self.loss.zero_grad()  # of the user, or of a step that an error ended
            with (
                self.report,
                Interruption() as self.interruption,
                Writer() as self.writer,
            ):
                self.callbacks.call("on_start", self)
                self.stopping = anywhere(self.stop_requested, self.accelerator)
                if self.step < self.config.max_steps and not self.stopping:
                    self.report.start(self.step, self.config.to_dict() | self.identity())
                    if self.accelerator.is_main_process:
                        run_folder.prepare(self.folder, self.model, self.tokenizer, self.step)
                state.set_random_state(self.random, self.accelerator.device)
                yield
                self.report_written(wait=True)
                self.callbacks.call("on_end", self)
        finally:
            # Another process may train in the folder before the next call of fit().
            self.fitting = False
            self.release()

    # ------------------------------------------------------------------ validation, checkpoints

    def _mean_loss(self, losses: list[torch.Tensor]) -> float:
        """Return the mean loss and empty the list; raise if a number is not finite."""
        values = self.accelerator.reduce(torch.stack(losses), "sum").tolist()
        losses.clear()
        saved = f"the last good checkpoint is step {self.saved_at} in {self.folder}"
        last_good = saved if self.saved_at else "there is no checkpoint yet"
        require_finite(values, self.step, self.trained, last_good, self.accelerator)
        return sum(values) / len(values)

    def _log(self, loss: float, tokens: int, started: float) -> None:
        (seconds,) = broadcast_object_list([max(time.perf_counter() - started, 1e-9)])
        self.seconds += seconds
        speed = tokens / seconds
        numbers = dict(loss=loss, learning_rate=self.learning_rate, tokens_per_second=speed)
        self.report.line(self.seconds / 60, numbers)
        self.callbacks.call("on_log", self, numbers)

    def _validate(self) -> None:
        self.gather_weights()
        main = self.accelerator.is_main_process
        (numbers,) = broadcast_object_list([self._measure() if main else {}])
        if not numbers:
            return
        self.report.validation(self.seconds / 60, numbers)
        if numbers.get("perplexity", math.inf) < self.best:
            self.best = numbers["perplexity"]
            if main:
                weights, path = host_copy(self.model.state_dict()), self.folder / run_folder.BEST
                self.writer.submit(partial(run_folder.keep_weights, weights, path))
        self.accelerator.wait_for_everyone()
        self.callbacks.call("on_validation", self, numbers)

    def _validate_or_save(self, save: bool) -> None:
        """Validate; if ``score`` or a callback raises, save the steps so far first."""
        try:
            self._validate()
        except Exception:
            if self.accelerator.num_processes == 1:  # the others would not take part
                self.save(save, ending=True)
            raise

    @torch.no_grad()
    def _measure(self) -> dict[str, float]:
        numbers: dict[str, float] = {}
        if self.validation is not None:
            numbers["perplexity"] = perplexity(self.model, self.validation, self.autocast())
        if self.score is not None:
            with evaluation_mode(self.model), self.autocast():
                numbers |= checks.numbers_of(self.score(self.model), numbers)
        return numbers
