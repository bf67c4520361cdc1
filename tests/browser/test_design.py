"""From a folder of images to a built study in a real Chromium, as a new user would, with the clicks counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.design.steps import STEPS
from study.network.sources import open_set
from study.plan import config, studyfiles
from study.plan.config import ImageSource
from study.workspace.workspace import ROOT
from tests.browser.hand import Hand
from tests.conftest import PATIENCE_MS
from tests.server import Server, serving

pytestmark = pytest.mark.browser
MOST_CLICKS = 10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a workspace with one folder of images, which the built-in network classifies."""
    home = tmp_path_factory.mktemp("designer")
    for split, size in (("standard", 480), ("adversarial", 160)):
        images = open_set(ImageSource.model_validate({"set": "scenes", "split": split, "size": size}), home)
        for i in range(len(images)):
            path = home / "pictures" / "drawn" / images.categories[images.labels[i]] / f"{split}-{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            images.open(i).save(path)
    with serving(home) as running:
        yield running


def open_design(hand: Hand, server: Server, query: str) -> None:
    hand.page.goto(f"{server.url}/design{query}")
    expect(hand.page.get_by_role("heading", name="Design a study")).to_be_visible()


def go_to(hand: Hand, name: str) -> None:
    """Open a step, which may have the mark that it is done, or a part of one."""
    choice = hand.page.get_by_role("radio", name=re.compile(f"^(done ?)?{name}$"))
    hand.click(choice)
    expect(choice).to_be_checked()
    hand.page.wait_for_timeout(300)  # the click must reach the server before its script is seen to rest


@pytest.mark.slow
def test_a_folder_of_images_becomes_a_built_study_in_ten_clicks(hand: Hand, server: Server) -> None:
    """Catches a step that has no widget, or one that a dark phone lacks or a keyboard cannot reach.

    Nothing here edits a file or runs a command.
    """
    page, name = hand.page, hand.visitor.name
    press = partial(press_button, hand)
    open_design(hand, server, "?study=A+new+study")
    hand.write(page.get_by_role("textbox", name="Name", exact=True), name)
    hand.write(page.get_by_role("textbox", name="Title", exact=True), "Predict the AI")
    hand.see("a new study")
    press("Create study")
    go_to(hand, "One image set, divided into three")
    press("Divide")
    press("Use these images")
    expect(page.get_by_text("images listed in")).to_have_count(3)
    hand.see("divided images")
    go_to(hand, "Trials and explanations")
    hand.write(page.get_by_role("spinbutton", name="Number of categories"), "2")
    expect(page.get_by_text("6 trials for each participant")).to_be_visible()
    begin, seen = page.get_by_role("button", name=re.compile("^Compute")), page.get_by_text("Participants do not see")
    expect(begin.or_(seen)).to_be_visible(timeout=PATIENCE_MS)
    asked = int(begin.is_visible())  # a slow machine asks before it takes half a minute, which is a click more
    if asked:
        hand.click(begin)
    expect(seen).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stImage").locator("img").first).to_have_js_property("complete", True)
    hand.see("a previewed trial")
    go_to(hand, "Plan and build")
    go_to(hand, "Build")
    press("Build")
    expect(page.get_by_text("The study is built as its file is now.")).to_be_visible(timeout=6 * PATIENCE_MS)
    assert hand.clicks <= MOST_CLICKS + asked
    hand.click(page.get_by_role("link", name="Preview, open and share it"))
    expect(page.get_by_role("heading", name="Predict the AI")).to_be_visible()
    expect(page.get_by_text("Before you open the study")).to_be_visible()
    hand.see("before it is opened")
    press("Open the study")
    hand.click(page.get_by_role("checkbox", name="Open it without a complete contact"))
    press("Open to participants")
    expect(page.locator("code", has_text=f"/run/{name}")).to_be_visible()
    hand.see("the link")
    assert config.read(server.home / "studies" / f"{name}.toml").trials.categories == 2
    assert len(list((server.home / "bundles").glob(f"{name}-*"))) == 1


def press_button(hand: Hand, name: str) -> None:
    hand.click(hand.page.get_by_role("button", name=name, exact=True))


def copy_small_demo(home: Path) -> None:
    """Copy the demo's study file with a quarter of its scenes, which are drawn and classified when it is opened."""
    path = studyfiles.copy_study(ROOT / "data" / "studies" / "demo.toml", home, "seen")
    text, count = re.subn(r"^size = (\d+)$", lambda size: f"size = {int(size[1]) // 4}", path.read_text(), flags=re.M)
    assert count == 3
    path.write_text(text)


def test_axe_finds_nothing_grave_in_any_section(hand: Hand, server: Server) -> None:
    """Contrast, names of fields, the order of headings and targets, on a light desktop and on a dark phone."""
    if not (server.home / "studies" / "seen.toml").exists():
        copy_small_demo(server.home)
    open_design(hand, server, "?study=seen")
    for step, parts in STEPS.items():
        go_to(hand, step)
        hand.see(step)
        for part in parts[1:]:
            go_to(hand, part)
            hand.see(part)
            if part == "Texts":
                see_a_text_on_its_page(hand.page)
    press_button(hand, "Actions")
    hand.see("the menu")


def see_a_text_on_its_page(page: Page) -> None:
    """The participants' page follows the text that was written last, in either language, and leaves the focus alone."""
    shown = page.frame_locator("iframe")
    expect(shown.get_by_role("heading", name="What will the AI call this picture?")).to_be_visible()
    field = page.get_by_role("textbox", name="Instructions", exact=True)
    own = f"Predict the AI, on {page.viewport_size} pixels."  # another text for each size: the file is the same
    field.fill(own)
    field.press("Tab")
    expect(shown.locator("#instructions .prose")).to_have_text(own)
    assert page.evaluate("document.activeElement.tagName") != "IFRAME"
    field = page.get_by_role("textbox", name="Feedback", exact=True)
    width = page.evaluate("innerWidth")
    field.fill(f"It said {{name}}, on {width} pixels.")
    field.press("Tab")
    expect(shown.locator("#feedback p")).to_have_text(f"It said A, on {width} pixels.")
    expect(shown.locator("#question")).to_have_text("Which name did the AI give this picture?")
    expect(shown.locator("#map")).to_have_js_property("complete", True)
    assert page.evaluate("document.activeElement.tagName") != "IFRAME"
    field = page.get_by_role("textbox", name="Instructions", exact=True)
    field.fill(f"{own}.")
    field.press("Tab")
    expect(shown.locator("#instructions .prose")).to_have_text(f"{own}.")
    page.get_by_role("radio", name="German").click()
    expect(shown.get_by_role("heading", name="Ihre Aufgabe")).to_be_visible()
    expect(shown.locator("#instructions .prose")).to_have_text(f"{own}.")
