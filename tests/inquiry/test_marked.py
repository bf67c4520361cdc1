"""Heatmap methods against participants' brushes, on a built study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr, t

from core.attribution import METHODS
from core.errors import ForetellError
from inquiry.files.chosen_methods import open_methods
from inquiry.participants.marked import MOST_PASSES, choose_quick, compare_methods
from study.building.build import build
from study.building.reopening import ReopenedStudy, reopen
from study.places.grid import SIDE, encode_cells, pool
from tests.study.studies import TINY

PLANTED, OTHERS = "input_x_gradient", ["gradient", "grad_cam"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ReopenedStudy:
    folder = tmp_path_factory.mktemp("marked")
    (folder / "tiny.toml").write_text(TINY)
    return reopen(build(folder / "tiny.toml", folder / "home"), folder / "home" / "cache")


def explain(study: ReopenedStudy) -> dict[str, np.ndarray]:
    """The planted method's positive evidence in each cell, from the network and the image alone."""
    network, evidence = study.sources.classifier, {}
    for trial in study.bundle.manifest.trials:
        inputs = network.preprocess(study.open_image(trial))[None]
        heatmap = METHODS[PLANTED](network, inputs, [network.names.short.index(trial.target)])
        evidence[trial.id] = pool(heatmap.evidence[0].clamp(min=0).numpy())
    return evidence


def brush(evidence: dict[str, np.ndarray], share: float) -> pd.DataFrame:
    """One participant, who brushes the cells with the most evidence in each image."""
    texts = {item: encode_cells(values >= np.quantile(values, 1 - share)) for item, values in evidence.items()}
    return pd.DataFrame({"item": list(texts), "condition": "none", "cells": list(texts.values())})


def test_the_method_whose_evidence_is_brushed_agrees_most(study: ReopenedStudy) -> None:
    """Catches evidence of another image or class, and a chance level with the image itself; by SciPy's Spearman."""
    evidence = explain(study)
    frame = brush(evidence, 0.1)
    table = compare_methods(study, frame, open_methods([*OTHERS, PLANTED], Path.cwd()))
    best = table.iloc[0]
    assert (best["method"], best["images"], best["note"]) == (PLANTED, len(evidence), "")
    cells = {item: values >= np.quantile(values, 0.9) for item, values in evidence.items()}

    def correlate(marked: str, shown: str) -> float:
        return float(spearmanr(cells[marked], evidence[shown], axis=None).statistic)

    own = np.array([correlate(item, item) for item in cells])
    chance = np.array([np.mean([correlate(item, other) for other in cells if other != item]) for item in cells])
    half = t.ppf(0.975, len(own) - 1) * np.std(own - chance, ddof=1) / np.sqrt(len(own))
    assert best["rank_correlation"] == pytest.approx(own.mean(), abs=1e-6)
    assert best["permuted"] == pytest.approx(chance.mean(), abs=1e-6)
    assert best["high"] - best["difference"] == pytest.approx(half, abs=1e-6)
    assert (table["difference"].iloc[1:] < best["low"]).all()


def test_a_brush_without_a_place_has_no_correlation_and_says_so(study: ReopenedStudy) -> None:
    """Catches a mean over the images that are left, as if it were that of all."""
    evidence = explain(study)
    frame = brush(evidence, 0.1)
    frame.loc[0, "cells"] = encode_cells(np.ones((SIDE, SIDE), dtype=bool))
    (row,) = compare_methods(study, frame, open_methods([PLANTED], Path.cwd())).to_dict("records")
    assert row["images"] == len(evidence) - 1
    assert row["note"].startswith("of 1 images")


def test_a_method_that_does_not_apply_takes_nothing_else_with_it(study: ReopenedStudy) -> None:
    frame = brush(explain(study), 0.1)
    table = compare_methods(study, frame, open_methods(["attention_rollout", PLANTED], Path.cwd()))
    notes = dict(zip(table["method"], table["note"], strict=True))
    assert notes[PLANTED] == ""
    assert "has no attention between places" in notes["attention_rollout"]
    assert table["rank_correlation"].isna().tolist() == [False, True]


def test_responses_without_brushes_are_refused(study: ReopenedStudy) -> None:
    frame = brush(explain(study), 0.1)
    for wrong in (frame.drop(columns="cells"), frame.assign(cells=None)):
        with pytest.raises(ForetellError, match=r"No response is a mark: .* 'highlight'"):
            compare_methods(study, wrong, {})


def test_quick_methods_are_those_of_few_passes(study: ReopenedStudy) -> None:
    """Catches a first comparison that takes hours, and methods that nobody hears of."""
    quick, slow = choose_quick(study.sources.classifier)
    assert sorted([*quick, *slow]) == sorted(METHODS)
    assert {"gradient", "grad_cam", PLANTED, "integrated_gradients"} <= set(quick)
    assert {"bayesian_teaching", "rise"} <= set(slow)
    assert MOST_PASSES < 1000
