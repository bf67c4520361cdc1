"""Writes the pages made from code and results: ``python docs/generate.py``. A test fails where one is not current."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import fared  # noqa: E402
import held  # noqa: E402
import relied  # noqa: E402

from study.analysis.responses import CONFIDENCE, FLAGS, OPTIONAL, REQUIRED  # noqa: E402
from study.bundle import TRIAL_TYPES  # noqa: E402
from study.collection.export import DICTIONARY  # noqa: E402
from study.collection.published import NAMES, columns  # noqa: E402
from study.conditions import CONDITIONS  # noqa: E402

HEAD = """\
# Data dictionary

<!-- Written by `python docs/generate.py` from the code. Do not edit by hand. -->

## What `export` writes

`python foretell.py export STUDY --out responses.csv` writes UTF-8 with commas and one header line: one row for each
answered main trial (practice is left out), and the same descriptions as JSON in `data-dictionary.json` beside the
file. A name that ends with `.parquet` gives Parquet; `--psych-ds` gives a Psych-DS folder, which describes itself in
`dataset_description.json`; `--published` gives the columns the names of the published data, as below. Real
participants only; `--simulated` writes the simulated ones instead. Texts that a spreadsheet would run as a formula get
a leading apostrophe in CSV files.
"""

PUBLISHED = """\
## Under the published names

`--published` writes the answers under the names of the data of Yang, Vong, Sojitra, Folke & Shafto (2021,
[Scientific Reports 11:9863](https://doi.org/10.1038/s41598-021-89267-4)), as their code book and analysis use them.
Mind that `correct` is then what the AI chose, and `correct_response` whether the person foretold it. All other columns
are Foretell's own and keep their names; `data-dictionary.json` says of each whose it is. For `analyze` name the columns
back: `--column participant=subject_id --column correct=correct_response` and so on.
"""

ANALYZE = """\
## What `analyze` reads

`python foretell.py analyze responses.csv --out results` reads one row per answer, from Foretell or from anywhere else.
Columns under other names are mapped, e.g. `--column participant=subject_id`; further columns are ignored. Rows that
lack a required value are left out, counted and reported; anything else that is wrong is refused with its place.
"""

RESULTS = """\
## What `analyze` writes

| file | content |
|---|---|
| `models.json` | the models and their likelihood-ratio tests, as below |
| `table1.csv`, `table1.tex` | Table 1: the largest model's coefficients with 95 % Wald intervals |
| `lrt.csv`, `models.csv` | the likelihood-ratio tests; the models side by side with AIC and BIC |
| `contrasts.csv` | conditions compared, in log-odds and percentage points; p corrected by Holm's method |
| `exclusions.csv` | participants and answers left out by researchers on Monitor (by reason) and by rules of the plan |
| `figure1.csv`, `figure1.html` | Figure 1: accuracy by condition and trial type, with 95 % bootstrap intervals |
| `exploratory_*.csv` | what no plan named: random slopes, signal detection, learning, calibration, ... |
| `report.md`, `report.html` | all of it in words, on one page: what was planned, what not, what made the numbers |

`models.json` is `{"models": {"null" | "explanation" | "interaction": MODEL}, "lrt": [TEST]}` with

- MODEL: `coefficients` (a list of `term`, `estimate`, `se`, `z`, `p`, and `limit` where the estimate is infinite),
  `random` (a list of `group`, `sd`, of a slope also `term`), `correlations` of random effects where there are any,
  `loglik`, `df`, `n`, `converged`, `messages`. Estimates are log-odds; `se`, `z` and `p` are null where there is none
  to claim ([separation](decisions/0007-separation.md)).
- TEST: `smaller`, `larger`, `chisq`, `df`, `p`.
"""


def dictionary() -> str:
    """The data dictionary."""
    return "\n".join(
        [HEAD, *_exported(), "", PUBLISHED, *_published(), "", ANALYZE, *_analyzed(), "", *_values(), "", RESULTS]
    )


def _published() -> list[str]:
    ours = {theirs: name for name, theirs in NAMES.items()}
    theirs = [(name, told) for name, told in columns(DICTIONARY).items() if told["name"] == "published"]
    rows = [f"| `{name}` | {f'`{ours[name]}`' if name in ours else ''} | {told['meaning']} |" for name, told in theirs]
    return ["| published | here | meaning |", "|---|---|---|", *rows]


def _exported() -> list[str]:
    rows = [
        f"| `{name}` | {column['meaning']} | {_coded(column.get('values', ''))} | {column.get('unit', '')} |"
        for name, column in DICTIONARY.items()
    ]
    return ["| column | meaning | values | unit |", "|---|---|---|---|", *rows]


def _analyzed() -> list[str]:
    known = {"confidence": {"meaning": CONFIDENCE}, **DICTIONARY}
    rows = [f"| `{name}` | {_need(name)} | {known[name]['meaning']} |" for name in (*REQUIRED, *OPTIONAL)]
    return ["| column | | meaning |", "|---|---|---|", *rows]


def _need(name: str) -> str:
    if name in OPTIONAL:
        return "optional"
    return "required, 0 or 1" if name in FLAGS else "required"


def _values() -> list[str]:
    return [
        f"Trial types: {', '.join(f'`{name}`' for name in TRIAL_TYPES)} (the first is the models' reference level). "
        f"Conditions of Foretell's own studies: {', '.join(f'`{name}`' for name in CONDITIONS)}.",
    ]


def _coded(values: str) -> str:
    return ", ".join(f"`{value}`" for value in values.split(", ")) if values else ""


PAGES = {
    "data-dictionary.md": dictionary,
    "faithfulness.md": fared.page,
    "concepts.md": relied.page,
    "statistics.md": held.page,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        Path(__file__).with_name(name).write_text(page(), encoding="utf-8")
