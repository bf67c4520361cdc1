"""Which pictures files, folders and patterns name, and what their maps are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.errors import ForetellError
from inquiry.files.image_files import find_images, open_image


@pytest.fixture
def folder(tmp_path):
    """a/one.png, a/deep/two.JPG, b/one.png, and what is no picture."""
    for name in ("a/one.png", "a/deep/two.JPG", "b/one.png", "a/.hidden.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    (tmp_path / "a" / "notes.txt").write_text("not a picture")
    return tmp_path


def names(*paths):
    return sorted(find_images(paths))


def test_a_folder_keeps_its_relative_paths(folder):
    assert names(folder / "a") == ["deep/two", "one"]


def test_a_file_is_called_by_its_stem_and_counts_once(folder):
    assert find_images([folder / "a" / "one.png", folder / "a"]) == {
        "one": folder / "a" / "one.png",
        "deep/two": folder / "a" / "deep" / "two.JPG",
    }


@pytest.mark.parametrize(
    ("pattern", "found"), [("a/*.png", ["one"]), ("*/one.png", ["a/one", "b/one"]), ("a/**/*", ["deep/two", "one"])]
)
def test_a_pattern_starts_from_its_fixed_part(folder, pattern, found):
    assert names(folder / pattern) == found


def test_same_stems_in_two_folders_are_told_apart(folder):
    assert names(folder / "a" / "one.png", folder / "b" / "one.png") == ["a/one", "b/one"]
    assert names(folder / "a", folder / "b") == ["a/deep/two", "a/one", "b/one"]


def test_same_stems_in_one_folder_keep_their_endings(folder):
    Image.new("RGB", (4, 4)).save(folder / "a" / "one.webp")
    assert names(folder / "a") == ["deep/two", "one.png", "one.webp"]


def test_maps_among_the_images_are_no_images(folder):
    """Explaining a folder into itself must not explain the maps the next time."""
    for ending in ("png", "npy", "json"):
        (folder / "a" / f"one.gradient.{ending}").write_bytes(b"")
    assert names(folder / "a") == ["deep/two", "one"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("a/oen.png", r"There is no image .*oen\.png\. Did you mean one\.png\?"),
        ("empty", r"There is no image in .*empty: file names must end in"),
        ("a/*.tif", r"There is no image in .*\*\.tif"),
    ],
)
def test_what_names_no_image_is_refused(folder, given, sentence):
    (folder / "empty").mkdir()
    with pytest.raises(ForetellError, match=sentence):
        find_images([folder / given])


def test_16_bits_a_pixel_are_scaled_not_clipped(tmp_path):
    """Pillow's own conversion clips at 255, which leaves such a picture white."""
    Image.fromarray(np.full((4, 4), 0x8000, dtype=np.uint16)).save(tmp_path / "grey.png")
    assert open_image(tmp_path / "grey.png").getpixel((0, 0)) == (128, 128, 128)


def test_a_truncated_image_is_named(tmp_path: Path):
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:300])
    with pytest.raises(ForetellError, match=r"cut\.png cannot be read as an image"):
        open_image(tmp_path / "cut.png")
