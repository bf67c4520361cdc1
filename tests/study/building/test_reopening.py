"""A frozen study opened again: what it gives must be what the study was made from."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from core.attribution.baselines import baselines
from core.drawing.rendering import overlay, scale_of
from core.errors import ForetellError
from study.building.build import build
from study.building.drawing import WEBP
from study.building.lessons import lesson
from study.building.plan import make_planner
from study.building.reopening import ReopenedStudy, reopen
from study.building.stimuli import STEPS
from study.bundle import MANIFEST, Bundle, canonical
from study.network.sources import open_sources
from tests.study.studies import TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")


@pytest.fixture(scope="module")
def again(tmp_path_factory) -> ReopenedStudy:
    folder = tmp_path_factory.mktemp("reopening")
    (folder / "tiny.toml").write_text(TINY)
    return reopen(build(folder / "tiny.toml", folder), folder / "cache")


def test_candidates_are_those_of_the_plan(again: ReopenedStudy):
    """As the planner does, from the study file; catches a foil or a picture of another trial."""
    folder = Path(again.bundle.manifest.environment["base"])
    plan = make_planner(open_sources(folder / "tiny.toml"), folder / "cache").plan(lambda *_: None)
    trials = {trial.id: trial for trial in (*again.bundle.manifest.trials, *again.bundle.manifest.practice)}
    planned = {each.id: each.candidate for each in (*plan.trials, *plan.practice)}
    assert {name: again.candidate(trial) for name, trial in trials.items()} == planned


def test_the_lesson_is_the_frozen_one(again: ReopenedStudy):
    """The set of the study's own policy is the one whose pictures and probability were frozen."""
    trial = again.bundle.manifest.trials[1]
    found = lesson(again.planner, again.candidate(trial))
    own = found.sets[trial.teaching.policy]
    assert [found.ids[i] for i in own.indices] == [example.source for example in trial.assets.examples]
    assert own.p_learner == pytest.approx(trial.teaching.p_learner, rel=1e-5)
    assert [[n, p] for n, p in own.curve] == [[n, pytest.approx(p, rel=1e-5)] for n, p in trial.teaching.curve]


def test_the_map_is_the_frozen_one(again: ReopenedStudy, tmp_path: Path):
    """Drawn again it has the bytes of the frozen asset; catches another seed, class or picture."""
    trial, config = again.bundle.manifest.trials[0], again.sources.config
    found = again.target_map(trial)
    assert found.error is not None
    side = config.display.size
    signed = scale_of(found, 0).normalise_map(found.map[0], found.error[0])
    drawn = overlay(again.open_image(trial), signed, (side, side), config.saliency.opacity)
    drawn.save(tmp_path / "map.webp", **WEBP)
    assert hashlib.sha256((tmp_path / "map.webp").read_bytes()).hexdigest() == trial.assets.target_map


def test_the_areas_are_those_of_the_target_and_its_map(again: ReopenedStudy):
    """By hand, one masked picture after the other; catches another class, map, order or fill.

    The curves themselves are tested in tests/core.
    """
    for trial in again.bundle.manifest.trials[:3]:
        classifier = again.sources.classifier
        target = again.candidate(trial).target
        picture = classifier.preprocess(again.open_image(trial))[None]
        order = again.target_map(trial).evidence[0].flatten().argsort(descending=True, stable=True)
        counts = torch.linspace(0, len(order), STEPS + 1, dtype=torch.float64).round().long()
        for name, fill in (("deletion", "mean"), ("insertion", "blur")):
            other = baselines(classifier, picture, fill, 0)
            said = []
            for count in counts:
                first = torch.zeros(len(order))
                first[order[:count]] = 1
                first = first.reshape(picture.shape[2:])
                shown = first if name == "insertion" else 1 - first
                mixed = picture * shown + other * (1 - shown)
                said.append(float(classifier.probabilities(mixed)[0, target]))
            area = np.trapezoid(said, counts / len(order))
            assert getattr(trial.saliency, name) == pytest.approx(area, abs=1e-4)


def test_other_weights_or_images_are_refused(again: ReopenedStudy, tmp_path: Path):
    for change, said in (
        ({"classifier": {**again.bundle.manifest.classifier, "fingerprint": "0" * 64}}, "has different weights"),
        ({"sets": {**again.bundle.manifest.sets, "pool": {"digest": "0"}}}, "The image set 'pool' is not the one"),
        ({"config": {}}, "does not record its classifier"),
    ):
        manifest = again.bundle.manifest.model_copy(update=change)
        manifest = manifest.model_copy(update={"study_hash": manifest.compute_hash()})
        (tmp_path / MANIFEST).write_bytes(canonical(manifest.model_dump(mode="json")))
        with pytest.raises(ForetellError, match=said):
            reopen(Bundle(tmp_path), again.cache)
