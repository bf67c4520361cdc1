"""The pages of a study about units: what Design offers and draws, and what Studies, Teaching and Power say of it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from core.errors import ForetellError
from dashboard.power.jobs import PowerAnalysis
from study.analysis.responses.reading import prepare
from study.plan import config
from tests.dashboard.conftest import made
from tests.dashboard.views.conftest import Open, checked, open_by_link
from tests.dashboard.views.test_power import opened
from tests.study.analysis.test_unit_results import simulate
from tests.study.unit_studies import UNITS, build_units


def teaching_script() -> None:
    from dashboard.teaching import page as teaching

    teaching.page()


@pytest.fixture
def file(workspace: Path) -> Path:
    """A study file about units in the workspace's own folder of them."""
    path = workspace / "studies" / "units.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(UNITS, encoding="utf-8")
    return path


def test_design_offers_what_goes_with_units(open_page: Open, file: Path) -> None:
    """Catches settings of heatmaps and trial types that a study about units cannot have, a change that is not written,
    and a task about predictions that would make the file invalid."""
    app = made(checked(open_page(study="units", part="Trials")))
    labels = {box.label for box in [*app.number_input, *app.text_input, *app.selectbox]}
    assert {"Layer", "Number of units", "Trials of each unit", "References on each side"} <= labels
    assert not {"Heatmap method", "Examples are chosen by", "Number of categories"} & labels
    conditions = next(box for box in app.multiselect if box.label == "Conditions")
    assert conditions.options == ["No explanation", "Examples"]
    assert any("**6 trials** for each participant: 3 units × 2" in text.value for text in app.markdown)
    assert any(
        said.value.startswith("Unit features.4:") and "Participants do not see" in said.value for said in app.caption
    )
    assert any(button.label == "Another unit" for button in app.button)
    next(box for box in app.number_input if box.label == "Number of units").set_value(2).run()
    assert tomllib.loads(file.read_text(encoding="utf-8"))["units"]["channels"] == 2
    first = checked(open_page(study="units"))
    task = next(box for box in first.selectbox if box.label == "Task")
    assert task.options == ["Unit choice", "Unit counterfactual", "Name"]
    assert not [box for box in first.selectbox if box.label == "Adversarial"]


def test_pages_of_a_built_study_say_units(open_studies: Open, workspace: Path) -> None:
    """The oracle is the bundle. Catches a predicted class, a heatmap or a lesson of a study that has none."""
    bundle = build_units(workspace)
    trial = bundle.manifest.trials[0]
    assert trial.unit is not None
    app = open_studies(study="units", section="Trials")
    assert not app.exception
    known = dict(app.table[0].value.to_numpy().tolist())
    assert known["Unit"] == trial.unit.name
    assert known["Difference in activation (SDs)"] == f"{trial.unit.gap:.2f}"
    assert not {"Prediction", "True class", "Heatmap method"} & {*known}
    assert len(app.get("image")) == 4 * 6
    taught = open_by_link(teaching_script, study="units")
    assert [said.value for said in taught.info] == [
        "This study asks about units of the network. It has no examples that teach a prediction."
    ]


def test_power_of_units_needs_simulated_participants(workspace: Path, file: Path) -> None:
    """Catches the paper's accuracies and a pilot's trial types, which units do not have."""
    build_units(workspace)
    app = opened(study="units", sizes="4", effects="1")
    assert app.selectbox(key="pilot_source").options[0].startswith("Simulated participants")
    assert "Folke et al. (2021), Table 1" not in app.selectbox(key="pilot_source").options
    assert not app.error
    assert app.table[0].value.set_index("Condition").loc["No explanation", "Units"] == "50.0%"
    with pytest.raises(ForetellError, match="A pilot gives the effects of each trial type, and the task 'unit_choice'"):
        PowerAnalysis(config.read(file), (4,), pilot=prepare(simulate())).truth()
