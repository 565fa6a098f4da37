"""The device that counts waits does count them, and refuses to mix devices."""

import pytest
import torch

from tests.pretend_device import DEVICE, MixedDevices, pretend_device


@pytest.mark.parametrize(
    "action, waits",
    [
        (lambda x: (x @ x).relu_().sum(), 0),
        (lambda x: x[torch.arange(2).to(DEVICE, non_blocking=True)], 0),
        (lambda x: x.sum().item(), 1),
        (lambda x: bool((x > 0).any()), 1),
        (lambda x: x.tolist(), 1),
        (lambda x: x.cpu(), 1),
        (lambda x: (x > 0).nonzero(), 1),
        (lambda x: x[x > 0], 1),
        (lambda x: torch.tensor([1.0], device=DEVICE), 1),
        (lambda x: torch.ones(2).to(DEVICE), 1),
        (lambda x: torch.ones(3, 3).copy_(x, non_blocking=True), 1),
        (lambda x: torch.empty_like(x, device="cpu", pin_memory=True).copy_(x), 1),
        (lambda x: torch.empty_like(x, device="cpu", pin_memory=True).copy_(x, True), 0),
    ],
)
def test_waits_are_counted(action, waits):
    with pretend_device() as device:
        x = torch.randn(3, 3, device=DEVICE)
        device.waits.clear()
        action(x)
    assert device.waits.total() == waits


def test_devices_do_not_mix():
    with pretend_device():
        x = torch.ones(3, device=DEVICE)
        with pytest.raises(MixedDevices):
            x + torch.ones(3)
        assert ((x + 1) * torch.tensor(2.0)).tolist() == [4.0] * 3  # a number may come along
