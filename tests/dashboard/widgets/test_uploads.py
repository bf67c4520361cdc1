"""Strangers' files: read as pictures within limits, refused in one sentence otherwise."""

from __future__ import annotations

import io
import pickle
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from core.errors import ForetellError
from dashboard.explore.uploads import MOST_BYTES, decode_image

UNPICKLED: list[bool] = []


def encoded(picture: Image.Image, form: str, **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


@pytest.fixture
def noise() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_each_format_is_read(noise: Image.Image, form: str) -> None:
    picture = decode_image(encoded(noise, form), "a picture")
    assert (picture.mode, picture.size) == ("RGB", (60, 40))


def test_a_photograph_is_turned_upright(noise: Image.Image) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show rotated by 90 degrees
    turned = decode_image(encoded(noise, "PNG", exif=exif), "photo.png")
    assert turned.size == (40, 60)
    assert turned.tobytes() == noise.rotate(-90, expand=True).tobytes()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    assert decode_image(encoded(Image.new(mode, (8, 8)), "PNG"), "a.png").mode == "RGB"


def test_16_bits_are_scaled_and_transparency_is_white() -> None:
    """Pillow's own conversion clips at 255, and shows what colour lies under full transparency."""
    grey = Image.fromarray(np.full((4, 4), 0x8000, dtype=np.uint16))
    assert decode_image(encoded(grey, "PNG"), "a.png").getpixel((0, 0)) == (128, 128, 128)
    assert decode_image(encoded(Image.new("RGBA", (4, 4), (0, 0, 0, 0)), "PNG"), "a.png").getpixel((0, 0)) == (
        255,
        255,
        255,
    )


def bomb(side: int) -> bytes:
    """A PNG of a few bytes that claims side x side pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [7_000, 12_000, 60_000])
def test_a_bomb_is_refused_before_it_is_unpacked(side: int) -> None:
    with pytest.raises(ForetellError, match=r"bomb\.png has more than 40 million pixels"):
        decode_image(bomb(side), "bomb.png")


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", bomb(64)])
def test_what_is_no_image_is_refused(content: bytes) -> None:
    with pytest.raises(ForetellError, match=r"x\.png cannot be read as an image"):
        decode_image(content, "x.png")


def test_a_pickle_is_not_read_even_behind_a_images_name() -> None:
    """Catches a reader that unpickles: this one would leave a mark."""

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[bool]]:
            return UNPICKLED.append, (True,)

    UNPICKLED.clear()
    for content in (pickle.dumps(Evil()), b"\x89PNG\r\n\x1a\n" + pickle.dumps(Evil())):
        with pytest.raises(ForetellError, match=r"x\.png cannot be read as an image"):
            decode_image(content, "x.png")
    assert UNPICKLED == []


@pytest.mark.parametrize("name", ["x.svg", "x.png"])
def test_an_svg_is_refused_whatever_its_name(name: str) -> None:
    """Catches a picture that carries a script or fetches an address."""
    content = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><image href="http://x.test/a"/></svg>'
    with pytest.raises(ForetellError, match="cannot be read as an image"):
        decode_image(content, name)


@pytest.mark.parametrize("tail", [b"<script>alert(1)</script>", b"PK\x03\x04 zip", b"%PDF-1.4"])
def test_of_a_polyglot_only_the_pixels_are_left(noise: Image.Image, tail: bytes) -> None:
    """Catches an upload whose bytes, comment or metadata go on to where another program would read them."""
    about = PngInfo()
    about.add_text("Comment", tail.decode("latin-1"))
    picture = decode_image(encoded(noise, "PNG", pnginfo=about) + tail, "x.png")
    assert picture.tobytes() == noise.tobytes()
    assert tail not in encoded(picture, "PNG")


def test_a_cut_file_is_refused(noise: Image.Image) -> None:
    content = encoded(noise, "JPEG")
    with pytest.raises(ForetellError, match="cannot be read"):
        decode_image(content[: len(content) // 2], "cut.jpg")


def test_other_formats_are_refused(noise: Image.Image) -> None:
    """Pillow opens many more, some by programs of their own."""
    for form in ("GIF", "TIFF", "BMP", "EPS"):
        with pytest.raises(ForetellError, match="PNG, JPEG or WebP"):
            decode_image(encoded(noise, form), "x")


def test_too_large_a_file_is_refused() -> None:
    with pytest.raises(ForetellError, match="larger than 20 MB"):
        decode_image(bytes(MOST_BYTES + 1), "big.png")
