"""Writes the small Sphinx inventories that let the API pages link to other projects' manuals.

    python tools/make_inventories.py

The strict build knows a name of torch or Python only if it stands here. The inventories are
committed, so that a build needs no network; the links they make lead to the web.
"""

import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "book" / "_inventories"

# name, kind, page; a trailing $ in the page stands for the name itself
TORCH = [
    ("Tensor", "class", "tensors.html#torch.Tensor"),  # as shape annotations print it
    ("torch.Generator", "class", "generated/torch.Generator.html#$"),
    ("torch._C.Generator", "class", "generated/torch.Generator.html#torch.Generator"),
    ("torch.Tensor", "class", "tensors.html#$"),
    ("torch.device", "class", "tensor_attributes.html#$"),
    ("torch.dtype", "class", "tensor_attributes.html#$"),
    ("torch.nn.Embedding", "class", "generated/torch.nn.Embedding.html#$"),
    ("torch.nn.LayerNorm", "class", "generated/torch.nn.LayerNorm.html#$"),
    ("torch.nn.Module", "class", "generated/torch.nn.Module.html#$"),
    ("torch.nn.modules.module.Module", "class", "generated/torch.nn.Module.html#torch.nn.Module"),
    ("torch.nn.MultiheadAttention", "class", "generated/torch.nn.MultiheadAttention.html#$"),
    ("torch.nn.Transformer", "class", "generated/torch.nn.Transformer.html#$"),
    ("torch.optim.optimizer.Optimizer", "class", "optim.html#torch.optim.Optimizer"),
    # the same classes under the names of the modules that define them
    (
        "torch.nn.modules.transformer.Transformer",
        "class",
        "generated/torch.nn.Transformer.html#torch.nn.Transformer",
    ),
    ("torch.nn.modules.rnn.RNNBase", "class", "generated/torch.nn.RNNBase.html#torch.nn.RNNBase"),
    (
        "torch.nn.functional.cross_entropy",
        "function",
        "generated/torch.nn.functional.cross_entropy.html#$",
    ),
    (
        "torch.nn.functional.scaled_dot_product_attention",
        "function",
        "generated/torch.nn.functional.scaled_dot_product_attention.html#$",
    ),
    ("torch.optim.Adam", "class", "generated/torch.optim.Adam.html#$"),
    ("torch.optim.Optimizer", "class", "optim.html#$"),
    (
        "torch.optim.lr_scheduler.LambdaLR",
        "class",
        "generated/torch.optim.lr_scheduler.LambdaLR.html#$",
    ),
]
PYTHON = [
    ("collections.abc.Callable", "class", "library/collections.abc.html#$"),
    ("collections.abc.Collection", "class", "library/collections.abc.html#$"),
    ("collections.abc.Iterable", "class", "library/collections.abc.html#$"),
    ("collections.abc.Iterator", "class", "library/collections.abc.html#$"),
    ("collections.abc.Mapping", "class", "library/collections.abc.html#$"),
    ("collections.abc.Sequence", "class", "library/collections.abc.html#$"),
    ("collections.Counter", "class", "library/collections.html#$"),
    ("contextlib.AbstractContextManager", "class", "library/contextlib.html#$"),
    ("io.BufferedIOBase", "class", "library/io.html#$"),
    ("pathlib.Path", "class", "library/pathlib.html#$"),
]

NUMPY = [
    ("ndarray", "class", "reference/generated/numpy.ndarray.html#numpy.ndarray"),
    ("numpy.ndarray", "class", "reference/generated/numpy.ndarray.html#$"),
    (
        "numpy.random._generator.Generator",
        "class",
        "reference/random/generator.html#numpy.random.Generator",
    ),
]
MATPLOTLIB = [
    ("matplotlib.axes.Axes", "class", "api/_as_gen/matplotlib.axes.Axes.html#$"),
    # the same class under the name of the module that defines it
    (
        "matplotlib.axes._axes.Axes",
        "class",
        "api/_as_gen/matplotlib.axes.Axes.html#matplotlib.axes.Axes",
    ),
    ("matplotlib.figure.Figure", "class", "api/_as_gen/matplotlib.figure.Figure.html#$"),
    ("matplotlib.lines.Line2D", "class", "api/_as_gen/matplotlib.lines.Line2D.html#$"),
]
JAXTYPING = [
    (f"jaxtyping.{name}", "class", "api/array/#dtype")
    for name in ("Bool", "Float", "Int", "Int32", "Int64", "UInt8", "UInt16")
]
HUGGING_FACE = [
    ("tokenizers.Tokenizer", "class", "tokenizers/api/tokenizer#$"),
    (
        "accelerate.accelerator.Accelerator",
        "class",
        "accelerate/package_reference/accelerator#accelerate.Accelerator",
    ),
]


def write_inventory(path: Path, project: str, names: list[tuple[str, str, str]]) -> None:
    """Writes version 2 of Sphinx's inventory format: four plain lines, the rest compressed."""
    header = (
        "# Sphinx inventory version 2\n"
        f"# Project: {project}\n"
        "# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    lines = "".join(f"{name} py:{kind} 1 {page} -\n" for name, kind, page in sorted(names))
    path.write_bytes(header.encode() + zlib.compress(lines.encode(), 9))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_inventory(FOLDER / "torch.inv", "PyTorch", TORCH)
    write_inventory(FOLDER / "python.inv", "Python", PYTHON)
    write_inventory(FOLDER / "matplotlib.inv", "Matplotlib", MATPLOTLIB)
    write_inventory(FOLDER / "numpy.inv", "NumPy", NUMPY)
    write_inventory(FOLDER / "jaxtyping.inv", "jaxtyping", JAXTYPING)
    write_inventory(FOLDER / "huggingface.inv", "Hugging Face", HUGGING_FACE)
