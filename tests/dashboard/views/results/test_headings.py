"""The headings of the tables of Results are words; their files keep the columns' names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import numbers
from study.analysis.exploratory.analysis import EXPLORATORY
from study.analysis.planned import nested
from study.analysis.responses import reading as responses
from study.analysis.words.cells import list_forms
from study.analysis.words.wording import IN_WORDS
from tests.dashboard.conftest import made
from tests.dashboard.test_headings import is_written_out
from tests.dashboard.views.results.conftest import choose, headings, script, section, tables, upload
from tests.dashboard.views.results.test_results import planned_study
from tests.study.analysis.simulated import study

SECTIONS = ("Main result", "Models", "Contrasts", "Checks")


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The tables' files by name, as they are offered."""
    taken: dict[str, str] = {}
    offer = numbers.files.offer_download

    def take(label: str, content: Callable[[], str], name: str, mime: str) -> None:
        taken[label] = content()
        offer(label, content, name, mime)

    monkeypatch.setattr(numbers.files, "offer_download", take)
    return taken


def read_first_row(content: str) -> list[str]:
    return next(csv.reader(io.StringIO(content)))


def test_every_section_has_headings_in_words_and_files_with_names(app: AppTest, downloads: dict[str, str]) -> None:
    """Catches a code over a column of any table, and a heading that got into a file."""
    choose(app, "Main")
    seen: dict[str, list[str]] = {}
    for name in SECTIONS:
        section(app, name)
        seen |= headings(app)
        for table, frame in tables(app).items():
            if f"{table}.csv" in downloads:
                assert read_first_row(downloads[f"{table}.csv"]) == list(frame.columns)
    assert set(seen) >= {"figure1", "quality", "models", "table1", "variances", "profiles", "variance_profiles"}
    assert set(seen) >= {"contrasts", "effects", "slopes_tests", "slopes_contrasts", "exploratory_crosschecks"}
    assert {heading for written in seen.values() for heading in written if not is_written_out(heading)} == set()
    assert seen["models"] == [
        "Model", "Parameters", "Log-likelihood", "AIC", "BIC", "χ²", "df", "Denominator df", "F", "p", "p (Holm)",
    ]  # fmt: skip
    assert seen["table1"] == ["Term", "Estimate", "SE", "95% CI from", "to", "t", "df", "p", "Stars", "Odds ratio"]
    assert read_first_row(downloads["models.csv"]) == [
        "model", "df", "loglik", "aic", "bic", "chisq", "chisq_df", "df2", "f", "p", "p_holm",
    ]  # fmt: skip


def test_every_exploratory_measure_has_headings_in_words(workspace: Path) -> None:
    planned_study(workspace, {})
    app = section(made(AppTest.from_function(script).run()), "Exploratory")
    titles = app.selectbox(key="measure").options
    seen: dict[str, list[str]] = {}
    for title in titles:
        made(app.selectbox(key="measure").select(title).run())
        seen |= headings(app)
        for name, frame in tables(app).items():  # the browser shows a category as it is, whatever its words
            assert list(frame.select_dtypes("category")) == [], name
    assert len([name for name in seen if name.startswith("exploratory_")]) >= 10
    assert {name.removeprefix("exploratory_") for name in seen if name.startswith("exploratory_")} <= set(EXPLORATORY)
    assert {heading for written in seen.values() for heading in written if not is_written_out(heading)} == set()
    assert seen["exploratory_associations"][-3:] == ["Spearman's ρ", "p", "p (Holm)"]


def test_intervals_say_how_much_they_cover(workspace: Path) -> None:
    """Catches "95% CI" over the 99% intervals of a plan with another level."""
    planned_study(workspace, {"analysis": {"alpha": 0.01, "participants": 2, "contrasts": [{"more": "both"}]}})
    app = section(made(AppTest.from_function(script).run()), "Contrasts")
    seen = headings(app)
    assert any("The 99% intervals are uncorrected" in caption.value for caption in app.caption)
    assert "99% CI from" in seen["contrasts"]
    assert "99% CI from" in seen["contrasts_log_odds"]
    assert "95% CI from" in seen["effects"]
    assert "99% CI from" in headings(section(app, "Checks"))["slopes_contrasts"]


def test_contrasts_name_the_first_condition_first_and_their_file_does_not_change(
    app: AppTest, downloads: dict[str, str]
) -> None:
    section(choose(app, "Main"), "Contrasts")
    contrasts, log_odds, effects, *_ = (
        element.proto for element in app.dataframe if element.value.columns[0] in ("contrast", "variable")
    )
    labels = json.loads(contrasts.columns)
    assert [labels[name]["label"] for name in contrasts.column_order] == [
        "Contrast", "Accuracy 1", "Accuracy 2", "% points", "95% CI from", "to", "p (Holm)",
    ]  # fmt: skip
    labels = json.loads(log_odds.columns)
    assert [one["label"] for one in labels.values() if "label" in one][:5] == [
        "Contrast", "Log-odds", "SE", "95% CI from", "to",
    ]  # fmt: skip
    assert "value" not in effects.column_order
    assert read_first_row(downloads["contrasts.csv"]) == [
        "contrast", "estimate", "se", "low", "high", "z", "df", "p", "p_holm",
        "accuracy_less", "accuracy_more", "points", "points_low", "points_high",
    ]  # fmt: skip
    assert read_first_row(downloads["effects.csv"])[:3] == ["variable", "value", "trial_type"]


def test_models_that_converged_share_one_box(app: AppTest) -> None:
    """Catches the same sentence once for each model, and a likelihood that is lost."""
    section(choose(app, "Main"), "Checks")
    models = nested.analyze(responses.prepare(study(24, 8, 6, seed=5))).models
    (box,) = [box.value for box in app.success if "converged" in box.value]
    assert "Convergence does not show that a model describes the data" in box
    for name, model in models.items():
        assert f"{name} (" in box
        assert f"−{abs(model.loglik):,.3f})" in box
    assert not any(box.value.startswith("Model ") for box in app.warning)


def test_a_model_with_a_warning_has_its_own_box(app: AppTest) -> None:
    """Everyone is right in one cell, which only the model with all cells cannot estimate."""
    frame = study(24, 8, 6, seed=5)
    frame.loc[(frame["saliency"] + frame["examples"] == 2) & (frame["trial_type"] == "std_correct"), "correct"] = 1
    section(upload(choose(app, "Upload a CSV file"), frame), "Checks")
    warned = [box.value for box in app.warning if box.value.startswith("Model ")]
    assert len(warned) == 1
    assert warned[0].startswith("Model interaction: Separation")
    (box,) = [box.value for box in app.success if "converged" in box.value]
    assert box.startswith("The models null (log-likelihood −")
    assert " and explanation (−" in box
    assert "interaction" not in box


def test_what_nobody_described_reads_as_words() -> None:
    """A column of a later table: its name as words, and its name in the file as the tooltip."""

    def page() -> None:
        import pandas as pd

        from dashboard.shared import numbers

        numbers.table(pd.DataFrame({"hours_slept": [7.5], "condition": ["both"]}), "later")

    app = AppTest.from_function(page).run()
    assert headings(app) == {"later": ["Hours slept", "Condition"]}
    assert "`hours_slept`" in app.dataframe[0].proto.columns
    assert "Condition of the trial: of all of a participant" in app.dataframe[0].proto.columns


def test_a_share_called_p_is_not_printed_as_a_p_value() -> None:
    """Catches the share of the interpretable features, which the question explainer calls ``p``, as ".850"."""

    def page() -> None:
        import pandas as pd

        from dashboard.shared import numbers
        from inquiry.layers.record import record_of

        table = pd.DataFrame({"p": [0.85]})
        numbers.table(table, "shares", headings=record_of("explainer").table.headings)
        numbers.table(table, "tests")

    shares, tests = AppTest.from_function(page).run().dataframe
    assert b"0.850" in shares.proto.SerializeToString()
    assert b"0.850" not in tests.proto.SerializeToString()
    assert b".850" in tests.proto.SerializeToString()


def test_a_number_among_dashes_has_room_for_its_sign() -> None:
    """Catches a column as wide as its dashes, in which a negative number loses its sign: digits are 8.1 px wide."""
    table = pd.DataFrame({"part": ["all", "25.1"], "log_p": [-20.33, None], "share": [0.1, 0.2]})
    labels = {"part": "Part", "log_p": "log p", "share": "Share"}
    (width,) = numbers.measure_widths(table, labels, list_forms(table, set())).values()
    assert width >= 8.1 * len("−20.330") + 2 * 8


def test_the_longest_interaction_is_whole() -> None:
    """Catches "AI wrong (standard) × saliency × exam": letters are 6.4 px wide on average."""
    term = "AI wrong (standard) × saliency × examples"
    table = pd.DataFrame({"term": ["saliency", term], "z": [1.0, 2.0]})
    assert numbers.measure_widths(table, {"term": "Term", "z": "z"}, list_forms(table))["term"] >= 6.4 * len(term) + 16


def test_tables_write_trial_types_in_words() -> None:
    """Catches codes of the export on the page, a hyphen where articles print a minus, percentage points that seem more
    exact than they are, and numbers that became text."""
    frame = pd.DataFrame(
        {"contrast": ["both - none, adv_incorrect"], "trial_type": ["std_correct"], "z": [-0.15], "points": [-3.15]}
    )
    shown = (
        numbers._format(frame, IN_WORDS, list_forms(frame, {"p"}))
        .hide(axis="index")
        .to_string(delimiter="|")
        .splitlines()[1]
    )
    assert shown == "Both explanations vs no explanation, AI wrong (adversarial)|AI right|−0.150|−3.1"
    assert frame["points"].tolist() == [-3.15]
