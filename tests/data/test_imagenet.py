"""ImageNet and ImageNet-A as their owners arrange them: miniature trees in the same layout, whole and hurt."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from data.errors import DataError
from data.sets import imagenet, imagenet_a
from data.sets.wnids import imagenet_index, imagenet_names

CLASS_INDICES = [
    6, 11, 13, 15, 17, 22, 23, 27, 30, 37, 39, 42, 47, 50, 57, 70, 71, 76, 79, 89, 90, 94, 96, 97, 99, 105, 107, 108,
    110, 113, 124, 125, 130, 132, 143, 144, 150, 151, 207, 234, 235, 254, 277, 283, 287, 291, 295, 298, 301, 306, 307,
    308, 309, 310, 311, 313, 314, 315, 317, 319, 323, 324, 326, 327, 330, 334, 335, 336, 347, 361, 363, 372, 378, 386,
    397, 400, 401, 402, 404, 407, 411, 416, 417, 420, 425, 428, 430, 437, 438, 445, 456, 457, 461, 462, 470, 472, 483,
    486, 488, 492, 496, 514, 516, 528, 530, 539, 542, 543, 549, 552, 557, 561, 562, 569, 572, 573, 575, 579, 589, 606,
    607, 609, 614, 626, 627, 640, 641, 642, 643, 658, 668, 677, 682, 684, 687, 701, 704, 719, 736, 746, 749, 752, 758,
    763, 765, 768, 773, 774, 776, 779, 780, 786, 792, 797, 802, 803, 804, 813, 815, 820, 823, 831, 833, 835, 839, 845,
    847, 850, 859, 862, 870, 879, 880, 888, 890, 897, 900, 907, 913, 924, 932, 933, 934, 937, 943, 945, 947, 951, 954,
    956, 957, 959, 971, 972, 980, 981, 984, 986, 987, 988,
]  # fmt: skip


def test_the_200_categories_of_imagenet_a() -> None:
    """Against the class indices of the data set's own evaluation script."""
    assert [imagenet_index(wnid) for wnid in imagenet_a.wnids()] == CLASS_INDICES


@pytest.fixture
def tree(tmp_path: Path, real: Path) -> Path:
    """``val`` and ``imagenet-a`` in the published layout, one real photograph of each of 184 and 28 categories."""
    for folder in sorted((real / "imagenet" / "images").iterdir()):
        for root in ("val", "imagenet-a"):
            if root == "val" or folder.name in imagenet_a.wnids():
                place = tmp_path / root / folder.name
                place.mkdir(parents=True)
                for file in folder.iterdir():
                    (place / file.name).symlink_to(file)
    (tmp_path / "imagenet-a" / "README.txt").write_text("natural adversarial examples")
    return tmp_path


@pytest.mark.real
def test_a_miniature_tree(tree: Path) -> None:
    images = imagenet.load(path=tree / "val", partial=True)
    assert (images.name, len(images), len(images.categories)) == ("imagenet/val", 184, 184)
    assert images.wnids is not None
    assert images.ids[0].startswith("n01440764/")
    assert images.categories[0] == imagenet_names()["n01440764"] == "tench"
    assert images.open(0).mode == "RGB"
    adversarial = imagenet_a.load(path=tree / "imagenet-a", partial=True)
    assert (adversarial.name, len(adversarial)) == ("imagenet_a", 28)
    assert adversarial.skipped == ()


def full(root: Path, wnids: tuple[str, ...], pictures: int) -> Path:
    """Every category with ``pictures`` empty files: the check counts before anything is opened."""
    for wnid in wnids:
        (root / wnid).mkdir(parents=True)
        for i in range(pictures):
            (root / wnid / f"{i}.JPEG").touch()
    return root


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No folder .*val\. .*docs/how-to/imagenet"):
        imagenet.load(path=tmp_path / "val")
    root = full(tmp_path / "val", tuple(imagenet_names()), 1)
    (root / "n01440764" / "0.JPEG").unlink()
    (root / "n01440764").rmdir()
    with pytest.raises(DataError, match=r"lacks 1 of the 1000 categories of imagenet/val, such as n01440764 \(tench\)"):
        imagenet.load(path=root)
    (root / "n01440764").mkdir()
    with pytest.raises(DataError, match=r"n01440764 has 0 images where imagenet/val has 50 \(so have 1000"):
        imagenet.load(path=root)
    with pytest.raises(DataError, match=r"has 999 images where imagenet/train has 1,281,167: .*partial = true"):
        imagenet.load(path=root, part="train")
    small = full(tmp_path / "imagenet-a", imagenet_a.wnids(), 2)
    with pytest.raises(DataError, match=r"has 400 images where imagenet_a has 7,500: docs/how-to/imagenet\.md says"):
        imagenet_a.load(path=small)


def test_what_is_misplaced_is_named(tmp_path: Path) -> None:
    full(tmp_path / "imagenet" / "val", tuple(imagenet_names())[:3], 1)
    with pytest.raises(DataError, match=r"one folder deeper: give .*val\.$"):
        imagenet.load(path=tmp_path / "imagenet")
    flat = tmp_path / "flat"
    flat.mkdir()
    Image.new("RGB", (8, 8)).save(flat / "ILSVRC2012_val_00000001.JPEG")
    with pytest.raises(DataError, match=r"holds ILSVRC2012_val_00000001\.JPEG but no category folders .*sort it first"):
        imagenet.load(path=flat)
    with pytest.raises(DataError, match="its folder 'n01440764' is an ImageNet category, but not one of it"):
        imagenet_a.load(path=tmp_path / "imagenet" / "val")
    (tmp_path / "imagenet" / "val" / "cats").mkdir()
    with pytest.raises(DataError, match=r"its folder 'cats' is none of its categories.*move it elsewhere"):
        imagenet.load(path=tmp_path / "imagenet" / "val", partial=True)
    with pytest.raises(DataError, match=r"No folder .*gone\."):
        imagenet.load(path=tmp_path / "gone")
    with pytest.raises(DataError, match="ImageNet has no part 'test': use val or train"):
        imagenet.load(path=tmp_path, part="test")  # type: ignore[arg-type]


def test_a_damaged_image_is_named_when_it_is_opened(tmp_path: Path) -> None:
    """Fifty thousand pictures are not decoded at every start."""
    folder = tmp_path / "val" / "n01440764"
    folder.mkdir(parents=True)
    Image.new("RGB", (64, 64), "red").save(folder / "a.JPEG")
    (folder / "b.JPEG").write_bytes((folder / "a.JPEG").read_bytes()[:300])
    images = imagenet.load(path=tmp_path / "val", partial=True)
    assert images.open(0).size == (64, 64)
    with pytest.raises(DataError, match=r"b\.JPEG cannot be read: it is (damaged|not an image)"):
        images.open(1)
