"""A user's own pictures: what is read, what is skipped and why, what is refused."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.errors import DataError
from data.sets.folder import load
from data.sets.images import read_image


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two categories, three pictures, one of them in a sub-folder."""
    root = tmp_path / "pets"
    for name, colour in (("cat/b.png", (200, 0, 0)), ("cat/more/a.PNG", (0, 200, 0)), ("dog/c.png", (0, 0, 200))):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), colour).save(path, format="PNG")
    return root


def save(path: Path, mode: str, colour: object, **options: object) -> None:
    Image.new(mode, (8, 6), colour).save(path, **options)  # type: ignore[arg-type]


def centre(path: Path) -> tuple[int, ...]:
    picture = read_image(path)
    assert picture.mode == "RGB"
    return picture.getpixel((4, 3))  # type: ignore[return-value]


def test_reads_a_tree(tree: Path) -> None:
    pets = load(path=tree)
    assert pets.name == "folder/pets"
    assert pets.categories == ("cat", "dog")
    assert pets.ids == ("cat/b.png", "cat/more/a.PNG", "dog/c.png")
    assert pets.labels.tolist() == [0, 0, 1]
    assert pets.labels.dtype == np.int64
    assert [pets.open(i).getpixel((0, 0)) for i in range(3)] == [(200, 0, 0), (0, 200, 0), (0, 0, 200)]
    assert pets.wnids is None
    assert pets.skipped == ()
    assert load(path=str(tree), name="mine").name == "mine"


def test_order_is_that_of_code_points(tree: Path) -> None:
    """Capital letters first and 10 before 9, whatever the platform's own order is."""
    for name in ("9.png", "10.png", "Z.png", "é.png", "e.png"):
        save(tree / "dog" / name, "RGB", "red")
    dogs = [i for i in load(path=tree).ids if i.startswith("dog")]
    assert dogs == ["dog/10.png", "dog/9.png", "dog/Z.png", "dog/c.png", "dog/e.png", "dog/é.png"]


def test_decomposed_names_are_the_same_ids(tree: Path) -> None:
    """Some file systems store é as e + accent: the same tree must have the same ids and digest."""
    save(tree / "dog" / "e\u0301.png", "RGB", "red")
    decomposed = load(path=tree)
    (tree / "dog" / "e\u0301.png").rename(tree / "dog" / "\u00e9.png")
    composed = load(path=tree)
    assert decomposed.ids == composed.ids
    assert decomposed.digest == composed.digest


def test_hidden_files_are_ignored_and_others_counted(tree: Path) -> None:
    (tree / ".cache").mkdir()
    (tree / "cat" / ".thumbs").mkdir()
    save(tree / "cat" / ".thumbs" / "x.png", "RGB", "red")
    (tree / "cat" / ".DS_Store").write_bytes(b"x")
    (tree / "cat" / "notes.txt").write_text("x")
    pets = load(path=tree)
    assert len(pets) == 3
    assert [(s.id, s.reason.split(" is not")[0]) for s in pets.skipped] == [("cat/notes.txt", "extension .txt")]


def test_damaged_files_are_skipped_with_their_reason(tree: Path) -> None:
    """A JPEG and a PNG cut in the middle open without complaint: only decoding all of them finds out."""
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    for name in ("cut.jpg", "cut.png"):
        noise.save(tree / "dog" / name)
        whole = (tree / "dog" / name).read_bytes()
        (tree / "dog" / name).write_bytes(whole[: len(whole) // 2])
    (tree / "dog" / "empty.png").write_bytes(b"")
    (tree / "dog" / "text.jpg").write_text("not a picture")
    pets = load(path=tree)
    assert len(pets) == 3
    reasons = {s.id.split("/")[1]: s.reason for s in pets.skipped}
    assert reasons["cut.jpg"].startswith("it is damaged or cut short")
    assert reasons["cut.png"].startswith("it is damaged or cut short")
    assert reasons["empty.png"] == reasons["text.jpg"] == "it is not an image that can be read"


def test_decompression_bombs_are_skipped_before_they_open(tree: Path) -> None:
    """A hand-made PNG header of 40,000 x 40,000 px over Pillow's limit, and one between our limit and twice it."""
    for name, side in (("bomb.png", 40_000), ("large.png", 12_000)):
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
        data = struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
        (tree / "cat" / name).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + data)
    with pytest.warns(Image.DecompressionBombWarning):
        pets = load(path=tree)
    assert len(pets) == 3
    assert [s.reason for s in pets.skipped] == [
        "it has more than 89,478,485 pixels",
        "12000 x 12000 px is more than 89,478,485 pixels",
    ]


def test_transparency_is_laid_on_white(tmp_path: Path) -> None:
    """Closed form: half-covered red on white is (255, 127 or 128, ...); a plain convert would give pure red."""
    save(tmp_path / "rgba.png", "RGBA", (255, 0, 0, 128))
    save(tmp_path / "la.png", "LA", (0, 51))
    indexed = Image.new("P", (8, 6), 1)
    indexed.putpalette([0, 0, 0, 0, 0, 255])
    indexed.save(tmp_path / "p.png", transparency=1)
    save(tmp_path / "trns.png", "L", 77, transparency=77)
    assert centre(tmp_path / "rgba.png") == (255, 127, 127)
    assert centre(tmp_path / "la.png") == (204, 204, 204)
    assert centre(tmp_path / "p.png") == (255, 255, 255)
    assert centre(tmp_path / "trns.png") == (255, 255, 255)


def test_other_modes_become_rgb(tmp_path: Path) -> None:
    indexed = Image.new("P", (8, 6), 1)
    indexed.putpalette([0, 0, 0, 10, 20, 30])
    indexed.save(tmp_path / "p.gif")
    save(tmp_path / "l.png", "L", 90)
    save(tmp_path / "one.png", "1", 1)
    save(tmp_path / "cmyk.tif", "CMYK", (255, 0, 0, 0))
    assert centre(tmp_path / "p.gif") == (10, 20, 30)
    assert centre(tmp_path / "l.png") == (90, 90, 90)
    assert centre(tmp_path / "one.png") == (255, 255, 255)
    assert centre(tmp_path / "cmyk.tif") == (0, 255, 255)


@pytest.mark.parametrize("name", ["grey.png", "grey.tif", "grey.pgm"])
def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path, name: str) -> None:
    """v / 257 maps 65535 to 255; Pillow's own convert would clip everything above 255 to white."""
    values = np.full((6, 8), 100 * 257, dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / name)
    assert centre(tmp_path / name) == (100, 100, 100)


def test_modes_without_a_scale_are_skipped(tree: Path) -> None:
    save(tree / "dog" / "float.tif", "F", 0.5)
    save(tree / "dog" / "int.tif", "I", 70_000)
    pets = load(path=tree)
    assert [s.id for s in pets.skipped] == ["dog/float.tif", "dog/int.tif"]
    assert pets.skipped[0].reason == "mode F has no known scale, so it cannot become RGB: save it with 8 bits a channel"


def test_images_stand_upright(tmp_path: Path) -> None:
    """A camera's EXIF orientation 6 means: turn by a quarter; 8 x 6 becomes 6 x 8."""
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "turned.jpg", "RGB", "red", exif=exif)
    assert read_image(tmp_path / "turned.jpg").size == (6, 8)


def test_digest_is_of_names_labels_and_bytes(tree: Path) -> None:
    first = load(path=tree).digest
    code = f"from data.sets.folder import load; print(load(path={str(tree)!r}).digest)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == first
    )
    elsewhere = tree.rename(tree.with_name("moved"))
    assert load(path=elsewhere).digest == first
    (elsewhere / "cat" / "b.png").rename(elsewhere / "cat" / "bb.png")
    renamed = load(path=elsewhere).digest
    save(elsewhere / "cat" / "bb.png", "RGB", (201, 0, 0))
    assert len({first, renamed, load(path=elsewhere).digest}) == 3


def test_a_file_changed_since_is_reported(tree: Path) -> None:
    pets = load(path=tree)
    (tree / "cat" / "b.png").write_text("gone")
    with pytest.raises(DataError, match=r"b\.png cannot be read: .*load the set again\."):
        pets.open(0)


def test_progress_counts_every_file(tree: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    load(path=tree, progress=lambda *report: seen.append(report))
    assert seen == [(k, 3, "Reading images") for k in (1, 2, 3)]


def test_missing_folder_names_the_nearest(tree: Path) -> None:
    with pytest.raises(DataError, match=r"No folder .*pest\. Did you mean .*pets\?"):
        load(path=tree.with_name("pest"))
    with pytest.raises(DataError, match=r"No folder .*zzzz\. .* has no such folder\."):
        load(path=tree.with_name("zzzz"))
    with pytest.raises(DataError, match=r"Its parent .*nowhere is missing as well\."):
        load(path=tree / "nowhere" / "pets")


def test_a_file_is_no_folder(tree: Path) -> None:
    with pytest.raises(DataError, match=r"b\.png is a file: give the folder that holds one folder per category\."):
        load(path=tree / "cat" / "b.png")


def test_images_without_category_folders(tree: Path) -> None:
    with pytest.raises(DataError, match="more has no category folders: put the images into one folder per category"):
        load(path=tree / "cat" / "more")


def test_an_empty_category_is_named(tree: Path) -> None:
    (tree / "hen").mkdir()
    with pytest.raises(DataError, match=r"No readable image of 'hen' in .*pets: add images, or remove the folder\."):
        load(path=tree)


def test_a_category_of_unreadable_files_says_why(tree: Path) -> None:
    (tree / "hen").mkdir()
    (tree / "hen" / "h.png").write_text("x")
    with pytest.raises(DataError, match=r"'hen' in .* \(hen/h\.png: it is not an image that can be read\): add"):
        load(path=tree)


def test_a_tree_without_images(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    with pytest.raises(DataError, match=r"holds no images: its category folders need files ending in \.bmp \.gif"):
        load(path=tmp_path)


def test_wordnet_ids_get_their_plain_names(tree: Path) -> None:
    (tree / "cat").rename(tree / "n01440764")
    (tree / "dog").rename(tree / "n99999999")
    pets = load(path=tree)
    assert pets.wnids == ("n01440764", "n99999999")
    assert pets.categories == ("tench", "n99999999")  # what is not among the 1,000 keeps its id


def test_one_plain_name_makes_a_plain_tree(tree: Path) -> None:
    (tree / "cat").rename(tree / "n01440764")
    pets = load(path=tree)
    assert pets.wnids is None
    assert pets.categories == ("dog", "n01440764")


@pytest.mark.real
def test_real_photographs(real: Path) -> None:
    photographs = load(path=real / "imagenet" / "images")
    assert len(photographs) == 184
    assert photographs.skipped == ()
    assert photographs.wnids is not None
    assert photographs.categories[0] == "tench"


@pytest.mark.real
def test_real_cifar10_trees(real: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(real / "cifar10" / "unpack.py"), str(tmp_path)], check=True)
    sizes = {split: len(load(path=tmp_path / split)) for split in ("pool", "standard", "adversarial")}
    assert sizes == {"pool": 4_000, "standard": 10_000, "adversarial": 214}
    assert load(path=tmp_path / "pool").categories == (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    )  # fmt: skip


def test_a_list_chooses_the_images(tree: Path, tmp_path: Path) -> None:
    """Categories without a listed image are none of the set's; the list's order does not matter."""
    (tmp_path / "ids.txt").write_text("dog/c.png\n\ncat/more/a.PNG\ndog/c.png\n")
    found = load(path=tree, images=tmp_path / "ids.txt")
    assert found.ids == ("cat/more/a.PNG", "dog/c.png")
    assert found.digest != load(path=tree).digest
    (tmp_path / "ids.txt").write_text("cat/b.png\n")
    assert load(path=tree, images=tmp_path / "ids.txt").categories == ("cat",)


def test_a_list_that_names_what_is_not_there_is_refused(tree: Path, tmp_path: Path) -> None:
    """Catches an image that was moved away and silently left out of a study; and a list that leaves the folder."""
    for text, said in (("cat/b.png\ncat/z.png", "such as cat/z.png"), ("\n", "is empty"), ("cat/../../x.png", "x.png")):
        (tmp_path / "ids.txt").write_text(text)
        with pytest.raises(DataError, match=said):
            load(path=tree, images=tmp_path / "ids.txt")
    with pytest.raises(DataError, match="cannot be read"):
        load(path=tree, images=tmp_path / "none.txt")
