"""Draw a sheet of images, lines and text, as PNG or SVG.

The page of heatmaps draws it again at every change: a plotting library takes six times as long for the same sheet
(docs/decisions/0002-dependencies.md).
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from xml.etree import ElementTree

from PIL import Image, ImageDraw

from core.fonts import find_font

PIXELS = 2
"""Pixels of the PNG per unit of the sheet: sharp on good screens and in print."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
ROOM = 0.9
"""Share of a line that text may fill, because the SVG may be viewed with a wider font."""
INK = "#1b1f27"
FAINT = "#5c6470"


@dataclass(frozen=True)
class ImageItem:
    """An image, drawn at (x, y) with a width and height in units."""

    x: float
    y: float
    width: float
    height: float
    image: Image.Image


@dataclass(frozen=True)
class Words:
    """One line of text; (x, y) is its upper left corner, upper middle or upper right one by ``anchor``."""

    x: float
    y: float
    text: str
    size: float = 11
    colour: str = INK
    anchor: str = "start"


@dataclass(frozen=True)
class Line:
    """A line through points (x, y)."""

    points: tuple[tuple[float, float], ...]
    colour: str = INK
    width: float = 1.5


@dataclass(frozen=True)
class Rectangle:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str


Item = ImageItem | Words | Line | Rectangle


@dataclass(frozen=True)
class Sheet:
    """What is drawn, the later over the earlier, on a ground of one colour; sizes in units."""

    width: float
    height: float
    items: tuple[Item, ...]
    ground: str = "white"


def render_png(sheet: Sheet, pixels: int = PIXELS) -> Image.Image:
    """Render the sheet as an image with so many pixels per unit."""
    drawn = Image.new("RGB", (round(sheet.width * pixels), round(sheet.height * pixels)), sheet.ground)
    draw = ImageDraw.Draw(drawn)
    for item in sheet.items:
        match item:
            case ImageItem():
                size = (round(item.width * pixels), round(item.height * pixels))
                scaled = item.image if item.image.size == size else item.image.resize(size, Image.Resampling.LANCZOS)
                clear = scaled if scaled.mode == "RGBA" else None
                drawn.paste(scaled, (round(item.x * pixels), round(item.y * pixels)), clear)
            case Words():
                anchor = {"start": "la", "middle": "ma", "end": "ra"}[item.anchor]
                at = (item.x * pixels, item.y * pixels)
                draw.text(at, item.text, fill=item.colour, font=find_font(item.text, item.size * pixels), anchor=anchor)
            case Line():
                points = [(x * pixels, y * pixels) for x, y in item.points]
                draw.line(points, fill=item.colour, width=round(item.width * pixels), joint="curve")
            case Rectangle():
                corner = ((item.x + item.width) * pixels - 1, (item.y + item.height) * pixels - 1)
                draw.rectangle([(item.x * pixels, item.y * pixels), corner], fill=item.colour)
    return drawn


def render_svg(sheet: Sheet) -> bytes:
    """Render the sheet as one SVG file with embedded images and selectable text."""
    size = {"width": _number(sheet.width), "height": _number(sheet.height)}
    view = f"0 0 {size['width']} {size['height']}"
    root = ElementTree.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "viewBox": view, "font-family": FONT}
    )
    ElementTree.SubElement(root, "rect", {**size, "fill": sheet.ground})
    for item in sheet.items:
        element = _element(item)
        node = ElementTree.SubElement(root, element[0], element[1])
        node.text = item.text if isinstance(item, Words) else None
    drawn: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return drawn


def _element(item: Item) -> tuple[str, dict[str, str]]:
    match item:
        case ImageItem():
            return "image", {**_rectangle(item), "href": embed_png(item.image)}
        case Words():
            # SVG measures from the baseline of the text.
            place = {"x": _number(item.x), "y": _number(item.y + 0.8 * item.size), "font-size": _number(item.size)}
            return "text", {**place, "fill": item.colour, "text-anchor": item.anchor}
        case Line():
            points = " ".join(f"{_number(x)},{_number(y)}" for x, y in item.points)
            stroke = {"stroke": item.colour, "stroke-width": _number(item.width), "stroke-linejoin": "round"}
            return "polyline", {"points": points, "fill": "none", **stroke}
        case Rectangle():
            return "rect", {**_rectangle(item), "fill": item.colour}


def _rectangle(item: ImageItem | Rectangle) -> dict[str, str]:
    return {name: _number(getattr(item, name)) for name in ("x", "y", "width", "height")}


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def embed_png(image: Image.Image) -> str:
    """Encode an image as a ``data:`` address of a PNG."""
    return "data:image/png;base64," + base64.b64encode(encode_png(image)).decode()


def encode_png(image: Image.Image) -> bytes:
    """Encode an image as PNG."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def wrap_text(text: str, width: float, size: float) -> list[str]:
    """Wrap text to lines of at most ``width`` units; a word longer than a line is cut."""
    font = find_font(text, size * PIXELS)

    def fits(line: str) -> bool:
        return bool(font.getlength(line) <= ROOM * width * PIXELS)

    lines: list[str] = []
    for word in text.split():
        if lines and fits(f"{lines[-1]} {word}"):
            lines[-1] += f" {word}"
            continue
        rest = word
        while not fits(rest) and len(rest) > 1:
            cut = next(k for k in range(len(rest), 0, -1) if fits(rest[:k]) or k == 1)
            lines.append(rest[:cut])
            rest = rest[cut:]
        lines.append(rest)
    return lines


def cut_text(text: str, width: float, size: float) -> str:
    """Leave out the middle of a text that is wider than ``width`` units, such as a long path."""
    keep, short = len(text), text
    font = find_font(f"{text}…", size)
    while font.getlength(short) > width and keep > 2:
        keep -= 1
        short = f"{text[: keep // 2]}…{text[-(keep - keep // 2) :]}"
    return short


def write_lines(
    text: str, x: float, y: float, width: float, *, size: float = 11, colour: str = INK
) -> tuple[list[Words], float]:
    """Wrap text into lines below each other; also return where they end."""
    lines = wrap_text(text, width, size)
    words = [Words(x, y + 1.3 * size * k, line, size, colour) for k, line in enumerate(lines)]
    return words, y + 1.3 * size * len(lines)
