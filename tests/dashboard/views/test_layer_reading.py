"""What the view of layers says of a question before and after it is computed."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from dashboard.explore.layers import view
from dashboard.explore.layers.jobs import LayerRequest, LayerResult
from dashboard.shared import cache
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.record import record_of
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import press


def test_a_question_says_what_it_shows_and_cites_its_method_before_it_is_computed(opened) -> None:
    """Catches a first screen with a heading, a button and "Not computed yet." alone."""
    app = opened(view="Layers", question="Attacks", **{"attacks.radii": ",".join(map(str, range(1, 250)))})
    assert not app.get("plotly_chart")
    (said,) = [one.value for one in app.caption if one.value.startswith(record_of("attacks").reading)]
    assert "[Madry et al. 2017](https://arxiv.org/abs/1706.06083)" in said


def test_an_example_is_finished_where_the_whole_takes_minutes(opened, monkeypatch) -> None:
    """Catches a button with "about 73 min" as the only way to see a figure."""
    counts: list[int] = []

    def compute(request: LayerRequest, _: object) -> LayerResult:
        counts.append(request.count)
        return LayerResult(pd.DataFrame({"attack": []}), {})

    monkeypatch.setattr(LayerRequest, "compute", compute)
    monkeypatch.setattr(LayerRequest, "image_count", property(lambda request: request.count))
    monkeypatch.setattr(LayerRequest, "estimate", lambda request: 1.0 * request.count)
    app = opened(view="Layers", question="Attacks", **{"layers.images": "200", "seed": "11"})
    assert counts == [20]  # 50 would take longer than what starts by itself
    assert "An example with 20 images." in [one.value for one in app.caption]
    press(app, "Compute with 200 images (about 3 min)")
    assert counts == [20, 200]
    assert "An example with 20 images." not in [one.value for one in app.caption]


def test_an_example_that_fails_gives_way_to_the_whole(opened, monkeypatch) -> None:
    """Catches a page that opens with an error: a question may need more images of each class than its example has."""

    def refuse(request: LayerRequest, _: object) -> LayerResult:
        raise ForetellError(f"{request.count} images are too few")

    monkeypatch.setattr(LayerRequest, "compute", refuse)
    monkeypatch.setattr(LayerRequest, "image_count", property(lambda request: request.count))
    monkeypatch.setattr(LayerRequest, "estimate", lambda request: 0.5 * request.count)
    app = opened(view="Layers", question="Attacks", **{"layers.images": "200", "seed": "13"})
    assert not app.error
    assert [button.label for button in app.button if button.label.startswith("Compute")] == ["Compute (about 2 min)"]


def test_no_example_of_a_question_that_it_would_not_shorten(opened, monkeypatch) -> None:
    """Catches a second button that saves nothing, such as that of a question with its own limit of images."""
    monkeypatch.setattr(LayerRequest, "image_count", property(lambda request: request.count))
    monkeypatch.setattr(LayerRequest, "estimate", lambda _: 90.0)
    app = opened(view="Layers", question="Margins", **{"layers.images": "200", "seed": "12"})
    assert [button.label for button in app.button if button.label.startswith("Compute")] == ["Compute (about 2 min)"]


def test_a_table_writes_shares_as_its_figure_does() -> None:
    """Catches 36.5% on the axis and 0.365 in the table, and "coarse" of the table that the legend calls "low"."""

    def page() -> None:
        import pandas as pd

        from dashboard.shared import numbers
        from inquiry.layers.record import record_of

        row = {"cycles": 4.0, "coarse": 0.365, "coarse_low": 0.3, "fine": 0.512, "whole": 0.987}
        table = pd.DataFrame([row])
        words = record_of("frequencies").table
        numbers.table(table, "a", headings=words.headings, shares=words.list_shares(table))

    (shown,) = AppTest.from_function(page).run().dataframe
    written = shown.proto.SerializeToString()
    assert all(share in written for share in (b"36.5%", b"30.0%", b"51.2%", b"98.7%"))
    assert b"400.0%" not in written
    ends = {f"{part}{end}": 0.5 for part in ("coarse", "fine") for end in ("", "_low", "_high")}
    legend = [
        line.name for line in record_of("frequencies").figure(pd.DataFrame([{"cycles": 4.0, "whole": 0.9} | ends])).data
    ]
    assert legend == [record_of("frequencies").table.headings[part].lower() for part in ("coarse", "fine")]


@pytest.mark.parametrize("question", [name for name in QUESTIONS if record_of(name).table.shares])
def test_shares_are_no_counts_and_no_places(question) -> None:
    """Catches a pattern that writes a count, a layer's number or a limit of frequencies in percent."""
    assert not record_of(question).table.list_shares(
        ["images", "cycles", "epoch", "unit", "x", "log_p", "gini", "rule"]
    )
    pattern = record_of(question).table.shares.split("|")[0]
    assert pattern == r"order_\d+" or re.fullmatch(r"\w+", pattern)


def test_all_images_are_counted_as_all() -> None:
    """Catches "200 of the 200 images"."""
    request = type("R", (), {"query": type("Q", (), {"question": "probes", "parameters": {}}), "image_count": 7})
    result = LayerResult(pd.DataFrame({"layer": ["a"]}), {})
    request.images = range(7)
    assert view._count_images(request, result) == "All 7 images."
    request.images = range(9)
    assert view._count_images(request, result) == "7 of the 9 images."


def test_progress_names_an_attack_as_the_table_does() -> None:
    """Catches "Pgd" in the bar of the attack that the figure calls PGD."""
    steps: list[str] = []
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    inspected = LayerInspection(classifier, images.only([0, 1]), LayerQuery("attacks", "scenes"), classifier)
    QUESTIONS["attacks"](inspected, lambda *step: steps.append(step[2]), names="fgsm", radii="1")
    assert set(steps) == {"FGSM, 1 grey level"}
