"""The researcher's pages in a real Chromium, on a real server."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from study.service import Service
from study.simulate import simulate
from tests.browser.contrast import find_faint_words
from tests.browser.test_accessibility import grave
from tests.conftest import PATIENCE_MS, ROOT, write_bundle
from tests.server import Server, serving
from tests.study.analysis.simulated import study

pytestmark = pytest.mark.browser

PATHS = {
    "": "Do explanations help people predict an AI?",
    "explore?method=Gradient": "Explore",
    "studies": "Studies",
    "studies?study=aquarium": "aquarium open",
    "studies?study=aquarium&section=Trials": "aquarium open",
    "studies?study=aquarium&section=Simulate": "aquarium open",
    "studies?study=aquarium&section=Export": "aquarium open",
    "studies?study=aquarium&section=Members": "aquarium open",
    "accounts": "Accounts",
    "monitor": "Monitor",
    "power": "Power",
    "results": "Results",
    "results?section=Models": "Results",
    "results?section=Checks": "Results",
    "results?section=Report": "Results",
}
SETTLING_MS = 500
"""How long figures take to notice that the window has another width."""


@pytest.fixture(scope="module")
def researcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a workspace with one study, open, and simulated people in it."""
    home = tmp_path_factory.mktemp("pages")
    with Service(home) as service:
        folder = write_bundle(home / "bundles" / "aquarium-00", name="aquarium", trials=18, practice=2)
        simulate(service, service.researcher.open_study(folder, per_condition=5), 8, {"belief_projector": 1.0}, 0)
        for address in ("ada.of.a.university.with.a.long.name@example.org", "grace@example.org"):
            service.researcher.set_member("aquarium", address, "owner")
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def browser(chromium: Browser, researcher: Server) -> Iterator[BrowserContext]:
    """One researcher's browser for all tests: each test has its own tab, and the scripts are fetched once."""
    with chromium.new_context(viewport={"width": 1280, "height": 800}) as context:
        researcher.let_in(context)
        yield context


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    with browser.new_page() as page:
        yield page


def finished(page: Page) -> None:
    """Wait until the script ran to its end."""
    expect(page.locator("h1")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("[data-testid=stApp]")).to_have_attribute(
        "data-test-script-state", "notRunning", timeout=PATIENCE_MS
    )


@pytest.mark.parametrize("path", PATHS)
def test_a_page_opens_whole_within_the_screen_and_asks_nobody_else(researcher: Server, page: Page, path: str) -> None:
    """Opened on a phone, and on the same page when the window grows; axe looks there, and at a dark phone."""
    hosts: set[str | None] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page.on("websocket", lambda socket: hosts.add(urlsplit(socket.url).hostname))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{researcher.url}/{path}")
    finished(page)
    expect(page.locator("h1")).to_have_text(PATHS[path])
    page.wait_for_load_state("networkidle")
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(SETTLING_MS)
        over = page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth")
        assert over <= 0, width
    finished(page)
    expect(page.locator("[data-testid=stException], [data-testid=stAlertContentError]")).to_have_count(0)
    assert grave(page) == []
    assert find_faint_words(page) == []
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", "rgb(20, 22, 27)")
    finished(page)
    assert grave(page) == []
    assert find_faint_words(page) == []
    assert hosts - {None} == {"127.0.0.1"}
    assert page.evaluate("[...document.fonts].some(font => font.family.includes('Inter') && font.status === 'loaded')")


def test_on_a_phone_the_title_follows_the_header_and_a_link_can_be_copied(
    chromium: Browser, researcher: Server
) -> None:
    """Catches an empty strip above the title, and a button to copy the link that only a mouse brings forward."""
    with chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as context:
        researcher.let_in(context)
        page = context.new_page()
        page.goto(f"{researcher.url}/studies?study=aquarium")
        finished(page)
        title, header = (page.locator(place).bounding_box() for place in ("h1", ".stAppHeader"))
        assert title is not None
        assert header is not None
        assert title["y"] - header["height"] < 1.5 * 16  # less than two gaps between elements
        expect(page.get_by_role("button", name="Copy to clipboard").first).to_be_visible()


def test_no_usage_statistics() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["browser"]["gatherUsageStats"] is False


def test_a_thumbnail_is_picked_by_click_and_by_key(researcher: Server, page: Page) -> None:
    page.goto(f"{researcher.url}/explore?method=Gradient")
    finished(page)
    heading = page.get_by_test_id("stHeading").nth(1)
    grid = page.locator(".grid button")
    expect(grid).to_have_count(20)
    expect(grid.nth(0)).to_have_attribute("aria-pressed", "true")
    for number, press in ((7, grid.nth(7).click), (3, lambda: grid.nth(3).press("Enter"))):
        says = (grid.nth(number).get_attribute("title") or "").removeprefix("The AI predicts ").split(":")[0]
        press()
        expect(grid.nth(number)).to_have_attribute("aria-pressed", "true", timeout=PATIENCE_MS)
        expect(heading).to_contain_text(f"The AI predicts {says}", timeout=PATIENCE_MS)
        expect(page.locator(".grid button[aria-pressed=true]")).to_have_count(1)
        finished(page)


def test_a_study_leads_to_its_preview(researcher: Server, page: Page) -> None:
    """Catches a row of the list that does not open its study in this tab, no way back, and a preview that counts."""
    page.goto(f"{researcher.url}/studies?study=demo")
    finished(page)
    page.get_by_role("link", name="All studies").click()
    page.get_by_role("link", name="aquarium", exact=True).click()
    expect(page.get_by_role("heading", name="aquarium")).to_be_visible()
    finished(page)
    link = page.get_by_role("link", name="Preview: both explanations").get_attribute("href")
    assert link == f"{researcher.url}/run/aquarium?preview=both"
    page.goto(link)
    expect(page.get_by_text("Preview: answers do not count")).to_be_visible()


def test_the_image_file_of_a_stranger(researcher: Server, page: Page, tmp_path: Path) -> None:
    (tmp_path / "notes.png").write_bytes(b"not a picture")
    page.goto(f"{researcher.url}/explore?method=Gradient")
    finished(page)
    page.get_by_text("Upload", exact=True).click()
    page.locator("input[type=file]").set_input_files(tmp_path / "notes.png")
    alert = page.get_by_test_id("stAlertContentError")
    expect(alert).to_have_text("notes.png cannot be read as an image. Choose a PNG, JPEG or WebP file.")


@pytest.mark.parametrize(("width", "kept"), [(390, False), (1280, True)])
def test_the_buttons_of_a_figure_cover_no_text_on_a_phone(
    researcher: Server, chromium: Browser, width: int, kept: bool
) -> None:
    """Catches Plotly's buttons over the legend and over "Simulated participants: not evidence"."""
    with chromium.new_context(viewport={"width": width, "height": 844}, has_touch=not kept) as context:
        researcher.let_in(context)
        page = context.new_page()
        page.goto(f"{researcher.url}/results")
        page.locator(".js-plotly-plot").first.hover(timeout=PATIENCE_MS)
        expect(page.locator(".modebar").first).to_be_visible(visible=kept)


def test_contrasts_fit_a_laptop(researcher: Server, page: Page) -> None:
    """Catches a heading that is so long that the percentage points are off the screen."""
    page.goto(f"{researcher.url}/results?section=Contrasts")
    expect(page.get_by_text("effects.csv")).to_be_visible(timeout=PATIENCE_MS)
    finished(page)
    table = page.locator(".dvn-scroller").first
    expect(table).to_be_visible()
    assert table.evaluate("table => [table.scrollWidth > 1000, table.scrollWidth - table.clientWidth]") == [True, 0]


def test_figures_of_a_short_table_are_at_the_right_and_its_words_at_the_left(researcher: Server, page: Page) -> None:
    """Catches percentages that begin below each other, so that 9% is read in the column of 90%."""
    page.goto(f"{researcher.url}/power")
    finished(page)
    table = page.get_by_test_id("stTable").first
    expect(table).to_be_visible(timeout=PATIENCE_MS)
    sides = "row => [...row.cells].map(cell => getComputedStyle(cell).textAlign)"
    for row in ("thead tr", "tbody tr"):
        assert table.locator(row).first.evaluate(sides) == ["left", *4 * ["right"]]
    assert "tabular-nums" in table.locator("table").evaluate("table => getComputedStyle(table).fontVariantNumeric")


def test_a_link_is_whole_and_a_chosen_section_is_a_tab(researcher: Server, page: Page) -> None:
    """Catches a label cut by its arrow, a section that looks like a button, and a second level that looks like it."""
    page.goto(f"{researcher.url}/explore?view=Debugging")
    finished(page)
    label = page.get_by_role("link", name="Add a network").locator("p")
    expect(label).to_be_visible(timeout=PATIENCE_MS)
    assert label.evaluate("label => [label, label.parentElement].every(one => one.scrollWidth <= one.clientWidth + 1)")
    borders = "chosen => [getComputedStyle(chosen).borderBottomWidth, getComputedStyle(chosen).borderLeftWidth]"
    assert page.get_by_role("radio", name="Debugging").evaluate(borders) == ["2px", "0px"]
    assert page.get_by_role("radio", name="Points").evaluate(borders) == ["0px", "0px"]


def test_the_door_in_a_browser(tmp_path: Path, chromium: Browser) -> None:
    """From a page to the door, in with the password (also through the websocket), and out by the page's own link."""
    with Service(tmp_path) as service:
        service.access.set_password("correct horse battery")
    with serving(tmp_path) as server:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{server.url}/studies")
        expect(page).to_have_url(f"{server.url}/login")
        page.keyboard.type("not the password")  # the field has the focus
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("The password is wrong.")
        page.get_by_label("Password of the researcher's pages").fill("correct horse battery")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Log out").click(timeout=PATIENCE_MS)
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{server.url}/")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        context.close()


def test_a_wrong_multiplier_does_not_stay_in_the_link(researcher: Server, page: Page) -> None:
    """Whoever copied the link after a slip of the keyboard sent the error message along."""
    page.goto(f"{researcher.url}/power?sizes=4,6&studies=10")
    finished(page)
    field = page.get_by_role("textbox", name="Effect-size multipliers")
    for text in ("0.5,1", "nan"):
        field.fill(text)
        field.press("Enter")
        if text == "nan":
            expect(page.get_by_text("give numbers of 0 or more")).to_be_visible(timeout=PATIENCE_MS)
        else:
            page.wait_for_url("**effects=0.5*", timeout=PATIENCE_MS)
        finished(page)
    assert parse_qs(urlsplit(page.url).query)["effects"] == ["0.5,1"]


def test_the_name_of_the_logo_can_be_read_when_the_colour_scheme_changes(researcher: Server, page: Page) -> None:
    """Catches dark ink on the dark ground of a page that was opened in the light."""
    page.goto(f"{researcher.url}/monitor")
    finished(page)
    ink = "getComputedStyle(document.querySelector(':has(> .stLogo)'), '::after').color.match(/\\d+/g).map(Number)"
    assert max(page.evaluate(ink)) < 60
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"Math.min(...{ink}) > 200")


def test_a_power_curve_of_spawned_processes(researcher: Server, page: Page) -> None:
    """The workers are processes beside the server; the page's link keeps what was asked."""
    page.goto(f"{researcher.url}/power?sizes=4,6&studies=10&effects=1")
    finished(page)
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_test_id("stPlotlyChart").first).to_be_visible(timeout=6 * PATIENCE_MS)  # 20 simulated studies
    expect(page.get_by_text("explanation vs null").first).to_be_visible()


def test_a_file_of_answers_is_analysed_in_the_browser(researcher: Server, page: Page, tmp_path: Path) -> None:
    """A column under another name is mapped by hand; a file that is none is a sentence.

    The file has 23 MB: Streamlit's own limit for all pages must let through what this page takes.
    """
    frame = study(24, 8, 6, seed=5).rename(columns={"correct": "as_the_ai"}).assign(notes="x" * 20_000)
    frame.to_csv(tmp_path / "mine.csv", index=False)
    (tmp_path / "broken.csv").write_bytes(b"\xff\xfe\x00")
    page.goto(f"{researcher.url}/results?results_source=A+CSV+file+of+mine")
    finished(page)
    page.locator("input[type=file]").set_input_files(tmp_path / "broken.csv")
    expect(page.get_by_test_id("stAlertContentError")).to_contain_text("broken.csv is not a CSV file in UTF-8")
    page.locator("input[type=file]").set_input_files(tmp_path / "mine.csv")
    expect(page.get_by_test_id("stAlertContentWarning")).to_contain_text("No column for correct yet")
    page.get_by_label("correct", exact=True).click()
    page.get_by_role("option", name="as_the_ai").click()
    expect(page.get_by_test_id("stPlotlyChart").first).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stAlertContentError")).to_have_count(0)


WALK = {
    "explore?method=Gradient": (12, "What if a region were replaced?"),
    "library": (7, "Name of the set"),
    "design": (8, "Create study"),
    "studies?study=aquarium": (8, "Access"),
    "monitor": (8, "Replay a session"),
    "power": (8, "Simulate"),
    "results": (6, "Figure 1"),
}
"""Pages, how many of their controls the Tab key visits after those of the navigation, and what is drawn last."""
FOCUSED = """() => {
  const focused = document.activeElement;
  const shown = focused.offsetWidth > 1 ? focused : focused.closest("label") ?? focused;
  const { top, bottom, width } = shown.getBoundingClientRect();
  const said = focused.ariaLabel || focused.innerText || focused.labels?.[0]?.innerText || focused.tagName;
  return [said.trim().slice(0, 60), width > 0 && bottom > 0 && top < innerHeight, !!focused.closest("main, .stMain")];
}"""


def test_the_keyboard_walks_every_page_on_a_dark_phone(chromium: Browser, researcher: Server) -> None:
    """Catches a control that traps the focus or takes it off the screen, and colours without contrast in the dark."""
    phone = {"width": 390, "height": 844}
    with chromium.new_context(viewport=phone, color_scheme="dark", reduced_motion="reduce") as context:
        researcher.let_in(context)
        page = context.new_page()
        for path, (count, last) in WALK.items():
            page.goto(f"{researcher.url}/{path}")
            finished(page)
            expect(page.get_by_text(last).first).to_be_visible(timeout=PATIENCE_MS)
            finished(page)
            visited, lost = walk(page, count)
            if lost:  # a part that is drawn late takes the focus once; a trap, or what is off the screen, each time
                finished(page)
                visited, lost = walk(page, count)
            assert not lost, (path, lost)
            assert len(visited) >= count - 1, (path, visited)
            assert len(set(visited)) >= count // 2, (path, visited)
            assert grave(page) == [], path


def walk(page: Page, count: int) -> tuple[list[str], list[str]]:
    """Press Tab, and return what had the focus in the page's main part, and what had it and was not to be seen."""
    page.get_by_test_id("stMain").locator("h1").click()  # the walk begins after the navigation
    visited: list[str] = []
    lost: list[str] = []
    for _ in range(count):
        page.keyboard.press("Tab")
        said, is_seen, is_inside = page.evaluate(FOCUSED)
        visited += [said] if is_inside else []
        lost += [] if is_seen else [said]
    return visited, lost
