"""Finding images in a real Chromium, by mouse on a desktop and by keys on a dark phone; clicks are counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource
from tests.browser.explore.conftest import PATIENCE_MS, PENDING, finished, open_explore
from tests.browser.explore.test_explore import sheet
from tests.browser.hand import VISITORS, Hand
from tests.browser.test_accessibility import grave
from tests.conftest import ROOT
from tests.server import Server, serving

pytestmark = pytest.mark.browser
on_desktop = pytest.mark.parametrize("visitor", VISITORS[:1], ids=["desktop"], indirect=True)
on_phone = pytest.mark.parametrize("visitor", VISITORS[1:], ids=["phone"], indirect=True)
WHOLE = re.compile(rf"^Heatmaps:(?!.*({PENDING.pattern}|Not computed yet))")


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("find")) as running:
        yield running


@pytest.fixture(params=VISITORS, ids=[visitor.name for visitor in VISITORS], scope="module")
def visitor(chromium: Browser, explorer: Server, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """One researcher's browser of a size for all tests: the scripts are fetched once."""
    width, height = request.param.size
    with chromium.new_context(
        viewport={"width": width, "height": height},
        color_scheme=request.param.scheme,
        reduced_motion=request.param.motion,
        accept_downloads=True,
    ) as context:
        explorer.let_in(context)
        yield context


@pytest.fixture
def tab(visitor: BrowserContext) -> Iterator[Page]:
    with visitor.new_page() as page:
        yield page


@pytest.fixture
def page(tab: Page, explorer: Server) -> Page:
    """Explore as it begins."""
    return open_explore(tab, f"{explorer.url}/explore")


def stop_what_runs(page: Page) -> None:
    """Stop the work of the page; a fast machine may have ended it before the click arrives, a busy one lose a click."""
    stop = page.get_by_role("button", name="Stop all")
    while stop.count():
        with suppress(PlaywrightTimeout):
            stop.first.click(timeout=5_000)  # for a moment there are two: one is what the page had before
    expect(stop).to_have_count(0, timeout=PATIENCE_MS)


def test_all_methods_for_one_wrong_image_are_at_most_three_clicks_away(page: Page) -> None:
    """Catches a way that became longer: Explore begins with a wrong image; its grid asks before minutes of work."""
    hand = make_hand(page)
    expect(page.get_by_text(re.compile("^wrong, true class: ")).first).to_be_visible(timeout=PATIENCE_MS)
    hand.click(page.get_by_role("button", name="All methods for this image"))
    begin = page.get_by_role("button", name=re.compile(r"^Compute the \d+ missing \(about "))
    stop = page.get_by_role("button", name="Stop all")
    whole = page.get_by_role("img", name=WHOLE)
    expect(begin.or_(stop).or_(whole).first).to_be_visible(timeout=PATIENCE_MS)
    if begin.is_visible():  # what another visitor of this server has computed is there already
        hand.click(begin)
    expect(stop.or_(whole).first).to_be_visible(timeout=PATIENCE_MS)
    assert hand.clicks <= 3
    stop_what_runs(page)
    expect(page.get_by_role("img", name="Heatmaps:").last).to_be_visible(timeout=PATIENCE_MS)
    assert sheet(page)


def test_the_images_on_which_methods_disagree_most_are_two_clicks_away(page: Page) -> None:
    """Catches a way that became longer, and an order that is not that of the numbers it shows."""
    hand = make_hand(page)
    hand.click(page.get_by_role("radio", name="Gallery", exact=True))
    hand.click(page.get_by_role("button", name=re.compile("^Where methods disagree")))
    notes = page.locator(".grid span").filter(has_text="agreement")
    expect(notes.first).to_be_visible(timeout=PATIENCE_MS)
    assert hand.clicks == 2
    finished(page)
    values = [float(text.split()[-1]) for text in notes.all_text_contents()]
    assert len(values) == 60
    assert values == sorted(values)
    assert values[0] < values[-1]
    hand.click(page.locator("summary").filter(has_text="Confusion matrix"))
    expect(page.locator(".scroll table")).to_be_visible(timeout=PATIENCE_MS)


def test_a_cell_of_the_confusion_matrix_shows_exactly_its_images(tab: Page, explorer: Server) -> None:
    """Catches a click that filters to other images than the cell counts, a link that does not hold them, a cell that no
    key reaches, and a next image that does not fit."""
    page = open_explore(tab, f"{explorer.url}/explore?view=Gallery&method=Gradient")
    hand = make_hand(page)
    hand.click(page.locator("summary").filter(has_text="Confusion matrix"))
    cell = page.get_by_role("button", name=re.compile(r"^True class fish, predicted bird: \d+$"))
    count = int(cell.inner_text())
    hand.click(cell)
    expect(page.get_by_text(f"{count} of 200 images fit the filters.")).to_be_visible(timeout=PATIENCE_MS)
    finished(page)
    shown = page.locator(".grid button")
    expect(shown).to_have_count(count)
    for text in shown.all_inner_texts():
        assert re.match(r"bird \d+%\s+true class: fish$", text.strip())
    expect(page).to_have_url(re.compile("filter.truth=fish&filter.predicted=bird"))
    hand.click(shown.first)
    place = page.get_by_role("status").filter(has_text=re.compile("^Image"))
    expect(place).to_have_text(f"Image 1 of {count}", timeout=PATIENCE_MS)
    finished(page)
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text(f"Image 2 of {count}", timeout=PATIENCE_MS)
    finished(page)
    heading = page.get_by_test_id("stHeading").nth(1)
    expect(heading).to_contain_text("The AI predicts bird")
    expect(heading).to_contain_text("true class: fish")
    hand.click(page.get_by_role("radio", name="Gallery", exact=True))
    finished(page)
    hand.click(page.get_by_role("button", name="Clear filters"))
    expect(page.get_by_text(re.compile("^200 images; "))).to_be_visible(timeout=PATIENCE_MS)


@on_phone
def test_a_view_is_saved_and_opened_again(tab: Page, explorer: Server) -> None:
    """Catches a saved view that opens as another one, in another tab, or that the keyboard cannot save or remove."""
    page = open_explore(tab, f"{explorer.url}/explore?method=Gradient&style=Outline&image=adversarial%2F9")
    hand, tabs = make_hand(page), len(page.context.pages)
    name = f"Wings, {hand.visitor.name}"
    views, link = page.get_by_role("button", name="Saved views"), page.get_by_role("link", name=name)
    hand.click(views)
    hand.write(page.get_by_role("textbox", name="Name of this view"), name)
    hand.click(page.get_by_role("button", name="Save this view"))
    expect(link).to_be_visible()
    finished(page)
    hand.see("a saved view")
    saved = parse_qs(urlsplit(page.url).query)
    open_explore(page, f"{explorer.url}/explore?view=Gallery")
    hand.click(views)
    hand.click(link)
    expect(page.get_by_role("radio", name="Outline")).to_be_checked()
    finished(page)
    assert parse_qs(urlsplit(page.url).query) == saved
    assert len(page.context.pages) == tabs
    hand.click(views)
    hand.click(page.get_by_role("button", name="Remove"))
    expect(link).to_have_count(0)


@on_phone
def test_a_region_is_replaced_and_the_new_prediction_shown(tab: Page, explorer: Server) -> None:
    """Catches a region that only a mouse can mark, and a share that is not that of the box."""
    page = open_explore(tab, f"{explorer.url}/explore?method=Gradient")
    hand = make_hand(page)
    hand.choose(page.get_by_role("combobox", name="Replace", exact=True), "A box")
    hand.choose(page.get_by_role("combobox", name="With", exact=True), "Black")
    said = page.get_by_text(re.compile(r"^The AI (still|now) predicts .* 25% of the image is replaced\.$"))
    expect(said).to_be_visible()
    hand.reach(page.get_by_role("slider", name="Rows").last)
    page.keyboard.press("End")
    said = page.get_by_text(re.compile(r"^The AI (still|now) predicts .* 3[78]% of the image is replaced\.$"))
    expect(said).to_be_visible()
    finished(page)
    hand.see("a replaced region")


@on_phone
def test_two_networks_are_compared_where_they_disagree(tab: Page, explorer: Server) -> None:
    """Catches an order that begins with an image on which both networks agree, and a difference that is not drawn."""
    page = open_explore(tab, f"{explorer.url}/explore?method=Gradient&view=Compare+models")
    hand = make_hand(page)
    open_controls(page)
    hand.choose(page.get_by_role("combobox", name="Compared with"), "scenes:coarse")
    place = page.get_by_role("status").filter(has_text=re.compile("^Image"))
    expect(page.get_by_text("predictions of scenes and scenes:coarse")).to_be_visible()
    finished(page)
    hand.click(page.locator(".grid button").first)
    close_controls(page)
    expect(place).to_have_text("Image 1 of 200")
    name = re.compile(r"^Gradient: scenes \(\w+\) minus scenes:coarse \(\w+\)$")  # each of the class that it predicts
    expect(page.get_by_role("img", name=name)).to_be_visible(timeout=PATIENCE_MS)
    finished(page)
    hand.see("two networks")
    shown = int(parse_qs(urlsplit(page.url).query)["image"][0].removeprefix("adversarial/"))
    assert len(predict_class("scenes", shown) | predict_class("scenes:coarse", shown)) == 2


def predict_class(model: str, index: int) -> set[int]:
    """Compute the class that a network predicts for one of the adversarial scenes."""
    classifier = open_classifier(model, ROOT)
    settings = {"set": "scenes", "split": "adversarial", "size": 200}
    image = open_set(ImageSource.model_validate(settings), ROOT).open(index)
    return {int(classifier.probabilities(classifier.preprocess(image)[None]).argmax())}


@on_desktop
def test_arrow_keys_go_to_the_next_image_but_not_while_typing(page: Page) -> None:
    """Catches an arrow key that leaves the image while a text or a number is edited."""
    place = page.get_by_role("status").filter(has_text=re.compile("^Image"))
    expect(place).to_have_text("Image 1 of 200")
    first = page.url
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text("Image 2 of 200", timeout=PATIENCE_MS)
    finished(page)
    assert page.url != first
    page.get_by_role("button", name="Next →").click()
    expect(place).to_have_text("Image 3 of 200", timeout=PATIENCE_MS)
    page.keyboard.press("ArrowLeft")
    expect(place).to_have_text("Image 2 of 200", timeout=PATIENCE_MS)
    finished(page)
    page.get_by_role("spinbutton", name="Random seed").click()
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(1000)
    finished(page)
    expect(place).to_have_text("Image 2 of 200")


@on_desktop
def test_cells_are_compared_by_the_keyboard(tab: Page, explorer: Server) -> None:
    """Catches a cell that zooms or moves alone, keys without effect, and names that a screen reader lacks."""
    page = open_explore(tab, f"{explorer.url}/explore?view=Grid&closer=true&methods=Gradient&methods=Grad-CAM")
    cells = page.get_by_role("group", name=re.compile("^(Gradient|Grad-CAM), "))
    expect(cells).to_have_count(6)
    heatmaps = page.locator(".layer.over img")

    def list_places(attribute: str) -> set[str]:
        """Of every heatmap, to a tenth of a pixel: the columns of a wide window differ by hundredths."""
        styles = heatmaps.evaluate_all("(all, name) => all.map((one) => getComputedStyle(one)[name])", attribute)
        return {re.sub(r"-?[\d.]+", lambda number: f"{float(number[0]):.1f}", style) for style in styles}

    cells.first.press("ArrowRight")
    expect(page.get_by_role("slider", name="Heatmap up to")).to_have_value("55")
    before = list_places("transform")
    cells.nth(1).press("+")
    cells.nth(1).press("ArrowDown")
    assert len(list_places("transform")) == len(before) == 1
    assert list_places("transform") != before
    page.get_by_role("button", name="Whole image").press("Enter")
    assert list_places("transform") == before
    assert grave(page) == []


def test_selected_images_are_downloaded(tab: Page, explorer: Server) -> None:
    """Catches a click that opens an image while images are being selected, and a download of others."""
    page = open_explore(tab, f"{explorer.url}/explore?view=Gallery&select=true")
    hand = make_hand(page)
    for k in (0, 2):
        hand.click(page.locator(".grid button").nth(k))
        expect(page.locator(".grid button[aria-pressed=true]")).to_have_count(1 + k // 2, timeout=PATIENCE_MS)
    expect(page.get_by_text("2 selected", exact=True)).to_be_visible()
    hand.click(page.get_by_role("button", name="Download"))
    with page.expect_download() as download:
        hand.click(page.get_by_role("button", name="Images and predictions of 2 (ZIP)"))
    assert Path(download.value.path()).read_bytes()[:2] == b"PK"
    expect(page.get_by_role("button", name="Grid", exact=True).last).to_be_visible()


def make_hand(page: Page) -> Hand:
    """Return the `Hand` for this page: of the visitor whose screen has its size."""
    return Hand(page, next(visitor for visitor in VISITORS if visitor.size[0] == page.evaluate("innerWidth")))


def open_controls(page: Page) -> None:
    """Open the drawer of a phone by the keyboard; a wide screen has none."""
    handle, controls = page.locator(".drawer summary"), page.locator(".st-key-explore_controls")
    if page.viewport_size is not None and page.viewport_size["width"] > 640:
        expect(handle).to_be_hidden()
        return
    expect(controls).to_be_hidden()
    handle.press("Enter")
    expect(controls).to_be_visible()


def close_controls(page: Page) -> None:
    """Close the drawer of a phone again."""
    if page.locator(".drawer[open]").count() and page.locator(".drawer summary").is_visible():
        page.locator(".drawer summary").press("Enter")


@pytest.mark.parametrize("view", ["Single image", "Gallery"])
def test_a_view_shows_its_image_first_and_is_accessible(tab: Page, explorer: Server, view: str) -> None:
    """Catches controls before the image on a phone, a drawer or a thumbnail's heatmap that needs a mouse, and what axe
    calls grave."""
    page = open_explore(tab, f"{explorer.url}/explore?view={view.replace(' ', '+')}")
    page.evaluate("scrollTo(0, 0)")
    image = page.get_by_test_id("stImage") if view == "Single image" else page.locator(".grid button")
    expect(image.first).to_be_in_viewport()
    if view == "Gallery":
        image.nth(1).focus()
        expect(page.locator(".grid .heat")).to_be_visible(timeout=PATIENCE_MS)
        image.nth(1).blur()
        expect(page.locator(".grid .heat")).to_have_count(0)
    open_controls(page)
    assert grave(page) == []
