"""Train both parsers, test them on unseen articles, and write the record of chapter 20.

    python -m transformer.lab.parsing.record                    the CRAFT treebank of the package
    python -m transformer.lab.parsing.record --only recurrent   one of the two
    python -m transformer.lab.parsing.record --treebank FOLDER --max-words 40 --output FILE
                                                                a Penn Treebank of your own

Ctrl-C stops the recording, and the same command resumes it. Delete the runs and the record to start
afresh.
"""

import time
from dataclasses import asdict, replace
from pathlib import Path

import torch

from transformer.data.corpora.treebank import load_treebank, split_articles
from transformer.lab.parsing.study import (
    MAX_WORDS,
    OUTPUTS,
    PLAN,
    RECIPES,
    RECORD,
    SEARCHES,
    outputs_of,
    parsing_text,
    parts_to_score,
    scores_of,
    train_parser,
)
from transformer.lab.recording import Recording, parser
from transformer.recipes.record import read_translations, write_translations
from transformer.training.curve import read_curve


def main() -> None:
    """Train, test and record."""
    options = parser(__doc__, RECORD)
    options.add_argument("--treebank", default="craft")
    options.add_argument("--only", choices=RECIPES)
    options.add_argument("--max-words", type=int, default=MAX_WORDS)
    options.add_argument("--steps", type=int, help="of both; default: those of the recipes")
    options.add_argument("--runs", type=Path, default=Path("runs/parsing"))
    chosen = options.parse_args()
    changes = [f"--max-words {chosen.max_words}"] if chosen.max_words != MAX_WORDS else []
    changes += [f"--steps {chosen.steps}"] if chosen.steps is not None else []

    torch.set_num_threads(1)
    treebank = load_treebank(chosen.treebank)
    split = split_articles(treebank.articles)
    text = parsing_text(treebank, chosen.max_words)
    parts = parts_to_score(text.test, chosen.max_words)
    recording = Recording(
        chosen.output,
        "transformer.lab.parsing.record",
        changes,
        treebank=dict(
            name=treebank.name,
            licence=treebank.licence,
            sha256=treebank.checksum,
            articles={part: len(names) for part, names in split.items()},
            max_words=chosen.max_words,
            train=len(text.train),
            test={name: len(trees) for name, trees in parts.items()},
            vocabulary=len(text.vocabulary),
            outputs=len(text.vocabulary.outputs),
        ),
        searches={name: asdict(search) for name, search in SEARCHES.items()},
    )
    packed = chosen.output.with_name(OUTPUTS.name)
    outputs = read_translations(packed) if packed.exists() else {}
    for name, recipe in RECIPES.items():
        if chosen.only not in (None, name):
            continue
        if chosen.steps is not None:
            recipe = replace(recipe, training=replace(recipe.training, max_steps=chosen.steps))
        folder, scores = chosen.runs / name, []
        model, trainer = train_parser(recipe, text, folder)
        for search, part in PLAN:
            key, started = f"{name}, {search}, {part}", time.process_time()
            if key not in outputs:
                outputs[key] = outputs_of(model, text.vocabulary, parts[part], SEARCHES[search])
                write_translations(packed, outputs)
                print(f"{key}: {time.process_time() - started:.0f} s of CPU", flush=True)
            scores.append(dict(search=search, part=part) | scores_of(parts[part], outputs[key]))
        recording.content.setdefault("runs", {})[name] = dict(
            model=model.config.to_dict(),
            training=recipe.training.to_dict(),
            parameters=model.num_parameters(),
            seed=recipe.training.seed,
            steps=trainer.step,
            target_tokens=trainer.tokens,
            minutes=trainer.seconds / 60,
            curve=[line for line in read_curve(folder / "curve.jsonl") if "f1" in line],
            scores=scores,
        )
        recording.save(
            f"{name}: F1 {scores[0]['f1']:.1f}, malformed {scores[0]['malformed']:.1f} %"
        )


if __name__ == "__main__":
    main()
