"""The contrast of words that a figure draws: axe reads the colour of HTML, and not that of a drawing."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.stillness import find_lasting_faults, wait_until_still
from tests.contrast import LEAST, measure_contrast

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
    return find_lasting_faults(page, lambda: _read_faint_words(page))


def _read_faint_words(page: Page) -> list[str]:
    read: list[list[str]] = page.evaluate(READ_WORDS)
    return [f"{words}: {ink} on {ground}" for words, ink, ground in read if measure_contrast(ink, ground) < LEAST]


READ_ERROR_BARS = """() => [...document.querySelectorAll(".js-plotly-plot .barlayer .errorbar path")].map((line) => [
  getComputedStyle(line).stroke,
  getComputedStyle(line.closest(".trace").querySelector(".point path")).fill,
  getComputedStyle(document.querySelector(".stApp")).backgroundColor])"""


def find_faint_error_bars(page: Page) -> tuple[int, list[str]]:
    """Count the error bars of bars, and list those that cannot be told from their bar or from the page: WCAG 1.4.11."""
    wait_until_still(page)
    read: list[list[str]] = page.evaluate(READ_ERROR_BARS)
    grounds = [(line, ground) for line, *both in read for ground in both]
    return len(read), [f"{line} on {ground}" for line, ground in grounds if measure_contrast(line, ground) < 3]
