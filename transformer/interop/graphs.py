"""Export a model as two graphs that run without this package: by ``torch.export``, or as ONNX.

The *encoder* turns source ids into the keys and values that the decoder's layers attend to. The
*step* turns the newest token into logits: the keys and values of earlier tokens go in, and come
out one position longer. Each of these tensors covers all N decoder layers. ::

    encoder(source) -> cross_key, cross_value
    step(token, source, cross_key, cross_value, past_key, past_value) -> logits, key, value

Batch size and lengths are dynamic.
"""

import copy
import inspect
import logging
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.data.extras import import_extra
from transformer.data.model_tokenizers import save_tokenizers
from transformer.fast import disable
from transformer.inference.translator import Translator
from transformer.interop.export import checked, write_readme
from transformer.model.layers import DecoderLayer
from transformer.model.masks import padding_mask
from transformer.model.transformer import Transformer
from transformer.saving.files import require_unchanged, write_json, write_manifest

GraphKind = Literal["torch", "onnx"]
ENDINGS = dict(torch=".pt2", onnx=".onnx")
CONFIG = "config.json"
#: The files, and what goes into a graph and comes out.
NAMES = dict(
    encoder=(["source"], ["cross_key", "cross_value"]),
    step=(
        ["token", "source", "cross_key", "cross_value", "past_key", "past_value"],
        ["logits", "key", "value"],
    ),
)
# torch.export treats lengths of 0 and 1 as special, so the example uses neither.
BATCH, SOURCE, PAST = 2, 3, 4

Graph = Callable[..., tuple[Tensor, ...]]


class EncoderGraph(nn.Module):
    """Compute everything that is needed once per sentence."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self, source: Int[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "N B kv_heads S d_k"], Float[Tensor, "N B kv_heads S d_v"]]:
        """Return the keys and values of a source with EOS for each decoder layer."""
        memory = self.model.encode(source)
        pairs = [layer.cross_attention.project_memory(memory) for layer in self.model.decoder]
        return torch.stack([key for key, _ in pairs]), torch.stack([value for _, value in pairs])


class StepGraph(nn.Module):
    """Compute everything that is needed once per token."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self,
        token: Int[Tensor, " B"],
        source: Int[Tensor, "B S"],
        cross_key: Float[Tensor, "N B kv_heads S d_k"],
        cross_value: Float[Tensor, "N B kv_heads S d_v"],
        past_key: Float[Tensor, "N B kv_heads T d_k"],
        past_value: Float[Tensor, "N B kv_heads T d_v"],
    ) -> tuple[Float[Tensor, "B V"], Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Return the logits of the next token, and keys and values that are one longer.

        ``token`` is ``bos_id`` at first, then what was chosen. The past is from the previous step,
        at first with T = 0; the source is what the encoder read, for its padding.
        """
        model = self.model
        mask = padding_mask(source, model.config.pad_id)
        x = model.target_positions(model.embed_target(token[:, None]), start=past_key.size(3))
        keys, values = [], []
        tensors = zip(past_key, past_value, cross_key, cross_value, strict=True)
        for layer, (*past, to_key, to_value) in zip(model.decoder, tensors, strict=True):
            x, key, value = _step(layer, x, past, (to_key, to_value), mask)
            keys.append(key)
            values.append(value)
        return model.logits(model.decoder_norm(x)[:, 0]), torch.stack(keys), torch.stack(values)


def _step(
    layer: DecoderLayer, x: Tensor, past: list[Tensor], source: tuple[Tensor, Tensor], mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute ``DecoderLayer.step`` without a cache: a graph has no state to write to."""
    kept: list[Tensor] = []

    def attend_to_past(y: Tensor) -> Tensor:
        attention, start = layer.self_attention, past[0].size(2)
        new = attention.project_memory(y, start)
        key, value = (torch.cat(pair, dim=2) for pair in zip(past, new, strict=True))
        kept.extend((key, value))
        heads = attention.attend(attention.project_query(y, start), key, value)
        return attention.output_projection(heads)

    def attend_to_source(y: Tensor) -> Tensor:
        attention = layer.cross_attention
        heads = attention.attend(attention.project_query(y), *source, mask)
        return attention.output_projection(heads)

    x = layer.self_attention_residual(x, attend_to_past)
    x = layer.cross_attention_residual(x, attend_to_source)
    return layer.feed_forward_residual(x, layer.feed_forward), *kept


def to_graphs(translator: Translator, folder: Path | str, kind: GraphKind = "torch") -> float:
    """Write encoder and step as files, load them again, and compare them with the model.

    The folder holds ``encoder`` and ``step`` with the ending .pt2 or .onnx, the tokenizer's files,
    ``config.json``, their checksums, and a README.md with a program that does not need this
    package. The dynamic dimensions are named ``batch``, ``source_length`` and ``past_length``.
    Sequences can be as long as the configuration's ``max_length``; with sinusoids the model itself
    has no such limit, but a graph cannot extend its table. Weights are float32.

    Args:
        translator: a Transformer with one :class:`~transformer.data.tokenizer.Tokenizer`, or with
            two of :class:`~transformer.data.sentencepiece.SentencePieceTokenizer`.
        folder: created if missing; files of these names are replaced, and
            graphs of the other kind removed.
        kind: "torch" for ``torch.export``, "onnx" for ``torch.onnx.export``.

    Returns:
        The largest difference between a logit of the graphs and of the model, about 1e-6 of the
        largest logit.

    Raises:
        ModuleNotFoundError: if "onnx" needs a package that is not installed.
        ValueError: if the model or the tokenizer is of another kind, the kind is unknown, or the
            graphs compute something other than the model.
    """
    if kind not in ENDINGS:
        raise ValueError(f"kind must be one of {', '.join(ENDINGS)}, got {kind!r}")
    original, (tokenizer, target) = checked(translator)
    folder = Path(folder)
    model = copy.deepcopy(original).cpu().float().eval()
    disable(model)  # the fast classes cannot be exported
    if kind == "onnx":
        _onnxruntime()
    folder.mkdir(parents=True, exist_ok=True)
    files = save_tokenizers(tokenizer, target, folder, model.config.max_length)
    write_json(folder / CONFIG, model.config.to_dict())
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
        # Not views: the graph would then require a view at each call.
        arguments = (torch.full((BATCH,), model.config.bos_id), inputs, *cross, *before)
        programs += [torch.export.export(step, arguments, dynamic_shapes=free_step, **_deferred())]
    for name, program, free in zip(NAMES, programs, (free_encoder, free_step), strict=True):
        for ending in ENDINGS.values():  # load_graphs must not find the other kind
            (folder / f"{name}{ending}").unlink(missing_ok=True)
        path = folder / f"{name}{ENDINGS[kind]}"
        if kind == "torch":
            torch.export.save(program, path)
        else:
            _write_onnx(program, path, free)
        files.append(path.name)
    write_manifest(folder, CONFIG, *files)
    write_readme(translator, folder, kind)
    return _require_equal(model, *load_graphs(folder))


def load_graphs(folder: Path | str) -> tuple[Graph, Graph]:
    """Load encoder and step of either kind, as functions that are called like the two graphs.

    Raises:
        FileNotFoundError: if there are no such files.
        ValueError: if a file has changed since it was written.
        ModuleNotFoundError: if they are ONNX and ``onnxruntime`` is not installed.
    """
    for kind, ending in ENDINGS.items():
        paths = [Path(folder) / f"{name}{ending}" for name in NAMES]
        if all(path.is_file() for path in paths):
            require_unchanged(folder, *(path.name for path in paths))
            if kind == "onnx":
                return _load_onnx(paths[0]), _load_onnx(paths[1])
            return torch.export.load(paths[0]).module(), torch.export.load(paths[1]).module()
    raise FileNotFoundError(f"{str(folder)!r} has no encoder and step, as .pt2 or .onnx")


def _deferred() -> dict[str, Any]:
    """Check constraints on the lengths when the graph runs, instead of proving them beforehand.

    Shared key heads lead to inequalities that the prover cannot solve. Early versions of torch lack
    the option and refuse such a model.
    """
    name = "prefer_deferred_runtime_asserts_over_guards"
    return {name: True} if name in inspect.signature(torch.export.export).parameters else {}


Dimensions = tuple[dict[int, Any], ...]


def _write_onnx(program: Any, path: Path, free: Dimensions) -> None:
    import onnx

    # Silence the exporter's list of operators from libraries that are not installed.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # raised inside torch
            torch.onnx.export(
                program,
                f=path,
                dynamo=True,
                input_names=NAMES[path.stem][0],
                output_names=NAMES[path.stem][1],
                external_data=False,
                verbose=False,
            )
    finally:
        logger.setLevel(level)
    model = onnx.load(path)
    _name_dimensions(model.graph, free)
    onnx.save(model, path)


def _name_dimensions(graph: Any, free: Dimensions) -> None:
    """Replace the exporter's names of dimensions, such as s38 and s38 + 1, with ours."""
    named = {}
    for value, dimensions in zip(graph.input, free, strict=True):
        for axis, dimension in dimensions.items():
            named[value.type.tensor_type.shape.dim[axis].dim_param] = dimension.__name__
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = re.sub(r"\w+", lambda m: named.get(m[0], m[0]), dim.dim_param)


def _load_onnx(path: Path) -> Graph:
    session = _onnxruntime().InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        names = NAMES[path.stem][0]
        given = {name: t.numpy() for name, t in zip(names, tensors, strict=True)}
        return tuple(torch.from_numpy(found) for found in session.run(None, given))

    return run


def _onnxruntime() -> Any:
    return import_extra("ONNX", "export", "onnxruntime", "onnx", "onnxscript")


@torch.no_grad()
def _require_equal(model: Transformer, encoder: Graph, step: Graph) -> float:
    """Compare both graphs with teacher forcing, at sizes other than those of the export."""
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
