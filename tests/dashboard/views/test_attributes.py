"""The question attributes on the Layers page and as a command."""

from __future__ import annotations

import json

import pandas as pd

from inquiry.layers.question_files import shorten_table
from inquiry.layers.record import record_of
from tests.commands import run
from tests.dashboard.views.test_inside import answered, begun


def test_the_page_shows_the_table_the_warnings_and_that_the_images_are_not_used(opened) -> None:
    """Catches a warning that stays in the table, and a caption that counts images which are not used."""
    link = {"view": "Layers", "question": "Attributes", "layers.images": "40", "attributes.epochs": "2"}
    app = begun(opened(**link, **{"attributes.outputs": "top-1"}))
    found = answered(app)
    assert set(found["output"]) == {"top-1"}
    assert len(app.get("plotly_chart")) == 1
    assert any("scenes is unlike the relatives" in warning.value for warning in app.warning)
    captions = [caption.value for caption in app.caption]
    assert any("The images of the set are not used." in caption for caption in captions)
    assert not any("40 of the" in caption for caption in captions)


def test_the_page_shows_the_crafted_image_of_each_attribute(opened) -> None:
    """Catches a choice of queries that does not reach the question, and images that are not shown."""
    link = {"view": "Layers", "question": "Attributes", "layers.images": "40", "attributes.epochs": "2"}
    app = begun(opened(**link, **{"attributes.queries": "single"}))
    found = answered(app)
    assert set(found["output"]) == {"top-1"}
    assert found["by_images"].notna().all()
    drawn = [image.proto.imgs[0].caption for image in app.get("image")]  # type: ignore[attr-defined]
    assert drawn == ["Crafted images that this network was asked about, for each attribute"]


def test_crafted_images_cost_as_many_predictions_as_the_scenes() -> None:
    """Catches an estimate that leaves out what is asked for each output."""
    query = {"outputs": "prob,top-1"}
    both, plain = (record_of("attributes").cost(None, query | {"queries": name}) for name in ("crafted", "images"))  # type: ignore[arg-type]
    assert (both.forwards, plain.forwards) == (300, 100)


def test_the_command_prints_no_empty_column() -> None:
    """Catches a blank column for images that are compared with none, and a column that is lost with a blank row."""
    table = pd.DataFrame("", [0, 1], list(record_of("attributes").table.printed)).assign(
        predicted=["", "relu"], note="warning"
    )
    assert list(shorten_table("attributes", table)) == ["predicted"]
    assert list(shorten_table("attributes", table.assign(by_images=0.5))) == ["predicted", "by_images"]


def test_the_figure_has_chance_at_each_attribute() -> None:
    """Catches chance that is drawn at another attribute, and outputs that are exchanged."""
    rows = [(output, name, k / 10, chance) for k, output in enumerate(("prob", "top-1"), 3)
            for name, chance in (("all", 0.4), ("width", 0.5))]  # fmt: skip
    table = pd.DataFrame(rows, columns=["output", "attribute", "accuracy", "chance"]).assign(low=0.1, high=0.9)
    prob, top, chance = record_of("attributes").figure(table).data
    assert (prob.name, top.name, chance.name) == ("prob", "top-1", "chance")
    assert (list(prob.y), list(top.y)) == ([0.3, 0.3], [0.4, 0.4])
    assert (list(chance.x), list(chance.y)) == ([0, 1], [0.4, 0.5])


def test_the_command_prints_the_predictions_and_the_warnings_or_refuses(workspace, tmp_path) -> None:
    """Catches a warning that is only in the file, a table that is not printed, and another exit code than 2."""
    given = ["layers", "attributes", "--out", tmp_path, "--param", "epochs=1"]
    ran = run(*given, "--param", "outputs=top-1", "--param", "queries=crafted", home=workspace)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("scenes is unlike the relatives") == 1
    table = pd.read_csv(tmp_path / "scenes.attributes.csv")
    lines = ran.stdout.splitlines()
    for name, predicted in zip(table["attribute"][1:], table["predicted"][1:], strict=True):
        assert any(f"top-1 {name}" in " ".join(line.split()) and str(predicted) in line for line in lines)
    assert json.loads((tmp_path / "scenes.attributes.json").read_text())["parameters"]["outputs"] == "top-1"
    assert lines[0].split()[-2:] == ["chance", "by_images"]
    assert (tmp_path / "scenes.attributes.top-1.png").is_file()
    ran = run(*given, "--param", "outputs=labels", home=workspace)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert "'labels' is no kind of output" in ran.stderr
