"""Placebo conditions on the page of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from dashboard.results import jobs as work
from dashboard.shared.tasks import Task
from study.analysis.report import results
from study.analysis.responses import reading as responses
from tests.dashboard.conftest import PATIENCE_S
from tests.study.analysis.simulated import study


def run(task: Task) -> Any:
    """Run a task of the page to its end."""
    job = task.ask()
    assert job.wait(PATIENCE_S), job.error
    return job.result


def test_page_and_report_have_the_same_contrasts_with_placebos(workspace: Path, tmp_path: Path) -> None:
    """Catches a page that leaves placebos out of the contrasts and of their correction, where no plan names them."""
    true, others = study(24, 8, 6, seed=5), study(24, 8, 6, seed=6)
    names = pd.Series(responses.CONDITION_OF_FACTORS)
    true["condition"] = [names[pair] for pair in zip(true["saliency"], true["examples"], strict=True)]
    misled = others[(others["saliency"] == 1) & (others["examples"] == 0)]
    misled = misled.assign(condition="random_maps", participant="m" + misled["participant"])
    data = responses.prepare(pd.concat([true, misled], ignore_index=True))
    found = run(work.make_analysis_task(run(work.make_sample_task(data, None))))
    results.write(data, tmp_path)
    written = pd.read_csv(tmp_path / "contrasts.csv")
    assert len(found.contrasts) == 12
    pd.testing.assert_frame_equal(found.contrasts, written)
