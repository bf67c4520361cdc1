"""Guides: each does one task and is short, and the first hour runs as it is printed."""

from __future__ import annotations

import re
import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MOST_WORDS = 620
"""In a guide, its tables included: more is a second task, or results, which belong to `docs/results/`."""


def test_guides_do_one_task() -> None:
    """A guide that grows into a manual again."""
    pages = [*(DOCS / "how-to").glob("*.md"), *DOCS.glob("first-*.md")]
    words = {page.stem: len(page.read_text(encoding="utf-8").split()) for page in pages if page.name != "README.md"}
    assert len(words) > 25
    assert {name: count for name, count in words.items() if count > MOST_WORDS} == {}


def test_the_first_hour_is_four_pages_in_order() -> None:
    """A first hour whose pages do not lead to one another."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d\. \[[^]]+\]\(([^)]+)\)", text, re.MULTILINE)
    assert steps == ["start.md", "first-heatmaps.md", "how-to/design-a-study.md", "first-results.md"]
    for here, after in pairwise(steps):
        links = re.findall(r"\]\(([^)#]+)\)", (DOCS / here).read_text(encoding="utf-8"))
        assert (DOCS / after).resolve() in [(DOCS / here).parent.joinpath(link).resolve() for link in links], here


def test_the_heatmaps_of_the_first_hour_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network file or a notebook cell that does not run as it is printed."""
    own, cell = re.findall(r"```python\n(.*?)```", (DOCS / "first-heatmaps.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mine.py").write_text(own, encoding="utf-8")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        torch.save(runpy.run_path(str(tmp_path / "mine.py"))["Network"]().state_dict(), tmp_path / "weights.pt")
    noise = np.random.default_rng(0).integers(0, 256, (240, 240, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "dog.jpg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(cell, names)
    written = {path.name for path in (tmp_path / "heatmaps").iterdir()}
    assert {
        f"dog.{method}.{kind}" for method in ("grad_cam", "integrated_gradients") for kind in ("npy", "png")
    } <= written
    assert np.load(tmp_path / "heatmaps" / "dog.grad_cam.npy").shape == (224, 224)
    assert names["heatmaps"][0].category in ("cat", "dog")  # type: ignore[index]
