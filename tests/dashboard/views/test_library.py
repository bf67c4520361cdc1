"""The page Models & images, run by AppTest over a workspace of the test's own."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from core.loading import import_torchvision
from dashboard.library import models as networks_part
from dashboard.shared import cache
from study.workspace.imagesets import count_images
from study.workspace.modelfiles import read_lines
from tests.dashboard.conftest import PATIENCE_S, gallery_of, made

FILES = {"cat/1.png": 1, "cat/2.png": 2, "cat/again.png": 1, "kitty/3.png": 3, "boat/4.png": 4, "junk/5.png": 5}
"""Each image by the seed of its noise: cat/again.png repeats cat/1.png."""


def image(seed: int) -> bytes:
    rough = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(rough).resize((64, 64)).save(content, "PNG")
    return content.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


@pytest.fixture
def app(workspace: Path) -> AppTest:
    def page() -> None:
        from dashboard.library import page

        page.page()

    return AppTest.from_function(page, default_timeout=120)


def add(app: AppTest, name: str, content: bytes, title: str = "") -> AppTest:
    """Upload a file, name the set, and press Add."""
    app.file_uploader[0].set_value((name, content, "application/zip")).run()
    if title:
        next(field for field in app.text_input if field.label == "Name of the set").set_value(title).run()
    return settled(app.button("library_add").click().run())


def settled(app: AppTest) -> AppTest:
    """The page when nothing is going on any more."""
    deadline = time.monotonic() + PATIENCE_S
    while app.get("progress") or not any(str(button.key).startswith("library_add") for button in app.button):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        app.run()
    return made(app)


def test_a_zip_becomes_a_set_whose_labels_are_matched(app: AppTest, workspace: Path) -> None:
    """Catches unreadable files, repetitions or labels that the page does not name, and a form without effect."""
    content = zipped(
        {name: image(seed) for name, seed in FILES.items()} | {"cat/broken.png": b"no image", "cat/notes.txt": b"cats"}
    )
    add(app.run(), "animals.zip", content)
    assert count_images(workspace / "images" / "animals") == {"boat": 1, "cat": 4, "junk": 1, "kitty": 1}
    left_out = "1 file was not an image and was left out: cat/notes.txt."
    assert [alert.value for alert in app.success] == [f"Added 7 images. {left_out}"]
    assert any(heading.value == "6 images in 4 classes" for heading in app.header)
    drawn = [picture.proto.imgs[0].caption for picture in app.get("image")]
    assert sorted(drawn) == ["boat", "cat", "cat", "cat", "junk", "kitty"]
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


def test_a_set_is_removed_after_a_second_click(app: AppTest, workspace: Path) -> None:
    """Catches a set that cannot be removed, or is at once."""
    add(app.run(), "animals.zip", zipped({"cat/1.png": image(1)}))
    app.button("library_remove_animals").click().run()
    assert not (workspace / "images" / "animals").exists()
    assert not app.exception


NETWORK = b"""
import torch

CATEGORIES = ["dark", "bright"]


def build():
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    return network
"""


def test_labels_are_matched_with_the_network_that_has_most_of_them(app: AppTest, workspace: Path) -> None:
    """Catches photographs whose folders are offered the classes of drawn scenes, and a broken file that stops it."""
    (workspace / "models").mkdir()
    for name, classes in (("fewer", ["boat", "dark"]), ("most", ["boat", "kitty", "junk"])):
        network = NETWORK.decode().replace('["dark", "bright"]', str(classes)).replace("(3, 2)", f"(3, {len(classes)})")
        (workspace / "models" / f"{name}.py").write_text(network)
    (workspace / "models" / "broken.py").write_text("import nothing_of_that_name")
    add(app.run(), "animals.zip", zipped({name: image(seed) for name, seed in FILES.items()}))
    assert app.selectbox(key="library_model").value == "models/most.py"
    assert any("3 of 4 folders match a class" in text.value for text in app.markdown)


@pytest.fixture
def networks(app: AppTest) -> AppTest:
    return app.run().segmented_control("part").set_value("Networks").run()


def choose(app: AppTest, source: str) -> AppTest:
    return app.segmented_control("model_from").set_value(source).run()


def test_a_python_file_is_added_loaded_and_removed(networks: AppTest, workspace: Path) -> None:
    """Catches a file of one's own that Explore does not offer, and no word that it is run."""
    app = choose(networks, "File")
    assert any("is run on this machine" in alert.value for alert in app.warning)
    app.file_uploader("model_file").set_value(("mine.py", NETWORK, "text/x-python")).run()
    settled(app.button("library_add_model").click().run())
    assert [alert.value for alert in app.success] == ["Added mine.py: 2 classes."]
    assert "models/mine.py" in cache.list_models()
    assert cache.load_classifier("models/mine.py").categories == ("dark", "bright")
    app.button("remove_models/mine.py").click().run()
    assert not (workspace / "models" / "mine.py").exists()


def test_a_file_that_cannot_be_loaded_stays_only_if_it_is_kept(networks: AppTest, workspace: Path) -> None:
    """Catches a broken file that is left in the workspace, and one that is lost although its author wants it."""
    app = choose(networks, "File")
    app.file_uploader("model_file").set_value(("mine.py", b"def build():\n    return 1 / 0\n", "text/x-python")).run()
    settled(app.button("library_add_model").click().run())
    assert any("ZeroDivisionError" in alert.value for alert in app.error)
    assert not (workspace / "models" / "mine.py").exists()
    app.file_uploader("model_file").set_value(("mine.py", b"def build():\n    return 1 / 0\n", "text/x-python")).run()
    app.checkbox("model_keep").check().run()
    settled(app.button("library_add_model").click().run())
    assert any("ZeroDivisionError" in alert.value for alert in app.error)
    assert (workspace / "models" / "mine.py").exists()


def test_a_download_that_fails_is_a_sentence_and_adds_no_line(
    networks: AppTest, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a network in Explore's list whose weights are not there."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there
    app = networks.selectbox("name_torchvision").set_value("resnet18").run()
    assert "Downloads the weights of 44.7 MB from https" in str([caption.value for caption in app.caption])
    settled(app.button("library_add_model").click().run())
    said = "download.pytorch.org cannot be reached from this machine: the weights of 'resnet18' could not be"
    assert [alert.value.startswith(said) for alert in app.error] == [True]
    assert read_lines(workspace / "models") == []


def test_a_network_whose_weights_are_here_is_added_by_its_name(
    networks: AppTest, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a line that Explore cannot load, or a name that is listed twice."""
    import_torchvision()
    from torchvision import models

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    file = tmp_path / "hub" / "checkpoints" / Path(models.get_model_weights("squeezenet1_1").DEFAULT.url).name
    file.parent.mkdir(parents=True)
    torch.save(models.squeezenet1_1().state_dict(), file)
    app = networks.selectbox("name_torchvision").set_value("squeezenet1_1").run()
    assert any("nothing is downloaded" in caption.value for caption in app.caption)
    settled(app.button("library_add_model").click().run())
    assert [alert.value for alert in app.success] == ["Added torchvision:squeezenet1_1: 1,000 classes."]
    assert read_lines(workspace / "models") == ["torchvision:squeezenet1_1"]
    assert cache.list_models().count("torchvision:squeezenet1_1") == 1
    app.button("remove_torchvision:squeezenet1_1").click().run()
    assert read_lines(workspace / "models") == []


@pytest.mark.parametrize("source", ["hf", "timm"])
def test_the_hub_is_asked_for_the_size_only_by_the_button(
    networks: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str
) -> None:
    """Catches a request that nobody asked for, a size that is not shown, and one that another model inherits."""
    pytest.importorskip("timm")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    replies: list[int | ForetellError] = [ForetellError("huggingface.co cannot be reached."), 346_293_852]
    asked: list[tuple[str, str]] = []

    def measure(repository: str, revision: str) -> int:
        asked.append((repository, revision))
        reply = replies[len(asked) - 1]
        if isinstance(reply, ForetellError):
            raise reply
        return reply

    monkeypatch.setattr(networks_part, "measure_download", measure)
    app = choose(networks, {"hf": "Hugging Face", "timm": "timm"}[source])
    if source == "hf":
        app.text_input("name_hf").set_value("google/vit@v1").run()
    else:
        app.selectbox("name_timm").set_value("resnet18.a1_in1k").run()
    assert asked == []
    assert any("(size unknown) from https://huggingface.co/" in caption.value for caption in app.caption)
    app.button("library_ask_size").click().run()
    assert not app.exception
    assert not app.error
    assert any(caption.value == "huggingface.co cannot be reached." for caption in app.caption)
    app.button("library_ask_size").click().run()
    assert any("Downloads the weights of 330.3 MB from https://hugging" in caption.value for caption in app.caption)
    assert not any(str(button.key) == "library_ask_size" for button in app.button)
    assert set(asked) == {("google/vit", "v1") if source == "hf" else ("timm/resnet18.a1_in1k", "")}
    if source == "hf":
        app.text_input("name_hf").set_value("google/other").run()
    else:
        app.selectbox("name_timm").set_value("resnet34.a1_in1k").run()
    assert any("(size unknown)" in caption.value for caption in app.caption)
    assert len(asked) == 2


def test_a_link_to_a_part_that_is_not_there_says_so(app: AppTest) -> None:
    """Catches a link that opens another part of the page without a word, as before on every page but two."""
    app.query_params["part"] = "Videos"
    app.run()
    assert [warning.value for warning in app.warning] == [
        "The link names the part “Videos”, which does not exist here. Another one is shown instead."
    ]
    app.query_params["part"] = "Networks"
    assert not app.run().exception
