"""What the same model computes here: numbers to compare between versions of torch and Python.

    python tests/agreement/measure.py                 the greatest differences to golden.json
    python tests/agreement/measure.py --record        write golden.json anew

Weights and batches are drawn by NumPy, whose generators are the same in every version. The weights
that a seed of torch gives are recorded as well.
"""

import argparse
import json
import platform
import re
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer import Translator
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss
from transformer_book.studies.toy import REVERSE, toy_config, train_toy

GOLDEN = Path(__file__).with_name("golden.json")
SENTENCES = [
    "Where is the train station?",
    "We don't have time to do that today.",
    "The children are playing in the garden because the weather is good today.",
    "Why didn't you call me yesterday evening?",
    "She has been learning German for three years.",
    "If I had known that you were coming, I would have baked a cake.",
]
TRAINING_STEPS = 20


def measure() -> dict[str, object]:
    """All numbers and texts, as they are written to golden.json."""
    torch.set_num_threads(1)
    translator = Translator.from_pretrained("tatoeba-en-de")
    trained, losses = _train()
    return {
        "greedy": translator.translate(SENTENCES, beam_size=1),
        "beam": translator.translate(SENTENCES, beam_size=4),
        "logits": _numbers(_logits(translator)),
        "losses": _numbers(losses),
        "gradient_norms": _numbers(_gradient_norms(trained)),
        "seeded_weights": _numbers(_seeded_weights()),
    }


def _numbers(values: Tensor | np.ndarray) -> list[float]:
    return [float(f"{value:.9g}") for value in values.flatten().tolist()]


@torch.no_grad()
def _logits(translator: Translator) -> Tensor:
    """The logits of 40 tokens of the vocabulary at every position of three translations."""
    model, rows = translator.model.eval(), []
    tokens = torch.arange(0, model.config.vocab_size, model.config.vocab_size // 40)[:40]
    for text in SENTENCES[:3]:
        ids = [*translator.tokenizer.encode(text), 2]
        source, target = torch.tensor([ids]), torch.tensor([[1, *ids[:-1]]])
        rows.append(model(source, target)[0][:, tokens])
    return torch.cat(rows)


def _fixed_model() -> Transformer:
    model, random = Transformer(toy_config(REVERSE)), np.random.default_rng(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                drawn = random.standard_normal(tuple(weight.shape)) * weight.size(-1) ** -0.5
                weight.copy_(torch.from_numpy(drawn))
    return model


def _train() -> tuple[Transformer, np.ndarray]:
    model = _fixed_model()
    return model, train_toy(model, REVERSE, steps=TRAINING_STEPS, batch_size=16, rate=1e-3)


def _gradient_norms(model: Transformer) -> Tensor:
    """Of every weight after training, for a batch that it has not seen."""
    batch = REVERSE.batch(16, seed=123)
    total, _ = TranslationLoss(model, 0.1)(batch.source, batch.target_input, batch.labels)
    model.zero_grad()
    (total / batch.num_target_tokens).backward()
    return torch.stack([gradient.norm() for gradient in _as_recorded(model, gradients=True)])


def _seeded_weights() -> Tensor:
    torch.manual_seed(0)
    weights = _as_recorded(Transformer(toy_config(REVERSE)))
    return torch.cat([weight.flatten()[:5] for weight in weights])


def _as_recorded(model: Transformer, gradients: bool = False) -> list[Tensor]:
    """Weights or gradients as in golden.json, where W^Q, W^K and W^V are one matrix."""
    together: dict[str, list[Tensor]] = {}
    for name, weight in model.named_parameters():
        name = re.sub("(query|key|value)_projection", "in_projection", name)
        together.setdefault(name, []).append(weight.grad if gradients else weight.detach())
    return [torch.cat(parts) for parts in together.values()]


def differences(found: dict[str, object], golden: dict[str, object]) -> dict[str, float]:
    """The greatest differences; of losses and gradients as a share. Texts: how many differ."""
    result: dict[str, float] = {}
    for name in ("greedy", "beam"):
        result[name] = sum(a != b for a, b in zip(found[name], golden[name], strict=True))
    for name in ("logits", "losses", "gradient_norms", "seeded_weights"):
        a, b = np.array(found[name]), np.array(golden[name])
        scale = abs(b) if name in ("losses", "gradient_norms") else 1.0
        result[name] = float((abs(a - b) / scale).max())
    return result


def versions() -> str:
    return f"Python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write golden.json anew")
    found = measure()
    if parser.parse_args().record:
        golden = {"recorded_with": versions(), **found}
        text = json.dumps(golden, indent=1, ensure_ascii=False) + "\n"
        GOLDEN.write_text(text, encoding="utf-8")
        return 0
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    print(f"{versions()} against {golden['recorded_with']}:")
    for name, value in differences(found, golden).items():
        print(f"  {name}: {value:.2g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
