"""What the AI relies on for a class, on the Units view, against pictures drawn one by one and the verb's table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.errors import ForetellError
from dashboard.explore.units import concept_jobs as work
from dashboard.explore.units import concepts
from dashboard.explore.units.concept_jobs import make_intervention_task, make_tcav_task
from dashboard.shared import cache
from inquiry.concepts import concepts as verb
from inquiry.concepts.interventions import draw_rows
from tests.dashboard.conftest import PATIENCE_S, gallery_of
from tests.dashboard.views.conftest import settled
from tests.dashboard.views.test_units import QUICK

CHANGED = 4
LAYERS = ["features.5.2", "pool"]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture is drawn once for every change."""
    monkeypatch.setattr(work, "CHANGED", CHANGED)
    monkeypatch.setattr(verb, "INTERVENED", CHANGED)


@pytest.fixture
def world(opened):
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    return classifier, images, classifier.categories.index("fish")


def test_the_bars_are_what_drawing_the_images_again_does(world) -> None:
    """Slow re-implementation: one picture at a time; the reports count every change once."""
    classifier, images, fish = world
    told = []
    found = make_intervention_task(classifier, images).compute(lambda done, total, _: told.append((done, total)))
    assert told == [(k, 31) for k in range(31)]
    factor, rows = images.factors["context"], draw_rows(len(images), 0, CHANGED)

    def answer(i: int, value: str) -> float:
        return float(classifier.probabilities(classifier.preprocess(factor.do(i, value))[None])[0, fish])

    difference = [answer(i, "sea") - np.mean([answer(i, v) for v in factor.values if v != "sea"]) for i in rows]
    bars = concepts.changes(found, fish).data[0]
    place = bars.y.index("context: sea")
    assert bars.x[place] == pytest.approx(np.mean(difference), abs=1e-5)
    error = np.std(difference, ddof=1) / CHANGED**0.5
    assert bars.error_x.array[place] == pytest.approx(1.96 * error, abs=1e-5)
    assert np.all(np.diff(np.abs(bars.x)) >= 0)
    assert abs(bars.x[0]) >= sorted(abs(float(e.value[fish])) for e in found.effects.values())[-concepts.TOP]


def test_the_page_shows_the_verbs_test_of_a_concept_at_each_layer(opened, world) -> None:
    classifier, images, _ = world
    link = {"unit.class": "fish", "concept": "context: sea", "concept.layers": LAYERS}
    app = settled(opened(view="Classes and units", **QUICK, **link))
    (table,) = [table.value for table in app.table if "Effect on the class" in table.value.columns]
    count = int(sum(images.categories[k] != "fish" for k in images.labels)) // 4
    request = verb.ConceptQuery("scenes", "fish", ("context=sea",), layers=tuple(LAYERS), count=count)
    expected = verb.concepts(classifier, request, images).table
    assert table["Layer"].tolist() == LAYERS
    for shown, row in zip(table.itertuples(index=False), expected.itertuples(), strict=True):
        assert shown.Score == f"{row.score:.2f}\u00a0±\u00a0{row.score_error:.2f}"
        assert shown.p == f"{row.p_value:.3f}"
        effect = "raises its logit" if row.sensitivity > 0 else "lowers its logit"
        assert shown[3] == (effect if row.p_value <= 0.05 else "no more than chance")
    unsure = [row.warning for row in expected.itertuples() if row.warning]
    assert unsure == [warning.value for warning in app.warning if "barely represents" in warning.value]
    assert any("context: sea" in chart.proto.spec for chart in app.get("plotly_chart"))


def test_no_layer_and_no_image_of_the_class_are_sentences(opened, world) -> None:
    classifier, images, fish = world
    app = opened(view="Classes and units", **QUICK, **{"concept": "context: sea", "concept.layers": ["pool"]})
    app = settled(app.multiselect(key="concept.layers").set_value([]).run())
    assert "Choose one to three layers." in [info.value for info in app.info]
    none = replace(images, labels=np.full(len(images), fish + 1))
    with pytest.raises(ForetellError, match="has no image of 'fish'"):
        make_tcav_task(classifier, none, fish, "context=sea", ("pool",)).compute(lambda *_: None)


def test_of_images_that_cannot_be_changed_it_says_where_to_ask(opened, world, workspace: Path) -> None:
    for i in range(3):
        folder = workspace / "pictures" / "mine" / "fish"
        folder.mkdir(parents=True, exist_ok=True)
        world[1].open(i).save(folder / f"{i}.png")
    app = settled(opened(view="Classes and units", source="mine", **QUICK, **{"unit.class": "fish"}))
    (said,) = [info.value for info in app.info if "cannot be changed" in info.value]
    assert 'foretell.py concepts --target "fish" --concept FOLDER --random FOLDER' in said
    assert not app.get("plotly_chart")


def test_a_channel_is_no_class(opened) -> None:
    app = settled(opened(view="Classes and units", **QUICK, unit="A channel", **{"unit.layer": "features.1.2"}))
    assert not any("Concepts the class depends on" in text.value for text in app.markdown)


def test_it_can_be_stopped(world, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next change, of which there are 31; and asked again it begins anew."""
    monkeypatch.setattr(work, "CHANGED", CHANGED + 1)
    job = make_intervention_task(*world[:2]).ask()
    job.cancel()
    assert job.wait(PATIENCE_S)
    assert job.state == "cancelled"
    assert make_intervention_task(*world[:2]).ask() is not job


def test_whatever_the_test_depends_on_is_in_its_key(world) -> None:
    classifier, images, fish = world
    other = gallery_of("scenes", "standard").images
    asked = [
        make_tcav_task(classifier, images, fish, "context=sea", ("pool",)),
        make_tcav_task(classifier, other, fish, "context=sea", ("pool",)),
        make_tcav_task(classifier, images, fish + 1, "context=sea", ("pool",)),
        make_tcav_task(classifier, images, fish, "context=road", ("pool",)),
        make_tcav_task(classifier, images, fish, "context=sea", ("pool", "head")),
        make_intervention_task(classifier, images),
        make_intervention_task(classifier, other),
    ]
    assert len({request.key for request in asked}) == len(asked)
