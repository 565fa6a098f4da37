"""The results page: every recorded run, and published scores beside it, as Markdown.

All of it comes from the records, the presets and the published figures. ``tools/make_results.py``
writes the page, and a test fails when the page and the records have parted.

Paper: section 6.1, Table 2
"""

import math
from collections.abc import Mapping

from transformer.book.not_run import render_not_run
from transformer.book.published_tables import (
    family_title,
    pair_title,
    render_conversions,
    render_published,
    render_table_2,
    rows_by_system,
)
from transformer.book.source import REPOSITORY
from transformer.book.tables import Table
from transformer.lab.table_2.published import CONVERSIONS, METRICS, PUBLISHED
from transformer.lab.table_2.recorded import recorded_runs
from transformer.lab.table_2.summary import (
    Group,
    Record,
    fitting_published,
    group_runs,
    metric_of,
    metric_title,
    test_set,
)
from transformer.lab.table_2.verdicts import rivals, versus_group, versus_published
from transformer.recipes.presets import PRESETS, Preset

_SIZES = ("num_layers", "num_decoder_layers", "d_model", "d_ff", "d_hidden", "num_heads", "kernel")

_HEAD = """# Results

This page lists every training run that is recorded in the package, and beside it what others have
published. It is generated: each number comes from a record in `transformer/lab/table_2/runs`, from
a preset, or from `transformer/lab/table_2/published.py`, which names the source of each figure.

**How to read it.** A score is the mean over the seeds of a recipe, with the lowest and the highest
in brackets; a single seed has no spread to show, and then that stands there. Scores are those of
the mean of the last checkpoints, translated with the recipe's beam. All others are folded away at
the end of each section, with their signatures. Each way to count has a table of its own: scores
that were counted in two ways cannot be compared, as
[Does it translate?](../notebooks/17_translation.ipynb) shows. **ours** marks the runs of this
book. Newer records have their translations beside them, and a test counts those again, by a call of
sacreBLEU that shares no code with ours.

To repeat a run, use its command. To make this page again after a new run:
`python tools/make_results.py`.
"""


def render_results(
    runs: Mapping[str, Record] | None = None, presets: Mapping[str, Preset] = PRESETS
) -> str:
    """Write the results page.

    Args:
        runs: records by name; None for those of the package.
        presets: recipes by name; those without a record are listed as not run yet.

    Returns:
        A page in MyST Markdown.

    Paper: section 6.1, Table 2
    """
    groups = group_runs(recorded_runs() if runs is None else runs)
    sections: dict[str, list[Group]] = {}
    for group in groups:
        sections.setdefault(group.corpus, []).append(group)
    beside = {id(score) for score in fitting_published(groups)}
    alone = [row for row in PUBLISHED if id(row) not in beside and row.source != "Table 2"]
    parts = [
        _HEAD,
        *(_section(corpus, members) for corpus, members in sorted(sections.items())),
        render_table_2(PUBLISHED),
        render_published(alone),
        render_conversions(CONVERSIONS),
        render_not_run(groups, presets),
    ]
    return "\n".join(part for part in parts if part)


def run_command(record: Record) -> str:
    """Return the command that repeats a recorded run.

    Args:
        record: a recorded run; for one of before commands were recorded it follows from preset
            and seed.
    """
    command = record.get("command")
    return command or f"transformer train {record['preset']['name']} --set seed={record['seed']}"


def hardware_of(record: Record) -> str:
    """Name the hardware of a recorded run.

    Args:
        record: a recorded run.

    Paper: section 5.2
    """
    hardware = record["environment"]["hardware"]
    if hardware["device"] == "cpu":
        threads = hardware["threads"]
        return f"{hardware['cpu']}, {threads} thread{'s' * (threads > 1)}"
    count = hardware["devices"]
    return hardware["device"] if count == 1 else f"{count} × {hardware['device']}"


def _section(corpus: str, groups: list[Group]) -> str:
    metrics = {metric for group in groups for _, metric in group.scores()}
    runs = [(name, record) for group in groups for name, record in group.runs.items()]
    parts = [
        f"## {family_title(corpus)}, {pair_title(groups[0].languages)}\n",
        # What can be compared with others comes first.
        *(_scores(m, groups) for m in sorted(metrics, key=lambda m: (m not in METRICS, m))),
        _verdicts(groups),
        _recipes(groups),
        _runs(runs),
        *(_all_scores(name, record) for name, record in runs),
    ]
    return "\n".join(parts)


def _scores(metric: str, groups: list[Group]) -> str:
    """One way to count: ours and, where there are any, those of others."""
    counted = [
        (group, {name: s for (name, kind), s in group.scores().items() if kind == metric})
        for group in groups
    ]
    sets = list(dict.fromkeys(name for _, scores in counted for name in scores))
    rows = [
        (f"**{group.name}**", "**ours**", f"{group.first['parameters']:,}",
         family_title(group.corpus), *(str(scores.get(name, "")) for name in sets))
        for group, scores in counted
        if scores
    ]  # fmt: skip
    others = [score for score in fitting_published(groups) if score.metric == metric]
    head = ["system", "from", "parameters", "trained on", *sets]
    meaning = f" {METRICS[metric].meaning}" if metric in METRICS else ""
    table = Table(head, [*rows, *rows_by_system(others, sets)])
    return f"**{metric_title(metric)}.**{meaning}\n\n{table.markdown()}"


def _verdicts(groups: list[Group]) -> str:
    """What the tables say, in sentences: against others of the same kind, and among ours."""
    found = [
        f"{score.test_set}, {metric_title(score.metric)}. {versus_published(group, score)}"
        for group in groups
        for score in fitting_published([group])
        if score.architecture == group.architecture
    ]
    found += [
        f"{name}, {metric_title(metric)}. {sentence}"
        for one, other in rivals(groups)
        for name, metric in one.scores()
        if metric in METRICS and (sentence := versus_group(one, other, (name, metric)))
    ]
    if not found:
        return (
            "No published score on these sentences, counted in one of these ways, is known to us.\n"
        )
    return "**What the tables say**\n\n" + "\n".join(f"- {line}" for line in found) + "\n"


def _recipes(groups: list[Group]) -> str:
    rows = []
    for group in groups:
        preset, training = group.first["preset"], group.first["preset"]["training"]
        sizes = {name: preset["model"].get(name) for name in _SIZES}
        model = ", ".join(f"{name} {value}" for name, value in sizes.items() if value is not None)
        steps, tokens = group.budget
        pairs = preset["train_pairs"] or group.first["corpus"]["pairs"]["train"]
        rows.append(
            (
                f"`{group.name}`",
                f"{group.architecture}: {model}, dropout {preset['model']['dropout']}, "
                f"vocabulary {preset['model']['vocab_size']:,}",
                f"{pairs:,} pairs, {steps:,} steps of at most {tokens:,} tokens, warm-up "
                f"{training['warmup_steps']:,}, rate {training['learning_rate_factor']:g} times "
                f"Eq. (3), {training['precision']}",
                f"mean of {len(group.first['averaged'])} checkpoints, beam {preset['beam_size']}, "
                f"alpha {preset['alpha']:g} ({preset.get('penalty', 'gnmt')})",
            )
        )
    table = Table(["recipe", "model", "training", "search"], rows)
    return f"**Recipes**\n\n{table.markdown()}"


def _runs(runs: list[tuple[str, Record]]) -> str:
    rows = []
    for name, record in runs:
        minutes = record["minutes"]
        rate = record["target_tokens"] / (60 * minutes) if minutes else math.nan
        link = f"{REPOSITORY}/blob/main/transformer/lab/table_2/runs/{name}.json"
        rows.append(
            (f"[{name}]({link})", record["seed"], hardware_of(record), f"{minutes:,.1f}",
             f"{record['steps']:,}", f"{record['target_tokens']:,}", f"{rate:,.0f}",
             record["environment"]["code"])
        )  # fmt: skip
    head = ["run", "seed", "hardware", "minutes", "steps", "target tokens", "tokens/s", "code"]
    commands = "\n".join(dict.fromkeys(run_command(record) for _, record in runs))
    return f"**Runs**\n\n{Table(head, rows).markdown()}\n```bash\n{commands}\n```\n"


def _all_scores(name: str, record: Record) -> str:
    """Everything that was scored, folded away, with a letter for each signature."""
    letters: dict[str, str] = {}
    rows = []
    for entry in record["metrics"]:
        letter = letters.setdefault(entry["signature"], chr(ord("A") + len(letters)))
        search = "greedy" if entry["beam_size"] == 1 else f"beam {entry['beam_size']}"
        rows.append(
            (test_set(record["corpus"]["name"], entry["split"]), f"{entry['pairs']:,}",
             entry["weights"], search, metric_title(metric_of(record, entry)),
             f"{entry['score']:.2f}", letter)
        )  # fmt: skip
    head = ["test set", "pairs", "weights", "search", "metric", "score", "signature"]
    signatures = "\n".join(f"- {letter}: `{text}`" for text, letter in letters.items())
    table = Table(head, rows).markdown()
    return f":::{{dropdown}} All scores of {name}\n\n{table}\n{signatures}\n:::\n"
