"""Design: the study file by hand, its title, and the division of an image set; run as Streamlit runs the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard.design.network import ONE, THREE
from study.plan import config
from study.plan.draft import StudyDraft
from tests.dashboard.conftest import made
from tests.dashboard.views.conftest import Open
from tests.dashboard.views.library import NETWORK
from tests.dashboard.views.test_design import named, settle


def test_a_text_that_cannot_be_saved_is_said_and_not_lost(open_page: Open, mine: Path) -> None:
    """Catches an hour of typing that goes with a glance at another section, and a green line under "Not saved"."""
    before = mine.read_text()
    typed = before.replace("practice = 3", "practice =")
    line = typed.splitlines().index("practice =") + 1
    app = open_page(study="mine", part="File")
    named(app.text_area, "Study file").input(typed)  # type: ignore[attr-defined]
    named(app.button, "Save").click()  # type: ignore[attr-defined]
    settle(app)
    assert app.error[0].value == f"Not saved: This is not valid TOML. Line {line}: a value is missing after =."
    assert mine.read_text() == before
    assert app.run().error  # another run of the page, as the end of a check asks for one
    choose_part(app, "Build")
    assert not any("The study can be built" in one.value for one in app.markdown)
    choose_part(app, "File")
    assert named(app.text_area, "Study file").value == typed  # type: ignore[attr-defined]
    named(app.text_area, "Study file").input(typed.replace("practice =", "practice = 4"))  # type: ignore[attr-defined]
    named(app.button, "Save").click()  # type: ignore[attr-defined]
    settle(app)
    assert config.read(mine).trials.practice == 4
    assert not any("not saved" in one.value for one in app.markdown)


def test_a_text_that_is_not_saved_is_discarded(open_page: Open, mine: Path) -> None:
    app = open_page(study="mine", part="File")
    before = mine.read_text()
    named(app.text_area, "Study file").input("nothing")  # type: ignore[attr-defined]
    settle(app)
    named(app.button, "Discard").click()  # type: ignore[attr-defined]
    settle(app)
    assert named(app.text_area, "Study file").value == before  # type: ignore[attr-defined]
    assert not any(one.label == "Discard" for one in app.button)


def choose_part(app: AppTest, name: str) -> None:
    app.button_group(key="design_of_step").set_value([name])
    settle(app)


def test_an_empty_title_is_said_at_its_field(open_page: Open, mine: Path) -> None:
    """Catches "The study can be built" over pages without a heading."""
    app = open_page(study="mine", part="Study")
    named(app.text_input, "Title").input("  ")  # type: ignore[attr-defined]
    settle(app)
    said = "Give the study a title: participants read it on every page."
    assert f":red[{said}]" in [caption.value for caption in app.caption]
    assert not any("can be built" in one.value for one in app.markdown)


def test_a_new_study_is_one_click_away(open_page: Open, mine: Path) -> None:
    app = open_page(study="mine", part="Study")
    named(app.button, "New study").click()  # type: ignore[attr-defined]
    settle(app)
    assert named(app.button, "Create study")
    assert not any(one.label == "New study" for one in app.button)


def chooser(app: AppTest) -> Any:
    """The choice between one image set and three."""
    return app.button_group(key="design.mine.how")


def test_the_way_of_choosing_images_is_that_of_the_file(open_page: Open, mine: Path, workspace: Path) -> None:
    """Catches "one image set" and a blue button to divide it over a file that names three."""
    (workspace / "pictures" / "flat" / "fish").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(workspace / "pictures" / "flat" / "fish" / "0.png")
    app = open_page(study="mine", part="Study")
    assert chooser(app).value == THREE
    assert not any(one.label == "Divide" for one in app.button)
    chooser(app).select(ONE)
    settle(app)
    assert named(app.button, "Divide").proto.type == "secondary"  # type: ignore[attr-defined]
    draft = StudyDraft.read(mine)
    for role in ("pool", "standard", "adversarial"):
        (mine.parent / f"{role}.txt").write_text("fish/0.png\n")
        draft.set(f"sets.{role}", {"set": "folder", "path": "../pictures/flat", "images": f"{role}.txt"})
    draft.save(mine)
    app = open_page(study="mine", part="Study")
    assert chooser(app).value == ONE
    assert named(app.button, "Divide").proto.type == "secondary"  # type: ignore[attr-defined]
    chooser(app).select(THREE)
    settle(app)
    assert not any(one.label == "Divide" for one in app.button)


def test_one_image_set_is_divided_by_errors(open_page: Open, mine: Path, workspace: Path) -> None:
    """Planted: 12 images of flat colours; whatever the network says, every image has one role and its list is read."""
    for category in ("bird", "boat", "lorry"):
        (workspace / "pictures" / "flat" / category).mkdir(parents=True)
        for i in range(6):
            image = Image.new("RGB", (32, 32), (40 * i, 20, 250 - 30 * i))
            image.save(workspace / "pictures" / "flat" / category / f"{i}.png")
    app = open_page(study="mine", part="Study")
    chooser(app).select(ONE)
    settle(app)
    named(app.button, "Divide").click()  # type: ignore[attr-defined]
    made(settle(app))
    said = "Left out: no class of this network is called lorry. Match them on the page Models & images."
    assert said in [one.value for one in app.warning]
    shown = app.dataframe[-1].value.set_index("Category")["pool"].drop("lorry")
    few = ", ".join(f"{category} ({count})" for category, count in shown.items() if count < 2)
    assert few
    assert any(one.value.startswith(f"Fewer than 2 pool images: {few}.") for one in app.warning)
    assert [one.label for one in app.button if one.proto.type == "primary"] == ["Use these images"]
    named(app.button, "Use these images").click()  # type: ignore[attr-defined]
    settle(app)
    sets = config.read(mine).sets
    listed = [
        line
        for source in (sets.pool, sets.standard, sets.adversarial)
        for line in (mine.parent / source.settings["images"]).read_text().split()
    ]
    assert sorted(listed) == sorted(f"{c}/{i}.png" for c in ("bird", "boat") for i in range(6))
    assert chooser(app).value == ONE


def test_a_network_of_a_file_is_offered_by_its_name(open_page: Open, mine: Path, workspace: Path) -> None:
    """Catches the path that the study file has: on the pages a network has one name."""
    (workspace / "models").mkdir()
    (workspace / "models" / "brightness.py").write_text(NETWORK.decode())
    field = named(open_page(study="mine", part="Study").selectbox, "Network")
    assert "brightness" in field.options  # type: ignore[attr-defined]
    assert not any("models/" in one for one in field.options)  # type: ignore[attr-defined]
