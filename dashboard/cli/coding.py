"""``code``: simulated raters code the texts of simulated participants."""

from __future__ import annotations

from typing import Annotated

import typer

from dashboard.cli.study import StudyOrFolder
from dashboard.cli.terminal import Bars, say


def code(
    study: StudyOrFolder,
    reliability: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="How often a simulated rater gives the code that fits the text.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="Random seed of the raters.")] = 0,
) -> None:
    """Let two simulated raters code the texts of simulated participants; those of real ones are coded on Coding.

    Example: python foretell.py code name --reliability 0.9
    """
    from study.service import Service
    from study.simulate_raters import SIMULATED, simulate_raters
    from study.workspace.workspace import bundle_named, home

    name = bundle_named(home(), study).manifest.name
    with Service(home()) as service, Bars() as progress:
        new = simulate_raters(service.researcher, name, reliability, seed, progress)
        agreement, _ = service.researcher.open_agreement(name, SIMULATED)
    say(f"{name}: {new} new codes of two simulated raters")
    say(agreement.describe())
