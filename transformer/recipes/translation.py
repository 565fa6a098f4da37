"""A translation run from text to BLEU: what ``transformer train`` and the final notebook do.

Paper: sections 5 and 6.1
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transformer.baselines import RecurrentConfig
from transformer.data.batching import EncodedPairs, TokenBatches, encode_pairs
from transformer.data.corpora import Corpus, Split, load_corpus
from transformer.data.moses import TextForm, in_form
from transformer.data.parallel import StreamedSplit
from transformer.data.token_cache import cached_pairs, cached_tokenizer
from transformer.data.tokenizer import Tokenizer
from transformer.inference.decoding import LengthPenalty
from transformer.inference.device import device_label
from transformer.inference.metrics import Score, bleu, chrf
from transformer.inference.translator import Translator
from transformer.model.files import MANIFEST, require_unchanged, write_manifest
from transformer.recipes.architectures import architecture, build_model
from transformer.recipes.estimate import estimate_time, requirements
from transformer.recipes.presets import PRESETS, Preset
from transformer.recipes.record import describe_environment, write_record, write_translations
from transformer.training.checkpoint import average_checkpoints, save_pretrained
from transformer.training.curve import read_curve
from transformer.training.run_folder import FORMER_STATE, LOCK
from transformer.training.trainer import Trainer


class TranslationRun:
    """One training run in one folder: start it, resume it, evaluate it.

    The folder receives ``tokenizer.json`` with its checksum, the files of
    :class:`~transformer.training.trainer.Trainer`, ``model/`` (the averaged weights, ready for
    ``Translator``), ``translations.json.gz`` (of every test split) and ``run.json`` (the record).
    An unfinished run of the same preset in this folder is resumed.

    Args:
        preset: the recipe.
        folder: where to write.
        data_dir: the user's own files, see :func:`~transformer.data.corpora.load_corpus`.
        corpus: use this text instead of the preset's corpus.
        tensorboard: also write the curve for TensorBoard.
        progress: show a progress bar; None shows it on a terminal only.

    Raises:
        FileExistsError: if the folder holds something other than a run.
        ValueError: if the folder holds a run of another configuration, if the corpus is unknown,
            or if the text supports no vocabulary of that size.

    Paper: sections 5 and 6.1
    """

    def __init__(
        self,
        preset: Preset,
        folder: Path | str,
        data_dir: Path | str | None = None,
        corpus: Corpus | None = None,
        tensorboard: bool = False,
        progress: bool | None = None,
    ):
        self.folder = Path(folder)
        self._require_own_folder()
        corpus = load_corpus(preset.corpus, data_dir) if corpus is None else corpus
        self.corpus = in_form(corpus, preset.text)
        self.preset = preset = replace(preset, corpus=self.corpus.name)
        train = self.corpus.train.first(preset.train_pairs)
        self.tokenizer = self._tokenizer(train)

        training = preset.training
        torch.manual_seed(training.seed)
        self.model = build_model(replace(preset.model, vocab_size=self.tokenizer.vocab_size))
        self.translator = Translator(self.model, self.tokenizer)
        limits = [training.max_length]
        if not isinstance(preset.model, RecurrentConfig) and preset.model.positions == "learned":
            limits.append(preset.model.max_length)
        longest = min((limit for limit in limits if limit is not None), default=None)
        if isinstance(train, StreamedSplit):
            pairs = cached_pairs(self.tokenizer, train)
        else:
            pairs = encode_pairs(self.tokenizer, train)
        self.batches = TokenBatches(pairs, training.batch_tokens, training.seed, longest)
        self.validation = self._fitting("validation", self.corpus.validation)
        tests = {
            name: self._fitting(name, split).first(preset.test_pairs)
            for name, split in self.corpus.splits.items()
            if name not in ("train", "validation")
        }
        #: Scored at the end, every test split, or validation where there is none.
        self.tests: dict[str, Split] = tests or {"validation": self.validation}
        validation = encode_pairs(self.tokenizer, self.validation)
        self.trainer = Trainer(
            self.model,
            self.batches,
            training,
            self.folder,
            validation=_batches_of_all(validation, training.batch_tokens),
            score=self._validation_bleu if preset.score_pairs else None,
            tensorboard=tensorboard,
            progress=progress,
        )
        # Not earlier: a run that cannot start leaves nothing behind.
        if self.trainer.accelerator.is_main_process and not self.trainer.step:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.tokenizer.save(self.folder / "tokenizer.json")
            write_manifest(self.folder, "tokenizer.json")

    def describe(self) -> str:
        """Describe corpus, model, training and device, and estimate disk, memory and time.

        Paper: section 5.2
        """
        preset, training = self.preset, self.preset.training
        parameters = self.model.num_parameters()
        shown = ("num_layers", "d_model", "d_ff", "d_hidden", "num_heads", "kernel")
        fields = preset.model.to_dict()
        sizes = [f"{name} {fields[name]}" for name in shown if fields.get(name) is not None]
        accelerator, pairs = self.trainer.accelerator, self.batches.pairs
        processes = accelerator.num_processes
        per_step = training.accumulate * processes
        tests = list(self.tests.values())
        left = estimate_time(preset, self.trainer, self.translator, self.validation, tests)
        on_gpu = accelerator.device.type == "cuda"
        needs = requirements(preset, parameters, left, processes, on_gpu, at_hand=True)
        lines = [
            f"{preset.name}: {self.corpus.name}, {len(pairs):,} training pairs, "
            f"{int(pairs.target.lengths().sum()):,} target tokens, "
            f"vocabulary {self.tokenizer.vocab_size:,}",
            f"model: {architecture(preset.model)}, {parameters:,} parameters, " + ", ".join(sizes),
            f"training: {training.max_steps:,} steps of at most "
            f"{training.batch_tokens * per_step:,} tokens, "
            f"{training.max_steps * per_step / len(self.batches):.1f} epochs, "
            f"{training.precision}",
            f"device: {device_label(accelerator.device)}, "
            f"{processes} process{'es' * (processes > 1)}",
            *needs.lines()[1:],  # without the title
            f"folder: {self.folder}",
        ]
        if self.batches.num_dropped:
            lines.insert(1, f"left out: {self.batches.num_dropped:,} pairs that are too long")
        if self.trainer.step:
            lines.append(f"going on from step {self.trainer.step:,}")
        return "\n".join(lines)

    def train(self) -> bool:
        """Train; return False if a signal ended it early (call again to resume)."""
        return self.trainer.fit()

    def finish(self, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
        """Average the last checkpoints, evaluate, write the model and return the written record.

        Each result is passed to ``say``.

        Paper: section 6.1
        """
        paths, preset = self.trainer.checkpoints(), self.preset
        metrics, translations = [], {}
        search: dict[str, Any] = dict(alpha=preset.alpha, penalty=preset.penalty)
        for weights, used in (("last", paths[-1:]), ("averaged", paths)):
            self.model.load_state_dict(average_checkpoints(used))
            for name, split in self.tests.items():
                for beam_size in sorted({1, preset.beam_size}):
                    found = self.translator.translate(split.source, beam_size, **search)
                    translations[name] = found  # finally those of the averaged weights and the beam
                    result = dict(
                        split=name, pairs=len(split), weights=weights, beam_size=beam_size, **search
                    )
                    for score in _scores(found, split, preset.text):
                        metrics.append(result | score.to_dict())
                        say(f"{name}, {weights} weights, beam {beam_size}: {score}")
        save_pretrained(self.model, self.tokenizer, self.folder / "model")
        trainer = self.trainer
        record = dict(
            preset=preset.to_dict(),
            command=preset.command() if preset.name in PRESETS else None,
            seed=preset.training.seed,
            architecture=architecture(preset.model),
            corpus=dict(
                name=self.corpus.name,
                languages=[self.corpus.source_language, self.corpus.target_language],
                licence=self.corpus.licence,
                sha256=self.corpus.checksum,
                pairs={name: len(split) for name, split in self.corpus.splits.items()},
            ),
            parameters=self.model.num_parameters(),
            steps=trainer.step,
            target_tokens=trainer.tokens,
            minutes=round(trainer.seconds / 60, 2),
            averaged=[path.stem for path in paths],
            environment=describe_environment(),
            metrics=metrics,
            samples=self._samples(translations),
            curve=read_curve(self.folder / "curve.jsonl"),
        )
        write_translations(self.folder / "translations.json.gz", translations)
        write_record(self.folder / "run.json", record)
        return record

    def _samples(self, translations: dict[str, list[str]], count: int = 8) -> list[dict[str, str]]:
        name, split = next(iter(self.tests.items()))
        rows = zip(split.first(count), translations[name], strict=False)
        return [
            dict(source=source, reference=reference, translation=translation)
            for (source, reference), translation in rows
        ]

    def _validation_bleu(self, model: object) -> dict[str, float]:
        split = self.validation.first(self.preset.score_pairs)
        translations = self.translator.translate(split.source, beam_size=1)
        return {"bleu": _bleu(translations, split, self.preset.text).score}

    def _tokenizer(self, train: Split) -> Tokenizer:
        size = self.preset.model.vocab_size
        if not (self.folder / "state.pt").exists():
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
        longest = getattr(self.preset.model, "max_length", None)
        if longest is None:  # a recurrent model has no limit
            return split
        pairs = encode_pairs(self.tokenizer, split)
        fits = np.maximum(pairs.source.lengths(), pairs.target.lengths()) <= longest
        if fits.all():
            return split
        notice = f"{name}: left out {len(fits) - fits.sum()} of {len(fits)} pairs"
        if not fits.any():
            raise ValueError(f"{notice}, all with more than {longest} tokens (max_length)")
        warnings.warn(f"{notice} with more than {longest} tokens (max_length)", stacklevel=3)
        kept = [pair for pair, fit in zip(split, fits, strict=True) if fit]
        return Split([source for source, _ in kept], [target for _, target in kept])

    def _require_own_folder(self) -> None:
        if self.folder.is_file():
            raise FileExistsError(f"{self.folder} is a file, a folder is needed")
        if not self.folder.is_dir() or (self.folder / "state.pt").exists():
            return
        # Files of a run that was killed before its first checkpoint. A folder with a trained model
        # has a tokenizer.json as well, but also other files.
        own = {"tokenizer.json", MANIFEST, "curve.jsonl", "checkpoints", "tensorboard"}
        own |= {LOCK, FORMER_STATE}
        names = sorted(path.name for path in self.folder.iterdir())
        strange = [name for name in names if name not in own and not name.endswith(".tmp")]
        if strange:
            raise FileExistsError(
                f"{self.folder} exists and holds no training run, but {strange[0]}; "
                f"choose another folder"
            )


def evaluate(
    translator: Translator,
    split: Split,
    beam_size: int = 4,
    alpha: float = 0.6,
    batch_size: int = 64,
    progress: bool = False,
    text: TextForm = "plain",
    penalty: LengthPenalty = "gnmt",
) -> list[Score]:
    """Translate a split and return BLEU and chrF, with their signatures.

    BLEU tokenises plain text and leaves Moses tokens as they are.

    Paper: section 6.1, Table 2
    """
    translations = translator.translate(
        split.source, beam_size, alpha, batch_size, progress=progress, penalty=penalty
    )
    return _scores(translations, split, text)


def _scores(translations: list[str], split: Split, text: TextForm) -> list[Score]:
    return [_bleu(translations, split, text), chrf(translations, split.target)]


def _bleu(translations: list[str], split: Split, text: TextForm) -> Score:
    return bleu(translations, split.target, "13a" if text == "plain" else "none")


def _batches_of_all(pairs: EncodedPairs, batch_tokens: int) -> TokenBatches:
    """Batch every pair, also those that are longer than the budget."""
    longest = max(pairs.source.lengths().max(), pairs.target.lengths().max())
    return TokenBatches(pairs, max(batch_tokens, int(longest)))
