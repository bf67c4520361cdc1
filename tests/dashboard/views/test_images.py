"""Explore on images of one's own: uploads, sets that are read, and what does not fit."""

from __future__ import annotations

import io
import threading
from functools import partial
from pathlib import Path

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard.explore import coming, source
from dashboard.explore.heatmaps import grid as grid_widget
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.table import HeatmapColumn
from dashboard.shared import cache
from dashboard.shared.jobs import pool
from tests.dashboard.conftest import PATIENCE_S, gallery_of
from tests.dashboard.views.conftest import OTHER, script, settled


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    app.button_group(key="source").select("Upload").run()
    return settled(app.file_uploader(key="explore_file").set_value((name, content, "image/png")).run())


def test_a_bad_upload_is_one_sentence(app: AppTest) -> None:
    upload(app, "notes.png", b"not a picture")
    assert [e.value for e in app.error] == ["notes.png cannot be read as an image. Choose a PNG, JPEG or WebP file."]


def test_an_own_image_is_explained_without_a_verdict(app: AppTest) -> None:
    stream = io.BytesIO()
    gallery_of("scenes", "adversarial").images.open(3).resize((200, 150)).save(stream, "PNG")
    upload(app, "mine.png", stream.getvalue())
    assert app.header[0].value.startswith("The AI predicts ")
    assert "badge" not in app.header[0].value
    assert len(app.get("image")) == 3


def test_a_set_the_network_does_not_know_is_explained_and_leads_to_one_that_does(opened, workspace: Path) -> None:
    """Catches a set of one's own that ends in an error, since its folders are no classes of the first network."""
    (workspace / "pictures" / "mine" / "zebra").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(workspace / "pictures" / "mine" / "zebra" / "one.png")
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(rename_classes('["zebra", *NAMES[1:]]'))
    for view in ("Gallery", "Single image"):
        app = opened(source="mine", view=view, method="Gradient")
        assert not app.error
        assert app.warning[0].value.startswith("scenes has no class zebra. Its predictions are shown without the true")
        assert "a confidence that means nothing" in app.warning[0].value
    assert app.header[0].value.startswith("The AI predicts ")
    assert "not scored: this network has no class zebra" in app.header[0].value
    settled(app.button(key="use_models/other.py").click().run())
    assert app.selectbox(key="classifier").value == "models/other.py"
    assert not app.warning


def test_a_network_of_a_file_has_the_name_of_the_file_and_its_path_where_two_have_it(opened, workspace: Path) -> None:
    """Catches paths such as "models/mobile/net.py" in fields and sheets, and two networks of one name."""
    for folder in ("first", "second"):
        (workspace / "models" / folder).mkdir(parents=True)
        (workspace / "models" / folder / "net.py").write_text(OTHER)
        (workspace / "models" / folder / f"{folder}.npz").write_bytes(b"")
    (workspace / "models" / "other.py").write_text(OTHER)
    app = opened(classifier="models/other.py", method="Gradient", source="Adversarial")
    box = app.selectbox(key="classifier")
    assert box.value == "models/other.py"
    assert {"other", "models/first/net.py", "models/second/net.py"} <= set(box.options)
    assert "models/other.py" in app.query_params["classifier"]


def test_the_places_of_the_images_are_there_before_the_set_is_read(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an empty page below a bar, for as long as a set is opened and classified."""
    gate, what = threading.Event(), "Opening the images of adversarial"
    job = partial(pool().ask, "a set that is not read", lambda _: gate.wait(PATIENCE_S), what=what)
    monkeypatch.setattr(cache, "start_gallery_job", lambda *_: job())
    app = AppTest.from_function(script)
    app.query_params["method"] = "Gradient"
    try:
        app.run()
        assert app.get("progress")[0].proto.text == what
        (places,) = [one.proto.body for one in app.get("html") if "coming" in one.proto.body]
        assert [place in places for place in coming.PLACES] == 3 * [True]
    finally:
        gate.set()


def test_more_pixels_of_a_gradient_have_the_full_colour_and_the_caption_says_so(opened) -> None:
    """Catches a heatmap of single pixels that over a photograph is not seen, and one drawn otherwise without a word."""
    app = opened(method="Gradient", source="Adversarial")
    assert app.slider(key="pixels.clip").value == 10
    captions = [image.proto.imgs[0].caption for image in app.get("image")]
    assert captions[1].endswith("Full colour: the strongest 10% of pixels; in a study 0.5%.")
    app = opened(method="Grad-CAM", source="Adversarial")
    assert app.slider(key="clip").value == 0.5
    assert not any("Full colour" in image.proto.imgs[0].caption for image in app.get("image"))


def test_what_cannot_be_read_is_said_where_the_results_are(opened, workspace: Path) -> None:
    """Catches an error in the controls, which a phone folds away: there the page was blank."""
    (workspace / "pictures" / "empty").mkdir(parents=True)
    app = opened(source="empty")
    controls, results = app.columns[:2]
    assert not controls.error
    assert len(results.error) == 1


def rename_classes(classes: str) -> str:
    """Return the file of a network of the scenes with other classes, made from ``NAMES``."""
    return OTHER.replace("CATEGORIES, MEAN", "CATEGORIES as NAMES, MEAN").replace(
        "def build", f"CATEGORIES = {classes}\n\n\ndef build"
    )


def test_a_set_that_is_still_asked_about_shows_how_far_it_is(opened, workspace: Path) -> None:
    """The page is there at once, and whole when the answers are."""
    for k in range(300):
        path = workspace / "pictures" / "mine" / "fish" / f"{k}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((96, 96), k).save(path)
    app = AppTest.from_function(script)
    app.query_params["source"], app.query_params["method"] = "mine", "Gradient"
    app.run()
    assert not app.exception
    assert app.selectbox(key="method").value == "gradient"
    gallery_of("scenes", "mine")
    assert settled(app.run()).header[0].value.startswith("The AI predicts ")


def test_without_a_image_set_it_is_said_where_to_put_one(opened, workspace: Path) -> None:
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(OTHER)
    app = opened(classifier="models/other.py", view="Gallery")
    assert app.info[0].value.startswith("There is no image set for models/other.py. Put folders of images into")


@pytest.mark.parametrize(
    ("key", "what"), [("view", "view"), ("method", "method"), ("classifier", "network"), ("source", "image set")]
)
def test_a_link_to_something_unknown_shows_the_default_and_says_so(opened, key: str, what: str) -> None:
    """The sentence stays until that part is chosen by hand; a good link has none."""
    app = opened(**{"method": "Gradient", key: "Nowhere"})
    said = f"The link names the {what} “Nowhere”, which does not exist here. Another one is shown instead."
    assert said in [warning.value for warning in app.warning]
    assert not opened(method="Gradient").warning
    if key == "method":
        assert app.selectbox(key="method").value == "bayesian_teaching"
        app.selectbox(key="method").set_value("gradient").run()
        assert said not in [warning.value for warning in app.warning]


def test_a_network_without_the_true_class_is_not_called_wrong(opened, workspace: Path) -> None:
    (workspace / "models").mkdir()
    renamed = rename_classes('[f"class {k}" for k in range(len(NAMES))]')
    (workspace / "models" / "other.py").write_text(renamed)
    opened(classifier="models/other.py", method="Gradient")  # loads it
    chosen = source.open_from_set(gallery_of("scenes", "adversarial"), "adversarial", 3)
    stranger, own = ClassifiedImage("models/other.py", chosen), ClassifiedImage("scenes", chosen)
    assert stranger.verdict == f"not scored: this network has no class {chosen.truth}"
    assert own.verdict in ("right", f"wrong, true class: {chosen.truth}")
    columns = [HeatmapColumn(seen, seen.predicted_class, ()) for seen in (own, stranger)]
    assert grid_widget.title_of(columns, ["gradient"]) == "scenes and other: Gradient"


def test_several_uploads_are_offered_and_a_broken_one_hides_no_other(app: AppTest) -> None:
    def content(i: int) -> bytes:
        stream = io.BytesIO()
        gallery_of("scenes", "adversarial").images.open(i).save(stream, "PNG")
        return stream.getvalue()

    app.button_group(key="source").select("Upload").run()
    files = [("one.png", content(3), "image/png"), ("two.png", content(4), "image/png")]
    settled(app.file_uploader(key="explore_file").set_value([*files, ("bad.png", b"no", "image/png")]).run())
    assert [e.value for e in app.error] == ["bad.png cannot be read as an image. Choose a PNG, JPEG or WebP file."]
    assert app.selectbox(key="explore_upload").options == ["one.png", "two.png"]
    assert any("trained only on drawn scenes" in warning.value for warning in app.warning)
    second = app.header[0].value
    settled(app.selectbox(key="explore_upload").select_index(0).run())
    assert app.header[0].value != second
