"""``analyze`` and ``power``: the analysis of responses, and the sample size of a study."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.errors import ForetellError
from dashboard.cli.options import CommaMeaning, Engine, Workers, parse_pairs
from dashboard.cli.terminal import Bars, say

if TYPE_CHECKING:
    import pandas as pd

    from dashboard.power.jobs import PowerAnalysis
    from study.analysis.models.records import InterimAnalysis
    from study.analysis.report.finding import HeadlineResult
    from study.bundle import Manifest
    from study.plan.preregistration import AnalysisPlan


def analyze(
    responses: Annotated[str, typer.Argument(help="A CSV file, or the name of a study.")],
    out: Annotated[Path, typer.Option(help="Folder for models.json, Table 1, Figure 1 and the report.")] = Path(
        "results"
    ),
    column: Annotated[list[str] | None, typer.Option(help="Rename a column: ours=theirs. Repeatable.")] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="For a study: analyse the simulated participants.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed of exploratory analyses.")] = 0,
    plan: Annotated[Path | None, typer.Option(help="For a CSV: a study file with the plan in [analysis].")] = None,
    study: Annotated[
        str | None, typer.Option(help="For a CSV: the built study it belongs to, with its plan and trials.")
    ] = None,
    comma: CommaMeaning = None,
    robustness: Annotated[
        bool,
        typer.Option(
            "--robustness",
            help="Add the results without each participant and image, and a specification curve; this takes longer.",
        ),
    ] = False,
    bayes: Annotated[
        bool,
        typer.Option("--bayes", help="Add the Bayesian fit of the largest model (requirements-bayes.txt)."),
    ] = False,
    draws: Annotated[
        int | None, typer.Option(help="With --bayes: draws of each of the four chains (default 1000).")
    ] = None,
) -> None:
    """Fit the nested mixed models, with tests, Table 1, Figure 1, contrasts, and exploratory analyses labelled as such.

    A CSV has one row per response with the columns participant, category, trial_type, saliency, examples, correct. It
    may have commas, semicolons or tabs, and decimal commas. Empty cells, NA, NaN and nan are missing values.
    The plan of a study is the one frozen with it.

    Example: python foretell.py analyze responses.csv --out results --column participant=subject_id
    """
    from dashboard.cli import bayesian
    from study.analysis.exploratory.analysis import ROBUSTNESS
    from study.analysis.exploratory.bayes import BAYES
    from study.analysis.report import results
    from study.analysis.responses.reading import read
    from study.workspace.files import shared_files

    requests = [name for name, wanted in ((ROBUSTNESS, robustness), (BAYES, bayes)) if wanted]
    how: dict[str, Any] = {"requests": requests}
    if bayes:
        how["draws"] = bayesian.read_settings(draws, seed).draws
    else:
        bayesian.refuse_without_bayes({"--draws": draws})
    with Bars() as progress:
        if responses.endswith(".csv") or Path(responses).is_file():
            columns = parse_pairs(column or [], "--column", "ours=theirs")
            planned, manifest, looks = _load_plan_and_trials(plan, study)
            with shared_files():
                data = read(Path(responses), columns, comma=comma)
                known: dict[str, Any] = {"plan": planned, "manifest": manifest, "looks": looks}
                headline = results.write(data, out, seed, **known, **how, progress=progress)
        else:
            headline = _analyze_study(responses, out, seed, progress, simulated=simulated, **how)
    _say_results(headline, out)


def _say_results(headline: HeadlineResult, out: Path) -> None:
    """Print the results in sentences, with the warnings of the models, and where they were written."""
    from study.analysis.exploratory import crosschecks

    analysis = headline.analysis
    before = (*analysis.data_messages, *filter(None, [headline.interim]))
    for line in (*before, *headline.sentences, *headline.equivalence, *analysis.reduction, *headline.conclusions):
        say(line)
    for name, model in analysis.models.items():
        for message in model.messages:
            say(f"{name}: {message}")
    if (without := crosschecks.explain_omission(analysis.largest.n)) is not None:
        say(without)
    say(str(out / "models.json"))


def _load_plan_and_trials(
    plan: Path | None, study: str | None
) -> tuple[AnalysisPlan | None, Manifest | None, tuple[InterimAnalysis, ...] | None]:
    """Load the plan, the trials and the interim analyses that belong to a file, as the options say."""
    from study.plan import config
    from study.plan.preregistration import load_frozen_plan
    from study.service import Service
    from study.workspace.workspace import bundle_named, home

    if plan is not None and study is not None:
        raise ForetellError("--plan and --study name two plans. Give only one of them.")
    if study is None:
        return (config.read(plan, to_build=False).plan if plan else None), None, None
    manifest = bundle_named(home(), study).manifest
    with Service(home()) as service:
        return load_frozen_plan(manifest), manifest, service.researcher.load_interim_analyses(manifest.study_hash)


def _analyze_study(name: str, out: Path, seed: int, progress: Bars, *, simulated: bool, **how: Any) -> HeadlineResult:
    """Analyse the newest version of a study; ``how`` are options of `study.analysis.report.results.write`."""
    from dataclasses import replace

    import pandas as pd

    from study.analysis.report import results
    from study.analysis.responses import reading as responses
    from study.bundle import Bundle
    from study.plan.preregistration import load_frozen_plan
    from study.service import Service
    from study.workspace.files import shared_files
    from study.workspace.workspace import home

    with Service(home()) as service:
        frame = newest_version(service.researcher.responses(name, ("sim",) if simulated else ("live",)))
        folders = {version.study_hash: version.folder for version in service.researcher.studies()}
        study_hash = frame["study_hash"].iloc[0] if len(frame) else ""
        looks = () if simulated else service.researcher.load_interim_analyses(study_hash)
        excluded = pd.DataFrame() if simulated else service.researcher.count_exclusions(study_hash)
    data = replace(responses.prepare(frame, name=name), excluded=excluded)
    manifest = Bundle(folders[study_hash]).manifest
    plan = load_frozen_plan(manifest)
    with shared_files():
        return results.write(data, out, seed, plan=plan, manifest=manifest, looks=looks, **how, progress=progress)


def newest_version(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the responses to the latest version of a study, and report how many earlier ones are left out.

    Versions differ in images, texts or settings, so their responses must not be pooled.
    """
    if frame["study_hash"].nunique() < 2:
        return frame
    newest = frame.loc[frame["received_at"].idxmax(), "study_hash"]
    kept = frame[frame["study_hash"] == newest]
    say(
        f"Version {newest[:12]} only: {len(frame) - len(kept)} responses to earlier versions of the study are left out."
    )
    return kept


def power(
    study_file: Annotated[Path, typer.Argument(help="The study file (TOML).")],
    participants: Annotated[str, typer.Option(help="Participants per condition, with commas.")] = "10,20,40,60",
    studies: Annotated[int, typer.Option(min=1, help="Simulated studies for each size and effect.")] = 200,
    effects: Annotated[str, typer.Option(help="Effect-size multipliers, with commas.")] = "1",
    pilot: Annotated[Path | None, typer.Option(help="A CSV of pilot responses to estimate the effects from.")] = None,
    mixture: Annotated[
        str | None, typer.Option(help="Simulated participants instead; the study must be built.")
    ] = None,
    slope_sd: Annotated[
        list[str] | None,
        typer.Option(
            help="Assume random slopes, name=SD in log-odds: participant=0.8 (of trial types), category=0.5 and "
            "item=0.5 (of explanations, by category and by image)."
        ),
    ] = None,
    contrasts: Annotated[
        bool,
        typer.Option(
            "--contrasts", help="Test the planned contrasts and their equivalence too; this takes about twice as long."
        ),
    ] = False,
    equivalence: Annotated[
        str | None,
        typer.Option(
            help="Test the equivalence of the planned contrasts within these bounds, in percentage points, instead of "
            "the plan's: 5, or -5,10."
        ),
    ] = None,
    pay: Annotated[float, typer.Option(help="Pay per participant.")] = 0.0,
    currency: Annotated[str, typer.Option(help="Currency of the pay.")] = "EUR",
    seed: Annotated[int, typer.Option(help="Random seed of the simulated studies.")] = 0,
    workers: Workers = None,
    engine: Engine = "processes",
    out: Annotated[Path | None, typer.Option(help="Folder for power.csv and power.html.")] = None,
) -> None:
    """Estimate the sample size a study needs, from simulated studies analysed as planned. Effects: the paper's Table 1.

    Example: python foretell.py power data/studies/demo.toml --participants 20,40 --studies 100 --pay 3
    """
    from dashboard.power import inputs
    from dashboard.power.jobs import PowerAnalysis
    from study.analysis.means.equivalence import read_bounds
    from study.analysis.responses import reading as responses
    from study.plan import config
    from study.plan.equivalence import LARGEST_POINTS
    from study.plan.mixture import parse_mixture

    pay = inputs.parse_pay(pay, "--pay")
    question = PowerAnalysis(
        config.read(study_file),
        inputs.parse_sizes(participants, "--participants"),
        studies,
        inputs.parse_multiples(effects, "--effects"),
        responses.read(pilot) if pilot else None,
        parse_mixture(mixture) if mixture else None,
        seed,
        inputs.parse_slopes(parse_pairs(slope_sd or [], "--slope-sd", "name=SD"), "--slope-sd"),
        contrasts or equivalence is not None,
        None if equivalence is None else read_bounds(equivalence, largest=LARGEST_POINTS),
    )
    _say_assumptions(question, workers)
    with Bars() as progress:
        table = question.curve(progress, workers, engine)
    _say_power(question, table, pay, currency, out)


def _say_assumptions(question: PowerAnalysis, workers: int | None) -> None:
    from dashboard.power import tables

    means = tables.tabulate_assumptions(question.tabulate_means())
    assumed, difference = tables.describe_assumptions(question.outcome)
    say(f"{assumed}, and in brackets the {difference}:")
    say(means.to_string(index=False))
    say(f"A test is significant if it has {question.criterion}. The target power is 80%.")
    for note in question.notes:
        say(note)
    say(f"Estimated time: {timedelta(seconds=math.ceil(question.estimate(workers)))}")


def _say_power(question: PowerAnalysis, curve: pd.DataFrame, pay: float, currency: str, out: Path | None) -> None:
    """Print the curve and what it says, and write it where asked to."""
    from dashboard.power import tables
    from study.analysis.power import simulation

    conditions = question.groups
    table = simulation.with_cost(curve, conditions, pay)
    say(table.to_string(index=False, float_format=lambda v: f"{v:.3g}"))
    models = table[~simulation.is_contrast(table)]
    if question.planned_size in question.sizes:
        say(f"Power with the planned {question.planned_size} participants per condition:")
        for sentence in tables.describe_power(models, question.planned_size):
            say(sentence)
    for sentence in tables.describe_sample_sizes(models, conditions, pay, currency, question.study.task.act):
        say(sentence)
    if out is not None:
        _write_power(question, table, out)


def _write_power(question: PowerAnalysis, table: pd.DataFrame, out: Path) -> None:
    from study.analysis.power import simulation
    from study.workspace.files import shared_files
    from study.workspace.spreadsheets import csv_text

    with shared_files():
        out.mkdir(parents=True, exist_ok=True)
        (out / "power.csv").write_text(csv_text(table), encoding="utf-8", newline="")
        models = table[~simulation.is_contrast(table)]
        drawn = simulation.figure(models, planned=question.planned_size, simulated=question.is_simulated)
        drawn.write_html(out / "power.html", include_plotlyjs=True, div_id="power")
    say(str(out / "power.csv"))
