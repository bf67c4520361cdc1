"""The questions of the view of layers in words: their groups, and the labels and offered values of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.attribution import METHODS
from core.names import format_name
from core.robustness import ATTACKS
from core.training.metamodel import OUTPUTS
from core.training.modifications import MODIFICATIONS

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Representations": ("probes", "information", "similarity", "consistency", "refinement"),
    "Robustness": ("attacks", "margins", "frequencies", "bands"),
    "Units": ("dissection", "deletion", "importance", "parts", "explainer"),
    "Explanations": ("evidence", "modes", "x_features", "rules"),
    "Training": ("memorisation", "attributes"),
    "Image set": ("decomposition", "recognition"),
}
"""Every question by its topic, in the order of the choice."""
ASKED: Mapping[str, str] = {
    "probes": "what each layer encodes",
    "information": "bits about label and image",
    "similarity": "layers that match (SVCCA)",
    "consistency": "what two layers share",
    "refinement": "accuracy of what is shared",
    "attacks": "adversarial robustness",
    "margins": "distance to the boundary",
    "frequencies": "accuracy by frequency",
    "bands": "margins by frequency",
    "dissection": "concepts that units detect",
    "deletion": "classes that rely on a unit",
    "importance": "channels that matter most",
    "parts": "object parts that channels detect",
    "explainer": "features of one part each",
    "evidence": "heatmaps tested by erasure",
    "modes": "groups of similar reasons",
    "x_features": "few features behind a class",
    "rules": "a tree that imitates the AI",
    "memorisation": "learning random labels",
    "attributes": "how the network was built",
    "decomposition": "what images are made of",
    "recognition": "classes without the network",
}
"""What each question is about, in the width of a selectbox."""
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
OWN_LABELS: Mapping[tuple[str, str], str] = {
    ("explainer", "eta"): "Weight of the interpretable share (eta)",
    ("explainer", "filters"): "Weight of the filter loss (lambda)",
    ("explainer", "steps"): "Training steps",
    ("frequencies", "radii"): "Cut-offs, cycles per image",
    ("importance", "of"): "Class whose −log p is measured",
    ("modes", "beta"): "Penalty for each mode (beta)",
    ("modes", "count"): "Maximum number of images of the class",
    ("parts", "background"): "Background density (tau)",
    ("parts", "channels"): "Channels of each layer",
    ("parts", "parts"): "Parts of each channel",
    ("recognition", "parts"): "Activations that are projected",
    ("x_features", "beta"): "Weight of the reconstruction (beta)",
    ("x_features", "eta"): "Weight of decorrelation (eta)",
    ("x_features", "features"): "Number of x-features",
    ("x_features", "weights"): "Signs of the weights",
}
"""Of those that mean something else in one question."""
LISTS: Mapping[tuple[str, str], Sequence[str]] = {
    ("attacks", "names"): tuple(ATTACKS),
    ("attributes", "outputs"): OUTPUTS,
    ("evidence", "methods"): tuple(METHODS),
    ("memorisation", "kinds"): tuple(MODIFICATIONS),
}
"""Parameters that are names of a known list, separated by commas."""
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
    return OWN_LABELS.get((question, parameter)) or LABELS.get(parameter, "")


def format_value(value: str) -> str:
    """Format a value of a parameter."""
    return VALUES.get(value) or format_name(value)


def find_group(question: str) -> str:
    """Return the topic of a question."""
    return next(group for group, questions in GROUPS.items() if question in questions)
