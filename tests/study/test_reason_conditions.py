"""The conditions rules, prototypes and x_features, from the study file to the table, in one study in German."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from PIL import Image

from core.concepts.prototypes import find_matches
from data.types import ImageSet
from study.analysis.planned import placebos
from study.analysis.responses import reading as responses
from study.building.build import build
from study.bundle import Bundle, Trial
from study.conditions import CONDITIONS
from study.conditions.rules import condition as rules
from study.conditions.x_features import fit
from study.locales import CATALOGUES
from study.network.sources import open_classifier, open_sets
from study.plan.config import read
from study.plan.simulated_participants import BayesianLearner
from study.plan.texts import apply_condition_words, example, texts_of
from study.service import Service
from study.simulate import simulate
from study.tasks.theory import ShownExplanations
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

FILE = f'language = "de"\nconditions = ["none", "rules", "prototypes", "x_features"]\n{SMALL}'.replace(
    'model = "scenes"', 'model = "scenes:prototypes"'
)
NAMES = ("rules", "prototypes", "x_features")


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ImageSet]:
    home = tmp_path_factory.mktemp("sets")
    (home / "tiny.toml").write_text(FILE)
    return open_sets(read(home / "tiny.toml"), home)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    """The study, with rules of fewer images than usual, and x-features of a pool that is too small to be believed."""
    home = tmp_path_factory.mktemp("reasons")
    (home / "tiny.toml").write_text(FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "DRAWS", 200)
        patch.setattr(fit, "SETTINGS", replace(fit.SETTINGS, starts=1, steps=100))
        patch.setattr(fit, "FEW", 1)
        patch.setattr(fit, "FAITHFUL", float("-inf"))
        yield build(home / "tiny.toml", home)


@pytest.mark.parametrize("name", NAMES)
def test_every_trial_has_reasons_for_both_names_and_none_says_which_the_ai_chose(built: Bundle, name: str) -> None:
    """With the options changed about, the screen is the same."""
    condition = CONDITIONS[name]
    for trial in built.manifest.trials:
        own = trial.assets.by_condition[name]
        one, other = (own.examples[option] for option in trial.options)
        if name == "x_features":
            assert {len(one), len(other)} <= {1, 2}
        else:
            assert len(one) == len(other) == (1 if name == "rules" else 2)
            assert not {*one} & {*other}
        target = Image.open(built.asset(trial.assets.target))
        assert {Image.open(built.asset(image)).size for image in (*one, *other)} == {target.size}
        turned = trial.model_copy(update={"target": trial.alternative, "alternative": trial.target})
        assert condition.shown(turned) == condition.shown(trial)


@pytest.mark.parametrize("name", NAMES)
def test_its_words_are_its_own(built: Bundle, name: str) -> None:
    texts, condition = texts_of(built.manifest), CONDITIONS[name]
    assert apply_condition_words(texts, condition)["examples_legend"] == CATALOGUES["de"][f"{name}_legend"]
    assert CATALOGUES["de"][f"example_{name}"] in example(texts, condition)


def open_target(trial: Trial, sets: dict[str, ImageSet]) -> Image.Image:
    images = next(one for one in sets.values() if trial.source.startswith(f"{one.name}/"))
    return images.open(images.ids.index(trial.source.removeprefix(f"{images.name}/")))


def test_the_parts_of_the_prototypes_are_those_of_the_trial(built: Bundle, sets: dict[str, ImageSet], tmp_path) -> None:
    """The lower left of a card against the part cut here. Catches another image, and the parts of the other name."""
    network = open_classifier("scenes:prototypes", tmp_path, "cpu")
    for trial in built.manifest.trials:
        image = open_target(trial, sets)
        own, gain = trial.assets.by_condition["prototypes"], 0.0
        for option, sign in ((trial.target, 1), (trial.alternative, -1)):
            k = network.categories.index(option)
            matches = find_matches(network, network.preprocess(image), k, count=2)
            gain += sign * sum(match.contribution for match in matches)
            for match, name in zip(matches, own.examples[option], strict=True):
                card = np.asarray(Image.open(built.asset(name)).convert("RGB"), dtype=int)
                rows, columns = (
                    (max(0, middle - 1) * 8, min(12, middle + 2) * 8) for middle in (match.row, match.column)
                )
                part = image.crop((columns[0], rows[0], columns[1], rows[1])).resize((47, 47), Image.Resampling.BICUBIC)
                assert np.abs(card[-47:, :47] - np.asarray(part, dtype=int)).mean() < 8  # but for compression
        assert own.gain == pytest.approx(gain, rel=1e-3)


def test_simulated_people_learn_from_each(built: Bundle, service: Service) -> None:
    for name in NAMES:
        gains = [trial.assets.by_condition[name].gain for trial in built.manifest.trials]
        assert any(gains), name
        trial = built.manifest.trials[int(np.abs(gains).argmax())]
        sign = 1 if trial.truth == trial.target else -1
        p = BayesianLearner().p_ai(CONDITIONS[name].read(trial), ShownExplanations(examples=True))
        assert p == pytest.approx(1 / (1 + exp(-(sign * log(9) + trial.assets.by_condition[name].gain))))
    study = service.researcher.open_study(built.folder, per_condition=2)
    simulate(service, study, 6, {"bayesian_learner": 1.0}, seed=1)
    data = responses.prepare(service.researcher.responses(study, ("sim",)))
    assert set(data.frame["condition"]) == {"none"}
    assert {(c.more, c.less) for c in placebos.list_default_contrasts(data)} == {(name, "none") for name in NAMES}
