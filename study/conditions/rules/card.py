"""A rule in words, drawn as an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PIL import Image, ImageDraw

from core.distillation.factors import Clause
from study.conditions.lettering import fit_text

INK, LINE = "#202124", "#2f6fb5"
SCALE = 4
"""Drawn so many times larger and made small: text and edges are smooth."""


def word_clause(clause: Clause, texts: Mapping[str, str]) -> str:
    """Say a clause about the values of a factor in the study's language."""
    *first, last = clause.values
    listed = f"{', '.join(first)} {texts['rule_or']} {last}" if first else last
    return listed if clause.holds else texts["rule_not"].replace("{values}", listed)


def draw_rule(clauses: Sequence[Clause], share: float, texts: Mapping[str, str], size: tuple[int, int]) -> Image.Image:
    """Draw what a rule says, a line for each factor, and the share of the images that meet it and get the name."""
    width, height = (SCALE * side for side in size)
    card = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(card)
    said = [word_clause(clause, texts) for clause in clauses]
    bottom = texts["rule_share"].replace("{share}", f"{share:.0%}")
    font, lines = fit_text([*said, bottom], 0.88 * width, 0.9 * height)
    line, y = 1.3 * font.size, 0.06 * height
    for parts in lines[:-1]:
        for part in parts:
            pen.text((0.06 * width, y), part, INK, font)
            y += line
        y += 0.4 * line
    top = height - (len(lines[-1]) + 0.5) * line
    pen.line((0.06 * width, top - 0.3 * line, 0.94 * width, top - 0.3 * line), LINE, width // 120)
    for k, part in enumerate(lines[-1]):
        pen.text((0.06 * width, top + k * line), part, INK, font)
    return card.resize(size, Image.Resampling.LANCZOS)
