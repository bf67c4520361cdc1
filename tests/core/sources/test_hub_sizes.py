"""The size of a download at huggingface.co, against lists of files as the hub gives them; and what goes wrong."""

from __future__ import annotations

import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from core.errors import ForetellError
from core.sources.hub import measure_download

VIT = {"config.json": 69_665, "flax_model.msgpack": 346_000_000, "model.safetensors": 346_293_852,
       "pytorch_model.bin": 346_351_599, "preprocessor_config.json": 160, "tf_model.h5": 346_537_664}  # fmt: skip
"""Of google/vit-base-patch16-224: the package loads one of the four copies of the weights."""
PARTS = {
    "model-00001-of-00002.safetensors": 5,
    "model-00002-of-00002.safetensors": 7,
    "model.safetensors.index.json": 1,
}


def answer_with(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, int | None], error: Exception | None = None
) -> list[Any]:
    """Put a client in the hub's place; the requests it was asked."""
    asked: list[Any] = []

    class HfApi:
        def model_info(self, repository: str, **settings: Any) -> Any:
            asked.append((repository, settings))
            if error is not None:
                raise error
            return SimpleNamespace(siblings=[SimpleNamespace(rfilename=f, size=n) for f, n in files.items()])

    client = ModuleType("huggingface_hub")
    client.HfApi = HfApi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    return asked


@pytest.mark.parametrize(
    ("files", "size"),
    [
        (VIT, 346_293_852),
        ({name: size for name, size in VIT.items() if not name.endswith(".safetensors")}, 346_351_599),
        (PARTS, 12),
        ({"onnx/model.safetensors": 3, "model.safetensors": 4, "open_clip_model.safetensors": 5}, 4),
    ],
)
def test_the_size_is_that_of_the_weights_which_are_loaded(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, int | None], size: int
) -> None:
    """Catches copies in other formats that are counted, and parts that are not."""
    asked = answer_with(monkeypatch, files)
    assert measure_download("google/vit", "v1", 3.0) == size
    assert asked == [("google/vit", {"revision": "v1", "timeout": 3.0, "files_metadata": True})]
    measure_download("google/vit")
    assert asked[1][1]["revision"] is None


@pytest.mark.parametrize(
    ("files", "error", "says"),
    [
        ({"model.safetensors": None}, None, "does not say how large"),
        ({"README.md": 3}, None, "does not say how large"),
        ({}, type("RepositoryNotFoundError", (Exception,), {})("404"), "has no model 'a/b' that is open"),
        ({}, type("HFValidationError", (ValueError,), {})("bad"), "Write OWNER/NAME"),
        ({}, OSError("no route"), "cannot be reached from this machine"),
        ({}, type("OfflineModeIsEnabled", (ConnectionError,), {})("offline"), "cannot be reached from this machine"),
    ],
)
def test_what_goes_wrong_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, int | None], error: Exception | None, says: str
) -> None:
    """Catches an error of the client that the page does not know."""
    answer_with(monkeypatch, files, error)
    with pytest.raises(ForetellError, match=says):
        measure_download("a/b")


def test_a_hub_that_does_not_respond_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a page that stands still while an address is searched, which the client's limit does not count."""
    never, asked = threading.Event(), threading.Event()

    class HfApi:
        def model_info(self, *_: Any, **__: Any) -> Any:
            asked.set()
            never.wait(60)

    client = ModuleType("huggingface_hub")
    client.HfApi = HfApi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    with pytest.raises(ForetellError, match=r"did not respond within 0\.05 s"):
        measure_download("a/b", seconds=0.05)
    assert asked.wait(300)
    never.set()
