"""Maps and measures are made once per key, the key sees everything, and what is made is right."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from core.faithfulness.curves import deletion
from core.faithfulness.infidelity import infidelity
from core.faithfulness.pointing import relevance_mass
from core.faithfulness.randomisation import cascading_randomisation
from core.types import Explanation, Progress
from dashboard.explore.heatmap_jobs import STEPS, HeatmapRequest, estimate, make_faithfulness_task, make_robustness_task
from dashboard.shared import cache
from dashboard.shared.jobs import Job, pool
from tests.dashboard.conftest import PATIENCE_S


def request(inputs: torch.Tensor, **changes: object) -> HeatmapRequest:
    settings = {"method": "gradient", "target": 3, "seed": 0, "parameters": {}} | changes
    return HeatmapRequest(cache.load_classifier("scenes"), inputs=inputs, **settings)  # type: ignore[arg-type]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the maps that were really made."""
    made: list[str] = []
    compute = HeatmapRequest.compute

    def count_and_compute(self: HeatmapRequest, progress: Progress) -> Explanation:
        made.append(self.key)
        return compute(self, progress)

    monkeypatch.setattr(HeatmapRequest, "compute", count_and_compute)
    return made


def picture(seed: int) -> torch.Tensor:
    return torch.randn(3, 96, 96, generator=torch.Generator().manual_seed(seed))


def ended(job: Job) -> Job:
    assert job.wait(PATIENCE_S)
    assert job.state == "done", job.error
    return job


def test_one_differing_pixel_is_another_map(computed: list[str]) -> None:
    a = picture(1)
    b = a.clone()
    b[1, 40, 50] += 0.5
    maps = [ended(request(x).task.ask()).result.map for x in (a, b, a, b)]
    assert len(computed) == 2
    assert torch.equal(maps[0], maps[2])
    assert not torch.equal(maps[0], maps[1])


@pytest.mark.parametrize(
    "changes", [{"target": 4}, {"seed": 1}, {"method": "integrated_gradients"}, {"parameters": {"steps": 8}}]
)
def test_every_setting_is_in_the_key(changes: dict[str, object]) -> None:
    assert request(picture(1), **changes).key != request(picture(1)).key


def test_a_cancelled_map_is_made_again(computed: list[str]) -> None:
    r = request(picture(2), method="rise", parameters={"samples": 20_000})
    job = r.task.ask()
    pool().cancel(r.key)
    assert job.wait(PATIENCE_S)
    assert job.state == "cancelled"
    assert r.task.ask() is not job
    pool().cancel(r.key)


def test_two_sessions_at_once_make_it_once(computed: list[str]) -> None:
    r = request(picture(3))
    threads = [threading.Thread(target=lambda: ended(r.task.ask())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(computed) == 1


@pytest.mark.parametrize("known", [True, False])
def test_measures_are_those_of_the_engine_on_the_map_and_the_object(known: bool) -> None:
    """Against the engine called by hand."""
    r = request(picture(4))
    explanation = ended(r.task.ask()).result
    mask = np.zeros((96, 96), dtype=bool)
    mask[20:60, 30:80] = True
    found = ended(make_faithfulness_task(r, explanation, mask if known else None).ask()).result
    by_hand = deletion(r.classifier, r.inputs[None], [3], explanation.evidence, steps=STEPS)
    torch.testing.assert_close(found.deletion.values, by_hand.values, rtol=0, atol=1e-6)
    assert (found.insertion.measure, found.insertion.substrate) == ("insertion", "blur")
    missed = infidelity(r.classifier, r.inputs[None], [3], explanation.evidence, samples=128, scaled=True)
    torch.testing.assert_close(found.infidelity.value, missed.value, rtol=1e-6, atol=0)
    if known:
        inside = torch.zeros(1, 96, 96, dtype=torch.bool)
        inside[0, 20:60, 30:80] = True
        assert found.mass == pytest.approx(float(relevance_mass(explanation.evidence, inside)), abs=1e-6)
        assert found.tolerance == 3
    else:
        assert (found.mass, found.rank, found.hit) == (None, None, None)


def test_robustness_tells_a_method_that_does_not_look_at_the_weights() -> None:
    """Against the engine called by hand; a gradient forgets with the network."""
    r = request(picture(4))
    found = ended(make_robustness_task(r).ask()).result
    by_hand = cascading_randomisation(
        r.classifier,
        r.inputs[None],
        [3],
        r.method,
        parameters=r.parameters,
        generator=torch.Generator().manual_seed(r.seed),
    )
    torch.testing.assert_close(found.randomisation.correlations, by_hand.correlations, rtol=0, atol=1e-6)
    assert not found.randomisation.is_flagged
    assert found.sensitivity.distances.shape == (10, 1)
    assert make_robustness_task(r).key != r.key
    assert make_robustness_task(r).seconds == 0.0


def test_the_object_is_in_the_key_of_the_measures() -> None:
    r = request(picture(4))
    explanation = ended(r.task.ask()).result
    masks = [np.zeros((9, 9), dtype=bool), np.ones((9, 9), dtype=bool), None]
    assert len({make_faithfulness_task(r, explanation, mask).key for mask in masks}) == 3


def test_what_a_map_costs_is_said_in_passes_and_seconds() -> None:
    classifier = cache.load_classifier("scenes")
    passes, seconds = estimate(classifier, "rise", {"samples": 50})
    assert passes is not None
    assert passes.forwards == 50
    more = estimate(classifier, "rise", {"samples": 5_000})[1]
    assert seconds is not None
    assert more == pytest.approx(100 * seconds)
    assert estimate(classifier, "score_cam", {"layer": "nowhere"}) == (None, None)
