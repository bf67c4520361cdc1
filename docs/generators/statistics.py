"""The page ``docs/statistics.md`` from ``benchmarks/results/coverage.json`` and ``null_studies.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from study.analysis.random_effects import RULE

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

HEAD = """\
# What the statistics guarantee

<!-- Written by `python docs/generate.py` from benchmarks/results. Do not edit by hand. -->

## Do the intervals cover the truth?

{studies} simulated studies of {participants} participants and {trials} trials, with known true values. A 95% interval
should contain the true value in 95% of studies. The error is the Monte Carlo standard error over studies. Where
participants are resampled, the true value is that of new participants on the same trials; percentile intervals of
{per_condition} participants in a condition are slightly too short, as the table shows. Where a mixed model is fitted,
categories are drawn for each study. Run it with `python -m benchmarks.coverage`.
"""

SLOPES = """\
## Random slopes

The models of the paper have random intercepts of participants and categories only. If participants differ in the
effect of the trial type, or categories in the effect of an explanation, such models mistake that variation for evidence
and reject true null hypotheses too often (Barr et al. 2013). Foretell names the slopes that the design supports but
the models omit, and shows the result with them. A plan can name them, the same in each model:

```toml
[analysis.models]
null = "trial_type + (trial_type || participant) + (saliency + examples || category)"
explanation = "trial_type + saliency + examples + (trial_type || participant) + (saliency + examples || category)"
interaction = "trial_type * saliency * examples + (trial_type || participant) + (saliency + examples || category)"
```

`(x | g)` estimates correlations, `(x || g)` sets them to 0. {rule}
"""

NULL = """\
### False positives

{studies} simulated studies per row, without any effect of explanations: {participants} participants, {categories}
categories. The share of p < .05, with its 95% interval. Run it with `python -m benchmarks.null_studies`.
"""

PENDING = """\
### False positives

`python -m benchmarks.null_studies` simulates studies without any effect and counts the tests that reject, for each
choice of random effects. It has no result yet.
"""


def render_page() -> str:
    """Render the whole page."""
    found = _result("coverage")
    assert found is not None
    head = HEAD.format(
        **{k: found[k] for k in ("studies", "participants", "trials")}, per_condition=found["participants"] // 4
    )
    rows = [
        f"| {row['measure']} | {row['coverage']:.3f} | {row['error']:.3f} | {row['intervals']:,} |"
        for row in found["rows"]
        if "false positives" not in row["measure"]
    ]
    table = ["| interval | coverage | error | intervals |", "|---|---|---|---|", *rows]
    return "\n".join(
        [head, *table, "", *_detection(found), SLOPES.format(rule=RULE), *_null(_result("null_studies")), ""]
    )


def _detection(found: dict[str, Any]) -> list[str]:
    row = next(row for row in found["rows"] if "false positives" in row["measure"])
    return [
        f"Equal d' with different criteria is called a difference in sensitivity in {row['coverage']:.1%} of "
        f"comparisons (error {row['error']:.1%}; 5% would be exact).",
        "",
    ]


def _null(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [PENDING]
    head = NULL.format(**{k: found[k] for k in ("studies", "participants", "categories")})
    rows = [
        f"| {row['world']} | {row['choice'].replace('||', '&#124;&#124;')} | {row['test']} | {row['rejected']:.3f} "
        f"[{row['low']:.3f}, {row['high']:.3f}] | {row['fitted']} |"
        for row in found["rows"]
    ]
    return [
        head,
        "| simulated variation | random effects of the model | test | rejected | studies |",
        "|---|---|---|---|---|",
        *rows,
    ]


def _result(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["result"] if path.is_file() else None
