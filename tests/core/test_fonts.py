"""Letters of drawn words: of every European language, in sheets, charts and cards."""

from __future__ import annotations

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont

from core.drawing.sheet import Sheet, Words, render_png
from core.fonts import find_font
from study.conditions.concepts.charts import chart


def draw(text: str) -> Image.Image:
    image = Image.new("L", (400, 60))
    ImageDraw.Draw(image).text((5, 5), text, 255, find_font(text, 30))
    return image


@pytest.mark.parametrize(("one", "other"), [("ä", "ö"), ("é", "è"), ("ß", "ñ"), ("Ж", "Ш"), ("λ", "μ"), ("−", "×")])
def test_different_letters_look_different(one: str, other: str) -> None:
    """Defect: Pillow's own font has no letters but English ones, and draws the same box for all others."""
    assert ImageChops.difference(draw(f"B{one}r"), draw(f"B{other}r")).getbbox() is not None


def test_english_words_look_as_before() -> None:
    """Defect: another font for words that need none, and images of studies change with the version."""
    assert find_font("hare, 93%", 20).getname() == ImageFont.load_default(20).getname()
    assert find_font("Bär", 20).getname() == ("DejaVu Sans", "Book")


def test_what_people_see_has_the_letters() -> None:
    charts = [chart([(name, 0.3)], (320, 120)) for name in ("Bär", "Bör")]
    assert charts[0].tobytes() != charts[1].tobytes()
    sheets = [render_png(Sheet(200, 60, (Words(4, 4, name),))) for name in ("Bär", "Bör")]
    assert sheets[0].tobytes() != sheets[1].tobytes()
