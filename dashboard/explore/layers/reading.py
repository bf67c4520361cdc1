"""How the results of the view of layers are read: what is drawn, by which method, and the words of the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from core.layers.consistency import ORDERS
from core.names import format_name
from dashboard.explore.layers.training import RECORDED
from dashboard.shared import numbers

READ: Mapping[str, str] = {
    "probes": "Accuracy of a probe by layer, with 95% intervals over held-out images. The dotted line is chance. A "
    "perceptron with 0 hidden units is a linear probe.",
    "information": "Information in each layer, in bits, with 95% intervals: about the labels a lower bound, at most "
    "their entropy (the dotted line); about the image an estimate.",
    "similarity": "Mean canonical correlation of each pair of layers. At 1, each layer is a linear function of the "
    "other. The table has the similarity expected by chance.",
    "consistency": "Share of a layer's variance in held-out images that the other layer gives: order 0 by a linear "
    "function, order k by adding k hidden layers. Shares add up to 1: one below 0 made the prediction worse, and "
    "another may exceed 1.",
    "refinement": "Accuracy of a linear probe of the layer's own and of the shared features, with 95% intervals. Gain: "
    "the paired difference from the layer's own features.",
    "dissection": "Number of units that detect each concept. A unit detects its best concept if the agreement is "
    "better than with the masks of other images.",
    "deletion": "Probability that each class loses on its own images when a unit is set to 0, for the units with the "
    "largest effects.",
    "attacks": "Share of images still predicted correctly, by the largest change of a pixel, with 95% intervals. An "
    "upper bound on robustness: an attack that finds nothing proves nothing.",
    "margins": "Distance from each image to another prediction, in units of the network's input: in any direction, in "
    "discriminative directions, and in random ones. Each point is an image; images whose prediction did not change "
    "are left out.",
    "frequencies": "Accuracy on the low and on the high spatial frequencies alone, by the cut-off between them, with "
    "95% intervals. The dotted line is the accuracy on whole images.",
    "bands": "Median distance to another prediction when one band of frequencies alone may change, with its 95% "
    "interval, in units of the network's input. Where it is small, predictions depend on these frequencies.",
    "importance": "Mean relative rise of the negative log-likelihood (−log p) when a channel is set to 0, ± standard "
    "error, for the channels with the largest. Above 0, the channel supports the class.",
    "modes": "Number of images of the class in each mode. The table names the channels that a mode relies on.",
    "x_features": "What each x-feature adds to the logit of held-out images of the class, more than to that of others.",
    "parts": "Share of its channel's activation in held-out images that each part explains; parts are named "
    "channel.part, by layer.",
    "explainer": "How unsteadily each channel, and the feature that replaces it, is placed on the object (location "
    "instability). Below the line, the feature is steadier.",
    "rules": "Share of held-out images for which the rules give the network's prediction, with 95% intervals: of all "
    "rules together, then of the largest rules.",
    "memorisation": "One training for each kind of data, by epoch. The dotted line is chance. Low and high "
    "frequencies: accuracy on held-out images of these alone. Near another class: share of held-out images. Gini "
    "coefficient: of the loss sensitivity.",
    "attributes": "Accuracy with which each attribute is predicted for held-out relatives, with 95% intervals. The "
    "table has the predictions for this network, and for crafted images, under By images, the accuracy without "
    "crafting.",
    "decomposition": "Share of the energy of held-out images that a layer does not rebuild, ± standard error; of "
    "random filters, that of the difference. The network is not used.",
    "recognition": "Accuracy on held-out images, with 95% intervals. The dotted line is chance. Learning, Position: "
    "what learned filters and the cells of the pyramid gain, paired. The network is not used.",
    "evidence": "Fall of the log-odds of the prediction without the pixels that a heatmap favours, with 95% intervals, "
    "next to that without as many random pixels.",
}
"""What the figure shows, and how it is read."""
_ARXIV = "https://arxiv.org/abs/"
_ZEILER = {"Zeiler, Taylor & Fergus 2011": "https://doi.org/10.1109/ICCV.2011.6126474"}
METHODS: Mapping[str, Mapping[str, str]] = {
    "probes": {"Alain & Bengio 2016": f"{_ARXIV}1610.01644", "Fuchs et al. 2018": f"{_ARXIV}1806.05502"},
    "information": {"Darlow & Storkey 2020": f"{_ARXIV}2003.01687"},
    "similarity": {"Raghu et al. 2017": f"{_ARXIV}1706.05806"},
    "consistency": {"Liang et al. 2019": f"{_ARXIV}1908.01581"},
    "refinement": {"Liang et al. 2019": f"{_ARXIV}1908.01581"},
    "dissection": {"Bau et al. 2017": f"{_ARXIV}1704.05796"},
    "deletion": {"Li et al. 2016": f"{_ARXIV}1612.08220", "Bau et al. 2020": f"{_ARXIV}2009.05041"},
    "attacks": {
        "Goodfellow et al. 2014": f"{_ARXIV}1412.6572",
        "Madry et al. 2017": f"{_ARXIV}1706.06083",
        "Arpit et al. 2017": f"{_ARXIV}1706.05394",
    },
    "margins": {"Ortiz-Jimenez et al. 2020": f"{_ARXIV}2002.06349"},
    "frequencies": {"Wang et al. 2019": f"{_ARXIV}1905.13545"},
    "bands": {"Ortiz-Jimenez et al. 2020": f"{_ARXIV}2002.06349"},
    "importance": {"Li et al. 2016": f"{_ARXIV}1612.08220"},
    "modes": {"Zhang et al. 2019": f"{_ARXIV}1802.00121"},
    "x_features": {"Qi et al. 2018": f"{_ARXIV}1709.05360"},
    "parts": {"Zhang et al. 2018": f"{_ARXIV}1708.01785"},
    "explainer": {"Zhang et al. 2018": f"{_ARXIV}1805.07468"},
    "rules": {"Frosst & Hinton 2017": f"{_ARXIV}1711.09784"},
    "memorisation": {"Zhang et al. 2017": f"{_ARXIV}1611.03530", "Arpit et al. 2017": f"{_ARXIV}1706.05394"},
    "attributes": {"Oh et al. 2018": f"{_ARXIV}1711.01768"},
    "decomposition": _ZEILER,
    "recognition": _ZEILER,
    "evidence": {"Shrikumar et al. 2017": f"{_ARXIV}1704.02685"},
}
"""The publications of each question's method, as its documentation cites them, and their addresses."""
HEADINGS: Mapping[str, Mapping[str, str]] = {
    "attacks": {"right": "Still correct", "critical": "Another class nearby"},
    "bands": {"low": "From, cycles", "high": "To, cycles", "met": "Share met"},
    "consistency": {f"order_{k}_error": f"SE, order {k}" for k in range(ORDERS + 1)},
    "deletion": {"drop": "Probability lost", "error": "SE"},
    "evidence": {"change": "Log-odds lost", "random": "By random pixels"},
    "explainer": {"p": "Interpretable share"},
    "frequencies": {
        "cycles": "Cut-off, cycles",
        "coarse": "Low frequencies",
        "fine": "High frequencies",
        "whole": "Whole images",
    },
    "importance": {"importance": "Relative rise of −log p", "error": "SE"},
    "memorisation": RECORDED,
    "recognition": {"random": "Random filters"},
}
"""Headings of a question's table whose columns have other meanings, or other names in its figure."""
SHARES: Mapping[str, str] = {
    "attacks": "right|critical",
    "attributes": "probability|by_images|gain|unseen|at_random|change|kept",
    "bands": "met",
    "consistency": r"order_\d+|inconsistent",
    "decomposition": "lost|lost_random|random|active|share",
    "deletion": "accuracy_without",
    "evidence": "pixels",
    "explainer": "p|restored|same|purity|purity_channel|purity_less",
    "frequencies": "coarse|fine|whole",
    "memorisation": "training|training_true|held_out|coarse|fine|critical|chance",
    "modes": "share|explained",
    "parts": "share",
    "recognition": "random|learning|without_pyramid|position",
    "refinement": "gain",
    "rules": "share|low|high",
    "x_features": "explained|explained_class|same|on_object",
}
"""Columns of each table that are written in percent, as in its figure, without the endings of limits and errors."""
WORDS: Mapping[str, numbers.Words] = {
    "attacks": {"attack": format_name},
    "evidence": {"method": format_name},
    "memorisation": {"kind": format_name},
}
"""How the codes of a question's table are written."""
COMPARED = frozenset({"recognition"})
"""Questions whose notes are results, such as no difference from chance, and no warnings."""
NOTED = {"x_features": "x_feature"}
"""The column that tells what a note is about, of the questions whose notes do not name it; "all" is the whole."""
DRAWN = {
    "modes": "Some images, and the mean heatmap (orange: for the class, blue: against) of",
    "x_features": "Held-out images of the class, and which places speak for it (orange) or against it (blue) by",
    "parts": "Held-out images of the class, and where the largest part of each channel is, in the layer",
    "explainer": "Held-out images, the heatmap of a channel, and that of the feature that replaces it (last row):",
    "decomposition": "The largest activation of each filter in held-out images, as pixels, next to that part of the "
    "image:",
    "attributes": "Crafted images that this network was asked about, for",
    "consistency": "Orange: what the other layer does not represent; held-out images with the largest blind spots of",
}
WHOLE = {
    (
        "decomposition",
        "images as rebuilt",
    ): "Some held-out images, and below each as every layer rebuilds it, the first layer first.",
}
"""Captions of drawings that those of their questions do not describe."""


def cite_method(question: str) -> str:
    """Cite the publications of a question's method, as Markdown."""
    return ", ".join(f"[{name}]({address})" for name, address in METHODS[question].items())


def list_shares(question: str, columns: Iterable[str]) -> set[str]:
    """List the columns of a question's table that are written in percent."""
    if question not in SHARES:
        return set()
    return {name for name in columns if re.fullmatch(f"(?:{SHARES[question]})(?:_low|_high|_error)?", name)}


def describe_drawing(question: str, name: str) -> str:
    """Describe a drawing of a question by its name."""
    return WHOLE.get((question, name)) or f"{DRAWN[question]} {name}"
