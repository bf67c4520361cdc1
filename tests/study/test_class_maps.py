"""The condition class_maps from the study file to the table: a heatmap of each class, read from the drawn images."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from pydantic import ValidationError
from torch import Tensor

from core.network.classifier import Classifier
from study.building.build import build, verify
from study.bundle import TRIAL_TYPES, Bundle, Trial
from study.conditions import CONDITIONS
from study.conditions.class_maps import compare_relevance
from study.network.sources import open_sets
from study.participation.screens import lay_out_trial, list_samples
from study.plan.config import StudyConfig, read
from study.plan.preregistration import AnalysisPlan
from study.plan.texts import apply_condition_words, complete_texts, example, texts_of, word_task
from study.service import Service
from study.simulate import simulate
from study.tasks import open_task
from tests.core.scenes import scene_net
from tests.study.studies import SMALL
from tests.study.test_counterfactual_condition import open_target

pytestmark = pytest.mark.usefixtures("shared_predictions")

FILE = 'conditions = ["none", "saliency", "class_maps"]\n' + SMALL.replace(
    "categories = 1\npractice = 0", "categories = 1\npractice = 0\noptions = 4"
).replace("parameters = { samples = 8 }", 'method = "grad_cam"')
CONDITION = CONDITIONS["class_maps"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny study with four classes to choose from, and the condition."""
    home = tmp_path_factory.mktemp("class_maps")
    (home / "tiny.toml").write_text(FILE)
    return build(home / "tiny.toml", home)


def compute_grad_cam(network: Classifier, inputs: Tensor, k: int) -> NDArray[np.float64]:
    """Compute Grad-CAM (H, W) in closed form: behind an average, the gradients are the weights of the last layer."""
    module: Any = network._module
    maps = module.features(inputs[None])
    cam = torch.einsum("c,bchw->bhw", module.head.weight[k], maps).clamp(min=0)
    return torch.nn.functional.interpolate(cam[None], (96, 96), mode="bilinear")[0, 0].double().numpy()


def read_orange(bundle: Bundle, name: str) -> NDArray[np.float64]:
    """Read from a drawn image (96, 96) how much redder than blue each pixel is: the grey image has none of either."""
    drawn = np.asarray(Image.open(bundle.asset(name)).convert("RGB"), dtype=np.float64)
    return drawn[..., 0] - drawn[..., 2]


def test_each_name_has_its_own_heatmap(built: Bundle, tmp_path: Path) -> None:
    """Against Grad-CAM written here: the colours of a drawn image follow that of its own class, not of the others.

    Catches a heatmap with another name, one of the prediction with every name, and a class that has none.
    """
    (tmp_path / "tiny.toml").write_text(FILE)
    sets, network = open_sets(read(tmp_path / "tiny.toml"), tmp_path), scene_net()
    for trial in built.manifest.trials:
        shown = CONDITION.shown(trial).examples
        assert set(shown) == set(trial.options)
        inputs = network.preprocess(open_target(trial, sets))
        expected = {name: compute_grad_cam(network, inputs, network.categories.index(name)) for name in shown}
        for option, (name,) in shown.items():
            drawn = read_orange(built, name)
            if not expected[option].any():
                assert abs(drawn).max() < 40
                continue
            fits = {one: np.corrcoef(drawn.ravel(), cam.ravel())[0, 1] for one, cam in expected.items() if cam.any()}
            assert fits[option] > 0.8
            assert fits[option] >= max(fits.values()) - 1e-9


def test_what_is_loaded_and_shown_names_no_class(built: Bundle) -> None:
    """The heatmap of the prediction is the same file as with its name, and all conditions load the same files.

    Catches a file of the prediction's heatmap of its own, from which the page could be told which class it is; an
    image that the page shows and has not loaded; and a screen that depends on what the AI chose.
    """
    task = open_task("predict", 4)
    worded = word_task(built.manifest)
    for trial in built.manifest.trials:
        loaded = task.list_assets(trial)
        drawn = {name for (name,) in CONDITION.shown(trial).examples.values()}
        assert set(loaded) == {trial.assets.target, *drawn}
        screen = lay_out_trial("main", trial, CONDITION, "a", worded, "cadb").screen
        assert {*list_samples(screen)} == drawn
        turned = trial.model_copy(update={"target": trial.alternative, "alternative": trial.target})
        assert lay_out_trial("main", turned, CONDITION, "a", worded, "cadb").screen == screen


def test_its_words_say_what_the_colours_mean_and_the_bundle_verifies(built: Bundle) -> None:
    """Catches blue that is explained where the method has none, and words of the prediction's heatmap."""
    texts = texts_of(built.manifest)
    assert texts["example_class_maps"] in example(texts, CONDITION)
    assert texts["example_map"] not in example(texts, CONDITION)
    assert apply_condition_words(texts, CONDITION)["examples_legend"] == "orange: for the name"
    for language, blue in (("en", "blue"), ("de", "blau")):
        signed = complete_texts(language, {}, "grad_cam", {"sign": "signed"})
        positive = complete_texts(language, {}, "grad_cam")
        for key in ("example_class_maps", "class_maps_legend"):
            assert blue in signed[key]
            assert blue not in positive[key]
    assert verify(built) == []


def test_a_reader_compares_their_own_label_with_the_others() -> None:
    """By hand: (.6 - .4) / 2 above one half; catches a comparison with the prediction alone."""
    assert compare_relevance([0.2, 0.6, 0.4], 1) == pytest.approx(0.6)
    assert compare_relevance([0.2, 0.6, 0.4], 2) == pytest.approx(0.4)
    assert compare_relevance([0.0, 1.0], 1) == 1.0


def test_simulated_participants_respond_in_every_condition(built: Bundle, service: Service) -> None:
    """Catches participants who do not read the heatmaps of classes: P(right) depends on the condition's relevance."""
    study = service.researcher.open_study(built.folder, per_condition=2)
    simulate(service, study, 6, {"map_reader": 1.0}, seed=1)
    frame = service.researcher.responses(study, ("sim",))
    assert set(frame["condition"]) == {"none", "saliency", "class_maps"}
    assert set(frame["n_classes"]) == {4}
    trial = built.manifest.trials[0]
    assert CONDITION.read(trial).relevance == trial.assets.by_condition["class_maps"].relevance
    assert CONDITION.shows_heatmaps


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"saliency": {"method": "attention_rollout"}},
            "of 'attention_rollout' do not say what speaks for a class",
        ),
        ({"study": {"name": "a", "title": "A", "task": "accept_reject"}, "trials": {}}, "see only the one that the AI"),
        ({"blocks": {"training": 1, "test": 1, "rounds": 1}}, "cannot go with .blocks. and more than two options"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(change: dict[str, object], said: str) -> None:
    """Catches heatmaps that explain no class, those of a label that is shown, and training with them."""
    recipe = tomllib.loads(FILE)
    assert StudyConfig.model_validate(recipe).task.count == 4
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate(recipe | change)


def test_a_method_whose_heatmaps_are_evidence_is_taken() -> None:
    """Catches a refusal of the built-in methods that explain a class."""
    for method in ("grad_cam", "bayesian_teaching", "integrated_gradients", "rise", "lrp_composite"):
        recipe = tomllib.loads(FILE) | {"saliency": {"method": method}}
        assert StudyConfig.model_validate(recipe).saliency.method == method


def test_two_options_have_a_heatmap_each(bundle_of_two: Trial) -> None:
    """Catches a condition that works with several classes alone."""
    assert {len(names) for names in CONDITION.shown(bundle_of_two).examples.values()} == {1}


@pytest.fixture
def bundle_of_two(tmp_path: Path) -> Trial:
    """A trial of two options, from a bundle of drawn images."""
    from tests.conftest import write_bundle

    folder = write_bundle(tmp_path / "bundle", name="two", trials=1, practice=0, conditions=("none", "class_maps"))
    return Bundle(folder).manifest.trials[0]


def test_a_study_plans_the_contrasts_of_its_conditions() -> None:
    """By hand: each condition against none; a placebo against what it looks like; the file's own where it has any.

    Catches contrasts of conditions that nobody is in, which were planned in every study, and a condition outside the
    two factors that no planned contrast has.
    """
    recipe = tomllib.loads(FILE)
    plan = StudyConfig.model_validate(recipe).plan
    assert [(one.more, one.less, one.trial_types) for one in plan.contrasts] == [
        (more, "none", (kind,)) for kind in TRIAL_TYPES for more in ("saliency", "class_maps")
    ]
    placebo = {"conditions": ["saliency", "random_maps"], "trials": {}}
    plan = StudyConfig.model_validate(recipe | placebo).plan
    assert [(one.more, one.less) for one in plan.contrasts] == [("saliency", "random_maps")] * 3
    own = {"analysis": {"contrasts": [{"more": "class_maps", "less": "saliency"}]}}
    assert len(StudyConfig.model_validate(recipe | own).plan.contrasts) == 1


def test_the_papers_four_conditions_keep_their_plan() -> None:
    """Catches a plan of another hash for every study of the four conditions that was frozen before."""
    recipe = tomllib.loads(SMALL)
    four = StudyConfig.model_validate(recipe | {"conditions": ["none", "saliency", "examples", "both"]})
    assert four.plan.sha256 == AnalysisPlan().with_quota(four.allocation.per_condition).sha256
