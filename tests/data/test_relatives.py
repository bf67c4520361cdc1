"""The relatives of the built-in network: their attributes are those of their numbers, and their file is faithful."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from data.scenes.relatives import outputs
from data.scenes.relatives.example import build, read_card
from data.scenes.relatives.networks import ATTRIBUTES, SIDE, build_relative, shrink, train_relative
from data.scenes.relatives.train import EXAMPLE, describe_accuracy, draw_values, number_values

FIRST = {name: values[0] for name, values in ATTRIBUTES.items()}
LAST = {name: values[-1] for name, values in ATTRIBUTES.items()}


def test_the_stored_attributes_are_those_that_the_numbers_draw() -> None:
    """Catches a file that was made by other attributes, or in another order, than the script now draws."""
    known = outputs.load()
    drawn = [number_values(draw_values(torch.Generator().manual_seed(k))) for k in range(len(known.values))]
    assert known.values.tolist() == drawn
    assert dict(draw_values(torch.Generator().manual_seed(EXAMPLE))) == read_card()["example"]
    assert list(known.attributes) == list(ATTRIBUTES)
    for a, names in enumerate(ATTRIBUTES.values()):
        assert set(known.values[:, a]) == set(range(len(names)))


def test_the_stored_accuracy_is_that_of_the_card() -> None:
    """Catches predictions of other images, and a card of another training."""
    right = outputs.load().most == outputs.list_query_labels()
    card = read_card()["accuracy"]
    assert {"standard": describe_accuracy(right[:, :50]), "adversarial": describe_accuracy(right[:, 50:])} == card


def test_what_is_stored_is_loaded_again(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches log probabilities that are rounded by more than half a step, and extremes taken after cutting off."""
    monkeypatch.setattr(outputs, "FILE", tmp_path / "outputs.npz")
    log_p = 3 * np.random.default_rng(0).normal(size=(3, 4, 16)).astype(np.float32) - 6
    log_p[0, 0, :3] = -40, -50, -30
    outputs.store(np.ones((3, 11), dtype=np.int64), log_p)
    known = outputs.load()
    assert np.abs(known.log_p - log_p.clip(outputs.FLOOR, 0)).max() <= 0.5 * 12 / 255 + 1e-5
    assert (known.most.tolist(), known.least.tolist()) == (log_p.argmax(2).tolist(), log_p.argmin(2).tolist())
    assert known.least[0, 0] == 1


@pytest.mark.parametrize("values", [FIRST, LAST])
def test_a_relative_is_built_by_its_attributes(values: dict[str, str]) -> None:
    """Catches an attribute that changes nothing in the network."""
    parts = list(build_relative(values))
    convolutions = [part for part in parts if isinstance(part, nn.Conv2d)]
    assert len(convolutions) == int(values["layers"])
    for part in convolutions:
        strided = values["pooling"] == "stride"
        assert part.out_channels == int(values["width"])
        assert part.kernel_size == (int(values["kernel"]),) * 2
        assert part.stride == ((2, 2) if strided else (1, 1))
    kinds = {type(part) for part in parts}
    assert (nn.BatchNorm2d in kinds, nn.Dropout in kinds) == (values["batch norm"] == "yes", values["dropout"] == "yes")
    assert (nn.MaxPool2d in kinds, nn.AvgPool2d in kinds) == (values["pooling"] == "max", values["pooling"] == "mean")
    assert {"relu": nn.ReLU, "elu": nn.ELU, "tanh": nn.Tanh}[values["activation"]] in kinds
    assert build_relative(values)(torch.zeros(2, 3, SIDE, SIDE)).shape == (2, 16)


def test_training_depends_on_its_generator_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a draw from the process's own generator, and weights that are not trained."""
    monkeypatch.setattr("data.scenes.relatives.networks.STEPS", 3)
    inputs, labels = shrink(torch.arange(20 * 3 * 96 * 96).view(20, 3, 96, 96).byte()), torch.arange(20) % 16
    state = torch.get_rng_state()
    values = {**LAST, "dropout": "yes"}
    one, two, other = (
        train_relative(values, inputs, labels, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, one.state_dict().values(), two.state_dict().values()))
    assert not torch.equal(one[0].weight, other[0].weight)


def test_the_example_is_a_relative_that_reads_scenes() -> None:
    """Catches weights of another network: its accuracy on the standard scenes would be near chance, 6%."""
    inputs = shrink(
        torch.stack([torch.from_numpy(np.array(outputs.open_query(k))).permute(2, 0, 1) for k in range(50)])
    )
    right = build()(inputs).argmax(1) == torch.tensor(outputs.list_query_labels()[:50])
    assert right.float().mean() > 0.4
