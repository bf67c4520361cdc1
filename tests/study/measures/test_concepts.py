"""A concept's pull on single pictures, held against a closed form of the last layers and interventions by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression

from core.attribution.places.activations import activation_and_gradient
from core.concepts.sensitivity import derivatives, directions_of
from core.concepts.tcav import tcav
from core.errors import ForetellError
from core.network.device import draw_seed
from inquiry.concepts.conceptsets import Concept, draw_concept_inputs
from tests.study.measures.grounds import asked, ground

PICTURES, RUNS = 16, 4
SEA = {"concept": "context=sea", "images": PICTURES, "runs": RUNS}


def shown(on):
    """What the vectors are learned from, drawn as the study draws it."""
    concept, rows = Concept("context=sea", "context", "sea"), np.arange(len(on.sets["pool"]))
    return draw_concept_inputs(on.classifier, concept, on.sets["pool"], rows, PICTURES, np.random.default_rng(7))


def features(on, inputs):
    """(N, K, h, w): what enters the mean and the linear layer at the end of the built-in network."""
    return activation_and_gradient(
        on.classifier, inputs, torch.zeros(len(inputs), dtype=torch.long), "features"
    ).activation


def by_hand(on, target):
    """W of the answer times the mean over the places of each normal that scikit-learn finds: (runs,)."""
    own, pool = (features(on, pictures) for pictures in shown(on))
    draws = torch.Generator().manual_seed(draw_seed(torch.Generator().manual_seed(7)))
    learned, found = torch.arange(PICTURES) % 4 != 3, []
    for _ in range(RUNS):
        others = pool[torch.randperm(len(pool), generator=draws)[:PICTURES]]
        x = torch.cat([own[learned], others[learned]]).flatten(1).double().numpy()
        y = np.repeat([1, 0], int(learned.sum()))
        fit = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit((x - x.mean(0)) / x.std(ddof=1), y)
        normal = (fit.coef_[0] / np.linalg.norm(fit.coef_[0])).reshape(own.shape[1:]).mean((1, 2))
        found.append(float(on.classifier.head[target, :-1].double().numpy() @ normal))
    return np.array(found)


def test_sensitivity_is_the_slope_of_the_answer_along_the_concept(tmp_path):
    """Catches a gradient of another class or layer, a vector that is not of length 1, and an error that is a spread."""
    on = ground(tmp_path, "concept_sensitivity", **SEA)
    for index in (2, 5):
        candidate, number = asked(on, "adversarial", index)
        slopes = by_hand(on, candidate.target)
        assert number.value == pytest.approx(slopes.mean(), rel=1e-3)
        assert number.error == pytest.approx(slopes.std(ddof=1) / RUNS**0.5, rel=2e-3)


def test_the_mean_over_a_class_is_what_tcav_says_of_it():
    """Catches vectors or gradients that are not those of the test of the class: at a layer before others."""
    on = ground(None, "concept_sensitivity", **SEA)
    concept, others = shown(on)
    images = torch.stack([on.classifier.preprocess(on.sets["standard"].open(i)) for i in range(5)])
    seeded = [torch.Generator().manual_seed(3) for _ in range(2)]
    found = directions_of(on.classifier, "features.3", concept, others, runs=3, generator=seeded[0])
    slopes = derivatives(on.classifier, images, [2] * 5, found)
    (whole,) = tcav(on.classifier, ["features.3"], concept, others, images, 2, runs=3, concepts=2, generator=seeded[1])
    assert float(slopes.mean()) == pytest.approx(whole.sensitivity, rel=1e-4)
    assert found.accuracy == pytest.approx(whole.accuracy)


def test_the_effect_is_that_of_painting_the_scene_again(tmp_path):
    """Catches another class than the answer, an effect against one value only, and signs turned."""
    on = ground(tmp_path, "concept_effect", concept="context=sea")
    candidate, number = asked(on, "standard", 4)
    factor = on.sets["standard"].factors["context"]
    p = {
        value: float(
            on.classifier.probabilities(on.classifier.preprocess(factor.do(4, value))[None])[0, candidate.target]
        )
        for value in factor.values
    }
    sea = p.pop("sea")
    assert number.value == pytest.approx(sea - np.mean(list(p.values())), abs=1e-5)
    assert number.error == 0


def test_a_folder_of_images_is_a_concept_too(tmp_path):
    """Catches folders sought in the working folder instead of beside the study file."""
    drawn(tmp_path / "blue", (0, 0, 255), 10)
    drawn(tmp_path / "any", (128, 128, 128), 30)
    on = ground(tmp_path, "concept_sensitivity", concept="blue", random="any", images=10, runs=2)
    assert np.isfinite(asked(on, "adversarial", 0)[1].value)


def test_a_concept_that_the_layer_does_not_know_is_refused(tmp_path):
    """Catches strata by a vector that tells nothing apart: pictures of noise against pictures of the same noise."""
    drawn(tmp_path / "one", (128, 128, 128), 40)
    drawn(tmp_path / "same", (128, 128, 128), 120)
    given = {"concept": "one", "random": "same", "layer": "pool", "images": 40, "runs": 4}
    with pytest.raises(
        ForetellError, match=r"layer pool barely represents one: vectors classify .* Name another layer"
    ):
        asked(ground(tmp_path, "concept_sensitivity", **given), "adversarial", 0)


def drawn(folder, colour, count):
    """Pictures of noise around a colour."""
    rng = np.random.default_rng(count)
    folder.mkdir()
    for i in range(count):
        noise = np.clip(rng.normal(colour, 20, (96, 96, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(noise).save(folder / f"{i}.png")


@pytest.mark.parametrize(
    ("measure", "given", "sentence"),
    [
        ("concept_effect", {"concept": "contxt=sea"}, "can be changed in"),
        ("concept_effect", {"concept": "context=see"}, "Did you mean 'sea'"),
        ("concept_effect", {"concept": "context"}, "the strata need one concept: name one of context="),
        ("concept_sensitivity", {**SEA, "layer": "featres.1"}, "has no layer 'featres.1'. Did you mean 'features.1'"),
        ("concept_sensitivity", {**SEA, "images": 4}, "a concept needs at least 8 images"),
        ("concept_sensitivity", {**SEA, "images": 100}, "give fewer"),
    ],
)
def test_a_concept_that_cannot_be_asked_is_refused(tmp_path, measure, given, sentence):
    """Catches strata by a concept that is none, by several, or that the layer does not know."""
    with pytest.raises(ForetellError, match=sentence):
        asked(ground(tmp_path, measure, **given), "adversarial", 0)


def test_images_that_cannot_be_changed_have_no_effect(tmp_path):
    """Catches a study of photographs that fails without saying which measures there are for it."""
    on = ground(tmp_path, "concept_effect", concept="context=sea")
    folder = {**on.sets, "standard": replace(on.sets["standard"], name="folder/mine", factors={})}
    with pytest.raises(ForetellError, match=r"folder/mine cannot be changed\. Give sets .*margin, concept_sensitivity"):
        asked(replace(on, sets=folder), "adversarial", 0)
