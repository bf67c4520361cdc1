"""Stimuli of a network that sees a part of its images, and what is said of studies frozen before that was drawn."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.drawing.rendering import overlay, scale_of
from core.network.geometry import Geometry
from study.building.build import build, verify
from study.building.drawing import WEBP
from study.building.reopening import ReopenedStudy, reopen
from study.bundle import Bundle
from study.network.placement import DRAWING, caveats, describe_misplacement, misplacement
from study.workspace.files import write_whole
from tests.study.studies import TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")

ZOOM = """
from PIL import Image
from data.scenes import classifier
from data.scenes.classifier import CATEGORIES, build

def transforms(image):
    return classifier.transforms(image.crop((20, 12, 84, 76)).resize((96, 96), Image.Resampling.BILINEAR))
"""
BOX = (20, 12, 84, 76)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> ReopenedStudy:
    """A study of a network that sees 64 of 96 px, not in the middle."""
    folder = tmp_path_factory.mktemp("drawing")
    (folder / "zoom.py").write_text(ZOOM)
    (folder / "tiny.toml").write_text(TINY.replace('model = "scenes"', 'model = "zoom.py:build"'))
    return reopen(build(folder / "tiny.toml", folder), folder / "cache")


def sha256(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", **WEBP)
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def test_participants_are_shown_the_part_that_the_network_sees(again: ReopenedStudy) -> None:
    """Cut out by hand, byte by byte, for the plain image and for the one with its heatmap."""
    for trial in again.bundle.manifest.trials[:3]:
        image, found = again.open_image(trial), again.target_map(trial)
        assert found.error is not None
        plain = image.resize((96, 96), Image.Resampling.LANCZOS, box=BOX)
        assert sha256(plain) == trial.assets.target
        grey = image.convert("L").resize((96, 96), Image.Resampling.LANCZOS, box=BOX)
        signed = scale_of(found, 0).normalise_map(found.map[0], found.error[0])
        drawn = overlay(grey, signed, (96, 96), again.sources.config.saliency.opacity)
        assert sha256(drawn) == trial.assets.target_map


def test_a_study_frozen_before_is_said_to_be_affected_and_by_how_much(again: ReopenedStudy) -> None:
    """The environment is no part of the hash. Off by (4 + u/3, -4 + v/3) px of 96 where u, v run from -48 to 48."""
    frozen = again.bundle.manifest
    assert caveats(frozen) == []
    old = frozen.model_copy(update={"environment": {k: v for k, v in frozen.environment.items() if k != DRAWING}})
    assert old.compute_hash() == frozen.study_hash
    assert "participants were shown misplaced heatmaps" in caveats(old)[0]
    place = (np.arange(32) + 0.5) / 32 - 0.5
    off = np.hypot(4 / 96 - place[None] / 3, -4 / 96 - place[:, None] / 3)
    said = describe_misplacement(old, [again.sources.classifier.geometry((96, 96))] * 9)[0]
    assert f"9 of 9 target images by {off.mean():.1%} of the side on average and up to {off.max():.0%}" in said


def test_verify_says_it_first(again: ReopenedStudy, tmp_path: Path) -> None:
    """Of an old bundle whose stimuli happen to be the same nothing else is said."""
    frozen = again.bundle.manifest
    old = frozen.model_copy(update={"environment": {k: v for k, v in frozen.environment.items() if k != DRAWING}})
    write_whole(tmp_path / "manifest.json", old.model_dump_json().encode())
    (tmp_path / "assets").mkdir()
    for name in frozen.assets:
        write_whole(tmp_path / "assets" / f"{name}.webp", again.bundle.asset(name).read_bytes())
    (fault,) = verify(Bundle(tmp_path))
    assert fault.startswith("The study was frozen by an earlier version, which drew heatmaps in the wrong place")


def test_what_the_old_drawings_were_off_by() -> None:
    """In closed form: a crop to 7/8 is off by 1/8 of the distance from the middle, whose mean in a square is .3826."""
    crop = Geometry((256, 256), (224, 224), ((1.0, 0.0, 16.0), (0.0, 1.0, 16.0)))
    assert misplacement(crop) == pytest.approx((0.3826 / 8, np.sqrt(0.5) / 8), rel=0.04)
    squash = Geometry((600, 200), (200, 200), ((3.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    assert misplacement(squash) == pytest.approx((0.5, 1.0), rel=0.04)
    whole = Geometry((600, 600), (200, 200), ((3.0, 0.0, 0.0), (0.0, 3.0, 0.0)))
    assert misplacement(whole) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_the_demo_is_not_affected(again: ReopenedStudy) -> None:
    """The built-in network sees the whole of the square images drawn for it."""
    frozen = again.bundle.manifest
    demo = frozen.model_copy(update={"environment": {}, "config": frozen.config | {"classifier": {"model": "scenes"}}})
    assert caveats(demo) == []
    assert caveats(None) == []
