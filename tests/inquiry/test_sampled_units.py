"""Units of a deep belief network as files: what was planted is drawn, and what cannot be sampled is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from core.errors import ForetellError
from core.units.deep_belief import ClampedSamples, Machine, sample_clamped, sample_unit
from core.units.unit import Unit
from dashboard.cli.units import units
from inquiry.units import sampled_units as module
from inquiry.units.sampled_units import SampledQuery, sampled_files, warn
from study.network.sources import open_classifier

NETWORK = '''
import numpy as np
import torch

CATEGORIES = ["one", "other"]

class Planted(torch.nn.Module):
    """Two machines. Unit 0 of the upper one means unit 0 of the lower one, and that means red; unit 1 means blue."""

    def __init__(self):
        super().__init__()
        self.lower, self.upper = torch.nn.Linear(48, 2), torch.nn.Linear(2, 2)
        with torch.no_grad():
            self.lower.weight.zero_()
            self.lower.weight[0, :16] = 4.0
            self.lower.weight[1, 32:] = 4.0
            self.upper.weight.copy_(torch.tensor([[8.0, 0.0], [0.0, 8.0]]))
            self.lower.bias.fill_(-32.0)
            self.upper.bias.fill_(-4.0)

    def forward(self, x):
        return self.read(torch.sigmoid(self.upper(torch.sigmoid(self.lower(x.flatten(1))))))

    def read(self, h):
        return h - 0.5

    def list_machines(self):
        down = {"lower": -2 * torch.ones(48), "upper": -4 * torch.ones(2)}
        return {name: (part.weight, down[name], part.bias) for name, part in self.named_children()}

    def draw(self, visible):
        return visible.view(-1, 3, 4, 4)

def build():
    return Planted().eval().requires_grad_(False)

def transforms(image):
    return torch.from_numpy(np.array(image.resize((4, 4)))).permute(2, 0, 1).float() / 255
'''


def test_the_files_show_what_the_unit_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: unit 0 of the upper layer draws red images, whose values have a closed form, and nothing else.

    The lower unit is 1 with probability sigmoid(-4 + 8) = .982; red is then sigmoid(-2 + 4) and else sigmoid(-2).
    Catches the unit of another layer, images of the samples in place of the mean, and an activation of other images.
    """
    (tmp_path / "network.py").write_text(NETWORK, encoding="utf-8")
    monkeypatch.setattr(module, "sample_unit", partial(module.sample_unit, burn_in=30, apart=4))
    query = SampledQuery(f"{tmp_path / 'network.py'}:build", "upper:0", starts=2, steps=4)
    written = sampled_files(query, tmp_path / "out")
    assert [file.name for file in written.files] == [f"network.upper-channel-0.sampled.{end}" for end in ("png", "npz", "json")]  # fmt: skip  # noqa: E501
    arrays, facts = np.load(written.files[1]), json.loads(written.files[2].read_text())
    on, off = (1 / (1 + np.exp(-x)) for x in (2.0, -2.0))
    share = 1 / (1 + np.exp(-4.0))
    red = arrays["mean"][:16]
    assert np.abs(red - (share * on + (1 - share) * off)).max() < 4 * arrays["error"][:16].max() + 1e-9
    assert np.abs(arrays["mean"][16:32] - off).max() < 1e-6
    np.testing.assert_allclose(arrays["drawn"][0].ravel(), arrays["mean"], atol=1e-6)
    assert facts["largest_error"] == pytest.approx(arrays["error"].max(), abs=1e-6)
    assert facts["activation_of_the_mean"] == pytest.approx(float(arrays["activations"][0]), abs=1e-6)
    assert len(facts["activation_maximised"]) == 2
    assert facts["warnings"] == list(written.warnings)
    sheet = np.asarray(Image.open(written.files[0]).convert("RGB"), dtype=int)
    x, y = 16 + module.SIDE // 2, sheet.shape[0] - 2 * module.SIDE  # in the mean's tile
    first = sheet[y - 60 : y - 20, x - 20 : x + 20].reshape(-1, 3).mean(0)
    assert first[0] > first[1] + 100


def test_normal_visible_units_are_read_from_the_network(tmp_path: Path) -> None:
    """Expected: samples of the network's machines with its deviation, given by hand.

    Catches the lowest layer of scenes:belief taken to be binary, and the deviation given to the upper machine.
    """
    from data.scenes.zoo.belief import DEVIATION, build

    few = {"burn_in": 20, "apart": 2}
    network, machines = open_classifier("scenes:belief", tmp_path), build().list_machines()
    own = [Machine(*machines["first"], deviation=DEVIATION), Machine(*machines["second"])]
    for k, layer in enumerate(machines):
        generators = [torch.Generator().manual_seed(5) for _ in range(2)]
        chain, inputs = sample_unit(network, Unit(3, layer), generator=generators[0], **few)
        expected = sample_clamped(own[: k + 1], 3, generator=generators[1], **few)
        torch.testing.assert_close(chain.mean, expected.mean)
        assert float(chain.mean.min()) < 0
        assert inputs.shape == (65, 3, 96, 96)


def test_chains_that_have_not_mixed_are_said() -> None:
    samples = ClampedSamples(torch.zeros(1), torch.zeros(1), torch.zeros(1, 1), 1.1)
    assert warn(samples) == ()
    (said,) = warn(ClampedSamples(samples.mean, samples.error, samples.chains, 1.34))
    assert "ratio 1.34, 1.2 at most" in said


@pytest.mark.parametrize(
    ("model", "unit", "sentence"),
    [
        ("scenes", "features.3.0:1", "scenes is no deep belief network"),
        (
            "bars:belief",
            "third:1",
            "none of its hidden layers first, second: give one of their units, such as second:0",
        ),
        ("bars:belief", "second:99", "has units 0 to 23, not 99"),
        ("bars:belief", "second", "is not of the form"),
    ],
)
def test_wrong_input_is_one_sentence(model: str, unit: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ForetellError, match=sentence):
        sampled_files(SampledQuery(model, unit), tmp_path)


def test_the_command_refuses_what_sampling_does_not_read(tmp_path: Path) -> None:
    """Catches a class or a folder of images that is silently ignored."""
    with pytest.raises(ForetellError, match="give --unit LAYER:CHANNEL, no --class, no --images"):
        units("bars:belief", category="horizontal", how="sampled", out=tmp_path / "out")
    with pytest.raises(ForetellError, match="give --unit LAYER:CHANNEL, no --class, no --images"):
        units("bars:belief", unit="second:0", images="scenes", how="sampled", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
