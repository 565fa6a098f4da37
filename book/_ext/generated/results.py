"""The results page: every recorded run, published scores beside it, and what has not been run."""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from generated import charts
from transformer.data.corpora import load_corpus
from transformer.data.corpora.catalogue import corpus_catalogue
from transformer.model.config import TransformerConfig
from transformer.published import REPOSITORY
from transformer.recipes.architectures import architecture, count_parameters
from transformer.recipes.estimate import training_flops
from transformer.recipes.presets import PRESETS, Preset
from transformer.recipes.record import hardware_of, read_record, recorded_command
from transformer_book.studies.recording import stored_texts
from transformer_book.studies.translation import peer, published, summary, verdicts
from transformer_book.studies.translation.recorded import recorded_runs
from transformer_book.studies.translation.summary import Group, metric_title
from transformer_book.tables import Table

Record = dict[str, Any]

_SIZES = ("num_layers", "num_decoder_layers", "d_model", "d_ff", "d_hidden", "num_heads", "kernel")
_LANGUAGES = {"en": "English", "de": "German", "fr": "French"}
_FAMILIES = {
    "tatoeba": "Tatoeba", "multi30k": "Multi30K", "wmt14": "WMT14", "iwslt14": "IWSLT14",
    "wmt-newstest": "WMT news tests", "mixture": "Mixture",
}  # fmt: skip
_ABOUT = ["system", "from", "parameters", "trained on"]
_SENTENCE = 25  # tokens on either side, for an estimate of the operations
_ENOUGH_SEEDS = 3
_NOTHING_TO_COMPARE = "We know of no published score on these sentences in any of these metrics.\n"


def texts(runs: Mapping[str, Record] | None = None) -> dict[str, str]:
    """Make the texts of the page from records by name; None for those of the package."""
    groups = summary.group_runs(recorded_runs() if runs is None else runs)
    sections: dict[str, list[Group]] = {}
    for group in groups:
        sections.setdefault(group.corpus, []).append(group)
    beside = {id(score) for score in summary.fitting_published(groups)}
    alone = [
        row for row in published.PUBLISHED if id(row) not in beside and row.source != "Table 2"
    ]
    return {
        "rivals": _rivals(groups),
        "peer": _peer(),
        "beside-published": _beside_published(groups),
        "runs": "\n".join(_section(corpus, sections[corpus]) for corpus in sorted(sections)),
        "table-2": _table_2(published.PUBLISHED),
        "published": _published(alone),
        "conversions": _conversions(published.CONVERSIONS),
        "lost": _lost(published.CONVERSIONS),
        "own-checkpoint": _own_checkpoint(published.CONVERSIONS),
        "not-run": _not_run(groups),
    }


def _rivals(groups: list[Group]) -> str:
    """Chart the Transformer's score minus each rival's, with paired intervals."""
    parts: dict[str, list[charts.Row]] = {}
    for rival, test_set, metric, gap in verdicts.all_differences(groups):
        name = f"{test_set}, {rival.architecture}, {rival.budget[0]:,} steps"
        row = charts.Row(name, gap.mean, gap.low, gap.high)
        parts.setdefault(metric, []).append(row)
    if not parts:
        return "No two architectures have been trained on equal terms yet.\n"
    alt = "Differences between the Transformer and its rivals, with paired intervals"
    ordered = {title: sorted(rows, key=lambda row: row.name) for title, rows in parts.items()}
    return charts.chart(ordered, "difference in points, 95% interval", alt, reference=0)


@cache
def _peer() -> str:
    """Tabulate the training beside MarianMTModel: losses without dropout, scores with it."""
    record = read_record(peer.RECORD)
    exact, runs, preset = record["exact"], record["runs"], record["preset"]
    ours, theirs = (exact[kind] for kind in (peer.OURS, peer.MARIAN))
    apart = max(abs(a / b - 1) for a, b in zip(ours, theirs, strict=True))
    training, whole = preset["training"], PRESETS[preset["name"]].training.max_steps
    test, texts = load_corpus(preset["corpus"]).test, stored_texts(peer.RECORD)
    rows, means, spreads = [], [], []
    for key, metric in (("bleu", "BLEU"), ("chrf", "chrF2")):
        gaps = []
        for seed in peer.SEEDS:
            here, there = (runs[f"{kind}, seed {seed}"][key] for kind in (peer.OURS, peer.MARIAN))
            gaps.append(here - there)
            rows.append(
                (f"{metric}, seed {seed}", f"{here:.2f}", f"{there:.2f}", _signed(gaps[-1], 2))
            )
        found = record["difference"] if key == "bleu" else peer.compare(texts, test, metric)
        low, high = (_signed(found[name], 1) for name in ("low", "high"))
        means.append(f"{metric} {_signed(sum(gaps) / len(gaps), 1)} ({low} to {high})")
    for kind in (peer.OURS, peer.MARIAN):
        scores = [runs[f"{kind}, seed {seed}"]["bleu"] for seed in peer.SEEDS]
        spreads.append(max(scores) - min(scores))
    return (
        f"Without dropout, the losses of the first {len(ours)} steps, from {ours[0]:.2f} down to "
        f"{ours[-1]:.2f}, differ by at most {100 * apart:.2g}% (one seed). With dropout, the two "
        f"draw different random numbers, so only scores can be compared. These are of Tatoeba's "
        f"test split after {training['max_steps']:,} steps of up to {training['batch_tokens']:,} "
        f"tokens with a short warm-up; the full recipe takes {whole:,} steps:\n\n"
        f"{Table(['tatoeba-test', peer.OURS, peer.MARIAN, 'ours minus theirs'], rows).markdown()}\n"
        f"Mean differences: {', '.join(means)}. The 95% intervals are from a bootstrap over the "
        f"test sentences alone and do not cover other seeds. Within a library, the two seeds are "
        f"{min(spreads):.1f} to {max(spreads):.1f} BLEU apart. `{record['command']}` repeats the "
        f"comparison.\n"
    )


def _signed(number: float, digits: int) -> str:
    """Write a difference with its sign, and a true minus sign."""
    return f"{number:+.{digits}f}".replace("-", "−")


def _beside_published(groups: list[Group]) -> str:
    """Chart our scores and the published ones that were computed in the same way."""
    parts: dict[str, list[charts.Row]] = {}
    for score in summary.fitting_published(groups):
        where = score.test_set, score.metric
        title = f"{score.test_set}, {_pair(score.languages)}, {_short(score.metric)}"
        rows = parts.setdefault(title, [])
        if not rows:
            for group in groups:
                ours = group.scores().get(where)
                if ours and group.languages == score.languages:
                    ends = (ours.low, ours.high) if len(ours.values) > 1 else (None, None)
                    rows.append(charts.Row(group.name, ours.mean, *ends, colour="vermilion"))
        rows.append(charts.Row(score.system, score.score, hollow=True))
    if not parts:
        return "No published score was computed in the same way as one of ours.\n"
    ordered = {title: sorted(parts[title], key=lambda row: row.value) for title in sorted(parts)}
    chart = charts.chart(ordered, "BLEU", "Scores of this book's runs beside published scores")
    theirs = PRESETS["multi30k-tiny"].training  # by the protocol of the published Transformer
    budgets = {group.budget for group in groups if group.corpus.startswith("multi30k")}
    own = " or ".join(f"{steps:,} steps of up to {tokens:,}" for steps, tokens in sorted(budgets))
    if not budgets:
        return chart
    return (
        f"The budgets are not equal. Our preset for the published Transformer's recipe has "
        f"{theirs.max_steps:,} steps of up to {theirs.batch_tokens * theirs.accumulate:,} tokens; "
        f"the runs here had {own}.\n\n{chart}"
    )


def _short(metric: str) -> str:
    return metric_title(metric).partition(" on ")[0].partition(",")[0]


def _section(corpus: str, groups: list[Group]) -> str:
    metrics = {metric for group in groups for _, metric in group.scores()}
    runs = [(name, record) for group in groups for name, record in group.runs.items()]
    parts = [
        f"## {_family(corpus)}, {_pair(groups[0].languages)}\n",
        # Metrics that published scores share come first.
        *(
            _scores(m, groups)
            for m in sorted(metrics, key=lambda m: (m not in published.METRICS, m))
        ),
        *([] if summary.fitting_published(groups) else [_NOTHING_TO_COMPARE]),
        _recipes(groups),
        _runs(runs),
        *(_all_scores(name, record) for name, record in runs),
    ]
    return "\n".join(parts)


def _scores(metric: str, groups: list[Group]) -> str:
    """A table of one metric: our runs and the published scores."""
    counted = [
        (group, {name: s for (name, kind), s in group.scores().items() if kind == metric})
        for group in groups
    ]
    sets = list(dict.fromkeys(name for _, scores in counted for name in scores))
    rows = [
        (f"**{group.name}**", "**ours**", f"{group.first['parameters']:,}",
         _family(group.corpus), *(str(scores.get(name, "")) for name in sets))
        for group, scores in counted
        if scores
    ]  # fmt: skip
    others = [score for score in summary.fitting_published(groups) if score.metric == metric]
    meaning = f" {published.METRICS[metric].meaning}" if metric in published.METRICS else ""
    table = Table([*_ABOUT, *sets], [*rows, *_by_system(others, sets)])
    return f"**{metric_title(metric)}.**{meaning}\n\n{table.markdown()}"


def _recipes(groups: list[Group]) -> str:
    rows = []
    for group in groups:
        preset = group.first["preset"]
        model, training = preset["model"], preset["training"]
        sizes = ", ".join(f"{name} {model[name]}" for name in _SIZES if model.get(name) is not None)
        steps, tokens = group.budget
        own = training["max_steps"]
        last = f" (the last {own:,} by this recipe)" if steps > own else ""
        pairs = preset["train_pairs"] or group.first["corpus"]["pairs"]["train"]
        rows.append(
            (
                f"`{group.name}`",
                f"{group.architecture}: {sizes}, dropout {model['dropout']}, "
                f"vocabulary {model['vocab_size']:,}",
                f"{pairs:,} pairs, {steps:,} steps of at most {tokens:,} tokens{last}, warm-up "
                f"{training['warmup_steps']:,}, learning rate "
                f"{training['learning_rate_factor']:g} times Eq. (3), {training['precision']}",
                f"mean of {len(group.first['averaged'])} checkpoints, beam {preset['beam_size']}, "
                f"alpha {preset['alpha']:g} ({preset.get('penalty', 'gnmt')})",
            )
        )
    return f"**Recipes**\n\n{Table(['recipe', 'model', 'training', 'search'], rows).markdown()}"


def _runs(runs: list[tuple[str, Record]]) -> str:
    rows = []
    for name, record in runs:
        minutes = record["minutes"]
        rate = record["target_tokens"] / (60 * minutes) if minutes else math.nan
        link = f"{REPOSITORY}/blob/main/book/transformer_book/studies/translation/runs/{name}.json"
        run = f"[{name}]({link})" if REPOSITORY else f"`{name}`"
        rows.append(
            (run, record["seed"], hardware_of(record), f"{minutes:,.1f}",
             f"{record['steps']:,}", f"{record['target_tokens']:,}", f"{rate:,.0f}",
             record["environment"]["code"])
        )  # fmt: skip
    head = ["run", "seed", "hardware", "minutes", "steps", "target tokens", "tokens/s", "code"]
    commands = "\n".join(dict.fromkeys(filter(None, (recorded_command(r) for _, r in runs))))
    return f"**Runs**\n\n{Table(head, rows).markdown()}\n```bash\n{commands}\n```\n"


def _all_scores(name: str, record: Record) -> str:
    """All scores of a run, folded away, with a letter for each signature."""
    letters: dict[str, str] = {}
    rows = []
    for entry in record["metrics"]:
        letter = letters.setdefault(entry["signature"], chr(ord("A") + len(letters)))
        search = "greedy" if entry["beam_size"] == 1 else f"beam {entry['beam_size']}"
        rows.append(
            (summary.test_set(record["corpus"]["name"], entry["split"]), f"{entry['pairs']:,}",
             entry["weights"], search, metric_title(summary.metric_of(record, entry)),
             f"{entry['score']:.2f}", letter)
        )  # fmt: skip
    head = ["test set", "pairs", "weights", "search", "metric", "score", "signature"]
    signatures = "\n".join(f"- {letter}: `{text}`" for text, letter in letters.items())
    table = Table(head, rows).markdown()
    return f":::{{dropdown}} All scores of {name}\n\n{table}\n{signatures}\n:::\n"


def _pair(languages: tuple[str, str]) -> str:
    return " to ".join(_LANGUAGES.get(code, code) for code in languages)


def _family(corpus: str) -> str:
    """Name the family of a corpus or a test set, such as "Multi30K" of "multi30k-en-de"."""
    return next((title for key, title in _FAMILIES.items() if corpus.startswith(key)), corpus)


def _source(row: published.PublishedScore | published.Conversion) -> str:
    where = f"[{row.source}]({row.url})"
    return where if row.key is None else f"{{cite:t}}`{row.key}`, {where}"


def _figure(number: float | None) -> str:
    """Write a published score with a second digit only if it has one."""
    if number is None:
        return ""
    return f"{number:.1f}" if round(number, 1) == number else f"{number:.2f}"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _by_system(
    scores: Iterable[published.PublishedScore], test_sets: list[str]
) -> list[tuple[str, ...]]:
    """Make a row for each system, with a column for each test set."""
    systems: dict[tuple[str, ...], dict[str, str]] = {}
    for row in scores:
        count = _count(row.parameters) + " (counted here)" * row.counted_here
        about = row.system, _source(row), count, row.trained_on
        systems.setdefault(about, {})[row.test_set] = _figure(row.score)
    return [(*about, *(row.get(name, "") for name in test_sets)) for about, row in systems.items()]


def _table_2(scores: Iterable[published.PublishedScore]) -> str:
    pairs = ("en", "de"), ("en", "fr")
    systems: dict[str, dict[tuple[str, str], published.PublishedScore]] = {}
    for score in scores:
        if score.source == "Table 2":
            systems.setdefault(score.system, {})[score.languages] = score
    rows = []
    for system, by_pair in systems.items():
        found = [by_pair.get(pair) for pair in pairs]
        flops = [score and score.training_flops for score in found]
        rows.append(
            [system, *(_figure(score.score if score else None) for score in found)]
            + [f"{cost:.1e}" if cost else "" for cost in flops]
            + [_count(next(iter(by_pair.values())).parameters)]
        )
    head = [f"{what}, {_pair(pair)}" for what in ("BLEU", "training FLOPs") for pair in pairs]
    return Table(["system", *head, "parameters"], rows).markdown()


def _published(scores: Iterable[published.PublishedScore]) -> str:
    """A table for each corpus, language pair and metric."""
    tables: dict[tuple[str, str, str], list[published.PublishedScore]] = {}
    for row in sorted(scores, key=lambda row: row.score):
        family = row.test_set.partition("-")[0]
        tables.setdefault((family, _pair(row.languages), row.metric), []).append(row)
    parts = []
    for (family, pair, metric), rows in sorted(tables.items()):
        sets = sorted({row.test_set for row in rows})
        about = published.METRICS[metric]
        parts.append(f"**{_family(family)}, {pair}: {about.title}.** {about.meaning}\n")
        parts.append(Table([*_ABOUT, *sets], _by_system(rows, sets)).markdown())
    return "\n".join(parts)


def _conversions(conversions: Iterable[published.Conversion]) -> str:
    conversions = list(conversions)
    rows = [
        [
            row.system,
            _pair(row.languages),
            "ignored" if row.lowercase else "kept",
            _figure(row.tokenised),
            _figure(row.sacrebleu),
            f"{row.tokenised - row.sacrebleu:.1f}",
        ]
        for row in conversions
    ]
    head = ["system", "pair", "case", "on Moses tokens", "sacreBLEU", "difference"]
    sources = dict.fromkeys(f"- {row.system}: {_source(row)}\n" for row in conversions)
    return f"{Table(head, rows).markdown()}\n{''.join(sources)}"


def _lost(conversions: Iterable[published.Conversion]) -> str:
    """Say how much lower sacreBLEU is than BLEU on Moses tokens, with case, by language pair."""
    lost: dict[str, list[float]] = {}
    for row in conversions:
        if not row.lowercase:
            lost.setdefault(_pair(row.languages), []).append(row.tokenised - row.sacrebleu)
    return " and ".join(
        f"{min(found):.1f} to {max(found):.1f} points ({pair})" for pair, found in lost.items()
    )


def _own_checkpoint(conversions: Iterable[published.Conversion]) -> str:
    """Return both scores of the checkpoint that the paper's authors published."""
    [row] = (row for row in conversions if row.key == "vaswani2018tensor2tensor")
    return f"{_figure(row.tokenised)} by their script, {_figure(row.sacrebleu)} in sacreBLEU"


def _not_run(groups: Iterable[Group]) -> str:
    """List the presets without a record and what they need, and those with few seeds."""
    seeds: dict[str, int] = {}
    recorded = set()  # names of presets: that of a group can have its number of steps in it
    for group in groups:
        seeds[group.name] = max(seeds.get(group.name, 0), len(group.runs))
        recorded.add(group.first["preset"]["name"])
    origins = {entry.name: entry.origin for entry in corpus_catalogue()}
    rows = [
        (
            f"`{name}`",
            f"{preset.corpus} ({origins.get(preset.corpus, 'own files')})",
            architecture(preset.model),
            *_needs(preset),
        )
        for name, preset in PRESETS.items()
        if name not in recorded and name != "smoke"  # every test runs that one
    ]
    head = ["preset", "corpus (from)", "architecture", "parameters", "weights and Adam"]
    head += ["steps × tokens", "operations"]
    text = Table(head, rows).markdown() if rows else "Every preset has a record.\n"
    few = [f"`{name}` ({count})" for name, count in seeds.items() if count < _ENOUGH_SEEDS]
    return text + (f"\nRecorded with fewer than three seeds: {', '.join(few)}.\n" if few else "")


def _needs(preset: Preset) -> tuple[str, ...]:
    """Compute parameters, memory, steps and operations of a preset from its settings."""
    training = preset.training
    count = count_parameters(preset.model)
    tokens = training.batch_tokens * training.accumulate
    size = f"{count:,}", f"{16 * count / 1e9:.2f} GB", f"{training.max_steps:,} × {tokens:,}"
    if not isinstance(preset.model, TransformerConfig):
        return *size, "not counted"
    sentences = training.max_steps * tokens / _SENTENCE
    return *size, f"{training_flops(preset.model, _SENTENCE, _SENTENCE) * sentences:.1e}"
