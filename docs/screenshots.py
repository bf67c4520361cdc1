"""Screenshots of every page of a workspace with the demo study: ``python -m docs.screenshots FOLDER``.

Each page light and dark, on a desktop and a phone. ``--docs`` writes the images of the README and the guides instead.
Needs the development requirements and a Chromium (``FORETELL_CHROMIUM``, or one on the path).
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, StorageState, sync_playwright

from data.scenes.splits import picture
from study import demo
from study.plan.studyfiles import copy_study

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "images"
CHROMIUM = os.environ.get("FORETELL_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
PATIENCE_MS = 120_000
Visit = Callable[[str, str], AbstractContextManager[Page]]
"""Opens a page in a colour scheme, on a screen of `SIZES`."""
PAGES = {
    "home": "",
    "explore": "explore",  # starts with the most confident error
    "gallery": "explore?view=Gallery",
    "studies": "studies?study=demo",
    "trials": "studies?study=demo&section=Trials",
    "simulate": "studies?study=demo&section=Simulate",
    "teaching": "teaching?study=demo",
    "power": "power?study=demo",
    "results": "results",
    "models": "results?section=Models",
    "checks": "results?section=Checks",
    "exploratory": "results?section=Exploratory",
}
DRAWINGS, STUDY = "drawings", "my-study"
"""An image set and a study that the guides show."""
GUIDED = {
    "models-and-images": f"library?set={DRAWINGS}",
    "design": f"design?study={STUDY}&part=Trials",
    "results": PAGES["results"],
}
"""Pages of the guides."""
HEIGHTS = {"results": 1500, "design": 1300}
"""Of a screenshot with more than the first screen, px."""

MADE = {
    PAGES["explore"]: "Reliability of this heatmap",
    PAGES["teaching"]: "The search",
    PAGES["checks"]: "exploratory_crosschecks.csv",
    PAGES["exploratory"]: "Data table",
    GUIDED["models-and-images"]: "Labels and classes",
    GUIDED["design"]: "Participants do not see",
    GUIDED["results"]: "only, as in the paper",
}
"""A text that a page shows only when its background jobs are done."""


@contextmanager
def serve_workspace(home: Path, *options: str) -> Iterator[str]:
    """Start a server over a workspace, with options of ``serve``; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dashboard.cli", "serve", "--port", str(port), "--no-browser", *options]
    with subprocess.Popen(command, cwd=ROOT, env=make_environment(home)) as server:
        try:
            _wait(server, f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def make_environment(home: Path) -> dict[str, str]:
    """Return the environment of a command over a workspace."""
    return {**os.environ, "FORETELL_HOME": str(home), "PYTHONPATH": str(ROOT)}


def _wait(server: subprocess.Popen[bytes], url: str) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/login", timeout=2)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise SystemExit("The server stopped before it responded; its message is above.")


def wait_until_loaded(page: Page) -> None:
    """Wait until the script has run and every image is loaded."""
    page.wait_for_selector("h1", timeout=PATIENCE_MS)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=PATIENCE_MS)
    page.wait_for_load_state("networkidle")
    page.evaluate("Promise.all([...document.images].map((image) => image.decode().catch(() => null)))")
    page.wait_for_function("document.getAnimations().every((a) => a.playState !== 'running')")


def open_page(page: Page, url: str, path: str) -> None:
    """Open a researcher's page, and wait for its background jobs."""
    page.goto(f"{url}/{path}")
    wait_until_loaded(page)
    if path in MADE:
        page.get_by_text(MADE[path]).first.wait_for(timeout=PATIENCE_MS)
        wait_until_loaded(page)


CHECKED = (1, 1)  # the correct options of the demo's comprehension check


def open_trial(page: Page, url: str) -> None:
    """Open a participant's first trial in the condition that shows both explanations."""
    page.goto(f"{url}/run/demo?preview=both")
    page.wait_for_selector("#consent:not([hidden])")
    for box in page.locator("#boxes input").all():
        box.check()
    page.click("#accept")
    page.click("#understood")
    page.wait_for_selector("#check fieldset")
    for question, option in enumerate(CHECKED):
        page.check(f'#check input[name="q{question}"][value="{option}"]')
    page.click("#answer-check")
    page.click("#seen")
    page.click("#begin", timeout=PATIENCE_MS)
    page.wait_for_selector('#trial[data-phase="shown"]')


def fit_window(page: Page) -> None:
    """Make the window as high as the page, so that the screenshot shows all of it."""
    height = page.evaluate(
        "Math.max(...[...document.querySelectorAll('[data-testid=stMain]')].map(m => m.scrollHeight))"
    )
    assert page.viewport_size is not None
    page.set_viewport_size({"width": page.viewport_size["width"], "height": max(page.viewport_size["height"], height)})
    wait_until_loaded(page)


def wait_for_demo(home: Path) -> None:
    """Wait until the demo study is built, in the background of the server."""
    while not (home / demo.DONE).exists():
        time.sleep(0.5)


def log_in(browser: Browser, url: str, home: Path) -> StorageState:
    """Log in to the researcher's pages by a login link, and return the cookie."""
    command = [sys.executable, "-m", "dashboard.cli", "login", "--address", url]
    said = subprocess.run(
        command, cwd=ROOT, env=make_environment(home), check=True, capture_output=True, text=True
    ).stdout
    with browser.new_context() as context:
        context.request.get(said.split()[-1])
        return context.storage_state()


@contextmanager
def open_window(browser: Browser, login: StorageState, scheme: str, size: str) -> Iterator[Page]:
    """Open a page for a new visitor who is logged in."""
    width, height = SIZES[size]
    with browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", storage_state=login
    ) as context:
        yield context.new_page()


def capture_pages(visit: Visit, url: str, folder: Path) -> None:
    """Take a screenshot of every page, light and dark, on both screens."""
    for scheme in ("light", "dark"):
        for size in SIZES:
            for name, path in PAGES.items():
                with visit(scheme, size) as page:
                    open_page(page, url, path)
                    fit_window(page)
                    page.screenshot(path=folder / f"{name}-{scheme}-{size}.png")
            with visit(scheme, size) as page:
                open_trial(page, url)
                page.screenshot(path=folder / f"participant-{scheme}-{size}.png")


def capture_docs(visit: Visit, url: str, folder: Path) -> None:
    """Take the screenshots of the README and the guides, whose material is there (`make_material`)."""
    with visit("light", "desktop") as page:
        open_page(page, url, PAGES["explore"])
        fit_window(page)
        page.screenshot(path=folder / "explore.png")
    for name, path in GUIDED.items():
        with visit("light", "desktop") as page:
            open_page(page, url, path)
            page.set_viewport_size({"width": SIZES["desktop"][0], "height": HEIGHTS.get(name, SIZES["desktop"][1])})
            save_small(page, folder / f"{name}.webp")
    with visit("light", "desktop") as page:
        open_trial(page, url)
        save_small(page, folder / "participant.webp")


def make_material(home: Path) -> None:
    """Make the image set and the study that the guides show."""
    for i in range(64):
        scene = picture("standard", 7, i)
        file = home / "images" / DRAWINGS / scene.label / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        scene.image.save(file)
    copy_study(ROOT / "data" / "studies" / "demo.toml", home, STUDY, "Predict the AI")


def save_small(page: Page, path: Path) -> None:
    """Save a screenshot as WebP, a tenth of the size of a PNG."""
    Image.open(io.BytesIO(page.screenshot())).save(path, quality=85, method=6)


def main() -> None:
    """Read the command line, start the server, take the screenshots, and stop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="folder for the screenshots")
    parser.add_argument("--docs", action="store_true", help=f"write the images of {DOCS.relative_to(ROOT)} only")
    parser.add_argument("--home", type=Path, help="workspace to use; by default a temporary one")
    given = parser.parse_args()
    if given.folder is None and not given.docs:
        parser.error("name a folder, or say --docs")
    folder: Path = DOCS if given.docs else given.folder
    folder.mkdir(parents=True, exist_ok=True)
    work: Callable[[Visit, str, Path], None] = capture_docs if given.docs else capture_pages
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with (
        tempfile.TemporaryDirectory() as scratch,
        serve_workspace(home := given.home or Path(scratch)) as url,
        sync_playwright() as playwright,
    ):
        wait_for_demo(home)
        if given.docs:
            make_material(home)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        work(partial(open_window, browser, log_in(browser, url, home)), url, folder)
        browser.close()


if __name__ == "__main__":
    main()
