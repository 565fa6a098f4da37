#!/usr/bin/env bash
# A module that is built on PyTorch's meta device imports the compiler.
#
# Version: torch 2.13.0 (CPU).
# Behaviour: within `torch.device("meta")` the initialiser of nn.Embedding (nn.init.normal_), and plain
#   arithmetic such as torch.arange(4.0).sin(), run PyTorch's Python reference implementations, whose first
#   use imports the compiler, torch._dynamo. nn.Linear alone does not.
# Why one would guess otherwise: the meta device is recommended for building a model without memory or work
#   before its weights are loaded, and nothing is computed or compiled.
# What a user loses: as much CPU time as `import torch` itself takes again, at every start of a program that
#   loads a model in this way.
# Output seen: linear: 0 modules of torch._dynamo, 0.00 of the import of torch; embedding: 93 modules, 1.31 of
#   it; arange: 93 modules, 1.03 of it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
cat >"$folder/measure.py" <<'PY'
import sys
import time

started = time.process_time()
import torch
from torch import nn

imported = time.process_time() - started
assert torch.__version__.startswith("2.13.0"), torch.__version__
build = {
    "linear": lambda: nn.Linear(4, 4),
    "embedding": lambda: nn.Embedding(4, 4),
    "arange": lambda: torch.arange(4.0).sin(),
}[sys.argv[1]]
started = time.process_time()
with torch.device("meta"):
    build()
spent = time.process_time() - started
found = sum(name.startswith("torch._dynamo") for name in sys.modules)
print(f"{sys.argv[1]}: {found} modules of torch._dynamo, {spent / imported:.2f} of the import of torch")
if sys.argv[1] == "linear":
    assert found == 0
else:
    assert found > 50 and spent > 0.3 * imported
PY
for kind in linear embedding arange; do
	OMP_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/measure.py" $kind
done
echo "as described"
