"""The page Power for studies that the paper's accuracies do not fit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from dashboard.power.jobs import PowerAnalysis
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.plan import config
from study.plan.preregistration import NESTED, AnalysisPlan
from study.tasks.scale import make_even_scale
from tests.dashboard.views.test_power import DEMO, opened

RATINGS = AdditiveTruth(TABLE_1, conditions=("none", "saliency"), categories=8, levels=make_even_scale(5))
PAPER = "Folke et al. (2021), Table 1"


def upload(app: AppTest, world: AdditiveTruth) -> AppTest:
    """Choose a pilot of a world."""
    app.selectbox(key="pilot_source").select("Upload a CSV file").run()
    rows = world.study(10, np.random.default_rng(1)).assign(task="rating")
    assert world.levels is not None
    rows["n_levels"] = len(world.levels.values)
    return app.file_uploader(key="pilot_file").set_value(("p.csv", rows.to_csv(index=False).encode(), "text/csv")).run()


def test_a_study_of_ratings_is_planned_by_a_pilots_mean_levels(workspace: Path) -> None:
    """Catches the paper's accuracies offered for ratings, a mean level as a percentage, and bounds in points."""
    app = opened(study="rating", sizes="4", effects="1")
    assert PAPER in opened(study="demo").selectbox(key="pilot_source").options
    assert PAPER not in app.selectbox(key="pilot_source").options
    assert "Build the study first" in app.error[0].value
    upload(app, RATINGS)
    assert not app.error
    assert any(text.value == "**Assumed mean level**" for text in app.markdown)
    shown = app.table[0].value.set_index("Condition")["AI wrong (adversarial)"]
    assert re.fullmatch(r"\d\.\d\d", shown["No explanation"])
    assert re.fullmatch(r"\d\.\d\d \(\+\d\.\d\d\)", shown["Saliency maps"])
    assert any("In brackets: levels above no explanation." in text.value for text in app.caption)
    app.toggle(key="contrasts").set_value(True).run()
    assert not any(box.key == "equivalence" for box in app.text_input)


def test_a_pilot_with_another_scale_is_refused(workspace: Path) -> None:
    """Catches thresholds of seven levels for a study of five."""
    app = upload(opened(study="rating", sizes="4", effects="1"), replace(RATINGS, levels=make_even_scale(7)))
    assert "The pilot's responses are levels 1 to 7, and this study's are levels 1 to 5" in app.error[0].value


def test_covariates_need_the_trials_of_a_built_study() -> None:
    """Catches a plan with covariates whose models have no such column, and a refusal without the remedy."""
    study = config.read(DEMO)
    models = {name: f"{terms} + gain + (1 + gain || participant) + (1 | category)" for name, terms in NESTED.items()}
    planned = study.model_copy(update={"analysis": AnalysisPlan(models=models)})
    with pytest.raises(ForetellError, match=r"name gain, which only the trials of a built study have: build it and"):
        PowerAnalysis(planned, (4,)).truth()
