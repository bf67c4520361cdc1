from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from core.errors import ForetellError
from core.sources import load
from core.sources.outputs import find_logits, mean_colour

OWN = """
import torch
from torch import nn
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.last = nn.Linear(4, 3)
    def forward(self, x):
        maps, z = self.body[:2](x), self.last(self.body(x))
        return {output}
def build():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Network()
"""
OUTPUTS = ("z", "{'maps': maps, 'logits': z}", "(maps, z)", "[z, z + 1]", "{'maps': maps, 'out': z}")


@pytest.fixture
def build(tmp_path):
    def make(output):
        (tmp_path / "own.py").write_text(OWN.replace("{output}", output))
        return load("own.py:build", base=tmp_path)

    return make


@pytest.mark.parametrize("output", OUTPUTS[1:])
def test_the_logits_of_any_output_are_those_of_the_plain_network(build, output):
    """A dictionary or a tuple that is refused, or of which the wrong part is taken. Oracle: the same network, plain."""
    wrapped, plain = build(output), build("z")
    inputs = torch.rand((2, 3, 224, 224), generator=torch.Generator().manual_seed(0))
    assert torch.equal(wrapped.logits(inputs), plain.logits(inputs))
    assert torch.equal(wrapped.head, plain.head)


def test_a_network_that_returns_a_tensor_is_not_wrapped(build):
    """Stored predictions and studies of networks that were loaded before: their fingerprint and layers must stay."""
    with build("z").exclusive() as module:
        assert type(module).__name__ == "Network"


def test_an_output_without_logits_is_refused_in_words(build):
    with pytest.raises(ForetellError, match=r"own returned dict; wrap it so that it returns one tensor of logits"):
        build("{'maps': maps}")


def test_probabilities_are_told_from_logits(build):
    """A softmax within a dictionary, which Foretell would apply again."""
    with pytest.raises(ForetellError, match="own returns probabilities"):
        build("{'logits': z.softmax(1)}")


def test_which_part_of_an_output_are_the_logits():
    """By hand: ``logits`` before anything else, else the first table."""
    z, maps = torch.zeros(2, 3), torch.zeros(2, 4, 5, 5)
    for output in (z, {"maps": maps, "logits": z}, OrderedDict(out=z), (maps, z), SimpleNamespace(logits=z)):
        assert find_logits(output) is z
    assert find_logits({"maps": maps}) is None
    assert find_logits("text") is None
    assert not isinstance(nn.Identity(), torch.Tensor)


def test_mean_colours():
    """By hand: one value for all channels, or one for each."""
    assert mean_colour((0.5, 0.2, 1.0)) == (128, 51, 255)
    assert mean_colour([0.5]) == mean_colour(0.5) == (128, 128, 128)
