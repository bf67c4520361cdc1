"""The page Teaching, run as Streamlit runs it over a real study, built beside the page."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.attribution.records import sign_of
from dashboard.shared.jobs import pool
from dashboard.shared.tasks import Task
from dashboard.teaching import jobs as lessons
from dashboard.teaching.jobs import HeatmapResult
from study.building.averaged import compare
from study.building.lessons import lesson
from study.building.plan import make_planner
from study.network.sources import open_sources
from study.plan.config import Saliency
from study.workspace.workspace import bundle_named
from tests.conftest import write_bundle
from tests.dashboard.conftest import PATIENCE_S, made
from tests.dashboard.test_table import cell, seen
from tests.study.studies import TINY


def script() -> None:
    from dashboard.teaching import page as teaching

    teaching.page()


@pytest.fixture
def small(workspace: Path) -> Path:
    """A study file of the workspace, not built."""
    file = workspace / "studies" / "tiny.toml"
    file.parent.mkdir()
    file.write_text(TINY)
    return file


def opened(**query: str) -> AppTest:
    app = AppTest.from_function(script)
    for name, value in query.items():
        app.query_params[name] = value
    return made(app.run())


def table(app: AppTest, name: str):
    names = [button.label.removesuffix(".csv") for button in app.download_button if button.label.endswith(".csv")]
    return dict(zip(names, (element.value for element in app.dataframe), strict=True))[name]


def captions(app: AppTest) -> list[str]:
    """Of the first two pictures."""
    return [image.proto.imgs[0].caption for image in app.get("image")[:2]]


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def test_image_and_heatmap_are_shown_as_frozen_until_they_are_computed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an empty place for the seconds in which the study is opened, though its images are there."""
    write_bundle(workspace / "bundles" / "tiny-0123456789ab", name="tiny", trials=2)
    gate = threading.Event()
    monkeypatch.setattr(lessons, "make_heatmap_task", lambda *_: Task("held", lambda _: gate.wait(PATIENCE_S)))
    monkeypatch.setattr(lessons, "make_lesson_task", lambda *_: Task("held too", lambda _: gate.wait(PATIENCE_S)))
    app = AppTest.from_function(script)
    app.query_params["study"] = "tiny"
    try:
        app.run()
        assert captions(app) == ["What the AI saw", "Heatmap"]
    finally:
        gate.set()


def test_build_stop_go_on_and_read_the_lesson(small: Path, workspace: Path) -> None:
    """Stopped, it goes on; then what the page shows is what the study's own planner gives."""
    app = press(opened(study="tiny"), "Build")
    press(app, "Stop")
    (key,) = [job.key for job in pool()._jobs.values() if not job.has_ended or job.state == "cancelled"][-1:]
    assert pool().find(key).wait(PATIENCE_S)
    app.run()
    assert any("The build was stopped" in box.value for box in app.info)
    made(press(app, "Build"))
    deadline = time.monotonic() + PATIENCE_S
    while not app.metric and time.monotonic() < deadline:
        made(app.run())
    planner = make_planner(open_sources(small), workspace / "cache")
    trial = planner.plan(lambda *_: None).trials[0]
    found = lesson(planner, trial.candidate)
    sets = table(app, "teaching-sets").set_index("policy")
    # Not to the last digit: sums in float64 may come out otherwise beside other work of the process.
    expected = {policy: chosen.p_learner for policy, chosen in found.sets.items()}
    assert sets["p_learner"].to_dict() == pytest.approx(expected, rel=1e-9)
    own = bundle_named(workspace, "tiny").manifest.trials[0]
    assert list(sets.loc["best", [f"example_{k}" for k in range(1, 5)]]) == [e.source for e in own.assets.examples]
    beliefs = table(app, "teaching-beliefs")
    best = beliefs[beliefs["policy"] == "best"]
    assert list(best["probability"]) == pytest.approx(
        [belief.probability for belief in found.beliefs["best"]], rel=1e-9
    )
    assert list(best["examples"]) == [0, 1, 2, 3, 4]
    pool_table = table(app, "teaching-pool")
    assert set(pool_table.loc[pool_table["chosen"], "id"]) == set(sets.loc["best", "example_1":"example_4"])
    assert len(pool_table) == len(found.ids) + 1
    search = table(app, "teaching-search")
    np.testing.assert_allclose(search.to_numpy(float), found.sets["best"].curve, rtol=1e-9)
    metrics = {m.label: m.value for m in app.metric}
    assert metrics["Sets scored"] == "20"
    assert metrics["Rank of the set"] == "1 of 20"
    told = compare(planner.prior, planner.material.pool.features, planner.material.pool.truth, planner.seed)
    assert told.is_far  # a prior over so few images
    assert told.warning in [box.value for box in app.warning]
    captions_now = [box.value for box in app.caption]
    (prior,) = [box for box in app.caption if box.value == f"**The learner's prior:** {told.summary}"]
    assert prior.proto.help == told.facts
    assert any("None of the 19 other random sets gives a higher P" in text for text in captions_now)
    assert any(text.startswith(sign_of("bayesian_teaching", {}).words(own.target)) for text in captions_now)
    (key,) = [one.proto.body for one in app.get("html") if "Colour key" in one.proto.body]
    low, zero, high = (float(text) for text in re.findall(r"<span>([-\d.]+)</span>", key.replace("−", "-")))
    assert low < zero < high
    assert zero == pytest.approx((low + high) / 2, abs=1e-3)
    assert captions(app) == ["What the AI saw", "Heatmap"]
    made(app.toggle(key="map_error").set_value(True).run())
    assert captions(app) == ["What the AI saw", "Standard error"]
    (key,) = [one.proto.body for one in app.get("html") if "Colour key" in one.proto.body]
    assert "Colour key: 0, " in key
    assert "−" not in key  # a standard error is never negative
    other = bundle_named(workspace, "tiny").manifest.trials[1]
    made(app.selectbox(key="trial").select(other.id).run())
    assert app.header[0].value.startswith(
        f"The AI predicts {other.target} ({other.ai_probability:.0%}); foil: {other.alternative}"
    )


def test_a_study_whose_sources_are_gone_is_a_sentence(workspace: Path) -> None:
    write_bundle(workspace / "bundles" / "old-00", name="old")
    app = opened(study="old")
    assert any("does not record its classifier" in box.value for box in app.error)


def test_an_unknown_study_in_the_link_is_said(small: Path, workspace: Path) -> None:
    assert "The link names “nowhere”, which does not exist here." in opened(study="nowhere").warning[0].value


def test_a_trial_of_the_link_that_does_not_exist_is_said(workspace: Path) -> None:
    """Catches the first trial in place of an unknown one without a word, and former links, which name all of it."""
    write_bundle(workspace / "bundles" / "old-00", name="old")
    app = opened(study="old", trial="t999")
    assert any("t999" in box.value and "does not exist" in box.value for box in app.warning)
    other = bundle_named(workspace, "old").manifest.trials[1]
    for link in (other.id, f"{other.id}: fish or key? AI wrong (adversarial)"):
        app = opened(study="old", trial=link)
        assert app.selectbox(key="trial").value == other.id
        assert not app.warning


@pytest.mark.parametrize("channels", ["sum", "largest"])
def test_the_key_of_a_heatmap_is_that_of_its_parameters(workspace: Path, channels: str) -> None:
    """Catches the key of the method's default: half of it, and its words, would be of blue that is not drawn."""
    image = seen("standard", 8)
    explanation = cell(image, "gradient", {"channels": channels}).explanation
    settings = Saliency(method="gradient", parameters={"channels": channels})
    shown = HeatmapResult(image.view, explanation, settings)

    def draw(shown: object) -> None:
        from types import SimpleNamespace

        from dashboard.teaching.heatmap import show_heatmap

        show_heatmap(shown, SimpleNamespace(target="fish"))  # type: ignore[arg-type]

    app = AppTest.from_function(draw, kwargs={"shown": shown}).run()
    assert not app.exception
    (key,) = [one.proto.body for one in app.get("html") if "Colour key" in one.proto.body]
    lowest = float(re.findall(r"<span>([^<]+)</span>", key)[0].replace("−", "-"))
    caption = next(box.value for box in app.caption if "shows through" in box.value)
    assert (lowest < 0) == ("Blue: " in caption) == (channels == "sum")
