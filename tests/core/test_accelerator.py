"""The engine on an accelerator: what it refuses, and results that differ from the CPU's, are red.

On a GPU where there is one, else on a simulated one. That must be there before the first gradient of a process, so the
first test then runs the others in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from core.attribution import METHODS
from core.classifier import Classifier
from core.device import exact_arithmetic
from core.faithfulness import FAITHFULNESS_MEASURES
from core.teaching.kfac import fit_prior
from core.uncertainty import SAMPLERS
from tests.core.accelerator import simulate_accelerator
from tests.core.networks import SIDE, awkward, pictures
from tests.core.test_contracts import explain, subject

OWN_PROCESS = "FORETELL_SIMULATED_ACCELERATOR"


@pytest.fixture(scope="module")
def device() -> Iterator[str]:
    if torch.cuda.is_available():
        with exact_arithmetic(torch.device("cuda")):
            yield "cuda"
        return
    if OWN_PROCESS not in os.environ:
        pytest.skip("run by test_everything_in_a_process_of_its_own")
    yield simulate_accelerator()


@pytest.mark.skipif(OWN_PROCESS in os.environ, reason="this is that process")
@pytest.mark.skipif(torch.cuda.is_available(), reason="the other tests run on the GPU")
def test_everything_in_a_process_of_its_own() -> None:
    """Every test below, which are skipped here."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(Path(__file__))]
    environment = os.environ | {OWN_PROCESS: "1"}
    inherited = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, env=inherited, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.split()[0].count(".") > len(METHODS), "they ran there"


def test_the_device_refuses_what_a_gpu_refuses(device: str) -> None:
    """Negative control: the other tests could not fail otherwise."""
    there = torch.ones(2, 3).to(device)
    assert there.device.type == device
    with pytest.raises(RuntimeError, match="same device"):
        there + torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="same device"):
        there.addmm(torch.ones(2, 2), there)
    torch.testing.assert_close((there.t().t() * 2 + 1).cpu(), torch.full((2, 3), 3.0))


@pytest.mark.parametrize("name", METHODS)
def test_a_heatmap_is_the_cpus(device: str, name: str) -> None:
    """Catches a tensor, mask or fill left on the CPU, and a heatmap returned on the device."""
    here, there = subject(name), subject(name, device)
    assert next(there._module.parameters()).device.type == device
    expected, found = (explain(name, classifier, pictures(2), [0, 1]).map for classifier in (here, there))
    assert found.device.type == "cpu"
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "laplace"])
def test_samples_have_the_cpus_distribution(device: str, name: str) -> None:
    """Catches noise drawn on another device than the values that it multiplies.

    The layout of values, and with it which draw meets which value, may differ: means agree within 5 standard errors.
    """
    here, there = (
        SAMPLERS[name](classifier, pictures(2), passes=300, generator=torch.Generator().manual_seed(1)).double()
        for classifier in (awkward(), awkward(device=device))
    )
    assert there.device.type == "cpu"
    error = ((here.var(1) + there.var(1)) / 300).sqrt()
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
