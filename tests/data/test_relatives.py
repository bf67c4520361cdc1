"""The relatives of the built-in network: their attributes are those of their numbers, and their file is faithful."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from core.training.metamodel import OUTPUTS, encode_outputs
from data.scenes.classifier import normalise
from data.scenes.generator import USUAL_SHARE
from data.scenes.relatives import crafted, outputs
from data.scenes.relatives.example import build, read_card
from data.scenes.relatives.networks import ATTRIBUTES, SIDE, build_relative, shrink, train_relative, transforms
from data.scenes.relatives.train import (
    EXAMPLE,
    describe_accuracy,
    draw_values,
    number_values,
    read_networks,
    save_networks,
    train_numbered,
)
from data.scenes.splits import label_of
from data.scenes.zoo.material import draw_scene

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
    right = outputs.load().order[..., 0] == outputs.list_query_labels()
    card = read_card()["accuracy"]
    assert {"standard": describe_accuracy(right[:, :50]), "adversarial": describe_accuracy(right[:, 50:])} == card


def test_what_is_stored_is_loaded_again(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches log probabilities that are rounded by more than half a step, and an order taken after cutting off."""
    monkeypatch.setattr(outputs, "FILE", tmp_path / "outputs.npz")
    log_p = 3 * np.random.default_rng(0).normal(size=(3, 4, 16)).astype(np.float32) - 6
    log_p[0, 0, :3] = -40, -50, -30
    outputs.store(np.ones((3, 11), dtype=np.int64), log_p)
    known = outputs.load()
    assert np.abs(known.log_p - log_p.clip(outputs.FLOOR, 0)).max() <= 0.5 * 12 / 255 + 1e-5
    assert np.array_equal(known.order, log_p.argsort(2)[..., ::-1])
    assert known.order[0, 0, -3:].tolist() == [2, 0, 1]


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


def test_crafted_images_are_loaded_again_as_relatives_read_them(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches an enlarged image that is not shrunk to its own pixels again, and outputs or parts that are exchanged."""
    monkeypatch.setattr(crafted, "FILE", tmp_path / "crafted.npz")
    draws = np.random.default_rng(1)
    images = {name: draws.integers(0, 256, (5, 2, SIDE, SIDE, 3), dtype=np.uint8) for name in OUTPUTS}
    single = draws.integers(0, 256, (11, SIDE, SIDE, 3), dtype=np.uint8)
    log_p = draws.uniform(-14, 0, (5, 3, 2, 16)).astype(np.float32)
    predicted = draws.integers(0, 16, (3, 11), dtype=np.uint8)
    for k, name in enumerate(OUTPUTS):
        crafted.store_several(name, images[name], log_p - k)
    crafted.store_single(single, predicted)
    sets, one = crafted.load_crafted(), crafted.load_single()
    assert np.abs(sets["prob"].outputs - log_p.clip(-12)).max() <= 0.5 * 12 / 255 + 1e-5
    tensor = torch.from_numpy(log_p)
    for name in OUTPUTS[1:]:
        expected = encode_outputs(tensor, tensor.argsort(3, descending=True), name).view(log_p.shape)
        torch.testing.assert_close(torch.from_numpy(sets[name].outputs), expected)
    assert np.array_equal(one.predicted, predicted)
    for opened, own in ((sets["prob"].open(7), images["prob"][3, 1]), (sets["top-1"].open(2), images["top-1"][1, 0]),
                        (one.open(10), single[10])):  # fmt: skip
        read = normalise(torch.from_numpy(own).permute(2, 0, 1)[None])[0]
        torch.testing.assert_close(transforms(opened), read, rtol=1e-4, atol=1e-4)


def test_relatives_are_saved_for_crafting_by_their_numbers(tmp_path) -> None:
    """Catches weights that go to another relative: more than ten, so that the order of texts is not that of numbers."""
    networks = [build_relative(draw_values(torch.Generator().manual_seed(k))).eval() for k in range(12)]
    save_networks(networks, tmp_path / "relatives.safetensors")
    x = torch.rand(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    for one, two in zip(networks, read_networks(tmp_path / "relatives.safetensors"), strict=True):
        assert torch.equal(one(x), two(x))
        assert not any(weight.requires_grad for weight in two.parameters())


def test_a_relative_that_is_trained_again_predicts_what_is_stored() -> None:
    """Catches stored predictions of other networks or images, and in another order of relatives, parts or images.

    Number 369 has one layer, a smooth activation and 600 images, so that it is trained in a second and the different
    order of sums on another machine changes little: half of the log probabilities are the same to within 0.1.
    """
    scenes = [draw_scene("training", 0, USUAL_SHARE, i).image for i in range(600)]
    labels = torch.tensor([label_of(i) for i in range(600)])
    network, values = train_numbered(369, {"usual": _read(scenes)}, labels)
    assert (values["images"], values["contexts"]) == ("600", "usual")
    known = outputs.load()
    own = known.crafted["prob"]
    folds, _, each, _ = own.outputs.shape
    found = network(_read([known.open(k) for k in range(100)])).log_softmax(1).clamp(min=known.floor)
    assert np.median(np.abs(found.numpy() - known.log_p[369])) < 0.1
    found = network(_read([own.open(k) for k in range(folds * each)])).log_softmax(1).clamp(min=known.floor)
    assert np.median(np.abs(found.numpy() - own.outputs[:, 369].reshape(-1, 16))) < 0.1
    for output in OUTPUTS[1:]:
        asked = known.crafted[output]
        log_p = network(_read([asked.open(k) for k in range(folds * each)])).log_softmax(1)
        expected = encode_outputs(log_p, log_p.argsort(1, descending=True), output).view(folds * each, 16).numpy()
        stored = asked.outputs[:, 369].reshape(-1, 16)
        assert np.mean(expected == stored) > (0.8 if output == "ranking" else 0.98), output


def _read(images: list[Image.Image]) -> torch.Tensor:
    return torch.stack([transforms(image) for image in images])
