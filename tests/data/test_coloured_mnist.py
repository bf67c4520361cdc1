"""Coloured MNIST from tiny files of the published format, written byte by byte."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from data.errors import DataError
from data.sets.coloured_mnist import COLOURS, load

DIGITS = np.arange(4 * 28 * 28, dtype=np.uint32).reshape(4, 28, 28).astype(np.uint8)
LABELS = np.array([7, 0, 7, 1], dtype=np.uint8)


def written(folder: Path, digits: np.ndarray = DIGITS, labels: np.ndarray = LABELS) -> Path:
    images = struct.pack(">BBBBIII", 0, 0, 8, 3, *digits.shape) + digits.tobytes()
    (folder / "t10k-images-idx3-ubyte").write_bytes(images)
    content = struct.pack(">BBBBI", 0, 0, 8, 1, len(labels)) + labels.tobytes()
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(content))
    return folder


def test_a_digit_has_the_colour_of_its_class(tmp_path: Path) -> None:
    images = load(path=written(tmp_path), sigma=0)
    assert images.labels.tolist() == [7, 0, 7, 1]
    assert images.categories[images.labels[0]] == "7"
    names = list(COLOURS)
    assert images.factors["colour"].known == (names[7], names[0], names[7], names[1])
    for i in range(4):
        expected = np.rint(DIGITS[i][..., None] * np.array(COLOURS[names[LABELS[i]]])).astype(np.uint8)
        assert np.array_equal(np.asarray(images.open(i)), expected)


def test_an_intervention_keeps_the_digit_and_its_deviation(tmp_path: Path) -> None:
    """Catches a deviation drawn anew; without clipping it is the same in every colour."""
    images = load(path=written(tmp_path, np.full((4, 28, 28), 255, dtype=np.uint8)), sigma="0.02")
    do = images.factors["colour"].do
    assert do(1, "red").tobytes() == images.open(1).tobytes()
    deviations = [np.asarray(do(1, name))[0, 0] / 255 - np.array(COLOURS[name]) for name in ("teal", "grey", "purple")]
    np.testing.assert_allclose(deviations[1], deviations[2], atol=1 / 255)
    assert np.abs(deviations[1]).max() > 1 / 255
    assert np.asarray(do(1, "teal"))[0, 0].tolist() != np.asarray(do(2, "teal"))[0, 0].tolist()
    assert load(path=tmp_path, sigma=0.03).digest != images.digest


def test_what_is_missing_or_hurt_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="put the four files of MNIST there"):
        load(path=tmp_path)
    written(tmp_path)
    with pytest.raises(DataError, match=r"no train-images-idx3-ubyte \(or"):
        load(path=tmp_path, part="train")
    with pytest.raises(DataError, match="no part 'val'"):
        load(path=tmp_path, part="val")
    with pytest.raises(DataError, match="no deviation of a colour"):
        load(path=tmp_path, sigma="much")
    written(tmp_path, labels=LABELS[:2])
    with pytest.raises(DataError, match="do not match"):
        load(path=tmp_path)
    file = tmp_path / "t10k-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match="not a whole IDX file"):
        load(path=tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(b"\x1f\x8bnot gzip")
    written_images = struct.pack(">BBBBIII", 0, 0, 8, 3, 4, 28, 28) + DIGITS.tobytes()
    file.write_bytes(written_images)
    with pytest.raises(DataError, match="cannot be read"):
        load(path=tmp_path)
