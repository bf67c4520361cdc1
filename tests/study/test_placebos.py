"""ConditionAssets conditions from the study file to the table: built, verified, preloaded, answered, and debriefed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import spearmanr

from core.teaching.masks import MaskPrior, elsewhere
from study.building.build import build
from study.bundle import Bundle
from study.conditions import placebos
from study.network.sources import open_sets
from study.plan.config import read
from study.service import Service
from study.simulate import simulate
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

MakeBundle = Callable[..., Path]
CONDITIONS = ("none", "saliency", *placebos())
FILE = f"conditions = {list(CONDITIONS)}\n{SMALL}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny study with all placebos, by one line of its file."""
    home = tmp_path_factory.mktemp("placebos")
    (home / "tiny.toml").write_text(FILE)
    return build(home / "tiny.toml", home)


def test_a_random_map_is_the_true_one_in_the_order_of_a_mask() -> None:
    """Same values, and their ranks are those of the mask drawn from the same generator; independent of the map."""
    values = torch.randn(40, 30, generator=torch.Generator().manual_seed(1))
    places = elsewhere(values, torch.Generator().manual_seed(2))
    drawn = values.flatten()[places]
    mask = MaskPrior(40, 30, mean=0.0, amplitude=1.0).sample(1, torch.Generator().manual_seed(2))[0]
    assert torch.equal(drawn.flatten().sort().values, values.flatten().sort().values)
    assert spearmanr(drawn.flatten(), mask.flatten()).statistic == pytest.approx(1.0)
    assert abs(spearmanr(drawn.flatten(), values.flatten()).statistic) < 0.1


def test_every_trial_has_its_placebos_and_they_are_what_they_say(built: Bundle, tmp_path: Path) -> None:
    manifest = built.manifest
    (tmp_path / "tiny.toml").write_text(FILE)
    pool = open_sets(read(tmp_path / "tiny.toml"), tmp_path)["pool"]
    by_id = dict(zip(pool.ids, (pool.categories[k] for k in pool.labels), strict=True))
    for trial in (*manifest.trials, *manifest.practice):
        assert set(trial.assets.by_condition) == set(placebos())
        assert set(trial.assets.every) <= set(manifest.assets)
        wrong = trial.assets.by_condition["wrong_examples"]
        assert set(wrong.examples) == set(trial.options)
        shown = [by_id[source] for source in wrong.sources]
        assert shown[0] == shown[1] != shown[2] == shown[3]
        assert not set(shown) & set(trial.options)
        maps = {name: trial.assets.by_condition[name].target_map for name in ("random_maps", "reinitialised_maps")}
        assert len({trial.assets.target_map, *maps.values()}) == 3


def test_a_random_map_is_as_colourful_as_the_true_one(built: Bundle) -> None:
    """Mean saturation of the drawn pictures; a map of other strength would give itself away."""
    every = [trial.assets for trial in built.manifest.trials]
    drawn = [_colour(built.asset(str(assets.by_condition["random_maps"].target_map))) for assets in every]
    true = [_colour(built.asset(assets.target_map)) for assets in every]
    assert np.mean(drawn) == pytest.approx(np.mean(true), rel=0.1)


def test_placebos_are_drawn_again_to_the_byte(built: Bundle, tmp_path: Path) -> None:
    """The same seeds in another workspace; only what the network answered is taken over, no map."""
    cache = built.folder.parent.parent / "cache"
    shutil.copytree(cache, tmp_path / "cache", ignore=shutil.ignore_patterns("maps"))
    (tmp_path / "tiny.toml").write_text(FILE)
    assert build(tmp_path / "tiny.toml", tmp_path).study_hash == built.study_hash


def test_the_relevance_is_of_what_is_shown(built: Bundle) -> None:
    """Recorded is the relevance of what is shown: a map in random places is not as relevant as the true one."""
    for trial in built.manifest.trials:
        for name in ("random_maps", "reinitialised_maps"):
            shown = trial.assets.by_condition[name].relevance
            assert shown is not None
            assert 0 <= shown <= 1
            assert shown != trial.relevance


def test_people_in_placebo_conditions_load_the_same_and_answer(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(conditions=CONDITIONS), per_condition=1)
    loaded = set()
    for condition in CONDITIONS:
        token = service.participant.begin(study, mode="preview", condition=condition)
        service.participant.consent(token, True)
        service.participant.ready(token)
        service.participant.ready(token, "example")
        loaded.add(tuple(service.participant.preload(token)))
    assert len(loaded) == 1
    assert simulate(service, study, 5, {"map_reader": 1.0, "bayesian_learner": 1.0}, seed=1) == 5 * 15
    frame = service.researcher.responses(study, ("sim",))
    assert frame.groupby("condition")["participant"].nunique().to_dict() == dict.fromkeys(CONDITIONS, 1)
    assert service.researcher.verify() == []


@pytest.mark.parametrize(("conditions", "told"), [(("none", "random_maps"), True), (("none", "saliency"), False)])
def test_people_are_told_of_placebos_in_the_end(
    service: Service, bundle: MakeBundle, conditions: tuple[str, ...], told: bool
) -> None:
    study = service.researcher.open_study(bundle(conditions=conditions, trials=3, practice=0), per_condition=1)
    token = service.participant.begin(study, mode="sim", participant="x")
    simulate(service, study, 2, {"guesser": 1.0}, seed=1)
    assert ("pictures of something else" in _debrief(service, study)) is told
    assert token


def _debrief(service: Service, study: str) -> str:
    """What the first simulated person reads in the end."""
    token = service.participant.begin(study, mode="sim", participant="guesser=1/1/0")
    return str(service.participant.state(token)["text"])


def _colour(path: Path) -> float:
    return float(np.asarray(Image.open(path).convert("HSV"))[..., 1].mean())
