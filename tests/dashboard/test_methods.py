"""Methods of the workspace's owner on the page Explore: offered by name, and no file that only a link names."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch

from core.attribution import METHODS
from core.errors import ForetellError
from core.types import silent
from dashboard.explore import methods
from dashboard.explore.heatmap_jobs import HeatmapRequest, estimate, make_faithfulness_task, make_robustness_task
from dashboard.explore.heatmaps.cells import with_robustness
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.methods import name_methods
from dashboard.explore.source import open_upload
from dashboard.explore.table import Cell
from dashboard.shared import cache
from data.scenes.generator import render
from tests.dashboard.views.conftest import opened, script, settled  # noqa: F401 - a fixture

DOCUMENTED = """
def explain(model, images, targets, *, times: float = 1.0, bare: int = 1):
    '''Brightness, times a number.

    Parameters
    ----------
    times : float
        Factor of the ``brightness`` [0 to 1], *not* of the image.
    '''
    return images.sum(1) * times
"""

MINE = """
def explain(model, images, targets, *, times: float = 1.0):
    '''Brightness, times a number.'''
    return images.sum(1) * times
"""


@pytest.fixture
def owned(workspace: Path) -> Path:
    """A workspace with a method, a folder of heatmaps, a broken method, and a file that nobody put there."""
    folder = workspace / "methods"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    (folder / "broken.py").write_text("raise ValueError('half written')")
    (folder / "maps").mkdir()
    (workspace / "evil.py").write_text(f"open({str(workspace / 'executed')!r}, 'w')\n{MINE}")
    return workspace


def open_scene() -> ClassifiedImage:
    file = io.BytesIO()
    render(3, category="fish", context="sea").image.save(file, "PNG")
    return ClassifiedImage("scenes", open_upload(file.getvalue(), "fish.png"))


def request(method: str, **given: object) -> HeatmapRequest:
    one = open_scene()
    return HeatmapRequest(one.classifier, method, one.inputs, 2, 0, given, one.record)


def test_what_the_owner_put_there_is_offered_and_nothing_is_executed(owned: Path) -> None:
    """Catches a list that runs files, and a name that is not in it."""
    (owned / "methods" / "evil.py").write_text((owned / "evil.py").read_text())
    network = cache.load_classifier("scenes")
    assert methods.list_methods(network) == [
        *METHODS,
        "broken.py:explain",
        "evil.py:explain",
        "mine.py:explain",
        "heatmaps:maps",
    ]
    assert not (owned / "executed").exists()


def test_what_is_not_offered_is_not_opened(owned: Path) -> None:
    """Catches a request of a made-up method that executes a file, or reads a folder, of its choice."""
    for name in (f"{owned}/evil.py:explain", "../evil.py:explain", "heatmaps:/", "heatmaps:../", "own"):
        with pytest.raises(ForetellError, match="Unknown method"):
            _ = request(name).key
    assert not (owned / "executed").exists()


def test_a_heatmap_of_the_owners_method_and_its_measures(owned: Path) -> None:
    """Closed form: brightness times 3. Catches a file that is read once and never again, and a measure that fails."""
    asked = request("mine.py:explain", times=3.0)
    found = asked.compute(silent)
    torch.testing.assert_close(found.map[0], open_scene().inputs.sum(0) * 3)
    assert estimate(asked.classifier, asked.method, asked.parameters) == (None, None)
    assert make_faithfulness_task(asked, found).compute(silent).deletion.area[0] >= 0
    robust = make_robustness_task(asked).compute(silent)
    assert robust.randomisation.method == "mine.py:explain"
    assert robust.randomisation.is_flagged  # brightness is that of any network
    (owned / "methods" / "mine.py").write_text(MINE.replace("sum(1)", "mean(1)"))
    again = request("mine.py:explain", times=3.0)
    assert again.key != asked.key
    torch.testing.assert_close(again.compute(silent).map[0], open_scene().inputs.mean(0) * 3)


def test_finished_heatmaps_are_of_the_image_and_have_no_robustness(owned: Path) -> None:
    """Catches the heatmap of another image, and a robustness check of a method that cannot be called again."""
    one = open_scene()
    file = owned / "methods" / "maps" / "fish.npy"
    with pytest.raises(ForetellError, match=f"heatmaps:maps has no heatmap of {one.chosen.name}"):
        request("heatmaps:maps").compute(silent)
    np.save(file, np.random.default_rng(0).normal(size=(96, 96)).astype(np.float32))
    asked = request("heatmaps:maps")
    found = asked.compute(silent)
    np.testing.assert_array_equal(found.map[0].numpy(), np.load(file))
    cell = Cell(asked, found, faithfulness=make_faithfulness_task(asked, found).compute(silent))
    assert with_robustness(lambda _: pytest.fail("asked for it"), cell) is cell


def test_the_page_offers_it_and_a_link_executes_nothing(owned: Path, opened) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    """Catches a crafted link that runs a file; a broken method says so and the page goes on."""
    app = opened(method="mine.py:explain")
    assert app.selectbox(key="method").value == "mine.py:explain"
    assert any("Brightness, times a number." in caption.value for caption in app.caption)
    assert "Explained class" in dict(app.table[0].value.to_numpy().tolist())
    for name in (f"{owned}/evil.py:explain", "../evil.py:explain", "evil.py:explain"):
        crafted = opened(method=name)
        assert crafted.selectbox(key="method").value == "bayesian_teaching"
        assert any("which does not exist here" in warning.value for warning in crafted.warning)
    assert not (owned / "executed").exists()
    broken = opened(method="broken.py:explain")
    assert any("broken.py failed while it was read: ValueError: half written" in e.value for e in broken.error)


def test_fields_of_an_own_method_say_what_its_docstring_says(owned: Path, opened) -> None:  # noqa: F811
    """And those of one without a word on its parameters open too. Catches text that is read as Markdown."""
    app = opened(method="mine.py:explain")
    assert app.number_input(key="mine.py:explain.times").help in (None, "")
    (owned / "methods" / "mine.py").write_text(DOCUMENTED)
    app = opened(method="mine.py:explain")
    said = app.number_input(key="mine.py:explain.times").help
    assert said == r"Factor of the brightness \[0 to 1\], \*not\* of the image."
    assert app.number_input(key="mine.py:explain.bare").help in (None, "")


def test_a_sentence_of_the_engine_names_methods_as_the_page_does() -> None:
    """Catches a code in a sentence, and a word that is also a method's name taken for it."""
    said = name_methods("attention_rollout needs a gradient: use grad_cam, smoothgrad or bayesian_teaching.")
    assert said == "Attention rollout needs a gradient: use Grad-CAM, SmoothGrad or Bayesian teaching."
