"""The state of a run, whole: one file, whatever the number of processes that share it out."""

from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, gather_object, set_seed
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_map_only

from transformer.data.batching import EncodedPairs
from transformer.model.interface import ModuleLike, TranslationModel
from transformer.training.checkpoint import get_random_state, set_random_state
from transformer.training.config import TrainingConfig
from transformer.training.loss import TranslationLoss

# What may change from one sitting of a run to the next.
_FREE = ("max_steps", "log_every", "keep_last", "shard")


def identity(
    config: TrainingConfig, model: TranslationModel, pairs: EncodedPairs, processes: int
) -> dict[str, Any]:
    """Name all that must be equal for a run to go on. More steps may be asked for.

    Args:
        config: the recipe.
        model: with its ``config``.
        pairs: the training pairs.
        processes: that train together. Another number will do if it shares the batches of a step
            equally, see :func:`~transformer.training.run_folder.require_same`.

    Returns:
        Plain values by name.
    """
    recipe = {k: v for k, v in config.to_dict().items() if k not in _FREE}
    shape = {f"model.{k}": v for k, v in model.config.to_dict().items()}
    data = dict(pairs=len(pairs), text=pairs.checksum)
    return recipe | shape | data | dict(architecture=type(model).__name__, processes=processes)


def layers_of(model: ModuleLike) -> list[nn.Module]:
    """List the layers of encoder and decoder, as far as a model has lists of them.

    Paper: section 3.1
    """
    stacks = (getattr(model, name, None) for name in ("encoder", "decoder"))
    return [x for stack in stacks if isinstance(stack, nn.ModuleList) for x in stack]


def shard(loss: TranslationLoss, device: torch.device, processes: int) -> None:
    """Share out the weights of a model among the processes, a group for each layer (FSDP).

    The weights of a layer are gathered when it is computed and dropped when it is done. All others
    belong to the loss, which reads the embedding as well, and are gathered while that is computed.

    Args:
        loss: with its model, on ``device``; it is changed in place. All processes begin with the
            weights of the first.
        device: of this process.
        processes: how many there are; each calls this.

    Raises:
        ValueError: if this PyTorch is older than 2.6.
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
    """Put tensors together that are shared out among processes; each process calls this.

    Args:
        values: dicts and lists of tensors and others. What is not shared out stays as it is.
        keep: whether this process wants them; the others get None in place of each.

    Returns:
        The same with whole tensors, in the CPU's memory.
    """

    def whole(tensor: Any) -> Tensor | None:
        if not is_shared_out(tensor):
            return tensor
        full = tensor.full_tensor()  # one tensor at a time is whole on the device
        return full.cpu() if keep else None

    return tree_map_only(Tensor, whole, values)


def is_shared_out(value: Any) -> bool:
    """Say whether a tensor lies in several processes, a part in each."""
    # By what it can do: PyTorch 2.4 has no class of that name.
    return hasattr(value, "full_tensor")


def collect(accelerator: Accelerator, model: ModuleLike, optimizer: Optimizer) -> dict[str, Any]:
    """Put together what a run needs to go on, but for its progress; each process calls this.

    Args:
        accelerator: of this process.
        model: whole, not shared out; that of the main process counts.
        optimizer: of the parameters in training.

    Returns:
        By name, in the main process; the others get nothing that is of use.
    """
    scaler = accelerator.scaler
    return dict(
        model=model.state_dict(),
        optimizer=gather(optimizer.state_dict(), keep=accelerator.is_main_process),
        scaler=scaler.state_dict() if scaler else {},
        # Each process has its own stream of random numbers, so each must hand it in.
        random=gather_object([get_random_state(accelerator.device)]),
    )


def restore(
    accelerator: Accelerator,
    model: ModuleLike,
    trained: ModuleLike,
    optimizer: Optimizer,
    saved: dict[str, Any],
) -> None:
    """Put back what :func:`collect` returned; each process takes its share.

    Args:
        accelerator: of this process.
        model: whole.
        trained: the model in training, shared out or the same as ``model``.
        optimizer: of the parameters of ``trained``.
        saved: the whole state of a run, with its ``config`` and ``progress``.
    """
    model.load_state_dict(saved["model"])
    mine = trained.state_dict()
    shares = {name: _share(weight, mine.get(name)) for name, weight in saved["model"].items()}
    trained.load_state_dict(shares)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    moments = {
        i: {name: _share(value, parameters[i]) for name, value in values.items()}
        for i, values in saved["optimizer"]["state"].items()
    }
    optimizer.load_state_dict(saved["optimizer"] | dict(state=moments))
    if accelerator.scaler:
        accelerator.scaler.load_state_dict(saved["scaler"])
    rank, streams = accelerator.process_index, saved["random"]
    if rank < max(1, len(streams)):  # the first must have one
        set_random_state(streams[rank], accelerator.device)
    else:  # there were fewer processes: a stream that none of them has drawn from
        set_seed(saved["config"]["seed"] + saved["progress"]["step"], device_specific=True)


def _share(whole: Any, like: Any) -> Any:
    """This process's share of a tensor that is shared out; anything else as it is."""
    if not is_shared_out(like) or whole.shape != like.shape:  # such as the count of steps
        return whole
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = like.device_mesh, like.placements
    return distribute_tensor(whole.to(like.device), mesh, placements, src_data_rank=None)
