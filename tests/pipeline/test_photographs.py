"""The whole pipeline on what no one here made: real photographs, real networks, from the study file to Table 1."""

from __future__ import annotations

import csv
import json
from collections import Counter

import numpy as np
import pytest

from core.network.classifier import Classifier
from inquiry.files.explain import ExplanationQuery, explain_files, open_image
from study.analysis.report import results
from study.analysis.responses import reading as responses
from study.bundle import TRIAL_TYPES
from study.collection.export import export
from study.network.sources import open_classifier
from study.plan.mixture import MIXTURE, parse_mixture
from study.service import Service
from study.simulate import simulate
from tests.browser.participation import agree
from tests.server import serving

pytestmark = [pytest.mark.real, pytest.mark.slow]
PRACTICE, MAIN = 2, 12
THINKING_MS = 350


def test_the_network_does_on_the_folders_what_is_published(photographs):
    """ResNet-20: .810 on the JPEG test images, .650 on the shifted photographs (the data's own README)."""
    manifest = photographs.bundle.manifest
    assert manifest.classifier["accuracy"]["standard"] == pytest.approx(0.810, abs=5e-4)
    assert manifest.classifier["accuracy"]["adversarial"] == pytest.approx(0.650, abs=5e-4)
    assert [manifest.sets[role]["images"] for role in ("pool", "standard", "adversarial")] == [4000, 10000, 214]


def test_trials_of_all_three_types_with_maps_and_examples(photographs):
    trials = photographs.bundle.manifest.trials
    assert [t.trial_type for t in trials] == list(TRIAL_TYPES) * 4
    assert len({t.truth for t in trials}) == 4
    for trial in trials:
        assert trial.saliency.relevance_on == "centre of the picture"
        assert trial.teaching.p_learner >= trial.teaching.p_prior - 0.05
        assert len({e.source for e in trial.assets.examples}) == 4
        # Examples are training images of the category they stand for.
        assert all(e.source.split("/")[0] == e.category for e in trial.assets.examples)


def test_forty_simulated_people_and_the_results(photographs, tmp_path):
    with Service(tmp_path) as service:
        name = service.researcher.open_study(photographs.bundle.folder, 10)
        simulate(service, name, 40, parse_mixture(MIXTURE), 0)
        path = export(service.researcher, name, tmp_path / "responses.csv", ("sim",))
    analysis = results.write(responses.read(path), tmp_path / "results").analysis
    models = json.loads((tmp_path / "results" / "models.json").read_text())
    assert models["models"]["null"]["n"] == 40 * 12
    assert [m["df"] for m in models["models"].values()] == sorted(m["df"] for m in models["models"].values())
    assert all(np.isfinite(test["chisq"]) for test in models["lrt"])
    assert analysis.as_dict() == models
    assert (tmp_path / "results" / "table1.tex").stat().st_size > 200


@pytest.fixture(scope="module")
def mobilenet(real) -> Classifier:
    return open_classifier(str(real / "imagenet" / "mobilenet_v2.py") + ":build", real)


def test_mobilenet_says_of_the_photographs_what_its_index_says(real, mobilenet):
    """Top-1 class and probability against the index made with another implementation and another JPEG decoder."""
    with (real / "imagenet" / "index.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (real / "imagenet" / row["path"]).is_file()][:24]
    differences = []
    for row in rows:
        picture = open_image(real / "imagenet" / row["path"])
        probabilities = mobilenet.probabilities(mobilenet.preprocess(picture)[None])[0]
        assert int(probabilities.argmax()) == int(row["mobilenet_v2_top1"])
        differences.append(abs(float(probabilities.max()) - float(row["p_top1"])))
    assert max(differences) < 0.01
    assert np.mean(differences) < 1e-3


def test_explain_photographs_with_mobilenet(real, tmp_path):
    """Every method on a confident error and a right answer: maps of the network's size, complete and believable."""
    with (real / "imagenet" / "index.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (real / "imagenet" / row["path"]).is_file()]
    wrong = max((r for r in rows if r["mobilenet_v2_top1"] != r["class_index"]), key=lambda r: float(r["p_top1"]))
    right = max((r for r in rows if r["mobilenet_v2_top1"] == r["class_index"]), key=lambda r: float(r["p_top1"]))
    paths = [real / "imagenet" / row["path"] for row in (wrong, right)]
    model = str(real / "imagenet" / "mobilenet_v2.py") + ":build"
    explain_files(ExplanationQuery(model, ("gradient",)), paths, tmp_path)
    explain_files(ExplanationQuery(model, ("integrated_gradients",), parameters={"steps": "64"}), paths, tmp_path)
    explain_files(ExplanationQuery(model, ("bayesian_teaching",), parameters={"samples": "32"}), paths, tmp_path)
    for path, row in zip(paths, (wrong, right), strict=True):
        for name in ("gradient", "integrated_gradients", "bayesian_teaching"):
            certificate = json.loads((tmp_path / f"{path.stem}.{name}.json").read_text())
            assert certificate["target"] == int(row["mobilenet_v2_top1"])
            values = np.load(tmp_path / f"{path.stem}.{name}.npy")
            assert values.shape == (224, 224)
            assert np.isfinite(values).all()
            if name == "integrated_gradients":
                assert abs(certificate["completeness"]) < 0.15


@pytest.mark.browser
def test_a_person_takes_the_whole_study_and_reloads_in_the_middle(chromium, photographs, tmp_path):
    """One participant's trials of the study of real photographs, in a real Chromium."""
    with Service(tmp_path) as service:
        service.researcher.open_study(photographs.bundle.folder, per_condition=1)
    with serving(tmp_path) as server:
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.goto(f"{server.url}/run/photographs")
        agree(page)
        page.click("#understood")
        page.click("#seen")
        page.click("#begin")
        for number in range(1, PRACTICE + 1):
            answer(page, number, "f")
            page.click("#next")
        page.click("#begin")
        for number in range(1, MAIN + 1):
            if number == 6:
                wait(page, number)
                page.reload()
                page.click("#begin")
            answer(page, number, "fj"[number % 2])
        page.wait_for_selector("#end:not([hidden])")
        assert page.text_content("#code")
        page.close()
    with Service(tmp_path) as service:
        frame = service.researcher.responses("photographs", ("live",))
        assert service.researcher.verify() == []
    assert len(frame) == MAIN
    assert set(Counter(frame["item"]).values()) == {1}
    assert set(frame["item"]) == {trial.id for trial in photographs.bundle.manifest.trials}
    assert frame["trial"].tolist() == list(range(1, MAIN + 1))
    assert frame.loc[frame["resumed"] == 1, "trial"].tolist() == [6]
    assert frame["rt_ms"].between(THINKING_MS - 40, 5000).all()


def wait(page, number: int) -> None:
    page.wait_for_selector(f'#trial[data-phase="shown"][data-number="{number}"]')


def answer(page, number: int, key: str) -> None:
    wait(page, number)
    page.wait_for_timeout(THINKING_MS)  # how long a person looks; the response time must show it
    page.keyboard.press(key)
