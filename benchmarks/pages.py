"""How fast the researcher's pages are: ``python -m benchmarks.pages``.

A real Chromium opens each page of a warm server and waits for its first useful content: the first field, table,
figure or image below the title. Then it clicks on what starts no work, and waits for what the click shows. The
reference is a page of one sentence on the same server, which is what Streamlit itself takes. At last it scrolls through
the gallery of a set of 10,000 images and counts the frames.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from benchmarks.machine import arguments, hand_over
from study.plan.mixture import MIXTURE, parse_mixture
from study.plan.studyfiles import copy_study
from study.service import Service
from study.simulate import simulate
from study.workspace.workspace import ROOT
from tests.conftest import CHROMIUM, write_bundle
from tests.server import serving

PATHS = (
    "",
    "explore",
    "design?study=mine",
    "studies?study=pages",
    "monitor",
    "power",
    "results",
    "teaching",
    "library",
)
REFERENCE = "help"
CONTENT = "[data-testid=stMain] :is(input, table, canvas, .js-plotly-plot, img, a[href^='/'], [data-testid=stMetric])"
CLICKS = {
    "Design: another section": ("design?study=mine", "Procedure", "Comprehension check"),
    "Design: another section of texts": ("design?study=mine", "Texts", "All other texts"),
    "Studies: another section": ("studies?study=pages", "Export", "Responses"),
    "Explore: the gallery": ("explore", "Gallery", "images;"),
}
"""A click that starts no work: the page, the choice, and a text that it shows."""
MANY, SET = 10_000, "many"
GALLERY = f"explore?view=Gallery&source={SET}"
SCROLL = """async () => {
  const scrolled = document.querySelector("[data-testid=stMain]");
  const frames = [];
  for (let k = 0; k <= 120; k++) {
    frames.push(await new Promise(requestAnimationFrame));
    scrolled.scrollTop += 20;
  }
  const each = frames.slice(1).map((at, k) => at - frames[k]).sort((a, b) => a - b);
  return [1000 / each[60], each[119], scrolled.scrollTop];
}"""
"""Scroll by 20 pixels a frame, 120 times: the frames per second (median), the longest frame in ms, and how far."""


def measure(rounds: int) -> dict[str, Any]:
    """Measure median milliseconds of each page and each click, in turns, and the frames of the gallery's scroll."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        copy_study(ROOT / "data" / "studies" / "demo.toml", home, "mine")
        with Service(home) as service:
            bundle = write_bundle(home / "bundles" / "pages-0123456789ab", name="pages", trials=12, practice=2)
            service.researcher.open_study(bundle, per_condition=10)
            simulate(service, "pages", 8, parse_mixture(MIXTURE), 0)
        _write_images(home / "images" / SET / "bird")
        with serving(home) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            server.let_in(context)
            page = context.new_page()
            page.set_default_timeout(60_000)
            work = {path: _opening(page, f"{server.url}/{path}") for path in (*PATHS, REFERENCE)}
            pages = _take_turns(work, rounds)
            clicks = _take_turns({what: _clicking(page, server.url, *given) for what, given in CLICKS.items()}, rounds)
            scroll = _scroll(page, f"{server.url}/{GALLERY}")
            browser.close()
    return {"reference_ms": pages.pop(REFERENCE), "pages_ms": pages, "clicks_ms": clicks, "scroll": scroll}


def _write_images(folder: Path) -> None:
    """Write so many different images, of noise."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for k in range(MANY):
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(folder / f"{k:05}.png")


def _scroll(page: Page, url: str) -> dict[str, float]:
    """Scroll through the gallery; the browser draws at most 60 frames per second here."""
    page.goto(url)
    page.locator(".grid figure img").nth(59).wait_for(timeout=120_000)
    page.wait_for_timeout(3000)  # the images are there
    rate, longest, far = page.evaluate(SCROLL)
    return {"images": MANY, "frames_per_s": round(rate, 1), "longest_frame_ms": round(longest, 1), "pixels": round(far)}


def _take_turns(work: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each piece of work, ms; the first time is not counted."""
    for run in work.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            times[name].append(run())
    return {name: round(statistics.median(durations), 1) for name, durations in times.items()}


def _opening(page: Page, url: str) -> Callable[[], float]:
    def run() -> float:
        content = "[data-testid=stMain] h1" if url.endswith(REFERENCE) else CONTENT
        page.goto("about:blank")
        start = time.perf_counter()
        page.goto(url, wait_until="commit")
        page.locator(content).first.wait_for()
        return (time.perf_counter() - start) * 1000

    return run


def _clicking(page: Page, url: str, path: str, choice: str, shown: str) -> Callable[[], float]:
    def run() -> float:
        page.goto(f"{url}/{path}")
        button = page.get_by_role("radio", name=choice, exact=True)
        button.wait_for()
        page.wait_for_timeout(1500)  # the page's first run ends
        start = time.perf_counter()
        button.click()
        page.get_by_text(shown).first.wait_for()
        return (time.perf_counter() - start) * 1000

    return run


if __name__ == "__main__":
    parser = arguments("pages")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    hand_over("pages", given, lambda: measure(given.rounds))
