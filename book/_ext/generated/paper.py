"""The figures and tables of the paper, redrawn, with our numbers beside the paper's."""

import json
import re
from html import escape
from pathlib import Path
from statistics import mean

from drawn_figures import markup, stored_figures

from transformer.recipes.record import read_record
from transformer_book import picture
from transformer_book.architecture import Architecture
from transformer_book.statistics import paired_interval
from transformer_book.studies.choices.claims import gains, values_of
from transformer_book.studies.choices.study import ROWS, SCALES
from transformer_book.studies.parsing.study import recorded_study
from transformer_book.studies.translation.published import published_scores
from transformer_book.studies.translation.recorded import recorded_runs
from transformer_book.studies.translation.summary import group_runs, precision_of
from transformer_book.studies.translation.verdicts import all_differences
from transformer_book.tables import Table

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"

#: Table 1: the layer in chapter 19, its complexity, sequential operations and path in the paper.
TABLE_1 = {
    "self-attention": ("self-attention", "O(n² d)", "O(1)", "O(1)"),
    "recurrent": ("recurrent", "O(n d²)", "O(n)", "O(n)"),
    "convolutional": ("convolution, k = 5", "O(k n d²)", "O(1)", "O(log_k n)"),
    "self-attention, restricted": ("restricted, r = 17", "O(r n d)", "O(1)", "O(n / r)"),
}
#: What chapter 19 stacks for the paths; the convolution of Table 1 is the dilated one.
STACKED = {"convolution, k = 5": "dilated, gaps 1, 3, 9"}
#: Table 4: parser, training, F1, and the run of ours that it can be set beside.
TABLE_4 = [
    ("Vinyals and Kaiser and others (2014), recurrent", "WSJ only", 88.3, "recurrent"),
    ("Petrov and others (2006)", "WSJ only", 90.4, ""),
    ("Zhu and others (2013)", "WSJ only", 90.4, ""),
    ("Dyer and others (2016)", "WSJ only", 91.7, ""),
    ("**Transformer, 4 layers**", "WSJ only", 91.3, "transformer"),
    ("Zhu and others (2013)", "semi-supervised", 91.3, ""),
    ("Huang and Harper (2009)", "semi-supervised", 91.3, ""),
    ("McClosky and others (2006)", "semi-supervised", 92.1, ""),
    ("Vinyals and Kaiser and others (2014), recurrent", "semi-supervised", 92.1, ""),
    ("**Transformer, 4 layers**", "semi-supervised", 92.7, ""),
    ("Luong and others (2015)", "multi-task", 93.0, ""),
    ("Dyer and others (2016)", "generative", 93.3, ""),
]


def texts() -> dict[str, str]:
    """Return the five figures and four tables by name."""
    figure_1 = Architecture()._repr_mimebundle_()["text/html"]
    figure_1 = figure_1.replace('href="../book/', 'href="../')
    figure_1 = re.sub(r'href="(?=\d\d_)', 'href="../../notebooks/', figure_1)
    said = "Figure 1 of the paper, redrawn. Each box leads to its chapter, each name to its code."
    return {
        "figure-1": _framed(figure_1, said),
        "figure-2-left": _drawn("scaled_dot_product", "Figure 2, left, redrawn: Eq. (1)."),
        "figure-2-right": _drawn("multi_head", "Figure 2, right, redrawn: several heads."),
        "figures-3-to-5": _stored(
            "22_heads_learned",
            "03",
            "In place of Figures 3 to 5: where the pronoun looks in our models, in the head that "
            "moves most from the animal to the street.",
        ),
        "table-1": table_1(),
        "table-2": table_2(),
        "table-3": table_3(),
        "table-4": table_4(),
    }


def table_1() -> str:
    """Table 1 beside what chapter 19 counts."""
    chapter, rows = "19_table_1", []
    for name, (ours, complexity, sequential, path) in TABLE_1.items():
        hops = printed(chapter, "path", STACKED.get(ours, ours)) or "1, with n steps in it"
        rows.append([name, complexity, printed(chapter, "solve", ours), sequential,
                     printed(chapter, "steps", ours), path, hops])  # fmt: skip
    header = ["layer type", "complexity per layer", "ours", "sequential operations",
              "ours: n = 8, 64, 512", "maximum path", "ours: layers, n = 9, 33, 129"]  # fmt: skip
    why = (
        "**Table 1, and what chapter 19 counts.** Ours has four projections, $4nd^2$, that the "
        "paper leaves out; windows are centred, so paths are twice as long; our gaps grow by 3, "
        "not by k."
    )
    return f"{why}\n\n{Table(header, rows).markdown()}"


def printed(stem: str, cell_id: str, name: str) -> str:
    """Return what a cell of a chapter printed behind a name; "" if it did not print the name."""
    lines = "".join("".join(output.get("text", [])) for output in _cell(stem, cell_id)["outputs"])
    found = re.search(rf"^{re.escape(name)} +(.*)$", lines, re.M)
    return re.sub(r"(?<=\d) +(?=\d)", ", ", found[1].strip()) if found else ""


def table_2() -> str:
    """Table 2, and our three architectures at one budget on captions."""
    german, french = (
        {row.system: row for row in published_scores(("en", to), "newstest2014", "tokenised")}
        for to in ("de", "fr")
    )
    rows = [
        [
            f"**{name}**" if name.startswith("Transformer") else name,
            *(f"{found[name].score:g}" if name in found else "" for found in (german, french)),
            *(
                f"{found[name].training_flops:.1e}"
                if name in found and found[name].training_flops
                else ""
                for found in (german, french)
            ),
        ]
        for name in dict.fromkeys([*german, *french])
    ]
    header = ["model", "BLEU, English-German", "English-French", "training FLOPs, English-German",
              "English-French "]  # fmt: skip
    groups = [
        group
        for group in group_runs(recorded_runs())
        if (group.corpus, precision_of(group.first)) == ("multi30k-en-de", "fp32")
    ]
    leads = {
        (rival.architecture, rival.budget): gap
        for rival, where, metric, gap in all_differences(groups)
        if metric == "BLEU" and where == "multi30k-test2016"
    }
    ours = []
    for group in sorted(groups, key=lambda group: group.budget):
        scores = group.scores()["multi30k-test2016", "moses-lowercase"].values
        gap = leads.get((group.architecture, group.budget))
        lead = f"{gap.mean:+.1f} ({gap.low:+.1f} to {gap.high:+.1f})" if gap else ""
        ours.append([group.architecture, f"{group.budget[0]:,}", f"{mean(scores):.1f}",
                     len(scores), lead])  # fmt: skip
    beside = ["ours", "training steps", "BLEU, captions of 2016", "seeds",
              "the Transformer's lead (95% interval)"]  # fmt: skip
    return (
        f"**Table 2.**\n\n{Table(header, rows).markdown()}\n\n"
        "**Ours**: 29,000 captions, the same text, steps and tokens for all three, and nearly as "
        "many parameters. They are scores of another test set and cannot be set beside the "
        "paper's; what can be compared is who leads.\n\n"
        f"{Table(beside, ours).markdown()}"
    )


def table_3() -> str:
    """Table 3 with our nine rows: the values, and the gains over base with their intervals."""
    runs = read_record(SCALES["table-3-settled"].record)["runs"]
    values = {metric: values_of(runs, metric) for metric in ("perplexity", "BLEU")}
    rows = []
    for row, paper in ROWS.items():
        line = [row, f"{paper.perplexity:.2f}", "", "", f"{paper.bleu:.1f}", "", ""]
        for place, (metric, digits) in enumerate((("perplexity", 3), ("BLEU", 1))):
            found = values[metric].get(row)
            if found:
                line[2 + 3 * place] = f"{mean(found.values()):.1f}"
            if found and row != "base":
                each = gains(values[metric], metric, row)
                low, high = paired_interval(each)
                line[3 + 3 * place] = (
                    f"{mean(each):+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"
                )
        rows.append(line)
    header = ["row", "perplexity", "ours", "gain over base, nats (95% interval)", "BLEU", "ours ",
              "gain over base (95% interval)"]  # fmt: skip
    return (
        "**Table 3, and our nine rows of it.** Ours have a quarter of the paper's width, three "
        "layers, four seeds, and are trained on Tatoeba's sentences, so values differ and only "
        "gains can be compared. Above zero, the row is better than base.\n\n"
        f"{Table(header, rows).markdown()}"
    )


def table_4() -> str:
    """Table 4, and our two parsers."""
    study = recorded_study()
    runs = study["runs"]

    def f1(parser: str) -> str:
        scores = [
            score["f1"]
            for name, run in runs.items()
            if name.startswith(f"{parser}, tags")
            for score in run["scores"]
            if (score["search"], score["part"]) == ("trees, beam 4", "all")
        ]
        return " and ".join(f"{score:.0f}" for score in scores)

    rows = [[*row[:2], f"{row[2]:.1f}", f1(row[3]) if row[3] else ""] for row in TABLE_4]
    header = ["parser", "training", "F1, WSJ section 23", "ours, F1 of each seed"]
    return (
        "**Table 4, and our two parsers.** Ours have about 1.3 million parameters and were trained "
        f"on {study['treebank']['train']:,} sentences of biology articles, with one learning rate "
        "for both, which may be too low for the Transformer.\n\n"
        f"{Table(header, rows).markdown()}"
    )


def _framed(inside: str, caption: str) -> str:
    return f"```{{raw}} html\n<figure>{inside}<figcaption>{caption}</figcaption></figure>\n```"


def _drawn(name: str, caption: str) -> str:
    found = picture(name)
    return _framed(markup(found.wide, found.narrow, found.description), caption)


def _stored(stem: str, cell_id: str, caption: str) -> str:
    """Take the figure that a cell of a chapter has drawn."""
    found = stored_figures(_cell(stem, cell_id))
    drawn = "".join(markup(wide, narrow, escape(caption)) for wide, narrow in found)
    link = f'<a href="../../notebooks/{stem}.html">Chapter {int(stem[:2])}</a>'
    return _framed(drawn, f"{caption} {link} has the maps and the controls.")


def _cell(stem: str, cell_id: str) -> dict:
    notebook = json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))
    [cell] = [each for each in notebook["cells"] if each["id"] == cell_id]
    return cell
