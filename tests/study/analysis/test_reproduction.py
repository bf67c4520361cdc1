"""The report's numbers, computed again from its own folder by its scripts in R and Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study.analysis.planned import analysis as planned
from study.analysis.planned import nested
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.report.finding import compute_headline
from study.analysis.report.report import Report
from study.analysis.responses import reading as responses
from study.plan.preregistration import AnalysisPlan
from study.tasks.scale import RatingScale
from tests.study.analysis.rscript import installed, needed
from tests.study.analysis.simulated import TYPES, study, study_with_images

ROOT = Path(__file__).resolve().parents[3]
SLOPES = " + (trial_type || participant) + (saliency | category) + (1 | item)"
OWN = " + (ai_probability + position || participant) + (1 | category)"
PLACEBOS = (
    {"more": "saliency", "less": "random_maps"},
    {"more": "saliency", "trial_types": ("std_correct",)},
    {"more": "concepts", "trial_types": ("adv_incorrect", "std_correct")},
    {"more": "random_maps"},
)
"""Contrasts with conditions outside the two factors before and after one within them."""
PLANS = {
    "intercepts": AnalysisPlan(
        models={"null": "trial_type", "explanation": "trial_type + saliency * examples"},
        tests="chi_square",
        contrasts=({"more": "saliency"}, {"more": "both", "less": "examples", "trial_types": ("std_correct",)}),
        exclusions={"fewest_responses": 20},
        equivalence="-30, 25",
        prior_sd=0.5,
    ),
    "slopes": AnalysisPlan(
        models={"null": f"trial_type{SLOPES}", "explanation": f"trial_type * saliency{SLOPES}"},
        contrasts=({"more": "saliency", "trial_types": ("adv_incorrect", "std_correct")}, {"more": "both"}),
        alpha=0.1,
        equivalence=20,
    ),
    "covariates": AnalysisPlan(
        models={
            "explanation": f"trial_type + saliency + ai_probability + position{OWN}",
            "moderation": f"trial_type + saliency * ai_probability + position{OWN}",
        },
        contrasts=({"more": "saliency"},),
        equivalence=20,
    ),
    "ratings": AnalysisPlan(
        models={
            "null": "trial_type + (1 | participant) + (1 | category)",
            "explanation": "trial_type * saliency + (1 | participant) + (1 | category)",
        },
        tests="chi_square",
        contrasts=({"more": "saliency", "trial_types": ("std_correct",)}, {"more": "saliency"}),
        prior_sd=0.5,
    ),
    "ratings_slopes": AnalysisPlan(
        models={
            "null": "trial_type + (trial_type || participant) + (1 | category)",
            "explanation": "trial_type + saliency * examples + (trial_type || participant) + (1 | category)",
        },
        contrasts=({"more": "saliency"}, {"more": "both", "less": "examples"}),
    ),
    "placebos": AnalysisPlan(
        models={"null": "trial_type", "explanation": "trial_type + saliency * examples"},
        tests="chi_square",
        contrasts=PLACEBOS,
        equivalence=25,
        prior_sd=0.5,
    ),
    "placebos_slopes": AnalysisPlan(
        models={
            "null": "trial_type + (trial_type || participant) + (0 + saliency | category)",
            "explanation": "trial_type * saliency + (trial_type || participant) + (0 + saliency | category)",
        },
        contrasts=PLACEBOS,
    ),
    "ratings_placebos": AnalysisPlan(
        models={
            "null": "trial_type + (1 | participant) + (1 | category)",
            "explanation": "trial_type + saliency + (1 | participant) + (1 | category)",
        },
        contrasts=PLACEBOS,
    ),
}


@pytest.fixture(scope="module", params=PLANS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a planned report, but for exploratory analyses. One of 25 participants is excluded by a plan."""
    frame = study_with_images(4, people=20, categories=5) if request.param == "slopes" else study(25, 8, 8, seed=11)
    frame = frame if request.param != "covariates" else with_confidence(frame)
    frame = rate() if request.param.startswith("ratings") else frame
    frame = with_placebos(frame) if "placebos" in request.param else frame
    if request.param == "ratings_placebos":  # clmm takes half a minute for all of them
        frame = frame[(frame["trial_type"] != "std_incorrect") & (pd.factorize(frame["participant"])[0] < 28)]
    frame = frame[(frame["participant"] != "p3") | (frame.index % 3 == 0)]
    done = planned.execute(responses.prepare(frame), PLANS[request.param])
    made = Report(done.analysis, done.data, compute_headline(done.analysis, done.data, done), done)
    return write(made, tmp_path_factory.mktemp(request.param))


def write(made: Report, out: Path) -> Path:
    """Write the files of a report, but for exploratory analyses, into a folder."""
    for name, text in made.describe_models().items():
        (out / name).write_text(text, encoding="utf-8")
    return out


def with_confidence(frame: pd.DataFrame) -> pd.DataFrame:
    """Name an image by category, trial type and trial, and give each the AI's confidence."""
    item = frame["category"] + " " + frame["trial_type"].astype(str) + " " + (frame["trial"] % 4).astype(str)
    confidence = 0.4 + (pd.factorize(item)[0] % 13) / 25
    own = pd.factorize(frame["participant"])[0] % 2 == 0  # every other participant is right where the AI is confident
    return frame.assign(
        item=item, ai_probability=confidence, correct=np.where(own & (confidence > 0.7), 1, frame["correct"])
    )


def with_placebos(frame: pd.DataFrame) -> pd.DataFrame:
    """Name the conditions, and move every third participant with both explanations or with examples to a placebo."""
    names = pd.Series(responses.CONDITION_OF_FACTORS)
    condition = names[list(zip(frame["saliency"], frame["examples"], strict=True))].to_numpy()
    moved = pd.factorize(frame["participant"])[0] % 3 == 0
    for factorial, placebo in (("examples", "random_maps"), ("both", "concepts")):
        condition = np.where(moved & (condition == factorial), placebo, condition)
    return frame.assign(condition=condition)


def rate() -> pd.DataFrame:
    """Ratings on three of four levels, with participants who differ in the effect of each trial type."""
    levels = RatingScale((1, 2, 4), (-1.0, 0.7))
    world = AdditiveTruth({**TABLE_1, "": (0.3, 0.1, 1.0)}, 0.8, 0.5, categories=4, per_type=2, person_slope_sd=1.0)
    return replace(world, levels=levels, image_sd=0.5).study(12, np.random.default_rng(5)).assign(task="rating")


def read_expected(folder: Path, *, by_emmeans: bool = False) -> dict[str, float]:
    """Every number of the report that a script computes again, by what a script calls it; contrasts also by emmeans."""
    tables = {path.stem: pd.read_csv(path, keep_default_na=False, na_values=[""]) for path in folder.glob("*.csv")}
    models = json.loads((folder / "models.json").read_text())["models"]
    largest = list(models.values())[-1]["coefficients"]
    known = {f"{column} {c['term']}": c[column] for c in largest for column in ("estimate", "se")}
    thresholds = list(models.values())[-1].get("thresholds", [])
    known |= {f"{column} {c['term']}": c[column] for c in thresholds for column in ("estimate", "se")}
    known |= {f"loglik {name}": model["loglik"] for name, model in models.items()}
    sds = tables["random_effects"].to_dict("records")
    known |= {f"sd {row['group']} {row['term']}": row["sd"] for row in sds}
    names = tables["lrt"]["larger"] + " vs " + tables["lrt"]["smaller"]
    for column in {"chisq", "df", "p", "p_holm"} - ({"p_holm"} if tables["lrt"]["p_holm"].isna().all() else set()):
        known |= {f"{column} {name}": value for name, value in zip(names, tables["lrt"][column], strict=True)}
    points = ("points", "points_low", "points_high")
    if thresholds:
        points = ("level_difference", "difference_low", "difference_high")
    for table, columns in (
        ("contrasts", ("estimate", "se", "p", "p_holm", *points)),
        ("equivalence", ("p_equivalence", "p_equivalence_holm")),
    ):
        for row in list_tested(tables, table):
            known |= {f"{column} {row['contrast']}": row[column] for column in columns}
    if by_emmeans:
        for row in list_tested(tables, "contrasts"):
            known |= {f"{column} by emmeans {row['contrast']}": row[column] for column in ("estimate", "se")}
    for row in list_tested(tables, "bayes_factors"):
        known |= {f"log {c} {row['contrast']}": np.log(row[c]) for c in row if c.startswith("bf01_")}
    return known


def list_tested(tables: dict[str, pd.DataFrame], name: str) -> list[dict[str, float]]:
    """The rows of a table about contrasts; without those that no model tests, for which p is missing."""
    tested = tables["contrasts"]["contrast"][tables["contrasts"]["p"].notna()]
    table = tables.get(name, pd.DataFrame({"contrast": []}))
    return table[table["contrast"].isin(tested)].to_dict("records")


def run(command: list[str], folder: Path, **settings: str) -> str:
    """Run a script in a report's folder, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_numbers(printed: str) -> dict[str, float]:
    """What a script computed next to the report's numbers, by name."""
    lines = [line.rsplit(None, 3) for line in printed.splitlines()]
    return {line[0]: float(line[2]) for line in lines if len(line) == 4 and line[3][-4:-2] in ("e-", "e+")}


def check(expected: dict[str, float], made: dict[str, float]) -> None:
    """Every number, and no other, to 1e-3; percentage points to 1e-4 of a probability."""
    assert set(made) == set(expected)
    for name, value in expected.items():
        assert made[name] == pytest.approx(value, abs=1e-2 if name.startswith("points") else 1e-3, rel=0), name


def test_the_script_in_r_makes_every_number_again(folder: Path) -> None:
    """Catches rows, levels, weights or random effects of a script that are not those of the report, and a number that
    it leaves out. Oracle: R's lme4, whose standard errors are finite differences, and of ratings ordinal::clmm; of
    contrasts also emmeans, where it is installed."""
    package = "ordinal" if folder.name.startswith("ratings") else "lme4"
    if not installed(package):
        pytest.skip(f"R with {package} is not installed")
    printed = run(["Rscript", "analysis.R"], folder)
    check(read_expected(folder, by_emmeans=installed("emmeans")), read_numbers(printed))
    assert ("emmeans is not installed" in printed) is not installed("emmeans")


@pytest.mark.parametrize("folder", ["intercepts", "ratings", "placebos", "ratings_placebos"], indirect=True)
def test_the_script_in_python_makes_every_number_again(folder: Path) -> None:
    """Catches the same of the other script, and one that a folder elsewhere cannot run."""
    check(read_expected(folder), read_numbers(run([sys.executable, "analysis.py"], folder)))


@needed("lme4")
@needed("emmeans")
@pytest.mark.parametrize("folder", ["covariates"], indirect=True)
def test_means_by_emmeans_are_those_of_the_model(folder: Path) -> None:
    """Catches means at other values of the factors, or at another mean of covariates that interact with them.

    Oracle: the coefficients of the report's largest model, with covariates at 0.
    """
    line = re.compile(r"mean by emmeans \(trial_type, saliency\): (\w+) ([01]) +(\S+)")
    made = {(kind, value): float(mean) for kind, value, mean in line.findall(run(["Rscript", "analysis.R"], folder))}
    assert len(made) == 6
    *_, largest = json.loads((folder / "models.json").read_text())["models"].values()
    estimates = {one["term"]: one["estimate"] for one in largest["coefficients"]}
    for (kind, value), mean in made.items():
        expected = estimates["(Intercept)"] + estimates.get(f"trial_type{kind}", 0) + int(value) * estimates["saliency"]
        assert mean == pytest.approx(expected, abs=1e-3)


@needed("lme4")
@needed("emmeans")
@pytest.mark.parametrize("folder", ["intercepts"], indirect=True)
def test_the_script_in_r_needs_no_emmeans(folder: Path, tmp_path: Path) -> None:
    """Catches a script that stops where lme4 is installed and emmeans is not."""
    paths = subprocess.run(["Rscript", "-e", "cat(.libPaths(), .Library, sep='\n')"], capture_output=True, text=True)
    *libraries, base = [Path(line) for line in paths.stdout.splitlines()]
    if (base / "emmeans").exists():
        pytest.skip("emmeans is among R's own packages, which cannot be hidden")
    for package in (one for library in libraries for one in library.iterdir() if one.name != "emmeans"):
        if not (tmp_path / package.name).exists():
            (tmp_path / package.name).symlink_to(package)
    hidden = {"R_LIBS": str(tmp_path), "R_LIBS_SITE": str(tmp_path), "R_LIBS_USER": str(tmp_path)}
    printed = run(["Rscript", "analysis.R"], folder, **hidden)
    assert "The R package emmeans is not installed" in printed
    check(read_expected(folder), read_numbers(printed))


@pytest.mark.parametrize("folder", ["intercepts"], indirect=True)
def test_rows_are_those_analysed_and_name_no_participant(folder: Path) -> None:
    """Catches rows that the plan excludes (those of p3), and names of participants in a file that is passed on."""
    rows = pd.read_csv(folder / "rows.csv")
    assert len(rows) == 24 * 24
    assert sorted(rows["participant"].unique()) == [f"p{number:02d}" for number in range(1, 25)]
    assert list(rows["participant"].unique())[3] == "p04"  # that was p4


def test_without_a_plan_the_default_contrasts_with_placebos_are_made_again(tmp_path: Path) -> None:
    """Catches a report without a plan whose scripts lack the model of the condition, and a script that stops at a
    contrast which the models cannot test (examples - none)."""
    data = responses.prepare(with_placebos(study(24, 8, 8, seed=11)))
    analysis = nested.analyze(data, fixed={"a": "trial_type", "b": "trial_type * saliency"}, tests="chi_square")
    folder = write(Report(analysis, data, compute_headline(analysis, data, None)), tmp_path)
    made = read_numbers(run([sys.executable, "analysis.py"], folder))
    assert {f"points saliency - random_maps, {kind}" for kind in TYPES} < set(made)
    check(read_expected(folder), made)
