"""What every model shares: switching between training and evaluation."""

from contextlib import ExitStack

from tests.model.small import make_model
from transformer.model.base import evaluation_mode


def test_evaluation_lasts_until_the_last_of_overlapping_blocks_ends():
    """As blocks of several threads do, here with one of them for a part of the model."""
    model = make_model().train()
    model.encoder[0].eval()
    before = [module.training for module in model.modules()]
    blocks = [ExitStack() for _ in range(3)]
    for block, part in zip(blocks, (model, model, model.decoder), strict=True):
        block.enter_context(evaluation_mode(part))
    blocks[0].close()
    assert not any(module.training for module in model.modules())
    blocks[1].close()
    assert not any(module.training for module in model.decoder.modules()) and model.training
    blocks[2].close()
    assert [module.training for module in model.modules()] == before
