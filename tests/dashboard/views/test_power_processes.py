"""The processes that simulate studies for the page Power."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dashboard.power.jobs import PowerAnalysis
from study.analysis.power import simulation as power
from study.plan import config
from study.workspace import parallel
from tests.conftest import ROOT

DEMO = ROOT / "data" / "studies" / "demo.toml"


def test_a_study_and_a_process_are_really_timed() -> None:
    """Catches an estimate of nothing: a curve of one study on one process takes at least the time of its fits."""
    settings = config.read(DEMO)
    assert power.time_study(PowerAnalysis(settings, (4,)).truth(), settings.plan.models, settings.plan.tests, 4) > 0.005
    assert parallel.measure_start(power.start) > 0.1


def test_a_process_beside_the_pages_is_no_page(tmp_path: Path) -> None:
    """Spawned workers import the file that Streamlit runs; were it run there, each would complain."""
    code = "import runpy; runpy.run_path('dashboard/pages.py', run_name='__mp_main__')"
    home = tmp_path / "home"
    environment = {**os.environ, "FORETELL_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, capture_output=True)
    assert done.stderr == b""
    assert not home.exists()
