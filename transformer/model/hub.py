"""Saving to and loading from a folder or the Hugging Face Hub, without pickles.

Paper: not in the paper
"""

from typing import Any

from huggingface_hub import PyTorchModelHubMixin
from safetensors import SafetensorError


class HubModel(
    PyTorchModelHubMixin,
    library_name="transformer-book",
    repo_url="https://github.com/transformer-book/transformer-book",
    tags=["translation"],
):
    """Gives a model ``save_pretrained``, ``from_pretrained`` and ``push_to_hub``.

    They come from the Hub's mixin: weights as safetensors, configuration as JSON. Its defaults are
    made strict here: weights that are missing or left over are an error, and so is a pickle.

    Paper: not in the paper
    """

    @classmethod
    def _from_pretrained(cls, *, strict: bool = True, **options: Any) -> Any:
        # The mixin's own default lets missing and unknown weights pass in silence.
        try:
            return super()._from_pretrained(strict=strict, **options)
        except (RuntimeError, KeyError, SafetensorError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"the weights in {options.get('model_id')!r} do not fit its configuration: {reason}"
            ) from None

    @classmethod
    def _load_as_pickle(cls, *_: Any) -> Any:
        # Where there are no safetensors, the mixin's own default opens a pickle.
        raise ValueError("no model.safetensors found; weights in a pickle are not read")
