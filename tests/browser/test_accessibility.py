"""Every participant page for everybody: axe's rules, the keyboard alone, a zoom of 200 %, reduced motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from study.service import Service
from tests.browser.participation import WHOLE, tab_to, wait_for_trial
from tests.browser.stillness import find_lasting_faults
from tests.conftest import write_bundle
from tests.server import Server, serving

pytestmark = pytest.mark.browser
STUDY: dict[str, Any] = {
    **WHOLE,
    "pacing": {"break_every": 2, "catch": 1, "confidence": True, "slow_seconds": 5},
    "contact": {"researcher": "Ada Example", "email": "ada@example.org", "board": "A board", "approval": "7/21"},
}
GRAVE = ("serious", "critical")
Visit = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("accessible")
    with Service(home) as service:
        options: dict[str, Any] = {"trials": 3, "practice": 1, "side": 48, "conditions": ("both",)}
        service.researcher.open_study(
            write_bundle(home / "whole", name="whole", config=STUDY, **options), per_condition=20
        )
        taken = service.researcher.open_study(
            write_bundle(home / "taken", name="taken", seed=8, **options), per_condition=1
        )
        token = service.participant.begin(taken)
        service.participant.consent(token, True)
        service.participant.ready(token)
        gate = {"device": {"width": 3000}}
        service.researcher.open_study(
            write_bundle(home / "gate", name="gate", seed=9, config=gate, **options), per_condition=1
        )
    with serving(home) as running:
        yield running


@pytest.fixture(params=[(1280, 800, "light"), (390, 844, "dark")], ids=["desktop", "phone"])
def page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, height, scheme = request.param
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    yield context.new_page()
    context.close()


def walk(page: Page, server: Server, visit: Visit) -> None:
    """The whole participation by the keyboard alone; `visit` sees every page of it."""
    page.goto(f"{server.url}/run/whole")
    page.wait_for_selector("#consent:not([hidden])")
    visit(page, "consent")
    for box in range(page.locator("#boxes input").count()):
        tab_to(page, f"#boxes label:nth-child({box + 1}) input")
        page.keyboard.press("Space")
    activate(page, "#accept")
    page.wait_for_selector("#understood:enabled")
    visit(page, "instructions")
    activate(page, "#understood")
    page.wait_for_selector("#check fieldset")
    visit(page, "check")
    for question in range(2):  # the second option of both is right
        tab_to(page, f'#check input[name="q{question}"]')
        page.keyboard.press("ArrowDown")
    activate(page, "#answer-check")
    page.wait_for_selector("#seen:enabled")
    visit(page, "example")
    activate(page, "#seen")
    begin(page, visit, "practice begins")
    trial(page, 1, visit, feedback=True)
    activate(page, "#next")
    begin(page, visit, "the study begins")
    for number in range(1, 5):
        if number == 3:
            begin(page, visit, "break")
        trial(page, number, visit)
    page.wait_for_selector("#questionnaire fieldset")
    visit(page, "questionnaire")
    for name in ("hard", "which"):
        tab_to(page, f'#questionnaire input[name="{name}"]')
        page.keyboard.press("Space")
    tab_to(page, "#questionnaire textarea")
    page.keyboard.type("by eye")
    activate(page, "#answer-items")
    expect(page.locator("#code")).to_have_text("DONE42")
    visit(page, "end")


def begin(page: Page, visit: Visit, name: str) -> None:
    page.wait_for_selector("#ready:not([hidden]) #begin:enabled")
    visit(page, name)
    activate(page, "#begin")


def trial(page: Page, number: int, visit: Visit, *, feedback: bool = False) -> None:
    """By F the first time, by the button itself the others; then the confidence."""
    wait_for_trial(page, number)
    visit(page, f"trial {number}")
    if number == 1:
        page.keyboard.press("f")
    else:
        activate(page, "#right")
    page.wait_for_selector("#confidence:not([hidden])")
    visit(page, f"confidence {number}")
    page.keyboard.press("2")
    if feedback:
        page.wait_for_selector("#feedback:not([hidden])")
        visit(page, "feedback")


def activate(page: Page, selector: str) -> None:
    page.wait_for_selector(f"{selector}:enabled")
    tab_to(page, selector)
    ring = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid", f"the focus on {selector} cannot be seen"
    page.keyboard.press("Enter")


AXE = {
    "rules": {"target-size": {"enabled": True}},  # WCAG 2.2, 2.5.8: 24 px, or as much room
    "resultTypes": ["violations"],  # the list of all that is right takes three quarters of the time
    "preload": False,  # style sheets once more, for rules that are off
}


def grave(page: Page) -> list[str]:
    """What axe calls serious or critical, and headings that skip a level, by which screen readers navigate."""
    return find_lasting_faults(page, lambda: _run_axe(page))


def _run_axe(page: Page) -> list[str]:
    found = [
        v
        for v in Axe().run(page, options=AXE).response["violations"]
        if v["impact"] in GRAVE or v["id"] == "heading-order"
    ]
    return [f"{v['id']}: {v['nodes'][0]['target']}" for v in found]


def test_axe_finds_nothing_grave_on_any_page_and_the_keyboard_is_enough(page: Page, server: Server) -> None:
    found: dict[str, list[str]] = {}

    def visit(page: Page, name: str) -> None:
        found[name] = grave(page)

    walk(page, server, visit)
    page.goto(f"{server.url}/run/whole#withdraw")
    page.reload()
    page.wait_for_selector("#withdraw:not([hidden])")
    visit(page, "withdraw")
    for study in ("taken", "gate"):
        page.goto(f"{server.url}/run/{study}")
        page.wait_for_selector("#message:not([hidden])")
        visit(page, study)
    assert len(found) == 21
    assert {name: said for name, said in found.items() if said} == {}


def test_axe_would_find_what_is_wrong(page: Page, server: Server) -> None:
    """Negative control: small buttons without a name next to each other, and a text without contrast."""
    page.goto(f"{server.url}/run/whole")
    page.wait_for_selector("#consent:not([hidden])")
    page.evaluate("""() => {
      const make = () => Object.assign(document.createElement("button"), { style: "all: unset; padding: 4px" });
      const row = document.createElement("div");
      row.append(make(), make());
      document.querySelector("#consent .card").append(row);
    }""")
    page.evaluate("() => { document.querySelector('#consent p').style.color = '#999'; }")
    page.evaluate("() => { document.querySelector('#consent p').style.background = '#aaa'; }")
    assert {line.split(":")[0] for line in grave(page)} == {"button-name", "color-contrast", "target-size"}


FADING = """<html lang="en"><style>p { background: #aaa } .gone { opacity: .33; transition: opacity 300ms }</style>
<title>A page</title><main data-testid="stApp" data-test-script-state="running"><h1>A page</h1>
<p data-stale="true" class="gone">Words of the run before</p></main>"""
END_OF_RUN = """() => setTimeout(() => {
  document.querySelector("main").dataset.testScriptState = "notRunning";
  setTimeout(() => {
    document.querySelector("p").dataset.stale = "false";
    document.querySelector("p").className = "";
  }, 300);
}, 300)"""


def test_axe_looks_when_a_run_has_ended_and_nothing_is_stale(chromium: Browser) -> None:
    """Catches a look at words that Streamlit fades because it is about to replace them: faint for a moment only."""
    with chromium.new_page() as page:
        page.set_content(FADING)
        page.evaluate(END_OF_RUN)
        assert grave(page) == []


def test_nothing_is_lost_at_a_zoom_of_200_percent(chromium: Browser, server: Server) -> None:
    """A window of 1280 x 1000 zoomed to 200 % is one of 640 x 500: nothing is cut off, all can be scrolled to."""
    context = chromium.new_context(viewport={"width": 640, "height": 500}, device_scale_factor=2)
    page = context.new_page()
    lost: dict[str, list[str]] = {}

    def visit(page: Page, name: str) -> None:
        lost[name] = page.evaluate(
            """() => {
              const wide = document.documentElement.scrollWidth > innerWidth ? ["the page is too wide"] : [];
              const high = document.documentElement.scrollHeight;
              const shown = document.querySelectorAll("section:not([hidden]) :is(button, input, textarea, p, h1, a)");
              const told = (e) => e.checkVisibility() && (e.textContent.trim() || e.tagName !== "P");
              const cut = [...shown].filter(told).filter((e) => {
                const box = e.getBoundingClientRect();
                return box.left < 0 || box.right > innerWidth + 1 || box.bottom + scrollY > high + 1;
              });
              return [...wide, ...cut.map((e) => e.id || e.tagName + ": " + e.textContent)];
            }"""
        )

    walk(page, server, visit)
    context.close()
    assert {name: said for name, said in lost.items() if said} == {}


def test_reduced_motion_moves_nothing(chromium: Browser, server: Server) -> None:
    """Where it is asked for nothing is animated; where it is not, the same look finds something."""
    moving = {}
    for wish in ("reduce", "no-preference"):
        context = chromium.new_context(reduced_motion=wish)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{server.url}/run/whole")
        page.wait_for_selector("#consent:not([hidden])")
        moving[wish] = page.evaluate(
            """() => [...document.querySelectorAll("*")].map((e) => getComputedStyle(e)).filter((style) =>
              parseFloat(style.transitionDuration) > 0 || style.animationName !== "none").length"""
        )
        context.close()
    assert moving["reduce"] == 0
    assert moving["no-preference"] > 0
