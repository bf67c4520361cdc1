"""The Inside view, against the verb's questions asked directly of the same pictures."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from core.attribution.cost import Pace
from core.attribution.records import cost_of
from core.types import silent
from dashboard.explore.layers import view as inside
from dashboard.explore.layers.jobs import LayerRequest
from dashboard.shared import cache
from inquiry.concepts.interventions import draw_rows
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery, blocks
from inquiry.layers.record import record_of
from inquiry.layers.representations.probes import PERCEPTRON, PROBE_S
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import OTHER, settled

COUNT = 46


def asked(question: str, **given) -> tuple[LayerQuery, LayerInspection]:
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    request = LayerQuery(question, "scenes", **given)
    return request, LayerInspection(classifier, images.only(draw_rows(len(images), 0, COUNT)), request, classifier)


def begun(app: AppTest) -> AppTest:
    """What takes long is begun by a click."""
    for button in app.button:
        if button.label.startswith("Compute"):
            return settled(button.click().run())
    return app


def answered(app: AppTest) -> pd.DataFrame:
    assert not app.error, [error.value for error in app.error]
    return app.dataframe[0].value


@pytest.mark.parametrize(
    ("question", "link", "given"),
    [
        ("similarity", {"layers": "features.5.0"}, {"layers": ("features.5.0",)}),
        ("dissection", {"layers": "features.3.1"}, {"layers": ("features.3.1",)}),
        (
            "importance",
            {"layers": "features.0", "importance.of": "label"},
            {"layers": ("features.0",), "parameters": {"of": "label"}},
        ),
        (
            "evidence",
            {"evidence.methods": "gradient,grad_cam"},
            {"parameters": {"methods": "gradient,grad_cam"}},
        ),
        ("frequencies", {"frequencies.radii": "4,16"}, {"parameters": {"radii": "4,16"}}),
        ("attacks", {"attacks.names": "fgsm", "attacks.radii": "2"}, {"parameters": {"names": "fgsm", "radii": "2"}}),
    ],
)
def test_a_link_brings_back_the_answer_of_the_verb(opened, question, link, given) -> None:
    """Catches a parameter, a layer or a choice of pictures that does not arrive."""
    query = {"view": "Layers", "question": question.capitalize(), "layers.images": str(COUNT), **link}
    app = begun(opened(**query))
    request, inspected = asked(question, **given)
    expected = QUESTIONS[question](inspected, silent, **dict(request.parameters))
    pd.testing.assert_frame_equal(answered(app), expected, check_dtype=False, rtol=1e-4, atol=1e-5)
    assert len(app.get("plotly_chart")) == 1
    assert any(f"{COUNT} of the 48 images" in said.value for said in app.caption)


def test_probes_of_a_set_of_ones_own(opened, workspace) -> None:
    """A folder of two categories knows no contexts: one row a layer, and the layers are the network's blocks."""
    drawn = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 160}), None)
    for name in ("boat", "fish"):
        (workspace / "pictures" / "two" / name).mkdir(parents=True)
        for i in np.flatnonzero(drawn.labels == drawn.categories.index(name))[:6]:
            drawn.open(int(i)).save(workspace / "pictures" / "two" / name / f"{i}.png")
    found = answered(begun(opened(view="Layers", question="Probes", source="two")))
    assert list(found["layer"]) == list(blocks(cache.load_classifier("scenes")))
    assert set(found["of"]) == {"category"}
    assert (found["accuracy"].iloc[-1], found["chance"].iloc[-1]) == (1.0, 0.5)


def test_two_networks_are_compared_layer_by_layer(opened, workspace) -> None:
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(OTHER, encoding="utf-8")
    app = opened(
        view="Layers",
        question="Similarity",
        **{"layers": "features.5.0", "layers.other": "models/other.py", "layers.images": str(COUNT)},
    )
    found = answered(begun(app))
    assert set(found["layer"]) == set(found["other"]) == {"features.5.0"}
    assert 0.5 < float(found["similarity"].iloc[0]) < 1  # every weight a twentieth larger: alike, and not the same


def test_blocks_and_the_layers_in_them_are_offered(opened) -> None:
    """What a question takes by default can be chosen by hand too."""
    app = opened(view="Layers", question="Dissection", **{"layers": "features.3"})
    offered = app.multiselect(key="layers")
    assert offered.value == ["features.3"]
    assert {"features.3", "features.3.1"} < set(offered.options)
    assert set(answered(begun(app))["layer"]) == {"features.3"}


def test_what_cannot_be_asked_is_one_sentence(opened) -> None:
    app = begun(opened(view="Layers", question="Frequencies", **{"frequencies.radii": "4;5"}))
    assert ["not a list of numbers" in error.value for error in app.error] == [True]


def test_consistency_asks_for_something_to_compare_before_it_can_fail(opened) -> None:
    """The first look at this question: no error, and no word about options of a command line."""
    app = opened(view="Layers", question="Consistency")
    assert not app.error
    assert app.info[0].value.startswith("Knowledge consistency compares two networks, or two layers of one.")


def test_long_questions_wait_for_a_click(opened) -> None:
    """Forty gradients and more for each picture and radius."""
    app = opened(view="Layers", question="Attacks", **{"attacks.radii": ",".join(map(str, range(1, 250)))})
    assert any(button.label.startswith("Compute (about") for button in app.button)
    assert not app.dataframe


@pytest.mark.parametrize("question", ["decomposition", "recognition"])
def test_questions_that_do_not_run_the_network_wait_for_a_click_too(opened, question) -> None:
    """Catches minutes of work that start unasked, without an estimate."""
    query = {"layers.images": "200", f"{question}.epochs": "80", f"{question}.images": "200"}
    app = opened(view="Layers", question=question.capitalize(), **query)
    assert any(button.label.startswith("Compute (about") for button in app.button)
    assert not app.dataframe


def test_every_question_has_a_figure_and_says_how_to_read_it() -> None:
    records = {name: record_of(name) for name in QUESTIONS}
    lacking = [name for name, one in records.items() if not (one.figure and one.reading and one.publications)]
    assert not lacking
    assert not [name for name, one in records.items() if one.cost is None]


def test_the_estimate_counts_what_is_asked_for(monkeypatch) -> None:
    """By hand: 2 attacks of at most 40 and 50 steps, 3 radii; a layer of 96 units."""
    request, inspected = asked("attacks", parameters={"names": "pgd, langevin", "radii": "1,2,3"})
    images = gallery_of("scenes", "adversarial").images
    whole = LayerRequest(request, inspected.classifier, inspected.classifier, images, COUNT)
    assert record_of("attacks").cost(whole, request.parameters).gradients == 90 * 3 * COUNT
    units = replace(whole, query=LayerQuery("deletion", layers=("features.3.1",)))
    assert record_of("deletion").cost(units, {}).forwards == 96 * COUNT
    cut = replace(whole, query=LayerQuery("bands"))
    assert record_of("bands").cost(cut, {"bands": 4, "images": 10}).gradients == 50 * 4 * 10
    by_method = replace(whole, query=LayerQuery("evidence"))
    both = record_of("evidence").cost(by_method, {"methods": "gradient, integrated_gradients"})
    assert both.gradients == 2 * COUNT * (1 + cost_of("integrated_gradients", {}, inspected.classifier).gradients)
    refined = replace(whole, query=LayerQuery("refinement", layers=("features.4", "features.5")))
    assert record_of("refinement").cost(refined, {}).gradients > 20 * 2 * COUNT, (
        "half of what was measured, 47 per image"
    )
    monkeypatch.setattr("dashboard.explore.layers.jobs.estimate_seconds", lambda *_: 1.0)
    probing = replace(whole, query=LayerQuery("probes", layers=("features.4", "features.5")))
    assert probing.estimate() == pytest.approx(1 + 2 * COUNT * PROBE_S)
    deep = replace(probing, query=replace(probing.query, parameters={"hidden": "8"}))
    assert deep.estimate() == pytest.approx(1 + 2 * COUNT * PROBE_S * PERCEPTRON)
    assert replace(whole, count=5).key != whole.key != units.key


def test_long_work_asks_first_also_while_the_speed_of_the_network_is_not_known(opened, monkeypatch) -> None:
    """Catches probes of minutes that start when the page is opened, and a button that does not say how long."""
    started = threading.Event()

    def measure(_: object) -> Pace:
        started.wait(2.0)  # longer than an estimate waits
        return Pace(1.0, 1.0)

    monkeypatch.setattr("dashboard.explore.heatmap_jobs.pace", measure)
    monkeypatch.setattr("dashboard.explore.heatmap_jobs.digest", lambda *parts: f"slow {parts}")
    monkeypatch.setattr(LayerRequest, "compute", lambda *_: pytest.fail("nobody has asked for it"))
    app = opened(view="Layers", question="Probes", **{"layers.images": str(COUNT), "seed": "7"})
    (button,) = [button.label for button in app.button if button.label.startswith("Compute")]
    assert re.fullmatch(r"Compute \(about \d+ min\)", button)


def test_what_a_question_draws_is_part_of_its_result() -> None:
    """Catches a page that shows the table alone."""
    request, inspected = asked("consistency", layers=("features.5",), other_layers=("features.4",))
    images = gallery_of("scenes", "adversarial").images
    found = LayerRequest(request, inspected.classifier, inspected.classifier, images, COUNT).compute(silent)
    assert list(found.drawings) == ["features.5 from features.4"]
    drawing = record_of("consistency").drawing
    assert drawing.describe("a") == f"{drawing.caption} a"
    request, inspected = asked("consistency", layers=("pool",), other_layers=("flatten",))
    of_one_place = LayerRequest(request, inspected.classifier, inspected.classifier, images, COUNT).compute(silent)
    assert not of_one_place.drawings, "one colour for a whole image"


def test_tiles_of_few_images_are_as_large_as_those_of_many() -> None:
    """Catches a mode of one image that fills the page; its tiles stay where they are, and nothing follows them."""
    padded = inside.pad(Image.new("RGB", (20, 10), "red"), 70)
    assert padded.size == (70, 10)
    assert padded.getbbox() == (0, 0, 20, 10)


def test_each_dotted_line_has_the_colour_and_name_of_its_series() -> None:
    """Catches two lines alike, of which nobody knows which is whose."""
    table = pd.DataFrame(
        {"layer": ["a", "b"] * 2, "of": ["x", "x", "y", "y"], "accuracy": 0.5, "low": 0.4, "high": 0.6}
    )
    drawn = record_of("probes").figure(table.assign(chance=[0.1, 0.1, 0.3, 0.3])).data
    points, lines = ([one for one in drawn if one.mode == mode] for mode in ("markers", "lines"))
    assert [(line.name, set(line.y)) for line in lines] == [("chance, x", {0.1}), ("chance, y", {0.3})]
    assert [line.line.color for line in lines] == [one.marker.color for one in points]


def test_figures_show_the_numbers_of_the_tables() -> None:
    """Of small tables by hand, and an empty one: no unit detects anything, no walk meets another answer."""
    lost = pd.DataFrame(
        {"layer": "a", "unit": [0, 0, 1, 1], "class": ["x", "y"] * 2, "drop": [0.1, 0.0, -0.4, 0.2], "error": 0.1}
    )
    heat = record_of("deletion").figure(lost).data[0]
    assert list(heat.y) == ["a, 1", "a, 0"]
    assert np.allclose(heat.z, [[-0.4, 0.2], [0.1, 0.0]])
    assert (heat.zmin, heat.zmax) == (-0.4, 0.4)
    units = pd.DataFrame(
        {"layer": "a", "unit": range(3), "concept": ["sea", "sea", "cat"], "detects": [True, True, False]}
    )
    (bar,) = record_of("dissection").figure(units).data
    assert (list(bar.x), list(bar.y)) == (["sea"], [2])
    assert not record_of("dissection").figure(units.assign(detects=False)).data
    cut = pd.DataFrame({"low": [0.0, 4.0], "high": [4.0, 8.0], "median": [2.0, np.inf]})
    (line,) = record_of("bands").figure(cut.assign(median_low=1.0, median_high=3.0)).data
    assert (list(line.x), list(line.y)) == ([2.0], [2.0])
    matters = pd.DataFrame(
        {"layer": "a", "channel": range(3), "importance": [0.1, -0.5, 0.2], "error": [0.3, 0.2, 0.1]}
    )
    (bar,) = record_of("importance").figure(matters).data
    assert (list(bar.x), list(bar.y)) == (["a, 1", "a, 2", "a, 0"], [-0.5, 0.2, 0.1])
    assert list(bar.error_y.array) == [0.2, 0.1, 0.3]
    erased = pd.DataFrame(
        {"method": ["m"], "change": [2.0], "change_low": [1.0], "change_high": [3.0], "random": [0.5]}
    )
    assert [list(points.y) for points in record_of("evidence").figure(erased).data] == [[2.0], [0.5]]
    named = record_of("evidence").figure(erased.assign(method="grad_cam")).layout.xaxis.ticktext
    assert list(named) == ["Grad-CAM"]
    attacked = pd.DataFrame({"attack": ["fgsm"], "grey_levels": 1, "right": 0.5, "right_low": 0.4, "right_high": 0.6})
    assert [line.name for line in record_of("attacks").figure(attacked).data] == ["FGSM"]
    (bar,) = record_of("modes").figure(pd.DataFrame({"class": "fish", "mode": [1, 2], "images": [7, 3]})).data
    assert (list(bar.x), list(bar.y)) == (["mode 1", "mode 2"], [7, 3])
    far = pd.DataFrame(
        {"image": ["p", "q"], "anywhere": [1.0, np.inf], "discriminative": [np.nan, 2.0], "random": [np.inf] * 2}
    )
    assert [list(box.y) for box in record_of("margins").figure(far).data] == [[1.0], [2.0], []]
    rules = pd.DataFrame(
        {"rule": ["whole tree", "a", "b"], "predicts": [None, "x", "y"], "share": [0.8, 0.5, None], "low": 0.4}
    )
    found = record_of("rules").figure(rules.assign(high=0.9)).data
    assert [(points.name, list(points.x)) for points in found] == [("all images", [0.8]), ("one rule", [0.5])]
    assert list(record_of("rules").figure(rules.assign(high=0.9)).layout.yaxis.ticktext) == ["whole tree", "a: x"]


def test_many_long_rules_have_room_for_their_words() -> None:
    """Catches slanted names over a plot that they leave no height, and a row that is as high as one line."""
    rule = "object is not car, cat, cup or mushroom and context is meadow"
    table = pd.DataFrame({"rule": rule, "predicts": "key", "share": 0.5, "low": 0.4, "high": 0.6}, index=range(17))
    figure = record_of("rules").figure(table)
    lines = figure.layout.yaxis.ticktext[0].split("<br>")
    assert " ".join(lines) == f"{rule}: key"
    assert max(map(len, lines)) < 30, "half of a phone's width"
    first, second = figure.layout.yaxis.tickvals[:2]
    assert second - first >= 15 * len(lines), "lines of 15 px"
    assert figure.layout.height >= 17 * 15 * len(lines)
    assert type(figure.layout.height) is int, "the page takes no other number for a height"
