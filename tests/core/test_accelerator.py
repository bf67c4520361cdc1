"""The engine on an accelerator: what it refuses, and results that differ from the CPU's, are red.

On a GPU where there is one, else on a simulated one (`tests.core.accelerator`), in a process of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from core.attribution import METHODS
from core.faithfulness import FAITHFULNESS_MEASURES
from core.network.classifier import Classifier
from core.teaching.kfac import fit_prior
from core.uncertainty import SAMPLERS
from core.units.exemplars import find_receptive_field, projection
from core.units.unit import Unit
from tests.core.accelerator import DEVICE, inexact_gradients, moved_to_cpu, open_accelerator, run_in_own_process
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.test_contracts import explain, subject


@pytest.fixture
def device() -> Iterator[str]:
    with open_accelerator() as name:
        yield name


@pytest.fixture
def simulated(device: str) -> str:
    """The simulated device, of tests about what it alone can tell."""
    if device != DEVICE:
        pytest.skip("only the simulated device counts")
    return device


def test_everything_in_a_process_of_its_own() -> None:
    """Every test below, which are skipped here."""
    assert run_in_own_process(__file__) > len(METHODS), "they ran there"


def test_the_device_refuses_what_a_gpu_refuses(device: str) -> None:
    """Negative control: the other tests could not fail otherwise."""
    there = torch.ones(2, 3).to(device)
    assert there.device.type == device
    with pytest.raises(RuntimeError, match="same device"):
        there + torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="same device"):
        there.addmm(torch.ones(2, 2), there)
    with pytest.raises(RuntimeError, match="generator"):
        there.normal_(generator=torch.Generator())
    with pytest.raises(RuntimeError):
        there[torch.tensor([0, 1])] = torch.ones(2, 3)
    there[torch.tensor([0, 1])] = there.clone()  # indices may be the CPU's
    torch.testing.assert_close((there.t().t() * 2 + 1).cpu(), torch.full((2, 3), 3.0))
    strided, padding = torch.arange(32.0).view(1, 2, 4, 4), (0, 0, 0, 0, 1, 1)
    padded = nn.functional.pad(strided.to(device)[:, :, ::2, ::2], padding)
    torch.testing.assert_close(padded.cpu(), nn.functional.pad(strided[:, :, ::2, ::2], padding))
    *_, last = strided[0, 0].to(device)
    torch.testing.assert_close(last[1:3].cpu(), strided[0, 0, 3, 1:3])


@pytest.mark.parametrize("name", METHODS)
def test_a_heatmap_is_the_cpus(device: str, name: str) -> None:
    """Catches a tensor, mask or fill left on the CPU, and a heatmap returned on the device."""
    here, there = subject(name), subject(name, device)
    assert next(there._module.parameters()).device.type == device
    expected, found = (explain(name, classifier, pictures(2), [0, 1]).map for classifier in (here, there))
    assert found.device.type == "cpu"
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def test_the_last_layers_weights_are_the_cpus(device: str) -> None:
    """Catches zeros made on the CPU for the bias that a network's last layer does not have."""
    here, there = (Classifier(without_bias(), unit, name="without bias", device=name) for name in ("cpu", device))
    torch.testing.assert_close(there.head, here.head)
    assert there.head[:, -1].tolist() == [0, 0]


def without_bias() -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 2, bias=False)).apply(set_weights)


def set_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, generator=torch.Generator().manual_seed(0))


def test_a_gradient_in_tensor_float_32_is_seen(simulated: str) -> None:
    """Negative control: the fixture `device` could not fail otherwise."""
    classifier = awkward(device=simulated)
    with classifier.exclusive() as module, torch.enable_grad():
        x = pictures(1).to(classifier.device).requires_grad_()
        torch.autograd.grad(module(x.clone()).sum(), x)
    assert inexact_gradients
    inexact_gradients.clear()


@pytest.mark.parametrize("name", ["gradient", "input_x_gradient", "guided_backpropagation", "deconvnet"])
def test_only_heatmaps_and_logits_leave_the_device(simulated: str, name: str) -> None:
    """Catches gradients (B, C, H, W) that are moved to the CPU before they are summed over the channels."""
    classifier = awkward(device=simulated)
    explain(name, classifier, pictures(2), [0, 1])
    moved_to_cpu.clear()
    explain(name, classifier, pictures(2), [0, 1])
    assert sum(moved_to_cpu) == 2 * SIDE**2 + 2 * len(classifier.categories)


@pytest.mark.parametrize("name", ["grad_cam", "grad_cam_plus_plus", "layer_cam", "guided_grad_cam", "erasure"])
def test_a_heatmap_of_an_early_layer_is_the_cpus(device: str, name: str) -> None:
    """Catches a gradient of a layer in TensorFloat-32: of the last layers no convolution is passed."""
    here, there = (explain(name, subject(name, on), pictures(2), [0, 1], layer="bn").map for on in ("cpu", device))
    torch.testing.assert_close(there, here, rtol=1e-4, atol=1e-4 * float(here.abs().max()))


def test_a_units_field_and_projection_are_the_cpus(device: str) -> None:
    """Catches gradients of units in TensorFloat-32, and draws left on the CPU."""
    here, there = awkward(), awkward(device=device)
    centre = Unit(1, "conv2", 5, 6)
    assert find_receptive_field(there, centre) == find_receptive_field(here, centre) == (3, 4, 8, 9)
    expected, projected = (projection(classifier, centre, pictures(1)[0])[0] for classifier in (here, there))
    torch.testing.assert_close(projected, expected, rtol=1e-4, atol=1e-5)


PASSES = 80


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "laplace"])
def test_samples_have_the_cpus_distribution(device: str, name: str) -> None:
    """Catches noise drawn on another device than the values that it multiplies.

    The layout of values, and with it which draw meets which value, may differ: means agree within 5 standard errors.
    """
    here, there = (
        SAMPLERS[name](classifier, pictures(2), passes=PASSES, generator=torch.Generator().manual_seed(1)).double()
        for classifier in (awkward(), awkward(device=device))
    )
    assert there.device.type == "cpu"
    error = ((here.var(1) + there.var(1)) / PASSES).sqrt()
    assert bool(((here.mean(1) - there.mean(1)).abs() <= 5 * error + 1e-6).all())
    assert bool((there.var(1) > 0).all())


def test_teaching_is_the_cpus(device: str) -> None:
    """Catches a prior or a posterior whose parts lie on two devices."""

    def choose(classifier: Classifier) -> tuple[int, ...]:
        features = classifier.features(pictures(24))
        prior = fit_prior(classifier.head, [features], damping=0.1)
        assert features.device.type == prior.head.device.type == "cpu"
        drawn = SAMPLERS["laplace"](classifier, pictures(2), passes=3, prior=prior)
        assert drawn.device.type == "cpu"
        return tuple(features.argmax(0).tolist())

    assert choose(awkward()) == choose(awkward(device=device))


CURVES = ["deletion", "insertion"]


@pytest.mark.parametrize("name", CURVES)
def test_curves_are_the_cpus(device: str, name: str) -> None:
    maps = torch.randn(2, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    expected, found = (
        FAITHFULNESS_MEASURES[name](classifier, pictures(2), [0, 1], maps, steps=6).values
        for classifier in (awkward(), awkward(device=device))
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["cascading_randomisation", "max_sensitivity"])
def test_checks_of_a_method_run_there(device: str, name: str) -> None:
    FAITHFULNESS_MEASURES[name](awkward(device=device), pictures(2), [0, 1], "gradient")


def test_infidelity_runs_there(device: str) -> None:
    maps = torch.randn(2, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    FAITHFULNESS_MEASURES["infidelity"](awkward(device=device), pictures(2), [0, 1], maps, samples=8)
