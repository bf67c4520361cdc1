"""Predictions with fewer digits: what changes, what does not, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution import METHODS
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import CPU, chunk_size, exact_arithmetic
from core.network.precision import TOLERANCE, lower_precision
from core.sources import load
from tests.core.networks import awkward, pictures, unit

FILE = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))
"""


def test_predictions_are_autocasts_and_gradients_are_float32() -> None:
    """Catches a setting that is read and not used, and one that reaches the gradients. Expected: PyTorch's autocast."""
    exact, short = awkward(), awkward()
    lower_precision(short, ["bfloat16"])
    images = pictures(5)
    with exact.exclusive() as module, torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        expected = module(images.clone()).float()
    found = short.logits(images)
    assert found.dtype == torch.float32
    assert not torch.equal(found, exact.logits(images))
    torch.testing.assert_close(found, expected, rtol=0, atol=0.01 * float(expected.abs().max()))
    torch.testing.assert_close(found, exact.logits(images), rtol=0, atol=TOLERANCE * float(expected.abs().max()))
    maps = [METHODS["gradient"](classifier, images, [0] * 5).map for classifier in (exact, short)]
    assert torch.equal(*maps)


def test_a_precision_is_another_network_for_every_cache(tmp_path) -> None:
    """Catches predictions of one precision found in the cache of another: all caches go by the fingerprint."""
    (tmp_path / "net.py").write_text(FILE)
    exact = load("net.py:build", base=tmp_path)
    short = load("net.py:build?precision=bfloat16", base=tmp_path)
    assert exact.fingerprint != short.fingerprint
    assert short.name == "net (bfloat16)"
    covered = METHODS["occlusion"](short, torch.zeros(1, 3, 224, 224), [0], window=112)
    assert covered.certificates[0].fingerprint == short.fingerprint


def test_logits_that_change_too_much_are_refused() -> None:
    """A difference of two large numbers, which bfloat16 has not the digits for."""

    class Fragile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.large = nn.Linear(1, 2)
            self.large.weight.data = torch.tensor([[1000.0], [1000.5]])
            self.large.bias.data.zero_()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = self.large(x.mean((1, 2, 3))[:, None] + 1)
            return z - z.mean(1, keepdim=True)

    with pytest.raises(ForetellError, match=r"In bfloat16, logits of fragile change by .*% of their range; at most 2%"):
        lower_precision(Classifier(Fragile(), unit, name="fragile"), ["bfloat16"])


def test_an_unknown_precision_is_one_sentence(tmp_path) -> None:
    (tmp_path / "net.py").write_text(FILE)
    with pytest.raises(ForetellError, match=r"precision=int8 is unknown\. Use bfloat16 or float16"):
        load("net.py:build?precision=int8", base=tmp_path)


def test_a_pass_takes_what_the_device_has_room_for(monkeypatch) -> None:
    """Catches a GPU that is given a CPU's six photographs at a time. Expected: an eighth of its memory, by hand."""
    example = torch.zeros(3, 224, 224)
    assert chunk_size(example) == chunk_size(example, CPU) == 256 * 2**20 // (3 * 224 * 224 * 4 * 64)
    memory = type("Properties", (), {"total_memory": 8 * 2**30})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: memory)
    assert chunk_size(example, torch.device("cuda")) == 2**30 // (3 * 224 * 224 * 4 * 64)


def test_threads_share_the_switch_of_exact_arithmetic() -> None:
    """Catches the second of two overlapping uses leaving the switch off, or the first one's end turning it on."""
    gpu, switch = torch.device("cuda"), torch.backends.cudnn
    before = switch.allow_tf32
    switch.allow_tf32 = True
    try:
        first, second = exact_arithmetic(gpu), exact_arithmetic(gpu)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not switch.allow_tf32
        second.__exit__(None, None, None)
        assert switch.allow_tf32
    finally:
        switch.allow_tf32 = before
