"""The contrast of words that axe does not judge: those that a figure draws, and those in the colour of their ground.

axe takes a contrast of 1 for text that is meant to be hidden.
"""

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

READ_BUTTONS = """() => [...document.querySelectorAll(".stApp button:enabled")].filter((button) => {
  const { width, height } = button.getBoundingClientRect();
  return button.innerText.trim() && width > 1 && height > 1;
}).map((button) => {
  let ground = button;
  const isClear = () => !/^rgb\\(/.test(getComputedStyle(ground).backgroundColor);
  while (ground.parentElement && isClear()) ground = ground.parentElement;
  const words = button.querySelector("p") ?? button;
  return [button.innerText, getComputedStyle(words).color, getComputedStyle(ground).backgroundColor];
})"""
UNSEEN = 1.5
"""A contrast at which words are not seen; what is faint and seen is for axe."""


def find_faint_words(page: Page) -> list[str]:
    """List the words of figures and buttons whose contrast with what is behind them is too low."""
    return find_lasting_faults(page, lambda: _read_faint_words(page))


def _read_faint_words(page: Page) -> list[str]:
    figures: list[list[str]] = page.evaluate(READ_WORDS)
    buttons: list[list[str]] = page.evaluate(READ_BUTTONS)
    buttons = [words for words in buttons if words[1].startswith("rgb(")]  # what is half transparent is seen
    read = [(*words, least) for kind, least in ((figures, LEAST), (buttons, UNSEEN)) for words in kind]
    return [
        f"{words}: {ink} on {ground}" for words, ink, ground, least in read if measure_contrast(ink, ground) < least
    ]


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
