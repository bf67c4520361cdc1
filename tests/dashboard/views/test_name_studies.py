"""The pages of a study in which units are named: Design, Studies, Coding, and Results before all is coded."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dashboard.shared import service as door
from study.service import Service
from study.simulate import simulate
from study.simulate_raters import SIMULATED, simulate_raters
from tests.dashboard.conftest import made
from tests.dashboard.views.conftest import Open, checked, open_by_link
from tests.study.names import write_names
from tests.study.unit_studies import NAMES, build_units


def coding_script() -> None:
    from dashboard.coding import page as coding

    coding.page()


def results_script() -> None:
    from dashboard.results import page as results

    results.page()


@pytest.fixture
def file(workspace: Path) -> Path:
    """A study file in the workspace's own folder of them."""
    path = workspace / "studies" / "names.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(NAMES, encoding="utf-8")
    return path


def test_design_offers_what_goes_with_names(open_page: Open, file: Path) -> None:
    """Catches a number of trials for each unit, which would be refused, and a preview that tells of two images."""
    app = made(checked(open_page(study="names", part="Trials")))
    labels = {box.label for box in [*app.number_input, *app.text_input, *app.selectbox]}
    assert {"Layer", "Number of units", "References on each side"} <= labels
    assert "Trials of each unit" not in labels
    assert any("**3 trials** for each participant: 3 units × 1" in text.value for text in app.markdown)
    assert any("images that activate it least" in said.value for said in app.caption)
    next(box for box in app.number_input if box.label == "Number of units").set_value(2).run()
    assert tomllib.loads(file.read_text(encoding="utf-8"))["units"]["channels"] == 2
    task = next(box for box in checked(open_page(study="names")).selectbox if box.label == "Task")
    assert task.options == ["Unit choice", "Unit counterfactual", "Name"]


def test_studies_shows_the_references_of_each_unit(open_studies: Open, workspace: Path) -> None:
    """Catches two images to choose from that there are none of."""
    bundle = build_units(workspace, NAMES)
    app = open_studies(study="names", section="Trials")
    assert not app.exception
    assert len(app.get("image")) == 2 * (len(bundle.manifest.trials) + len(bundle.manifest.practice))
    assert not [one for one in app.markdown if "More active" in one.value]


def test_results_wait_for_both_raters_and_coding_shows_the_agreement(workspace: Path) -> None:
    """Simulated texts, then simulated raters. Catches an accuracy of texts that are not coded, and a page that shows
    another rater's codes before both have coded everything."""
    bundle = build_units(workspace, NAMES)
    service: Service = door.get_service()
    study = service.researcher.add_study(bundle.folder)
    simulate(service, study, 6, {"bayesian_learner": 1.0}, seed=2)
    app = open_by_link(results_script, results_source=study)
    assert ["18 of 18 texts are not coded by both raters yet" in said.value for said in app.info] == [True]
    assert not app.get("plotly_chart")
    coding = open_by_link(coding_script, study=study)
    assert not coding.exception
    assert any(said.value == "Of 18 texts, not coded yet: 18 by two raters." for said in coding.caption)
    assert not any("kappa" in text.value for text in coding.markdown)
    simulate_raters(service.researcher, study, 0.8, seed=3)
    agreement, _ = service.researcher.open_agreement(study, SIMULATED)
    coding = open_by_link(coding_script, study=study)
    assert any(text.value.endswith(agreement.describe().split("texts: ")[1].replace("[", "\\[").replace("]", "\\]"))
               for text in coding.markdown)  # fmt: skip
    assert not open_by_link(results_script, results_source=study).info


def test_a_rater_codes_on_the_page(workspace: Path) -> None:
    """By its buttons. Catches a code that is stored for another text, or of another rater."""
    bundle = build_units(workspace, NAMES)
    service: Service = door.get_service()
    study = service.researcher.open_study(bundle.folder, per_condition=2)
    for number in range(2):
        write_names(service, study, [f"<b>text</b> {number}"])
    app = open_by_link(coding_script, study=study)
    app.text_input(key="coding_name").set_value("Ada")
    next(button for button in app.button if button.label == "Start coding").click().run()
    first = service.researcher.load_coding(study, rater="Ada").texts[0]
    next(button for button in app.button if button.label == "Partly").click().run()
    assert not app.exception
    listed = service.researcher.load_coding(study, rater="Ada")
    assert [text.code for text in listed.texts] == ["partly", *[None] * 5]
    assert listed.texts[0].id == first.id
    assert service.researcher.load_coding(study, rater="Bo").n_coded == 0
