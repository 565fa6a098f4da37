"""Train the parsers, test them on unseen articles, and write the record of chapter 21.

    python -m transformer_book.studies.parsing.record             the CRAFT treebank of the package
    python -m transformer_book.studies.parsing.record --seeds 3   other seeds
    python -m transformer_book.studies.parsing.record --treebank FOLDER --max-words 40 --output FILE
                                                         a Penn Treebank of your own

The first seed of all parsers comes before the second of any. Ctrl-C stops the recording, and the
same command resumes it. Delete the runs and the record to start afresh.
"""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from transformer.data.corpora.treebank import Tree, load_treebank, split_articles
from transformer.recipes.record import describe_environment, read_record, write_record
from transformer.training.curve import read_curve
from transformer_book.studies.parsing import study
from transformer_book.studies.recording import parser, stored_texts, write_texts


def run_parser(
    name: str,
    recipe: study.ParsingRecipe,
    text: study.ParsingText,
    parts: dict[str, list[Tree]],
    folder: Path,
    outputs: dict[str, list[str]],
) -> dict[str, Any]:
    """Train or resume a parser, add what it writes to ``outputs``, and return its results."""
    model, trainer = study.train_parser(recipe, text, folder)
    scores = []
    for search, part in study.PLAN:
        started = time.process_time()
        found = study.outputs_of(model, text.vocabulary, parts[part], study.SEARCHES[search])
        seconds = time.process_time() - started
        outputs[f"{name}, {search}, {part}"] = found
        scores.append(dict(search=search, part=part) | study.scores_of(parts[part], found))
        print(f"{name}, {search}, {part}: {seconds:.0f} s of CPU", flush=True)
    return dict(
        model=model.config.to_dict(),
        training=recipe.training.to_dict(),
        parameters=model.num_parameters(),
        outputs=len(text.vocabulary.outputs),
        steps=trainer.step,
        target_tokens=trainer.tokens,
        minutes=trainer.seconds / 60,
        curve=[line for line in read_curve(folder / "curve.jsonl") if "f1" in line],
        scores=scores,
        environment=describe_environment(),
    )


def main() -> None:
    """Train, test and record."""
    options = parser(__doc__, study.RECORD)
    options.add_argument("--treebank", default="craft")
    options.add_argument("--seeds", nargs="+", type=int, default=study.SEEDS)
    options.add_argument("--max-words", type=int, default=study.MAX_WORDS)
    options.add_argument("--steps", type=int, help="of all; default: those of the recipes")
    options.add_argument("--runs", type=Path, default=Path("runs/parsing"))
    chosen = options.parse_args()
    changes = [f"--treebank {chosen.treebank}"] if chosen.treebank != "craft" else []
    changes += [f"--max-words {chosen.max_words}"] if chosen.max_words != study.MAX_WORDS else []
    changes += [f"--steps {chosen.steps}"] if chosen.steps is not None else []

    torch.set_num_threads(1)
    treebank = load_treebank(chosen.treebank)
    split = split_articles(treebank.articles)
    texts = {
        word: study.parsing_text(treebank, chosen.max_words, word == "tags")
        for word in ("XX", "tags")
    }
    parts = study.parts_to_score(texts["XX"].test, chosen.max_words)
    if empty := sorted({part for _, part in study.PLAN if not parts[part]}):
        options.error(
            f"{treebank.name} has no test sentences for {', '.join(empty)}: choose --max-words so "
            f"that some test sentences are no longer than that, and some up to twice as long"
        )
    heading = dict(
        command=" ".join(["python -m transformer_book.studies.parsing.record", *changes]),
        treebank=dict(
            name=treebank.name,
            licence=treebank.licence,
            sha256=treebank.checksum,
            articles={part: len(names) for part, names in split.items()},
            max_words=chosen.max_words,
            train=len(texts["XX"].train),
            test={name: len(trees) for name, trees in parts.items()},
        ),
        searches={name: asdict(search) for name, search in study.SEARCHES.items()},
    )
    outputs, runs = stored_texts(chosen.output), {}
    if chosen.output.exists():
        before = read_record(chosen.output)
        runs = before.pop("runs")
        if different := [key for key in heading if before.get(key) != heading[key]]:
            options.error(
                f"{chosen.output} was recorded with another {different[0]}: choose another --output"
            )
    for seed in chosen.seeds:
        for (architecture, word), recipe in study.RECIPES.items():
            name = study.run_name(architecture, word, seed)
            if name in runs:
                continue
            steps = recipe.training.max_steps if chosen.steps is None else chosen.steps
            training = replace(recipe.training, seed=seed, max_steps=steps)
            found = run_parser(
                name,
                replace(recipe, training=training),
                texts[word],
                parts,
                chosen.runs / name.replace(", ", "-").replace(" ", "-"),
                outputs,
            )
            write_texts(chosen.output, outputs)
            runs[name] = dict(architecture=architecture, word=word, seed=seed) | found
            first = found["scores"][0]
            write_record(chosen.output, heading | dict(runs=runs))
            print(f"{name}: F1 {first['f1']:.1f}, malformed {first['malformed']:.1f}%", flush=True)


if __name__ == "__main__":
    main()
