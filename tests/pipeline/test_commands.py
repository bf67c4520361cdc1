"""The command line as a person meets it: real processes, exit codes, one sentence for each error."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

import foretell
from core.attribution import METHODS
from core.attribution.outside.opening import SPELLINGS
from dashboard.cli.commands import COMMANDS
from dashboard.cli.main import build_app
from study.workspace.workspace import ROOT
from tests.commands import run


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    from data.scenes.generator import render

    path = tmp_path_factory.mktemp("picture") / "fish.png"
    render(3, category="fish", context="meadow").image.save(path)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_and_an_example(command, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["foretell", command, "--help"])
    done = CliRunner().invoke(build_app((command, "doctor")), [command, "--help"])
    assert done.exit_code == 0
    assert "Example: python foretell.py " + command in " ".join(done.output.split())


def test_help_lists_every_command_and_the_command_line_has_exactly_those():
    """Catches a command of the table whose function has another name, and one that the help leaves out."""
    done = run("--help")
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in foretell.summaries())
    functions = {command.callback.__name__.replace("_", "-") for command in build_app().registered_commands}
    assert functions == set(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("buidl",), "Unknown command 'buidl'. Commands: serve, explain"),
        (("inspect",), "Unknown command 'inspect'. Commands: serve, explain"),
        (("build", "none.toml"), "There is no study file none.toml. Copy data/studies/demo.toml"),
        (("verify", "nothing"), "There is no built study 'nothing'"),
        (("simulate", "nothing"), "There is no built study 'nothing'"),
        (("export", "nothing"), "There is no workspace at"),
        (("analyze", "none.csv"), "No table at none.csv"),
        (("analyze", "nothing"), "Study 'nothing' is not open"),
        (("glmm", "none.csv", "--formula", "y ~ x + (1|g)"), "No table at none.csv"),
        (("explain",), "No image given. Add --image FILE"),
        (("explain", "--image", "none.png"), "There is no image none.png"),
        (
            ("explain", "--image", "{picture}", "--method", "gradiant"),
            "Unknown method 'gradiant'. Did you mean 'gradient'",
        ),
        (
            ("explain", "--image", "{picture}", "--model", "scenes:blnd"),
            "There is no network 'scenes:blnd'. For the scenes there are: scenes, scenes:blind",
        ),
        (
            ("explain", "--image", "{picture}", "--model", "resnet5"),
            "Unknown classifier 'resnet5'. Did you mean resnet50",
        ),
        (
            ("explain", "--image", "{picture}", "--target", "16"),
            "Target 16 is not a class of scenes: it has classes 0 to 15",
        ),
        (("explain", "--image", "{picture}", "--target", "fsh"), "has no class 'fsh'. Did you mean fish"),
        (("explain", "--image", "{picture}", "--param", "steps"), "--param 'steps' is not of the form name=value"),
        (("explain", "--image", "{picture}", "--param", "sample=5"), "no parameter 'sample'. Did you mean 'samples'"),
        (("explain", "--image", "{own}"), "cannot be read as an image"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(arguments, text, picture, tmp_path):
    (tmp_path / "own.png").write_text("not a picture")
    filled = [a.format(picture=picture, own=tmp_path / "own.png") for a in arguments]
    done = run(*filled, home=tmp_path, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert text in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback(tmp_path):
    done = run("build", "none.toml", "--debug", home=tmp_path)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_port_in_use_is_named():
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run("serve", "--no-demo", "--no-browser", "--port", port)
    assert done.returncode == 2
    assert f"Port {port} is in use. Stop the program that uses it, or choose another: --port {port + 1}" in done.stderr


def test_explain_writes_map_image_and_certificate(picture, tmp_path):
    methods = ("gradient", "integrated_gradients", "bayesian_teaching")
    out = tmp_path / "maps"
    done = run("explain", "--image", picture, "--method", ",".join(methods), "--target", "fish", "--out", out)
    assert done.returncode == 0, done.stderr
    for name in methods:
        values = np.load(out / f"fish.{name}.npy")
        assert values.shape == (96, 96)
        assert values.dtype == np.float32
        certificate = json.loads((out / f"fish.{name}.json").read_text())
        assert (certificate["method"], certificate["category"]) == (name, "fish")
        assert Image.open(out / f"fish.{name}.png").width > 400
    again = tmp_path / "again"
    run("explain", "--image", picture, "--method", "bayesian_teaching", "--target", "fish", "--out", again)
    assert (again / "fish.bayesian_teaching.npy").read_bytes() == (out / "fish.bayesian_teaching.npy").read_bytes()


def test_explain_lists_each_method_with_a_sentence():
    lines = run("explain", "--list").stdout.strip().splitlines()
    assert [line.split(": ", 1)[0] for line in lines] == [*METHODS, *SPELLINGS]
    assert all(len(line.split(": ", 1)[1]) > 30 for line in lines)


def test_doctor_is_content_here(tmp_path):
    done = run("doctor", home=tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "ok    telemetry: off" in done.stdout
    assert "FAIL" not in done.stdout


def test_doctor_fails_where_the_workspace_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("doctor", home=tmp_path / "file" / "workspace")
    assert done.returncode == 1
    assert "FAIL  workspace: The workspace" in done.stdout


def test_glmm_prints_one_model_of_models_json(tmp_path):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 15)
    x = rng.normal(size=300)
    y = rng.random(300) < 1 / (1 + np.exp(-(0.3 + x + rng.normal(size=20)[group])))
    pd.DataFrame({"y": y.astype(int), "x": x, "g": group}).to_csv(tmp_path / "data.csv", index=False)
    done = run("glmm", tmp_path / "data.csv", "--formula", "y ~ x + (1|g)", "--json", "-")
    model = json.loads(done.stdout)
    assert set(model) == {"coefficients", "random", "loglik", "df", "n", "converged", "messages"}
    assert [c["term"] for c in model["coefficients"]] == ["(Intercept)", "x"]
    assert model["n"] == 300


def test_versions_of_a_study_are_not_pooled(capsys):
    """Two builds of one name: the answers to the one answered last, and how many were left out."""
    from dashboard.cli.analysis import newest_version

    frame = pd.DataFrame(
        {"study_hash": ["b" * 64, "a" * 64, "a" * 64], "received_at": ["1", "2", "3"], "correct": [1, 0, 1]}
    )
    kept = newest_version(frame)
    assert kept["study_hash"].unique().tolist() == ["a" * 64]
    assert "1 responses to earlier versions of the study are left out" in capsys.readouterr().out
    assert newest_version(kept) is kept


def test_power_says_how_many_participants_and_what_they_cost(tmp_path):
    study = ROOT / "data" / "studies" / "demo.toml"
    done = run(
        "power", study, "--participants", "30", "--studies", "8", "--pay", "2.5", "--workers", "1", "--out", tmp_path
    )
    table = pd.read_csv(tmp_path / "power.csv")
    assert list(table["cost"]) == [30 * 4 * 2.5] * 2
    assert (table["studies"] == 8).all()
    assert "interaction vs explanation), effects ×\N{NO-BREAK SPACE}1: " in done.stdout
    assert "leave out random slopes" not in done.stdout  # the demo has the default plan
    assert (tmp_path / "power.html").is_file()
    sloped = ("--participants", "4", "--studies", "2", "--workers", "1", "--slope-sd", "participant=0.8")
    done = run("power", study, *sloped)
    assert "Assumed: participants differ in the effect of each trial type (standard deviation 0.8" in done.stdout
    assert "Estimated time: 0:0" in done.stdout
    wrong = run("power", study, "--slope-sd", "trial_type=1")
    assert (wrong.returncode, "give one of participant, category, item" in wrong.stderr) == (2, True)
    wrong = run("power", study, "--participants", "many")
    assert wrong.returncode == 2
    assert "--participants 'many' is not a list of numbers" in wrong.stderr


def test_a_csv_is_analysed_by_a_plan(tmp_path):
    from tests.study.analysis import simulated

    simulated.study(24, 8, 8, seed=11).to_csv(tmp_path / "answers.csv", index=False)
    demo = (ROOT / "data" / "studies" / "demo.toml").read_text()
    (tmp_path / "planned.toml").write_text(
        demo + "\n[analysis]\nequivalence = 5\n[analysis.exclusions]\nfewest_answers = 3\n"
    )
    done = run("analyze", tmp_path / "answers.csv", "--plan", tmp_path / "planned.toml", "--out", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("within 5 percentage points") == 9  # one for each contrast
    exclusions = pd.read_csv(tmp_path / "results" / "exclusions.csv")
    assert exclusions.to_dict("list") == {"rule": ["fewer than 3 responses"], "people": [0], "responses": [0]}
    assert "planned analysis, interim data" in (tmp_path / "results" / "report.html").read_text()


def test_a_csv_that_answers_a_built_study_has_its_trials_beside_it(tmp_path):
    """Catches a file whose study is named and whose report knows nothing of it."""
    from tests.conftest import write_bundle
    from tests.study.analysis import simulated

    write_bundle(tmp_path / "home" / "bundles" / "known-00", name="known", trials=12)
    items = [f"main-{k}" for k in range(12)]
    frame = simulated.study(24, 8, 8, seed=11)
    frame.assign(item=[items[k % 12] for k in range(len(frame))]).to_csv(tmp_path / "answers.csv", index=False)
    asked = ("analyze", tmp_path / "answers.csv", "--study", "known", "--out", tmp_path / "results")
    done = run(*asked, home=tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(tmp_path / "results" / "exploratory_overlay.csv")) == 12
    wrong = run(*asked, "--plan", "any.toml", home=tmp_path / "home")
    assert (wrong.returncode, "--plan and --study name two plans" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("correct", "maybe", "must be 0 or 1"),
        ("correct", "1", "never varies"),
        ("participant", "one", "names only one participant"),
        ("trial_type", "hard", "unknown value"),
        ("trial", "1", "repeat a participant's trial"),
    ],
)
def test_bad_responses_are_refused_in_a_sentence(tmp_path, column, value, said):
    from tests.study.analysis import simulated

    simulated.study(12, 4, 4, seed=1).assign(**{column: value}).to_csv(tmp_path / "bad.csv", index=False)
    done = run("analyze", tmp_path / "bad.csv", "--out", tmp_path / "results")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
