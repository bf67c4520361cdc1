"""Response times: recovered from simulated ones, and read with care."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import times
from study.analysis.planned import nested
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import study


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    made = responses.prepare(study(40, 10, 10, seed=3)).frame
    rng = np.random.default_rng(1)
    person = {name: rng.normal(0, 0.3) for name in made["participant"].unique()}
    mean = 7.5 + 0.2 * made["saliency"] - 0.1 * (made["trial_type"] == "std_correct") + made["participant"].map(person)
    return made.assign(rt_ms=np.exp(mean + rng.normal(0, 0.5, len(made))))


def test_effects_are_recovered(frame: pd.DataFrame) -> None:
    found = times.analyze(frame)
    by_term = {c.term: c for c in found.models["explanation"].coefficients}
    for term, true in (("saliency", 0.2), ("trial_typestd_correct", -0.1), ("examples", 0.0)):
        assert abs(by_term[term].estimate - true) < 4 * by_term[term].se
    sd = {r.group: r.sd for r in found.models["interaction"].random}
    assert sd["participant"] == pytest.approx(0.3, abs=0.12)
    assert np.sqrt(found.reml.dispersion) == pytest.approx(0.5, abs=0.04)
    assert found.reml.reml
    assert not found.models["null"].reml
    assert [test.df for test in found.tests] == [2, 7]
    # REML divides by fewer degrees of freedom: its variance between people is larger.
    assert found.reml.random[0].sd > found.models["interaction"].random[0].sd


def test_answers_without_a_time_are_left_out_and_counted(frame: pd.DataFrame) -> None:
    frame = frame.assign(rt_ms=frame["rt_ms"].mask(frame.index < 7))
    found = times.analyze(frame)
    assert found.messages == (f"7 of {len(frame)} responses have no positive response time and were left out.",)
    assert found.reml.n == len(frame) - 7
    with pytest.raises(ForetellError, match="no column 'rt_ms'"):
        times.analyze(frame.drop(columns="rt_ms"))
    with pytest.raises(ForetellError, match="no positive time"):
        times.analyze(frame.assign(rt_ms=0.0))


def test_times_must_be_numbers() -> None:
    raw = study(12, 4, 4, seed=3).astype(str).assign(rt_ms="fast")
    with pytest.raises(ForetellError, match="'rt_ms' must hold numbers, but row 1 says 'fast'"):
        responses.prepare(raw)
    with pytest.raises(ForetellError, match="'confidence' must be a probability"):
        responses.prepare(study(12, 4, 4, seed=3).assign(confidence=85))


def test_models_compared_by_criteria() -> None:
    analysis = nested.analyze(study(24, 8, 8, seed=11))
    table = nested.comparison(analysis).set_index("model")
    for name, model in analysis.models.items():
        assert table.loc[name, "aic"] == pytest.approx(2 * model.df - 2 * model.loglik)
        assert table.loc[name, "bic"] == pytest.approx(np.log(model.n) * model.df - 2 * model.loglik)
    assert table["chisq"].isna().tolist() == [True, False, False]
