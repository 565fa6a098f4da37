"""The layout of the package: which part may import which, and what the library does not load."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "transformer"
FLOORS = ["published", "model", "data", "fast", "training inference", "baselines interop recipes"]
FLOORS += ["pretrained", "cli", "book", "lab"]
HEIGHT = {part: height for height, floor in enumerate(FLOORS) for part in floor.split()}
LIBRARY = {*HEIGHT} - {"book", "lab"}
APART = {"training", "inference"}  # on one floor, and not on one another
OF_THE_BOOK = {"matplotlib", "IPython", "ipykernel", "ipywidgets", "nbformat", "papermill"}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


def part(module):
    """The floor's folder: "model" of "transformer.model.masks", "" of "transformer"."""
    return (module.split(".") + [""])[1]


def imports(module, nodes=ast.walk):
    """All names that a module imports, of modules where it can be told."""
    found = set()
    for node in nodes(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
    return found


@pytest.mark.parametrize("name", sorted(HEIGHT))
def test_a_part_imports_only_lower_floors(name):
    for module in MODULES:
        if part(module) != name:
            continue
        for other in filter(None, map(part, imports(module) & {*MODULES})):
            same = other == name or (HEIGHT[other] == HEIGHT[name] and not {other, name} <= APART)
            assert same or HEIGHT[other] < HEIGHT[name], f"{module} imports {other}"


def test_imports_have_no_cycle():
    at_once = {m: imports(m, lambda tree: tree.body) & {*MODULES} - {m} for m in MODULES}
    TopologicalSorter(at_once).prepare()  # CycleError names the modules


def test_the_library_imports_nothing_of_the_book():
    for module in MODULES:
        if part(module) in LIBRARY | {""}:
            found = {name.split(".")[0] for name in imports(module)}
            assert not found & OF_THE_BOOK, module
    code = "import sys, transformer, transformer.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    loaded = set(done.stdout.decode().split())
    assert not loaded & {*OF_THE_BOOK, "transformer.book", "transformer.lab"}


def test_folders_are_small():
    for folder in {path.parent for path in MODULES.values()}:
        modules = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
        assert len(modules) <= 14, f"{folder.relative_to(ROOT)} holds {len(modules)} modules"


def test_the_model_reads_like_the_paper():
    for path in (PACKAGE / "model").glob("*.py"):
        found = re.findall(r"packing|torch\._C|mkldnn", path.read_text(encoding="utf-8"))
        assert not found, f"{path.name}: {found}"
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not [k for call in calls for k in call.keywords if k.arg == "maps"], path.name
