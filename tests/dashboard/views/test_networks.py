"""The part Networks of the page Models & images: what is added, listed and removed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from core.loading import import_torchvision
from dashboard.library import models as networks_part
from dashboard.shared import cache
from study.workspace.modelfiles import read_lines
from tests.dashboard.conftest import made
from tests.dashboard.views.library import NETWORK, open_library, settled


@pytest.fixture
def networks(workspace: Path) -> AppTest:
    return open_library().run().segmented_control("part").set_value("Networks").run()


def choose(app: AppTest, source: str) -> AppTest:
    return app.segmented_control("model_from").set_value(source).run()


def test_a_python_file_is_added_loaded_and_removed(networks: AppTest, workspace: Path) -> None:
    """Catches a file of one's own that Explore does not offer, and no word that it is run."""
    app = choose(networks, "File")
    assert any("is run on this machine" in alert.value for alert in app.warning)
    app.file_uploader("model_file").set_value([("mine.py", NETWORK, "text/x-python")]).run()
    settled(app.button("library_add_model").click().run())
    assert [alert.value for alert in app.success] == ["Added mine.py: 2 classes."]
    assert "models/mine.py" in cache.list_models()
    assert cache.load_classifier("models/mine.py").categories == ("dark", "bright")
    app.button("remove_models/mine.py").click().run()
    assert not (workspace / "models" / "mine.py").exists()


READS = NETWORK.replace(b"import torch\n", b"from pathlib import Path\n\nimport torch\n").replace(
    b'["dark", "bright"]', b'(Path(__file__).parent / "labels.txt").read_text().split()'
)
"""A network that reads its class names from a file next to it."""


def test_a_network_is_added_with_the_files_that_it_reads(networks: AppTest, workspace: Path) -> None:
    """Catches a network whose weights or class names only a shell could put next to it."""
    app = choose(networks, "File")
    app.file_uploader("model_file").set_value([("mine.py", READS, "text/x-python")]).run()
    settled(app.button("library_add_model").click().run())
    (alert,) = app.error
    assert alert.value.startswith("The file labels.txt is missing: mine.py reads it from ")
    files = [("mine.py", READS, "text/x-python"), ("labels.txt", b"dark bright", "text/plain")]
    app.file_uploader("model_file").set_value(files).run()
    settled(app.button("library_add_model").click().run())
    assert [alert.value for alert in app.success] == ["Added mine/mine.py: 2 classes."]
    assert cache.load_classifier("models/mine/mine.py").categories == ("dark", "bright")
    app.button("remove_models/mine/mine.py").click().run()
    assert list((workspace / "models").iterdir()) == []


def test_a_network_of_ones_own_is_listed_with_facts_and_its_description(workspace: Path) -> None:
    """Catches a network of which the list says nothing but its name, and a broken one without the reason."""
    (workspace / "models").mkdir()
    (workspace / "models" / "mine.py").write_bytes(b'"""Tells dark images\nfrom bright ones.\n\nMore."""\n' + NETWORK)
    (workspace / "models" / "broken.py").write_text("import nothing_of_that_name")
    app = made(open_library().run().segmented_control("part").set_value("Networks").run())
    told = dict(one.value.split("  \n", 1) for one in app.markdown if "  \n" in one.value)
    facts = "2 classes · 224 px · 8 parameters · Python file"
    assert told["**mine** `models/mine.py`"] == f":small[Tells dark images from bright ones.]  \n:small[:gray[{facts}]]"
    assert "nothing_of_that_name" in told["**broken** `models/broken.py`"]


def test_a_folder_of_this_machine_is_added_as_a_network(networks: AppTest, workspace: Path, tmp_path: Path) -> None:
    """Catches weights that are too large for an upload, and a folder that is left after a failure."""
    source = tmp_path / "bright"
    source.mkdir()
    (source / "network.py").write_bytes(READS)
    app = choose(networks, "File")
    app.text_input("model_path").set_value(str(source)).run()
    settled(app.button("library_add_model").click().run())
    assert app.error[0].value.startswith("The file labels.txt is missing: network.py")
    assert list((workspace / "models").iterdir()) == []
    (source / "labels.txt").write_text("dark bright")
    settled(app.button("library_add_model").click().run())
    assert [alert.value for alert in app.success] == ["Added bright/network.py: 2 classes."]


def test_a_file_that_cannot_be_loaded_stays_only_if_it_is_kept(networks: AppTest, workspace: Path) -> None:
    """Catches a broken file that is left in the workspace, and one that is lost although its author wants it."""
    app = choose(networks, "File")
    app.file_uploader("model_file").set_value([("mine.py", b"def build():\n    return 1 / 0\n", "text/x-python")]).run()
    settled(app.button("library_add_model").click().run())
    assert any("ZeroDivisionError" in alert.value for alert in app.error)
    assert not (workspace / "models" / "mine.py").exists()
    app.file_uploader("model_file").set_value([("mine.py", b"def build():\n    return 1 / 0\n", "text/x-python")]).run()
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
