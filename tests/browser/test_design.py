"""From a folder of images to a built study in a real Chromium, as a new user would, with the clicks counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from study.network.sources import open_set
from study.plan import config
from study.plan.config import ImageSource
from tests.browser.test_accessibility import grave
from tests.server import Server, serving

pytestmark = pytest.mark.browser
MOST_CLICKS = 12
SECTIONS = ("Study", "Network and images", "Trials", "Explanations", "Procedure", "Texts", "Plan", "File", "Build")


@pytest.fixture(scope="module")
def designer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
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


@pytest.fixture(params=[(1280, 900), (390, 844)], ids=["desktop", "phone"])
def sized(request: pytest.FixtureRequest, chromium: Browser, designer: Server) -> Iterator[BrowserContext]:
    width, height = request.param
    with chromium.new_context(viewport={"width": width, "height": height}) as context:
        designer.let_in(context)
        yield context


class Hand:
    """Counts the clicks of one walk; by the keyboard, what would be clicked is focused and pressed."""

    def __init__(self, page: Page, by_keyboard: bool) -> None:
        self.page, self.by_keyboard, self.clicks = page, by_keyboard, 0

    def click(self, role: str, name: str) -> None:
        place = self.page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
        if self.by_keyboard:
            place.focus()
            place.press("Enter" if role == "button" else "Space")
        else:
            place.click()
        self.clicks += 1


def open_design(context: BrowserContext, designer: Server, query: str = "") -> Page:
    page = context.new_page()
    page.goto(f"{designer.url}/design{query}")
    expect(page.get_by_role("heading", name="Design a study")).to_be_visible()
    return page


@pytest.mark.slow
@pytest.mark.parametrize(("name", "width", "scheme"), [("walk", 1280, "light"), ("pressed", 390, "dark")])
def test_a_folder_of_images_becomes_a_built_study_in_twelve_clicks(
    chromium: Browser, designer: Server, name: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """Catches a step that has no widget, or one that a dark phone lacks or a keyboard cannot reach.

    Nothing here edits a file or runs a command.
    """
    with chromium.new_context(viewport={"width": width, "height": 1400}, color_scheme=scheme) as context:
        designer.let_in(context)
        hand = Hand(page := open_design(context, designer, "?study=A+new+study"), by_keyboard=scheme == "dark")
        page.get_by_role("textbox", name="Name", exact=True).fill(name)
        page.get_by_role("textbox", name="Title", exact=True).fill("Predict the AI")
        hand.click("button", "Make the study")
        hand.click("radio", "Network and images")
        hand.click("button", "Divide")
        hand.click("button", "Use these images")
        expect(page.get_by_text("images listed in")).to_have_count(3)
        hand.click("radio", "Trials")
        page.get_by_role("spinbutton", name="Number of categories").fill("2")
        page.get_by_role("spinbutton", name="Number of categories").press("Tab")
        expect(page.get_by_text("6 trials")).to_be_visible()
        hand.click("radio", "Explanations")
        hand.click("button", "Preview a trial")
        expect(page.get_by_text("Participants do not see this.")).to_be_visible()
        images = page.get_by_test_id("stImage").locator("img")
        expect(images.first).to_have_js_property("complete", True)
        hand.click("radio", "Build")
        hand.click("button", "Build")
        expect(page.get_by_text("The study is built as its file is now.")).to_be_visible(timeout=300_000)
        assert hand.clicks <= MOST_CLICKS
        page.get_by_role("link", name="Preview, open and share it").click()
        expect(page.get_by_role("heading", name="Predict the AI")).to_be_visible()
        expect(page.get_by_text("Before you open the study")).to_be_visible()
    assert config.read(designer.home / "studies" / f"{name}.toml").trials.categories == 2
    assert len(list((designer.home / "bundles").glob(f"{name}-*"))) == 1


def test_axe_finds_nothing_grave_in_any_section(sized: BrowserContext, designer: Server) -> None:
    """Contrast, names of fields and the order of headings, on a desktop and on a phone."""
    from study.plan import studyfiles
    from study.workspace.workspace import ROOT

    if not (designer.home / "studies" / "seen.toml").exists():
        studyfiles.copy_study(ROOT / "data" / "studies" / "demo.toml", designer.home, "seen")
    page = open_design(sized, designer, "?study=seen")
    for section in SECTIONS:
        choice = page.get_by_role("radio", name=section, exact=True)
        choice.click()
        expect(choice).to_be_checked()
        page.wait_for_timeout(300)  # the click must reach the server before its script is seen to rest
        expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")
        expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
        if section == "Texts":
            see_a_text_on_its_page(page)
        assert grave(page) == [], section
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), section


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
