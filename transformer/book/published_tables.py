"""Published scores as tables in Markdown, each way to count in a table of its own.

Paper: section 6.1, Table 2
"""

from collections.abc import Iterable

from transformer.book.tables import Table
from transformer.lab.table_2.published import METRICS, Conversion, PublishedScore

_LANGUAGES = {"en": "English", "de": "German", "fr": "French"}
_FAMILIES = {
    "tatoeba": "Tatoeba",
    "multi30k": "Multi30K",
    "wmt14": "WMT14",
    "wmt-newstest": "WMT news tests",
    "mixture": "Mixture",
    "iwslt14": "IWSLT14",
}


def pair_title(languages: tuple[str, str]) -> str:
    """Name a pair of languages in words.

    Args:
        languages: codes of source and target.

    Paper: section 5.1
    """
    return " to ".join(_LANGUAGES.get(code, code) for code in languages)


def family_title(corpus: str) -> str:
    """Name the corpus that a corpus's name, or a test set's, begins with.

    Args:
        corpus: such as "multi30k-en-de" or "multi30k-test2016".

    Paper: section 5.1
    """
    for family, title in _FAMILIES.items():
        if corpus.startswith(family):
            return title
    return corpus


def source_of(row: PublishedScore | Conversion) -> str:
    """Say where a figure stands: the work, if the bibliography has it, and the address.

    Args:
        row: a published figure.
    """
    where = f"[{row.source}]({row.url})"
    return where if row.key is None else f"{{cite:t}}`{row.key}`, {where}"


def count_of(number: int | None) -> str:
    """Write a number of parameters, or nothing where it is not known."""
    return "" if number is None else f"{number:,}"


def figure_of(number: float | None) -> str:
    """Write a published score with two digits if it needs them, or nothing where there is none."""
    if number is None:
        return ""
    return f"{number:.1f}" if round(number, 1) == number else f"{number:.2f}"


def rows_by_system(
    scores: Iterable[PublishedScore], test_sets: Iterable[str]
) -> list[tuple[str, ...]]:
    """Make a row for each system, with a column for each test set.

    Args:
        scores: counted in one way.
        test_sets: the names of the columns after the first four.

    Returns:
        System, source, parameters, training text, and the scores.

    Paper: Table 2
    """
    systems: dict[tuple[str, ...], dict[str, str]] = {}
    for row in scores:
        about = row.system, source_of(row), count_of(row.parameters), row.trained_on
        systems.setdefault(about, {})[row.test_set] = figure_of(row.score)
    names = list(test_sets)
    return [(*about, *(found.get(name, "") for name in names)) for about, found in systems.items()]


def render_table_2(scores: Iterable[PublishedScore]) -> str:
    """Write Table 2 of the paper, from those of the scores that stand in it.

    Args:
        scores: published scores.

    Paper: Table 2
    """
    pairs = ("en", "de"), ("en", "fr")
    systems: dict[str, dict[tuple[str, str], PublishedScore]] = {}
    for row in scores:
        if row.source == "Table 2":
            systems.setdefault(row.system, {})[row.languages] = row
    lines = []
    for system, rows in systems.items():
        found = [rows.get(pair) for pair in pairs]
        flops = [score and score.training_flops for score in found]
        lines.append(
            [system, *(figure_of(score.score if score else None) for score in found)]
            + [f"{cost:.1e}" if cost else "" for cost in flops]
            + [count_of(next(iter(rows.values())).parameters)]
        )
    titles = [pair_title(pair) for pair in pairs]
    head = ["system", *(f"BLEU, {title}" for title in titles)]
    head += [*(f"training FLOPs, {title}" for title in titles), "parameters"]
    return (
        "## Table 2 of the paper\n\n"
        "Scores on newstest2014 as {cite:t}`vaswani2017attention` print them; those of other "
        f"systems are the paper's quotations. {METRICS['tokenised'].meaning} The training cost is "
        "hardware time: hours, times GPUs, times the rate that a GPU is taken to sustain. It is "
        "an upper bound on the arithmetic. The paper prints one cost of each Transformer for both "
        "pairs. The numbers of parameters are those of Table 3.\n\n" + Table(head, lines).markdown()
    )


def render_published(scores: Iterable[PublishedScore]) -> str:
    """Write published scores, a table for each corpus, pair and way to count.

    Args:
        scores: those without a run beside them.

    Returns:
        A section in Markdown; nothing where there are no scores.

    Paper: section 6.1
    """
    tables: dict[tuple[str, str, str], list[PublishedScore]] = {}
    for row in sorted(scores, key=lambda row: row.score):
        family = row.test_set.partition("-")[0]
        tables.setdefault((family, pair_title(row.languages), row.metric), []).append(row)
    if not tables:
        return ""
    parts = ["## Published, with no run of ours to compare\n"]
    for (family, pair, metric), members in sorted(tables.items()):
        sets = sorted({row.test_set for row in members})
        head = ["system", "from", "parameters", "trained on", *sets]
        about = METRICS[metric]
        parts.append(f"**{family_title(family)}, {pair}: {about.title}.** {about.meaning}\n")
        parts.append(Table(head, rows_by_system(members, sets)).markdown())
    return "\n".join(parts)


def render_conversions(conversions: Iterable[Conversion]) -> str:
    """Write the table of outputs that were counted both ways.

    Args:
        conversions: the outputs.
    """
    conversions = list(conversions)
    rows = [
        [
            row.system,
            pair_title(row.languages),
            "ignored" if row.lowercase else "kept",
            figure_of(row.tokenised),
            figure_of(row.sacrebleu),
            f"{row.tokenised - row.sacrebleu:.1f}",
        ]
        for row in conversions
    ]
    sources = dict.fromkeys(f"{row.system}: {source_of(row)}" for row in conversions)
    head = ["system", "pair", "case", "on Moses tokens", "sacreBLEU", "difference"]
    return (
        "## One output, counted twice\n\nHow much the way to count matters: translations that "
        "their authors counted both ways. On Moses tokens, German compounds are split.\n\n"
        f"{Table(head, rows).markdown()}\n" + "\n".join(f"- {source}" for source in sources) + "\n"
    )
