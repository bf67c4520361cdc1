"""Design says whether the study can be built after every change of its file, without a click."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared.jobs import pool
from study.plan import studyfiles
from study.plan.draft import StudyDraft
from tests.dashboard.views.conftest import Open, checked
from tests.study.studies import TINY

SHORTAGE = "You ask for 60 categories, but the image sets have only 16, of which only"
READY = "The study can be built: 9 trials, "


@pytest.fixture
def tiny(workspace: Path) -> Path:
    """A small study of the workspace."""
    path = studyfiles.folder_of(workspace) / "tiny.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TINY)
    return path


@pytest.fixture
def app(tiny: Path, open_page: Open) -> AppTest:
    return checked(open_page(study="tiny", part="Study"))


def press_check(app: AppTest) -> AppTest:
    next(one for one in app.button if one.label == "Check").click()
    return checked(app.run())


def lines(app: AppTest) -> str:
    return "\n".join(one.value for one in app.markdown)


def errors(app: AppTest) -> str:
    return "\n".join(one.value for one in app.error)


def change(app: AppTest, path: Path, **places: object) -> AppTest:
    """The page after a change of the file, by hand."""
    draft = StudyDraft.read(path)
    for place, value in places.items():
        draft.set(place.replace("__", "."), value)
    draft.save(path)
    return app.run()


def test_what_prevents_the_build_is_said_after_a_change_and_goes_with_it(app: AppTest, tiny: Path) -> None:
    """Catches a check that waits for a click, one of the file as it was, and a shortage that stays when corrected."""
    assert READY in lines(app)
    assert not app.error
    change(app, tiny, trials__categories=60)
    assert SHORTAGE in errors(checked(app))
    assert READY not in lines(app)
    change(app, tiny, trials__categories=3)
    assert READY in lines(checked(app))
    assert not app.error


def test_a_study_whose_types_do_not_differ_is_not_green(app: AppTest, tiny: Path) -> None:
    """Catches a green tick next to a study that cannot answer its question."""
    assert ":green[:material/check_circle:] The study can be built" in lines(app)
    app = checked(change(app, tiny, sets__adversarial__split="standard", sets__adversarial__size=400))
    assert ":orange[:material/warning:] Divide the images first." in lines(app)
    assert "can be built" not in lines(app)
    assert any("Divide the set under Images in Design" in warning.value for warning in app.warning)


def test_a_shortage_stays_until_the_change_is_checked(app: AppTest, tiny: Path) -> None:
    """Catches a box that goes and comes back under the fields while a value is typed."""
    checked(change(app, tiny, trials__categories=60))
    change(app, tiny, trials__categories=61)
    if "Checking whether" in lines(app):  # else the check was quicker than the page
        assert SHORTAGE in errors(app)
    assert SHORTAGE.replace("60", "61") in errors(checked(app))


def test_a_setting_that_changes_no_trial_is_not_checked_again(app: AppTest, tiny: Path) -> None:
    """Catches a network that runs for each letter of a text."""
    jobs = set(pool()._jobs)
    change(app, tiny, contact__researcher="Ada", study__title="Another title", check__tries=3)
    assert READY in lines(app)
    assert set(pool()._jobs) == jobs


def test_the_images_of_each_category_are_shown_without_a_click(tiny: Path, open_page: Open) -> None:
    app = checked(open_page(study="tiny", part="Trials"))
    (table,) = (one.value for one in app.dataframe if "category" in one.value)
    assert "fish" in set(table["category"])
    assert table["used"].tolist() == [True] * 3 + [False] * (len(table) - 3)
    assert any("Largest study that fits" in one.value for one in app.caption)


def test_a_network_that_is_not_here_is_not_downloaded_without_a_click(tiny: Path, open_page: Open) -> None:
    """Catches a page that fetches weights because a name was typed."""
    draft = StudyDraft.read(tiny)
    draft.set("classifier.model", "timm:a_network_that_nobody_has")
    draft.save(tiny)
    jobs = set(pool()._jobs)
    app = open_page(study="tiny", part="Study")
    assert "timm:a_network_that_nobody_has is not on this machine. The check downloads it." in lines(app)
    assert set(pool()._jobs) == jobs
    assert [one.label for one in app.button if one.label == "Check"]


def test_what_takes_long_waits_for_one_click_and_then_follows(app: AppTest, tiny: Path) -> None:
    """Catches augmented copies that start by themselves, and a click for each change."""
    change(app, tiny, teaching__copies=2)
    assert "Whether examples can be found for every trial is not checked yet." in lines(checked(app))
    assert not app.error
    assert READY in lines(press_check(app))
    change(app, tiny, teaching__copies=3)
    assert READY in lines(checked(app))


def test_images_that_are_gone_are_said_and_checked_again_by_a_click(app: AppTest, tiny: Path, workspace: Path) -> None:
    """Catches an error that stays for good, because the file has not changed."""
    change(app, tiny, sets__pool={"set": "folder", "path": "../nowhere"})
    assert "nowhere" in errors(checked(app))
    press_check(app)
    assert "No folder" in errors(app)
    (workspace / "nowhere" / "fish").mkdir(parents=True)
    (workspace / "nowhere" / "fish" / "1.png").write_bytes(b"no image")
    assert "No folder" not in errors(press_check(app))


def test_warnings_are_counted_above_and_shown_in_boxes(app: AppTest, tiny: Path, open_page: Open) -> None:
    """Catches a warning that is one grey line of many below a line that says that all is well, or in one section."""
    before = [one.value for one in app.warning]
    assert before
    assert any(f"{len(before)} warning" in one.label for one in app.expander)
    draft = StudyDraft.read(tiny)
    draft.set("texts.question", "Which {nam} did it choose?")
    draft.set("texts.feedback", "It said {name}.")
    draft.save(tiny)
    app = checked(open_page(study="tiny", part="Texts"))
    assert any(f"{len(before) + 1} warning" in one.label for one in app.expander)
    (new,) = {one.value for one in app.warning} - set(before)
    assert new == "Text question: participants would read {nam} as it is written: this text has no placeholders."


def test_categories_by_name_begin_with_those_that_the_number_chose(open_page: Open, tiny: Path) -> None:
    """Catches an empty list, which no study can have, and a number that is lost on the way back."""
    app = checked(open_page(study="tiny", part="Trials"))
    before = app.dataframe[0].value
    used = before.loc[before["used"], "category"]
    app.radio(key="design.tiny.by").set_value("By name").run()
    assert sorted(StudyDraft.read(tiny).get("trials.categories")) == sorted(used)
    chosen = app.multiselect(key="design.tiny.trials.categories.names")
    assert sorted(chosen.value) == sorted(used)
    assert len(chosen.options) == len(before)  # every class with images can be chosen
    app.radio(key="design.tiny.by").set_value("How many").run()
    assert StudyDraft.read(tiny).get("trials.categories") == 3
    assert not app.exception


def test_a_setting_of_a_table_that_was_switched_off_does_not_bring_it_back(open_page: Open, mine: Path) -> None:
    """Catches strata that come back by themselves: the browser sends a widget once more that is not drawn any more."""
    draft = StudyDraft.read(mine)
    draft.set("trials.strata", {"measure": "margin"})
    draft.save(mine)
    app = open_page(study="mine", part="Trials")
    draft.remove("trials.strata")
    draft.save(mine)
    before = mine.read_text()
    app.selectbox(key="design.mine.trials.strata.measure").set_value("entropy").run()
    assert not app.exception
    assert mine.read_text() == before
