"""Screenshots of a trial of each template of Design: ``python -m docs.trial_screenshots``, or of those that it names.

Builds a small study of each and takes part in its preview, in the condition that shows most, up to its first trial.
Needs the development requirements and a Chromium, as `docs.screenshots` does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from docs.screenshots import (
    CHROMIUM,
    PATIENCE_MS,
    ROOT,
    log_in,
    make_environment,
    open_window,
    save_small,
    serve_workspace,
)
from study.plan.draft import MISSING, StudyDraft
from study.plan.studyfiles import copy_study
from study.plan.templates import TEMPLATES, TRIALS, path_of

SIZE = {"width": 760, "height": 640}
TALL = {"width": 760, "height": 1340}
"""Where training images lie over the page, of whose height they take less than half."""
HIDE_NOTE = "document.getElementById('preview').style.visibility = 'hidden'"
"""Hides the note that a preview is no data, which is no part of a trial."""
TOO_EARLY_MS = 300
"""A response before this time does not count."""
STEPS = ("#accept", "#understood", "#seen", "#begin")
"""The buttons from the consent to the first trial, of a study without a comprehension check."""


def make_study(home: Path, template: str) -> str:
    """Make and build a study with few of a template's trials; return its link, in the condition that shows most."""
    path = copy_study(path_of(template), home, f"{template}-small")
    draft = StudyDraft.read(path)
    draft.remove("check")
    draft.set("trials.practice", 0)
    if draft.get("units") is MISSING and draft.get("attributes") is MISSING:
        draft.set("trials.categories", 2)
    if draft.get("blocks") is not MISSING:
        draft.set("blocks", {"training": 2, "test": 1})
    draft.save(path)
    command = [sys.executable, "-m", "dashboard.cli", "build", str(path)]
    subprocess.run(command, cwd=ROOT, env=make_environment(home), check=True)
    conditions = draft.get("conditions")
    return f"run/{path.stem}?preview={'both' if conditions is MISSING else conditions[-1]}"


def open_trial(page: Page, address: str) -> None:
    """Take part up to a trial; of two steps to the second, in which the AI's label is shown; with blocks to a test."""
    page.goto(address)
    page.wait_for_selector("#consent:not([hidden])")
    for box in page.locator("#boxes input").all():
        box.check()
    for button in STEPS:
        page.click(button, timeout=PATIENCE_MS)
    page.wait_for_selector('#trial[data-phase="shown"]')
    has_first_step = page.locator("#question").inner_text().startswith("What does the")
    if has_first_step and not page.locator("#attributes").count():
        page.get_by_role("group").get_by_role("button").first.click()
        page.click("#begin", timeout=PATIENCE_MS)
        page.wait_for_selector('#trial[data-phase="shown"] #label:not([hidden])')
    if page.locator("#reservoir").count():
        open_test(page)
    if page.locator("#place").count():
        mark_place(page)
    if page.locator("#name").count():
        page.fill("#name", "Dark asphalt, with cars")


def mark_place(page: Page) -> None:
    """Draw a short stroke, of which a task that asks for a point keeps the end."""
    box = page.locator("#place").bounding_box() or {}
    for step, (x, y) in enumerate([(0.4, 0.5), (0.5, 0.6), (0.6, 0.55)]):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if step == 0:
            page.mouse.down()
    page.mouse.up()


def open_test(page: Page) -> None:
    """Respond to the training trials, and open the training images in the first test trial."""
    while page.locator("#reservoir[hidden]").count():
        page.wait_for_selector('#trial[data-phase="shown"]')
        page.wait_for_timeout(TOO_EARLY_MS)
        page.click("#left")
        page.click("#next")
        page.wait_for_selector('#begin:enabled:visible, #trial[data-phase="shown"]:visible')
        if page.locator("#begin").is_visible():
            page.click("#begin", timeout=PATIENCE_MS)
            page.wait_for_selector('#trial[data-phase="shown"]')
    page.set_viewport_size(TALL)  # type: ignore[arg-type]
    page.locator("#reservoir summary").click()
    page.mouse.move(0, 0)


def main() -> None:
    """Make the screenshots."""
    TRIALS.mkdir(exist_ok=True)
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        wanted = set(sys.argv[1:]) or {one.trial for one in TEMPLATES.values()}
        links = {template: make_study(home, template) for template in wanted}
        with serve_workspace(home) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
            login = log_in(browser, url, home)
            for template, link in links.items():
                with open_window(browser, login, "light", "desktop") as page:
                    page.set_viewport_size(SIZE)  # type: ignore[arg-type]
                    open_trial(page, f"{url}/{link}")
                    page.evaluate(HIDE_NOTE)
                    save_small(page, TRIALS / f"{template}.webp")
            browser.close()


if __name__ == "__main__":
    main()
