"""`unit_choice` in a real browser: where references are, images that are buttons, and what the network carries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from study.bundle import Bundle
from study.service import Service
from tests.browser.participation import agree, keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import DESKTOP
from tests.browser.runner.test_scale import PHONE, TABLET, assert_fits
from tests.browser.test_accessibility import grave
from tests.server import Server, serving
from tests.study.unit_studies import build_units

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Bundle]]:
    """A server with a study about units, and its bundle."""
    home = tmp_path_factory.mktemp("units")
    bundle = build_units(home)
    with Service(home) as service:
        service.researcher.open_study(bundle.folder, per_condition=2)
    with serving(home) as running:
        yield running, bundle


def _find_box(place: Locator) -> dict[str, float]:
    box = place.bounding_box()
    assert box is not None
    return dict(box)


@pytest.mark.parametrize("condition", ["examples", "none"])
def test_each_image_is_chosen_on_its_own_side(chromium: Browser, units: tuple[Server, Bundle], condition: str) -> None:
    """By a click on the image, a key and a tap, on desktop, tablet and phone.

    Catches references on the wrong side or without their legend, an image that responds to nothing or for the other
    side, one of another size without references, an image that is cut off, a stored input that was another one, a file
    that one condition loads and the other does not, and activations in what the network carries.
    """
    server, bundle = units
    manifest = bundle.manifest
    context = chromium.new_context(viewport=DESKTOP, has_touch=True)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    server.let_in(context)
    page.goto(f"{server.url}/run/units?preview={condition}")
    agree(page)
    for button in ("#understood", "#seen", "#begin"):
        page.click(button)
    wait_for_trial(page, 1)
    left, right = page.locator("#left-samples img"), page.locator("#right-samples img")
    practice = manifest.practice[0].assets
    for size in (DESKTOP, TABLET, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        assert_fits(page)
        one, other = _find_box(left), _find_box(right)
        assert (one["width"], one["y"]) == pytest.approx((other["width"], other["y"]), abs=1)
        assert one["x"] + one["width"] <= other["x"]
        assert one["width"] == pytest.approx(one["height"], abs=1)
        assert one["width"] > 120
        if condition == "examples":
            for name, asset, query_box in (
                ("target", practice.target, one),
                ("map", practice.target_map, other),
            ):
                box = _find_box(page.locator(f"#{name}"))
                assert (page.locator(f"#{name}").get_attribute("src") or "").endswith(asset)
                assert box["y"] + box["height"] <= query_box["y"]
                assert abs(box["x"] + box["width"] / 2 - query_box["x"] - query_box["width"] / 2) < 2
                assert box["width"] == pytest.approx(query_box["width"], rel=0.25)
    assert grave(page) == []
    if condition == "examples":
        expect(page.locator(".target figcaption")).to_have_text("It responds least to these")
        expect(page.locator("#map-legend")).to_have_text("It responds most to these")
    else:
        expect(page.locator("#target")).to_be_hidden()
        assert "It responds" not in page.locator("#trial").inner_text()
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    page.wait_for_timeout(300)
    left.click()
    expect(page.locator("#feedback p")).to_contain_text(f"to the {manifest.practice[0].target} picture.")
    page.click("#next")
    page.click("#begin")
    wait_for_trial(page, 1)
    page.wait_for_timeout(300)
    right.click()
    wait_for_trial(page, 2)
    page.wait_for_timeout(300)
    page.keyboard.press("f")
    wait_for_trial(page, 3)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.wait_for_timeout(300)
    right.tap()
    wait_for_trial(page, 4)
    page.wait_for_timeout(500)
    rows = query(
        server,
        "SELECT side, input, choice FROM response JOIN trial_plan USING (session_id, trial_index) WHERE session_id = ? "
        "AND phase = 'main' ORDER BY trial_index",
        newest(server),
    )
    assert rows == [("right", "mouse", "b"), ("left", "key", "a"), ("right", "touch", "b")]
    context.close()
    traffic = "\n".join(carried)
    assert all(name in traffic for trial in manifest.trials for name in {*trial.assets.every})
    for trial in manifest.trials:
        assert trial.unit is not None
        assert str(max(trial.unit.activations)) not in traffic
        assert trial.unit.name not in traffic
        assert not any(example.source in traffic for example in trial.assets.examples)
