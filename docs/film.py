"""The film of the README: from a folder of images to the participants' link: ``python -m docs.film``.

A real Chromium goes through Design and Studies over a workspace with one folder of images. Each step is a frame; a ring
shows where the next click goes, and the line below the page says what is done and counts the clicks. The build is shown
in a fraction of its time. Needs the development requirements and a Chromium, as `docs.screenshots` does.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, Page, expect, sync_playwright

from data.scenes.splits import picture
from docs.screenshots import CHROMIUM, DOCS, PATIENCE_MS, log_in, serve_workspace, wait_until_loaded

FILM = DOCS / "folder-to-link.webp"
SIZE = {"width": 1280, "height": 800}
SHOWN = (960, 600)
"""Size of a frame, px."""
NAME, FOLDER = "my-first-study", "drawings"
SPLITS = {"standard": 480, "adversarial": 160}
"""Images in the folder by how hard they are to classify."""
STEP_MS, RING_MS, BUILD_MS, END_MS = 1400, 900, 4000, 5000
"""Durations of a step, of the ring before a click, of the whole build and of the end."""
MOST_OF_BUILD = 20
"""Frames of the build."""
SCROLL_MS = 400
CAPTION = """([said, clicks]) => {
  const line = document.querySelector("#film") ?? document.body.appendChild(document.createElement("div"));
  line.id = "film";
  line.style = "position:fixed;inset:auto 0 0 0;z-index:2147483647;padding:14px 24px;background:#1d2440;color:#fff;" +
    "font:600 22px Inter,sans-serif;display:flex;justify-content:space-between";
  const write = (text) => Object.assign(document.createElement("span"), { innerText: text });
  line.replaceChildren(write(said), write(clicks));
}"""
RING = """({ x, y, width, height }) => {
  const ring = document.body.appendChild(document.createElement("div"));
  ring.className = "film-ring";
  ring.style = `position:fixed;z-index:2147483646;pointer-events:none;left:${x - 8}px;top:${y - 8}px;` +
    `width:${width + 16}px;height:${height + 16}px;border:4px solid #e06000;border-radius:14px;box-sizing:border-box`;
}"""
UNRING = "document.querySelectorAll('.film-ring').forEach((ring) => ring.remove())"


class Film:
    """Frames of one walk, with its clicks counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.said = page, 0, ""
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def say(self, said: str) -> None:
        """Set the line below the page, and film the page at rest."""
        self.said = said
        self.film(STEP_MS)

    def film(self, milliseconds: int) -> None:
        """Add a frame."""
        clicks = f"{self.clicks} click{'s' * (self.clicks != 1)}"
        self.page.evaluate(CAPTION, [self.said, clicks])
        shown = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(shown.resize(SHOWN, Image.Resampling.LANCZOS))
        self.durations.append(milliseconds)

    def click(self, place: Locator) -> None:
        """Show where the click goes, and click there."""
        wait_until_loaded(self.page)
        self.bring(place)
        self.page.evaluate(RING, place.bounding_box())
        self.film(RING_MS)
        self.page.evaluate(UNRING)
        place.click()
        self.clicks += 1
        self.page.wait_for_timeout(300)
        wait_until_loaded(self.page)

    def bring(self, place: Locator) -> None:
        """Scroll to a place, above the line below the page."""
        place.evaluate("place => place.scrollIntoView({ block: 'center' })")
        self.page.wait_for_timeout(SCROLL_MS)

    def press(self, name: str) -> None:
        """Click a button."""
        self.click(self.page.get_by_role("button", name=name, exact=True))

    def go_to(self, name: str) -> None:
        """Open a step of Design, or a part of one."""
        self.click(self.page.get_by_role("radio", name=re.compile(f"^(done ?)?{name}$")))

    def show(self, place: Locator) -> None:
        """Scroll to what a click has made, and film it."""
        place.wait_for(timeout=PATIENCE_MS)
        wait_until_loaded(self.page)
        self.bring(place)
        self.film(STEP_MS)

    def watch(self, end: Locator) -> None:
        """Film work in the background until its end is on the page, and keep a few frames of it."""
        first = len(self.frames)
        while not end.is_visible():
            self.film(0)
            time.sleep(1)
        step = max(1, (len(self.frames) - first) // MOST_OF_BUILD)
        kept = self.frames[first::step]
        self.frames[first:] = kept
        self.durations[first:] = [BUILD_MS // max(1, len(kept))] * len(kept)

    def save(self, path: Path) -> None:
        """Write the film as an animated WebP."""
        first, *others = self.frames
        first.save(path, save_all=True, append_images=others, duration=self.durations, loop=0, quality=60, method=6)


def draw_folder(home: Path) -> None:
    """Draw a folder of images, a subfolder for each class."""
    for split, size in SPLITS.items():
        for i in range(size):
            scene = picture(split, 7, i)
            path = home / "images" / FOLDER / scene.label / f"{split}-{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            scene.image.save(path)


def design(film: Film) -> None:
    """Go from the folder of images to a built study."""
    page = film.page
    film.say(f"A folder of {sum(SPLITS.values())} images and a network")
    page.get_by_role("textbox", name="Name", exact=True).fill(NAME)
    page.get_by_role("textbox", name="Title", exact=True).fill("Predict the AI")
    page.keyboard.press("Tab")
    film.say("Name the study")
    film.press("Create study")
    film.said = "Divide the images by what the network gets wrong"
    film.go_to("One image set, divided into three")
    film.press("Divide")
    use = page.get_by_role("button", name="Use these images", exact=True)
    use.wait_for(timeout=PATIENCE_MS)
    film.press("Use these images")
    film.say("See each trial as participants will")
    film.go_to("Trials and explanations")
    page.get_by_text("Participants do not see").first.wait_for(timeout=PATIENCE_MS)
    film.show(page.get_by_test_id("stImage").nth(1))
    film.said = "Build: heatmaps, examples, everything frozen under one hash"
    film.go_to("Plan and build")
    film.go_to("Build")
    film.press("Build")
    film.watch(page.get_by_text("The study is built as its file is now."))
    film.film(STEP_MS)


def open_to_participants(film: Film) -> None:
    """Go from the built study to the participants' link."""
    page = film.page
    film.said = "Check it, and open it"
    film.click(page.get_by_role("link", name="Preview, open and share it"))
    film.press("Open the study")
    film.click(page.get_by_role("checkbox", name="Open it without a complete contact").locator("xpath=ancestor::label"))
    film.press("Open to participants")
    link = page.locator("code", has_text=f"/run/{NAME}")
    expect(link).to_be_visible(timeout=PATIENCE_MS)
    film.said = "The link and its QR code: collect responses"
    film.bring(link)
    film.film(END_MS)


def main() -> None:
    """Draw the folder, start the server, go through the pages, and write the film."""
    with tempfile.TemporaryDirectory(prefix="foretell-") as scratch, sync_playwright() as playwright:
        home = Path(scratch)
        draw_folder(home)
        with serve_workspace(home, "--no-demo") as url:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            login = log_in(browser, url, home)
            with browser.new_context(viewport=SIZE, storage_state=login, reduced_motion="reduce") as context:
                context.set_default_timeout(PATIENCE_MS)
                film = Film(context.new_page())
                film.page.goto(f"{url}/design?study=A+new+study")
                wait_until_loaded(film.page)
                design(film)
                open_to_participants(film)
            browser.close()
        film.save(FILM)
    length, size = sum(film.durations) / 1000, FILM.stat().st_size / 1e6
    length, size = sum(film.durations) / 1000, FILM.stat().st_size / 1e6
    sys.stdout.write(f"{FILM}: {length:.0f} s, {film.clicks} clicks, {size:.1f} MB\n")


if __name__ == "__main__":
    main()
