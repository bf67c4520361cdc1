"""The condition concepts from the study file to the table: built, verified, shown in its own words, answered."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from core.errors import ForetellError
from study.analysis.planned import placebos
from study.analysis.responses import reading as responses
from study.building.build import build, verify
from study.bundle import Bundle
from study.conditions import CONDITIONS
from study.conditions.concepts import charts
from study.conditions.concepts.charts import BARS, DOWN, UP, ConceptEffects, chart, concept_effects
from study.network.sources import open_sets
from study.plan.config import read
from study.plan.simulated_participants import BayesianLearner
from study.plan.texts import apply_condition_words, example, texts_of
from study.service import Service
from study.simulate import simulate
from study.tasks.theory import ShownExplanations
from tests.core.scenes import scene_net
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

FILE = f'conditions = ["none", "concepts"]\n{SMALL}'
EFFECTS = ConceptEffects({"place": ("sea", "road", "snow")}, {"place": np.array([[0.6, 0.1], [0.2, 0.3], [0.1, 0.2]])})


@pytest.fixture(scope="module", autouse=True)
def _few_pictures() -> Iterator[None]:
    """Draw a quarter of the pictures again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "IMAGES", 24)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny study with the condition, by one word of its file."""
    home = tmp_path_factory.mktemp("concepts")
    (home / "tiny.toml").write_text(FILE)
    return build(home / "tiny.toml", home)


def test_effects_are_against_the_other_values_and_the_strongest_come_first() -> None:
    """By hand: .6 - (.2 + .1) / 2, and so on."""
    found = EFFECTS.strongest(0)
    assert [name for name, _ in found] == ["sea", "snow", "road"]
    assert [effect for _, effect in found] == pytest.approx([0.45, -0.3, -0.15])


def test_the_gain_is_the_odds_that_a_place_adds() -> None:
    """Closed form: the means of the columns are .3 and .2."""
    assert EFFECTS.gain({"place": "sea"}, 0, 1) == pytest.approx(log((0.6 / 0.3) / (0.1 / 0.2)))
    assert EFFECTS.gain({"place": "road"}, 1, 0) == -EFFECTS.gain({"place": "road"}, 0, 1)


def test_the_effects_are_of_images_drawn_again(tmp_path: Path) -> None:
    """Slow re-implementation: one picture and one context at a time, for those that were chosen."""
    (tmp_path / "tiny.toml").write_text(FILE)
    pool, classifier = open_sets(read(tmp_path / "tiny.toml"), tmp_path)["pool"], scene_net()
    found = concept_effects(classifier, pool, 3)
    assert set(found.values) == {"context"}  # not the object, which is the category; a colour is nobody's own
    rows, k = np.random.default_rng(3).permutation(len(pool))[: charts.IMAGES], found.values["context"].index("sea")
    inputs = [classifier.preprocess(pool.factors["context"].do(int(i), "sea")) for i in rows]
    expected = np.mean([classifier.probabilities(one[None])[0].numpy() for one in inputs], axis=0)
    np.testing.assert_allclose(found.predictions["context"][k], expected, atol=1e-5)


def test_bars_are_as_long_as_their_effects() -> None:
    """Counted in pixels of their colour, against the longest."""
    drawn = np.asarray(chart([("sea", 0.4), ("road", 0.2), ("snow", -0.1)], (400, 300)), dtype=int)

    def length(colour: str, row: int) -> int:
        wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
        return int((np.abs(drawn[row] - wanted).sum(1) < 12).sum())

    assert length(UP, 70) == pytest.approx(0.6 * 400, abs=4)
    assert length(UP, 170) == pytest.approx(0.3 * 400, abs=4)
    assert length(DOWN, 270) == pytest.approx(0.32 * 400 / 4, abs=4)


def test_every_trial_has_bars_for_both_options_and_the_bundle_verifies(built: Bundle, tmp_path: Path) -> None:
    charts: dict[str, set[str]] = {}
    for trial in built.manifest.trials:
        own = trial.assets.by_condition["concepts"]
        assert set(own.examples) == set(trial.options)
        assert set(own.every) <= set(built.manifest.assets)
        for option, (name,) in own.examples.items():
            charts.setdefault(option, set()).add(name)
            assert Image.open(built.asset(name)).size == Image.open(built.asset(trial.assets.target)).size
    assert all(len(names) == 1 for names in charts.values())  # of a category, not of a trial
    assert len({name for names in charts.values() for name in names}) == len(charts)
    assert verify(built) == []


def test_its_words_are_its_own(built: Bundle) -> None:
    texts = texts_of(built.manifest)
    own = apply_condition_words(texts, CONDITIONS["concepts"])
    assert own["examples_legend"] == texts["concepts_legend"] != texts["examples_legend"]
    assert texts["example_concepts"] in example(texts, CONDITIONS["concepts"])
    assert texts["example_examples"] not in example(texts, CONDITIONS["concepts"])
    assert apply_condition_words(texts, CONDITIONS["examples"]) == texts


def test_simulated_people_take_part_and_learn_from_it(built: Bundle, service: Service) -> None:
    """Her probability is the projector's odds with the gain of the bars, and not of examples that she never saw."""
    trial = built.manifest.trials[0]
    gain = trial.assets.by_condition["concepts"].gain
    assert gain != trial.teaching.gain
    sign = 1 if trial.truth == trial.target else -1
    p = BayesianLearner().p_ai(CONDITIONS["concepts"].read(trial), ShownExplanations(examples=True))
    assert p == pytest.approx(1 / (1 + exp(-(sign * log(9) + gain))))
    study = service.researcher.open_study(built.folder, per_condition=3)
    simulate(service, study, 6, {"bayesian_learner": 1.0}, seed=1)
    frame = service.researcher.responses(study, ("sim",))
    assert frame.groupby("condition")["participant"].nunique().to_dict() == {"none": 3, "concepts": 3}
    data = responses.prepare(frame)
    assert set(data.frame["condition"]) == {"none"}
    assert set(data.placebos["condition"]) == {"concepts"}
    assert {(c.more, c.less) for c in placebos.list_default_contrasts(data)} == {("concepts", "none")}


def test_images_that_cannot_be_changed_are_refused() -> None:
    images = type("Images", (), {"factors": {}, "name": "folder/mine", "categories": ("a",)})()
    with pytest.raises(ForetellError, match="folder/mine has none: take the pool from a generated set"):
        concept_effects(scene_net(), images, 0)


def test_nothing_random_is_left_to_the_process() -> None:
    before = torch.random.get_rng_state()
    assert chart(EFFECTS.strongest(1), (96, 96)).tobytes() == chart(EFFECTS.strongest(1), (96, 96)).tobytes()
    assert len(EFFECTS.strongest(0)) <= BARS
    assert torch.equal(before, torch.random.get_rng_state())
