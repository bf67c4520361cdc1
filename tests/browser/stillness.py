"""When a page can be looked at: nothing runs, fades or moves, so that what is seen is what stays."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

MOST_LOOKS = 10
"""At a page that changes during each of them."""
LOOK_MS = 100
"""Between two looks: at every frame, the looks themselves would keep the page busy."""
# What fades in has no contrast yet, what Streamlit is about to replace is faint until it is, and what moves can leave
# the pointer between its press and its release. A spinner never ends.
IS_STILL = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  const runs = app !== null && app.dataset.testScriptState !== "notRunning";
  const moves = (one) => one.playState === "running" && one.effect.getComputedTiming().endTime !== Infinity;
  const goes = document.querySelector("[data-stale=true], [data-testid=stSkeleton]");
  return !runs && !goes && !document.getAnimations().some(moves);
}"""
BEGIN_WATCH = """() => {
  let hasMoved = false;
  const note = () => { hasMoved = true; };
  const watch = new MutationObserver(note);
  watch.observe(document.documentElement, {
    subtree: true, attributeFilter: ["data-stale", "data-test-script-state"] });
  addEventListener("transitionrun", note, true);
  globalThis.endWatch = () => {
    watch.disconnect();
    removeEventListener("transitionrun", note, true);
    return hasMoved;
  };
}"""


def wait_until_still(page: Page) -> None:
    """Wait until a page has run to its end, has nothing stale, and nothing that ends moves."""
    page.wait_for_function(IS_STILL, polling=LOOK_MS)


def find_lasting_faults(page: Page, find: Callable[[], list[str]]) -> list[str]:
    """Find the faults of a page that is still; what is found on one that changes meanwhile has to be found again."""
    faults: list[str] = []
    for _ in range(MOST_LOOKS):
        wait_until_still(page)
        page.evaluate(BEGIN_WATCH)
        faults = find()
        if not page.evaluate("() => endWatch()") or not faults:
            break
    return faults
