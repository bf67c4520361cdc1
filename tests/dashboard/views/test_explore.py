"""The page Explore, run as Streamlit runs it, with the built-in classifier."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.attribution import METHODS
from core.names import format_name
from core.parameters import list_parameters
from dashboard.explore.find import orders
from dashboard.explore.parameters import HIDDEN, MOST_FORMS
from dashboard.shared import cache
from dashboard.shared.jobs import pool
from dashboard.shared.keys import IMAGE_KEY, IMAGES_KEY
from tests.dashboard.conftest import PATIENCE_S, gallery_of
from tests.dashboard.views.conftest import FEW, OTHER, script, settled


def facts(app: AppTest) -> dict[str, str]:
    return dict(app.table[0].value.to_numpy().tolist())


def numbers(app: AppTest) -> pd.DataFrame:
    """The table of a grid's certificates."""
    return app.dataframe[0].value


def test_it_begins_with_the_most_confident_error(app: AppTest) -> None:
    gallery = gallery_of("scenes", "adversarial")
    wrong = [i for i in range(FEW) if gallery.predictions.predicted[i] != gallery.images.labels[i]]
    worst = max(wrong, key=lambda i: gallery.predictions.probability[i])
    says, truth = (
        gallery.images.categories[k] for k in (gallery.predictions.predicted[worst], gallery.images.labels[worst])
    )
    assert says != truth
    assert app.header[0].value.startswith(f"The AI predicts {says}, {gallery.predictions.probability[worst]:.0%} ")
    assert f"wrong, true class: {truth}" in app.header[0].value
    assert f"context: {gallery.images.contexts[worst]}" in app.header[0].value


@pytest.mark.parametrize("order", orders.ORDERS)
def test_every_order_is_what_it_says_and_shows_every_image_once(app: AppTest, order: str) -> None:
    """Against the classifier's answers asked anew, not those the page keeps."""
    gallery, classifier = gallery_of("scenes", "adversarial"), cache.load_classifier("scenes")
    ranked = orders.rank_images(gallery, order)
    assert sorted(ranked) == list(range(FEW))
    answers = [classifier.probabilities(classifier.preprocess(gallery.images.open(i))[None])[0] for i in ranked]
    labels = [gallery.images.labels[i] for i in ranked]
    sure = np.array([float(p.max()) for p in answers])
    right = np.array([int(p.argmax()) == k for p, k in zip(answers, labels, strict=True)])
    falling = {
        "Most confident first": sure,
        "Least confident first": -sure,
        "Most uncertain first": [-float((p * p.log()).sum()) for p in answers],
        "Largest error first": [-float(p[k].log()) for p, k in zip(answers, labels, strict=True)],
    }
    if order in falling:
        assert (np.diff(falling[order]) <= 1e-4).all()
    else:
        block = ~right if order == "Confident errors first" else right
        assert block[: block.sum()].all()
        assert (np.diff(sure[: block.sum()]) <= 1e-5).all()


def test_a_picked_image_and_a_link_to_one(app: AppTest, opened) -> None:
    images = gallery_of("scenes", "adversarial").images
    for i in (7, 11):
        app.session_state[IMAGE_KEY] = f"adversarial/{i}"
        assert (f"context: {images.contexts[i]}") in app.run().header[0].value
    assert opened(method="Gradient", image="adversarial/11").header[0].value == app.header[0].value


def test_a_link_to_an_image_alone_opens_its_set(opened) -> None:
    """Catches an image of the first set in place of the one that the link names, without a word."""
    linked = opened(method="Gradient", image="standard/3")
    images = gallery_of("scenes", "standard").images
    assert linked.button_group(key="source").value == "Standard"
    before = linked.header[0].value
    assert f"context: {images.contexts[3]}" in before
    assert not linked.warning
    assert linked.run().button_group(key="source").value == "Standard"
    assert linked.button_group(key="source").select("Adversarial").run().header[0].value != before


@pytest.mark.parametrize("picture", ["adversarial/-1", "adversarial/99999", "adversarial/x", "adversarial/²", "mine/3"])
def test_a_wrong_link_shows_the_first_and_says_so(app: AppTest, opened, picture: str) -> None:
    linked = opened(method="Gradient", image=picture)
    assert linked.header[0].value == app.header[0].value
    images, _, number = picture.partition("/")
    expected = "an image of the set “mine”" if images == "mine" else f"image {number} of {images}"
    assert expected in linked.warning[0].value


def test_the_link_brings_back_method_parameters_class_and_look(opened) -> None:
    query = {
        "method": "LIME",
        "lime.grid": "4",
        "lime.samples": "64",
        "seed": "9",
        "target": "boat",
        "style": "Outline",
    }
    app = opened(**query, percent="30")
    assert facts(app)["Explained class"].startswith("boat")
    assert app.number_input(key="lime.grid").value == 4
    assert app.slider(key="percent").value == 30
    assert app.number_input(key="seed").value == 9


def test_every_method_has_its_certificate(app: AppTest) -> None:
    assert "Completeness residual" not in facts(app)
    assert facts(app)["Completeness"].startswith("does not apply: ")
    assert facts(app)["Standard error"] == "none: this method draws nothing at random"
    known = facts(settled(app.selectbox(key="method").select("integrated_gradients").run()))
    assert known["Completeness residual"].endswith("of the change to be explained")
    assert "Completeness" not in known
    known = facts(settled(app.selectbox(key="method").select("bayesian_teaching").run()))
    assert known["Effective sample size"].endswith("of 1,000 masks")
    assert "Largest standard error" in known
    assert len(app.get("image")) == 3


def test_what_identifies_a_heatmap_is_in_the_expander_alone(app: AppTest) -> None:
    """Catches 18 digits of a seed among the measures, and a seed that is nowhere."""
    known = facts(settled(app.selectbox(key="method").select("rise").run()))
    assert not {"Random seed", "Fingerprint"} & set(known)
    assert any(caption.value.startswith("Random seed: ") for caption in app.caption)


def test_a_heatmap_alone_is_drawn_once(opened) -> None:
    """Catches the same heatmap twice in a row, and the meaning of its colours lost with one of them."""
    app = opened(method="Gradient", style="Heatmap alone")
    images = app.get("image")
    assert len(images) == 2
    assert "Orange: " in str(images[1].proto)


def test_too_few_samples_are_warned_of(opened) -> None:
    app = opened(method="Bayesian teaching", **{"bayesian_teaching.samples": "20"})
    assert facts(app)["Effective sample size"].endswith("of 20 masks")
    assert app.warning[0].value.startswith("Only 20 masks were used: much of this heatmap is noise.")


def test_a_refused_parameter_is_one_sentence_in_the_maps_place(opened) -> None:
    app = opened(method="Integrated gradients", **{"integrated_gradients.steps": "0"})
    assert "steps=0: integrated gradients need at least 1 step." in [info.value for info in app.info]


def test_each_form_offers_what_its_method_declares_and_says_what_it_costs(opened) -> None:
    app = opened(method="Score-CAM")
    assert app.selectbox(key="score_cam.layer").options == ["Automatic", *cache.load_classifier("scenes").layers]
    assert any(
        c.value.startswith("A heatmap takes about 128 forward passes and 1 forward and backward pass,")
        for c in app.caption
    )


def test_long_work_waits_for_a_click_and_can_be_stopped(opened) -> None:
    app = opened(method="RISE", **{"rise.samples": "9000000"})
    (begin,) = [button for button in app.button if button.label.startswith("Compute (about ")]
    assert "Not computed yet." in [info.value for info in app.info]
    begin.click().run()
    (stop,) = [button for button in app.button if button.label == "Stop"]
    job = pool().find(stop.key.removeprefix("stop_"))
    assert job is not None
    stop.click().run()
    assert job.wait(PATIENCE_S)
    assert job.state == "cancelled"
    assert "Not computed yet." in [info.value for info in app.run().info]
    assert any(button.label.startswith("Compute") for button in app.button)


def test_what_was_left_goes_on_and_is_found_again(opened) -> None:
    """Another session, as after closing the window, finds the very same map without making it."""
    query = {"method": "RISE", "rise.samples": "3001", "image": "adversarial/5"}
    first = AppTest.from_function(script)
    for key, value in query.items():
        first.query_params[key] = value
    first.run()
    before = {key for key, job in pool()._jobs.items() if not job.has_ended}
    again = opened(**query)
    assert facts(again)["Largest standard error"]
    assert all(pool().find(key) is not None for key in before)


def test_another_class_can_be_explained(app: AppTest) -> None:
    own = facts(app)["Explained class"]
    categories = cache.load_classifier("scenes").categories
    other = next(name for name in categories if not own.startswith(name))
    assert facts(settled(app.selectbox(key="target").select(other).run()))["Explained class"].startswith(other)


def test_faithfulness_is_measured_when_asked_for(opened) -> None:
    app = opened(method="Gradient", faithfulness="true")
    deadline = time.monotonic() + PATIENCE_S
    while not app.get("plotly_chart") and time.monotonic() < deadline:
        app.run()
    (table,) = [one.value.set_index("Measure") for one in app.table if "Better" in one.value.columns]
    assert table.loc["Area under the deletion curve", "Better"] == "smaller"
    assert table.loc["Area under the insertion curve", "Better"] == "larger"
    assert 0 < float(table.loc["Area under the insertion curve", "Value"]) < 1
    assert table.loc["Strongest pixel on the object", "Value"] in ("yes", "no")
    assert "Relevance mass on the object" in table.index
    assert any("50 steps: deletion replaces pixels by the mean" in caption.value for caption in app.caption)
    while time.monotonic() < deadline and not any("layers re-initialised" in c.value for c in app.caption):
        app.run()
    (said,) = [c.value for c in app.caption if "layers re-initialised" in c.value]
    assert "(10 changes tried)" in said


def grid(opened, **query: str) -> AppTest:
    return opened(view="Grid", **{"bayesian_teaching.samples": "64"}, **query)


def test_a_grid_of_methods_by_images(opened) -> None:
    app = grid(opened)
    found = numbers(app)
    assert list(found["method"]) == [m for m in ("Gradient", "Grad-CAM", "Bayesian teaching") for _ in range(3)]
    assert found["probability"].notna().all()
    assert found["image"].nunique() == 3
    app.session_state[IMAGES_KEY] = "adversarial/7,9"
    assert list(numbers(settled(app.run()))["image"].unique()) == ["adversarial/0/000007", "adversarial/0/000009"]


def test_a_grid_of_methods_by_classes_has_the_answers_and_the_truth_once_each(opened) -> None:
    app = grid(opened, columns="Classes", image="adversarial/7", methods="Gradient")
    gallery, classifier = gallery_of("scenes", "adversarial"), cache.load_classifier("scenes")
    p = classifier.probabilities(classifier.preprocess(gallery.images.open(7))[None])[0]
    ranked = [classifier.categories[int(k)] for k in p.argsort(descending=True)]
    truth = gallery.images.categories[gallery.images.labels[7]]
    assert list(numbers(app)["class"]) == list(dict.fromkeys([*ranked[:3], truth]))


def test_a_method_that_does_not_apply_leaves_the_others_their_maps(opened, workspace: Path) -> None:
    (workspace / "models").mkdir()
    (workspace / "models" / "flat.py").write_text(OTHER.replace("return network", "return _flat(network)") + FLAT)
    app = opened(view="Compare models", method="Grad-CAM")
    found = numbers(app)
    assert list(found["classifier"]) == ["scenes", "models/flat.py:build"]
    assert found["note"][1].startswith("flat has no layer with feature maps (B, K, h, w)")
    assert found["probability"].notna().tolist() == [True, False]


FLAT = """

def _flat(network):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 96 * 96, 16))
"""


def test_two_classifiers_of_one_image(opened, workspace: Path) -> None:
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(OTHER)
    app = opened(view="Compare models", method="Gradient", target="boat")
    found = numbers(app)
    assert list(found["classifier"]) == ["scenes", "models/other.py:build"]
    assert list(found["class"]) == ["boat", "boat"]
    assert found["probability"].nunique() == 2


def test_without_another_file_the_built_in_networks_are_compared(opened) -> None:
    """Catches a comparison that needs a file although there are networks with a known difference."""
    app = opened(view="Compare models", method="Gradient")
    assert list(numbers(app)["classifier"]) == ["scenes", "scenes:blind"]


def test_all_images_and_how_many_the_ai_gets_right(opened) -> None:
    app = opened(view="Gallery")
    right = int(gallery_of("scenes", "adversarial").predictions.correct.sum())
    assert f"{FEW} images; {right} of {FEW} predictions are correct ({right / FEW:.1%})." in [
        c.value for c in app.caption
    ]


@pytest.mark.parametrize("start", range(0, len(METHODS), MOST_FORMS))
def test_every_registered_method_has_a_form_of_what_it_declares(opened, start: int) -> None:
    """A parameter of a kind the form does not know would break the page; a method without one would hide it."""
    methods = list(METHODS)[start : start + MOST_FORMS]
    app = AppTest.from_function(script)
    app.query_params["view"] = "Grid"
    app.query_params["methods"] = [format_name(method) for method in methods]
    app.query_params["images"] = "adversarial/1"
    app.run()
    assert not app.exception
    assert app.multiselect(key="methods").value == methods
    fields = {w.key for kind in ("number_input", "selectbox", "toggle", "text_input") for w in app.get(kind)}
    expected = {f"{m}.{p.name}" for m in methods for p in list_parameters(METHODS[m]) if p.name not in HIDDEN}
    assert expected - fields == set()
    helps = {w.key: w.help for kind in ("number_input", "selectbox", "toggle", "text_input") for w in app.get(kind)}
    assert [key for key in expected if not helps[key]] == []
    for key, job in list(pool()._jobs.items()):
        if not job.has_ended:
            pool().cancel(key)


def test_a_field_says_what_its_parameter_means(opened) -> None:
    """As written in the docstring and in a shared type. Catches the text of another field, and brackets as markup."""
    app = opened(method="SmoothGrad")
    assert app.number_input(key="smoothgrad.samples").help == "Number of noisy copies of the image."
    app = opened(method="LIME")
    assert app.number_input(key="lime.ridge").help == "Penalty on the squared weights of the cells; 0 for none."
    assert app.selectbox(key="lime.fill").help == "Colour of masked parts: the data's mean colour, or black."
    app = opened(method="LRP composite")
    assert app.selectbox(key="lrp_composite.first").help.endswith("inputs of black and white (z_box).")
