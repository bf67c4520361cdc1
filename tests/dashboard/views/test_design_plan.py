"""The section Plan of the page Design: what is chosen is in the study file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from dashboard.design.plan import INTERCEPTS, SLOPES
from study.analysis.bayes.priors import Priors
from study.plan import config
from study.plan.draft import StudyDraft
from study.plan.preregistration import NESTED
from tests.dashboard.views.conftest import Open
from tests.dashboard.views.test_design import named, settle


def read_plan(path: Path) -> dict[str, Any]:
    """The plan in the file, read by the standard library."""
    return dict(tomllib.loads(path.read_text(encoding="utf-8")).get("analysis", {}))


def test_the_papers_models_have_the_papers_tests(open_page: Open, mine: Path) -> None:
    """Catches "as in the paper" with F tests that are judged together, and tests that stay when the models go."""
    app = open_page(study="mine", part="Plan")
    named(app.radio, "Mixed models").set_value(INTERCEPTS)  # type: ignore[attr-defined]
    settle(app)
    plan = config.read(mine).analysis
    assert (plan.models, plan.tests) == (NESTED, "chi_square")
    named(app.radio, "Mixed models").set_value(SLOPES)  # type: ignore[attr-defined]
    settle(app)
    assert read_plan(mine).keys().isdisjoint({"models", "tests"})


def test_planned_contrasts_are_rows_of_the_file(open_page: Open, mine: Path) -> None:
    """Catches a row that overwrites another, and defaults that stay away when the last row is removed."""
    app = open_page(study="mine", part="Plan")
    named(app.radio, "Planned contrasts").set_value("Contrasts of your own")
    settle(app)
    named(app.button, "Add a contrast").click()
    settle(app)
    named(app.selectbox, "Condition").set_value("saliency")  # the first row's
    settle(app)
    second = [one for one in app.multiselect if one.label == "Trial types"][1]
    second.set_value(["std_correct"])
    settle(app)
    every = ["adv_incorrect", "std_incorrect", "std_correct"]
    assert read_plan(mine)["contrasts"] == [
        {"more": "saliency", "less": "none", "trial_types": every},
        {"more": "both", "less": "none", "trial_types": ["std_correct"]},
    ]
    settings = config.read(mine)
    assert [one.more for one in settings.analysis.contrasts] == ["saliency", "both"]
    for _ in range(2):
        named(app.button, "Remove").click()
        settle(app)
    assert "contrasts" not in read_plan(mine)


def set_prior(app: AppTest, label: str, value: float) -> None:
    named(app.number_input, label).set_value(value)  # type: ignore[attr-defined]
    settle(app)


def test_priors_are_in_the_file_where_they_differ_from_the_defaults(open_page: Open, mine: Path) -> None:
    """Catches a field that writes nothing, defaults in the file, and a study that opens again with other priors."""
    before = read_plan(mine)
    app = open_page(study="mine", part="Plan")
    default = "normal (0, 1.5) for the intercept at the predictors' means, normal (0, 1) for each effect"
    assert any(default in one.value for one in app.caption)
    set_prior(app, "Scale of random effects (log-odds)", 0.5)
    assert read_plan(mine)["priors"] == {"random_sd": 0.5}
    set_prior(app, "LKJ parameter of correlations", 4)
    set_prior(app, "SD of the intercept (log-odds)", 2.5)
    assert read_plan(mine)["priors"] == {"random_sd": 0.5, "correlation": 4, "intercept_sd": 2.5}
    again = open_page(study="mine", part="Plan")
    assert [one.value for one in again.number_input if "design.mine.analysis.priors" in str(one.key)] == [2.5, 0.5, 4]
    assert any("half-normal (0.5)" in one.value and "LKJ (4)" in one.value for one in again.caption)
    assert Priors.of_plan(config.read(mine).analysis) == Priors(1.0, 2.5, 0.5, 4)
    for label, value in (("SD of the intercept (log-odds)", 1.5), ("Scale of random effects (log-odds)", 1)):
        set_prior(again, label, value)
    assert read_plan(mine)["priors"] == {"correlation": 4}
    set_prior(again, "LKJ parameter of correlations", 2)
    assert read_plan(mine) == before


def test_means_are_planned_line_by_line(open_page: Open, mine: Path) -> None:
    """Catches fields that write nothing or defaults, and means of no factor that are refused nowhere on the page."""
    before = read_plan(mine)
    app = open_page(study="mine", part="Plan")
    named(app.text_area, "Means of").set_value("saliency * examples | trial_type\n\nexamples ")  # type: ignore[attr-defined]
    settle(app)
    named(app.selectbox, "Correction of the contrasts").set_value("mvt")  # type: ignore[attr-defined]
    settle(app)
    assert read_plan(mine)["means"] == {"of": ["saliency * examples | trial_type", "examples"], "adjust": "mvt"}
    assert config.read(mine).analysis.means.of == ("saliency * examples | trial_type", "examples")
    named(app.text_area, "Means of").set_value("network")  # type: ignore[attr-defined]
    settle(app)
    assert sum("means 'network' cannot be read: name each of" in one.value for one in app.caption) == 1
    named(app.text_area, "Means of").set_value("")  # type: ignore[attr-defined]
    named(app.selectbox, "Correction of the contrasts").set_value("holm")  # type: ignore[attr-defined]
    settle(app)
    assert read_plan(mine) == before


def test_an_improper_prior_is_refused_where_it_is_typed(open_page: Open, mine: Path) -> None:
    """Catches a refusal that no field shows, or that is shown of proper priors."""
    app = open_page(study="mine", part="Plan")
    said = ":red[Must be greater than 0 (it is 0.0)]"
    assert said not in [one.value for one in app.caption]
    set_prior(app, "Scale of random effects (log-odds)", 0)
    assert [one.value for one in app.caption].count(said) == 1
    assert not any("half-normal" in one.value for one in app.caption)
    set_prior(app, "Scale of random effects (log-odds)", 0.5)
    assert said not in [one.value for one in app.caption]


def test_a_prior_that_the_file_has_wrong_is_shown_and_stays(open_page: Open, mine: Path) -> None:
    """Catches a page that fails over a number in the file, or shows another one. Expected: the file's own refusal."""
    draft = StudyDraft.read(mine)
    draft.set("analysis.priors", {"random_sd": 11})
    (fault,) = draft.check()[1]
    draft.save(mine)
    app = open_page(study="mine", part="Plan")
    assert f":red[M{fault.text[1:]}]" in [one.value for one in app.caption]
    assert named(app.text_input, "Scale of random effects (log-odds)").value == "11"  # type: ignore[attr-defined]
    assert read_plan(mine)["priors"] == {"random_sd": 11}


def test_interim_analyses_of_ones_own_sizes_and_bounds(open_page: Open, mine: Path) -> None:
    """Catches a planned end that differs from the last size, and sizes that are written although they are refused."""
    app = open_page(study="mine", part="Plan")
    for widgets, label, value in (
        ("toggle", "Interim analyses can end the collection", True),
        ("text_input", "Participants per condition at each analysis", "10, 25, 40, 60"),
        ("selectbox", "Bounds", "pocock"),
    ):
        named(getattr(app, widgets), label).set_value(value)
        settle(app)
    plan = read_plan(mine)
    assert plan["stopping"] == {"looks": [10, 25, 40, 60], "contrast": {"more": "both"}, "spending": "pocock"}
    assert plan["participants"] == 60
    assert config.read(mine).analysis.stopping is not None
    for wrong in ("20, 10", "1, 5", "ten", ""):
        named(app.text_input, "Participants per condition at each analysis").set_value(wrong)
        settle(app)
        assert any("are not sizes of interim analyses" in one.value for one in app.error)
    assert read_plan(mine) == plan


def test_every_condition_for_each_participant_is_a_choice(open_page: Open, mine: Path) -> None:
    """Catches a switch that does not write, a number of trials that no participant has, and “per condition” for all."""
    app = open_page(study="mine", part="Trials")
    (switch,) = (one for one in app.toggle if one.key == "design.mine.allocation.within")
    switch.set_value(True)
    settle(app)
    assert StudyDraft.read(mine).get("allocation.within") is True
    said = " ".join(one.value for one in app.markdown)
    assert "**24 trials** for each participant: 6 in each of 4 conditions, drawn from 30 (10 categories" in said
    labels = [one.label for one in open_page(study="mine", part="Plan").number_input]
    assert "Participants, each in every condition" in labels
    assert "Participants per condition" not in labels
