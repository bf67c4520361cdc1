"""The page Power, run as Streamlit runs it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from core.types import silent
from dashboard.power import jobs as work
from dashboard.power import planning
from dashboard.power.inputs import parse_multiples
from dashboard.power.jobs import PowerAnalysis
from dashboard.power.tables import tabulate_sample_sizes
from dashboard.shared.jobs import pool
from study.analysis.planned import contrasts
from study.analysis.planned.analysis import significance
from study.analysis.power import simulation as power
from study.analysis.power import truths
from study.plan import config
from study.plan.draft import StudyDraft
from study.plan.preregistration import NESTED, AnalysisPlan, PlannedContrast, Stopping
from study.workspace import parallel
from tests.conftest import ROOT
from tests.dashboard.conftest import PATIENCE_S, made
from tests.study.analysis.simulated import analyze_as_in_the_paper, study

DEMO = ROOT / "data" / "studies" / "demo.toml"


def script() -> None:
    from dashboard.power import page as power

    power.page()


@pytest.fixture(autouse=True)
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: what `AppTest` runs as its main file cannot be imported by another."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


def opened(**query: str) -> AppTest:
    app = AppTest.from_function(script)
    for name, value in {"study": "demo", **query}.items():
        app.query_params[name] = value
    return app.run()


@pytest.fixture
def small(workspace: Path) -> Path:
    """The demo's study file with a fifth of its participants, and the paper's models and tests.

    They have random intercepts only and take a tenth of the time; and they are not what the engine does unasked.
    """
    path = workspace / "studies" / "small.toml"
    path.parent.mkdir()
    path.write_text(DEMO.read_text(encoding="utf-8").replace('name = "demo"', 'name = "small"'), encoding="utf-8")
    draft = StudyDraft.read(path)
    for place, value in {"participants": 8, "models": NESTED, "tests": "chi_square"}.items():
        draft.set(f"analysis.{place}", value)
    draft.save(path)
    return path


def test_the_curve_is_the_engines(small: Path) -> None:
    """The same studies as the package simulates for Table 1.

    Catches other sizes, seeds, models, tests or conditions.
    """
    app = opened(study="small", sizes="4", studies="10", effects="1")
    assert not app.dataframe
    assert app.button(key="simulate").label.startswith("Simulate (")
    made(app.button(key="simulate").click().run())
    settings = config.read(small)
    world = truths.AdditiveTruth(
        truths.TABLE_1,
        conditions=settings.conditions,
        categories=settings.trials.categories,
        per_type=settings.trials.per_type,
    )
    expected = power.curve(world, [4, 8], studies=10, workers=1, models=settings.plan.models, tests=settings.plan.tests)
    pd.testing.assert_frame_equal(app.dataframe[0].value, power.with_cost(expected, 4, 3.0))
    assert any("planned 8 participants per condition** (32 in total, 96 EUR)" in text.value for text in app.markdown)
    pd.testing.assert_frame_equal(app.table[1].value, tabulate_sample_sizes(expected, 4, 3.0, "EUR"))


def test_it_can_be_stopped(small: Path) -> None:
    app = opened(study="small", sizes="40", studies="500")
    app.button(key="simulate").click().run()
    stop = next(button for button in app.button if button.label == "Stop")
    stop.click().run()
    job = pool().find(stop.key.removeprefix("stop_"))
    assert job is not None
    assert job.wait(PATIENCE_S)
    assert job.state == "cancelled"
    app.run()
    assert not app.get("progress")
    assert any(button.label.startswith("Compute") for button in app.button)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"sizes": "many"}, "Participants per condition 'many' is not a list of numbers"),
        ({"sizes": "1,5"}, "between 2 and 2,000 participants"),
        ({"effects": "half"}, "Effect-size multipliers 'half' is not a list of numbers"),
    ],
)
def test_wrong_numbers_are_a_sentence(workspace: Path, query: dict[str, str], said: str) -> None:
    app = opened(**query)
    assert not app.exception
    assert said in app.error[0].value


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [("effects", "0.5,1", text) for text in ("nan", "-1,1e9", "abc")] + [("sizes", "5,6", "1,5")],
)
def test_a_wrong_value_is_not_written_to_the_link(workspace: Path, key: str, right: str, wrong: str) -> None:
    """Catches an error message that comes back with every copy of the link."""
    app = opened()
    app.text_input(key=key).set_value(right).run()
    assert app.query_params[key] == right
    app.text_input(key=key).set_value(wrong).run()
    assert app.error
    assert app.number_input(key="studies")
    assert app.query_params[key] == right
    app.text_input(key=key).set_value(right).run()
    assert not app.error
    linked = opened(**{key: wrong})
    assert linked.error
    assert key not in linked.query_params
    assert opened(**{key: right}).text_input(key=key).value == right


def test_simulated_people_need_a_built_study(workspace: Path) -> None:
    app = opened()
    app.selectbox(key="pilot_source").select("Simulated participants").run()
    assert "Build the study first" in app.error[0].value


def test_a_pilots_effects_are_what_is_simulated(small: Path) -> None:
    """Against the package from the same file."""
    app = opened(study="small", sizes="4", studies="10", effects="1")
    app.selectbox(key="pilot_source").select("Upload a CSV file").run()
    assert app.info[0].value.startswith("Choose a CSV file with one row per response.")
    content = study(24, 8, 6, seed=5).to_csv(index=False).encode()
    app.file_uploader(key="pilot_file").set_value(("pilot.csv", content, "text/csv")).run()
    made(app.button(key="simulate").click().run())
    settings = config.read(small)
    model = analyze_as_in_the_paper(study(24, 8, 6, seed=5)).models["interaction"]  # a truth has intercepts
    world = truths.from_pilot(model, settings.conditions, settings.trials.categories, settings.trials.per_type)
    expected = power.curve(world, [4, 8], studies=10, workers=1, models=settings.plan.models, tests=settings.plan.tests)
    pd.testing.assert_series_equal(app.dataframe[-1].value["power"], expected["power"])


def test_the_assumed_accuracy_is_shown_before_anything_is_simulated(workspace: Path) -> None:
    """Catches a curve of effects that the page never shows.

    Oracle: the coefficients of Table 1, averaged over random intercepts by drawing them.
    """
    app = opened(effects="1,0.5")
    shown = app.table[0].value
    assert list(shown.columns[:2]) == ["Condition", "Multiplier"]
    assert shown["Condition"].tolist() == [
        "No explanation",
        *("Saliency maps",) * 2,
        *("Examples",) * 2,
        *("Both explanations",) * 2,
    ]
    assert shown["Multiplier"].tolist() == ["–", *("×\N{NO-BREAK SPACE}1", "×\N{NO-BREAK SPACE}0.5") * 3]
    sd = np.hypot(truths.PARTICIPANT_SD, truths.CATEGORY_SD)
    none, half = (expit(eta + sd * np.random.default_rng(0).standard_normal(10**6)) for eta in (-1.06, -1.06 + 0.505))
    written = re.fullmatch(r"([\d.]+)% \(\+([\d.]+)\)", shown.iloc[2]["AI wrong (adversarial)"])
    assert written is not None
    assert float(written[1]) == pytest.approx(100 * half.mean(), abs=0.1)
    assert float(written[2]) == pytest.approx(100 * (half.mean() - none.mean()), abs=0.1)
    captions = [caption.value for caption in app.caption]
    assert any("[Folke et al. (2021)](https://arxiv.org/abs/2106.09106), Table 1" in text for text in captions)
    said = "A test is significant if it has p below the plan's alpha of .05. The target power is 80%."
    assert any(said in text for text in captions)


def test_the_planned_contrasts_are_a_choice(small: Path) -> None:
    """Catches a page that gives the power of two tests of models where the plan names nine contrasts.

    Oracle: the engine with the paper's contrasts, which the demo plans.
    """
    app = opened(study="small", sizes="4", studies="10", effects="1")
    app.toggle(key="contrasts").set_value(True).run()
    made(app.button(key="simulate").click().run())
    plan = config.read(small).plan
    world = PowerAnalysis(config.read(small), (4,)).truth()
    expected = power.curve(
        world, [4, 8], studies=10, workers=1, models=plan.models, tests=plan.tests, contrasts=contrasts.DEFAULT
    )
    pd.testing.assert_series_equal(app.dataframe[0].value["power"], expected["power"])
    shown = app.table[2].value
    assert list(shown.columns) == ["Contrast", "4", "8 (planned)", "Needed"]
    assert len(shown) == 9
    assert len(app.table[1].value) == 2  # of the models alone


def test_equivalence_bounds_that_the_plan_does_not_have_can_be_tried(workspace: Path) -> None:
    """Catches a field that the simulated studies do not follow, that a link loses, or that fails by a traceback."""
    app = opened(sizes="4", studies="10", effects="0", contrasts="true", equivalence="-7, 9")
    assert app.text_input(key="equivalence").value == "-7, 9"
    assert any("Equivalence within −7 to 9 percentage points" in one.value for one in app.caption)
    app.text_input(key="equivalence").set_value("wide").run()
    assert [one.value for one in app.error] == [
        "The equivalence bounds 'wide' cannot be read: write 5 for −5 to 5, or -5,10."
    ]
    planned = config.read(DEMO)
    assert PowerAnalysis(planned, (4,), other_bounds=(-7.0, 9.0)).bounds == (-7.0, 9.0)
    assert PowerAnalysis(planned, (4,)).bounds is None


def test_contrasts_with_what_is_not_simulated_are_left_out() -> None:
    """Catches an unknown condition in every simulated study of a plan that contrasts a placebo."""
    settings = config.read(DEMO)
    plan = AnalysisPlan(contrasts=(PlannedContrast(more="both"), PlannedContrast(more="both", less="random_maps")))
    settings = settings.model_copy(update={"analysis": plan, "conditions": ("none", "both", "random_maps")})
    question = PowerAnalysis(settings, (4,), with_contrasts=True)
    assert [one.name for one in question.contrasts] == ["both - none"]
    assert any("Holm's correction counts the other contrasts alone." in note for note in question.notes)
    assert PowerAnalysis(settings, (4,)).contrasts == ()


def test_a_pilot_of_simulated_participants_is_no_evidence(small: Path) -> None:
    """Catches effects of simulated participants that are assumed without the warning that Results shows."""
    app = opened(study="small", sizes="4", studies="10", effects="1")
    app.selectbox(key="pilot_source").select("Upload a CSV file").run()
    content = study(24, 8, 6, seed=5).assign(mode="sim").to_csv(index=False).encode()
    app.file_uploader(key="pilot_file").set_value(("pilot.csv", content, "text/csv")).run()
    assert app.warning[0].value.startswith("Simulated participants: not evidence (")
    made(app.button(key="simulate").click().run())
    assert "Simulated participants: not evidence" in app.get("plotly_chart")[0].proto.spec


def test_after_interim_analyses_the_last_test_has_less_than_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches the power of a test at .05 that the results judge by the final bound of the plan."""
    settings = config.read(DEMO)
    contrast = PlannedContrast(more="both")
    plan = AnalysisPlan(participants=40, stopping=Stopping(looks=(20, 40), contrast=contrast, spending="pocock"))
    question = PowerAnalysis(settings.model_copy(update={"analysis": plan}), (4,))
    given: dict[str, float] = {}
    monkeypatch.setattr(power, "curve", lambda *_, **options: given.update(options) or pd.DataFrame())
    question.curve(silent)
    assert given["alpha"] == significance(plan, None) < 0.04
    assert question.criterion.startswith("p below .0277, ")
    assert question.criterion.endswith("which the interim analyses leave of the plan's alpha of .05 for the last one")
    assert PowerAnalysis(settings, (4,)).alpha == 0.05


def test_other_questions_have_other_keys() -> None:
    """Catches a curve shown for what it was not made of."""
    settings = config.read(DEMO)
    base = PowerAnalysis(settings, (10,))
    others = [
        PowerAnalysis(settings, (11,)),
        PowerAnalysis(settings, (10,), studies=201),
        PowerAnalysis(settings, (10,), effects=(0.5,)),
        PowerAnalysis(settings, (10,), seed=1),
        PowerAnalysis(settings, (10,), with_contrasts=True),
        PowerAnalysis(settings, (10,), with_contrasts=True, other_bounds=(-5.0, 5.0)),
        PowerAnalysis(settings.model_copy(update={"conditions": ("none", "both")}), (10,)),
    ]
    assert len({question.task().key for question in (base, *others)}) == 8


def test_the_estimate_scales_a_timed_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant of another machine said 2 s for what took 31: the start of the processes was left out.

    Closed form: 3 s of start, and 6 studies of 30 and of 50 per condition at .4 s for 20, on two processes.
    """
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(parallel, "measure_start", lambda work: 3.0)
    monkeypatch.setattr(power, "time_study", lambda truth, models, tests, n, *_: 0.02 * n)
    monkeypatch.setattr(work, "_timed", {})
    work._time_start.cache_clear()
    question = PowerAnalysis(config.read(DEMO), (30, 50), studies=3, effects=(0.5, 1.0))
    assert question.estimate() == pytest.approx(3 + 6 * (30 + 50) * 0.02 / 2)
    assert question.estimate(workers=1) == pytest.approx(6 * (30 + 50) * 0.02)
    work._time_start.cache_clear()


def test_assumed_slopes_are_simulated_and_named(small: Path) -> None:
    """A curve could only be asked of a world in which the explanations help everywhere alike.

    Oracle: the engine's curve of such a world, and not that of a world without slopes.
    """
    app = opened(study="small", sizes="4", studies="10", effects="1", slope_category="2.5")
    assert any("categories differ in the effect of each explanation" in caption.value for caption in app.caption)
    assert any("no random slopes by category" in caption.value for caption in app.caption)
    assert any("leave out random slopes that the design supports" in caption.value for caption in app.caption)
    made(app.button(key="simulate").click().run())
    settings = config.read(small)
    question = PowerAnalysis(settings, (4,), slope_sds={"category": 2.5})
    world = truths.AdditiveTruth(
        truths.TABLE_1,
        conditions=settings.conditions,
        categories=settings.trials.categories,
        per_type=settings.trials.per_type,
        category_slope_sd=2.5,
    )
    assert question.truth() == world
    expected = power.curve(world, [4, 8], studies=10, workers=1, models=settings.plan.models, tests=settings.plan.tests)
    pd.testing.assert_series_equal(app.dataframe[0].value["power"], expected["power"])
    assert question.task().key != PowerAnalysis(settings, (4,)).task().key
    assert PowerAnalysis(settings, (4,)).assumptions is None


def test_conditions_outside_the_factors_are_named_and_not_simulated() -> None:
    """Catches a KeyError for a study with a placebo, and one without contrasts in which every fit fails."""
    settings = config.read(DEMO)
    question = PowerAnalysis(settings.model_copy(update={"conditions": ("none", "both", "random_maps")}), (4,))
    frame = question.truth().study(4, np.random.default_rng(0))
    assert set(zip(frame["saliency"], frame["examples"], strict=True)) == {(0, 0), (1, 1)}
    assert any("leave them out: Random maps. Their pay is included." in note for note in question.notes)
    alone = PowerAnalysis(settings.model_copy(update={"conditions": ("none", "random_maps")}), (4,))
    with pytest.raises(
        ForetellError, match="at least two of these conditions to compare: No explanation, Saliency maps"
    ):
        alone.truth()


def test_theories_of_people_have_no_slopes() -> None:
    """Catches an assumption that is named and not simulated."""
    question = PowerAnalysis(config.read(DEMO), (4,), mixture={"map_reader": 1.0}, slope_sds={"category": 1.0})
    with pytest.raises(ForetellError, match="no random slopes"):
        question.truth()


def test_half_the_effect_and_the_planned_size_are_simulated_unless_asked_otherwise() -> None:
    """Catches advice to check half the effect next to a field that asks for the whole one alone."""
    assert parse_multiples(planning.EFFECTS, "effects") == (1.0, 0.5)
    settings = config.read(DEMO)
    planned = settings.model_copy(update={"analysis": AnalysisPlan(participants=30)})
    assert PowerAnalysis(planned, (10, 60)).with_planned_size().sizes == (10, 30, 60)
    assert PowerAnalysis(settings, (10, 40)).with_planned_size().sizes == (10, 40)
    alone = settings.model_copy(update={"analysis": AnalysisPlan(participants=1)})
    assert PowerAnalysis(alone, (10,)).with_planned_size().sizes == (10,)
