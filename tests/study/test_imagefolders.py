"""Image sets from zips, folders and uploads: hostile ones are refused in words, and nothing half-written is left."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.errors import ForetellError
from core.types import silent
from study.workspace import disk, imagefolders, zips
from study.workspace.imagefolders import Entry, add_set, list_folder
from study.workspace.imagesets import count_images, list_left_out, remove_set, rename_categories
from study.workspace.zips import limit_bytes, open_zip

PNG = b"\x89PNG" + bytes(60)


def image(number: int) -> bytes:
    """A PNG of noise, another one for each number."""
    pixels = np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


def zipped(*files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return content.getvalue()


def add(home: Path, content: bytes, name: str = "mine") -> imagefolders.AddedSet:
    with open_zip(io.BytesIO(content), "my.zip") as entries:
        return add_set(home / "pictures", name, entries, silent, limit_bytes(len(content)))


def refused(home: Path, content: bytes) -> str:
    """The sentence with which a zip is refused; the workspace is as it was."""
    before = sorted(home.rglob("*"))
    with pytest.raises(ForetellError) as error:
        add(home, content)
    assert sorted(home.rglob("*")) == before
    return str(error.value)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def test_a_zip_becomes_a_set_with_one_folder_per_class(home: Path) -> None:
    """Catches a folder that all files share taken for a class, and metadata of macOS taken for images."""
    content = zipped(
        ("photos/cat/1.png", image(1)),
        ("photos/cat/more/2.PNG", image(2)),
        ("photos/dog/1.jpg", image(3)),
        ("photos/readme.txt", b"hello"),
        ("__MACOSX/photos/cat/._1.png", b"metadata"),
        ("photos/.hidden/3.png", image(4)),
    )
    added = add(home, content)
    assert (added.images, added.others) == (3, ("photos/readme.txt",))
    files = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert files == {f"pictures/mine/{name}" for name in ("cat/1.png", "cat/more/2.PNG", "dog/1.jpg")}
    assert (home / "pictures/mine/dog/1.jpg").read_bytes() == image(3)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../../evil.png", "leads out"),
        ("cat/../../../evil.png", "leads out"),
        ("/etc/cron.d/x.png", "leads out"),
        ("C:\\Windows\\x.png", "leads out"),
        ("cat\\..\\..\\x.png", "leads out"),
        ("cat/a\nb.png", "control characters"),
        ("cat/\x1b[2J.png", "control characters"),
        ("cat/" + "a" * 300 + ".png", "longer than 150 bytes"),
        ("/".join(["deep"] * 40) + "/x.png", "folders deep"),
        ("../notes.txt", "leads out"),
    ],
)
def test_a_name_that_leads_out_or_cannot_be_shown_is_refused(home: Path, name: str, sentence: str) -> None:
    """Catches a file written outside the set, also one that is no image: such a zip is not what it says it is."""
    assert sentence in refused(home, zipped(("cat/1.png", PNG), (name, PNG)))


def test_a_zero_byte_in_a_name_is_refused(home: Path) -> None:
    """Catches a name that zipfile shortens: evil.png is checked, and another file is meant."""
    content = zipped(("cat/1.pngXevil", PNG)).replace(b"cat/1.pngXevil", b"cat/1.png\0evil")
    assert "zero byte" in refused(home, content)


def test_a_link_is_refused(home: Path) -> None:
    """Catches an image that is a link to a file of this machine."""
    link = zipfile.ZipInfo("cat/1.png")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    assert "is a link" in refused(home, zipped((link, b"/etc/passwd")))


def test_a_bomb_is_stopped_while_it_is_unpacked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a limit that believes the header: the sizes in it say 10 bytes, and 5 MB of zeros come out."""
    monkeypatch.setattr(zips, "SMALL_BYTES", 1 << 20)
    honest = zipped(("cat/1.png", bytes(5 << 20)), method=zipfile.ZIP_DEFLATED)
    assert "more than" in refused(home, honest)
    lying = honest.replace(struct.pack("<L", 5 << 20), struct.pack("<L", 10))
    assert lying != honest
    assert "my.zip is damaged" in refused(home, lying)


def test_what_is_written_is_counted_whatever_is_claimed(home: Path) -> None:
    """Catches a source whose claimed size is smaller than what it gives."""
    liar = Entry("cat/1.png", 10, lambda: io.BytesIO(bytes(5 << 20)))
    with pytest.raises(ForetellError, match=r"more than 1\.0 MB unpacked"):
        add_set(home / "pictures", "mine", [liar], silent, 1 << 20)
    assert not [path for path in home.rglob("*") if path.is_file()]
    assert not list(home.glob(f"{imagefolders.TEMPORARY}*"))


def test_one_huge_image_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches one file that takes the whole limit of the set."""
    monkeypatch.setattr(imagefolders, "MOST_IMAGE_BYTES", 1000)
    assert "has more than 1,000 bytes unpacked" in refused(home, zipped(("cat/1.png", bytes(2000))))


def test_too_many_files_are_refused_before_their_list_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a million files that are listed in memory first."""
    content = zipped(*[(f"cat/{k}.png", b"x") for k in range(200_000)])
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("the list was read"))
    assert "more than 50,000 files" in refused(home, content)


def test_a_zip_that_lies_about_the_number_of_its_files_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches the number in the last record believed: zipfile reads as many as the list holds."""
    monkeypatch.setattr(imagefolders, "MOST_FILES", 100)
    content = bytearray(zipped(*[(f"cat/{k}.png", b"x") for k in range(300)]))
    assert "more than 100 files" in refused(home, bytes(content))
    content[-14:-10] = struct.pack("<2H", 1, 1)
    assert "more than 100 files" in refused(home, bytes(content))
    monkeypatch.setattr(zips, "MOST_DIRECTORY_BYTES", 1000)
    assert "list of files" in refused(home, bytes(content))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cat/1.png", "cat/1.png"),
        ("cat/1.png", "cat/1.PNG"),
        ("Cat/1.png", "cat/2.png"),
        ("caf\xe9/1.png", "cafe\u0301/1.png"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_some_disks_take_for_one_are_refused(home: Path, one: str, other: str) -> None:
    """Catches an image that silently replaces another, here or when the workspace moves to another system."""
    assert "same name" in refused(home, zipped((one, PNG), (other, PNG)))


def test_what_is_no_readable_zip_of_images_is_refused(home: Path) -> None:
    """Catches a traceback instead of a sentence for each way in which a zip can be wrong."""
    good = zipped(("cat/1.png", bytes(1000)), method=zipfile.ZIP_DEFLATED)
    encrypted = bytearray(good)
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        encrypted[encrypted.index(mark) + place] |= 1
    assert "encrypted" in refused(home, bytes(encrypted))
    for broken in (b"", b"not a zip", good[:-30], good[: len(good) // 2], b"PK\5\6" + bytes(18)[:10]):
        assert "not a zip" in refused(home, broken)
    start = good.index(b"cat/1.png") + len("cat/1.png")
    assert "damaged" in refused(home, good[:start] + b"\xff\xff" + good[start + 2 :])
    assert "no images" in refused(home, zipped(("notes.txt", b"hello")))
    assert "no images" in refused(home, zipped())
    assert "in no class folder" in refused(home, zipped(("cat/1.png", PNG), ("2.png", PNG)))
    assert "unusual way" in refused(home, zipped(("cat/1.png", PNG), method=zipfile.ZIP_LZMA))


def test_a_name_that_exists_is_refused_and_the_old_set_kept(home: Path) -> None:
    """Catches a set that is overwritten."""
    add(home, zipped(("cat/1.png", image(1))))
    assert "already" in refused(home, zipped(("dog/1.png", image(2))))
    assert count_images(home / "pictures/mine") == {"cat": 1}


@pytest.mark.parametrize("name", ["", " ", ".hidden", "a/b", "..", "a\\b", "x" * 200, "a:b", "a\0b", "end."])
def test_a_name_that_no_folder_can_have_is_refused(home: Path, name: str) -> None:
    """Catches a set that is written elsewhere by its name."""
    with pytest.raises(ForetellError):
        add_set(home / "pictures", name, [Entry("cat/1.png", 1, lambda: io.BytesIO(b"x"))], silent)
    assert list(home.iterdir()) == []


def test_a_full_disk_is_a_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a database without space to write because of images, before and while they are written."""
    total = disk.LEAST_FREE + 500
    usage = shutil.disk_usage(home)._replace(free=total)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert "kept for responses" in refused(home, zipped(("cat/1.png", bytes(1000))))
    later = iter([total, total - 1000])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(later)))
    assert "disk of the workspace is full" in refused(home, zipped(("cat/1.png", bytes(100))))


def test_a_stop_leaves_nothing(home: Path) -> None:
    """Catches half a set after Stop, which raises out of a report of progress."""

    class Stopped(Exception):
        pass

    def stop(done: int, total: int, what: str) -> None:
        if done == 1:
            raise Stopped

    entries = [Entry(f"cat/{k}.png", 9, lambda: io.BytesIO(PNG)) for k in range(3)]
    with pytest.raises(Stopped):
        add_set(home / "pictures", "mine", entries, stop)
    assert list(home.iterdir()) == []


def test_a_folder_of_this_machine_is_copied_without_its_links(home: Path, tmp_path: Path) -> None:
    """Catches links that are followed out of the folder, or in a circle."""
    source = tmp_path / "source"
    (source / "cat").mkdir(parents=True)
    (source / "cat" / "1.png").write_bytes(image(1))
    (source / "cat" / "2.png").symlink_to("/etc/passwd")
    (source / "cat" / "again").symlink_to(source)
    added = add_set(home / "pictures", "mine", list_folder(source), silent)
    assert added.images == 1
    with pytest.raises(ForetellError, match="is not a folder"):
        list_folder(tmp_path / "missing")


def test_a_folder_one_level_too_high_is_refused_with_the_right_one(home: Path) -> None:
    """Catches classes that are joined without a word, since their folders are in one that is taken for a class."""
    names = ("real/images/cat/1.png", "real/images/dog/1.png", "real/images/gnu/1.png", "real/other/cat/2.png")
    content = zipped(*[(name, image(k)) for k, name in enumerate(names)])
    said = refused(home, content)
    assert "'real/images' has no images of its own, but 3 folders of images ('cat', 'dog', 'gnu')" in said
    assert "add the folder 'real/images' alone" in said
    with open_zip(io.BytesIO(content), "my.zip") as entries:
        added = add_set(home / "pictures", "mine", entries, silent, limit_bytes(len(content)), nested=True)
    assert count_images(added.folder) == {"images": 3, "other": 1}


@pytest.fixture
def animals(home: Path) -> Path:
    names = ("cat/1.png", "kitty/1.png", "kitty/2.png", "dog/1.png", "junk/1.png")
    return add(home, zipped(*[(name, image(k)) for k, name in enumerate(names)])).folder


def test_categories_are_renamed_joined_and_left_out(animals: Path) -> None:
    """Catches an image lost where two categories with the same file names are joined."""
    contents = sorted(path.read_bytes() for path in animals.rglob("*.png"))
    rename_categories(animals, {"kitty": "cat", "dog": "hound", "junk": None})
    assert count_images(animals) == {"cat": 3, "hound": 1}
    assert list_left_out(animals) == ["junk"]
    assert sorted(path.read_bytes() for path in animals.rglob("*.png")) == contents


@pytest.mark.parametrize(
    "names",
    [{"gone": "cat"}, {"cat": "../evil"}, {"cat": "/etc"}, dict.fromkeys(("cat", "kitty", "dog", "junk"))],
)
def test_a_mapping_that_cannot_be_is_refused_and_changes_nothing(animals: Path, names: dict[str, str | None]) -> None:
    """Catches a folder moved out of the set, and a set without any category."""
    before = count_images(animals)
    with pytest.raises(ForetellError):
        rename_categories(animals, {"dog": "hound", **names})
    assert count_images(animals) == before


def test_a_removed_link_keeps_what_it_points_to(home: Path, animals: Path) -> None:
    """Catches the images of somebody's own folder removed with a link to it."""
    link = home / "pictures" / "link"
    link.symlink_to(animals)
    remove_set(link)
    assert count_images(animals)["cat"] == 1
    remove_set(animals)
    assert not animals.exists()


def test_every_cut_and_every_changed_byte_is_refused_or_harmless(home: Path) -> None:
    """Catches any other error than a sentence, for damage that nobody thought of."""
    good = zipped(("cat/1.png", image(1)), ("dog/1.png", image(2)), method=zipfile.ZIP_DEFLATED)
    rng = np.random.default_rng(0)
    damage: list[Callable[[], bytes]] = [lambda: good[: rng.integers(len(good))]] * 40
    damage += [lambda: _flip(good, int(rng.integers(len(good))), int(rng.integers(1, 256)))] * 300
    outcomes = set()
    for make in damage:
        shutil.rmtree(home / "pictures", ignore_errors=True)
        try:
            add(home, make())
            outcomes.add("added")
            files = {path.read_bytes() for path in home.rglob("*") if path.is_file()}
            assert {zlib.crc32(content) for content in files} <= {zlib.crc32(image(1)), zlib.crc32(image(2))}
        except ForetellError:
            outcomes.add("refused")
            assert not (home / "pictures" / "mine").exists()
    assert outcomes == {"added", "refused"}


def _flip(content: bytes, place: int, value: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= value
    return bytes(changed)


def test_what_is_named_like_an_image_and_is_none_is_not_kept(home: Path) -> None:
    """Catches code or anything else that an upload leaves on the disk of the server under the name of an image."""
    code = b"import os\ndef build(): os.system('id')\n"
    assert "None of the files can be read as an image" in refused(home, zipped(("red/evil.py.png", code)))
    files = [("red/evil.py.png", code), ("red/1.png", image(1)), ("blue/2.png", image(2)[:200]), ("red/a.jpg", b"")]
    added = add(home, zipped(*files))
    assert (added.images, added.unreadable) == (1, ("red/evil.py.png", "blue/2.png", "red/a.jpg"))
    assert [path.name for path in added.folder.rglob("*")] == ["red", "1.png"]
