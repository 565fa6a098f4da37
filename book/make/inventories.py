"""Write the small Sphinx inventories through which API pages link to other projects' manuals.

They are committed, so that the strict build needs no network; a name that is not listed here is an
unresolved reference.
"""

import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "_inventories"

TITLES = {
    "torch": "PyTorch",
    "python": "Python",
    "numpy": "NumPy",
    "matplotlib": "Matplotlib",
    "jaxtyping": "jaxtyping",
    "huggingface": "Hugging Face",
}
# Per project and page, the classes that link there. {} is the name; "a=b" links the class a, as an
# annotation prints it, to the documented name b; "()" marks a function.
NAMES = {
    "torch": {
        "generated/{}.html#{}": """
            torch.Generator torch._C.Generator=torch.Generator
            torch.nn.Embedding torch.nn.LayerNorm torch.nn.MultiheadAttention
            torch.nn.Module torch.nn.modules.module.Module=torch.nn.Module
            torch.nn.Transformer torch.nn.modules.transformer.Transformer=torch.nn.Transformer
            torch.nn.modules.rnn.RNNBase=torch.nn.RNNBase
            torch.nn.modules.normalization.LayerNorm=torch.nn.LayerNorm
            torch.nn.parameter.Parameter=torch.nn.parameter.Parameter
            torch.nn.functional.cross_entropy() torch.nn.functional.scaled_dot_product_attention()
            torch.optim.Adam torch.optim.lr_scheduler.LambdaLR
            torch.optim.lr_scheduler.LRScheduler""",
        "tensors.html#{}": "torch.Tensor Tensor=torch.Tensor",
        "tensor_attributes.html#{}": "torch.device torch.dtype",
        "optim.html#{}": """
            torch.optim.Optimizer torch.optim.optimizer.Optimizer=torch.optim.Optimizer""",
    },
    "python": {
        "library/argparse.html#{}": "argparse.ArgumentParser",
        "library/collections.abc.html#{}": """
            collections.abc.Callable collections.abc.Collection collections.abc.Iterable
            collections.abc.Iterator collections.abc.Mapping collections.abc.Sequence""",
        "library/collections.html#{}": "collections.Counter",
        "library/contextlib.html#{}": "contextlib.AbstractContextManager",
        "library/io.html#{}": "io.BufferedIOBase",
        "library/pathlib.html#{}": "pathlib.Path Path=pathlib.Path",
    },
    "numpy": {
        "reference/generated/{}.html#{}": "numpy.ndarray ndarray=numpy.ndarray",
        "reference/random/generator.html#{}": """
            numpy.random._generator.Generator=numpy.random.Generator""",
    },
    "matplotlib": {
        "api/_as_gen/{}.html#{}": """
            matplotlib.axes.Axes matplotlib.axes._axes.Axes=matplotlib.axes.Axes
            matplotlib.figure.Figure matplotlib.lines.Line2D""",
    },
    "jaxtyping": {
        "api/array/#dtype": """
            jaxtyping.Bool jaxtyping.Float jaxtyping.Int jaxtyping.Int32 jaxtyping.Int64
            jaxtyping.UInt8 jaxtyping.UInt16""",
    },
    "huggingface": {
        "tokenizers/api/tokenizer#{}": "tokenizers.Tokenizer",
        "accelerate/package_reference/accelerator#{}": """
            accelerate.accelerator.Accelerator=accelerate.Accelerator""",
        "accelerate/package_reference/tracking#{}": "accelerate.tracking.GeneralTracker",
        "huggingface_hub/package_reference/cards#{}": """
            huggingface_hub.repocard.ModelCard=huggingface_hub.ModelCard""",
        "huggingface_hub/package_reference/file_download#{}": "huggingface_hub.snapshot_download()",
    },
}


def inventory(project: str) -> bytes:
    """Return version 2 of Sphinx's inventory format: four plain lines, the rest compressed."""
    lines = []
    for page, names in NAMES[project].items():
        for entry in names.split():
            name, _, documented = entry.removesuffix("()").partition("=")
            kind = "py:function" if entry.endswith("()") else "py:class"
            address = page.replace("{}", documented or name)
            lines.append(f"{name} {kind} 1 {address} -\n")
    header = (
        f"# Sphinx inventory version 2\n# Project: {TITLES[project]}\n# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    return header.encode() + zlib.compress("".join(sorted(lines)).encode(), 9)


def inventories() -> None:
    """Write the inventories of all projects."""
    for project in NAMES:
        (FOLDER / f"{project}.inv").write_bytes(inventory(project))
