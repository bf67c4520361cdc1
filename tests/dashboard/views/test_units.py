"""The Explore page's view of units: what is chosen is what is made, and what cannot be is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.units.unit import Unit
from dashboard.explore.units import concept_jobs
from dashboard.explore.units.jobs import make_exemplars_task, make_synthesis_task
from dashboard.shared import cache
from dashboard.shared.jobs import pool
from inquiry.units.exemplars import exemplars, of_set
from inquiry.units.units import VisualisationSettings
from tests.dashboard.conftest import PATIENCE_S, gallery_of
from tests.dashboard.views.conftest import OTHER, settled
from tests.dashboard.views.test_explore import FLAT

LAYER = "features.3.1"
QUICK = {"unit.starts": "2", "unit.steps": "4"}
CHANNEL = {"unit": "A channel", "unit.layer": LAYER, "unit.channel": "12"}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The view of a class draws each scene again for every change: here of two scenes."""
    monkeypatch.setattr(concept_jobs, "CHANGED", 2)


def units(opened, **query: str) -> AppTest:
    return opened(view="Classes and units", **{**QUICK, **query})


def captions(app: AppTest) -> list[str]:
    """Return the words under the images, without where their lines may end."""
    return [img.caption.replace("\u200b", "") for image in app.get("image") for img in image.proto.imgs]


def under(activations: torch.Tensor) -> list[str]:
    return [f"start {k}: {value:.4g}" for k, value in enumerate(activations.tolist())]


def test_a_link_brings_back_the_unit_and_how_it_is_drawn(opened) -> None:
    """Against the engine asked anew: the activations under the pictures are those of this very unit and settings."""
    app = units(opened, **CHANNEL, **{"unit.how": "Pixels", "seed": "7", "source": "Standard"})
    assert app.header[0].value == f"{LAYER}, channel 12"
    classifier = cache.load_classifier("scenes")
    made = VisualisationSettings("pixels", 2, 4, 7).make(classifier, Unit(12, LAYER))
    found = exemplars(classifier, Unit(12, LAYER), of_set(gallery_of("scenes", "standard").images))
    assert captions(app) == under(made.activations) + [f"{one.activation:.4g}   {one.id}" for one in found.exemplars]


def test_maco_is_made_for_the_images_on_the_page_and_says_what_is_transparent(opened) -> None:
    """Catches a page that offers MACO without a set, or with another one."""
    app = units(opened, **CHANNEL, **{"unit.how": "MACO", "source": "Standard"})
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "standard").images
    made = VisualisationSettings("maco", 2, 4).make(classifier, Unit(12, LAYER), images=of_set(images))
    assert captions(app)[:2] == under(made.activations)
    assert any("the top 20% of each image are opaque" in c.value for c in app.caption)


def test_it_begins_with_a_class(opened) -> None:
    app = units(opened)
    classifier = cache.load_classifier("scenes")
    assert app.header[0].value == f"Class {classifier.categories[0]} (0)"
    assert captions(app)[:2] == under(VisualisationSettings(starts=2, steps=4).make(classifier, Unit(0)).activations)
    app = settled(app.selectbox(key="unit.class").select("fish").run())
    assert app.header[0].value == f"Class fish ({classifier.categories.index('fish')})"
    assert len(captions(app)) == 2 + 9


def test_a_channel_that_is_not_there_is_one_sentence_and_nothing_chosen_is_lost(opened) -> None:
    app = units(opened, **CHANNEL | {"unit.channel": "96"})
    assert [e.value for e in app.error] == ["Layer 'features.3.1' has channels 0 to 95, not 96."]
    assert app.number_input(key="unit.steps").value == 4  # what is not drawn is forgotten
    app = settled(app.number_input(key="unit.channel").set_value(95).run())
    assert not app.error
    assert len(captions(app)) == 2 + 9


def test_from_an_upload_one_comes_to_a_set(opened) -> None:
    """An own picture is no set to look through."""
    app = opened(source="Upload", **QUICK)
    app = settled(app.button_group(key="view").select("Classes and units").run())
    assert app.button_group(key="source").value == "Adversarial"
    assert captions(app)[-1].split()[-1].startswith("adversarial/")


def test_a_network_without_images_and_places_still_has_its_units_drawn(opened, workspace: Path) -> None:
    (workspace / "models").mkdir()
    (workspace / "models" / "flat.py").write_text(OTHER.replace("return network", "return _flat(network)") + FLAT)
    app = units(opened, classifier="models/flat.py", unit="A channel", **{"unit.layer": "1", "unit.channel": "3"})
    assert len(captions(app)) == 2
    assert "Channels 0 to 15." in [c.value for c in app.caption]
    assert app.info[0].value.startswith("There is no image set for models/flat.py.")
    app = settled(app.button_group(key="unit.how").select("maco").run())
    assert [e.value for e in app.error] == ["MACO measures the spectrum of images: choose a set of images."]


def test_long_work_waits_for_a_click_and_can_be_stopped(opened) -> None:
    app = units(opened, **{"unit.starts": "16", "unit.steps": "4096"})
    (begin,) = [button for button in app.button if button.label.startswith("Compute (about ")]
    begin.click().run()
    stop = next(button for button in app.button if button.label == "Stop")
    job = pool().find(stop.key.removeprefix("stop_"))
    assert job is not None
    stop.click().run()
    assert job.wait(PATIENCE_S)
    assert job.state == "cancelled"
    assert "Not computed yet." in [info.value for info in settled(app.run()).info]


@pytest.mark.parametrize(
    "change",
    [
        {"unit": Unit(1, LAYER)},
        {"unit": Unit(0, "features.3.2")},
        {"unit": Unit(0, LAYER, 1, 2)},
        {"settings": VisualisationSettings("pixels")},
        {"settings": VisualisationSettings(starts=5)},
        {"settings": VisualisationSettings(steps=5)},
        {"settings": VisualisationSettings(seed=5)},
    ],
    ids=str,
)
def test_whatever_the_images_depend_on_is_in_their_key(workspace: Path, change: dict[str, object]) -> None:
    classifier = cache.load_classifier("scenes")
    asked = {"classifier": classifier, "unit": Unit(0, LAYER), "settings": VisualisationSettings()}
    assert make_synthesis_task(**asked).key == make_synthesis_task(**asked).key  # type: ignore[arg-type]
    assert make_synthesis_task(**asked | change).key != make_synthesis_task(**asked).key  # type: ignore[arg-type]


def test_other_weights_another_set_and_another_unit_are_other_searches(workspace: Path) -> None:
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(OTHER)
    sets = [gallery_of("scenes", name).images for name in ("standard", "adversarial")]
    one, other = cache.load_classifier("scenes"), cache.load_classifier("models/other.py")
    requests = [(c, Unit(k, LAYER), images) for c in (one, other) for k in (0, 1) for images in sets]
    assert len({make_exemplars_task(*request).key for request in requests}) == 8
    maco, waves = VisualisationSettings("maco"), VisualisationSettings()
    assert len({make_synthesis_task(c, unit, maco, images).key for c, unit, images in requests}) == 8
    assert len({make_synthesis_task(c, unit, waves, images).key for c, unit, images in requests}) == 4
    assert len({make_synthesis_task(c, Unit(0), VisualisationSettings()).key for c in (one, other)}) == 2
