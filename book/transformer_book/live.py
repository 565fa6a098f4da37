"""The shipped model as scripts, which a page in a folder may load: int8 weights, tokenizer."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.data.tokenizer import SPECIAL_TOKENS, TOKENIZER, Tokenizer
from transformer.model.transformer import Transformer
from transformer.saving.files import checksum
from transformer.saving.locate import locate

#: The model of the live page.
SHIPPED = "tatoeba-en-de"
#: Bytes of a part before base64: a multiple of 3, so that no part but the last is padded.
PART = 3 * 2**18


def quantise(
    weight: Float[Tensor, "rows columns"],
) -> tuple[Int[Tensor, "rows columns"], Float[Tensor, " rows"]]:
    """Round a matrix to int8 with one scale per row, which must not be all zeros."""
    scale = weight.abs().amax(dim=1) / 127
    return (weight / scale[:, None]).round().to(torch.int8), scale


@dataclass(frozen=True)
class Payload:
    """What the page loads."""

    header: dict[str, Any]  # also name, shape and place of every tensor
    content: bytes  # of the tensors, float32 first, then int8

    def scripts(self) -> Iterator[tuple[str, str]]:
        """Yield name and text of each script: the header, then the parts in base64."""
        starts = range(0, len(self.content), PART)
        header = self.header | {"size": len(self.content), "count": len(starts)}
        compact = json.dumps(header, separators=(",", ":"))
        yield "weights-0.js", f"liveWeights(0,{compact});\n"
        for number, start in enumerate(starts, 1):
            part = base64.b64encode(self.content[start : start + PART]).decode()
            yield f"weights-{number}.js", f'liveWeights({number},"{part}");\n'

    def write(self, folder: Path) -> None:
        """Write the scripts into a folder, which is made if it does not exist."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.scripts():
            (folder / name).write_text(text, encoding="ascii")


def make_payload(name: str = SHIPPED) -> Payload:
    """Quantise a model and collect what the page needs to run it."""
    location = locate(name)
    model = Transformer.load(location)
    config = model.config.to_dict()
    wanted = {"norm": "post", "activation": "relu", "positions": "sinusoidal"}
    other = {key: config[key] for key, value in wanted.items() if config[key] != value}
    if other or config["sharing"] != "three-way":
        raise ValueError(f"the page computes the paper's model, {name!r} has {other or 'sharing'}")
    numbers, integers = bytearray(), bytearray()
    tensors: list[dict[str, Any]] = []
    for key, value in model.state_dict().items():
        tensor: dict[str, Any] = {"name": key, "shape": list(value.shape)}
        if value.dim() == 1:
            tensor["start"] = len(numbers)
            numbers += _bytes(value.float())
        else:
            rounded, scale = quantise(value.float())
            tensor |= {"start": len(integers), "scales": len(numbers)}
            integers += _bytes(rounded)
            numbers += _bytes(scale)
        tensors.append(tensor)
    for tensor in tensors:
        if "scales" in tensor:
            tensor["start"] += len(numbers)
    header = {
        "name": location.name,
        "config": config,
        "checksum": checksum(model.state_dict()),
        "tokenizer": _tokenizer(location.folder / TOKENIZER),
        "tensors": tensors,
    }
    return Payload(header, bytes(numbers + integers))


def _bytes(tensor: Tensor) -> bytes:
    return tensor.contiguous().numpy().tobytes()


def _tokenizer(path: Path) -> dict[str, Any]:
    """Return the bytes that the first ids spell, and the pair of ids that each later id merges."""
    tokenizer = Tokenizer.load(path)
    model = json.loads(tokenizer.to_json())["model"]
    ids, merges = model["vocab"], model["merges"]
    first = len(SPECIAL_TOKENS) + 256
    pairs = [[ids[left], ids[right]] for left, right in merges]
    if [ids[left + right] for left, right in merges] != list(range(first, len(ids))):
        raise ValueError("the tokenizer's ids must be in the order of its merges")
    labels = tokenizer.tokens(range(len(SPECIAL_TOKENS), first))
    return {"bytes": [_byte(label) for label in labels], "merges": pairs}


def _byte(label: str) -> int:
    """Return the byte of a token of one byte, from its label: "a", "▁" or "<0xC3>"."""
    if label == "▁":
        return ord(" ")
    return ord(label) if len(label) == 1 else int(label[3:5], 16)
