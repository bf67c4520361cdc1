"""The page ``docs/data-dictionary.md``: the columns of exported files, and what ``analyze`` reads and writes."""

from __future__ import annotations

from generators.markdown import format_table
from study.analysis.responses.reading import CONFIDENCE, FLAGS, OPTIONAL, REQUIRED
from study.bundle import TRIAL_TYPES
from study.collection.export import DICTIONARY
from study.collection.tables.published import NAMES, columns
from study.conditions import CONDITIONS

HEAD = """\
# Data dictionary

<!-- Written by `python docs/generate.py` from the code. Do not edit by hand. -->

## What `export` writes

`python foretell.py export STUDY --out responses.csv` writes UTF-8, separated by commas, with one header line and one
row for each response to a main trial (practice is excluded). The same descriptions are written as JSON to
`data-dictionary.json` next to the file.

| option | effect |
|---|---|
| `--out NAME.parquet` | Parquet instead of CSV |
| `--psych-ds` | a Psych-DS folder, which describes itself in `dataset_description.json` |
| `--published` | the columns of the published data, as below |
| `--simulated` | simulated participants; otherwise real participants only |

In CSV files, texts that a spreadsheet would run as a formula start with an apostrophe.
"""

PUBLISHED = """\
## Published column names

`--published` writes the responses under the column names of Yang, Vong, Sojitra, Folke & Shafto (2021,
[Scientific Reports 11:9863](https://doi.org/10.1038/s41598-021-89267-4)), as their code book and analysis use them.
There, `correct` is the AI's prediction and `correct_response` says whether the participant predicted it. All other
columns keep Foretell's names; `data-dictionary.json` gives the origin of each. To read such a file with `analyze`, name
the columns: `--column participant=subject_id --column correct=correct_response` and so on.
"""

ANALYZE = """\
## What `analyze` reads

`python foretell.py analyze responses.csv --out results` reads one row for each response, from Foretell or elsewhere.
`--column participant=subject_id` renames a column of the file; further columns are ignored. Rows without a required
value are excluded, counted and reported. Any other error is refused with its place.
"""

RESULTS = """\
## What `analyze` writes

| file | content |
|---|---|
| `models.json` | the models and their likelihood-ratio tests, as below |
| `manuscript.docx`, `manuscript.md` | a draft of method and results in APA style with references, in Word with tables |
| `table1.csv`, `table1.tex` | Table 1: coefficients of the largest model with 95% Wald intervals, and z or t with df |
| `contrasts.tex`, `models.tex`, `random_effects.tex` | the tables of these names, for LaTeX with booktabs |
| `random_effects.csv` | standard deviations of the largest model's random effects, with the number of levels |
| `lrt.csv`, `models.csv` | the likelihood-ratio tests; the models with AIC and BIC |
| `contrasts.csv` | contrasts between conditions in log-odds and percentage points, Holm-corrected |
| `equivalence.csv` | where the plan has bounds: two one-sided tests of each contrast in percentage points |
| `bayes_factors.csv` | where the plan has a prior: Bayes factors for no difference of each contrast |
| `means_*.csv`, `means_*_contrasts.csv` | the estimated means that a plan asks for, and the contrasts between them |
| `exclusions.csv` | participants and responses excluded on Monitor (by reason) and by rules of the plan |
| `figure1.csv`, `.html`, `.svg` | Figure 1: accuracy by condition and trial type, 95% intervals over participants |
| `contrasts.svg`, `exploratory_*.svg` | the contrasts, and the figures of the exploratory analyses, for a manuscript |
| `exploratory_*.csv` | exploratory analyses: random effects, signal detection, learning, calibration, ... |
| `rows.csv` | the rows as analysed, after exclusions; participants are numbered |
| `analysis.R`, `analysis.py` | scripts (R with lme4 or ordinal; Python) that compute every planned number again |
| `report.md`, `report.html` | everything on one page: what was planned, what not, and what produced the numbers |

`models.json` is `{"models": {"null" | "explanation" | "interaction": MODEL}, "lrt": [TEST]}` with

- MODEL: `coefficients` (a list of `term`, `estimate`, `se`, `z`, `p`, and `limit` where the estimate is infinite; `t`
  and `df` in place of `z` where slopes were planned),
  `random` (a list of `group`, `sd`, for a slope also `term`), `correlations` of random effects where there are any,
  `loglik`, `df`, `n`, `converged`, `messages`. Estimates are log-odds; `se`, `z` and `p` are null where they cannot be
  estimated ([separation](decisions/0007-separation.md)).
- TEST: `smaller`, `larger`, `chisq`, `df`, `p`, `df2` and `f` (the denominator's degrees of freedom and F; null of a
  chi-square test), `p_holm` (corrected for the number of tests; null where each is judged alone).
"""


def render_page() -> str:
    """Render the whole page."""
    parts = [
        HEAD,
        *_tabulate_exported(),
        "",
        PUBLISHED,
        *_tabulate_published(),
        "",
        ANALYZE,
        *_tabulate_analyzed(),
        "",
        *_values(),
        "",
        RESULTS,
    ]
    return "\n".join(parts)


def _tabulate_published() -> list[str]:
    ours = {theirs: name for name, theirs in NAMES.items()}
    theirs = [(name, column) for name, column in columns(DICTIONARY).items() if column["name"] == "published"]
    rows = [(f"`{name}`", f"`{ours[name]}`" if name in ours else "", column["meaning"]) for name, column in theirs]
    return format_table(["published", "Foretell", "meaning"], rows)


def _tabulate_exported() -> list[str]:
    rows = [
        (f"`{name}`", column["meaning"], _format_codes(column.get("values", "")), column.get("unit", ""))
        for name, column in DICTIONARY.items()
    ]
    return format_table(["column", "meaning", "values", "unit"], rows)


def _tabulate_analyzed() -> list[str]:
    known = {"confidence": {"meaning": CONFIDENCE}, **DICTIONARY}
    rows = [(f"`{name}`", _need(name), known[name]["meaning"]) for name in (*REQUIRED, *OPTIONAL)]
    return format_table(["column", "", "meaning"], rows)


def _need(name: str) -> str:
    if name in OPTIONAL:
        return "optional"
    return "required, 0 or 1" if name in FLAGS else "required"


def _values() -> list[str]:
    return [
        f"Trial types: {', '.join(f'`{name}`' for name in TRIAL_TYPES)} (the first is the models' reference level). "
        f"Conditions of Foretell's own studies: {', '.join(f'`{name}`' for name in CONDITIONS)}.",
    ]


def _format_codes(values: str) -> str:
    return ", ".join(f"`{value}`" for value in values.split(", ")) if values else ""
