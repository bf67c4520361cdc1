"""Published responses of people, analysed by Foretell: ``python -m benchmarks.reanalysis FOLDER``.

FOLDER holds the responses of two studies as CSV files, which their authors publish:

``accept_reject_imagenet.csv``
    participant, condition, item (the photograph), ground_truth_wnid, ai_correct (0, 1), correct (0, 1). Nguyen,
    Taesiri & Nguyen (2022).
``two_step_cards.csv``
    participant, condition, first, final, outcome (red, black), ai_confidence_red (0 to 100). Benz et al.

Figures in print are compared with what the product's own functions compute, and the mixed model of the first study with
lme4 and glmmTMB, which fit the same rows in the same run. Seconds are processor time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.machine import arguments, hand_over
from benchmarks.models import measure_time
from study.analysis.exploratory import reliance
from study.analysis.means.means import estimate_means
from study.analysis.models import mixed
from study.analysis.models.records import MixedModel
from study.analysis.responses import accuracies, reading
from study.analysis.responses.decisions import read_decisions

ACCEPT_REJECT, TWO_STEP = "accept_reject_imagenet.csv", "two_step_cards.csv"
ACCURACIES = {
    "none": (81.56, 5.54, 92.3, 71.0),
    "knn": (75.44, 8.83, 94.0, 56.1),
    "emd_nn": (76.72, 9.30, 94.9, 58.1),
    "emd_corr": (78.39, 7.50, 93.6, 63.0),
    "chm_nn": (77.56, 6.91, 95.9, 58.7),
    "chm_corr": (76.72, 8.47, 94.4, 59.0),
}
"""Printed in %: mean and SD of accuracy over participants, accuracy where the AI is right, and where it is wrong."""
MEASURES = {reliance.FIRST: 0, reliance.FINAL: 1, "Switched": 2, reliance.RAIR: 3, reliance.RSR: 4}
"""Measures that are printed, and their places in `RELIANCE`."""
RELIANCE = {
    "A": (0.670, 0.694, 0.148, 0.380, 0.662),
    "B": (0.644, 0.688, 0.146, 0.556, 0.527),
    "BP": (0.652, 0.694, 0.122, 0.496, 0.609),
    "C": (0.689, 0.710, 0.145, 0.534, 0.540),
}
FORMULA = "correct ~ condition * ai_correct + (1 | participant) + (1 | item)"
SLOPES = "correct ~ condition * ai_correct + (ai_correct || participant) + (1 | item)"
"""Participants also differ in how much better they do where the AI is right."""
WRONG, RIGHT = "AI wrong", "AI right"

_R = """
suppressMessages(library(PACKAGE))
data <- read.csv(FILE, stringsAsFactors = TRUE)
data$condition <- relevel(data$condition, "none")
time <- system.time(model <- FIT)
table <- coef(summary(model))
if (is.list(table)) table <- table$cond
cat(time[["user.self"]] + time[["sys.self"]], as.numeric(logLik(model)), "\\n")
write.table(table[, 1:2], col.names = FALSE, quote = FALSE, sep = "\\t")
"""
_PEERS = {
    "lme4": 'glmer({formula}, data, binomial, control = glmerControl(optimizer = "bobyqa"))',
    "glmmTMB": "glmmTMB({formula}, data, binomial)",
}


def measure(folder: Path) -> dict[str, Any]:
    """Analyse both studies."""
    return {"accept_reject": analyze_accept_reject(folder / ACCEPT_REJECT), "two_step": analyze_two_step(folder)}


def analyze_accept_reject(path: Path) -> dict[str, Any]:
    """Compute accuracies and the differences that a mixed model estimates, and compare programs."""
    frame = read_accept_reject(path)
    model, seconds = measure_time(lambda: mixed.fit(frame, FORMULA))
    with_slopes = mixed.fit(frame, SLOPES)
    return {
        "responses": len(frame),
        "participants": frame["participant"].nunique(),
        "images": frame["item"].nunique(),
        "accuracies": tabulate_accuracies(frame),
        "formula": FORMULA,
        "programs": {
            "Foretell": {"cpu_seconds": seconds["cpu_seconds"], **list_coefficients(model)},
            **{name: fit_in_r(frame, name) for name in _PEERS},
        },
        "random": {one.group: round(one.sd, 4) for one in model.random},
        "contrasts": list_contrasts(frame, model),
        "with_slopes": {
            "formula": SLOPES,
            "loglik": round(with_slopes.loglik, 4),
            "contrasts": list_contrasts(frame, with_slopes),
        },
    }


def read_accept_reject(path: Path) -> pd.DataFrame:
    """Read the responses; the first condition, without an explanation, is the reference."""
    frame = pd.read_csv(path).rename(columns=lambda name: "item" if name.startswith("pic") else name)
    return frame.assign(
        condition=pd.Categorical(frame["condition"], list(ACCURACIES)),
        ai_correct=pd.Categorical(np.where(frame["ai_correct"] == 1, RIGHT, WRONG), [WRONG, RIGHT]),
    )


def tabulate_accuracies(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Tabulate by condition what is printed and what the responses give, with intervals over participants."""
    data = reading.prepare(
        frame[["participant", "condition", "correct"]].assign(
            trial_type=np.where(frame["ai_correct"] == RIGHT, "std_correct", "std_incorrect"),
            category=frame["ground_truth_wnid"],
            item=frame["item"],
            saliency=frame["condition"].str.endswith("corr").astype(int),
            examples=(frame["condition"] != "none").astype(int),
            task="accept_reject",
        )
    )
    cells = accuracies.accuracy(data.frame).set_index(["condition", "trial_type"])
    each = data.frame.groupby(["condition", "participant"], observed=True)["correct"].mean().groupby("condition")
    rows = []
    for condition, printed in ACCURACIES.items():
        mine = 100 * each.get_group(condition)
        right, wrong = (cells.loc[(condition, kind)] for kind in ("std_correct", "std_incorrect"))
        rows.append(
            {
                "condition": condition,
                "printed": printed,
                "mean": round(float(mine.mean()), 2),
                "sd": round(float(mine.std(ddof=1)), 2),
                RIGHT: [round(100 * float(right[name]), 1) for name in ("accuracy", "low", "high")],
                WRONG: [round(100 * float(wrong[name]), 1) for name in ("accuracy", "low", "high")],
            }
        )
    return rows


def list_contrasts(frame: pd.DataFrame, model: MixedModel) -> list[dict[str, Any]]:
    """Estimate each explanation's difference from none, where the AI is wrong and where it is right."""
    how: dict[str, Any] = {"contrasts": ["reference"], "adjust": "holm"}
    means = estimate_means(frame, model, "condition | ai_correct", scale="population", **how)
    rows: list[dict[str, Any]] = json.loads(means.contrasts.to_json(orient="records", double_precision=6))
    return rows


def list_coefficients(model: MixedModel) -> dict[str, Any]:
    """List log-likelihood, and estimate and standard error of each coefficient in its order."""
    rows = [[round(one.estimate, 6), round(one.se or np.nan, 6)] for one in model.coefficients]
    return {"loglik": round(model.loglik, 4), "coefficients": rows}


def fit_in_r(frame: pd.DataFrame, package: str) -> dict[str, Any] | str:
    """Fit the same model in R, or explain why not."""
    if shutil.which("Rscript") is None:
        return "R is not installed"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "responses.csv"
        # In R's order of levels, the AI that is wrong comes first only under a name that sorts first.
        frame.assign(ai_correct=frame["ai_correct"].cat.codes.map({0: "a", 1: "b"})).to_csv(path, index=False)
        script = _R.replace("PACKAGE", package).replace("FILE", json.dumps(str(path)))
        script = script.replace("FIT", _PEERS[package].format(formula=FORMULA))
        done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{package} is not installed" if "no package" in done.stderr else done.stderr.strip()[-200:]
    first, *lines = done.stdout.strip().splitlines()
    seconds, loglik = map(float, first.split())
    rows = {name: [round(float(value), 6) for value in values] for name, *values in (x.split("\t") for x in lines)}
    return {"cpu_seconds": round(seconds, 2), "loglik": round(loglik, 4), "coefficients": sort_terms(rows)}


def sort_terms(rows: dict[str, list[float]]) -> list[list[float]]:
    """Sort R's coefficients, whose conditions are alphabetical, in the order of `ACCURACIES`."""
    others = list(ACCURACIES)[1:]
    terms = ["(Intercept)", *(f"condition{name}" for name in others), "ai_correctb"]
    return [rows[name] for name in [*terms, *(f"condition{name}:ai_correctb" for name in others)]]


def analyze_two_step(folder: Path) -> dict[str, Any]:
    """Compute the measures of reliance, as the command `reliance` does."""
    frame = pd.read_csv(folder / TWO_STEP)
    frame["advice"] = np.where(frame["ai_confidence_red"] > 50, "red", "black")
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "decisions.csv"
        frame.to_csv(path, index=False)
        decisions, _ = read_decisions(path, {"truth": "outcome", "ai": "advice"})
    table = reliance.tabulate(decisions).set_index(["condition", "measure"])
    return {
        "responses": len(decisions),
        "participants": decisions["participant"].nunique(),
        "measures": [
            {
                "condition": condition,
                "measure": name,
                "printed": printed[place],
                "found": [
                    round(float(table.loc[(condition, name), column]), 4) for column in ("proportion", "low", "high")
                ],
            }
            for condition, printed in RELIANCE.items()
            for name, place in MEASURES.items()
        ],
    }


if __name__ == "__main__":
    parser = arguments("reanalysis")
    parser.add_argument("folder", type=Path, help="where the two CSV files are")
    given = parser.parse_args()
    for name in (ACCEPT_REJECT, TWO_STEP):
        if not (given.folder / name).is_file():
            parser.error(f"{given.folder / name} is missing. docs/results/reanalysis.md says who publishes it.")
    hand_over("reanalysis", given, lambda: measure(given.folder))
