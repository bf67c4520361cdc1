"""The Explore page's view of a whole set: points, doubtful labels and outliers are those of the engine."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from core.types import silent
from dashboard.explore.debugging import points
from dashboard.explore.debugging import view as debugging
from dashboard.explore.debugging.jobs import make_noise_task
from dashboard.explore.debugging.jobs import start_debugging_job as debug_job
from dashboard.shared import cache
from dashboard.shared.jobs import pool
from inquiry.debugging.debugging import debug_classifier
from inquiry.debugging.slices import describe_result, describe_slice, format_slice
from tests.dashboard.conftest import PATIENCE_S, gallery_of
from tests.dashboard.views.conftest import FEW, OTHER, script, settled
from tests.dashboard.views.test_explore import FLAT


@pytest.fixture
def view(opened, monkeypatch):
    """Opens the view by a link, when its set is there; on a busy machine it would ask before long work."""
    monkeypatch.setattr("dashboard.explore.debugging.jobs.estimate_seconds", lambda *_: 1.0)

    def by(model: str = "scenes", name: str = "adversarial", **query: str) -> AppTest:
        assert debug_job(model, name).wait(PATIENCE_S)
        return settled(opened(view="Debugging", classifier=model, **query))

    return by


@pytest.fixture
def found(opened, workspace: Path):
    """The engine asked directly."""
    images = gallery_of("scenes", "adversarial").images
    return debug_classifier(cache.load_classifier("scenes"), images, workspace / "other", silent)


def drawn(app: AppTest) -> dict[str, dict[int, tuple[float, float]]]:
    """The chart's points by the name of their group: picture, and where it lies."""
    (chart,) = app.get("plotly_chart")
    traces = json.loads(chart.proto.spec)["data"]
    return {
        trace["name"]: {
            int(of[0]): (x, y)
            for of, x, y in zip(trace["customdata"], _numbers(trace["x"]), _numbers(trace["y"]), strict=True)
        }
        for trace in traces
    }


def _numbers(values) -> list[float]:
    """Plotly packs long arrays."""
    if isinstance(values, list):
        return values
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).tolist()


def test_every_image_is_one_point_of_its_kind(view, found) -> None:
    groups = drawn(view())
    placed = {i: at for group in groups.values() for i, at in group.items()}
    assert sorted(placed) == list(range(FEW))
    assert sum(map(len, groups.values())) == FEW
    sure = found.predictions.probability
    np.testing.assert_allclose([placed[i][0] for i in range(FEW)], sure, atol=1e-5)
    np.testing.assert_allclose([placed[i][1] for i in range(FEW)], found.predictions.entropy, atol=1e-4)
    wrong = np.flatnonzero(~found.predictions.correct)
    assert sorted(groups[points.CONFIDENT]) == [i for i in wrong if sure[i] >= 0.8]
    assert sorted(groups[points.OTHER_ERROR]) == [i for i in wrong if sure[i] < 0.8]
    assert sorted(groups[points.RIGHT]) == np.flatnonzero(found.predictions.correct).tolist()


def test_the_bound_of_confidence_is_the_readers(view, found) -> None:
    groups = drawn(view(confident="50"))
    sure = ~found.predictions.correct & (found.predictions.probability >= 0.5)
    assert len(groups[points.CONFIDENT]) == int(sure.sum())


def test_the_feature_space_is_the_plane_of_the_features(view, found) -> None:
    groups = drawn(view(place="Feature space", colour="Nothing"))
    (group,) = groups.values()
    np.testing.assert_allclose([group[i] for i in range(FEW)], found.places, atol=1e-3)


def test_colours_by_class_leave_the_rest_grey(view, found) -> None:
    groups = drawn(view(colour="The AI's prediction"))
    names = found.class_names[found.predictions.predicted]
    assert len(groups) == len(points.PALETTE) + 1
    for name in set(groups) - {points.OTHER}:
        assert sorted(groups[name]) == np.flatnonzero(names == name).tolist()
    assert list(groups)[-1] == points.OTHER


def test_doubt_under_noise_is_that_of_the_sampler(view, found, monkeypatch) -> None:
    monkeypatch.setattr("dashboard.explore.debugging.jobs.PASSES", 6)
    monkeypatch.setattr("dashboard.explore.debugging.view.PASSES", 6)
    app = view(uncertainty="Inserted dropout, 6 passes", **{"uncertainty.measure": "Mutual information"})
    placed = {i: at[1] for group in drawn(app).values() for i, at in group.items()}
    classifier = cache.load_classifier("scenes")
    table = make_noise_task(classifier, "inserted_dropout", found.images).compute(silent)
    np.testing.assert_allclose([placed[i] for i in range(FEW)], table["mutual_information"] / np.log(2), atol=1e-4)
    error = table["mutual_information_error"] / np.log(2)  # bits
    said = f"median {error.median():.3f}, maximum {error.max():.3f}."
    assert any(caption.value.endswith(said) for caption in app.caption)


def test_a_sampler_that_does_not_apply_says_so(view) -> None:
    app = view(uncertainty="MC dropout, 100 passes")
    assert any("scenes has no dropout" in error.value for error in app.error)
    assert not app.get("plotly_chart")


def test_likely_label_errors_with_what_to_make_of_them(view, found) -> None:
    app = view(part=debugging.LABELS)
    doubtful = found.find_label_errors()
    right = found.predictions.correct.mean()
    (said,) = [c.value for c in app.caption if "confident learning" in c.value]
    assert said.startswith(f"Likely label errors by confident learning: {len(doubtful)} of {FEW}.")
    assert f"{right:.1%} of the predictions for these images are correct" in said
    assert found.read is None  # the set is small
    assert debugging.NO_READER in said
    assert right < debugging.HARDLY
    assert [one.value for one in app.warning] == [
        "The AI is wrong about most of these images, so it is a poor judge of their labels. "
        "An image listed here is more likely an error of the AI than a wrong label."
    ]
    table = app.dataframe[0].value
    assert table["image"].tolist() == [found.images.ids[i] for i in doubtful]


def test_a_reader_is_spoken_of_where_there_is_one(view, found, monkeypatch) -> None:
    """Catches a caption about a judge that is not there, or none about one that is."""
    monkeypatch.setattr(
        "dashboard.explore.debugging.jobs.debug_classifier", lambda *_: replace(found, read=found.labels)
    )
    (said,) = [c.value for c in view(part=debugging.LABELS).caption if "confident learning" in c.value]
    assert debugging.READER in said
    assert debugging.NO_READER not in said


def test_predictions_that_err_too_often_do_not_judge_alone_unasked(view, found, monkeypatch) -> None:
    """Catches a list that is mostly errors of the AI as the first that is seen; a link to it still opens it."""
    monkeypatch.setattr(
        "dashboard.explore.debugging.jobs.debug_classifier", lambda *_: replace(found, read=found.labels)
    )
    assert view(part=debugging.LABELS).get("button_group")[-1].value == "both"
    count = len(found.find_label_errors("predictions"))
    asked = view(part=debugging.LABELS, judge=f"The AI's predictions: {count}")
    assert asked.get("button_group")[-1].value == "predictions"


def test_a_set_that_is_long_in_opening_can_be_stopped_and_begun_again(opened, monkeypatch) -> None:
    """Catches a set of thousands that a page cannot be kept from asking about, and one that begins again unasked."""
    free = Event()

    def slow(classifier, images, cache, progress):
        while not free.wait(0.02):
            progress(1, 5, "reading the features")
        return debug_classifier(classifier, images, cache, progress)

    monkeypatch.setattr("dashboard.explore.debugging.jobs.debug_classifier", slow)
    app = AppTest.from_function(script)
    app.query_params["view"] = "Debugging"
    app.run()
    stop = next(button for button in app.button if button.label == "Stop")
    stop.click().run()
    for _ in range(2):  # the second is what the page asked for when it was drawn again
        job = pool().find(stop.key.removeprefix("stop_"))
        assert job is not None
        assert job.wait(300)
        assert job.state == "cancelled"
        app.run()
    free.set()
    assert not [button for button in app.button if button.label == "Stop"]
    next(button for button in app.button if button.label == "Resume").click().run()
    assert debug_job("scenes", "adversarial").wait(PATIENCE_S)
    assert settled(app).get("plotly_chart")


def test_outliers_come_farthest_first(view, found) -> None:
    table = view(part=debugging.OUTLIERS).dataframe[0].value
    assert table["image"].tolist() == [found.images.ids[i] for i in found.outliers()]
    np.testing.assert_allclose(table["distance"], np.sort(found.near.isolation)[::-1], atol=1e-4)


def test_a_set_without_labels_is_coloured_by_answers(view, workspace: Path) -> None:
    images = gallery_of("scenes", "adversarial").images
    folder = workspace / "pictures" / "mine" / "all"
    folder.mkdir(parents=True)
    for i in range(12):
        images.open(i).save(folder / f"{i:02d}.png")
    app = view(name="mine", source="mine")
    assert app.selectbox(key="colour").options == ["The AI's prediction", "Label", "Nothing"]
    assert sum(map(len, drawn(app).values())) == 12
    assert "12 images; no label is one of the AI's classes." in [c.value for c in app.caption]
    assert not app.error
    assert "Name the folders" in settled(app.button_group(key="part").select(debugging.LABELS).run()).info[0].value


def test_a_network_without_features_keeps_its_points(view, workspace: Path) -> None:
    (workspace / "models").mkdir()
    convolved = FLAT.replace("torch.nn.Flatten(), torch.nn.Linear(3 * 96 * 96, 16)", CONVOLVED)
    (workspace / "models" / "flat.py").write_text(OTHER.replace("return network", "return _flat(network)") + convolved)
    folder = workspace / "pictures" / "mine" / "boat"
    folder.mkdir(parents=True)
    for i in range(3):
        Image.new("RGB", (96, 96), (80 * i, 0, 0)).save(folder / f"{i}.png")
    app = view("models/flat.py", "mine")
    assert app.selectbox(key="place").options == [debugging.CONFIDENCE]
    assert sum(map(len, drawn(app).values())) == 3
    app = settled(app.button_group(key="part").select(debugging.OUTLIERS).run())
    assert "one linear layer" in app.info[0].value


CONVOLVED = "torch.nn.Conv2d(3, 16, 5, 8), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()"


def test_error_slices_are_the_engines(view, workspace: Path, monkeypatch) -> None:
    """The printed sentences against the engine asked directly.

    Catches slices of another set, no overview of them, and an error rate without its images, which is another one
    elsewhere on the page.
    """
    monkeypatch.setattr(cache, "SCENE_COUNT", 320)
    images = gallery_of("scenes", "standard").images
    found = debug_classifier(cache.load_classifier("scenes"), images, workspace / "other", silent)
    app = view(name="standard", source="Standard", part="Error slices")
    assert not app.exception
    said = describe_result(found.slices, found.predictions)
    assert said in [one.value.replace("\\", "") for one in app.markdown]
    tested, errors = found.slices.tested, ~found.predictions.correct
    assert f"errs on {errors[tested].mean():.1%} of these {len(tested)} images" in said
    assert f"on {errors.mean():.1%} of all {len(images)}." in said
    (chart,) = app.get("plotly_chart")
    bars = json.loads(chart.proto.spec)["data"][0]
    np.testing.assert_allclose(_numbers(bars["x"]), [one.errors / len(one.members) for one in found.slices.slices])
    (box,) = [one for one in app.selectbox if one.label == "Slice"]
    told = [describe_slice(one, images, found.predictions, found.class_names) for one in found.slices.slices]
    assert box.options == [
        format_slice(k, one, said) for k, (one, said) in enumerate(zip(found.slices.slices, told, strict=True), 1)
    ]


def test_without_slices_the_page_says_why(view, monkeypatch) -> None:
    """Catches a list of no slices."""
    monkeypatch.setattr("core.debugging.slices.LEAST", 10_000)
    app = view(part="Error slices")
    assert any(one.value.startswith("Error slices need at least 10000 images") for one in app.info)


def test_the_part_is_chosen_above_the_controls_and_named_over_its_results(view) -> None:
    """Catches a choice in the drawer of a phone, where no word says which part is shown."""
    for part in debugging.SECTIONS[:4]:
        app = view(part=part)
        assert [one.value for one in app.header] == [part]
    keys = [getattr(one, "key", "") for one in _walk(app.main)]
    assert keys.index("part") < keys.index("classifier")


def _walk(block):
    """All elements of a block in their order on the page."""
    for one in block.children.values():
        yield from _walk(one) if hasattr(one, "children") else [one]
