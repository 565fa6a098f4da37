"""A translation run from text to BLEU: what ``transformer train`` and the final notebook do."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch

from transformer.data.batching import encode_pairs
from transformer.data.corpora import Corpus, Split, load_corpus
from transformer.data.moses import in_form
from transformer.data.parallel import StreamedSplit
from transformer.data.splits import find_leaks
from transformer.data.token_cache import cached_pairs, cached_tokenizer
from transformer.data.tokenizer import Tokenizer
from transformer.inference.model_card import model_card
from transformer.inference.translator import Translator
from transformer.recipes.architectures import architecture, build_model
from transformer.recipes.estimate import require_disk, run_bytes
from transformer.recipes.evaluation import bleu_of, scores
from transformer.recipes.presets import PRESETS, Preset
from transformer.recipes.record import (
    describe_environment,
    hardware_of,
    read_record,
    recorded_command,
    write_record,
    write_translations,
)
from transformer.saving.files import MANIFEST, require_unchanged
from transformer.saving.locate import CONFIG, CURVE, RECORD, STATE, TOKENIZER_FILES
from transformer.training.callbacks import Callback
from transformer.training.checkpoint import average_checkpoints
from transformer.training.config import TrainingConfig
from transformer.training.curve import read_curve, require_trackers
from transformer.training.run_folder import DAMAGED_STATE, FORMER_STATE, LOCK, keep_weights
from transformer.training.trainer import Trainer

# The latest run of this process in each folder.
_RUNS: WeakValueDictionary[Path, "TranslationRun"] = WeakValueDictionary()

# Without one of these, a run is not finished.
_RESULTS = ("translations.json.gz", "model/config.json", "model/model.safetensors")


class TranslationRun:
    """One training run in one folder: start it, resume it, evaluate it.

    The folder receives the files of :class:`~transformer.training.trainer.Trainer`, ``model/`` (the
    averaged weights with their model card, ready for ``Translator``), ``translations.json.gz`` (of
    every test split) and ``run.json`` (the record). An unfinished run of the same preset in this
    folder is resumed.

    Args:
        preset: the recipe; for fine-tuning, :meth:`Preset.starting_from
            <transformer.recipes.presets.Preset.starting_from>` makes one.
        folder: the run folder, where everything is written.
        data_dir: the user's own files, see :func:`~transformer.data.corpora.load_corpus`.
        corpus: use this text instead of the preset's corpus.
        trackers: see :class:`~transformer.training.trainer.Trainer`.
        progress: show a progress bar; None shows it on a terminal and in a live notebook.
        callbacks: your own code, see :mod:`transformer.training.callbacks`.

    Raises:
        FileExistsError: if the folder holds something other than a run.
        OSError: if the disk has too little space.
        ValueError: if the folder holds a run of another configuration, if the corpus is unknown,
            or if the text supports no vocabulary of that size.
    """

    def __init__(
        self,
        preset: Preset,
        folder: Path | str,
        data_dir: Path | str | None = None,
        corpus: Corpus | None = None,
        trackers: Sequence[Any] = (),
        progress: bool | None = None,
        callbacks: Sequence[Callback] = (),
    ):
        self.folder = Path(folder)
        self._require_own_folder()
        require_trackers(trackers)
        own_text = corpus is not None
        corpus = load_corpus(preset.corpus, data_dir) if corpus is None else corpus
        self.corpus = in_form(corpus, preset.text)
        self.preset = preset = replace(preset, corpus=self.corpus.name)
        #: The command that repeats the run; None if no command does.
        self.command: str | None = None
        if preset.name in PRESETS and (self.corpus.files or not own_text):
            self.command = preset.command(self.corpus.files, None if own_text else data_dir)
        train = self.corpus.train.first(preset.train_pairs)
        start = None if preset.init_from is None else Translator.from_pretrained(preset.init_from)
        self.tokenizer = self._tokenizer(train) if start is None else _joint_tokenizer(start)

        training = preset.training
        torch.manual_seed(training.seed)
        self.model = build_model(replace(preset.model, vocab_size=self.tokenizer.vocab_size))
        if start is not None:
            self.model.load_state_dict(start.model.state_dict())
        self.translator = Translator(self.model, self.tokenizer)
        if isinstance(train, StreamedSplit):
            pairs = cached_pairs(self.tokenizer, train)
        else:
            pairs = encode_pairs(self.tokenizer, train)
        self.validation = self._fitting("validation", self.corpus.validation)
        tests = {
            name: self._fitting(name, split).first(preset.test_pairs)
            for name, split in self.corpus.splits.items()
            if name not in ("train", "validation")
        }
        #: Scored at the end, every test split, or validation where there is none.
        self.tests: dict[str, Split] = tests or {"validation": self.validation}
        require_disk({self.folder: run_bytes(self.model.num_parameters(), training.keep_last)})
        self._parts = _Parts()
        self.trainer = Trainer(
            self.model,
            pairs,
            training,
            self.folder,
            callbacks=[_StartedFrom(preset.init_from), self._parts, *callbacks],
            validation=encode_pairs(self.tokenizer, self.validation),
            score=self._validation_bleu if preset.score_pairs else None,
            tokenizer=self.tokenizer,
            trackers=trackers,
            progress=progress,
        )
        self.batches = self.trainer.batches
        # A cell that makes a run may be executed again before the run is trained.
        if (former := _RUNS.get(self.folder.resolve())) is not None:
            former.trainer.release()
        _RUNS[self.folder.resolve()] = self
        self.trainer.resume()
        if not self.trainer.accelerator.is_main_process:
            return
        # Read now what the record says about the text, whose files may be gone after training.
        _ = self.corpus.checksum
        if own_text and self.finished() is None:
            for leak in find_leaks(self.corpus.splits):
                warnings.warn(leak, stacklevel=2)

    def finished(self) -> dict[str, Any] | None:
        """Return the record of this run if it is complete and none of its files is missing."""
        try:
            record = read_record(self.folder / RECORD)
            fields = record["preset"]
            # Made anew, so that fields which an earlier version did not have get their defaults.
            model = type(self.preset.model)(**fields["model"])
            training = TrainingConfig(**fields["training"])
            preset = Preset(**fields | dict(model=model, training=training))
        except (OSError, LookupError, TypeError, ValueError):
            return None
        text = record.get("corpus")
        complete = (
            all((self.folder / name).is_file() for name in _RESULTS)
            and self.trainer.step >= self.preset.training.max_steps
            and record.get("steps") == self.trainer.step
            and preset == self.preset
            and isinstance(text, dict)
            and text.get("sha256") == self.corpus.checksum
        )
        return record if complete else None

    def train(self) -> bool:
        """Train; return False if a signal ended it early (call again to resume)."""
        return self.trainer.fit()

    def finish(self, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
        """Average the last checkpoints, evaluate, write the model and return the written record.

        Each result is passed to ``say``.

        Raises:
            ValueError: if the run has more steps than the preset asks for, or none.
        """
        trainer, preset = self.trainer, self.preset
        if trainer.step > preset.training.max_steps:
            raise ValueError(
                f"{self.folder} is at step {trainer.step:,}, beyond max_steps "
                f"{preset.training.max_steps:,}; ask for max_steps={trainer.step}, or choose "
                "another folder"
            )
        newest = self.folder / f"checkpoints/step-{trainer.step:08d}.safetensors"
        if trainer.step and not newest.is_file():  # it was stopped here, between two checkpoints
            keep_weights(self.model.state_dict(), newest)
        paths = trainer.checkpoints()[-preset.training.keep_last :]
        metrics, translations = [], {}
        search: dict[str, Any] = dict(alpha=preset.alpha, penalty=preset.penalty)
        # The mean of a single checkpoint is that checkpoint.
        for weights, used in (("last", paths[-1:]), ("averaged", paths))[len(paths) == 1 :]:
            self.model.load_state_dict(average_checkpoints(used))
            for name, split in self.tests.items():
                for beam_size in sorted({1, preset.beam_size}):
                    found = self.translator.translate(
                        split.source, beam_size=beam_size, sentence_case=False, **search
                    )
                    translations[name] = found  # the last ones stay: averaged weights, beam search
                    result = dict(
                        split=name, pairs=len(split), weights=weights, beam_size=beam_size, **search
                    )
                    for score in scores(found, split, preset.text):
                        metrics.append(result | score.to_dict())
                        say(f"{name}, {weights} weights, beam {beam_size}: {score}")
        record: dict[str, Any] = dict(
            preset=preset.to_dict(),
            command=self.command,
            seed=preset.training.seed,
            architecture=architecture(preset.model),
            corpus=dict(
                name=self.corpus.name,
                languages=[self.corpus.source_language, self.corpus.target_language],
                licence=self.corpus.licence,
                sha256=self.corpus.checksum,
                pairs=self.corpus.sizes,
            ),
            parameters=self.model.num_parameters(),
            steps=trainer.step,
            precision=trainer.precision,
            target_tokens=trainer.tokens,
            minutes=round(trainer.seconds / 60, 2),
            averaged=[path.stem for path in paths],
            environment=describe_environment(trainer.accelerator.num_processes),
            metrics=metrics,
            samples=self._samples(translations),
            curve=read_curve(self.folder / CURVE),
        )
        if len(self._parts.parts) > 1:
            record["parts"] = self._parts.parts
        self.translator.card = model_card(
            f"{self.folder}/model",
            record["corpus"]["languages"],
            record["corpus"],
            record["metrics"],
            record["parameters"],
            record | dict(hardware=hardware_of(record)),
            preset.name,
            recorded_command(record),
        )
        self.translator.save_pretrained(self.folder / "model")
        write_translations(self.folder / "translations.json.gz", translations)
        write_record(self.folder / RECORD, record)
        return record

    def _samples(self, translations: dict[str, list[str]]) -> list[dict[str, str]]:
        name, split = next(iter(self.tests.items()))
        rows = zip(split.first(8), translations[name], strict=False)
        return [
            dict(source=source, reference=reference, translation=translation)
            for (source, reference), translation in rows
        ]

    def _validation_bleu(self, model: object) -> dict[str, float]:
        split = self.validation.first(self.preset.score_pairs)
        translations = self.translator.translate(split.source, beam_size=1, sentence_case=False)
        return {"bleu": bleu_of(translations, split, self.preset.text).score}

    def _tokenizer(self, train: Split) -> Tokenizer:
        size = self.preset.model.vocab_size
        if not (self.folder / STATE).exists():
            if isinstance(train, StreamedSplit):
                return cached_tokenizer(train, size)
            return Tokenizer.train([*train.source, *train.target], size)
        require_unchanged(self.folder, "tokenizer.json")
        tokenizer = Tokenizer.load(self.folder / "tokenizer.json")
        if tokenizer.vocab_size != size:
            raise ValueError(
                f"{self.folder} holds a run of another configuration "
                f"(vocab_size: {tokenizer.vocab_size} there, {size} here)"
            )
        return tokenizer

    def _fitting(self, name: str, split: Split) -> Split:
        """Leave out the sentences that are too long for the model, with a warning."""
        longest = self.model.longest
        if longest is None:
            return split
        sides = (self.tokenizer.encode_batch(side) for side in (split.source, split.target))
        fits = [max(map(len, pair)) < longest for pair in zip(*sides, strict=True)]  # with <eos>
        if all(fits):
            return split
        notice = f"{name}: left out {fits.count(False)} of {len(fits)} pairs"
        if not any(fits):
            raise ValueError(f"{notice}, all with more than {longest} tokens (max_length)")
        warnings.warn(f"{notice} with more than {longest} tokens (max_length)", stacklevel=3)
        return Split.of(pair for pair, fit in zip(split, fits, strict=True) if fit)

    def _require_own_folder(self) -> None:
        if self.folder.is_file():
            raise FileExistsError(f"{self.folder} is a file, but must be a folder")
        if not self.folder.is_dir() or (self.folder / STATE).exists():
            return
        # Files of a run that was killed before its first checkpoint. A folder with a trained model
        # has a tokenizer.json as well, but also other files.
        own = {CONFIG, *TOKENIZER_FILES, MANIFEST, CURVE, "checkpoints", "tensorboard"}
        own |= {LOCK, FORMER_STATE, DAMAGED_STATE, "wandb"}
        names = sorted(path.name for path in self.folder.iterdir())
        strange = [name for name in names if name not in own and not name.endswith(".tmp")]
        if strange:
            raise FileExistsError(
                f"{self.folder} exists but holds no training run (found {strange[0]}); "
                f"choose another folder"
            )


class _StartedFrom(Callback):
    """Record what a run started from, and refuse to resume it from another start."""

    def __init__(self, init_from: str | None):
        self.init_from = init_from

    def state_dict(self) -> dict[str, Any]:
        return dict(init_from=self.init_from)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        theirs, mine = (name or "random weights" for name in (state["init_from"], self.init_from))
        if theirs != mine:
            raise ValueError(
                f"the run in this folder started from {theirs}, but init_from is {mine}; choose "
                f"another folder"
            )


class _Parts(Callback):
    """Record where each part of a run was trained; it may be resumed on another machine."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []

    def on_start(self, trainer: Trainer) -> None:
        environment = describe_environment(trainer.accelerator.num_processes)
        last = self.parts[-1]["environment"] if self.parts else None
        if environment != last and trainer.step < trainer.config.max_steps:
            self.parts.append(dict(from_step=trainer.step, environment=environment))

    def state_dict(self) -> dict[str, Any]:
        return dict(parts=self.parts)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.parts = list(state["parts"])


def _joint_tokenizer(start: Translator) -> Tokenizer:
    if not isinstance(start.tokenizer, Tokenizer) or start.target_tokenizer is not start.tokenizer:
        raise ValueError("init_from must be a model with one joint vocabulary, got one with two")
    return start.tokenizer
