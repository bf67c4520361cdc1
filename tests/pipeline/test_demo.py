"""The first command of the README, in an empty workspace: served, demo built, filled; and the numbers it then holds.

The command runs in a copy of the sources whose demo draws a quarter of the masks for each heatmap.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest

from study.conditions import CONDITIONS
from study.demo import SIMULATED
from study.plan.mixture import MIXTURE, parse_mixture
from study.plan.simulated_participants import compute_expected_accuracy
from study.service import Service
from study.tasks.theory import ShownExplanations
from study.workspace.workspace import ROOT, bundle_named
from tests.ports import free_port

pytestmark = pytest.mark.slow
PAGES = ("/", "/run/demo", "/_stcore/health")
SOURCES = ("core", "data", "study", "inquiry", "dashboard", ".streamlit")
MASKS, FEWER = "samples = 256", "samples = 64"


def copy_sources(folder):
    """Copy what the command needs, and lower the number of masks in the demo's study file."""
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (ROOT / "foretell.py", *ROOT.glob("requirements*")):
        shutil.copy(file, folder)
    study = folder / "data" / "studies" / "demo.toml"
    assert study.read_text(encoding="utf-8").count(MASKS) == 1
    study.write_text(study.read_text(encoding="utf-8").replace(MASKS, FEWER), encoding="utf-8")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The workspace after `python foretell.py serve`, and what the server answered while it ran."""
    home, sources = (tmp_path_factory.mktemp(name) for name in ("demo", "sources"))
    copy_sources(sources)
    port = free_port()
    command = [sys.executable, "foretell.py", "serve", "--no-browser", "--port", str(port)]
    environment = {**os.environ, "FORETELL_HOME": str(home)}
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=sources, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        answers = _ask(port, server, home)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=300)
    return home, answers


def _ask(port, server, home):
    """Status of the pages for a stranger and for whoever opens the login link that the server printed.

    They are asked once the demo is ready; before that the server has answered.
    """
    deadline = time.monotonic() + 600
    while "The demo study is ready." not in (home / "log").read_text():
        assert time.monotonic() < deadline, (home / "log").read_text()[-2000:]
        assert server.poll() is None, (home / "log").read_text()[-2000:]
        time.sleep(0.2)
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
                strangers = {page: client.get(page).status_code for page in PAGES}
                (link,) = re.findall(r"http://127\S+/login\S+", (home / "log").read_text())
                assert client.get(link).status_code in (200, 302, 303)
                return strangers, {page: client.get(page).status_code for page in PAGES}
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError((home / "log").read_text()[-2000:])


def test_the_pages_and_the_participants_link_answer(demo):
    strangers, researchers = demo[1]
    assert strangers == {"/": 401, "/run/demo": 200, "/_stcore/health": 401}
    assert researchers == {"/": 200, "/run/demo": 200, "/_stcore/health": 200}


def test_about_thirty_trials_in_three_matched_types(demo):
    manifest = bundle_named(demo[0], "demo").manifest
    assert len(manifest.trials) == 30
    assert manifest.dropped == ()
    by_type = {
        t: [x.truth for x in manifest.trials if x.trial_type == t]
        for t in ("adv_incorrect", "std_incorrect", "std_correct")
    }
    assert by_type["adv_incorrect"] == by_type["std_incorrect"] == by_type["std_correct"]
    assert len(set(by_type["std_correct"])) == 10


def test_confidently_wrong_maps_lie_off_the_object(demo):
    """What the demo shows: where the AI errs on a shifted scene its map leaves the object."""
    trials = bundle_named(demo[0], "demo").manifest.trials
    mean = {t: np.mean([x.relevance for x in trials if x.trial_type == t]) for t in ("adv_incorrect", "std_correct")}
    assert mean["adv_incorrect"] + 0.2 < mean["std_correct"]


def test_simulated_people_are_marked_and_balanced(demo):
    with Service(demo[0]) as service:
        assert len(service.researcher.responses("demo", ("live",))) == 0
        frame = service.researcher.responses("demo", ("sim",))
        assert service.researcher.verify() == []
    assert set(frame["mode"]) == {"sim"}
    assert len(frame) == SIMULATED * 30
    people = frame.groupby("condition")["participant"].nunique()
    assert people.to_dict() == dict.fromkeys(("none", "saliency", "examples", "both"), SIMULATED // 4)


def test_accuracy_by_cell_is_what_the_models_of_the_people_say(demo):
    """Observed accuracy of each condition and trial type against the exact expectation over the mixture.

    The standard error is that of the observed participants' means (people differ by kind: rows are not independent).
    """
    trials = bundle_named(demo[0], "demo").manifest.trials
    with Service(demo[0]) as service:
        frame = service.researcher.responses("demo", ("sim",))
    mixture = parse_mixture(MIXTURE)
    seen = {}
    for (condition, trial_type), rows in frame.groupby(["condition", "trial_type"]):
        shows = CONDITIONS[condition].shows_saliency
        expected = np.mean(
            [
                compute_expected_accuracy(mixture, t, ShownExplanations(saliency=shows))
                for t in trials
                if t.trial_type == trial_type
            ]
        )
        means = rows.groupby("participant")["correct"].mean()
        error = max(means.std() / np.sqrt(len(means)), 0.02)
        assert abs(means.mean() - expected) < 4 * error, (condition, trial_type)
        seen[condition, trial_type] = expected
    # Without a map people project their own beliefs; with one some of them catch the AI's errors.
    assert seen["none", "std_correct"] > seen["none", "adv_incorrect"] + 0.5
    assert seen["saliency", "adv_incorrect"] > seen["none", "adv_incorrect"] + 0.1
