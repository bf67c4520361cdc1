"""What is made of a search that ends nowhere, and of fixed effects that repeat each other."""

from __future__ import annotations

import pytest

from core.errors import ForetellError
from study.analysis import mixed
from tests.study.analysis.simulated import study


def test_the_order_of_random_terms_changes_nothing_where_a_search_has_no_end() -> None:
    """Catches `glmm`'s panic over separated data if the first term has fewer levels: the model was refused."""
    frame = study(4, 8, 8, seed=3)
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    one, other = (
        mixed.fit(frame, f"correct ~ trial_type + {terms}")
        for terms in ("(1|participant) + (1|category)", "(1|category) + (1|participant)")
    )
    assert one.loglik == pytest.approx(other.loglik, abs=1e-6)
    assert any(message.startswith("Separation: ") for message in one.messages)


@pytest.mark.parametrize(
    ("terms", "panics"), [("(1|participant) + (1|category)", True), ("(twice|participant) + (1|category)", False)]
)
def test_a_rank_deficient_model_without_a_fit_names_its_columns(
    terms: str, panics: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches the text of a panic of `glmm` in place of the causes: counts of 0 in a cell, and collinear columns."""
    frame = study(4, 8, 8, seed=3).assign(easy=lambda rows: (rows["trial_type"] == "std_correct").astype(float))
    frame = frame.assign(
        correct=frame["correct"] * (1 - frame["easy"]), twice=2 * frame["easy"], hard=1 - frame["easy"]
    )
    with pytest.raises(ForetellError) as refused:
        mixed.fit(frame, f"correct ~ easy + twice + hard + {terms}", family="poisson")
    assert ("panicked" in capfd.readouterr().err) == panics
    assert (
        "could not be fitted: its fixed effects are rank-deficient, because other columns determine these; leave their "
        "terms out: twice, hard. The fit" in str(refused.value)
    )


def test_a_model_of_nothing_but_zeros_is_refused() -> None:
    """Catches a traceback of the test for separation, which had no column left."""
    with pytest.raises(ForetellError, match="leave their terms out: nothing"):
        mixed.fit(study(seed=1).assign(nothing=0.0), "correct ~ 0 + nothing + (1|participant)")
