"""The heatmap browser in a real Chromium: links, grids that fill, work that is stopped, files that are taken away."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from study.network.sources import open_classifier
from tests.browser.contrast import find_faint_error_bars
from tests.browser.explore.conftest import PATIENCE_MS, finished, open_explore, origin
from tests.conftest import ROOT
from tests.server import Server

pytestmark = pytest.mark.browser

DURATION = re.compile(r"about [\d.]+ (s|min|h)\b|less than a second")

UNITS = "Classes+and+units&unit=A+channel&unit.layer=features.3.2&unit.channel=40&unit.starts=3&unit.steps=5"

SLOW = "view=Grid&methods=RISE&methods=Gradient&rise.samples=1200"


@pytest.fixture(scope="module")
def stranger(chromium: Browser, explorer: Server) -> Iterator[BrowserContext]:
    """Another researcher's browser, with a login of its own."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        explorer.let_in(context)
        yield context


def sheet(page: Page) -> bytes:
    """The pixels of the grid as they came from the server."""
    drawn = page.get_by_role("img", name="Heatmaps:")
    expect(drawn).to_have_count(1, timeout=PATIENCE_MS)
    source = drawn.last.get_attribute("src")  # while maps are made, the next drawing can stand below this one
    return page.request.get(source if source.startswith("http") else f"{origin(page)}{source}").body()


def offered_link(page: Page) -> str:
    """What the popover named Link shows once it is open."""
    page.get_by_role("button", name="Link").click()
    code = page.get_by_test_id("stCode")
    expect(code).to_be_visible(timeout=PATIENCE_MS)
    finished(page)
    return code.inner_text().strip()


PHONE, DESKTOP = ViewportSize(width=390, height=844), ViewportSize(width=1280, height=900)

LINKS = {
    "method=LIME&lime.grid=4&lime.samples=64&seed=9&target=boat&style=Outline&percent=30.0&faithfulness=true": True,
    "view=Grid&methods=Gradient&methods=LayerCAM&scale=Own&images=standard%2F3%2C8&source=Standard": True,
    "view=Grid&columns=Classes&methods=Gradient&classes=boat&classes=fish&image=adversarial%2F9": False,
    "view=Compare+models&method=Gradient&opacity=0.5&order=Most+uncertain+first": False,
    "view=Gallery&source=Standard&order=Largest+error+first": False,
    "view=Debugging&place=Feature+space&colour=Label&source=Standard": False,
    "view=Classes+and+units&unit=A+channel&unit.layer=features.5.1&unit.channel=7&unit.how=Pixels&unit.steps=9": True,
}
"""Links of every view, and whether a second researcher opens them too: an image, heatmaps, and work that is random."""


@pytest.mark.parametrize(("query", "is_passed_on"), LINKS.items())
def test_a_copied_link_opens_the_same_view_for_another_researcher(
    explorer: Server, stranger: BrowserContext, page: Page, query: str, is_passed_on: bool
) -> None:
    """Catches a setting that the link loses, a view that depends on who opens it or is wider than the screen.

    It is opened on a phone, and on the same page the window grows.
    """
    page.set_viewport_size(PHONE)
    open_explore(page, f"{explorer.url}/explore?{query}")
    for size in (PHONE, DESKTOP):
        page.set_viewport_size(size)
        page.wait_for_timeout(500)  # figures notice a little later
        finished(page)
        assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth") <= 0, size
    asked, now = parse_qs(query), parse_qs(urlsplit(page.url).query)
    assert {key: now.get(key) for key in asked} == asked
    if not is_passed_on:
        return
    with stranger.new_page() as other:
        open_explore(other, page.url)
        assert parse_qs(urlsplit(other.url).query) == now
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while texts(other) != texts(page) and time.monotonic() < deadline:
            other.wait_for_timeout(200)
        assert texts(other) == texts(page)
        expect(other.get_by_test_id("stImage")).to_have_count(page.get_by_test_id("stImage").count())
        if "view=Grid" in query:
            alike = sheet(page) == sheet(other)
            assert alike


def test_a_former_link_opens_the_same_view(explorer: Server, page: Page) -> None:
    """Catches a renamed view whose links, in papers and messages, open another one."""
    open_explore(page, f"{explorer.url}/explore?view=All+pictures&source=Ordinary&order=Largest+error+first")
    now = {"view": ["Gallery"], "source": ["Standard"], "order": ["Largest error first"]}
    assert parse_qs(urlsplit(page.url).query) == now
    for chosen in ("Gallery", "Standard"):
        expect(page.get_by_role("radio", name=chosen)).to_be_checked()
    open_explore(page, f"{explorer.url}/explore?method=Gradient&picture=adversarial%2F9&target=The+AI%27s+answer")
    assert parse_qs(urlsplit(page.url).query) == {"method": ["Gradient"], "image": ["adversarial/9"]}


def texts(page: Page) -> list[str]:
    """Headings, captions and tables of a page, without the durations: they depend on what else the machine does."""
    places = ("stHeading", "stCaptionContainer", "stTable")
    found = [text for place in places for text in page.get_by_test_id(place).all_text_contents()]
    return [DURATION.sub("...", text) for text in found]


def test_a_phone_shows_every_column_of_a_sheet_at_once(explorer: Server, page: Page) -> None:
    """Catches a sheet of which a phone shows the first network, and nothing says that there is another one.

    The phone's sheet is high: the image above both heatmaps. The desktop's is wide: all three in one row.
    """
    page.set_viewport_size(PHONE)
    open_explore(page, f"{explorer.url}/explore?view=Compare+models&method=Gradient")
    drawn = page.get_by_role("img", name="Heatmaps:")
    expect(drawn).to_have_count(1, timeout=PATIENCE_MS)
    box = drawn.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= PHONE["width"]
    assert box["height"] > box["width"]
    page.set_viewport_size(DESKTOP)
    expect(drawn).to_have_count(1)
    wide = drawn.bounding_box()
    assert wide is not None
    assert wide["height"] < wide["width"]


def test_clicking_is_linking(explorer: Server, stranger: BrowserContext, page: Page) -> None:
    """What was clicked together, parameters too, is in the address and in the link that is offered."""
    open_explore(page, f"{explorer.url}/explore?method=Gradient&methods=Gradient")
    page.get_by_role("radio", name="Grid").click()
    expect(page.get_by_role("img", name="Heatmaps:")).to_be_visible(timeout=PATIENCE_MS)
    finished(page)
    # At once, without a further click in the new view.
    assert parse_qs(urlsplit(offered_link(page)).query) == parse_qs(urlsplit(page.url).query)
    page.keyboard.press("Escape")
    page.locator(".grid button").nth(4).click()
    expect(page.locator(".grid button[aria-pressed=true]")).to_have_count(4, timeout=PATIENCE_MS)
    finished(page)
    page.get_by_role("radio", name="Own").click()
    expect(page).to_have_url(re.compile("scale=Own"), timeout=PATIENCE_MS)
    finished(page)
    link = offered_link(page)
    assert parse_qs(urlsplit(link).query) == parse_qs(urlsplit(page.url).query)
    with stranger.new_page() as other:
        open_explore(other, link)
        expect(other.locator(".grid button[aria-pressed=true]")).to_have_count(4)
        expect(other.get_by_role("radio", name="Own")).to_be_checked()
        alike = sheet(other) == sheet(page)  # not in the assertion: pytest would compare the bytes for minutes
        assert alike


def test_a_slow_grid_fills_while_the_page_is_used_and_is_found_again(explorer: Server, page: Page) -> None:
    page.goto(f"{explorer.url}/explore?{SLOW}")
    stop = page.get_by_role("button", name="Stop all")
    begin = page.get_by_role("button", name=re.compile("^Compute"))
    expect(stop.or_(begin).first).to_be_visible(timeout=PATIENCE_MS)
    if begin.is_visible():  # a slow machine asks before it takes half a minute
        begin.click()
    expect(stop).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("progressbar").first).to_be_visible()
    first = sheet(page)
    page.get_by_role("radio", name="Outline").click()  # the page answers while maps are made
    page.get_by_role("button", name="Drawing").click()
    expect(page.get_by_text("Outlined area, %")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("link", name="Home").click()
    expect(page.locator("h1")).to_have_text("Do explanations help people predict an AI?", timeout=PATIENCE_MS)
    open_explore(page, f"{explorer.url}/explore?{SLOW}")
    assert sheet(page) != first
    page.get_by_text("Numbers: certificates and measures").click()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()


def test_stopped_work_ends_and_waits_for_a_click(explorer: Server, page: Page) -> None:
    page.goto(f"{explorer.url}/explore?view=Grid&methods=RISE&rise.samples=5999")
    stop = page.get_by_role("button", name="Stop all")
    begin = page.get_by_role("button", name=re.compile(r"^Compute the \d missing"))  # a fast machine has made some
    expect(stop.or_(begin)).to_be_visible(timeout=PATIENCE_MS)
    if begin.is_visible():  # to a slow machine the work seems long: it asks before it begins
        begin.click()
    stop.click(timeout=PATIENCE_MS)
    expect(begin).to_be_visible(timeout=PATIENCE_MS)
    finished(page)
    begin.click()
    expect(page.get_by_role("button", name="Stop all")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Stop all").click()
    expect(begin).to_be_visible(timeout=PATIENCE_MS)


def taken(page: Page, label: str) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("button", name=label).click()
    return Path(download.value.path()).read_bytes()


def test_what_is_taken_away_is_what_is_seen(explorer: Server, chromium: Browser, page: Page, tmp_path: Path) -> None:
    open_explore(page, f"{explorer.url}/explore?view=Grid&methods=Gradient&methods=RISE&rise.samples=64")
    page.get_by_role("button", name="Download").click()
    picture, seen = (Image.open(io.BytesIO(content)) for content in (taken(page, "Image (PNG)"), sheet(page)))
    smaller = np.asarray(picture.resize(seen.size), dtype=float)  # the page gets it as wide as a screen
    assert np.abs(smaller - np.asarray(seen.convert("RGB"), dtype=float)).mean() < 2
    drawing = taken(page, "Image (SVG)")
    assert len(ElementTree.fromstring(drawing).findall("{http://www.w3.org/2000/svg}image")) == 3 + 2 * 4
    (tmp_path / "maps.svg").write_bytes(drawing)
    with chromium.new_context() as viewer:
        shown = viewer.new_page()
        shown.goto((tmp_path / "maps.svg").as_uri())
        expect(shown.locator("text").first).to_be_visible()
        widths = shown.evaluate("[...document.querySelectorAll('text')].map(t => t.getBBox().x + t.getBBox().width)")
        assert max(widths) <= float(ElementTree.fromstring(drawing).get("width") or 0)
    (tmp_path / "maps.npz").write_bytes(taken(page, "Heatmaps and certificates (NPZ)"))
    (tmp_path / "again.py").write_bytes(taken(page, "Python script to reproduce them"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "again.py"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    with np.load(tmp_path / "maps.npz") as maps, np.load(tmp_path / "again.npz") as again:
        assert len(again.files) == 6
        assert all(np.array_equal(maps[name], again[name]) for name in again.files)


def test_a_units_images_are_made_shown_and_taken_away(explorer: Server, page: Page) -> None:
    """What is downloaded reaches the activations that stand under the pictures."""
    open_explore(page, f"{explorer.url}/explore?view={UNITS}")
    expect(page.get_by_test_id("stHeading").nth(1)).to_have_text("features.3.2, channel 40", timeout=PATIENCE_MS)
    finished(page)
    made = page.get_by_role("img", name="Synthesised for the unit")
    expect(made).to_have_count(3)
    expect(page.get_by_role("img", name="Top image of the unit")).to_have_count(9)
    page.get_by_role("button", name="Download").click()
    with np.load(io.BytesIO(taken(page, "Inputs (NPZ)"))) as arrays:
        said = [f"Synthesised for the unit: start {k}: {value:.4g}" for k, value in enumerate(arrays["activations"])]
        assert [made.nth(k).get_attribute("alt") for k in range(3)] == said
        inputs = torch.from_numpy(arrays["inputs"])
    with open_classifier("scenes", ROOT).exclusive() as module, torch.no_grad():
        answers = module.features[:4](inputs)[:, 40].mean((1, 2))
    np.testing.assert_allclose(answers.numpy(), [float(text.rsplit(" ", 1)[1]) for text in said], rtol=1e-3)
    sheets = [Image.open(io.BytesIO(taken(page, f"{which} images (PNG)"))) for which in ("Synthesised", "Top")]
    assert [sheet.width for sheet in sheets] == [16 + 3 * (224 + 16), 16 + 3 * (3 * 150 + 2 * 6 + 16)]


def test_a_image_of_the_whole_set_opens_its_map(explorer: Server, page: Page) -> None:
    open_explore(page, f"{explorer.url}/explore?view=Gallery&method=Gradient")
    cell = page.locator(".grid button").nth(5)
    says, truth = (text.split("\n")[0] for text in cell.locator("span").all_inner_texts())
    cell.click()
    heading = page.get_by_test_id("stHeading").nth(1)
    expect(heading).to_contain_text(f"The AI predicts {says.rsplit(' ', 1)[0]}", timeout=PATIENCE_MS)
    expect(heading).to_contain_text(truth)
    expect(page.get_by_role("radio", name="Single image")).to_be_checked()


def test_labels_of_the_row_above_a_grid_are_at_one_height(explorer: Server, page: Page) -> None:
    """Catches labels of choices that are lower than that of the selectbox next to them."""
    open_explore(page, f"{explorer.url}/explore?view=Grid&methods=Gradient")
    row = page.locator(".st-key-explore_look [data-testid=stWidgetLabel]")
    boxes = [row.filter(has_text=label).bounding_box() for label in ("Explain", "Heatmap style", "Scale")]
    assert len({box and round(box["y"]) for box in boxes}) == 1


def test_error_bars_are_seen_on_their_bars_and_on_the_page(explorer: Server, page: Page) -> None:
    """Catches the grey of the axes, whose contrast with a blue or an orange bar is 1.1."""
    open_explore(page, f"{explorer.url}/explore?view=Layers&question=Importance&layers=features.0&layers.images=20")
    expect(page.locator(".barlayer .errorbar").first).to_be_attached(timeout=PATIENCE_MS)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(500)
        count, faint = find_faint_error_bars(page)
        assert count == 20
        assert faint == []
