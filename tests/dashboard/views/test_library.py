"""The page Models & images, run by AppTest over a workspace of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.library.images import CHOSEN
from dashboard.shared import cache
from dashboard.shared.keys import NEW_STUDY
from study.workspace.imagesets import count_images
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.library import NETWORK, image, open_library, settled, zipped

FILES = {"cat/1.png": 1, "cat/2.png": 2, "cat/again.png": 1, "kitty/3.png": 3, "boat/4.png": 4, "junk/5.png": 5}
"""Each image by the seed of its noise: cat/again.png repeats cat/1.png."""
CATS, REST = ("1.png", "2.png", "again.png"), (("junk", "5.png"), ("kitty", "3.png"))


@pytest.fixture
def app(workspace: Path) -> AppTest:
    return open_library()


def add(app: AppTest, name: str, content: bytes, title: str = "") -> AppTest:
    """Upload a file, name the set, and press Add."""
    app.file_uploader[0].set_value((name, content, "application/zip")).run()
    if title:
        next(field for field in app.text_input if field.label == "Name of the set").set_value(title).run()
    return settled(app.button("library_add").click().run())


def read_grid(app: AppTest) -> list[tuple[int, tuple[str, ...]]]:
    """Read the images that are shown: of each its number in the set, and the lines below it."""
    (drawn,) = [json.loads(one.proto.json) for one in app.get("bidi_component") if "cells" in one.proto.json]
    return [(cell["index"], tuple(cell["lines"])) for cell in drawn["cells"]]


def test_a_zip_becomes_a_set_whose_labels_are_matched(app: AppTest, workspace: Path) -> None:
    """Catches unreadable files, repetitions or labels that the page does not name, and a form without effect."""
    content = zipped(
        {name: image(seed) for name, seed in FILES.items()} | {"cat/broken.png": b"no image", "cat/notes.txt": b"cats"}
    )
    add(app.run(), "animals.zip", content)
    assert count_images(workspace / "images" / "animals") == {"boat": 1, "cat": 3, "junk": 1, "kitty": 1}
    left_out = "1 file was not an image and was left out: cat/notes.txt."
    broken = "1 file was not readable as an image and was left out: cat/broken.png."
    assert [alert.value for alert in app.success] == [f"Added 6 images. {left_out} {broken}"]
    (workspace / "images" / "animals" / "cat" / "broken.png").write_bytes(b"no image")  # as in a set of before
    settled(app.run())
    assert any(heading.value == "6 images in 4 classes" for heading in app.header)
    assert list(dict(read_grid(app)).values()) == [("boat", "4.png"), *(("cat", name) for name in CATS), *REST]
    assert dict(app.dataframe[0].value.to_numpy()) == {"boat": 1, "cat": 3, "junk": 1, "kitty": 1}
    listed = " ".join(code.value for code in app.code)
    assert "cat/broken.png: it is not an image" in listed
    assert "cat/again.png repeats cat/1.png" in listed
    assert any("2 of 4 folders match a class" in text.value for text in app.markdown)

    app.selectbox("match_animals_kitty").set_value("cat")
    app.selectbox("match_animals_junk").set_value("Leave out")
    next(button for button in app.button if button.label == "Apply").click().run()
    settled(app)
    assert count_images(workspace / "images" / "animals") == {"boat": 1, "cat": 5}
    assert any("2 of 2 folders match a class" in text.value for text in app.markdown)
    assert any("Left out: junk" in caption.value for caption in app.caption)
    gallery = gallery_of(cache.BUILT_IN, "animals")
    assert gallery.images.categories == ("boat", "cat")
    assert gallery.has_known_label.all()


def test_a_set_is_looked_through_by_class_and_page(app: AppTest, workspace: Path) -> None:
    """Catches a set of which only a dozen images can be seen, and a click that opens none of them."""
    files = {f"{name}/{k:02}.png": image(k) for name, count in (("boat", 3), ("cat", 40)) for k in range(count)}
    add(app.run(), "animals.zip", zipped(files))
    assert [number for number, _ in read_grid(app)] == list(range(30))
    app.selectbox(key="class").set_value("boat").run()
    assert read_grid(app) == [(k, ("boat", f"{k:02}.png")) for k in range(3)]
    app.session_state["library_opened"] = 2
    assert any("boat/02.png: boat, 64 × 64 px" in text.value for text in app.run().markdown)


def test_a_set_leads_to_explore_and_design_with_the_network_that_knows_its_classes(
    app: AppTest, workspace: Path
) -> None:
    """Catches a link that opens Explore with a network of other classes, and one to a study that is not there."""
    (workspace / "models").mkdir()
    (workspace / "models" / "mine.py").write_bytes(NETWORK.replace(b"bright", b"zebra"))
    add(app.run(), "animals.zip", zipped({"zebra/1.png": image(1), "gnu/1.png": image(2)}))
    linked = {link.proto.label: parse_qs(link.proto.query_string) for link in app.get("page_link")}
    assert linked["Explain these images"] == {"source": ["animals"], "classifier": ["models/mine.py"]}
    assert linked["Design a study from these images"] == {
        "study": [NEW_STUDY], "model": ["models/mine.py"], "images_of": ["animals"],
    }  # fmt: skip


def test_a_set_that_no_network_knows_leads_to_the_networks(app: AppTest, workspace: Path) -> None:
    """Catches “0 of 1 folders match” with nothing to do about it."""
    add(app.run(), "animals.zip", zipped({"zebra/1.png": image(1)}))
    assert any("No network here knows these classes" in caption.value for caption in app.caption)
    next(button for button in app.button if button.label == "Add a network that knows these classes").click().run()
    assert app.segmented_control("part").value == "Networks"
    assert not app.exception


def test_what_is_refused_is_a_sentence_and_adds_nothing(app: AppTest, workspace: Path) -> None:
    """Catches a traceback, or half a set, for a hostile zip."""
    add(app.run(), "evil.zip", zipped({"cat/1.png": image(1), "../../evil.png": image(2)}))
    (alert,) = app.error
    assert "leads out of the set" in alert.value
    assert list((workspace / "images").glob("*")) == []


@pytest.mark.parametrize(
    ("way", "names"), [("Folder", ["0.png", "1.png"]), ("Zip or images", ["0.png", "all/cat/1.png"])]
)
def test_images_in_no_folder_are_refused_where_folders_name_the_classes(
    app: AppTest, way: str, names: list[str]
) -> None:
    """Catches a set some of whose images are of a class without a name."""
    app.run().segmented_control("library_way").set_value(way).run()
    app.file_uploader[0].set_value([(name, image(k), "image/png") for k, name in enumerate(names)]).run()
    assert not app.exception
    assert "in no folder, which would name their class" in app.warning[0].value
    assert app.button("library_add").disabled


def test_a_folder_is_added_by_either_uploader(app: AppTest, workspace: Path) -> None:
    """Catches a dropped folder that loses its classes: both uploaders get each file with the path to it."""
    for way, name in (("Folder", "one"), ("Zip or images", "two")):
        app.run().segmented_control("library_way").set_value(way).run()
        files = [(f"{name}/{place}", image(seed), "image/png") for place, seed in FILES.items() if seed < 5]
        app.file_uploader[0].set_value(files).run()
        settled(app.button("library_add").click().run())
        assert count_images(workspace / "images" / name) == {"boat": 1, "cat": 3, "kitty": 1}


def test_images_of_one_class_are_added_by_its_name(app: AppTest, workspace: Path) -> None:
    """Catches loose images that need a zip."""
    app.run().file_uploader[0].set_value([("a.png", image(1), "image/png"), ("b.png", image(2), "image/png")]).run()
    assert app.button("library_add").disabled
    app.text_input("library_category").set_value("cat").run()
    next(field for field in app.text_input if field.label == "Name of the set").set_value("mine").run()
    settled(app.button("library_add").click().run())
    assert count_images(workspace / "images" / "mine") == {"cat": 2}


def test_a_folder_of_this_machine_is_copied(app: AppTest, workspace: Path, tmp_path: Path) -> None:
    """Catches a path that is not read, and a relative one read from wherever the server runs."""
    (tmp_path / "source" / "cat").mkdir(parents=True)
    (tmp_path / "source" / "cat" / "1.png").write_bytes(image(1))
    app.run().segmented_control("library_way").set_value("Path on this machine").run()
    for path in ("source", str(tmp_path / "source")):
        app.text_input("library_path").set_value(path).run()
        settled(app.button("library_add").click().run())
        assert bool(app.error) == (path == "source")
    assert count_images(workspace / "images" / "source") == {"cat": 1}


def test_a_folder_one_level_too_high_is_added_only_if_that_is_meant(app: AppTest, workspace: Path) -> None:
    """Catches a set of the wrong classes, and one that cannot be added although its folders are right."""
    content = zipped({f"{name}/{part}/1.png": image(k) for k, name in enumerate(("cat", "dog")) for part in "ab"})
    add(app.run(), "animals.zip", content)
    assert "add the folder 'cat' alone" in app.error[0].value
    app.checkbox("library_nested").check().run()
    settled(app.button("library_add").click().run())
    assert count_images(workspace / "images" / "animals") == {"cat": 2, "dog": 2}


def test_a_set_is_removed_after_a_second_click(app: AppTest, workspace: Path) -> None:
    """Catches a set that cannot be removed, or is at once."""
    add(app.run(), "animals.zip", zipped({"cat/1.png": image(1)}))
    app.button("library_remove_animals").click().run()
    assert not (workspace / "images" / "animals").exists()
    assert not app.exception


def test_labels_are_matched_with_the_network_that_has_most_of_them(app: AppTest, workspace: Path) -> None:
    """Catches photographs whose folders are offered the classes of drawn scenes, and a broken file that stops it."""
    (workspace / "models").mkdir()
    for name, classes in (("fewer", ["boat", "dark"]), ("most", ["boat", "kitty", "junk"])):
        network = NETWORK.decode().replace('["dark", "bright"]', str(classes)).replace("(3, 2)", f"(3, {len(classes)})")
        (workspace / "models" / f"{name}.py").write_text(network)
    (workspace / "models" / "broken.py").write_text("import nothing_of_that_name")
    add(app.run(), "animals.zip", zipped({name: image(seed) for name, seed in FILES.items()}))
    assert app.selectbox(key="library_model_animals").value == "models/most.py"
    assert any("3 of 4 folders match a class" in text.value for text in app.markdown)


def test_each_set_has_the_network_of_its_own_classes(app: AppTest, workspace: Path) -> None:
    """Catches a set that is compared with the network of the set shown before, which Design would be handed."""
    (workspace / "models").mkdir()
    for name, classes in (("animals", '["kitty", "pup"]'), ("plants", '["fern", "moss"]')):
        (workspace / "models" / f"{name}.py").write_text(NETWORK.decode().replace('["dark", "bright"]', classes))
        for k, category in enumerate(json.loads(classes)):
            (workspace / "images" / name / category).mkdir(parents=True)
            (workspace / "images" / name / category / "1.png").write_bytes(image(k))
    settled(app.run())
    for name in ("animals", "plants", "animals"):
        settled(app.selectbox(key=CHOSEN).set_value(name).run())
        chosen = next(one for one in app.selectbox if one.label == "Network").value
        assert chosen == f"models/{name}.py"
        assert any("2 of 2 folders match a class" in text.value for text in app.markdown)


def test_a_link_to_a_part_that_is_not_there_says_so(app: AppTest) -> None:
    """Catches a link that opens another part of the page without a word, as before on every page but two."""
    app.query_params["part"] = "Videos"
    app.run()
    assert [warning.value for warning in app.warning] == [
        "The link names the part “Videos”, which does not exist here. Another one is shown instead."
    ]
    app.query_params["part"] = "Networks"
    assert not app.run().exception
