"""What cards of the zoo say besides accuracy and effects, on the page ``docs/zoo.md``."""

from __future__ import annotations

from typing import Any


def format_share(share: dict[str, Any]) -> str:
    """Format a share with its 95% interval."""
    low, high = share["interval_95"]
    return f"{share['accuracy']:.1%} ({low:.1%} to {high:.1%})"


def list_figures(cards: dict[str, dict[str, Any]]) -> list[str]:
    """List what cards say besides accuracy and effects, as lines of Markdown."""
    lines = ["## Further figures", ""]
    if "scenes:memorised" in cards:
        share = cards["scenes:memorised"]["further"]["random_labels_of_training_images"]
        lines.append(
            f"- `scenes:memorised` gives the random label of {format_share(share)} of its training images "
            "([the record of such a training](training.md))."
        )
    if "scenes:student" in cards:
        same = cards["scenes:student"]["further"]["same_class_as_the_built_in_network"]
        shares = " and ".join(f"{one['share']:.1%} ({split})" for split, one in same.items())
        lines.append(f"- `scenes:student` predicts the class of the built-in network on {shares} of the images.")
    if "scenes:bayesian" in cards:
        further = cards["scenes:bayesian"]["further"]
        for split in ("standard", "adversarial"):
            error, shared = further[split]["calibration_error"], further[split]["mutual_information"]
            lines.append(
                f"- `scenes:bayesian`, {split}: calibration error {error['plain']:.3f} plain and "
                f"{error['mean_of_draws']:.3f} for the mean of {further['draws']} draws; mutual information of "
                f"prediction and weights {shared['right']:.3f} nats where it is right and {shared['wrong']:.3f} where "
                "it is wrong."
            )
    if "scenes:belief" in cards:
        lines.append(f"- `scenes:belief`: {_belief(cards['scenes:belief'])}")
    return [*lines, ""]


def _belief(card: dict[str, Any]) -> str:
    further, (_, first, second) = card["further"], card["training"]["units"]
    error, (low, middle, high) = (
        further["squared_error_of_rebuilt_images"],
        further["agreement_of_drawn_and_held_out_images"]["quartiles"],
    )
    return (
        f"mean squared error of rebuilt images (values of pixels from 0 to 1) {error['first']:.4f} from the {first} "
        f"probabilities of the lower layer and {error['second']:.4f} from the {second} of the upper one, next to "
        f"{error['mean_image']:.4f} of the mean image, and {error['first_by_components']:.4f} and "
        f"{error['second_by_components']:.4f} of as many principal components. Drawn images, without their noise, have "
        f"{further['spread_of_drawn_images']:.0%} of the variance of held-out ones. The mean image drawn with a unit "
        f"of the upper layer clamped and the mean held-out image weighted by the unit correlate at {middle:.2f} in the "
        f"median unit (quartiles {low:.2f} and {high:.2f}) "
        "([how to draw them](how-to/sample-a-unit.md))."
    )
