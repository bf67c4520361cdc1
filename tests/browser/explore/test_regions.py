"""What is chosen on the drawing itself: a lasso around points, a region of the image."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from core.drawing.sheet import PIXELS
from dashboard.explore.heatmaps.sheet import TINY
from tests.browser.explore.conftest import PATIENCE_MS, finished, open_explore, origin
from tests.server import Server

pytestmark = pytest.mark.browser
SHEET = "/explore?view=Grid&methods=Gradient&images=standard%2F0%2C1%2C2%2C3&source=Standard"


def test_a_lasso_around_points_shows_their_images_and_a_click_their_map(explorer: Server, page: Page) -> None:
    """Drawn around the left half: only what the AI is less sure of is left; the first of them opens its map."""
    open_explore(page, f"{explorer.url}/explore?view=Debugging&source=Standard")
    expect(page.get_by_text(re.compile(r"200 images; \d+ of 200 predictions are correct"))).to_be_visible(
        timeout=PATIENCE_MS
    )
    field = page.locator(".nsewdrag").first
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    corners = [(0.03, 0.03), (0.5, 0.03), (0.5, 0.97), (0.03, 0.97), (0.03, 0.03)]
    at = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=5)
    page.mouse.up()
    expect(page.get_by_text("200 images;")).to_have_count(0, timeout=PATIENCE_MS)
    finished(page)
    sure = [int(text.split()[-1].rstrip("%")) for text in page.locator(".grid figure + span").all_text_contents()]
    assert 0 < len(sure) < 60
    assert max(sure) < 80  # the axis goes from about 50 to 100 %
    first = page.locator(".grid button").first
    says = first.locator("figure + span").inner_text().split()[0]
    first.click()
    expect(page.get_by_test_id("stHeading").nth(1)).to_contain_text(f"The AI predicts {says}", timeout=PATIENCE_MS)


def test_a_region_is_drawn_on_the_image_and_replaced(explorer: Server, page: Page) -> None:
    """Catches a line that the browser does not report, and a region elsewhere than it was drawn."""
    open_explore(page, f"{explorer.url}/explore?method=Gradient&region=A+drawn+region&region.with=Black")
    field = page.locator(".nsewdrag").first
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    corners = [(0.5, 0.02), (0.98, 0.02), (0.98, 0.48), (0.5, 0.48), (0.5, 0.02)]  # the upper right quarter, about
    at = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=5)
    page.mouse.up()
    shown = page.get_by_role("img", name="With the region replaced")
    expect(shown).to_be_visible(timeout=PATIENCE_MS)
    expect(
        page.get_by_text(re.compile(r"^The AI (still|now) predicts .* 2\d% of the image is replaced\.$"))
    ).to_be_visible()
    source = shown.get_attribute("src") or ""
    drawn = page.request.get(source if source.startswith("http") else f"{origin(page)}{source}").body()
    pixels = np.asarray(Image.open(io.BytesIO(drawn)).convert("L"), dtype=float)
    side = len(pixels)
    black = pixels < 3
    assert black[side // 8 : 3 * side // 8, 5 * side // 8 : 7 * side // 8].all()
    assert black[:, : 3 * side // 8].mean() < 0.1
    assert black[5 * side // 8 :].mean() < 0.1


def test_a_phone_shows_the_tools_for_a_region_and_hides_those_of_other_figures(explorer: Server, page: Page) -> None:
    """Catches a caption that names a tool which the phone does not show, and tools over a legend."""
    page.set_viewport_size({"width": 390, "height": 844})
    open_explore(page, f"{explorer.url}/explore?method=Gradient&region=A+drawn+region")
    expect(page.locator("[class*=st-key-region-drawn] .modebar")).to_be_visible(timeout=PATIENCE_MS)
    open_explore(page, f"{explorer.url}/explore?view=Debugging&source=Standard")
    expect(page.locator(".nsewdrag").first).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".modebar")).not_to_be_visible()


def test_the_words_of_a_sheet_are_large_enough_on_every_screen(explorer: Server, page: Page) -> None:
    """Catches a sheet that is shrunk to the screen, or one that widens the page."""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        open_explore(page, explorer.url + SHEET)
        sheet = page.get_by_role("img", name="Heatmaps:").last
        expect(sheet).to_be_visible(timeout=PATIENCE_MS)
        finished(page)
        drawn, natural = sheet.evaluate("image => [image.clientWidth, image.naturalWidth]")
        assert TINY * drawn / (natural / PIXELS) >= 12
        assert page.evaluate("document.documentElement.scrollWidth") <= width
