"""Every language says everything, with the same places to fill in; every word of the page is there."""

from __future__ import annotations

import re

import pytest

from core.attribution import METHODS
from core.attribution.records import sign_of
from dashboard.server.api import RUNNER
from study.locales import CATALOGUES, TASK_TEXTS, TEMPLATES
from study.plan.draft import MISSING, StudyDraft
from study.plan.procedure import Procedure
from study.plan.templates import templates
from study.plan.texts import complete_texts
from study.plan.translation import PLACES, translate_template

ENGLISH = CATALOGUES["en"]
OF_BLOCKS = ("reservoir.js", "reservoir.css")
OF_PLACES = ("place.js", "place.css")
OF_OPTIONS = ("options.js", "options.css")
OF_UNITS = ("units.js", "units.css")
OF_NAMES = ("name.js", "name.css")
OF_ATTRIBUTES = ("attributes.js", "attributes.css")
OF_SITTINGS = ("sittings.js", "sittings.css")
ELSEWHERE = (
    "next.js",
    "login.html",
    "login.css",
    "draft.js",
    "picture.svg",
    "heatmap.svg",
    *OF_BLOCKS,
    *OF_PLACES,
    *OF_OPTIONS,
    *OF_UNITS,
    *OF_NAMES,
    *OF_ATTRIBUTES,
    *OF_SITTINGS,
)
"""Files that only researchers' browsers load."""


@pytest.mark.parametrize("language", CATALOGUES)
def test_a_language_is_complete(language: str) -> None:
    texts = CATALOGUES[language]
    assert list(texts) == list(ENGLISH)
    places = {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in texts.items()}
    assert places == {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in ENGLISH.items()}
    assert all(text.strip() == text and text for text in texts.values())
    assert Procedure(language=language).language == language  # type: ignore[arg-type]


@pytest.mark.parametrize("language", CATALOGUES)
def test_participants_read_what_the_colours_of_every_method_mean(language: str) -> None:
    """Blue is explained exactly where a method has it; catches a kind of sign without texts in a language."""
    for name in METHODS:
        sign = sign_of(name, {})
        texts = [complete_texts(language, {}, name)[key].lower() for key in ("map_legend", "example_map")]
        assert any("blu" in text or "blau" in text for text in texts) == (sign.below is not None)
        assert complete_texts(language, {"map_legend": "mine"}, name)["map_legend"] == "mine"
    assert len({complete_texts(language, {}, name)["map_legend"] for name in METHODS}) == 10


def test_participants_read_of_blue_where_the_parameters_give_it() -> None:
    """Catches the legend of a method's default: signed class activation maps have blue, a largest slope has none."""
    for method, parameters, has_blue in (
        ("grad_cam", {"sign": "signed"}, True),
        ("grad_cam", {"sign": "positive"}, False),
        ("gradient", {"channels": "largest"}, False),
    ):
        assert ("blue" in complete_texts("en", {}, method, parameters)["map_legend"]) == has_blue


def test_nothing_is_left_in_english() -> None:
    """A text that was copied and not translated; names that are the same in both are none of ours."""
    assert [key for key in ENGLISH if CATALOGUES["de"][key] == ENGLISH[key]] == []


def test_the_page_asks_for_words_that_exist_and_has_none_of_its_own() -> None:
    page = (RUNNER / "run.html").read_text(encoding="utf-8")
    scripts = "".join(path.read_text(encoding="utf-8") for path in RUNNER.glob("*.js"))
    asked = {*re.findall(r'data-text="(\w+)"', page), *re.findall(r'word\("(\w+)"', scripts)}
    asked |= {
        "picture_left",
        "picture_right",
        "practice",
        "main",
        "saved",
        "saving",
        "offline",
        "unsaved",
        "resending",
    }  # by name
    of_tasks = {key for task in ("localise", "highlight", "name", "discover") for key in TASK_TEXTS[task]["en"]}
    known = {key.removeprefix("ui.") for key in {*ENGLISH, *of_tasks} if key.startswith("ui.")}
    assert asked == known - {"picture_label"}  # by name, too
    assert re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]+>|&nbsp;|\{\{.*?\}\}", " ", page)) == []
    assert re.findall(r"""["'`][A-Z]\w* \w+ """, re.sub(r"//.*", "", scripts)) == []


def test_the_page_is_small() -> None:
    """Catches a participant's page that grows unnoticed, and what only some studies load."""
    assert sum((RUNNER / name).stat().st_size for name in OF_BLOCKS) < 4_000
    assert sum((RUNNER / name).stat().st_size for name in OF_PLACES) < 11_000
    assert sum((RUNNER / name).stat().st_size for name in OF_OPTIONS) < 3_500
    assert sum((RUNNER / name).stat().st_size for name in OF_UNITS) < 3_000
    assert (RUNNER / "next.js").stat().st_size < 300
    assert sum((RUNNER / name).stat().st_size for name in OF_NAMES) < 6_000
    assert sum((RUNNER / name).stat().st_size for name in OF_ATTRIBUTES) < 8_000
    assert sum((RUNNER / name).stat().st_size for name in OF_SITTINGS) < 6_000
    assert sum(path.stat().st_size for path in RUNNER.iterdir() if path.name not in ELSEWHERE) < 72_000


def list_strings(value: object) -> list[str]:
    """The texts at a place of a study file, without the names of its keys, ids and kinds."""
    if isinstance(value, dict):
        return [text for key, one in value.items() if key not in ("id", "kind") for text in list_strings(one)]
    return [text for one in value for text in list_strings(one)] if isinstance(value, list) else [str(value)]


def test_the_texts_of_every_template_are_there_in_every_language() -> None:
    """Catches a text that is changed in a template and then stays English in a German study."""
    for template in templates():
        draft = StudyDraft.read(template)
        for language in CATALOGUES:
            known = {*TEMPLATES[language].values()}
            for place in PLACES:
                value = translate_template(draft, language).get(place, draft.get(place))
                said = [] if value is MISSING else list_strings(value)
                assert {one for one in said if not one.isdigit() and one != "False"} <= known
