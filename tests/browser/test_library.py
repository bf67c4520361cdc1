"""From Home to one's own images and networks, as a new user walks it: mouse and keyboard, desktop and phone."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from study.network.sources import open_set
from study.plan.config import ImageSource
from study.service import Service
from study.workspace.imagesets import count_images
from tests.browser.hand import VISITORS, Hand, drop, open_visit
from tests.browser.stillness import wait_until_still
from tests.browser.test_accessibility import grave
from tests.conftest import ROOT, write_bundle
from tests.dashboard.views.library import NETWORK
from tests.server import Server, serving

pytestmark = pytest.mark.browser
SETTINGS = {"set": "scenes", "split": "standard", "size": 32}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a workspace in which the study `demo` is open."""
    home = tmp_path_factory.mktemp("library")
    with Service(home) as service:
        bundle = write_bundle(home / "bundles" / "demo-00", name="demo", trials=2, practice=1, side=48)
        service.researcher.open_study(bundle, per_condition=2)
    with serving(home) as running:
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


def open_form(hand: Hand, server: Server) -> None:
    page = hand.page
    page.goto(f"{server.url}/library")
    expect(page.locator("h1")).to_have_text("Models & images")
    form = page.get_by_test_id("stExpander").filter(has_text="Add images")
    expect(form).to_be_visible()
    if form.locator("details[open]").count() == 0:  # there is a set already
        hand.click(form.locator("summary"))


def add(hand: Hand, name: str) -> None:
    """Name the set, and press Add."""
    field = hand.page.get_by_label("Name of the set")
    expect(field).to_have_value("drawings")
    hand.write(field, name, "Enter")
    hand.click(hand.page.get_by_role("button", name="Add", exact=True))
    expect(hand.page.get_by_text("Added 33 images.")).to_be_visible()


def test_own_images_are_added_and_one_of_them_explained(hand: Hand, server: Server, drawings: Path) -> None:
    """Catches a way from own images to a heatmap, and back, that breaks, runs off the screen, that axe objects to, or
    whose links open another tab or begin another session."""
    page, name = hand.page, hand.visitor.name
    if not (folder := drawings.with_suffix("")).exists():
        zipfile.ZipFile(drawings).extractall(drawings.parent)
    open_form(hand, server)
    hand.see("the form")
    if hand.visitor.by_keyboard:
        hand.click(page.get_by_role("radio", name="Folder", exact=True))
        expect(page.get_by_text("A folder with one folder per class")).to_be_visible()
        hand.attach(page.get_by_test_id("stFileUploaderDropzone").get_by_role("button").last, folder)
    else:
        drop(page, page.get_by_test_id("stFileUploaderDropzone"), folder)
    add(hand, name)
    expect(page.get_by_text("16 of 17 folders match a class of this network.")).to_be_visible()
    expect(page.get_by_text("Near-duplicates of other images: 1.")).to_be_visible()
    hand.see("the set")
    link = page.get_by_role("link", name="Explain these images")
    expect(link).to_have_attribute("href", re.compile(f"source={name}"))  # and not of the set shown before
    hand.click(link)
    expect(page.locator(".grid button").first).to_be_attached()  # on a phone in the drawer
    expect(page.get_by_text("The AI predicts").first).to_be_visible()
    expect(page.get_by_test_id("stImage").first).to_be_visible()
    assert f"source={name}" in page.url
    assert count_images(server.home / "images" / name) == count_by_class(drawings)
    if hand.visitor.by_keyboard:
        hand.click(page.locator(".drawer summary"))
    hand.click(page.get_by_role("link", name="Add images"))
    expect(page.get_by_text("Added 33 images.")).to_be_visible()  # in this tab, and in this session
    assert page.context.pages == [page]


@pytest.mark.parametrize("visitor", VISITORS[1:], ids=["phone"])
def test_images_are_added_by_their_path_and_removed(hand: Hand, server: Server, drawings: Path) -> None:
    """Catches a path that is not read, one that is wrong without a word, and a set that the keyboard cannot remove."""
    page, name = hand.page, f"path-{hand.visitor.name}"
    open_form(hand, server)
    hand.click(page.get_by_role("radio", name="Path on this machine", exact=True))
    field = page.get_by_role("textbox", name="Folder or zip")
    hand.write(field, str(drawings.with_name("nowhere")))
    expect(page.get_by_label("Name of the set")).to_have_value("nowhere")
    hand.click(page.get_by_role("button", name="Add", exact=True))
    expect(page.get_by_test_id("stAlertContentError")).to_contain_text("nowhere")
    hand.see("a path that is wrong")
    hand.write(field, str(drawings))
    add(hand, name)
    expect(page.get_by_test_id("stAlertContentError")).to_have_count(0)
    assert count_images(server.home / "images" / name) == count_by_class(drawings)
    hand.click(page.get_by_role("button", name="Remove", exact=True))
    hand.click(page.get_by_role("button", name="Remove the set"))
    expect(page.get_by_text("Added 33 images.")).to_have_count(0)
    wait_until_still(page)
    assert not (server.home / "images" / name).exists()


@pytest.mark.parametrize("way", ["Zip or images", "Folder"])
def test_what_is_dropped_keeps_its_classes(chromium: Browser, server: Server, drawings: Path, way: str) -> None:
    """Catches a zip or a folder of which one of the two uploaders takes the files and leaves the folders out."""
    if not (folder := drawings.with_suffix("")).exists():
        zipfile.ZipFile(drawings).extractall(drawings.parent)
    with open_visit(chromium, server, VISITORS[0]) as hand:
        open_form(hand, server)
        hand.click(hand.page.get_by_role("radio", name=way, exact=True))
        label = "A zip or" if way == "Zip or images" else "A folder with"
        expect(hand.page.get_by_label(label)).to_be_visible()
        drop(
            hand.page,
            hand.page.get_by_test_id("stFileUploaderDropzone"),
            drawings if way == "Zip or images" else folder,
        )
        add(hand, name := f"dropped-{way[:3].lower()}")
    assert count_images(server.home / "images" / name) == count_by_class(drawings)


def count_by_class(drawings: Path) -> dict[str, int]:
    """Count the files of a zip in each folder."""
    return dict(Counter(name.split("/")[1] for name in zipfile.ZipFile(drawings).namelist()))


def test_a_network_of_ones_own_is_added_and_opened(hand: Hand, server: Server, tmp_path: Path) -> None:
    """Catches a network that cannot be added without a mouse, or is not offered after."""
    page, name = hand.page, f"{hand.visitor.name}.py"
    (tmp_path / name).write_bytes(NETWORK)
    page.goto(f"{server.url}/library?part=Networks")
    expect(page.get_by_text("Search the")).to_be_visible()
    hand.click(page.get_by_role("radio", name="File", exact=True))
    expect(page.get_by_text("is run on this machine")).to_be_visible()
    hand.see("the form")
    hand.attach(page.get_by_test_id("stFileUploaderDropzone").get_by_role("button").last, tmp_path / name)
    hand.click(page.get_by_role("button", name="Add", exact=True))
    expect(page.get_by_text(f"Added {name}: 2 classes.")).to_be_visible()
    hand.see("added")
    page.goto(f"{server.url}/explore")
    expect(page.get_by_text("The AI predicts").first).to_be_visible()
    if hand.visitor.name == "phone":
        hand.click(page.locator(".drawer summary"))
    hand.choose(page.get_by_role("combobox", name="Classifier"), hand.visitor.name)
    expect(page).to_have_url(re.compile(f"classifier=models%2F{name}"))


def test_home_leads_everywhere(hand: Hand, server: Server) -> None:
    """Catches a card that only its title opens, one that the keyboard cannot reach, and colours without contrast."""
    page = hand.page
    page.goto(server.url)
    expect(page.get_by_text("Your studies")).to_be_visible()
    expect(page.get_by_role("link", name="Build it").first).to_be_visible()
    with page.context.expect_page() as opened:
        hand.click(page.get_by_role("link", name="Try it as a participant"))
    expect(opened.value.get_by_text("Preview: answers do not count")).to_be_visible()
    assert grave(opened.value) == []
    opened.value.close()
    hand.see("Home")
    card = page.locator(".st-key-step_power")
    hand.click(card.get_by_role("link") if hand.visitor.by_keyboard else card)  # in its middle, where the sentence is
    expect(page.locator("h1")).to_have_text("Power")
