"""What the layers represent and how near the decision boundaries are: the questions of the command `layers`."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st
from PIL import Image

from core.classifier import Classifier
from core.layers.consistency import ORDERS
from core.names import format_name
from core.parameters import summary
from dashboard.explore.heatmap_jobs import start_pace_job
from dashboard.explore.heatmaps import downloads
from dashboard.explore.layers.figures import FIGURES
from dashboard.explore.layers.jobs import LayerRequest, LayerResult
from dashboard.shared import files, numbers
from dashboard.shared.live import await_result, draw_when_ready
from dashboard.shared.messages import escape_markdown
from data.types import ImageSet
from study.analysis.headings import format_heading
from study.inquiry.layers import OWN_IMAGES, QUESTIONS, LayerQuery

READ = {
    "probes": "Bars: 95% intervals over held-out images. Dotted: chance. A perceptron with 0 hidden units is a linear "
    "probe.",
    "information": "95% intervals. Labels: a lower bound, at most the dotted entropy. Image: an estimate.",
    "similarity": "1: each layer is a linear function of the other. The table has the similarity expected by chance.",
    "consistency": "Order 0: by a linear function; order k: what k hidden layers add. On held-out images. Shares add "
    "up to 1: one below 0 made the prediction worse, and another may exceed 1.",
    "refinement": "Accuracy of a linear probe, with 95% intervals. Gain: paired, against the layer's own features.",
    "dissection": "A unit detects its best concept if the agreement is better than with the masks of other images.",
    "deletion": "Loss of each class on its own images when a unit is set to 0, for the most effective units.",
    "attacks": "95% intervals. An upper bound on robustness: an attack that finds nothing proves nothing.",
    "margins": "In units of the network's input; each point an image. Images with unchanged predictions are left out.",
    "frequencies": "95% intervals. Dotted: accuracy on the whole images.",
    "bands": "Median and its 95% interval. Small: decisions depend on these frequencies. In units of the input.",
    "importance": "Mean relative rise of -log p without the channel, ± standard error, for the largest of them.",
    "modes": "Images of the class by mode. The table names the channels that a mode relies on.",
    "x_features": "What each x-feature adds to the logit of held-out images of the class, more than to that of others.",
    "parts": "Share of its channel's activation in held-out images that each part explains: channel.part, by layer.",
    "explainer": "Location instability of each channel and of the feature that replaces it: below the line, steadier.",
    "rules": "Share of held-out images with the network's prediction, with 95% intervals; then the largest rules.",
    "memorisation": "One training for each kind of data. Dotted: chance. Low and high frequencies: held-out images of "
    "these alone. Near another class: share of held-out images. Gini coefficient: of the loss sensitivity.",
    "attributes": "Accuracy on held-out relatives, with 95% intervals. The table has the predictions for this network, "
    "and for crafted images, under By images, the accuracy without crafting.",
    "decomposition": "Share of the energy of held-out images that a layer does not rebuild, ± standard error; of "
    "random filters, that of the difference. The network is not asked.",
    "recognition": "Accuracy on held-out images, with 95% intervals. Dotted: chance. Learning, Position: what learned "
    "filters and the cells of the pyramid gain, paired. The network is not asked.",
    "evidence": "Fall of the log-odds, with 95% intervals, next to that of as many random pixels.",
}

PAIRED = {"consistency": "Knowledge consistency", "refinement": "Refinement"}
"""Questions that compare no layer with itself, as they are called."""
HEADINGS = {
    "bands": {"low": "From, cycles", "high": "To, cycles", "met": "Share met"},
    "consistency": {f"order_{k}_error": f"SE, order {k}" for k in range(ORDERS + 1)},
    "deletion": {"drop": "Loss", "error": "SE"},
    "explainer": {"p": "Interpretable share"},
    "importance": {"error": "SE"},
}
"""Headings of a question's table whose columns have other meanings elsewhere."""
WORDS: dict[str, numbers.Words] = {
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


def show(asked: LayerQuery, classifier: Classifier, compared: Classifier, images: ImageSet, count: int) -> None:
    """Show the result as a figure and a table, once it is computed."""
    st.header(format_name(asked.question), anchor=False)
    with st.container(key="layers_about"):  # on a phone, whose controls are in a drawer
        st.caption(escape_markdown(summary(QUESTIONS[asked.question])))
    same = classifier.fingerprint == compared.fingerprint
    if asked.question in PAIRED and same and (not asked.other_layers or asked.layers == asked.other_layers):
        st.info(
            f"{PAIRED[asked.question]} compares two networks, or two layers of one. Choose a network under "
            "**Compared with**, or different layers under **Layers** and **Its layers**."
        )
        return
    if await_result(start_pace_job(classifier)) is None:  # without it, work that takes long would start unasked
        return
    request = LayerRequest(asked, classifier, compared, images, count)
    draw_when_ready(request.task, lambda result: _draw_result(request, result), "_layers")
    downloads.show_downloads(None)


def _draw_result(request: LayerRequest, result: LayerResult) -> None:
    question, name = request.query.question, f"{request.classifier.file_name}.{request.query.question}"
    if question in FIGURES and len(result.table):
        st.plotly_chart(FIGURES[question](result.table), key="layers_figure", config={"displaylogo": False})
        st.caption(f"{READ.get(question, '')} {_count_images(request, result)}")
    notes = [escape_markdown(note) for note in list_notes(question, result.table)]
    if question in COMPARED:
        st.caption("\n".join(f"- {note}" for note in notes))
    else:
        for note in notes:
            st.warning(note)
    widest = max((image.width for image in result.drawings.values()), default=0)
    for caption, image in result.drawings.items():
        text = describe_drawing(question, caption)
        st.image(pad(image, widest) if question == "modes" else image, caption=text, alt=text)
    numbers.table(result.table, name, WORDS.get(question), headings=HEADINGS.get(question))
    files.offer_download(
        f"{name}.json, how it was computed", lambda: _format_facts(result.facts), f"{name}.json", "application/json"
    )


def describe_drawing(question: str, name: str) -> str:
    """Describe a drawing of a question by its name."""
    return WHOLE.get((question, name)) or f"{DRAWN[question]} {name}"


def pad(image: Image.Image, width: int) -> Image.Image:
    """Widen an image by transparent pixels at the right, so that the tiles of several keep one size on the page."""
    wide = Image.new("RGBA", (width, image.height))
    wide.paste(image, (0, 0))
    return wide


def list_notes(question: str, table: pd.DataFrame) -> list[str]:
    """List the notes of a question's table, each with the part of the result that it is about."""
    if "note" not in table:
        return []
    column = NOTED.get(question, "")
    noted = table[table["note"].notna()]
    names = noted[column] if column else ["all"] * len(noted)
    return [
        note if name == "all" else f"{format_heading(column)} {name}: {note}"
        for name, note in zip(names, noted["note"], strict=True)
    ]


def _count_images(request: LayerRequest, result: LayerResult) -> str:
    if request.query.question in OWN_IMAGES:
        return "The images of the set are not used."
    most = int(request.query.parameters.get("images", request.image_count))
    asked = len(result.table) if "image" in result.table else min(most, request.image_count)
    return f"{asked:,} of the {len(request.images):,} images."


def _format_facts(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
