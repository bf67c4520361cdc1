from __future__ import annotations

import copy

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from core.attribution import METHODS
from core.errors import ForetellError
from core.faithfulness.agreement import rank_pixels
from core.faithfulness.randomisation import Randomisation, _cascade, cascading_randomisation
from core.network.classifier import Classifier
from core.types import Explanation
from data.scenes import classifier as scene_net
from data.scenes.splits import picture
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.test_contracts import assert_same, snapshot


def edges(classifier, images, targets, *, generator=None, progress=None) -> Explanation:
    """A method that never asks the network: it draws the picture's edges."""
    return Explanation(images.diff(dim=2, append=images[:, :, -1:]).abs().sum(1), 0.0, ())


def noise(classifier, images, targets, *, generator=None, progress=None) -> Explanation:
    return Explanation(torch.randn(len(images), SIDE, SIDE, generator=generator), 0.0, ())


@pytest.fixture
def registered(monkeypatch):
    for name in ("edges", "noise"):
        monkeypatch.setitem(METHODS._table, name, f"{__name__}:{name}")


def test_a_method_that_does_not_look_at_the_network_is_flagged(registered):
    found = cascading_randomisation(awkward(), pictures(2), [0, 1], "edges")
    assert found.layers == ("head", "conv2", "bn", "conv1")
    torch.testing.assert_close(found.correlations, torch.ones(4, 2, dtype=torch.float64), rtol=0, atol=1e-12)
    assert found.is_flagged
    assert not cascading_randomisation(awkward(), pictures(2), [0, 1], "edges", threshold=1.0).is_flagged


def test_maps_of_noise_are_told_by_their_repeatability(registered):
    """Shared draws would make noise correlate perfectly with itself."""
    found = cascading_randomisation(awkward(), pictures(2), [0, 1], "noise")
    assert found.correlations.abs().max() < 0.4
    assert found.repeatability.abs().max() < 0.4
    assert not found.is_flagged


def test_the_gradient_of_the_built_in_network_depends_on_its_weights():
    """As Adebayo et al. find for the gradient: the trained network's map does not survive."""
    classifier = Classifier(scene_net.build(), scene_net.transforms, scene_net.CATEGORIES, name="scenes")
    images = torch.stack([classifier.preprocess(picture("standard", 0, i).image) for i in range(4)])
    found = cascading_randomisation(classifier, images, [0, 1, 2, 3], "gradient")
    assert len(found.layers) == 13
    assert (found.layers[0], found.layers[-1]) == ("head", "features.0.0")
    assert found.correlations.shape == (13, 4)
    assert not found.is_flagged
    assert found.correlations[-1].mean() < 0.3
    assert found.repeatability.tolist() == [1, 1, 1, 1]


def test_layers_go_from_the_top_down_and_stay_gone():
    """By hand for a linear map: its gradient is the product of its weights, re-made with the same draws."""
    torch_network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 4), nn.Linear(4, 2, bias=False))
    classifier, images = Classifier(torch_network, unit, name="linear"), pictures(1)
    found = cascading_randomisation(classifier, images, [1], "gradient")
    low, top = torch_network[1].weight.detach(), torch_network[2].weight.detach()
    draws = torch.Generator().manual_seed(found.seed)
    seeds = [int(torch.randint(2**62, (1,), generator=draws)) for _ in range(6)]
    layers = {"2": copy.deepcopy(torch_network[2]), "1": copy.deepcopy(torch_network[1])}
    with torch.random.fork_rng(devices=[]):
        # Two maps of the trained network came before the first layer, one map between the layers.
        for layer, seed in (("2", seeds[2]), ("1", seeds[4])):
            torch.manual_seed(seed)
            layers[layer].reset_parameters()
    new_top, new_low = layers["2"].weight.detach(), layers["1"].weight.detach()
    assert found.layers == ("2", "1")
    for row, weights in enumerate((new_top @ low, new_top @ new_low)):
        reference = Classifier(linear(weights), unit, name="product")
        trained = Classifier(linear(top @ low), unit, name="product")
        maps = [METHODS["gradient"](c, images, [1]).map.abs().flatten() for c in (trained, reference)]
        assert float(found.correlations[row, 0]) == pytest.approx(spearmanr(*maps).statistic, abs=1e-3)


def linear(weights):
    network = nn.Sequential(nn.Flatten(), nn.Linear(weights.shape[1], weights.shape[0], bias=False))
    network[1].weight.data = weights.clone()
    return network


def test_the_users_network_and_the_global_draws_stay_as_they_were():
    classifier = awkward()
    with classifier.exclusive() as module:
        before, state = snapshot(module), torch.random.get_rng_state()
        cascading_randomisation(classifier, pictures(1), [0], "gradient")
        assert_same(before, snapshot(module))
    assert torch.equal(state, torch.random.get_rng_state())


def test_same_seed_same_correlations_and_batch_equals_one_by_one():
    def run(images, targets, seed):
        generator = torch.Generator().manual_seed(seed)
        return cascading_randomisation(awkward(), images, targets, "gradient", generator=generator).correlations

    images = pictures(2)
    both = run(images, [0, 1], 3)
    assert torch.equal(both, run(images, [0, 1], 3))
    assert not torch.equal(both, run(images, [0, 1], 4))
    torch.testing.assert_close(both[:, 1:], run(images[1:], [1], 3), rtol=0, atol=1e-3)


def test_parameters_without_a_way_to_draw_again_are_drawn_too():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.linspace(-1, 1, 3 * SIDE * SIDE).view(3, SIDE, SIDE))

        def forward(self, x):
            total = (self.scale * x).flatten(1).sum(1)
            return torch.stack([total, -total], 1)

    found = cascading_randomisation(Classifier(Scaled(), unit, name="scaled"), pictures(1), [0], "gradient")
    assert found.layers == ("",)
    assert found.correlations.abs().max() < 0.4


def test_a_map_of_one_value_correlates_with_nothing():
    class Blind(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.tensor([1.0, 2.0]))

        def forward(self, x):
            return self.bias + 0 * x.flatten(1).sum(1, keepdim=True)

    found = cascading_randomisation(Classifier(Blind(), unit, name="blind"), pictures(1), [0], "gradient")
    assert found.correlations.tolist() == [[0.0]]


def test_what_cannot_be_randomised_is_refused():
    network = nn.Sequential(nn.Flatten(), nn.ReLU())
    with pytest.raises(ForetellError, match="has no parameters"):
        cascading_randomisation(Classifier(network, unit, name="bare"), pictures(1), [0], "gradient")
    with pytest.raises(ForetellError, match="Unknown method"):
        cascading_randomisation(awkward(), pictures(1), [0], "gradiant")
    with pytest.raises(ForetellError, match="no parameter"):
        cascading_randomisation(awkward(), pictures(1), [0], "gradient", parameters={"steps": 3})


def test_the_flag_is_the_mean_after_the_last_layer():
    rows = torch.tensor([[1.0, 1.0], [0.7, 0.2]], dtype=torch.float64)
    settings = ("gradient", 0), (("b", "a"), rows, torch.ones(2))
    assert Randomisation(*settings[0], 0.44, *settings[1]).is_flagged
    assert not Randomisation(*settings[0], 0.46, *settings[1]).is_flagged


def test_likeness_is_of_distances_from_the_maps_own_zero():
    """A Bayesian-teaching map of 0.2 around a zero of 0.5 is evidence against, not weak evidence for."""
    explanation = Explanation(torch.tensor([[[0.25, 0.5], [1.0, 0.0]]]), 0.5, ())
    assert rank_pixels(explanation).tolist() == [[2, 1, 3.5, 3.5]]  # of the distances 0.25, 0, 0.5 and 0.5


def test_each_step_of_the_cascade_is_a_network_of_its_own():
    """One module handed on and changed again would also be moved to the device, and draw there."""
    networks = [network for _, _, network in _cascade(awkward(), torch.Generator().manual_seed(0))]
    assert len({network.fingerprint for network in networks}) == 4


def test_the_generators_of_gpus_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a seed for every generator of the process, of which only the CPU's is set back."""
    classifier, images, before = awkward(), pictures(1), torch.get_rng_state()
    seeds: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    cascading_randomisation(classifier, images, [0], "gradient")
    assert not seeds
    assert torch.equal(torch.get_rng_state(), before)
