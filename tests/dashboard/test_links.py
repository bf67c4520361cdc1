"""Links of former versions open what they opened."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from core.attribution import METHODS
from core.names import format_name
from core.uncertainty import UNCERTAINTY_MEASURES
from dashboard.design import steps
from dashboard.explore import page, source
from dashboard.explore.debugging import view as debugging
from dashboard.explore.find import orders
from dashboard.explore.heatmaps import cells, grid
from dashboard.explore.uncertainty import view as uncertainty
from dashboard.pages import PAGES
from dashboard.power import planning
from dashboard.results import page as results
from dashboard.results import responses
from dashboard.shared import links
from dashboard.shared.messages import format_message
from tests.conftest import ROOT
from tests.dashboard.views.conftest import opened

__all__ = ["opened"]  # the fixture

OFFERED = {
    "view": page.VIEWS,
    "source": source.DRAWN,
    "order": orders.ORDERS,
    "columns": page.COLUMNS,
    "target": [cells.PREDICTION],
    "classes": [*grid.RANK_LABELS, grid.TRUTH],
    "part": [*debugging.SECTIONS, *steps.PARTS],
    "place": debugging.PLACES,
    "colour": [debugging.BY_KIND, debugging.BY_PREDICTION, debugging.BY_LABEL, debugging.BY_NOTHING],
    "judge": [f"{name}: " for name in debugging.JUDGES.values()],
    **{key: [format_name(name) for name in METHODS] for key in ("method", "methods", "hover")},
    "noise": [uncertainty.NOT],
    "uncertainty": [debugging.ENTROPY],
    "uncertainty.measure": [format_name(name) for name in UNCERTAINTY_MEASURES],
    "section": results.SECTIONS,
    "pilot_source": [planning.PAPER, planning.SIMULATED, responses.UPLOAD],
    "results_source": [responses.UPLOAD],
}


@pytest.mark.parametrize("former", links.FORMER)
def test_a_former_part_is_called_what_the_page_calls_it_today(former: str) -> None:
    """Catches a second renaming that forgets this table, and a chain of redirections without an end."""
    query = links.update(former.replace(" ", "+"))
    name, _, value = links.FORMER[former].partition("=")
    assert not value or value in OFFERED[name]
    assert parse_qs(query, keep_blank_values=True) == {name: [value]}
    assert links.update(query) == query


def test_links_to_pages_are_drawn_in_one_way() -> None:
    """Catches a link to a page in Markdown or HTML, which opens a new tab or begins a new session."""
    to_page = re.compile(rf"""\]\(/({"|".join(PAGES)})\b|href=["']?/({"|".join(PAGES)})\b""")
    written = {
        (path.relative_to(ROOT).as_posix(), node.value)
        for path in (ROOT / "dashboard").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and to_page.search(node.value)
    }
    assert written == set()


def test_a_guide_that_a_message_names_is_a_link_to_its_page() -> None:
    """Catches a path of a file where the browser needs a link, and a guide that was renamed."""
    said = format_message("Get *it* first; docs/how-to/imagenet.md says how. See docs/no/such.md")
    assert said == (
        r"Get \*it\* first; [ImageNet and ImageNet-A](/docs/how-to/imagenet.html) says how. "
        "See [docs/no/such.md](/docs/no/such.html)"
    )
    files = [path for folder in ("dashboard", "data") for path in (ROOT / folder).rglob("*.py")]
    named = {name for file in files for name in re.findall(r"docs/[\w/-]+\.md", file.read_text(encoding="utf-8"))}
    assert "docs/deploy.md" in named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_rest_of_a_link_stays() -> None:
    """Catches repeated, empty and strange parts that get lost, and a number behind a former beginning."""
    assert links.update("methods=RISE&methods=LIME&x=&view=Inside&judge=The+AI%27s+answers%3A+12&picture=a%2F7") == (
        "methods=RISE&methods=LIME&x=&view=Layers&judge=The+AI%27s+predictions%3A+12&image=a%2F7"
    )
    for query in ("", "view=Grid&rise.samples=64", "classes=Answering+machine", "a=b=c&%20=%2f"):
        assert links.update(query) == query


def test_a_former_link_lands_on_its_view(opened: Callable[..., AppTest], workspace: Path) -> None:
    """Catches a page that takes a former view, image set, image or class for an unknown one."""
    query = parse_qs(
        links.update("view=One+map&source=Ordinary&picture=standard%2F5&method=Gradient&target=The+AI's+answer")
    )
    app = opened(**query)
    assert not any("The link names" in warning.value for warning in app.warning)
    assert app.button_group(key="view").value == page.ONE
    assert app.button_group(key="source").value == "Standard"
    assert app.query_params["image"] == "standard/5"
    query = parse_qs(links.update("view=Debugging&part=Doubtful+labels"))
    app = opened(**query)
    assert not any("The link names" in warning.value for warning in app.warning)
    assert app.button_group(key="part").value == debugging.LABELS


def draw_choices() -> None:
    import streamlit as st

    from core.names import format_name
    from dashboard.shared import links

    names = ("lrp_0", "grad_cam", "left_out")
    one = links.selectbox("One", names, names[0], key="one", format_func=format_name)
    several = links.multiselect("Several", names, "lrp_0,grad_cam", key="several", format_func=format_name)
    st.text(f"{one} {several}")
    links.show()


def test_a_choice_in_words_has_its_own_name_in_the_link() -> None:
    """Catches words in the link, a default in it, a link that is not read, and one choice that undoes another."""
    app = AppTest.from_function(draw_choices).run()
    assert app.selectbox(key="one").options == ["LRP 0", "Grad-CAM", "Left out"]
    assert app.text[0].value == "lrp_0 lrp_0,grad_cam"
    app.selectbox(key="one").select("left_out").run()
    app.multiselect(key="several").unselect("lrp_0").run()
    assert app.text[0].value == "left_out grad_cam"
    assert dict(app.query_params) == {"one": "left_out", "several": "grad_cam"}
    app.selectbox(key="one").select("lrp_0").run()
    app.multiselect(key="several").unselect("grad_cam").run()
    assert app.text[0].value == "lrp_0 lrp_0,grad_cam"
    assert not app.query_params


def test_a_link_names_choices_and_an_unknown_one_is_reported() -> None:
    """Catches a choice of the link that is lost, and one that is replaced without a word."""
    app = AppTest.from_function(draw_choices)
    app.query_params.update({"one": "grad_cam", "several": "left_out, lrp_0"})
    assert app.run().text[0].value == "grad_cam left_out,lrp_0"
    assert not app.warning
    app = AppTest.from_function(draw_choices)
    app.query_params.update({"one": "Grad CAM", "several": "riddle"})
    assert app.run().text[0].value == "lrp_0 lrp_0,grad_cam"
    assert ["Grad CAM" in one.value or "riddle" in one.value for one in app.warning] == [True, True]
