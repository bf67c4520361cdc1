"""The page Explore, run as Streamlit runs it, with the built-in classifier."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import cache
from dashboard.widgets import picker

FEW = 48


def script() -> None:
    from dashboard.views import explore

    explore.page()


@pytest.fixture
def app(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(cache, "PICTURES", FEW)
    app = AppTest.from_function(script, default_timeout=60)
    app.query_params["method"] = "gradient"
    return app.run()


def facts(app: AppTest) -> dict[str, str]:
    assert not app.exception
    return dict(app.table[0].value.to_numpy().tolist())


def test_it_begins_with_the_most_confident_error(app: AppTest) -> None:
    assert not app.exception
    gallery = cache.gallery("adversarial")
    wrong = [i for i in range(FEW) if gallery.answers.predicted[i] != gallery.images.labels[i]]
    worst = max(wrong, key=lambda i: gallery.answers.probability[i])
    says, truth = (
        gallery.images.categories[k] for k in (gallery.answers.predicted[worst], gallery.images.labels[worst])
    )
    assert says != truth
    assert app.subheader[0].value.startswith(f"The AI says {says}, {gallery.answers.probability[worst]:.0%} ")
    assert f"wrong, truth: {truth}" in app.subheader[0].value
    assert f"place: {gallery.images.contexts[worst]}" in app.subheader[0].value


@pytest.mark.parametrize("order", picker.ORDERS)
def test_every_order_shows_every_picture_once(app: AppTest, order: str) -> None:
    gallery = cache.gallery("adversarial")
    ranked = picker.ranking(gallery, order)
    assert sorted(ranked) == list(range(FEW))
    sure = gallery.answers.probability[ranked]
    right = gallery.answers.correct[ranked]
    if order == "Least sure first":
        assert (np.diff(sure) >= 0).all()
    else:
        block = ~right if order == "Confident errors first" else right
        assert block[: block.sum()].all()
        assert (np.diff(sure[: block.sum()]) <= 0).all()


def test_a_picked_picture_and_a_link_to_one(app: AppTest) -> None:
    labels = cache.gallery("adversarial").images
    for i in (7, 11):
        app.session_state["explore_picture"] = f"adversarial/{i}"
        assert (f"place: {labels.contexts[i]}") in app.run().subheader[0].value
    linked = AppTest.from_function(script, default_timeout=60)
    linked.query_params["method"], linked.query_params["picture"] = "gradient", "7"
    assert linked.run().subheader[0].value == _of(app, 7)


def _of(app: AppTest, i: int) -> str:
    app.session_state["explore_picture"] = f"adversarial/{i}"
    return str(app.run().subheader[0].value)


@pytest.mark.parametrize("picture", ["-1", "99999", "x", "²"])
def test_a_wrong_link_shows_the_first(app: AppTest, picture: str) -> None:
    linked = AppTest.from_function(script, default_timeout=60)
    linked.query_params["method"], linked.query_params["picture"] = "gradient", picture
    assert linked.run().subheader[0].value == app.subheader[0].value


def test_every_method_has_its_certificate(app: AppTest) -> None:
    assert "Completeness residual" not in facts(app)
    known = facts(app.selectbox(key="method").select("integrated_gradients").run())
    assert known["Completeness residual"].endswith("of the change to be explained")
    app.selectbox(key="method").select("bayesian_teaching").run()
    known = facts(app)
    assert known["Effective sample size"].endswith("of 1,000 masks")
    assert {"Largest standard error", "Seed of the draws", "Fingerprint"} <= set(known)
    assert len(app.get("image")) == 3


def test_too_few_samples_are_warned_of(app: AppTest) -> None:
    app.selectbox(key="method").select("bayesian_teaching").run()
    app.number_input(key="parameter_bayesian_teaching_samples").set_value(20)
    next(b for b in app.button if b.label == "Explain again").click().run()
    assert facts(app)["Effective sample size"].endswith("of 20 masks")
    assert "of 20 masks count" in app.warning[0].value


def test_a_refused_parameter_is_one_sentence(app: AppTest) -> None:
    app.selectbox(key="method").select("integrated_gradients").run()
    app.number_input(key="parameter_integrated_gradients_steps").set_value(0)
    next(b for b in app.button if b.label == "Explain again").click().run()
    assert not app.exception
    assert [e.value for e in app.error] == ["steps=0: integrated gradients need at least 1 step."]


def test_another_class_can_be_explained(app: AppTest) -> None:
    own = facts(app)["Explained class"]
    categories = cache.classifier("scenes").categories
    other = next(k for k, name in enumerate(categories) if not own.startswith(name))
    app.selectbox(key="target").select(app.selectbox(key="target").options[other + 1]).run()
    assert facts(app)["Explained class"].startswith(categories[other])


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    app.button_group(key="source_scenes").select("Upload").run()
    return app.file_uploader(key="explore_file").set_value((name, content, "image/png")).run()


def test_a_bad_upload_is_one_sentence(app: AppTest) -> None:
    upload(app, "notes.png", b"not a picture")
    assert not app.exception
    assert [e.value for e in app.error] == ["notes.png cannot be read as a picture. Give a PNG, JPEG or WebP file."]


def test_an_own_picture_is_explained_without_a_verdict(app: AppTest) -> None:
    stream = io.BytesIO()
    cache.gallery("adversarial").images.open(3).resize((200, 150)).save(stream, "PNG")
    upload(app, "mine.png", stream.getvalue())
    assert not app.exception
    assert app.subheader[0].value.startswith("The AI says ")
    assert "badge" not in app.subheader[0].value
    assert len(app.get("image")) == 3


def test_a_link_to_an_unknown_method_shows_the_default(app: AppTest) -> None:
    linked = AppTest.from_function(script, default_timeout=60)
    linked.query_params["method"] = "gradients"
    assert not linked.run().exception
    assert linked.selectbox(key="method").value == "bayesian_teaching"
