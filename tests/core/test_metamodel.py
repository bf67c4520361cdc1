"""Metamodels: planted attributes are read, shuffled ones are not, and a network is compared with others fairly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.training.metamodel import (
    Metamodels,
    MetamodelSettings,
    _fit_temperature,
    encode_outputs,
    measure_likeness,
    train_metamodels,
)

NETWORKS, IMAGES, CLASSES = 150, 6, 4
COUNTS = (3, 2)


def draw(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw_world(noise: float = 0.1) -> tuple[Tensor, Tensor]:
    """Attributes (R, 2) at random, and logits to which each value adds its own vector; log probabilities of these."""
    generator = draw(1)
    values = torch.stack([torch.randint(count, (NETWORKS,), generator=generator) for count in COUNTS], 1)
    added = [torch.randn(count, IMAGES, CLASSES, generator=generator) for count in COUNTS]
    logits = sum(vectors[values[:, a]] for a, vectors in enumerate(added))
    return values, (logits + noise * torch.randn(NETWORKS, IMAGES, CLASSES, generator=generator)).log_softmax(2)


def train(features: Tensor, values: Tensor, **settings: int) -> Metamodels:
    return train_metamodels(features, values, COUNTS, MetamodelSettings(**settings), generator=draw(2))


def list_accuracies(found: Metamodels, values: Tensor) -> list[float]:
    return [float((own.argmax(1) == values[:, a]).float().mean()) for a, own in enumerate(found.held_out)]


def test_attributes_that_the_outputs_disclose_are_all_read() -> None:
    """A world in which every attribute is exactly readable. Catches an output layer that belongs to another attribute,

    and held-out predictions that belong to other networks.
    """
    values, log_p = draw_world()
    found = train(log_p.flatten(1), values, hidden=32, epochs=40)
    assert list_accuracies(found, values) == [1.0, 1.0]
    one = found.predict(log_p[7].flatten())
    assert [int(own.argmax()) for own in one] == values[7].tolist()
    assert [float(own.sum()) for own in one] == pytest.approx([1, 1])


def test_shuffled_attributes_are_read_at_chance() -> None:
    """Catches networks that are judged by a metamodel which was trained on them: its accuracy would be near 1.

    Expected: chance, 1 / V, within four standard errors.
    """
    values, log_p = draw_world()
    shuffled = values[torch.randperm(NETWORKS, generator=draw(3))]
    found = train(log_p.flatten(1), shuffled, hidden=64, epochs=60)
    for accuracy, count in zip(list_accuracies(found, shuffled), COUNTS, strict=True):
        assert abs(accuracy - 1 / count) < 4 * (1 / count * (1 - 1 / count) / NETWORKS) ** 0.5
    inputs = ((log_p.flatten(1) - found.mean) / found.scale).expand(5, -1, -1)
    (first, bias), *_ = found.weights
    assert first.shape == (5, IMAGES * CLASSES, 64)
    assert bias.shape == (5, 1, 64)
    assert inputs.std() == pytest.approx(1, rel=0.01)


def test_a_prediction_is_the_mean_of_the_perceptrons() -> None:
    """Against torch's own layers, one metamodel after the other. Catches weights that are mixed up between them,

    a rotation of the inputs that is not undone, and temperatures that are left out.
    """
    values, log_p = draw_world()
    found = train(log_p.flatten(1), values, hidden=8, epochs=3)
    total = [torch.zeros(count) for count in COUNTS]
    for fold in range(5):
        layers: list[nn.Module] = []
        for weight, bias in found.weights:
            layer = nn.Linear(*weight.shape[1:])
            layer.load_state_dict({"weight": weight[fold].T, "bias": bias[fold, 0]})
            layers += [layer, nn.ReLU()]
        logits = nn.Sequential(*layers[:-1])((log_p[3].flatten() - found.mean[0, 0]) / found.scale.item()).detach()
        for a, (own, heat) in enumerate(zip(logits.split(COUNTS), found.temperatures, strict=True)):
            total[a] += (own / heat).softmax(0) / 5
    for own, expected in zip(found.predict(log_p[3].flatten()), total, strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-5)


def test_outputs_are_encoded_as_what_a_network_discloses() -> None:
    """Catches the lowest class in place of the highest, images that are mixed up, and the order in place of ranks."""
    log_p = torch.tensor([[[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]]]).log()
    order = torch.tensor([[[0, 1, 2], [2, 1, 0]]])
    assert encode_outputs(log_p, order, "top-1").tolist() == [[1, 0, 0, 0, 0, 1]]
    assert encode_outputs(log_p, order, "bottom-1").tolist() == [[0, 0, 1, 1, 0, 0]]
    assert encode_outputs(log_p, order, "ranking").tolist() == [[0, 0.5, 1, 1, 0.5, 0]]
    assert encode_outputs(log_p, torch.tensor([[[1, 2, 0], [0, 1, 2]]]), "ranking")[0, :3].tolist() == [1, 0, 0.5]
    assert encode_outputs(log_p, order, "prob")[0].exp().tolist() == pytest.approx([0.7, 0.2, 0.1, 0.2, 0.3, 0.5])


def test_metamodels_may_have_features_of_their_own() -> None:
    """The same features for each metamodel are those of all. Catches features that go to another metamodel."""
    values, log_p = draw_world()
    features, parts = log_p.flatten(1), torch.arange(NETWORKS) % 5
    settings = MetamodelSettings(hidden=8, epochs=3)
    one, two = (
        train_metamodels(given, values, COUNTS, settings, generator=draw(2), parts=parts)
        for given in (features, features.expand(5, -1, -1))
    )
    for own, other in zip(one.held_out, two.held_out, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-3)
    shifted = features + 5 * torch.arange(5)[:, None, None]  # what is added to a metamodel's features says nothing
    moved = train_metamodels(shifted, values, COUNTS, settings, generator=draw(2), parts=parts)
    for own, other in zip(moved.predict(shifted[:, 7]), two.predict(features[7].expand(5, -1)), strict=True):
        torch.testing.assert_close(own, other, rtol=0.1, atol=0.03)  # rounded otherwise on each processor
    for fold, own in enumerate(one.compute_logits(features[9])[0]):
        torch.testing.assert_close(own, two.compute_logits(features[9].expand(5, -1))[0][fold], rtol=1e-2, atol=1e-2)


def test_the_temperature_undoes_a_scale() -> None:
    """Closed form: of logits s log p, where each value occurs in its share p, the best temperature is s."""
    shares = torch.tensor([0.5, 0.3, 0.2])
    values = torch.repeat_interleave(torch.arange(3), torch.tensor([50, 30, 20]))
    for scale in (0.5, 4.0):
        assert _fit_temperature((scale * shares.log()).expand(100, 3), values) == pytest.approx(scale, rel=1e-3)


def test_distances_are_to_the_nearest_of_the_others() -> None:
    """Closed form on a line. Catches a network that is its own nearest, and a p-value without the network itself."""
    others = torch.tensor([0.0, 1.0, 3.0, 7.0])[:, None, None].expand(4, 2, 3)
    far = measure_likeness(torch.full((2, 3), 20.0), others)
    assert [far.distance, *far.usual.tolist(), far.p_value] == pytest.approx([13, 1, 1, 2, 4, 1 / 5])
    near = measure_likeness(torch.full((2, 3), 1.5), others)
    assert [near.distance, *near.usual.tolist(), near.p_value] == pytest.approx([0.5, 1, 0.5, 1.5, 4, 1])


def test_few_of_the_others_kind_are_called_unlike() -> None:
    """Vovk et al. 2005: each of R + 1 exchangeable networks has a p-value of at most a in at most a share a of them."""
    log_p = draw_world()[1][:41]
    found = [measure_likeness(log_p[k], torch.cat([log_p[:k], log_p[k + 1 :]])).p_value for k in range(41)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(found) <= level) <= level
    assert min(found) == pytest.approx(1 / 41)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"hidden": 0}, "hidden=0"), ({"epochs": 0}, "epochs=0"), ({"folds": 1}, "folds=1: give a whole number of at"),
     ({"folds": 90}, "150 networks are too few to hold out one of 90 parts")],
)  # fmt: skip
def test_settings_that_allow_no_judgement_are_refused(settings: dict[str, int], message: str) -> None:
    values, log_p = draw_world()
    with pytest.raises(ForetellError, match=message):
        train(log_p.flatten(1), values, **settings)
