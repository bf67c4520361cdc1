"""The AI's confidence as a bar that fills: no words, so that it reads in every language."""

from __future__ import annotations

import math

from PIL import Image, ImageDraw, ImageFont

INK, FULL, EMPTY = "#202124", "#2f6fb5", "#dfe3e8"
SCALE = 4
"""Drawn so many times larger and made small: text and edges are smooth."""
TENTHS = 10


def gauge(probability: float, size: tuple[int, int]) -> Image.Image:
    """Draw a probability in [0, 1], (width, height) px: its percentage, rounded down, over a bar with tenths."""
    width, height = (SCALE * side for side in size)
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    percent = math.floor(100 * min(max(probability, 0.0), 1.0))  # 99.7 % is not "certain"
    pen.text((width / 2, 0.36 * height), f"{percent} %", INK, ImageFont.load_default(0.2 * height), anchor="mm")
    left, right, top, bottom = 0.1 * width, 0.9 * width, 0.55 * height, 0.7 * height
    pen.rectangle((left, top, right, bottom), EMPTY)
    pen.rectangle((left, top, left + (right - left) * percent / 100, bottom), FULL)
    for k in range(1, TENTHS):
        x = left + (right - left) * k / TENTHS
        pen.line((x, top, x, bottom), "white", width // 200)
    pen.rectangle((left, top, right, bottom), outline=INK, width=max(1, width // 160))
    return image.resize(size, Image.Resampling.LANCZOS)
