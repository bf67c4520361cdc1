"""The hand that walks the pages by keyboard: what it waits for, and what it must refuse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import hand as hand_module
from tests.browser.hand import VISITORS, Hand

pytestmark = pytest.mark.browser
PAGE = "<button>Before</button><div id='above'></div><button id='place'>Place</button><button>After</button>"


@pytest.fixture
def hand(chromium: Browser) -> Iterator[Hand]:
    phone = VISITORS[1]
    with chromium.new_context(viewport={"width": phone.size[0], "height": phone.size[1]}) as context:
        page = context.new_page()
        page.set_content(PAGE)
        yield Hand(page, phone)


def test_a_place_that_takes_the_focus_late_is_reached(hand: Hand) -> None:
    """Catches steps back and forth that are over before a slow machine has drawn the page."""
    hand.page.evaluate("place.disabled = true; setTimeout(() => { place.disabled = false }, 4000)")
    hand.reach(hand.page.locator("#place"))


def test_a_place_that_moved_out_of_sight_after_it_had_the_focus_is_reached(hand: Hand) -> None:
    """Catches waiting for a page that has been drawn."""
    grow = "place.addEventListener('focus', () => setTimeout(() => { above.style.height = '3000px' }), { once: true })"
    hand.page.evaluate(f"{grow}; document.documentElement.style.overflowAnchor = 'none'")
    hand.page.evaluate("place.focus()")
    hand.page.wait_for_function("place.getBoundingClientRect().top > 2000")
    hand.reach(hand.page.locator("#place"))


@pytest.mark.parametrize("act", ["place.tabIndex = -1", "above.style = 'position: fixed; inset: 0; background: grey'"])
def test_a_place_out_of_reach_is_told(hand: Hand, act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a walk that passes although no key leads to a place, or although something covers it."""
    monkeypatch.setattr(hand_module, "MOST_TABS", 30)
    hand.page.evaluate(act)
    with pytest.raises(AssertionError, match="cannot be reached by the keyboard"):
        hand.reach(hand.page.locator("#place"))
