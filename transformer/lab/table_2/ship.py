"""Put a finished run into the package: its weights in half precision, a model card, its record.

python -m transformer.lab.table_2.ship runs/tatoeba-small tatoeba-en-de
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

from transformer.inference.pretrained import SHIPPED_FOLDER
from transformer.lab.table_2.recorded import RUNS
from transformer.lab.table_2.summary import hardware_of
from transformer.recipes.record import read_record
from transformer.training.checkpoint import load_pretrained, save_pretrained

LIMIT = 20_000_000  # bytes of weights that a package can carry

CARD = """---
license: cc-by-2.0
language: [{corpus[languages][0]}, {corpus[languages][1]}]
tags: [translation]
library_name: transformer-book
---

# {name}

A {r[parameters]:,}-parameter Transformer that translates {corpus[languages][0]} to
{corpus[languages][1]}: {model[num_layers]} layers, d_model {model[d_model]}, {model[num_heads]}
heads, post-norm, one matrix for both embeddings and the output. Trained from scratch with the
package it comes with, preset `{r[preset][name]}`, seed {r[seed]}: {r[steps]:,} steps,
{r[target_tokens]:,} target tokens, {r[minutes]:.0f} minutes on {hardware}. The weights are the mean
of the last {averaged} checkpoints, stored as float16.

## Data

Tatoeba sentence pairs by way of www.manythings.org/anki ({licence}), {corpus[pairs][train]:,} for
training. No sentence of the test split, on either side, is in the training pairs, and none of the
Tatoeba Challenge test set. SHA-256 of the text: `{corpus[sha256]}`.

## Scores

| test set | search | score | signature |
|---|---|---|---|
{scores}

One run with one seed: the spread over seeds was not measured.

## What to expect

The model was trained on short, everyday sentences only. It translates long sentences, names,
numbers and technical language badly, may leave out parts of a sentence, and renders "you" as du,
ihr or Sie at random. Biases of the sentence collection carry over. Use it to study how a
Transformer works, not to translate text that matters.
"""


def card(name: str, record: dict[str, Any]) -> str:
    """Write the model card from the record."""
    rows = [
        f"| {m['split']}, {m['pairs']:,} pairs | {search} "
        f"| {m['name']} {m['score']:.2f} | `{m['signature']}` |"
        for m in record["metrics"]
        for beam in [f"beam {m['beam_size']}, alpha {m['alpha']}"]
        for search in ["greedy" if m["beam_size"] == 1 else beam]
        if m["weights"] == "averaged"
    ]
    return CARD.format(
        name=name,
        r=record,
        model=record["preset"]["model"],
        corpus=record["corpus"],
        hardware=hardware_of(record),
        averaged=len(record["averaged"]),
        licence=record["corpus"]["licence"].split(";")[0],
        scores="\n".join(rows),
    )


def main() -> None:
    """Ship the run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("name", help="what Translator.from_pretrained will call it")
    options = parser.parse_args()
    record = read_record(options.run / "run.json")
    model, tokenizer = load_pretrained(options.run / "model")
    folder = SHIPPED_FOLDER / options.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(card(options.name, record), encoding="utf-8")
    save_pretrained(model, tokenizer, folder, half=True)
    for file in folder.iterdir():
        file.chmod(0o644)
    size = (folder / "model.safetensors").stat().st_size
    if size > LIMIT:
        raise ValueError(f"the weights take {size:,} bytes, more than {LIMIT:,}")
    RUNS.mkdir(exist_ok=True)
    target = RUNS / f"{record['preset']['name']}-seed{record['seed']}.json"
    shutil.copyfile(options.run / "run.json", target)
    print(f"{folder}: {size:,} bytes of weights; record: {target}")


if __name__ == "__main__":
    main()
