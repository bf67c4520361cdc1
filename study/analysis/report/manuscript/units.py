"""The method of a study about units of the network, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from study.bundle import Manifest
from study.names.texts import MOST_CHARACTERS
from study.plan.coding import coding_of
from study.plan.units import OCCLUDED
from study.tasks import find_task


def describe_unit_trials(manifest: Manifest, given: int, before: str) -> Iterator[str]:
    """Describe which units participants were asked about, in ``given`` trials each; ``before`` says what came first."""
    units = {trial.category for trial in manifest.trials}
    settings = manifest.config["units"]
    drawn = "drawn at random from" if isinstance(settings["channels"], int) else "of"
    yield (
        f"Each participant responded to {given} trials about {len(units)} units, {drawn} the "
        f"{manifest.classifier['channels']} channels of its layer {settings['layer']}{before}."
    )
    if find_task(manifest.config).of_units == "names":
        yield (
            "The activation of a unit was the mean over all places of its channel. A trial showed the images of the "
            "pool that activate the unit most, which participants described in their own words, "
            f"in at most {MOST_CHARACTERS} characters."
        )
        return
    standard = manifest.sets["standard"]
    shown = f"the {standard['images']:,} standard images ({standard['name']})"
    if find_task(manifest.config).of_units == "occlusions":
        shown = (
            f"{shown} that activate the unit most, one image twice, with a square of {OCCLUDED:.0%} of its side over "
            "the place where this lowers the activation most and over the one where it does so least (Zimmermann et "
            "al., 2021)"
        )
    else:
        shown += " that activate the unit most and least"
    yield (
        f"The activation of a unit was the mean over all places of its channel. The two images of a trial were among "
        f"{shown}; the one that activates it more was on the right in half of the trials."
    )


def describe_references(manifest: Manifest) -> str:
    """Describe the references: those of the condition with examples, and those of all conditions of a unit to name."""
    count = manifest.config["units"]["references"]
    shown = f"the {count} images" if count > 1 else "the image"
    activate = "activate" if count > 1 else "activates"
    if find_task(manifest.config).of_units == "names":
        return (
            f"All participants saw {shown} of the pool ({manifest.sets['pool']['name']}, "
            f"{manifest.sets['pool']['images']:,} images) that {activate} the unit most. Examples were {shown} that "
            f"{activate} it least, on the left (Borowski et al., 2021)."
        )
    return (
        f"Examples were references (Borowski et al., 2021; Zimmermann et al., 2023): {shown} of the pool "
        f"({manifest.sets['pool']['name']}, {manifest.sets['pool']['images']:,} images) that {activate} the unit "
        f"least, on the left, and {shown} that {activate} it most, on the right."
    )


def describe_coding(manifest: Manifest) -> str:
    """Describe how texts were coded, and when a response is correct."""
    coding = coding_of(manifest)
    codes, correct = (", ".join(code.replace("_", " ") for code in names) for names in (coding.codes, coding.correct))
    return (
        f"Two raters, blinded to condition, participant and each other's codes, coded each text ({codes}) next to the "
        f"images of its unit, in a random order of their own. A response was correct if both coded it as {correct}."
    )
