"""What is made of a search that ends nowhere, and of fixed effects that repeat each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import ForetellError
from study.analysis.exploratory.analysis import EXPLORATORY, AnalysedStudy, ExploratoryAnalysis, TableAndFigure
from study.analysis.models import mixed
from study.analysis.report import results
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import slopes, study


def test_the_order_of_random_terms_changes_nothing_where_a_search_has_no_end(capfd: pytest.CaptureFixture[str]) -> None:
    """Catches `glmm`'s panic over separated data if the first term has fewer levels, and its stack on stderr."""
    frame = study(4, 8, 8, seed=3)
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    one, other = (
        mixed.fit(frame, f"correct ~ trial_type + {terms}")
        for terms in ("(1|participant) + (1|category)", "(1|category) + (1|participant)")
    )
    assert one.loglik == pytest.approx(other.loglik, abs=1e-6)
    assert any(message.startswith("Separation: ") for message in one.messages)
    assert [effect.group for effect in one.random] == ["participant", "category"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("terms", ["(1|participant) + (1|category)", "(twice|participant) + (1|category)"])
def test_a_rank_deficient_model_without_a_fit_names_its_columns(terms: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Catches the text of a panic of `glmm` in place of the causes: counts of 0 in a cell, and collinear columns."""
    frame = study(4, 8, 8, seed=3).assign(easy=lambda rows: (rows["trial_type"] == "std_correct").astype(float))
    frame = frame.assign(
        correct=frame["correct"] * (1 - frame["easy"]), twice=2 * frame["easy"], hard=1 - frame["easy"]
    )
    with pytest.raises(ForetellError) as refused:
        mixed.fit(frame, f"correct ~ easy + twice + hard + {terms}", family="poisson")
    assert "panicked" not in capfd.readouterr().err
    assert (
        "could not be fitted: its fixed effects are rank-deficient, because other columns determine these; leave their "
        "terms out: twice, hard. The fit" in str(refused.value)
    )


def test_a_model_of_nothing_but_zeros_is_refused() -> None:
    """Catches a traceback of the test for separation, which had no column left."""
    with pytest.raises(ForetellError, match="leave their terms out: nothing"):
        mixed.fit(study(seed=1).assign(nothing=0.0), "correct ~ 0 + nothing + (1|participant)")


@pytest.mark.parametrize(
    ("terms", "df"),
    [
        ("(trial_type || participant)", 7),
        ("(trial_type | participant)", 10),
        ("(trial_type * saliency || category)", 10),
    ],
)
def test_separation_with_a_slope_of_the_separated_factor(terms: str, df: int) -> None:
    """Catches a factor of one level, or an unknown product of columns, in the fit of the responses that are left.

    Oracle: those responses alone, in which the factor has no such level. All parameters are counted.
    """
    frame = study(24, 8, 20, seed=3, sd=0.8)
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    model = mixed.fit(frame, f"correct ~ trial_type + saliency + {terms}")
    alone = mixed.fit(frame[frame["trial_type"] != "std_correct"], f"correct ~ trial_type + saliency + {terms}")
    assert model.loglik == pytest.approx(alone.loglik, abs=1e-5)
    assert [(r.group, r.term) for r in model.random] == [(r.group, r.term) for r in alone.random]
    assert model.df == df
    assert any("vary only in separated cells were left out" in said for said in model.messages)
    two = frame[frame["trial_type"] != "std_incorrect"]
    assert mixed.fit(two, f"correct ~ trial_type + {terms.replace(' * saliency', '')}").diverging


def test_a_linear_model_may_have_any_unit() -> None:
    """Catches a response in small units whose slopes are called singular: their scale is the residual's."""
    frame = slopes(11)
    wide = mixed.fit(frame, "time ~ x + (x|id)", family="gaussian")
    small = mixed.fit(frame.assign(time=frame["time"] * 1e-6), "time ~ x + (x|id)", family="gaussian")
    assert small.messages == wide.messages == ()
    assert [r.sd * 1e6 for r in small.random] == pytest.approx([r.sd for r in wide.random], rel=1e-3)


def test_each_variance_of_zero_is_named_once(recwarn: pytest.WarningsRecorder) -> None:
    frame = slopes(11).assign(time=np.tile([0.0, 1.0], 450))
    said = mixed.fit(frame.assign(id=np.arange(900) // 2), "time ~ x + (x|id)", family="gaussian").messages
    assert len(set(said)) == len(said)
    assert any("standard deviation of x between levels of id is estimated as 0" in line for line in said)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def _break(_: AnalysedStudy) -> TableAndFigure:
    raise ZeroDivisionError(f"after {sorted(path.name for path in Path.cwd().iterdir())}")


BROKEN = ExploratoryAnalysis("Broken", "How to read it.", _break)


def test_an_exploratory_analysis_that_breaks_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an error of one exploratory analysis, of whatever type, that leaves the planned results unwritten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(EXPLORATORY._table, "slopes", f"{__name__}:BROKEN")
    results.write(responses.prepare(study(seed=1)), tmp_path)
    text = (tmp_path / "report.md").read_text()
    said = next(line for line in text.splitlines() if "Not shown. Broken: failed" in line)
    assert "unexpected ZeroDivisionError (after " in said
    assert all(f"'{name}'" in said for name in ("models.json", "table1.csv", "contrasts.csv", "lrt.csv"))
    assert (tmp_path / "exploratory_detection.csv").exists()
