"""The font of drawn words: Pillow's own, and DejaVu Sans for words with letters that it lacks, such as ä, é or λ.

Pillow's font has the letters of English only, and draws a box for any other. DejaVu Sans (dejavu-fonts.github.io, free
to use, `LICENSE_DEJAVU`) has those of European languages, Arabic and Hebrew; not those of Chinese or Japanese.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from PIL import ImageFont

FILE = Path(__file__).parent / "DejaVuSans.ttf"
NO_CHARACTER = "\uffff"
PROBE = 24
"""Size in px at which letters are compared."""


def find_font(text: str, size: float) -> ImageFont.FreeTypeFont:
    """Find the font, of a size in px, that has every letter of a text."""
    return _load_font(size, plain=all(map(_is_plain, text)))


@cache
def _load_font(size: float, *, plain: bool) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size) if plain else ImageFont.truetype(str(FILE), size)
    assert isinstance(font, ImageFont.FreeTypeFont)  # Pillow's wheels have FreeType
    return font


@cache
def _is_plain(letter: str) -> bool:
    """Tell whether Pillow's own font has a letter: what it lacks is drawn like a character that does not exist."""
    if letter.isspace():
        return True
    font = _load_font(PROBE, plain=True)
    return bytes(font.getmask(letter)) != bytes(font.getmask(NO_CHARACTER))
