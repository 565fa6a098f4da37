"""A model of ours as two graphs that need none of our code: by ``torch.export``, or as ONNX.

What the two compute is said in :mod:`transformer.interop.graph_parts`. Batch and lengths are free.

Paper: section 3.1 (auto-regressive generation)
"""

import copy
import inspect
import json
import logging
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer.data.tokenizer import Tokenizer
from transformer.inference.stepwise import EXTRA_LENGTH
from transformer.inference.translator import Translator
from transformer.interop.graph_parts import EncoderGraph, StepGraph
from transformer.model.config import TransformerConfig
from transformer.model.manifest import require_unchanged, write_manifest
from transformer.model.transformer import Transformer

GraphKind = Literal["torch", "onnx"]
ENDINGS = dict(torch=".pt2", onnx=".onnx")
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
ENCODER_NAMES = ["source"], ["cross_key", "cross_value"]
STEP_NAMES = (
    ["token", "source", "cross_key", "cross_value", "past_key", "past_value"],
    ["logits", "key", "value"],
)
# torch.export takes lengths of 0 and 1 for special, so that no example may have them.
BATCH, SOURCE, PAST = 2, 3, 4

Graph = Callable[..., tuple[Tensor, ...]]


def to_graphs(translator: Translator, folder: Path | str, kind: GraphKind = "torch") -> float:
    """Write encoder and step as files, load them again, and compare them with the model.

    The folder holds ``encoder`` and ``step`` with the ending .pt2 or .onnx, ``tokenizer.json``,
    ``config.json`` and the checksums of the four. Sequences can be as long as the configuration's
    ``max_length``, which is not so of our own model with sinusoids: a graph cannot lengthen its
    table. Weights are float32.

    Args:
        translator: a Transformer with one :class:`~transformer.data.tokenizer.Tokenizer`.
        folder: made if it is not there; files of these names are replaced.
        kind: "torch" for ``torch.export``, "onnx" for ``torch.onnx.export``.

    Returns:
        The largest difference of a logit, some 1e-6 of the largest logit.

    Raises:
        ModuleNotFoundError: if "onnx" needs a package that is not installed.
        ValueError: if the model or the tokenizer is of another kind, the kind is unknown, or the
            files compute something else than the model.
    """
    tokenizer, folder = translator.tokenizer, Path(folder)
    if kind not in ENDINGS:
        raise ValueError(f"kind must be one of {', '.join(ENDINGS)}, got {kind!r}")
    if not isinstance(translator.model, Transformer):
        raise ValueError(f"model must be a Transformer, got {type(translator.model).__name__}")
    if not isinstance(tokenizer, Tokenizer) or translator.target_tokenizer is not tokenizer:
        raise ValueError("translator must have one joint tokenizer of transformer.data.tokenizer")
    model = copy.deepcopy(translator.model).cpu().float().eval()
    write = _write_onnx if kind == "onnx" else _write_torch
    if kind == "onnx":
        _onnxruntime()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder / TOKENIZER)
    (folder / CONFIG).write_text(json.dumps(model.config.to_dict(), indent=2), encoding="utf-8")
    longest = model.config.max_length
    batch = torch.export.Dim("batch", min=1)
    source = torch.export.Dim("source_length", min=1, max=longest)
    past = torch.export.Dim("past_length", min=0, max=longest - 1)
    free_encoder = ({0: batch, 1: source},)
    free_step = (
        {0: batch},
        {0: batch, 1: source},
        *[{1: batch, 3: source}] * 2,
        *[{1: batch, 3: past}] * 2,
    )
    inputs = torch.full((BATCH, SOURCE), model.config.eos_id)
    with torch.no_grad():
        encoder, step = EncoderGraph(model), StepGraph(model)
        cross = encoder(inputs)
        before = [torch.zeros(*each.shape[:3], PAST, each.size(-1)) for each in cross]
        programs = [torch.export.export(encoder, (inputs,), dynamic_shapes=free_encoder)]
        # Tensors of their own: a view would make the graph ask for a view each time.
        arguments = (torch.full((BATCH,), model.config.bos_id), inputs, *cross, *before)
        programs += [torch.export.export(step, arguments, dynamic_shapes=free_step, **_unproven())]
    write(programs[0], folder / "encoder", ENCODER_NAMES)
    write(programs[1], folder / "step", STEP_NAMES)
    ending = ENDINGS[kind]
    write_manifest(folder, CONFIG, TOKENIZER, f"encoder{ending}", f"step{ending}")
    return _require_equal(model, *load_graphs(folder))


def load_graphs(folder: Path | str) -> tuple[Graph, Graph]:
    """Load encoder and step, whichever kind they are.

    Args:
        folder: that :func:`to_graphs` wrote.

    Returns:
        Two functions from tensors to tensors, with arguments and results as the two modules of
        :mod:`transformer.interop.graph_parts`.

    Raises:
        FileNotFoundError: if there are no such files.
        ValueError: if one is not as it was written.
        ModuleNotFoundError: if they are ONNX and ``onnxruntime`` is not installed.
    """
    for kind, ending in ENDINGS.items():
        paths = [Path(folder) / f"{name}{ending}" for name in ("encoder", "step")]
        if all(path.is_file() for path in paths):
            require_unchanged(folder, *(path.name for path in paths))
            load = _load_onnx if kind == "onnx" else _load_torch
            return load(paths[0]), load(paths[1])
    raise FileNotFoundError(f"{str(folder)!r} has no encoder and step, as .pt2 or .onnx")


class GraphTranslator:
    """Translate text by greedy search with what :func:`to_graphs` wrote: how to use the graphs.

    Args:
        folder: that :func:`to_graphs` wrote.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if one is not as it was written.

    Paper: section 6.1
    """

    def __init__(self, folder: Path | str):
        folder = Path(folder)
        require_unchanged(folder, CONFIG, TOKENIZER)
        self.encoder, self.step = load_graphs(folder)
        self.tokenizer = Tokenizer.load(folder / TOKENIZER)
        settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        self.config = TransformerConfig.from_dict(settings)

    @torch.inference_mode()
    def translate(self, texts: Iterable[str]) -> list[str]:
        """Translate sentences, all in one batch.

        Args:
            texts: sentences of at least one character that is no blank.

        Raises:
            ValueError: if a sentence has more tokens than the model takes.

        Paper: section 6.1
        """
        c = self.config
        rows = [[*self.tokenizer.encode(" ".join(text.split())), c.eos_id] for text in texts]
        if max(map(len, rows)) > c.max_length:
            raise ValueError(f"a text has more tokens than the {c.max_length} that the model takes")
        tensors = [torch.tensor(row) for row in rows]
        source = pad_sequence(tensors, batch_first=True, padding_value=c.pad_id)
        cross = self.encoder(source)
        past = [each.new_zeros(*each.shape[:3], 0, each.size(-1)) for each in cross]
        limit = torch.tensor([len(row) - 1 + EXTRA_LENGTH for row in rows]).clamp(max=c.max_length)
        token, tokens = torch.full((len(rows),), c.bos_id), []
        done = torch.zeros(len(rows), dtype=torch.bool)
        while not done.all():
            logits, *past = self.step(token, source, *cross, *past)
            logits[:, [c.pad_id, c.bos_id]] = -torch.inf
            # Who is done gets on with ends of sentences, which are left out of the text.
            token = logits.argmax(dim=-1).masked_fill(done, c.eos_id)
            tokens.append(token)
            done |= (token == c.eos_id) | (limit == len(tokens))
        outputs = self.tokenizer.decode_batch(torch.stack(tokens, dim=1).tolist())
        return [output.strip() for output in outputs]


def _unproven() -> dict[str, Any]:
    """What must hold of the lengths is checked when the graph runs, instead of being proven before.

    Shared key heads lead to inequalities that are beyond the prover. Early versions of torch do not
    know the option; they refuse such a model.
    """
    name = "prefer_deferred_runtime_asserts_over_guards"
    return {name: True} if name in inspect.signature(torch.export.export).parameters else {}


def _write_torch(program: Any, path: Path, names: tuple[list[str], list[str]]) -> None:
    torch.export.save(program, path.with_suffix(ENDINGS["torch"]))


def _write_onnx(program: Any, path: Path, names: tuple[list[str], list[str]]) -> None:
    # The exporter says which operators of libraries that nobody needs here it will do without.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of torch, about torch
            torch.onnx.export(
                program,
                f=path.with_suffix(ENDINGS["onnx"]),
                dynamo=True,
                input_names=names[0],
                output_names=names[1],
                external_data=False,
                verbose=False,
            )
    finally:
        logger.setLevel(level)


def _load_torch(path: Path) -> Graph:
    return torch.export.load(path).module()


def _load_onnx(path: Path) -> Graph:
    session = _onnxruntime().InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = ENCODER_NAMES[0] if path.stem == "encoder" else STEP_NAMES[0]

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        given = {name: t.numpy() for name, t in zip(names, tensors, strict=True)}
        return tuple(torch.from_numpy(found) for found in session.run(None, given))

    return run


def _onnxruntime() -> Any:
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"ONNX needs the package {error.name}: pip install 'transformer-book[export]'"
        ) from None
    return onnxruntime


@torch.no_grad()
def _require_equal(model: Transformer, encoder: Graph, step: Graph) -> float:
    """Run both on other sizes than those of the export, and compare with the training path."""
    c, generator = model.config, torch.Generator().manual_seed(0)
    worst = 0.0
    for rows, source_length, target_length in ((1, 1, 1), (3, 7, 6)):
        sizes = (rows, min(source_length, c.max_length)), (rows, min(target_length, c.max_length))
        source, target = (
            torch.randint(0, c.vocab_size, size, generator=generator) for size in sizes
        )
        source[:, 0], source[1:, -1], target[:, 0] = c.eos_id, c.pad_id, c.bos_id
        target[target == c.pad_id] = c.eos_id
        cross = encoder(source)
        past = [each.new_zeros(*each.shape[:3], 0, each.size(-1)) for each in cross]
        found = []
        for token in target.unbind(dim=1):
            logits, *past = step(token, source, *cross, *past)
            found.append(logits)
        expected = model(source, target)
        difference = (torch.stack(found, dim=1) - expected).abs().max().item()
        if not difference <= 1e-3 * max(1.0, expected.abs().max().item()):
            raise ValueError(f"the graphs differ from the model by {difference:g} in a logit")
        worst = max(worst, difference)
    return worst
