"""``prior``: the learner's KFAC posterior over a training set, which is their prior before any example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import Model, parse_settings
from dashboard.cli.terminal import Bars, say

ILL = 1e10
"""Condition number from which few digits of an inverse are right."""


def prior(
    model: Model = "scenes",
    images: Annotated[str, typer.Option("--set", help="The image set: scenes, folder, imagenet, ...")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("prior.safetensors"),
    damping: Annotated[float, typer.Option(help="Added to U's diagonal, as a share of its mean.")] = 0.0,
    tau: Annotated[float, typer.Option(help="Precision of the isotropic part.")] = 0.0,
    resume: Annotated[
        bool, typer.Option("--resume/--restart", help="Continue from the checkpoint next to the file, or restart.")
    ] = True,
) -> None:
    """Fit the KFAC posterior of a classifier over a training set in one pass; it resumes after an interruption.

    It is the learner's prior: a study file names it as `prior` under [teaching]. The default uses the example pool.

    Example: python foretell.py prior --model scenes --set scenes --setting split=pool --out scenes.prior.safetensors
    """
    from core.errors import ForetellError
    from study.building.averaged import compare_on
    from study.network.priors import learn_prior
    from study.network.sources import open_classifier, open_set
    from study.plan.config import IMAGE_SETS, ImageSource

    if damping < 0 or tau < 0:
        raise ForetellError(f"--damping {damping} and --tau {tau} must not be negative.")
    if images not in IMAGE_SETS:
        raise ForetellError(IMAGE_SETS.unknown(images))
    source = ImageSource.model_validate({"set": images, **parse_settings(setting or [])})
    with Bars() as progress:
        classifier, pool = open_classifier(model, Path.cwd()), open_set(source, Path.cwd())
        stored = learn_prior(classifier, pool, out, tau=tau, damping=damping, resume=resume, progress=progress)
    averaged = compare_on(classifier, pool, stored.prior)
    features, classes = stored.prior.conditions
    say(f"{stored.prior.images} images; condition numbers: features {features:.2g}, classes {classes:.2g}")
    if features > ILL or classes > ILL:
        say("Ill-conditioned: few digits of the inverse are correct. Set --damping, e.g. 0.001, or use more images.")
    if averaged:
        say(averaged.text)
    say(str(out))
