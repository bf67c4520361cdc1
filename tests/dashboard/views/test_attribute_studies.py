"""The pages of a study about attributes: what Design offers, and what Studies, Teaching, Power and replay say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from core.errors import ForetellError
from dashboard.monitor.replay import _mark_attributes
from dashboard.power.jobs import PowerAnalysis
from study.analysis.responses.reading import prepare
from study.collection.replay import build_replay, describe_response
from study.plan import config
from study.service import Service
from study.store import repository
from tests.dashboard.conftest import made
from tests.dashboard.views.conftest import Open, checked, open_by_link
from tests.dashboard.views.test_power import opened
from tests.dashboard.views.test_unit_studies import teaching_script
from tests.study.analysis.test_attribute_results import simulate
from tests.study.attribute_studies import ATTRIBUTES, build_attributes
from tests.study.participants import answer, to_trials


@pytest.fixture
def file(workspace: Path) -> Path:
    """A study file about attributes in the workspace's own folder of them."""
    path = workspace / "studies" / "attributes.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ATTRIBUTES, encoding="utf-8")
    return path


def test_design_offers_what_goes_with_attributes(open_page: Open, file: Path) -> None:
    """Catches settings of examples and trial types, a change that is not written, and a task that makes the file
    invalid."""
    app = made(checked(open_page(study="attributes", part="Trials")))
    areas = {box.label: box for box in app.text_area}
    assert {"Attributes that the AI uses", "Attributes that it does not use", "The two classes"} <= {*areas}
    labels = {box.label for box in [*app.number_input, *app.text_input, *app.selectbox]}
    assert {"Images in a grid", "Trials", "Practice trials"} <= labels
    assert not {"Examples are chosen by", "Number of categories", "Trials of each unit"} & labels
    conditions = next(box for box in app.multiselect if box.label == "Conditions")
    assert conditions.options == ["No explanation", "Saliency maps"]
    assert any(
        "**2 trials** for each participant, each with 10 images and 5 attributes" in one.value for one in app.markdown
    )
    assert any(
        said.value == "The AI uses the background, the shape. Participants do not see this." for said in app.caption
    )
    assert any(button.label == "Another grid" for button in app.button)
    areas["Attributes that the AI uses"].set_value("the background").run()
    assert tomllib.loads(file.read_text(encoding="utf-8"))["attributes"]["used"] == ["the background"]
    first = checked(open_page(study="attributes"))
    task = next(box for box in first.selectbox if box.label == "Task")
    assert task.options == ["Discover"]
    assert not [box for box in first.selectbox if box.label == "Adversarial"]


def test_pages_of_a_built_study_say_attributes(open_studies: Open, workspace: Path) -> None:
    """The oracle is the bundle. Catches a predicted class or a lesson of a study that has none."""
    build_attributes(workspace)
    app = open_studies(study="attributes", section="Trials")
    assert not app.exception
    known = dict(app.table[0].value.to_numpy().tolist())
    assert known["Attributes used"] == "the background, the shape"
    assert not {"Prediction", "True class", "Unit"} & {*known}
    assert len(app.get("image")) == 2 * 3  # with practice
    taught = open_by_link(teaching_script, study="attributes")
    assert [said.value for said in taught.info] == [
        "This study asks about attributes. It has no examples that teach a prediction."
    ]


def test_power_of_attributes_needs_simulated_participants(workspace: Path, file: Path) -> None:
    """Catches the paper's accuracies and a pilot's trial types, which attributes do not have."""
    build_attributes(workspace)
    app = opened(study="attributes", sizes="4", effects="1")
    assert app.selectbox(key="pilot_source").options[0].startswith("Simulated participants")
    assert not app.error
    assert {"Used by the AI", "Not used"} <= {*app.table[0].value.columns}
    with pytest.raises(ForetellError, match="and the task 'discover' asks about attributes"):
        PowerAnalysis(config.read(file), (4,), pilot=prepare(simulate())).truth()


def test_a_replay_says_which_attributes_were_chosen_and_used(workspace: Path) -> None:
    """Catches letters in place of names, and a mark on the wrong attribute."""
    bundle = build_attributes(workspace)
    with Service(workspace) as service:
        study = service.researcher.open_study(bundle.folder, per_condition=1)
        token = service.participant.begin(study)
        to_trials(service, token)
        for index, text in enumerate(("-", "bc")):
            assert service.participant.record(token, answer(index, "1", place=text)).code == 201
        replay = service.workspace.store.read(
            lambda db: build_replay(db, next(iter(repository.every_session(db))), bundle.manifest)
        )
    practice, first, *_ = replay.trials
    assert describe_response(practice).startswith("inexact (chosen: none of them), ")
    assert describe_response(first).startswith("inexact (chosen: its height, the background), ")
    assert _mark_attributes(first) == {
        "the background": ["AI uses it", "Chosen"],
        "the shape": ["AI uses it"],
        "its height": ["Chosen"],
    }
