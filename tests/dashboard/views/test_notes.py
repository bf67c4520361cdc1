"""Notes and saved views on the page Explore, run as Streamlit runs it."""

from __future__ import annotations

from html import escape
from pathlib import Path
from urllib.parse import parse_qsl

from streamlit.testing.v1 import AppTest

from study.workspace.notes import ImageNote, read_notes, read_views, write_note
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled

SET = "scenes adversarial"


def test_a_note_is_written_seen_by_others_and_found(opened, workspace: Path) -> None:
    """Catches a note kept for another image than the one on the screen, and a filter that finds others."""
    images = gallery_of("scenes", "adversarial").images
    app: AppTest = opened(method="Gradient", image="adversarial/9")
    area = next(one for one in app.text_area if one.label == "Note on this image")
    area.set_value("the *leaf* is a bird")
    next(one for one in app.toggle if one.label == "Its label is wrong").set_value(True)
    settled(next(one for one in app.button if one.label == "Save the note").click().run())
    (name,) = area.key.removeprefix("note.text.").split("/", 1)[:1]
    ((image, kept),) = read_notes(workspace, name).items()
    assert (image, kept.text, kept.label_is_wrong) == (images.ids[9], "the *leaf* is a bird", True)
    other: AppTest = opened(method="Gradient", image="adversarial/9")
    assert next(one for one in other.text_area if one.label == "Note on this image").value == kept.text
    found: AppTest = opened(view="Gallery", **{"filter.noted": "true"})
    assert any("1 of 48 images fit" in one.value for one in found.caption)


def test_a_damaged_file_of_notes_stops_nothing_else(opened, workspace: Path) -> None:
    """Catches a page that opens no image because of its notes."""
    write_note(workspace, SET, "x", ImageNote("x", False, "ada", "2026-01-02T03:04:05+00:00"))
    (workspace / "notes" / "images.json").write_text("{")
    app: AppTest = opened(method="Gradient", image="adversarial/9")
    assert any("is damaged" in one.value for one in app.error)
    assert app.header[0].value.startswith("The AI predicts")


def test_a_view_is_saved_as_it_is_and_removed(opened, workspace: Path) -> None:
    """Catches a saved link without a setting of the view, and a name whose markup is drawn."""
    app: AppTest = opened(method="Gradient", image="adversarial/9", style="Outline", percent="30.0")
    next(one for one in app.text_input if one.label == "Name of this view").set_value("Wings [1](2)")
    settled(next(one for one in app.button if one.label == "Save this view").click().run())
    (view,) = read_views(workspace).values()
    assert dict(parse_qsl(view.query)) | {"image": "adversarial/9", "style": "Outline", "percent": "30.0"} == dict(
        parse_qsl(view.query)
    )
    other: AppTest = opened(**dict(parse_qsl(view.query)))
    assert other.slider(key="percent").value == 30.0
    shown = next(one.proto.body for one in other.get("html") if "/explore?" in one.proto.body)
    assert shown == f'<a class="view" href="/explore?{escape(view.query)}" target="_self">Wings [1](2)</a>'
    settled(next(one for one in other.button if one.key == "view.remove.Wings [1](2)").click().run())
    assert read_views(workspace) == {}
