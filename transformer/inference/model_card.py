"""Write a model card: the description of a model on the Hugging Face Hub, with metadata."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.published import REPOSITORY

if TYPE_CHECKING:  # a translation does not need the Hub's library, which is slow to import
    from huggingface_hub import ModelCard, ModelCardData

LIBRARY = "transformer-book"
_LICENCES = re.compile(r"(CC BY(?:-[A-Z]+)*) (\d\.\d)|(CC0)|(MIT)\b", re.IGNORECASE)
_NAMES = dict(
    cs="Czech",
    de="German",
    en="English",
    es="Spanish",
    fr="French",
    it="Italian",
    nl="Dutch",
    pl="Polish",
    pt="Portuguese",
    ru="Russian",
    zh="Chinese",
)
_ADDRESS = re.compile(r'\bTranslator\.from_pretrained\("[^"]*"')
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_UNNAMED = "path/to/this/folder"
# Corpora that are on the Hub in the form used here, by the beginning of their names.
_DATASETS = {"wmt14": "wmt/wmt14"}
# The text of the shipped models, with its licence.
_SHIPPED_TEXT = dict.fromkeys(
    ("tatoeba-en-de", "tatoeba-en-fr"), "Tatoeba sentence pairs, CC BY 2.0 FR"
)

_LIMITS = """The model has learned only from its training text. It may leave out parts of a \
sentence, add content that is not there, and get names, numbers and technical terms wrong, most of \
all in text unlike the training text. Biases of that text carry over. Check its translations \
before you rely on them."""


def model_card(
    name: str = _UNNAMED,
    languages: Sequence[str] = (),
    corpus: Mapping[str, Any] | None = None,
    metrics: Iterable[Mapping[str, Any]] = (),
    parameters: int | None = None,
    training: Mapping[str, Any] | None = None,
    preset: str | None = None,
    command: str | None = None,
    limits: str = _LIMITS,
    title: str | None = None,
    others: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Write a model card from the record of a run; anything not given is left out.

    Args:
        name: the model as ``Translator.from_pretrained`` takes it: a folder, or a Hub id.
        languages: codes of the source and target languages, such as "en" and "de".
        corpus: ``name``, ``licence``, ``sha256`` and ``pairs`` (number of pairs by split).
        metrics: each with ``split``, ``pairs``, ``weights``, ``beam_size``, ``alpha``, ``name``,
            ``score`` and ``signature``. Those of the averaged weights are shown if there are any.
        parameters: number of parameters.
        training: any of ``architecture``, ``steps``, ``target_tokens``, ``minutes``, ``seed``,
            ``averaged`` (names of the checkpoints), ``hardware`` and ``preset``, whose
            ``init_from`` names the model that the run started from; other entries are ignored, so
            you can pass a whole record. If the run went on with the model of an earlier one,
            ``first_run`` has the entries of that one.
        preset: name of the preset.
        command: the command that repeats the run.
        limits: what the model cannot do.
        title: the heading; None for the last part of ``name``, or for a run's "model" the part
            before it.
        others: ``seed`` and ``metrics`` of other runs of the same recipe.

    Returns:
        Markdown with YAML front matter that ``huggingface_hub.ModelCard`` reads.
    """
    corpus, training = corpus or {}, training or {}
    metrics = list(metrics)
    metrics = [m for m in metrics if m.get("weights") == "averaged"] or metrics
    named = [_NAMES.get(code, code) for code in _codes(languages)]
    direction = f" that translates {named[0]} to {named[1]}" if len(named) == 2 else ""
    size = f" with {parameters:,} parameters" if parameters else ""
    title = title or _title(name)
    parts = [
        f"---\n{_metadata(title, languages, corpus, metrics, _base(training)).to_yaml()}\n---",
        f"# {title}",
        f"{_kind(training)}{size}{direction}, made with the package `{LIBRARY}`.",
        f"## How to use\n\n{_usage(name, languages)}",
        *([f"## Training\n\n{text}"] if (text := _training(training, preset, command)) else []),
        *([f"## Data\n\n{text}"] if (text := _data(corpus)) else []),
        *([f"## Scores\n\n{_scores(metrics, training.get('seed'), others)}"] if metrics else []),
        f"## Limits\n\n{limits}",
    ]
    return "\n\n".join(parts) + "\n"


def with_address(card: str, repo_id: str) -> str:
    """Put the id of a repository into the example of a model card."""
    return _ADDRESS.sub(lambda _: f'Translator.from_pretrained("{repo_id}"', card)


def read_card(card: str) -> "ModelCard":
    """Read a model card; invalid metadata is left out."""
    from huggingface_hub import ModelCard

    try:
        return ModelCard(card, ignore_metadata_errors=True)
    except Exception:  # errors of YAML and of the metadata share no base class
        return ModelCard("---\n{}\n---" + card.partition("\n---")[2])


@lru_cache(maxsize=16)
def source_language(card: str) -> str:
    """Return the code of the first language that a model card names, or "en"."""
    named = read_card(card).data.get("language") if card.startswith("---") else None
    first = named[0] if isinstance(named, list) and named else named
    return first if isinstance(first, str) else "en"


def _title(name: str) -> str:
    parts = name.rstrip("/").split("/")
    last = parts[-2] if parts[-1] == "model" and len(parts) > 1 else parts[-1]
    return "Translator" if name == _UNNAMED else last


def _kind(training: Mapping[str, Any]) -> str:
    architecture = training.get("architecture", "transformer")
    if architecture == "transformer":
        return "An encoder-decoder Transformer"
    return f"A {architecture} encoder-decoder" if architecture else "An encoder-decoder"


def _codes(languages: Sequence[str]) -> list[str]:
    """Leave out names that are not codes: a user's own files may have "source" and "target"."""
    return [code for code in languages if re.fullmatch("[a-z]{2,3}", code)]


def _metadata(
    title: str,
    languages: Sequence[str],
    corpus: Mapping[str, Any],
    metrics: list[Mapping[str, Any]],
    base: str | None,
) -> "ModelCardData":
    from huggingface_hub import EvalResult, ModelCardData

    on_hub = base is not None and _HUB_ID.fullmatch(base) and not Path(base).exists()
    licence = _licence(corpus.get("licence", ""))
    text = str(corpus.get("name", "text of the user"))
    dataset = next((hub for start, hub in _DATASETS.items() if text.startswith(start)), None)
    results = [
        EvalResult(
            task_type="translation",
            task_name="Translation",
            dataset_type=dataset or re.sub(r"[^\w.-]", "-", text),
            dataset_name=text,
            dataset_split=m["split"],
            metric_type="bleu" if m["name"] == "BLEU" else "chrf",
            metric_name=f"{m['name']}, {_search(m)}",
            metric_value=round(m["score"], 2),
            metric_args=dict(signature=m["signature"]),
        )
        for m in metrics
    ]
    return ModelCardData(
        language=_codes(languages) or None,
        base_model=base if on_hub else None,
        license=licence,
        license_name="see-data" if licence == "other" else None,
        library_name=LIBRARY,
        pipeline_tag="translation",
        tags=["translation", "transformer"],
        datasets=[dataset] if dataset else None,
        metrics=sorted({result.metric_type for result in results}) or None,
        model_name=title if results else None,
        eval_results=results or None,
    )


def _licence(text: str) -> str | None:
    """Return the Hub's name of a licence, or "other" if it has none."""
    found = _LICENCES.search(text)
    if found is None:
        return "other" if text else None
    if found[1]:
        return f"{found[1]}-{found[2]}".lower().replace(" ", "-")
    return "cc0-1.0" if found[3] else "mit"


def _usage(name: str, languages: Sequence[str]) -> str:
    sentence = "Where is the train station?" if languages[:1] == ["en"] else "..."
    install = f"pip install git+{REPOSITORY}" if REPOSITORY else f"needs the package {LIBRARY}"
    return (
        f"```python\n# {install}\nfrom transformer import Translator\n\n"
        f'translator = Translator.from_pretrained("{name}")\n'
        f'print(translator(["{sentence}"]))\n```'
    )


def _base(training: Mapping[str, Any]) -> str | None:
    base: str | None = (training.get("preset") or {}).get("init_from")
    return base


def _training(training: Mapping[str, Any], preset: str | None, command: str | None) -> str:
    first, lines = training.get("first_run"), []
    if first is None and (base := _base(training)):
        lines.append(f"Fine-tuned from `{base}`.")
        if base in _SHIPPED_TEXT:
            lines.append(f"Its weights were trained on {_SHIPPED_TEXT[base]}.")
    if facts := _facts(training):
        recipe = f" with the preset `{preset}`" if preset else ""
        lines.append(f"Trained{recipe}: {facts}.")
    if first:
        lines.append(f"First run: {_facts(first)}.")
        lines.append(f"Together: {_count(training['steps'] + first['steps'], 'step')}.")
    if count := len(training.get("averaged", ())):
        mean = f"the mean of the last {count} checkpoints" if count > 1 else "the last checkpoint"
        lines.append(f"The weights are {mean}.")
    text = " ".join(lines)
    return text + (f"\n\n```bash\n{command}\n```" if command else "")


def _facts(run: Mapping[str, Any]) -> str:
    facts = []
    if "steps" in run:
        facts.append(_count(run["steps"], "step"))
        if "first_run" in run:
            before = _count(run["first_run"]["steps"], "step")
            facts = [f"{_count(run['steps'], 'further step')} from a first run of {before}"]
    if "target_tokens" in run:
        facts.append(_count(run["target_tokens"], "target token"))
    if "minutes" in run:
        on = f" on {run['hardware']}" if run.get("hardware") else ""
        minutes = run["minutes"]
        facts.append(("under a minute" if minutes < 1 else _count(round(minutes), "minute")) + on)
    if "seed" in run:
        facts.append(f"seed {run['seed']}")
    return ", ".join(facts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _data(corpus: Mapping[str, Any]) -> str:
    if not corpus:
        return ""
    pairs = ", ".join(f"{name} {count:,}" for name, count in corpus.get("pairs", {}).items())
    rows = [
        ("Text", corpus.get("name")),
        ("Licence", corpus.get("licence")),
        ("Sentence pairs", pairs),
        ("SHA-256", f"`{corpus['sha256']}`" if corpus.get("sha256") else None),
    ]
    return "\n".join(f"- {label}: {value}" for label, value in rows if value)


def _scores(
    metrics: list[Mapping[str, Any]], seed: int | None, others: Iterable[Mapping[str, Any]]
) -> str:
    others = list(others)

    def beside(metric: Mapping[str, Any]) -> str:
        keys = ("split", "weights", "beam_size", "name")
        same = [
            f"{entry['score']:.2f}"
            for other in others
            for entry in other["metrics"]
            if all(entry[key] == metric[key] for key in keys)
        ]
        return f" ({', '.join(same)})" if same else ""

    rows = [
        f"| {m['split']} | {m['pairs']:,} | {_search(m)} | {m['name']} {m['score']:.2f}{beside(m)} "
        f"| `{m['signature'].replace('|', chr(92) + '|')}` |"
        for m in metrics
    ]
    head = "| test set | pairs | search | score | signature of sacreBLEU |\n|---|---|---|---|---|\n"
    run = "One run" + (f" with seed {seed}" if seed is not None else "")
    spread = "; the spread over seeds was not measured."
    if others:
        seeds = ", ".join(str(other["seed"]) for other in others)
        spread = f". In brackets: the same recipe with seed{'s' * (len(others) > 1)} {seeds}."
    return head + "\n".join(rows) + f"\n\n{run}{spread}"


def _search(metric: Mapping[str, Any]) -> str:
    beam, kind = metric["beam_size"], metric.get("penalty", "gnmt")
    if beam == 1:
        return "greedy"
    return f"beam {beam}, alpha {metric['alpha']}" + (f" ({kind})" if kind != "gnmt" else "")
