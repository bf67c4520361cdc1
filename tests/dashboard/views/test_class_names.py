"""Explore with a network of classes that begin alike: links name the class that they mean, also those made before."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from core.class_names import ClassNames
from dashboard.explore.layers import view as inside
from dashboard.shared import links
from inquiry.layers.inspection import LayerQuery
from tests.dashboard.views.test_images import rename_classes

CLASSES = '["maillot", "maillot, tank suit", *NAMES[2:]]'


@pytest.fixture
def model(workspace: Path) -> str:
    (workspace / "pictures" / "mine" / "maillot, tank suit").mkdir(parents=True)
    Image.effect_noise((96, 96), 9).save(workspace / "pictures" / "mine" / "maillot, tank suit" / "one.png")
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(rename_classes(CLASSES))
    return "models/other.py"


@pytest.mark.parametrize("linked", ["maillot, tank suit", "maillot (1)", "tank suit", "1"])
def test_a_link_means_the_class_that_it_names(opened, model: str, linked: str) -> None:
    """Catches the first of two classes that begin alike, a name cut at its comma, and links of former versions."""
    app = opened(source="mine", classifier=model, method="Gradient", target=linked)
    assert not app.warning
    assert app.selectbox(key="target").value == "maillot, tank suit"
    app = opened(source="mine", classifier=model, view="Classes and units", **{"unit.class": linked})
    assert app.selectbox(key="unit.class").value == "maillot, tank suit"
    app = opened(source="mine", classifier=model, view="Grid", columns="Classes", methods="Gradient", classes=linked)
    assert app.multiselect(key="classes").value == ["maillot, tank suit"]


def test_a_question_about_a_class_takes_its_whole_name(opened, model: str, monkeypatch) -> None:
    """Catches a link whose class is split at its comma into two that do not exist."""
    asked_for: list[LayerQuery] = []
    monkeypatch.setattr(inside, "show", lambda query, *_: asked_for.append(query))
    for linked in ("maillot, tank suit", "maillot (1)"):
        app = opened(source="mine", classifier=model, view="Layers", question="Modes", **{"modes.of": linked})
        assert not app.warning
        assert app.selectbox(key="modes.of").value == "maillot, tank suit"
        assert asked_for[-1].parameters["of"] == "maillot, tank suit"


def test_a_former_number_counts_only_with_the_name_before_it() -> None:
    names = ClassNames(("crane (0)", "dog", "crane (2)"))
    shown = [links.name_class(names, value) for value in ("crane (2)", "crane (1)", "dog (1)", "cat (1)", "crane")]
    assert shown == ["crane (2)", "crane (1)", "dog", "cat (1)", "crane"]
