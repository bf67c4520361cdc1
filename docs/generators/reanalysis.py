"""Tables, figure and page of ``benchmarks/results/reanalysis.json``."""

from __future__ import annotations

from generators.benchmark_tables import Result
from generators.markdown import format_p, format_table
from generators.plots import Series, draw_dots
from generators.results import describe_machine, read_result

RIGHT, WRONG = "AI right", "AI wrong"
NAMES = {
    "none": "no explanation",
    "knn": "nearest neighbours",
    "emd_nn": "EMD, neighbours only",
    "emd_corr": "EMD, correspondences",
    "chm_nn": "CHM, neighbours only",
    "chm_corr": "CHM, correspondences",
}
"""What participants saw next to the AI's label, by the condition's name in the file."""

COMMAND = (
    'python foretell.py glmm accept_reject_imagenet.csv --factor ai_correct --reference condition=none --formula "{}" '
    '--means "condition | ai_correct" --contrast reference --scale population'
)
PAGE = """\
# Published responses, analysed again

<!-- Written by `python docs/generate.py` from benchmarks/results. Do not edit by hand. -->

Two studies of advice from an AI whose authors publish every response, from the file to the figure. A study file can
have both tasks: [`accept_reject`](../experiment.md) and [`reliance`](../how-to/measure-reliance.md).

Neither file is part of Foretell. Save them with the names and columns that `benchmarks/reanalysis.py` lists, and run
`python foretell.py bench reanalysis FOLDER`.

## Is the AI right? {participants} participants, {responses:,} responses

Participants saw an ImageNet photograph and the label that an AI gave it, most of them with images that explain the
label, and accepted or rejected it (Nguyen, Taesiri & Nguyen 2022; data under the MIT licence). In %, with 95% intervals
over participants:

{accuracies}

The publication prints the means, SDs and accuracies: all {figures} come out to their last digit.

![Correct responses by condition, where the AI is right and where it is wrong](../../benchmarks/figures/reanalysis.svg)

Each participant saw right and wrong labels, and most of the {images:,} photographs recur. A mixed model takes both
into account:

```bash
{command}
```

Differences from the condition without an explanation, in percentage points, averaged over participants and photographs;
p values and intervals are corrected for the five differences in each column (Holm, Bonferroni):

{contrasts}

{finding}

{slopes}

Photographs differ far more than participants do: the standard deviations on the logit scale are {item:.2f} and
{participant:.2f}. A model without them overstates how much these responses say about other photographs.

All programs fit the same {responses:,} rows:

{programs}

{machine}

## Who follows the AI? {decisions_participants} participants, {decisions:,} decisions

Participants guessed the colour of a card, saw how confident an AI was that it is red, and guessed again (Benz & Gomez
Rodriguez 2025; data under ODC-BY). The AI counts as saying red where its confidence is above 50.

```bash
python foretell.py reliance two_step_cards.csv --column truth=outcome --column ai=advice
```

`advice` is a column to add: `red` where `ai_confidence_red` is above 50, else `black`. Shares, with 95% intervals over
participants:

{reliance}

All {measures} published figures come out to their last digit. In every condition, more final than first guesses are
correct. The conditions differ in [RAIR and RSR](../how-to/measure-reliance.md#read-the-results): in A participants keep
correct guesses most often, and correct wrong ones least often.

## References

- Nguyen, G., Taesiri, M. R., & Nguyen, A. (2022). Visual correspondence-based explanations improve AI robustness and
  human-AI team accuracy. NeurIPS 2022. arXiv:2208.00780. Data: github.com/anguyen8/visual-correspondence-XAI
- Benz, N. C., & Gomez Rodriguez, M. (2025). Human-alignment influences the utility of AI-assisted decision making.
  arXiv:2501.14035. Data: github.com/ninacobe/human-alignment-study
"""


def tabulate(result: Result) -> list[str]:
    """Tabulate the programs that fit the model of the first study."""
    programs = result["accept_reject"]["programs"]
    ours = programs["Foretell"]["coefficients"]
    rows = []
    for name, one in programs.items():
        if isinstance(one, str):
            rows.append([name, one, "", "", ""])
            continue
        pairs = [list(zip(mine, theirs, strict=True)) for mine, theirs in zip(ours, one["coefficients"], strict=True)]
        apart = [max(abs(mine - theirs) for mine, theirs in column) for column in zip(*pairs, strict=True)]
        away = ["", ""] if name == "Foretell" else [f"{value:.1g}" for value in apart]
        rows.append([name, f"{one['cpu_seconds']:.1f}", f"{one['loglik']:.3f}", *away])
    return format_table(
        ["program", "processor seconds", "log-likelihood", "coefficients differ by", "standard errors by"], rows
    )


def plot(result: Result) -> str:
    """Plot the accuracies of the first study."""
    rows = result["accept_reject"]["accuracies"]
    series = {
        kind: Series(
            {NAMES[row["condition"]]: row[kind][0] / 100 for row in rows},
            {NAMES[row["condition"]]: [end / 100 for end in row[kind][1:]] for row in rows},
        )
        for kind in (RIGHT, WRONG)
    }
    return draw_dots(series, "share of correct responses", line=0.5, line_label="chance", from_zero=False)


def render_page() -> str:
    """Render the page."""
    record = read_result("reanalysis")
    assert record is not None
    first, second = record["result"]["accept_reject"], record["result"]["two_step"]
    return PAGE.format(
        participants=first["participants"],
        responses=first["responses"],
        images=first["images"],
        command=COMMAND.format(first["formula"]),
        accuracies="\n".join(_tabulate_accuracies(first)),
        figures=4 * len(first["accuracies"]),
        contrasts="\n".join(_tabulate_contrasts(first)),
        finding=_tell_finding(first),
        slopes=_tell_slopes(first),
        **first["random"],
        programs="\n".join(tabulate(record["result"])),
        machine=describe_machine(record),
        decisions=second["responses"],
        decisions_participants=second["participants"],
        reliance="\n".join(_tabulate_reliance(second)),
        measures=len(second["measures"]),
    )


def _tabulate_accuracies(study: Result) -> list[str]:
    rows = []
    for row in study["accuracies"]:
        mean, sd, *_ = row["printed"]
        assert [row["mean"], row["sd"], row[RIGHT][0], row[WRONG][0]] == row["printed"], row
        shown = ("{} ({} to {})".format(*row[kind]) for kind in (RIGHT, WRONG))
        rows.append([NAMES[row["condition"]], f"{mean:.2f} ± {sd:.2f}", *shown])
    return format_table(["explanation", "mean ± SD over participants", RIGHT, WRONG], rows)


def _tabulate_contrasts(study: Result) -> list[str]:
    cells: dict[str, list[str]] = {}
    for row in study["contrasts"]:
        ends = f"{100 * row['estimate']:+.1f} ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
        cells.setdefault(row["contrast"].removesuffix(" - none"), []).append(f"{ends}, p {_relate(row['p_holm'])}")
    order = list(dict.fromkeys(row["ai_correct"] for row in study["contrasts"]))
    return format_table(["explanation", *order], [[NAMES[name], *cells[name]] for name in cells])


def _relate(p: float) -> str:
    text = format_p(p)
    return text if text.startswith("<") else f"= {text}"


def _tell_finding(study: Result) -> str:
    """Say what the differences show, from the same numbers."""
    lower, every = _find_lower(study["contrasts"])
    which = "Each of the explanations" if len(lower) == every else f"{len(lower)} of {every} explanations"
    ends = sorted(-100 * row["estimate"] for row in lower)
    return (
        f"{which} made participants accept a wrong label more often: correct rejections fall by {ends[0]:.0f} to\n"
        f"{ends[-1]:.0f} points. Where the AI is right, there is no clear evidence that any of them helps. Overall\n"
        "accuracies, which mix both, do not show this."
    )


def _find_lower(contrasts: list[Result]) -> tuple[list[Result], int]:
    """Find the explanations with which wrong labels are accepted more often, and count all."""
    clear = {kind: [one for one in contrasts if _is_clear(one, kind)] for kind in (WRONG, RIGHT)}
    falls = all(row["estimate"] < 0 for row in clear[WRONG])
    assert clear[WRONG], "other responses: write another sentence"
    assert falls and not clear[RIGHT], "other responses: write another sentence"  # noqa: PT018
    return clear[WRONG], sum(row["ai_correct"] == WRONG for row in contrasts)


def _is_clear(contrast: Result, kind: str) -> bool:
    return bool(contrast["ai_correct"] == kind and contrast["p_holm"] < 0.05)


def _tell_slopes(study: Result) -> str:
    """Say what changes where participants also differ in the effect of the AI being right."""
    slopes = study["with_slopes"]
    lower, every = _find_lower(slopes["contrasts"])
    ends = sorted(-100 * row["estimate"] for row in lower)
    rise = slopes["loglik"] - study["programs"]["Foretell"]["loglik"]
    return (
        "Some participants reject more labels than others, right and wrong ones alike. With\n"
        f"`(ai_correct || participant)`, which allows for that, the log-likelihood rises by {rise:.0f}; correct\n"
        f"rejections fall by {ends[0]:.0f} to {ends[-1]:.0f} points, with p below .05 for {len(lower)} of {every}\n"
        "explanations, and where the AI is right there is still no clear difference."
    )


def _tabulate_reliance(study: Result) -> list[str]:
    conditions: dict[str, list[str]] = {}
    for row in study["measures"]:
        value, low, high = row["found"]
        assert round(value, 3) == row["printed"], row
        conditions.setdefault(row["condition"], []).append(f"{value:.3f} ({low:.3f} to {high:.3f})")
    measures = list(dict.fromkeys(row["measure"] for row in study["measures"]))
    return format_table(["condition", *measures], [[name, *cells] for name, cells in conditions.items()])
