"""Screenshots of every page of a workspace with the demo study: ``python scripts/screenshots.py FOLDER``.

Each page light and dark, on a desktop and a phone. ``--readme`` writes the picture of the README instead. Needs the
development requirements and a Chromium (``FORETELL_CHROMIUM``, or one on the path).
"""

from __future__ import annotations

import argparse
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
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "docs" / "images" / "explore.png"
CHROMIUM = os.environ.get("FORETELL_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
PATIENCE_MS = 120_000
PAGES = {
    "home": "",
    "explore": "explore",  # begins with the most confident error
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

MADE = {
    PAGES["explore"]: "How far to trust this map",
    PAGES["teaching"]: "sets scored",
    PAGES["checks"]: "crosschecks.csv",
    PAGES["exploratory"]: "The numbers",
}
"""What stands on a page when that is there which is made beside it."""


@contextmanager
def served(home: Path) -> Iterator[str]:
    """The address of a server over a workspace with the demo study, built and filled first if need be."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dashboard.cli", "serve", "--port", str(port), "--no-browser"]
    environment = {**os.environ, "FORETELL_HOME": str(home), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment) as server:
        try:
            _wait(server, f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait(server: subprocess.Popen[bytes], url: str) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=2)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise SystemExit("The server ended before it answered; its message is above.")


def settled(page: Page) -> None:
    """Wait until the script ran to its end and every picture is there."""
    page.wait_for_selector("h1", timeout=PATIENCE_MS)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=PATIENCE_MS)
    page.wait_for_load_state("networkidle")
    page.evaluate("Promise.all([...document.images].map((image) => image.decode().catch(() => null)))")
    page.wait_for_function("document.getAnimations().every((a) => a.playState !== 'running')")


def opened(page: Page, url: str, path: str) -> None:
    """A researcher's page, with what is made beside it."""
    page.goto(f"{url}/{path}")
    settled(page)
    if path in MADE:
        page.get_by_text(MADE[path]).first.wait_for(timeout=PATIENCE_MS)
        settled(page)


CHECKED = (1, 1)  # the demo's right answers to its comprehension check


def trial(page: Page, url: str) -> None:
    """A participant's first question in the condition that shows both explanations."""
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


def whole(page: Page) -> None:
    """Make the window as high as the page, so that the picture shows all of it."""
    height = page.evaluate(
        "Math.max(...[...document.querySelectorAll('[data-testid=stMain]')].map(m => m.scrollHeight))"
    )
    assert page.viewport_size is not None
    page.set_viewport_size({"width": page.viewport_size["width"], "height": max(page.viewport_size["height"], height)})
    settled(page)


@contextmanager
def window(browser: Browser, scheme: str, size: str) -> Iterator[Page]:
    """A page of a fresh visitor."""
    width, height = SIZES[size]
    with browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    ) as context:
        yield context.new_page()


def everything(browser: Browser, url: str, folder: Path) -> None:
    """Every page in every look."""
    for scheme in ("light", "dark"):
        for size in SIZES:
            for name, path in PAGES.items():
                with window(browser, scheme, size) as page:
                    opened(page, url, path)
                    whole(page)
                    page.screenshot(path=folder / f"{name}-{scheme}-{size}.png")
            with window(browser, scheme, size) as page:
                trial(page, url)
                page.screenshot(path=folder / f"participant-{scheme}-{size}.png")


def readme(browser: Browser, url: str, folder: Path) -> None:
    """The picture of the README: a confident error explained."""
    with window(browser, "light", "desktop") as page:
        opened(page, url, PAGES["explore"])
        whole(page)
        page.screenshot(path=folder / README.name)


def main() -> None:
    """Read the command line, start, look, stop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="where the pictures go")
    parser.add_argument("--readme", action="store_true", help=f"write {README.relative_to(ROOT)} only")
    parser.add_argument("--home", type=Path, help="workspace to use; without it one is made and thrown away")
    given = parser.parse_args()
    if given.folder is None and not given.readme:
        parser.error("name a folder, or say --readme")
    folder: Path = README.parent if given.readme else given.folder
    folder.mkdir(parents=True, exist_ok=True)
    work: Callable[[Browser, str, Path], None] = readme if given.readme else everything
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with (
        tempfile.TemporaryDirectory() as scratch,
        served(given.home or Path(scratch)) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        work(browser, url, folder)
        browser.close()


if __name__ == "__main__":
    main()
