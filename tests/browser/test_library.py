"""From one's own zip or folder to an explained image, as a new user walks it: desktop and phone, light and dark."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.browser.test_accessibility import grave
from tests.conftest import ROOT
from tests.server import Server, serving

pytestmark = pytest.mark.browser
SETTINGS = {"set": "scenes", "split": "standard", "size": 32}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("library")) as running:
        yield running


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zip of scenes, one folder per class, and one folder that is named like no class."""
    images = open_set(ImageSource.model_validate(SETTINGS), ROOT)
    path = tmp_path_factory.mktemp("zips") / "drawings.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(len(images)):
            content = io.BytesIO()
            images.open(i).save(content, "PNG")
            archive.writestr(f"drawings/{images.categories[images.labels[i]]}/{i}.png", content.getvalue())
            if i == 0:
                archive.writestr("drawings/odd/0.png", content.getvalue())
    return path


@pytest.fixture(params=[("desktop", "light"), ("phone", "dark")], ids="-".join)
def walker(chromium: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[tuple[Page, str]]:
    device, scheme = request.param
    size = {"width": 1280, "height": 900} if device == "desktop" else {"width": 390, "height": 844}
    with chromium.new_context(viewport=size, color_scheme=scheme) as context:
        server.let_in(context)
        yield context.new_page(), device


def test_a_zip_or_a_folder_is_uploaded_and_one_of_its_images_explained(
    walker: tuple[Page, str], server: Server, drawings: Path
) -> None:
    """Catches a way from own images to a heatmap that breaks, runs off the screen, or that axe objects to."""
    page, name = walker
    page.goto(f"{server.url}/library")
    expect(page.locator("h1")).to_have_text("Models & images")
    form = page.get_by_test_id("stExpander").filter(has_text="Add images")
    expect(form).to_be_visible()
    if form.locator("details[open]").count() == 0:  # there is a set already
        form.locator("summary").click()
    if name == "phone":
        zipfile.ZipFile(drawings).extractall(drawings.parent)
        page.get_by_role("radio", name="Folder", exact=True).click()
        drawings = drawings.with_suffix("")
    page.locator(f"input[type=file]{'[webkitdirectory]' if name == 'phone' else ''}").set_input_files(drawings)
    field = page.get_by_label("Name of the set")
    expect(field).to_have_value("drawings")
    field.fill(name)
    field.press("Enter")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Added 33 images.")).to_be_visible()
    expect(page.get_by_text("16 of 17 folders are named like a class of this network.")).to_be_visible()
    expect(page.get_by_text("Near-duplicates of other images: 1.")).to_be_visible()
    over = page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth")
    assert over <= 0
    assert grave(page) == []
    link = page.get_by_role("link", name="Explain these images").get_attribute("href")
    assert link is not None
    page.goto(f"{server.url}{link}&method=Gradient")
    expect(page.locator(".grid button").first).to_be_attached()  # on a phone in the drawer
    expect(page.get_by_text("The AI predicts").first).to_be_visible()
    expect(page.get_by_test_id("stImage").first).to_be_visible()
    assert f"source={name}" in page.url


def test_home_has_nothing_grave_for_axe_and_a_whole_card_is_a_link(walker: tuple[Page, str], server: Server) -> None:
    """Catches a card that only its title opens, one that the keyboard cannot reach, and colours without contrast."""
    page, _ = walker
    page.goto(server.url)
    expect(page.get_by_text("Your studies")).to_be_visible()
    expect(page.get_by_role("link", name="Build it").first).to_be_visible()
    assert grave(page) == []
    card = page.locator(".st-key-step_power")
    card.click()  # in its middle, where the sentence is
    expect(page.locator("h1")).to_have_text("Power")
    page.go_back()
    card.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Power")
