"""The state of a run in one file, whatever the number of processes that share it."""

from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, gather_object, set_seed
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from transformer import fast
from transformer.data.batching import EncodedPairs
from transformer.model.base import TranslationModel
from transformer.training.config import RESUMABLE, TrainingConfig
from transformer.training.loss import TranslationLoss


def identity(
    config: TrainingConfig, model: TranslationModel, pairs: EncodedPairs, processes: int
) -> dict[str, Any]:
    """Name everything that must be equal for a run to resume; all values are plain.

    The number of processes may change, see :func:`~transformer.training.run_folder.require_same`.
    """
    recipe = {k: v for k, v in config.to_dict().items() if k not in RESUMABLE}
    shape = {f"model.{k}": v for k, v in model.config.to_dict().items()}
    data = dict(pairs=len(pairs), text=pairs.checksum)
    kind = dict(architecture=fast.plain_class(model).__name__, processes=processes)
    return recipe | shape | data | kind


def layers_of(model: nn.Module) -> list[nn.Module]:
    """List the layers of encoder and decoder, where a model has lists of them."""
    stacks = (getattr(model, name, None) for name in ("encoder", "decoder"))
    return [x for stack in stacks if isinstance(stack, nn.ModuleList) for x in stack]


def shard(loss: TranslationLoss, device: torch.device, processes: int) -> None:
    """Shard the weights of a model on ``device`` among all processes, one group per layer (FSDP).

    The weights of a layer are gathered for its computation and freed afterwards. All others belong
    to the loss, which also reads the embedding. All processes start with the weights of the first.
    ValueError if this PyTorch is older than 2.6.
    """
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        raise ValueError(f"shard needs PyTorch 2.6 or newer, this is {torch.__version__}") from None
    broadcast(list(loss.state_dict().values()))
    mesh = init_device_mesh(device.type, (processes,))
    for module in (*layers_of(loss.model), loss):
        fully_shard(module, mesh=mesh)


def gather(values: Any, keep: bool) -> Any:
    """Assemble the sharded tensors in dicts and lists on the CPU; each process must call this.

    A process that does not ``keep`` the result gets None for each such tensor.
    """
    if isinstance(values, dict):
        return {name: gather(value, keep) for name, value in values.items()}
    if isinstance(values, list):
        return [gather(value, keep) for value in values]
    if not is_sharded(values):
        return values
    whole = values.full_tensor()  # only one whole tensor on the device at a time
    return whole.cpu() if keep else None


def is_sharded(value: Any) -> bool:
    """Say whether each process holds only a part of a tensor."""
    return hasattr(value, "full_tensor")  # PyTorch 2.4 has no public class to compare with


def get_random_state(device: torch.device) -> list[Tensor]:
    """Return the states of the random generators used on ``device``: byte tensors of shape (n,)."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    elif device.type == "mps":
        states.append(torch.mps.get_rng_state())
    return states


def set_random_state(states: list[Tensor], device: torch.device) -> None:
    """Restore what :func:`get_random_state` returned."""
    torch.set_rng_state(states[0])
    if len(states) > 1 and device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
    elif len(states) > 1 and device.type == "mps":
        torch.mps.set_rng_state(states[1])


def collect(accelerator: Accelerator, optimizer: Optimizer, scaler: GradScaler) -> dict[str, Any]:
    """Collect what a run needs to resume besides weights and progress; each process must call this.

    It is complete in the main process only.
    """
    return dict(
        optimizer=gather(optimizer.state_dict(), keep=accelerator.is_main_process),
        scaler=scaler.state_dict(),
        # Each process has its own stream of random numbers.
        random=gather_object([get_random_state(accelerator.device)]),
    )


def restore(
    accelerator: Accelerator,
    model: nn.Module,
    trained: nn.Module,
    optimizer: Optimizer,
    scaler: GradScaler,
    saved: dict[str, Any],
) -> None:
    """Load what :func:`collect` returned, with ``model``, ``config`` and ``progress`` beside it.

    Each process takes its shard: ``model`` is whole, ``trained`` may be sharded.

    Raises:
        ValueError: if the parameters of ``optimizer`` are grouped in another way; nothing has been
            loaded then.
    """
    ours, theirs = (
        [len(group["params"]) for group in groups]
        for groups in (optimizer.param_groups, saved["optimizer"]["param_groups"])
    )
    if ours != theirs:
        raise ValueError(
            f"optimizer has groups of {ours} parameters, that of the run in the folder {theirs}"
        )
    model.load_state_dict(saved["model"])
    mine = trained.state_dict()
    shards = {name: _shard_of(weight, mine.get(name)) for name, weight in saved["model"].items()}
    trained.load_state_dict(shards)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    moments = {
        i: {name: _shard_of(value, parameters[i]) for name, value in values.items()}
        for i, values in saved["optimizer"]["state"].items()
    }
    optimizer.load_state_dict(saved["optimizer"] | dict(state=moments))
    if saved["scaler"]:  # the run may have begun on a device with bfloat16
        scaler.load_state_dict(saved["scaler"])
    rank, streams = accelerator.process_index, saved["random"]
    if rank < max(1, len(streams)):  # the first process must have a stream
        set_random_state(streams[rank], accelerator.device)
    else:  # there were fewer processes: start a stream that none of them has used
        set_seed(saved["config"]["seed"] + saved["progress"]["step"], device_specific=True)


def _shard_of(whole: Any, like: Any) -> Any:
    """This process's shard of a tensor, if ``like`` is sharded; anything else unchanged."""
    # Others, such as the count of steps, are whole in each process.
    if not is_sharded(like) or getattr(whole, "shape", None) != like.shape:
        return whole
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = like.device_mesh, like.placements
    return distribute_tensor(whole.to(like.device), mesh, placements, src_data_rank=None)
