"""``build``, ``verify``, ``simulate``, ``export``: a study from its file to its responses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashboard.cli.options import Engine, Workers
from dashboard.cli.terminal import Bars, say
from study.plan.mixture import MIXTURE, parse_mixture

if TYPE_CHECKING:
    pass

MOST_FAULTS = 20
StudyOrFolder = Annotated[str, typer.Argument(help="The study's name, or the folder of its bundle.")]


def build(
    study_file: Annotated[Path, typer.Argument(help="The study file (TOML).")],
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N; an accelerator if there is one.")] = None,
    workers: Workers = None,
    engine: Engine = "processes",
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Build nothing; report what the images allow, what is missing and how long it takes."
        ),
    ] = False,
) -> None:
    """Build a study file into a frozen bundle: trials, heatmaps, teaching sets and the study hash. Resumable.

    Example: python foretell.py build data/studies/demo.toml --workers 2
    """
    if check:
        return _check(study_file, device, workers)
    from study.building.averaged import AVERAGED
    from study.building.workers import Helpers, build_with
    from study.workspace.parallel import workers_here
    from study.workspace.workspace import home

    count = workers or workers_here()
    helpers = Helpers(count - 1, engine) if count > 1 or engine != "processes" else None
    with Bars() as progress:
        bundle = build_with(helpers, study_file, home(), progress, device=device)
    manifest = bundle.manifest
    say(f"{manifest.name}: {len(manifest.trials)} trials, {len(manifest.practice)} for practice")
    for dropped in manifest.dropped:
        say(f"dropped: {dropped['category']}, {dropped['trial_type']}: {dropped['reason']}")
    warned = Counter(warning for trial in manifest.trials for warning in trial.saliency.warnings)
    for warning, trials in warned.most_common(MOST_FAULTS):
        say(f"{trials} trial(s): {warning}")
    for note in {trial.saliency.drawing for trial in manifest.trials if trial.saliency.drawing}:
        say(note)
    if AVERAGED in manifest.environment:
        say(manifest.environment[AVERAGED])
    say(f"study hash {bundle.study_hash}")
    say(str(bundle.folder))


def _check(study_file: Path, device: str | None, workers: int | None) -> None:
    """Report on a study before it is built; exit code 2 if it cannot be built."""
    from study.building.check import check as run
    from study.plan import config, texts
    from study.workspace.parallel import workers_here
    from study.workspace.workspace import home

    with Bars() as progress:
        checked = run(study_file, home(), progress, device=device, workers=workers or workers_here())
    warned = texts.warn_of_placeholders(config.read(study_file).texts)
    for line in (*checked.lines, *(f"Warning: {text}" for text in warned)):
        say(line)
    if checked.obstacles:
        raise typer.Exit(2)


def verify(
    study: Annotated[str, typer.Argument(help="A study's name or bundle, a database (.db or URL), or a receipt.")],
    quick: Annotated[bool, typer.Option("--quick", help="Check the bytes only; do not render again.")] = False,
) -> None:
    """Check a bundle: every byte against its hash, then everything rendered again. Exit code 1 if it differs.

    For a database: the chain of responses, the plan of every participant, counts, quotas and the audit trail.
    For a participant's receipt: how many of their responses this workspace held.

    Example: python foretell.py verify demo
    """
    if study.endswith(".db") or "://" in study:
        return _verify_database(study)
    from study.building.build import verify as run
    from study.network.methods import describe_missing_method
    from study.participation.receipt import PATTERN
    from study.workspace.workspace import bundle_named, find_folder

    if PATTERN.fullmatch(study):
        return _verify_receipt(study)
    bundle = bundle_named(find_folder(), study)
    with Bars() as progress:
        faults = run(bundle, progress, render=not quick)
    for fault in faults:
        say(f"Fault: {fault}")
    if faults:
        raise typer.Exit(1)
    if not quick and (missing := describe_missing_method(bundle.manifest)) is not None:
        say(missing)
    say(f"{bundle.manifest.name}: {len(bundle.manifest.assets)} assets are unchanged. {bundle.study_hash}")


def _verify_receipt(shown: str) -> None:
    from study.service import Service
    from study.workspace.workspace import home, require_workspace

    require_workspace()
    with Service(home()) as service:
        receipt = service.researcher.receipt(shown)
    study = f"{receipt.study} ({receipt.study_hash[:12]})"
    say(
        f"Genuine: the server held {receipt.responses} responses of this participant to {study}; "
        f"stage: {receipt.stage!r}."
    )


def _verify_database(named: str) -> None:
    from core.errors import ForetellError
    from study.service import Service
    from study.workspace.workspace import home

    file = Path(named).resolve()
    if "://" not in named and not file.is_file():
        raise ForetellError(f"There is no database {named}. Name the file, e.g. workspace/foretell.db.")
    folder, place = (home(), named) if "://" in named else (file.parent, file)
    with Service(folder, place) as service:
        say(f"Last response: {service.researcher.last_response()}")
        if not service.workspace.ends_file.exists():
            say(f"{service.workspace.ends_file} does not exist: responses missing at the end cannot be detected.")
        faults = service.researcher.verify()
        studies = service.researcher.studies()
    people = sum(n for study in studies for mode in study.sessions.values() for stages in mode.values()
                 for n in stages.values())  # fmt: skip
    for fault in faults[:MOST_FAULTS]:
        say(f"Fault: {fault}")
    if faults:
        say(f"{len(faults)} fault(s) in the database")
        raise typer.Exit(1)
    say(f"The database is sound: the responses, plans and quotas of {people} participants are unchanged.")


def simulate(
    study: StudyOrFolder,
    participants: Annotated[int, typer.Option(help="Number of simulated participants, balanced over conditions.")] = 40,
    mixture: Annotated[str, typer.Option(help="Kinds of simulated participants and their weights.")] = MIXTURE,
    seed: Annotated[int, typer.Option(help="Random seed of the participants and their responses.")] = 0,
    switch: Annotated[
        float | None,
        typer.Option(help="Task reliance: how often they follow an AI that contradicts them, 0 to 1; by default .5."),
    ] = None,
) -> None:
    """Fill a study with simulated participants, marked as such and never counted with real ones.

    Example: python foretell.py simulate demo --participants 160 --mixture belief_projector=0.5,map_reader=0.5
    """
    from study.service import Service
    from study.simulate import simulate as run
    from study.tasks.theory import SWITCH
    from study.workspace.workspace import bundle_named, home

    bundle = bundle_named(home(), study)
    with Service(home()) as service, Bars() as progress:
        name = service.researcher.add_study(bundle.folder)  # people are let in on the Studies page only
        followed = SWITCH if switch is None else switch
        responses = run(service, name, participants, parse_mixture(mixture), seed, progress, switch=followed)
    say(f"{name}: {responses} new responses of simulated participants")


def export(
    study: StudyOrFolder,
    out: Annotated[Path, typer.Option(help="The file to write, .csv or .parquet.")] = Path("responses.csv"),
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulated participants instead of real ones.")
    ] = False,
    psych_ds: Annotated[bool, typer.Option("--psych-ds", help="A Psych-DS data set: --out names its folder.")] = False,
    published: Annotated[
        bool, typer.Option("--published", help="Columns under the names of the published data: subject_id, rt, ...")
    ] = False,
) -> None:
    """Write the responses of a study as a long table, one row per response, with data-dictionary.json.

    Example: python foretell.py export demo --out demo.csv
    """
    from study.collection import export as tables
    from study.collection import psychds
    from study.service import Service
    from study.workspace.files import shared_files
    from study.workspace.workspace import home

    run = psychds.export if psych_ds else tables.export
    with Service(home()) as service, shared_files():
        path = run(service.researcher, study, out, ("sim",) if simulated else ("live",), published=published)
    say(str(path))
