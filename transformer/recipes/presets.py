"""Named recipes: corpus, vocabulary, model, training and search under one name."""

import difflib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from transformer.baselines import ConvolutionalConfig, RecurrentConfig
from transformer.data.moses import TextForm
from transformer.data.tokenizer import LARGEST_VOCABULARY
from transformer.inference.options import LengthPenalty, SearchOptions
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import ModelConfig
from transformer.settings import COUNT, Settings, unknown_name, whole
from transformer.training.config import TrainingConfig

#: Largest beam of the final evaluation; a larger one would fill the memory after hours of training.
WIDEST_BEAM = 256

#: Fields of a model that its weights do not depend on.
FREE_OF_WEIGHTS = ("dropout", "attention_dropout", "activation_dropout")

#: The part of an option's name that says to which split the user's file belongs.
FILE_OPTIONS = {"train": "", "validation": "valid-", "test": "test-"}


@dataclass(frozen=True)
class Preset(Settings):
    """Everything that a translation run depends on."""

    name: str
    model: ModelConfig  #: its ``vocab_size`` is that of the joint vocabulary
    training: TrainingConfig = field(default_factory=TrainingConfig)
    corpus: str = "tatoeba-en-de"  #: known to :func:`~transformer.data.corpora.load_corpus`
    text: TextForm = "plain"  #: "moses-lowercase" trains and scores on lower-cased Moses tokens
    train_pairs: int | None = None  #: use only the first so many training pairs
    test_pairs: int | None = None  #: use only the first so many pairs of each test split
    score_pairs: int = 500  #: validation pairs translated greedily for BLEU; 0 for none
    beam_size: int = 4  #: of the final evaluation
    alpha: float = 0.6  #: exponent of the length penalty of the final evaluation
    penalty: LengthPenalty = "gnmt"  #: see :func:`~transformer.inference.decoding.length_penalty`
    init_from: str | None = None  #: weights to start from, see :meth:`starting_from`

    _numbers = dict(score_pairs=whole(0), beam_size=whole(1, WIDEST_BEAM))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model.vocab_size > LARGEST_VOCABULARY:
            raise ValueError(
                f"vocab_size must be at most {LARGEST_VOCABULARY:,}, got {self.model.vocab_size:,}"
            )
        SearchOptions(self.beam_size, self.alpha, self.penalty)  # checks them

    def with_changes(self, **changes: Any) -> "Preset":
        """Return the preset with fields replaced: its own, the model's or the training's.

        ``max_length`` is the training's field; the model's grows with it if needed.

        Raises:
            ValueError: if there is no such field, a value is out of range, or the weights that the
                run starts from have another value.
        """
        parts: dict[str, dict[str, Any]] = {"own": {}, "model": {}, "training": {}}
        for name, value in changes.items():
            parts[self.field(name)[0]][name] = value
        for name, value in parts["model"].items() if self.init_from else ():
            fixed = getattr(self.model, name)
            if name not in FREE_OF_WEIGHTS and value != fixed:
                raise ValueError(
                    f"{name} must be {fixed}, as in the weights of {self.init_from!r}, got {value}"
                )
        if changes.get("max_length") is not None and hasattr(self.model, "max_length"):
            # The training's. The model must accept what it is trained on.
            longest = max(self.model.max_length, COUNT("max_length", changes["max_length"]))
            if not (self.init_from and getattr(self.model, "positions", None) == "learned"):
                parts["model"]["max_length"] = longest
        return replace(
            self,
            model=replace(self.model, **parts["model"]),
            training=replace(self.training, **parts["training"]),
            **parts["own"],
        )

    def field(self, name: str) -> tuple[str, Any]:
        """Return the owner of a field ("own", "model" or "training") and the field's type."""
        homes = (("own", self), ("model", self.model), ("training", self.training))
        known = {f.name: (home, f.type) for home, part in homes for f in fields(part)}
        del known["model"], known["training"], known["name"], known["init_from"]
        if name not in known:
            raise ValueError(unknown_name("field", name, sorted(known)))
        return known[name]

    def uncapped(self) -> "Preset":
        """Return the preset without its caps on the text, which are meant for its own corpus."""
        return replace(self, train_pairs=None, test_pairs=None)

    def starting_from(self, name_or_path: str) -> "Preset":
        """Return the preset for fine-tuning a trained model, whose configuration it takes.

        The run also takes the model's weights and its tokenizer. Only dropout can be changed
        afterwards. The name is one for :meth:`Translator.from_pretrained
        <transformer.inference.translator.Translator.from_pretrained>`, with the same errors.
        """
        model = Translator.from_pretrained(name_or_path).model.config
        return replace(self, model=model, init_from=name_or_path)

    def command(
        self, files: Mapping[str, tuple[str, str]] | None = None, data_dir: Path | str | None = None
    ) -> str:
        """Return the command that repeats a run of this preset, in the syntax of a shell.

        It sets the fields that differ from the built-in preset of the same name.

        Args:
            files: source file and target file of each split, if the user gave any.
            data_dir: folder of the user's copies of corpus files.
        """
        named, words = get_preset(self.name), ["transformer", "train", self.name]
        if self.init_from is not None:
            named = named.starting_from(self.init_from)
            words += ["--init-from", self.init_from]
        if data_dir is not None:
            words += ["--data-dir", str(data_dir)]
        if files:
            named = replace(named, corpus=self.corpus).uncapped()
        for split, pair in (files or {}).items():
            for side, path in zip(("source", "target"), pair, strict=True):
                words += [f"--{FILE_OPTIONS[split]}{side}-file", path]
        parts = (self, named), (self.model, named.model), (self.training, named.training)
        for mine, theirs in parts:
            for field_name in (f.name for f in fields(mine)):
                value = getattr(mine, field_name)
                follows = mine is self.model and field_name == "max_length"  # see with_changes
                if field_name in ("model", "training") or follows:
                    continue
                if value != getattr(theirs, field_name, None):
                    words += ["--set", f"{field_name}={value}"]
        return shlex.join(words)


def _multi30k() -> list[Preset]:
    """Make presets of small models on image captions, by the protocol of the published scores.

    Lower-cased Moses tokens, beam 5, the mean log-probability per token as score, and the mean of
    the last 10 checkpoints, here about one per epoch.
    """
    # Transformer-Tiny of Wu et al. 2021: two GPUs with 4,096 tokens each, a peak rate of 5e-3.
    tiny = Preset(
        "multi30k-tiny",
        TransformerConfig.tiny(10_000),
        TrainingConfig(
            seed=1, max_steps=8000, batch_tokens=4096, accumulate=2, warmup_steps=2000,
            learning_rate_factor=2.53, validate_every=400, save_every=100, keep_last=10,
            log_every=100,
        ),
        corpus="multi30k-en-de", text="moses-lowercase", score_pairs=300, beam_size=5, alpha=1.0,
        penalty="fairseq",
    )  # fmt: skip
    # The same number of parameters, tokens and steps. Both learned far faster at a peak learning
    # rate of 3e-3 than of 1e-3; this factor gives 3.5e-3. Recurrent gradients need clipping, and
    # the convolutional model got it too.
    own_rate = dict(learning_rate_factor=1.77, clip_norm=1.0)
    recurrent = replace(
        tiny,
        name="multi30k-recurrent",
        model=RecurrentConfig(10_000, d_model=128, d_hidden=320, dropout=0.3),
    ).with_changes(**own_rate)
    convolutional = replace(
        tiny,
        name="multi30k-convolutional",
        model=ConvolutionalConfig(10_000, d_model=128, num_layers=5, dropout=0.3, max_length=256),
    ).with_changes(**own_rate)
    # Three eighths of the tokens, and a peak learning rate of 2.9e-3: an hour on one CPU core.
    short = dict(max_steps=6000, accumulate=1, warmup_steps=1500, learning_rate_factor=1.25)
    # The size of a well-known series of tutorials, which translate German to English.
    small = TransformerConfig(10_000, d_model=256, d_ff=512, num_heads=8, num_layers=3)
    return [
        tiny,
        recurrent,
        convolutional,
        *(
            replace(preset, name=f"{preset.name}-cpu").with_changes(**short)
            for preset in (tiny, recurrent, convolutional)
        ),
        replace(tiny, name="multi30k-tiny-cased", text="plain"),
        replace(tiny, name="multi30k-tiny-en-fr", corpus="multi30k-en-fr"),
        replace(tiny, name="multi30k-small-de-en", corpus="multi30k-de-en", model=small),
    ]


def _presets() -> list[Preset]:
    return [
        # Shows in a minute on a CPU that every part works. The model learns next to nothing.
        Preset(
            "smoke",
            TransformerConfig(1000, d_model=32, d_ff=64, num_heads=2, num_layers=1, dropout=0.0),
            TrainingConfig(
                max_steps=60, batch_tokens=1024, warmup_steps=30, log_every=10, validate_every=30,
                save_every=20, keep_last=2,
            ),
            train_pairs=4000, test_pairs=100, score_pairs=50,
        ),
        # A small model, in about two hours on one CPU core. The German model that ships with the
        # package was trained with more dropout, larger batches and more steps.
        Preset(
            "tatoeba-small",
            TransformerConfig(8000, d_model=256, d_ff=512, num_heads=4, num_layers=3),
            TrainingConfig(
                seed=1, max_steps=5500, batch_tokens=2048, max_length=128, warmup_steps=2000,
                validate_every=500, save_every=250, keep_last=5,
            ),
        ),
        # As large a model as Tatoeba rewards on one GPU, too large to ship with the package.
        Preset(
            "tatoeba-large",
            TransformerConfig(16_000, d_model=512, d_ff=1024, num_heads=8, num_layers=6),
            TrainingConfig(
                max_steps=8000, batch_tokens=8192, max_length=128, precision="bf16",
                validate_every=1000, save_every=200,
            ),
        ),
        *_multi30k(),
        # The base model on all English-German text that needs no large download.
        Preset(
            "mixture-base",
            TransformerConfig.base(16_000, dropout=0.3),
            TrainingConfig(
                max_steps=4000, batch_tokens=25_000, max_length=128, warmup_steps=2000,
                precision="bf16", compile=True, validate_every=500, save_every=200,
            ),
            corpus="mixture-en-de",
        ),
        # The paper's two models, on one GPU: 25,000 target tokens per step, in batches that
        # transformer.recipes.cards fits to its memory.
        Preset(
            "wmt14-base",
            TransformerConfig.base(37_000),
            TrainingConfig(
                batch_tokens=25_000, precision="bf16", compile=True, validate_every=2500
            ),
            corpus="wmt14-en-de",
        ),
        Preset(
            "wmt14-big",
            TransformerConfig.big(37_000),
            TrainingConfig(
                max_steps=300_000, batch_tokens=12_500, accumulate=2, precision="bf16",
                compile=True, validate_every=5000, keep_last=20, state_minutes=10.0,
            ),
            corpus="wmt14-en-de",
        ),
    ]  # fmt: skip


PRESETS: dict[str, Preset] = {preset.name: preset for preset in _presets()}


def get_preset(name: str) -> Preset:
    """Return a preset by name; the ValueError for an unknown one lists the names."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown preset {name!r}; {hint}known: {', '.join(PRESETS)}")
    return PRESETS[name]
