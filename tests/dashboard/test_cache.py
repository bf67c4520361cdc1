"""Keys that tell everything apart, turns that are given back, and what the workspace offers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn

from core.network.classifier import Classifier
from dashboard.shared import cache
from dashboard.shared.keys import digest, tensor_digest
from tests.dashboard.conftest import PATIENCE_S, gallery_of

MODEL = """
from torch import nn

CATEGORIES = {names}

def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 224 * 224, 2))
"""


def test_digest_tells_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert len(digest("a")) == 64


def test_large_inputs_are_not_sampled() -> None:
    """Streamlit's own hash gave the same key for 52 of 60 such pairs."""
    large = torch.zeros(3, 512, 512)
    keys = {tensor_digest(large)}
    for i in range(20):
        changed = large.clone()
        changed.view(-1)[37_013 * i] = 1.0
        keys.add(tensor_digest(changed))
    assert len(keys) == 21


def test_work_is_one_at_a_time_and_the_turn_is_given_back() -> None:
    with cache.one_at_a_time("test build") as first, cache.one_at_a_time("test build") as second:
        assert (first, second) == (True, False)
    with cache.one_at_a_time("test build") as third:
        assert third


def test_the_workspaces_programs_and_listed_models_are_offered(workspace: Path) -> None:
    """Only Python files offered; or class names of a file that was edited since."""
    folder = workspace / "models"
    folder.mkdir()
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))
    torch.jit.save(torch.jit.trace(network, torch.zeros(1, 3, 8, 8)), folder / "net.pt")
    (folder / "names.txt").write_text("day\nnight\n")
    listed = "models/net.pt?names=models/names.txt"
    (folder / "models.txt").write_text(f"# own\n{listed}\n")
    assert cache.list_models()[:3] == ["scenes", "models/net.pt", listed]
    assert cache.load_classifier("models/net.pt").categories == ("class 0", "class 1")
    assert cache.load_classifier(listed).categories == ("day", "night")
    (folder / "names.txt").write_text("dawn\ndusk\n")
    assert cache.load_classifier(listed).categories == ("dawn", "dusk")


def test_a_workspace_of_a_former_version_keeps_its_folder_of_image_sets(workspace: Path) -> None:
    """Catches sets that vanish with the renaming of their folder, and study files that name the other one."""
    assert cache.find_image_source("mine")[0].settings == {"path": "images/mine"}
    (workspace / "pictures" / "mine").mkdir(parents=True)
    assert cache.list_image_sets() == ["mine"]
    assert cache.find_image_source("mine")[0].settings == {"path": "pictures/mine"}


def test_the_workspaces_own_classifiers_and_images_are_offered(workspace: Path) -> None:
    """A file that was edited is another classifier; one that never was here is none."""
    assert cache.list_models()[0] == "scenes"
    assert cache.list_image_sets() == []
    for category in ("day", "night"):
        (workspace / "images" / "mine" / category).mkdir(parents=True)
        Image.new("RGB", (9, 9)).save(workspace / "images" / "mine" / category / "one.png")
    (workspace / "models").mkdir()
    file = workspace / "models" / "mine.py"
    file.write_text(MODEL.format(names=["day", "night"]))
    assert "models/mine.py" in cache.list_models()
    assert cache.list_image_sets() == ["mine"]
    assert cache.load_classifier("models/mine.py").categories == ("day", "night")
    gallery = gallery_of("models/mine.py", "mine")
    truth, says, sure = gallery.describe_prediction(1)
    assert truth == "night"
    assert says in ("day", "night")
    assert 0.5 <= sure <= 1
    file.write_text(MODEL.format(names=["night", "day"]))
    assert cache.load_classifier("models/mine.py").categories == ("night", "day")


def test_facts_of_built_in_networks_are_read_once(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches sixteen networks opened for each session, and facts of a user's file that was edited since."""
    (workspace / "models").mkdir()
    opened: list[str] = []
    open_classifier = cache.open_classifier

    def count(name: str, base: Path) -> Classifier:
        opened.append(name)
        return open_classifier(name, base)

    monkeypatch.setattr(cache, "open_classifier", count)
    cache._read_built_in_facts.cache_clear()
    for names in (["day", "night"], ["dawn", "dusk"]):
        (workspace / "models" / "mine.py").write_text(MODEL.format(names=names))
        job = cache.start_facts_job(["bars", "models/mine.py"])
        assert job.wait(PATIENCE_S)
        assert job.result["models/mine.py"].categories == tuple(names)
        assert job.result["bars"].categories == open_classifier(*cache.find_model_spec("bars")).categories
    assert opened == ["bars", "models/mine.py:build", "models/mine.py:build"]
