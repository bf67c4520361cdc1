"""Heatmaps of a user's own files: what a picture file may be, and what it must not."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from core.errors import ForetellError
from data.scenes.generator import render
from study.explain import Request, explain_files, open_picture

GRADIENT = Request("scenes", ("gradient",), target="fish")


@pytest.fixture
def fish():
    return render(5, category="fish", context="sea").image


def maps(paths, out, request=GRADIENT):
    explain_files(request, paths, out)
    return [np.load(out / f"{path.stem}.gradient.npy") for path in paths]


def test_a_phones_photograph_is_explained_upright(fish, tmp_path):
    """Stored turned, with the EXIF tag that says so: the map is that of the upright picture."""
    fish.save(tmp_path / "upright.png")
    turned = fish.transpose(Image.Transpose.ROTATE_90)
    exif = turned.getexif()
    exif[0x0112] = 6  # "turn by 90 degrees clockwise to see it"
    turned.save(tmp_path / "turned.png", exif=exif)
    upright, same = maps([tmp_path / "upright.png", tmp_path / "turned.png"], tmp_path / "out")
    np.testing.assert_array_equal(upright, same)


@pytest.mark.parametrize("mode", ["RGBA", "P", "L"])
def test_any_mode_of_picture(fish, tmp_path, mode):
    fish.convert(mode).save(tmp_path / "one.png")
    (found,) = maps([tmp_path / "one.png"], tmp_path / "out")
    assert np.isfinite(found).all()


def test_top_is_the_classifiers_answer(fish, tmp_path):
    import json

    fish.save(tmp_path / "fish.png")
    explain_files(Request("scenes", ("gradient",)), [tmp_path / "fish.png"], tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "fish.gradient.json").read_text())
    assert certificate["probability"] > 1 / 16
    explain_files(
        Request("scenes", ("gradient",), target=str(certificate["target"])), [tmp_path / "fish.png"], tmp_path
    )
    np.testing.assert_array_equal(
        np.load(tmp_path / "fish.gradient.npy"), np.load(tmp_path / "out" / "fish.gradient.npy")
    )


def test_two_pictures_of_one_name_are_refused_before_anything_is_written(fish, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        fish.save(tmp_path / folder / "fish.png")
    with pytest.raises(ForetellError, match="Two pictures are called fish"):
        explain_files(GRADIENT, [tmp_path / "a" / "fish.png", tmp_path / "b" / "fish.png"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_truncated_picture_is_named(fish, tmp_path):
    fish.save(tmp_path / "whole.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:300])
    with pytest.raises(ForetellError, match=r"cut.png cannot be read as a picture"):
        open_picture(tmp_path / "cut.png")


def test_a_parameter_that_no_map_can_have_leaves_nothing_behind(fish, tmp_path):
    fish.save(tmp_path / "fish.png")
    request = Request("scenes", ("bayesian_teaching",), parameters={"samples": "1"})
    with pytest.raises(ForetellError, match="need at least 2 masks"):
        explain_files(request, [tmp_path / "fish.png"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
