"""The Bayesian fit on the page Results, from an uploaded file to its table and its sentence."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import choose, headings, section, table, upload
from tests.study.analysis.simulated import study

DRAWS = 500


def compute(app: AppTest) -> AppTest:
    """Press the button of work that waits for a click, and wait for its end."""
    next(button for button in app.button if button.label.startswith("Compute (")).click()
    return made(app.run())


@pytest.mark.slow
def test_differences_are_a_table_and_a_sentence(app: AppTest) -> None:
    """Catches a fit that the page cannot start, draws that do not reach it, a sentence that says another thing than the
    table, and differences of too few draws."""
    upload(choose(app, "Upload a CSV file"), study(24, 8, 6, seed=5))
    section(app, "Robustness")
    made(app.selectbox(key="robustness").select("Bayesian fit: differences").run())
    made(app.number_input(key="robustness_draws").set_value(DRAWS).run())
    compute(app)
    assert not app.error
    rows = table(app, "exploratory_bayes_differences")
    assert len(rows) == 9
    assert rows["p_above"].between(0, 100).all()
    assert (rows["points_low"] < rows["points"]).all()
    assert (rows["points"] < rows["points_high"]).all()
    assert {"% points", "95% CI from", "to", "P(above 0)"} <= set(headings(app)["exploratory_bayes_differences"])
    said = next(one.value for one in app.markdown if "95% interval excludes 0" in one.value)
    clear = int(((rows["points_low"] > 0) | (rows["points_high"] < 0)).sum())
    assert f"excludes 0: {clear} of 9" in said
    assert "The fit can be believed" in said
    assert f"effective draws of {4 * DRAWS:,}, no divergences" in said
    assert any(f"4 chains of {DRAWS} draws" in one.value for one in app.caption)
    made(app.number_input(key="robustness_draws").set_value(100).run())
    compute(app)
    (error,) = app.error
    assert error.value.startswith("Do not believe this fit: ")
    assert "take more draws" in error.value


def test_draws_are_asked_for_where_they_matter(app: AppTest) -> None:
    """Catches a field next to analyses that draw nothing, and a duration that ignores it."""
    upload(choose(app, "Upload a CSV file"), study(24, 8, 6, seed=5))
    section(app, "Report")
    assert not app.number_input
    app.toggle(key="report_bayes").set_value(True).run()
    before = next(button.label for button in app.button if button.label.startswith("Compute ("))
    app.number_input(key="report_draws").set_value(10_000).run()
    assert next(button.label for button in app.button if button.label.startswith("Compute (")) != before
    section(app, "Robustness")
    assert not app.number_input
    app.selectbox(key="robustness").select("Bayesian fit: what the priors predict").run()
    assert not app.number_input
