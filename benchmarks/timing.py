"""Precision of the page's response times: ``python -m benchmarks.timing``.

A real Chromium takes part in a real study. A key goes down at a known delay after the frame that paints the stimulus,
and the stored response time is compared with that delay. The mean error is the page's rule (the clock starts at the
frame after the paint); what limits an experiment is its standard deviation. No photodiode: the screen's own delay
is not included.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.machine import arguments, hand_over
from study.service import Service
from tests.browser.participation import at_main
from tests.conftest import CHROMIUM, write_bundle
from tests.server import serving

DELAYS_MS = (250.0, 1200.0)
PRESS = """
(delays) => addEventListener("DOMContentLoaded", () => {
  const trial = document.getElementById("trial");
  window.pressed = {};
  new MutationObserver(() => {
    if (trial.dataset.phase !== "shown") return;
    const number = Number(trial.dataset.number), delay = delays[number - 1];
    requestAnimationFrame((painted) => setTimeout(() => {
      while (performance.now() < painted + delay);
      const event = new KeyboardEvent("keydown", { key: "f" });
      window.pressed[number] = event.timeStamp - painted;
      dispatchEvent(event);
    }, painted + delay - performance.now() - 6));
  }).observe(trial, { attributeFilter: ["data-phase"] });
})
"""
"""Busy-waits for the last six milliseconds: a timer alone is late by as much as is measured."""


def measure(trials: int, seed: int) -> dict[str, Any]:
    """Measure the error of each trial, ms: the stored response time minus the delay of the key press."""
    rng = random.Random(seed)
    delays = [rng.uniform(*DELAYS_MS) for _ in range(trials)]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with Service(home) as service:
            options: dict[str, Any] = {
                "name": "timing",
                "trials": trials,
                "practice": 0,
                "config": {"pacing": {"break_every": 0}},
            }
            service.researcher.open_study(write_bundle(home / "bundle", **options), per_condition=1)
        with serving(home) as server:
            pressed = _take_part(at_main(server, "timing", 0), delays)
            with sqlite3.connect(home / "foretell.db") as db:
                stored = db.execute("SELECT trial_index, rt_ms, frame_hz, clock_ms FROM response ORDER BY 1").fetchall()
    errors = [rt - pressed[str(index + 1)] for index, rt, _, _ in stored]
    late = [pressed[str(k + 1)] - delay for k, delay in enumerate(delays)]
    return {
        "trials": len(stored),
        "error_mean_ms": round(statistics.mean(errors), 2),
        "error_sd_ms": round(statistics.stdev(errors), 2),
        "error_range_ms": [round(min(errors), 1), round(max(errors), 1)],
        "key_late_by_ms": round(statistics.mean(late), 2),
        "frame_hz": round(stored[0][2], 1),
        "clock_ms": stored[0][3],
    }


def _take_part(link: str, delays: list[float]) -> dict[str, float]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.add_init_script(f"({PRESS})({json.dumps(delays)})")
        page.goto(link)
        page.click("#begin")
        page.wait_for_selector("#end:not([hidden])", timeout=len(delays) * 6000)
        pressed: dict[str, float] = page.evaluate("() => window.pressed")
        browser.close()
    return pressed


if __name__ == "__main__":
    parser = arguments("timing")
    parser.add_argument("--trials", type=int, default=89)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    hand_over("timing", given, lambda: measure(given.trials, given.seed))
