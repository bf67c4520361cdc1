"""From opening the page Teaching to its drawn figures in a real Chromium, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from study.building.build import build
from study.bundle import TYPE_LABELS, Trial
from study.workspace.workspace import bundle_named
from tests.browser.hand import Hand
from tests.server import Server, serving
from tests.study.studies import SMALL

pytestmark = pytest.mark.browser
# The ids of the points of the pool whose images are drawn, sorted; nothing while the figure is drawn.
DRAWN = """((figure) => figure?.layout?.images && figure._fullData
  .flatMap(({ customdata, x }) => customdata.map(([id], k) => [id, x[k]]))
  .filter(([, x]) => figure.layout.images.some((image) => image.x === x))
  .map(([id]) => id).sort().join(" ")
)(document.querySelector(".st-key-figure_teaching-pool .js-plotly-plot"))"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a workspace with a small study, which is built."""
    home = tmp_path_factory.mktemp("teaching")
    file = home / "studies" / "tiny.toml"
    file.parent.mkdir()
    file.write_text(SMALL)
    build(file, home)
    with serving(home) as running:
        yield running


def find_figure(hand: Hand, title: str | re.Pattern[str]) -> Locator:
    """Find the figure whose vertical axis has this title, and wait until it is drawn."""
    figure = hand.page.locator(".js-plotly-plot").filter(has=hand.page.locator(".ytitle", has_text=title))
    expect(figure.locator(".main-svg").first).to_be_visible()
    return figure


def wait_for_trial(hand: Hand, trial: Trial) -> None:
    """Wait until the page shows everything about a trial."""
    says = f"The AI predicts {trial.target} ({trial.ai_probability:.0%}); foil: {trial.alternative}"
    expect(hand.page.get_by_role("heading", name=says)).to_be_visible()
    find_figure(hand, "Best P so far")


def test_teaching_leads_to_drawn_figures(hand: Hand, server: Server) -> None:
    """Catches a figure that is not drawn, or draws another trial or set than the chosen one, a choice that no key
    reaches, words that cannot be read, a page that the navigation lacks, a menu whose button is covered or that stays
    open over the page, and a page that opens with a study that is not built."""
    page = hand.page
    bundle = bundle_named(server.home, "tiny")
    assert bundle is not None
    first, trial = bundle.manifest.trials[:2]
    page.goto(server.url)
    if hand.visitor.name == "phone":
        hand.click(page.get_by_test_id("stExpandSidebarButton"))
        hand.reach(page.get_by_test_id("stSidebarCollapseButton").get_by_role("button"))
    hand.click(page.get_by_role("link", name="Teaching", exact=True))
    wait_for_trial(hand, first)
    expect(page.get_by_test_id("stSidebarCollapseButton")).to_have_count(0)
    hand.see("the first trial")
    hand.choose(
        page.get_by_role("combobox", name="Trial"),
        f"{trial.id}: {trial.target} or {trial.alternative}? {TYPE_LABELS[trial.trial_type]}",
    )
    wait_for_trial(hand, trial)
    find_figure(hand, "Second axis")
    own = " ".join(sorted([*(example.source for example in trial.assets.examples), "target"]))
    page.wait_for_function(f"own => {DRAWN} === own", arg=own)
    hand.click(page.get_by_role("radio", name="Nearest", exact=True))
    page.wait_for_function(f"own => ![own, undefined].includes({DRAWN})", arg=own)
    beliefs = find_figure(hand, re.compile("^P$"))
    assert beliefs.evaluate("(figure) => figure.data.map((trace) => trace.name)") == ["Best", "Random"]
    last = beliefs.evaluate("(figure) => Array.from(figure._fullData[0].y).pop()")
    assert last == pytest.approx(trial.teaching.p_learner, abs=1e-6)
    hand.see("the second trial")
