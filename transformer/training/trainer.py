"""The training loop: batches, loss, gradients, steps, checkpoints."""

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
    gather_object,
    set_seed,
)
from filelock import FileLock
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from transformer import fast
from transformer.data.batching import Batch, EncodedPairs, TokenBatches
from transformer.data.sentencepiece import SentencePieceTokenizer
from transformer.data.tokenizer import Tokenizer
from transformer.fast.device import set_up
from transformer.fast.residual import use_half_residuals
from transformer.model.base import TranslationModel, evaluation_mode
from transformer.model.transformer import Transformer
from transformer.saving.locate import STATE
from transformer.training import checks, run_folder, state
from transformer.training.callbacks import Callback, Callbacks
from transformer.training.checkpoint import require_loadable
from transformer.training.config import TrainingConfig, usable_precision
from transformer.training.curve import Report, Tracker, require_trackers
from transformer.training.loss import TranslationLoss, perplexity
from transformer.training.optimizer import LearningRate, MakeOptimizer, Schedule, build_optimizer
from transformer.training.stopping import Interruption, anywhere, require_finite
from transformer.training.stream import send, step_batches
from transformer.training.writer import Writer, host_copy


class Trainer:
    """Train a model on batches of token ids.

    Runs on any device and in any number of processes, on one machine or several: Accelerate joins
    the processes, wraps the model and scales the loss for half precision. The loss of a step is the
    mean over all real target tokens in all batches and processes of the step, so that accumulating
    gradients or adding processes changes only the speed. A run may resume with another number of
    processes if ``accumulate`` changes so that a step takes as many batches as before; dropout then
    draws different numbers. Between two lines of the curve the host never blocks on the device,
    except that several processes synchronise every ten steps.

    The constructor builds everything, checks that it fits together, and touches no file.
    :meth:`fit` claims ``folder``, resumes the run that it holds, and trains; a resumed run ends
    with the same weights as an uninterrupted one. ``folder`` receives ``config.json`` and the files
    of the tokenizer, ``state.pt`` (all that a resumed run needs), ``checkpoints/`` (weights of the
    last few and of the best) and ``curve.jsonl``. Weights and state are copied to the CPU's memory
    and written by a thread while training goes on. After the first checkpoint,
    ``Translator.from_pretrained(folder)`` can load it. One run at a time may use the folder, and
    all processes of that run must see it.

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
    #: Attributes that are saved with the state.
    PROGRESS = ("step", "epoch", "position", "tokens", "seconds", "best")

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
        self.model, self.config, self.callbacks = model, config, Callbacks(callbacks)
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

        self.folder = Path(folder)
        self.state_file = self.folder / STATE
        place = ProjectConfiguration(logging_dir=str(self.folder / "tensorboard"))
        # While the main process validates, the others wait, by default at most ten minutes.
        patient = InitProcessGroupKwargs(timeout=timedelta(hours=12))
        self.accelerator = Accelerator(
            log_with=list(trackers) or None, project_config=place, kwargs_handlers=[patient]
        )
        checks.require_all_processes(self.accelerator.num_processes)
        device = self.accelerator.device
        #: "fp32", "bf16" or "fp16": that of ``config``, or what the device has instead.
        self.precision = usable_precision(config.precision, device)
        # Not Accelerate's precision, which is one for the whole process.
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == "fp16")
        set_up(device)
        self.report = Report(self.accelerator, self.folder, config.max_steps, progress)
        self.step = self.epoch = self.position = 0
        self.tokens = 0  # real target tokens seen so far
        self.seconds = 0.0  # spent training, over all calls of fit()
        self.best = math.inf
        self.learning_rate = 0.0  # of the latest step
        self.saved_at, self.state_seconds = 0, 0.0  # when weights and state were last saved
        self.stopped_by: int | None = None  # the signal that ended training early, if one did
        self.resumed = self.fitting = self.stop_requested = self.stopping = False
        self.interruption = Interruption()
        self.claim: FileLock | None = None
        self.writer = Writer()
        self._place(optimizer, schedule)

    def _place(
        self, optimizer: Optimizer | MakeOptimizer | None, schedule: Schedule | None
    ) -> None:
        """Put the model on its devices, compiled and sharded as asked, with its optimizer."""
        model, config = self.model, self.config
        self.swaps: int | None = None  # of classes, when those of the recipe were chosen
        self.compiled = config.compile and checks.can_compile(self.accelerator.device)
        model.to(self.accelerator.device)
        self._choose_classes()
        if isinstance(model, Transformer):
            model.checkpoint_activations = config.checkpoint_activations
        self.sharded = config.shard and self.accelerator.num_processes > 1
        if self.sharded and self.precision == "fp16":
            raise ValueError('precision "fp16" cannot be sharded; use "bf16" or "fp32"')
        # A shard cannot translate: ``model`` stays whole, and receives the weights of ``trained``
        # in the main process when they are validated or saved.
        self.trained = copy.deepcopy(model) if self.sharded else model
        use_half_residuals(self.trained, config.half_residual)
        loss = TranslationLoss(self.trained, config.label_smoothing, config.smoothing)
        if self.compiled and self.sharded:  # the weights of a layer are gathered outside its graph
            for layer in state.layers_of(self.trained):
                layer.compile(dynamic=True)
        elif self.compiled:
            loss.compile(dynamic=True)
        if self.compiled or checks.compiles_loss(self.accelerator.device):
            loss.compile_chunk(dynamic=True)
        if self.sharded:
            state.shard(loss, self.accelerator.device, self.accelerator.num_processes)
        self.loss = loss if self.sharded else self._in_parallel(loss)
        self.optimizer = build_optimizer(optimizer, config, list(loss.parameters()))
        if self.optimizer.state:  # of the user, and perhaps where the model was before
            self.optimizer.load_state_dict(self.optimizer.state_dict())
        own, d_model = optimizer is not None, model.config.d_model
        self.schedule = LearningRate(schedule, own, config, d_model, self.optimizer)

    def _in_parallel(self, loss: TranslationLoss) -> torch.nn.Module:
        """Return the loss with gradients averaged over the processes, if there are several."""
        if self.accelerator.num_processes == 1:
            return loss
        with warnings.catch_warnings():
            # The replacement, forward_sync_buffers, would broadcast the tables at the start.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            # Each process's table of positions grows on its own; tables of different length cannot
            # be broadcast.
            return DistributedDataParallel(loss, broadcast_buffers=False)

    def _choose_classes(self) -> None:
        """Use the classes that the recipe asks for, if any were swapped since the last call."""
        if self.swaps == fast.swaps:
            return
        on_cpu = self.accelerator.device.type == "cpu"
        wanted = self.config.fast and not self.compiled and on_cpu
        if wanted:
            fast.enable(self.model)
        else:
            fast.disable(self.model)
        self.swaps = fast.swaps

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
            ValueError: as :meth:`resume`; if the model has left its device; or if ``score`` returns
                a name that the curve uses itself.
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
                losses.append(self._train_step(group, count))
                self.epoch, self.position = epoch, position  # a step that fails has used no batch
                self.step += 1
                self.tokens, tokens = self.tokens + count, tokens + count
                self.report.advance()
                self._report_written()
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
                    self._save(save or self.stopping, ending=last or stop or self.stopping)
                    tokens, started = 0, time.perf_counter()
                if stop:
                    self.stopped_by = self.interruption.number
                    break
        return self.stopping or self.step >= config.max_steps

    def _train_step(self, group: list[Batch], count: int) -> torch.Tensor:
        """Take one optimizer step.

        Args:
            group: this process's batches of the step.
            count: real target tokens of the whole step.

        Returns:
            Their part of the mean loss, on the device, which may still be computing it.
        """
        accelerator, config = self.accelerator, self.config
        self._choose_classes()  # a Translator of the model may have changed them
        self.learning_rate = self.schedule.start(self.step + 1)
        total = torch.zeros((), device=accelerator.device)
        for i, batch in enumerate(group):
            batch = send(batch, accelerator.device)
            # Gradients are exchanged once per step, with the last batch.
            with accelerator.no_sync(self.loss) if i + 1 < len(group) else nullcontext():
                with self.autocast():
                    loss, _ = self.loss(batch.source, batch.target_input, batch.labels, batch.rows)
                # Data-parallel gradients are averaged over the processes, but the sum is needed.
                self.scaler.scale(loss * (accelerator.num_processes / count)).backward()
            total += loss.detach()
        if config.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.loss.parameters(), config.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.end()
        self.loss.zero_grad()  # of all weights, even those that a user's optimizer leaves alone
        return total / count

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context that computes in the precision of this run."""
        if self.precision == "fp32":
            return nullcontext()
        half = torch.bfloat16 if self.precision == "bf16" else torch.float16
        return torch.autocast(self.accelerator.state.device.type, half)

    def stop(self) -> None:
        """End the run after the current step, with everything saved; callbacks call this.

        Several processes end together, up to ten steps later.
        """
        self.stop_requested = self.interruption.requested = True

    def checkpoints(self) -> list[Path]:
        """Return the weight files of the last checkpoints, oldest first."""
        return run_folder.checkpoints(self.folder)

    # ------------------------------------------------------------------ around the loop

    def resume(self) -> None:
        """Claim the folder and load the state of the run that it holds, if it holds one.

        :meth:`fit` calls it; call it yourself to know ``step`` beforehand. Further calls before
        ``fit`` do nothing. The claim lasts until ``fit`` ends or :meth:`release` is called.

        Raises:
            ValueError: if the folder holds a run of another configuration or only damaged states.
            OSError: if the folder cannot be read or written, or another process or Trainer has
                claimed it.
        """
        if self.resumed:
            return
        # Before anything is read or removed: another process may be writing there.
        self.claim = self._claim_folder()
        try:
            self._load_state()
        except BaseException:
            self.release()
            raise
        # Code between here and the first step may draw random numbers.
        self.random = state.get_random_state(self.accelerator.device)
        self.resumed = True

    def release(self) -> None:
        """Give up the folder that :meth:`resume` has claimed; during :meth:`fit` it stays claimed.

        ``fit`` claims it again, and loads the state that is there by then.
        """
        if self.fitting:
            return
        if self.claim is not None:
            self.claim.release()
        self.claim, self.resumed = None, False

    def _load_state(self) -> None:
        found = run_folder.load_newest_state(self.folder)
        run_folder.require_shared(gather_object([found and found[1].name]), self.folder)
        if found is None:
            if not self.step:  # otherwise an error ended fit() before the first state was saved
                if self.accelerator.is_main_process:
                    run_folder.warn_of_checkpoints(self.folder)
                # Dropout differs between processes; the initial weights are equal already.
                set_seed(self.config.seed, device_specific=True)
            return
        saved, file = found
        run_folder.require_same(self._identity(), saved["config"], self.folder)
        try:
            state.restore(
                self.accelerator, self.model, self.trained, self.optimizer, self.scaler, saved
            )
            for name in self.PROGRESS:
                setattr(self, name, saved["progress"][name])
            self.saved_at = self.step
        except (AttributeError, LookupError, RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())[:120]
            raise ValueError(f"{file} is not the state of a run: {reason}") from None
        # Errors of the user's own code keep their traceback.
        self.schedule.load_state_dict(saved.get("schedule", {}))
        self.callbacks.load_state_dict(saved.get("callbacks", {}))
        self.accelerator.wait_for_everyone()  # until it has read the file
        if self.accelerator.is_main_process:
            run_folder.settle_on(file)

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
            require_loadable(host_copy(self._own_state()), "state")
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
                    self.report.start(self.step, self.config.to_dict() | self._identity())
                    if self.accelerator.is_main_process:
                        run_folder.prepare(self.folder, self.model, self.tokenizer, self.step)
                state.set_random_state(self.random, self.accelerator.device)
                yield
                self._report_written(wait=True)
                self.callbacks.call("on_end", self)
        finally:
            # Another process may train in the folder before the next call of fit().
            self.fitting = False
            self.release()

    def _claim_folder(self) -> FileLock | None:
        return run_folder.claim_folder(self.folder) if self.accelerator.is_main_process else None

    def _identity(self) -> dict[str, Any]:
        pairs, processes = self.batches.pairs, self.accelerator.num_processes
        mine = state.identity(self.config, self.model, pairs, processes)
        return mine | self.schedule.identity()

    # ------------------------------------------------------------------ validation, checkpoints

    def _gather_weights(self) -> None:
        if self.sharded:
            main = self.accelerator.is_main_process
            weights = state.gather(self.trained.state_dict(), keep=main)
            if main:
                self.model.load_state_dict(weights)

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
        self._gather_weights()
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
                self._save(save, ending=True)
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

    def _save(self, weights: bool, ending: bool) -> None:
        """Save the weights, and the state if the run ends or it is time; each process must call it.

        A callback at the checkpoint may end the run.
        """
        minutes, main = self.config.state_minutes, self.accelerator.is_main_process
        spent = self.seconds - self.state_seconds  # equal in all processes
        due = ending or (weights if minutes is None else spent >= 60 * minutes)
        if not weights and not due:
            return
        self._gather_weights()
        copied = host_copy(self.model.state_dict()) if main else {}
        path = self.folder / f"checkpoints/step-{self.step:08d}.safetensors"
        if weights and main:
            keep_last = self.config.keep_last
            job = partial(run_folder.keep_weights, copied, path, keep_last)
            self.writer.submit(job, (path, self.step))
        if weights and self.callbacks.override("on_checkpoint"):
            self._report_written(wait=True)
            self.callbacks.call("on_checkpoint", self, path)
            self.stopping = anywhere(self.stop_requested, self.accelerator)
        if due or self.stopping:
            parts = state.collect(self.accelerator, self.optimizer, self.scaler)
            if main:
                progress = {name: getattr(self, name) for name in self.PROGRESS}
                parts = host_copy(parts | dict(progress=progress) | self._own_state())
                whole = dict(config=self._identity(), model=copied) | parts
                label = None if weights else (self.state_file, self.step)
                self.writer.submit(partial(run_folder.keep_state, whole, self.folder), label)
            self.state_seconds = self.seconds
        self.saved_at = self.step

    def _report_written(self, wait: bool = False) -> None:
        """Report the files that have been written since; raise if one could not be.

        Args:
            wait: wait for the thread, and for the main process; each process must call this.
        """
        for path, step in self.writer.finished(wait):
            self.report.checkpoint(path, step)
        if wait:
            self.accelerator.wait_for_everyone()

    def _own_state(self) -> dict[str, Any]:
        """Return the states of the user's own parts: the scheduler and the callbacks."""
        callbacks = self.callbacks.state_dict()
        return dict(schedule=self.schedule.state_dict(), callbacks=callbacks)
