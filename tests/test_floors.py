"""The layout: which part may import which, and what the library does not load."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = {"transformer": ROOT, "transformer_book": ROOT / "book"}
FLOORS = [
    "minimal",
    "published settings recording cached_decoding",
    "saving",
    "model",
    "data",
    "fast",
    "training inference",
    "baselines interop recipes",
    "pretrained",
    "cli",
]
HEIGHT = {part: height for height, floor in enumerate(FLOORS) for part in floor.split()}
APART = {"training", "inference"}  # on one floor, and not on one another
OF_THE_BOOK = {"IPython", "ipykernel", "ipywidgets", "matplotlib", "nbformat", "papermill"}
OF_THE_BOOK |= {"transformer_book"}
MODULES = {
    ".".join(path.relative_to(place).with_suffix("").parts).removesuffix(".__init__"): path
    for package, place in PLACES.items()
    for path in (place / package).rglob("*.py")
}
LIBRARY = [module for module in MODULES if module.split(".")[0] == "transformer"]


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
    for module in LIBRARY:
        if part(module) != name:
            continue
        nodes = (lambda tree: tree.body) if name == "minimal" else ast.walk
        for other in filter(None, map(part, imports(module, nodes) & {*LIBRARY})):
            same = other == name or (HEIGHT[other] == HEIGHT[name] and not {other, name} <= APART)
            assert same or HEIGHT[other] < HEIGHT[name], f"{module} imports {other}"


def test_the_one_file_program_needs_torch_alone():
    """Its last lines, which run it, import the toy's sentences."""
    found = imports("transformer.minimal", lambda tree: tree.body)
    assert {name.split(".")[0] for name in found} <= {*sys.stdlib_module_names, "torch"}


def test_imports_have_no_circle():
    at_once = {m: imports(m, lambda tree: tree.body) & {*MODULES} - {m} for m in MODULES}
    TopologicalSorter(at_once).prepare()  # CycleError names the modules


def test_the_chapters_experiments_have_no_circle_between_folders():
    """Of two chapters, one builds on the other; what several use lies above all of them."""

    def folder(module):
        names = module.split(".")
        return ".".join(names[:3]) if len(names) > 3 else "studies"

    studies = [module for module in MODULES if module.startswith("transformer_book.studies.")]
    graph = {folder(module): set() for module in studies}
    for module in studies:
        graph[folder(module)] |= {folder(other) for other in imports(module) & {*studies}}
    TopologicalSorter({name: others - {name} for name, others in graph.items()}).prepare()


def test_the_library_imports_nothing_of_the_book():
    for module in LIBRARY:
        found = {name.split(".")[0] for name in imports(module)}
        assert not found & OF_THE_BOOK, module
    code = "import sys, transformer, transformer.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert not {*done.stdout.decode().split()} & OF_THE_BOOK


def test_folders_are_small():
    for folder in {path.parent for path in MODULES.values()}:
        modules = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
        assert len(modules) <= 14, f"{folder.relative_to(ROOT)} holds {len(modules)} modules"
