"""Trains both parsers of the parsing study, tests them on unseen articles, and writes the record.

    python tools/record_parsing.py                    the CRAFT treebank that comes with the package
    python tools/record_parsing.py --only recurrent   one of the two
    python tools/record_parsing.py --treebank FOLDER --max-words 40 --steps 50000 --output FILE
                                                      a Penn Treebank of your own, and in earnest

What is done already is kept, in the folder of the runs and beside the record. So a stopped
recording goes on when the same command is given again. Delete both to record anew.
"""

import argparse
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
from transformer.recipes.record import (
    describe_environment,
    read_translations,
    write_record,
    write_translations,
)
from transformer.training.curve import read_curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--treebank", default="craft")
    parser.add_argument("--only", choices=RECIPES)
    parser.add_argument("--max-words", type=int, default=MAX_WORDS)
    parser.add_argument("--steps", type=int, help="of both; as many as the recipes say if left out")
    parser.add_argument("--runs", type=Path, default=Path("runs/parsing"))
    parser.add_argument("--output", type=Path, default=RECORD)
    chosen = parser.parse_args()
    changes = [f"--max-words {chosen.max_words}"] if chosen.max_words != MAX_WORDS else []
    changes += [f"--steps {chosen.steps}"] if chosen.steps is not None else []
    packed = chosen.output.with_name(OUTPUTS.name)

    torch.set_num_threads(1)
    treebank = load_treebank(chosen.treebank)
    split = split_articles(treebank.articles)
    text = parsing_text(treebank, chosen.max_words)
    parts = parts_to_score(text.test, chosen.max_words)
    record = dict(
        command=" ".join(["python tools/record_parsing.py", *changes]),
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
        environment=describe_environment(),
        searches={name: asdict(search) for name, search in SEARCHES.items()},
        runs={},
    )
    outputs = read_translations(packed) if packed.exists() else {}
    for name, recipe in RECIPES.items():
        if chosen.only not in (None, name):
            continue
        if chosen.steps is not None:
            recipe = replace(recipe, training=replace(recipe.training, max_steps=chosen.steps))
        folder = chosen.runs / name
        model, trainer = train_parser(recipe, text, folder)
        for search, part in PLAN:
            key = f"{name}, {search}, {part}"
            if key in outputs:
                continue
            started = time.process_time()
            outputs[key] = outputs_of(model, text.vocabulary, parts[part], SEARCHES[search])
            write_translations(packed, outputs)
            print(f"{key}: {time.process_time() - started:.0f} s of CPU", flush=True)
        record["runs"][name] = dict(
            model=model.config.to_dict(),
            training=recipe.training.to_dict(),
            parameters=model.num_parameters(),
            seed=recipe.training.seed,
            steps=trainer.step,
            target_tokens=trainer.tokens,
            minutes=trainer.seconds / 60,
            curve=[line for line in read_curve(folder / "curve.jsonl") if "f1" in line],
            scores=[
                dict(search=search, part=part)
                | scores_of(parts[part], outputs[f"{name}, {search}, {part}"])
                for search, part in PLAN
            ],
        )
        write_record(chosen.output, record)
        best = record["runs"][name]["scores"][0]
        print(f"{name}: F1 {best['f1']:.1f}, malformed {best['malformed']:.1f} %", flush=True)


if __name__ == "__main__":
    main()
