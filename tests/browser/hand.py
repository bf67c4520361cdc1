"""How a new user walks the researcher's pages: by mouse on a light desktop, by the keyboard alone on a dark phone.

Each walk is written once, with a `Hand`, and each of its steps is looked at: by axe, and for what runs off the screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.contrast import find_faint_words
from tests.browser.stillness import wait_until_still
from tests.browser.test_accessibility import grave
from tests.server import Server

MOST_TABS = 300
"""Of the whole way around a page."""
MOST_LOOKS = 10
"""At a place that has the focus and is out of sight, before it is left and reached again."""
SCROLL_MS = 100
FOCUSED = "`${document.activeElement.tagName} ${document.activeElement.innerText ?? ''}`.slice(0, 40)"
# The focused element may be in the shadow of a component: then its root tells whether it has the focus.
WHERE = """place => {
  const focused = document.activeElement;
  if (place.getRootNode().activeElement === place) return "here";
  if (place.matches("[role=radio]") && place.closest("[role=radiogroup]")?.contains(focused)) return "next";
  const seen = place.getRootNode().host ?? place;
  const before = focused !== seen && focused.compareDocumentPosition(seen) & Node.DOCUMENT_POSITION_PRECEDING;
  return before ? "before" : "after";
}"""
# WCAG 2.2, 2.4.11: some of what has the focus, or of its label where that covers the control itself, is not covered.
IS_SEEN = """place => {
  const covered = place.offsetWidth <= 1 || place.matches("[type=checkbox]");
  const shown = covered ? place.closest("label") ?? place : place;
  const { left, top, width, height } = shown.getBoundingClientRect();
  return [.1, .5, .9].some((part) => {
    const over = place.getRootNode().elementFromPoint(left + part * width, top + height / 2);
    return over && (shown.contains(over) || over.contains(shown));
  });
}"""


class Visitor(NamedTuple):
    """A device, its colours, and what is in the visitor's hand."""

    name: str
    size: tuple[int, int]
    scheme: Literal["light", "dark"]
    by_keyboard: bool
    motion: Literal["reduce", "no-preference"]
    """Whether what can move does."""


VISITORS = (
    Visitor("desktop", (1280, 900), "light", False, "reduce"),
    Visitor("phone", (390, 844), "dark", True, "no-preference"),
)


@contextmanager
def open_visit(chromium: Browser, server: Server, visitor: Visitor, *, is_known: bool = True) -> Iterator[Hand]:
    """Open a browser, logged in if `is_known`, with one empty page in a `Hand`."""
    width, height = visitor.size
    options: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": visitor.scheme}
    options["reduced_motion"] = visitor.motion
    with chromium.new_context(**options, accept_downloads=True) as context:
        if is_known:
            server.let_in(context)
        yield Hand(context.new_page(), visitor)


class Hand:
    """Counts the clicks of one walk; by the keyboard each control is reached by Tab, in sight, and then pressed."""

    def __init__(self, page: Page, visitor: Visitor) -> None:
        self.page, self.visitor, self.clicks = page, visitor, 0

    def click(self, place: Locator) -> None:
        """Click a button, link, choice or card; or reach it and press it."""
        self.clicks += 1
        if not self.visitor.by_keyboard:
            box = place.evaluate("place => place.matches('[type=checkbox]')")  # its label covers it
            (place.locator("xpath=ancestor::label") if box else place).click()
            return
        self.reach(place)
        is_choice = place.evaluate("place => place.matches('[role=radio], [type=radio], [type=checkbox]')")
        opens = place.evaluate("place => place.closest('[data-testid=stPopover]') !== null")
        self.page.keyboard.press("Space" if is_choice else "Enter")
        if opens:  # what a popover holds can be reached only from within, and the focus follows a little later
            self.page.wait_for_function("document.activeElement.closest('[data-testid=stPopoverBody]')")

    def write(self, field: Locator, text: str, end: str = "Tab") -> None:
        """Replace what is in a field once its page is drawn to its end, and leave it by a key.

        A page that is drawn again shows what its server knows: a text typed into it meanwhile can be lost.
        """
        wait_until_still(self.page)
        if self.visitor.by_keyboard:
            self.reach(field)
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.insert_text(text)
        else:
            field.fill(text)
        self.page.keyboard.press(end)

    def choose(self, field: Locator, option: str) -> None:
        """Choose an option of a list that opens, once its page is drawn to its end: being drawn again closes it."""
        wait_until_still(self.page)
        if self.visitor.by_keyboard:
            self.reach(field)
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.insert_text(option)
            expect(self.page.get_by_role("option", name=option, exact=True)).to_be_visible()
            self.page.keyboard.press("ArrowDown")
            self.page.keyboard.press("Enter")
        else:
            field.scroll_into_view_if_needed()
            self.page.wait_for_timeout(SCROLL_MS)  # scrolling closes the list
            field.click()
            self.page.get_by_role("option", name=option, exact=True).click()
        self.clicks += 1

    def attach(self, place: Locator, *files: Path) -> None:
        """Choose files in the window that a button opens."""
        with self.page.expect_file_chooser() as chooser:
            self.click(place)
        chooser.value.set_files(list(files))

    def reach(self, place: Locator) -> None:
        """Go on by Tab, or back by Shift+Tab, among choices by an arrow, until a place has the focus, in sight."""
        expect(place).to_be_visible()
        way: list[tuple[str, str]] = []
        for _ in range(MOST_TABS):
            where = place.evaluate(WHERE)
            if where == "here" and place.evaluate(IS_SEEN):
                return
            way.append((where, self.page.evaluate(FOCUSED)))
            self._step([where for where, _ in way])
        raise AssertionError(f"{place} cannot be reached by the keyboard; the last steps: {way[-MOST_LOOKS:]}")

    def _step(self, way: list[str]) -> None:
        """Press the key that leads on from the last place of a way; wait while the page may not be complete yet."""
        *before, where = way
        if where == "here" and before[-MOST_LOOKS:] != ["here"] * MOST_LOOKS:
            self.page.wait_for_timeout(SCROLL_MS)  # it is scrolled into sight
            return
        if before and before[-1] != where:
            self.page.wait_for_timeout(SCROLL_MS)  # the place was passed: it could not take the focus yet
        # What was drawn above it moved it out of sight: coming back scrolls to it.
        keys = {"after": "Tab", "before": "Shift+Tab", "here": "Shift+Tab", "next": "ArrowRight"}
        self.page.keyboard.press(keys[where])

    def see(self, step: str) -> None:
        """Look at a step: nothing grave for axe, no faint word in a figure, nothing wider than the screen."""
        expect(self.page.get_by_test_id("stApp")).to_be_attached()
        wait_until_still(self.page)
        wrong = grave(self.page) + find_faint_words(self.page)
        assert not wrong, (step, wrong)
        over = self.page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth")
        assert over <= 0, step


def drop(page: Page, place: Locator, *paths: Path) -> None:
    """Drop files or folders of this machine on a place.

    The browser itself reads the folders, as it does when a person drops them; a script cannot make such a drop.
    """
    expect(place).to_have_count(1)  # a former one is gone
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for event in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": event, **at, "data": data})
