"""The condition uncertainty from the study file to the table: built, verified, shown in its own words, answered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from study.analysis.planned import placebos
from study.analysis.responses import reading as responses
from study.building.build import build, verify
from study.bundle import Bundle
from study.conditions import CONDITIONS
from study.conditions.uncertainty.gauge import FULL, gauge
from study.plan.texts import apply_condition_words, example, texts_of
from study.service import Service
from study.simulate import simulate
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

ONE = SMALL.replace("practice = 0", "practice = 1")
FILE = f'conditions = ["none", "uncertainty"]\n{ONE}'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny study with the condition, by one word of its file."""
    home = tmp_path_factory.mktemp("uncertainty")
    (home / "tiny.toml").write_text(FILE)
    return build(home / "tiny.toml", home)


@pytest.mark.parametrize(("probability", "share"), [(0.0, 0.0), (0.42, 0.42), (0.9999, 0.99), (1.0, 1.0)])
def test_the_bar_fills_as_far_as_it_is_sure(probability: float, share: float) -> None:
    """Counted in pixels of its colour along the middle of the bar, tenths and outline left out."""
    drawn = np.asarray(gauge(probability, (320, 320)), dtype=int)[200]
    full = np.array([int(FULL[i : i + 2], 16) for i in (1, 3, 5)])
    filled = np.flatnonzero(np.abs(drawn - full).sum(1) < 40)
    reached = (filled.max() - 32) / 256 if len(filled) else 0.0
    assert reached == pytest.approx(share, abs=0.02)


def test_every_trial_has_its_gauge_and_the_bundle_verifies(built: Bundle) -> None:
    gauges = {}
    for trial in (*built.manifest.trials, *built.manifest.practice):
        own = trial.assets.by_condition["uncertainty"]
        assert own.relevance == pytest.approx(trial.ai_probability)
        assert Image.open(built.asset(own.target_map)).size == Image.open(built.asset(trial.assets.target)).size
        gauges[own.target_map] = int(100 * trial.ai_probability)
    assert len(gauges) == len(set(gauges.values()))  # one picture for each percentage
    assert verify(built) == []


def test_nothing_shown_says_which_option_the_ai_chose(built: Bundle) -> None:
    """The same trial with the options changed about has the same screen but for the names' sides."""
    trial = built.manifest.trials[0]
    turned = trial.model_copy(update={"target": trial.alternative, "alternative": trial.target})
    condition = CONDITIONS["uncertainty"]
    assert condition.shown(turned) == condition.shown(trial)


def test_its_words_are_its_own(built: Bundle) -> None:
    texts = texts_of(built.manifest)
    assert (
        apply_condition_words(texts, CONDITIONS["uncertainty"])["map_legend"]
        == texts["gauge_legend"]
        != texts["map_legend"]
    )
    assert texts["example_gauge"] in example(texts, CONDITIONS["uncertainty"])
    assert texts["example_map"] not in example(texts, CONDITIONS["uncertainty"])


def test_simulated_people_take_part(built: Bundle, service: Service, tmp_path: Path) -> None:
    study = service.researcher.open_study(built.folder, per_condition=3)
    simulate(service, study, 6, {"map_reader": 1.0}, seed=1)
    frame = service.researcher.responses(study, ("sim",))
    assert frame.groupby("condition")["participant"].nunique().to_dict() == {"none": 3, "uncertainty": 3}
    data = responses.prepare(frame)
    assert set(data.frame["condition"]) == {"none"}
    assert {(c.more, c.less) for c in placebos.list_default_contrasts(data)} == {("uncertainty", "none")}
