"""The contrast of words that a figure draws: axe reads the colour of HTML, and not that of a drawing."""

from __future__ import annotations

from playwright.sync_api import Page

LEAST = 4.5
"""WCAG 2.2, 1.4.3, of words that are not large."""
READ_WORDS = """() => [...document.querySelectorAll(".js-plotly-plot text")].filter((text) => {
  const { width, height } = text.getBoundingClientRect();
  return text.textContent.trim() && width && height && getComputedStyle(text).visibility === "visible";
}).map((text) => {
  const bar = text.matches(".bartext-inside") ? text.parentElement.querySelector("path") : null;
  const paper = document.querySelector(".stApp") ?? document.body;
  const ground = bar ? getComputedStyle(bar).fill : getComputedStyle(paper).backgroundColor;
  return [text.textContent, getComputedStyle(text).fill, ground];
})"""


def find_faint_words(page: Page) -> list[str]:
    """List the words of figures whose contrast with what is behind them, the page or their own bar, is too low."""
    read: list[list[str]] = page.evaluate(READ_WORDS)
    return [f"{words}: {ink} on {ground}" for words, ink, ground in read if measure_contrast(ink, ground) < LEAST]


READ_ERROR_BARS = """() => [...document.querySelectorAll(".js-plotly-plot .barlayer .errorbar path")].map((line) => [
  getComputedStyle(line).stroke,
  getComputedStyle(line.closest(".trace").querySelector(".point path")).fill,
  getComputedStyle(document.querySelector(".stApp")).backgroundColor])"""


def find_faint_error_bars(page: Page) -> tuple[int, list[str]]:
    """Count the error bars of bars, and list those that cannot be told from their bar or from the page: WCAG 1.4.11."""
    read: list[list[str]] = page.evaluate(READ_ERROR_BARS)
    grounds = [(line, ground) for line, *both in read for ground in both]
    return len(read), [f"{line} on {ground}" for line, ground in grounds if measure_contrast(line, ground) < 3]


def measure_contrast(ink: str, ground: str) -> float:
    """Return the contrast, from 1 to 21, of two colours ``rgb(r, g, b)``, by the formula of WCAG 2.2."""
    low, high = sorted(_measure_luminance(colour) for colour in (ink, ground))
    return (high + 0.05) / (low + 0.05)


def _measure_luminance(colour: str) -> float:
    assert colour.startswith("rgb("), colour  # opaque
    red, green, blue = (int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(","))
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
