"""Save and load models, in a folder or on the Hugging Face Hub, without pickles."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar, Unpack, cast, get_type_hints

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.saving.files import (
    CHECKSUM,
    checksum,
    read_weight_file,
    require_unchanged,
    write_atomically,
    write_json,
    write_manifest,
)
from transformer.saving.locate import (
    CARD,
    CONFIG,
    FILES,
    TOKENIZER_FILES,
    WEIGHTS,
    HubOptions,
    Location,
    locate,
    require_known,
)
from transformer.settings import require_fields

Model = TypeVar("Model", bound="HubModel")

_TOKENIZER = "tokenizer_checksum"
# Classes by architecture. Each enters itself when its module is imported.
_CLASSES: dict[str, type["HubModel"]] = {}
# The library's own models, imported only when one is loaded: they import this module.
_OWN = ("transformer.model.transformer", "transformer.baselines")


class HubModel:
    """Mixin that adds ``save_pretrained`` and ``from_pretrained`` to a model.

    Weights are stored as safetensors, the configuration as JSON, and their checksums beside them.
    Loading raises on missing, unexpected or damaged weights, never unpickles, and refuses a
    configuration that is damaged, has unknown fields or is larger than the weights before it
    allocates memory.
    """

    config: Any
    #: Name in ``config.json``, by which ``Translator.from_pretrained`` finds the class; None for a
    #: model that only its own ``from_pretrained`` loads.
    architecture: ClassVar[str | None] = None
    tokenizer_checksum: str | None = None

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        if name := vars(cls).get("architecture"):
            _CLASSES[name] = cls

    @classmethod
    def from_pretrained(
        cls: type[Model],
        name_or_path: str | Path,
        *,
        device: torch.device | str | None = None,
        **options: Unpack[HubOptions],
    ) -> Model:
        """Load a trained model in evaluation mode.

        Args:
            name_or_path: a shipped name, a folder of a model or of a training run, a weight file,
                or a Hub id "owner/name"; see :func:`~transformer.saving.locate.locate`.
            device: where to put it; None for the CPU.
            options: of a download, see :class:`~transformer.saving.locate.HubOptions`.

        Raises:
            FileNotFoundError: if there is no such model, or the Hub cannot be reached.
            ValueError: if a file is damaged, a field of the configuration is unknown, or the
                weights do not fit the configuration.
            TypeError: if an option is unknown.
            RuntimeError: if there is no such device, or the model does not fit on it.
        """
        require_known(options, "device")
        return cls.load(locate(name_or_path, **options), device)

    @classmethod
    def load(
        cls: type[Model], location: Location, device: torch.device | str | None = None
    ) -> Model:
        """Load a model from where :func:`~transformer.saving.locate.locate` found it.

        The errors are those of :meth:`from_pretrained`.
        """
        config = cls.load_config(location)
        if not location.weights.is_file():
            raise FileNotFoundError(f"no weights at {location.weights}")
        weights, make = read_weight_file(location.weights), cast(Any, cls)
        try:
            _require_fitting(config, weights)
            # The random numbers go on as if no weights had been drawn.
            with torch.random.fork_rng(devices=[]), _NoInitialWeights():
                model = make(config)
            model.load_state_dict(weights)
        except (RuntimeError, TypeError, KeyError, OverflowError, SafetensorError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"the weights in {location.name!r} do not fit its configuration: {reason}"
            ) from None
        model.tokenizer_checksum = location.settings().get(_TOKENIZER)
        return (model if device is None else model.to(device)).eval()

    @classmethod
    def load_config(cls, location: Location) -> Any:
        """Load the configuration of a model of this class.

        Raises:
            ValueError: if it is damaged, a field is unknown, or it is of another architecture.
            TypeError: if the class does not name the dataclass of its configuration.
        """
        require_unchanged(location.folder, CONFIG)
        settings = location.settings()
        architecture = settings.pop("architecture", cls.architecture)
        settings.pop(_TOKENIZER, None)
        if architecture != cls.architecture:
            raise ValueError(
                f"{location.name!r} is a {architecture} model, which {cls.__name__} does not load; "
                "use Translator.from_pretrained"
            )
        kind = _config_class(cls)
        try:
            require_fields(kind, settings)
            return kind(**settings)
        except (TypeError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ValueError(f"{CONFIG} of {location.name!r} is not valid: {reason}") from None

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write configuration, weights and their checksums to a folder, and return it.

        To store a tokenizer too, call ``Translator.save_pretrained``.

        Args:
            folder: made if it does not exist; files in it are replaced.

        Raises:
            OSError: if a file cannot be written; existing files stay.
            TypeError: if the class does not name the dataclass of its configuration.
        """
        return write_folder(folder, self)


def load_model(location: Location) -> Any:
    """Load a model as the class of the architecture that its configuration names.

    Raises:
        ValueError: if no class has that architecture, or as ``from_pretrained`` of the class.
    """
    name = str(location.settings().get("architecture", "transformer"))
    if name not in _CLASSES:
        for module in _OWN:
            import_module(module)
    if name not in _CLASSES:
        raise ValueError(
            f"{CONFIG} of {location.name!r} has the unknown architecture {name!r}; known: "
            f"{', '.join(_CLASSES)}. Import the module of your own class before you load its model"
        )
    return _CLASSES[name].load(location)


def write_folder(
    folder: str | Path,
    model: HubModel,
    write_tokenizers: Callable[[Path], list[str]] | None = None,
    card: str | None = None,
    half: bool = False,
) -> Path:
    """Write a trained model, all of its files or none, and return the folder.

    Args:
        folder: made if it does not exist; files in it are replaced.
        model: the model.
        write_tokenizers: writes the tokenizers' files to a folder and returns their names.
        card: text of the model card; None keeps the folder's card.
        half: store the weights as float16, half the size.

    Raises:
        OSError: if a file cannot be written; existing files stay.
        TypeError: if the model's class does not name the dataclass of its configuration.
        ValueError: if a weight is too large for float16.
    """
    folder = Path(folder)
    assert isinstance(model, nn.Module)
    _config_class(type(model))  # what is written must load
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(".saving-*"):  # of a program that was killed
        shutil.rmtree(old, ignore_errors=True)
    # All files are written before the first is moved into place: a full disk changes nothing.
    with TemporaryDirectory(dir=folder, prefix=".saving-") as temporary:
        unfinished = Path(temporary)
        write_config(unfinished, model)
        weights = model.state_dict()
        if half:
            weights = {name: _halved(name, weight) for name, weight in weights.items()}
        write_weights(unfinished / WEIGHTS, weights)
        names = write_tokenizers(unfinished) if write_tokenizers else []
        if card is not None:
            (unfinished / CARD).write_text(card, encoding="utf-8")
        write_manifest(unfinished, CONFIG, WEIGHTS, *names)
        # If the program is killed between two files, the checksums reveal it.
        for file in sorted(unfinished.iterdir()):
            write_atomically(folder / file.name, file.rename)
        if names:  # files of another kind of tokenizer would be found first
            for name in {*TOKENIZER_FILES} - {*names}:
                (folder / name).unlink(missing_ok=True)
    return folder


def _halved(name: str, weight: Tensor) -> Tensor:
    half = weight.half()
    if not torch.equal(half.isfinite(), weight.isfinite()):
        largest = weight[weight.isfinite()].abs().max().item()
        raise ValueError(
            f"half=True needs weights of at most 65,504, the largest float16; {name} has one of "
            f"{largest:.3g}"
        )
    return half


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights atomically as safetensors, with a checksum in the header."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    # One entry only: the library writes several in random order, so files would differ.
    metadata = {CHECKSUM: checksum(contiguous)}
    write_atomically(path, lambda p: save_file(contiguous, p, metadata=metadata))


def write_config(folder: Path, model: HubModel) -> None:
    """Write ``config.json`` of a model atomically."""
    named = {"architecture": model.architecture, _TOKENIZER: model.tokenizer_checksum}
    named = {name: value for name, value in named.items() if value is not None}
    write_json(folder / CONFIG, dict(sorted((named | model.config.to_dict()).items())))


def upload(
    repo_id: str,
    write: Callable[[Path], object],
    private: bool | None,
    token: str | None,
    revision: str | None,
    commit_message: str | None,
) -> str:
    """Upload what ``write`` puts into a folder to the Hub, in one commit; return the address.

    Arguments and errors are those of ``Translator.push_to_hub``.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    api = HfApi(token=token)
    with TemporaryDirectory() as temporary:
        write(Path(temporary))
        try:
            repository = api.create_repo(repo_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repository.repo_id, branch=revision, exist_ok=True)
            api.upload_folder(
                repo_id=repository.repo_id,
                folder_path=temporary,
                allow_patterns=list(FILES),
                # Files of another kind of tokenizer; those in the folder are not deleted.
                delete_patterns=list(TOKENIZER_FILES),
                revision=revision,
                commit_message=commit_message or "Upload model",
            )
        except HFValidationError as error:
            raise ValueError(f"repo_id must be 'owner/name', got {repo_id!r}: {error}") from None
        except Exception as error:  # errors of the Hub and the network share no base class
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise OSError(
                f"cannot upload to {repo_id!r} on the Hugging Face Hub: {reason}"
            ) from error
    return str(repository)


def _config_class(cls: type[HubModel]) -> Any:
    """Return the dataclass that ``__init__`` names as the type of ``config``."""
    try:
        kind = get_type_hints(cls.__init__).get("config")
    except NameError:  # a name that is imported only for the type checker
        kind = None
    if not is_dataclass(kind):
        raise TypeError(
            f"{cls.__name__}.__init__ must name the dataclass of its configuration, as in "
            "(self, config: MyConfig), so that the model can be loaded"
        )
    return kind


def _require_fitting(config: Any, weights: Mapping[str, Tensor]) -> None:
    """Raise RuntimeError if a size in a configuration is beyond what the weights can fill."""
    stored = sum(tensor.numel() for tensor in weights.values())
    for field in fields(config):
        value = getattr(config, field.name)
        most = len(weights) if field.name.endswith("layers") else stored
        free = field.name == "max_length" and getattr(config, "positions", "learned") != "learned"
        if type(value) is int and value > most and not free:
            raise RuntimeError(f"{field.name} is {value}, larger than the weight file allows")


class _NoInitialWeights(TorchFunctionMode):
    """Allocate parameters and leave them as they are; in this thread only."""

    _FILLS = (Tensor.normal_, Tensor.uniform_, Tensor.fill_, Tensor.zero_)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        target = args[0] if args else kwargs.get("tensor")
        fills = func in self._FILLS or getattr(func, "__module__", None) == "torch.nn.init"
        return target if fills and isinstance(target, nn.Parameter) else func(*args, **kwargs)
