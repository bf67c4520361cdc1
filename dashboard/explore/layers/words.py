"""The parameters of questions in words, and their values; a question's record has those that it alone means."""

from __future__ import annotations

from collections.abc import Mapping

from core.names import format_name
from inquiry.layers.record import record_of

LABELS: Mapping[str, str] = {
    "beta": "Sparsity weight (beta)",
    "corrupted": "Probability of a corrupted label",
    "cut": "Cut-off of low frequencies, cycles per image",
    "depth": "Depth of the soft tree",
    "drawn": "Images",
    "epochs": "Training epochs",
    "eta": "Weight (eta)",
    "filters": "Filters of each layer",
    "heatmap_layer": "Layer of the heatmaps",
    "hidden": "Hidden units",
    "images": "Maximum number of images measured",
    "kinds": "Kinds of training data",
    "leaves": "Maximum number of rules",
    "learned": "Images that filters are learned from",
    "levels": "Levels of the pyramid",
    "names": "Attacks",
    "of": "Class",
    "on": "Rules about",
    "outputs": "What the network discloses",
    "parents": "Parts above that a part goes with",
    "places": "Places per side of the grid",
    "q": "Form of the reconstruction (q)",
    "queries": "Images asked about",
    "radii": "Largest changes of a pixel, grey levels",
    "radius": "Largest change of a pixel, grey levels",
    "rate": "Learning rate",
    "share": "Largest share of replaced pixels",
    "side": "Side of the images, px",
    "size": "Side of a filter",
    "smallest": "Minimum number of images of a rule",
    "spread": "Spread of a part (delta)",
    "steps": "Maximum number of steps",
    "substrate": "Replaced by",
    "sweeps": "Maximum number of sweeps",
    "tau": "Height of the templates (tau)",
    "unit": "Drawn channel",
    "unseen": "Attributes for extrapolation",
    "weight": "Weight of the error (lambda)",
    "words": "Visual words",
}
"""Of parameters whose names say little on the page."""
VALUES: Mapping[str, str] = {
    "prob": "Probabilities",
    "ranking": "Order of the classes",
    "bottom-1": "Lowest class alone",
    "top-1": "Highest class alone",
    "prediction": "Predicted class",
    "label": "True class",
    "true": "True labels",
    "corrupted": "Corrupted labels",
}
"""Values whose names say little on the page."""


def find_label(question: str, parameter: str) -> str:
    """Return the label of a question's parameter; empty if its name is one."""
    return record_of(question).labels.get(parameter) or LABELS.get(parameter, "")


def format_value(value: str) -> str:
    """Format a value of a parameter."""
    return VALUES.get(value) or format_name(value)
