"""The parts of training images that a network with prototypes compares the image with, for a class."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from dashboard.explore.images import ClassifiedImage
from dashboard.shared.messages import escape_markdown
from inquiry.counterfactuals.prototypes import describe_matches, draw_input
from study.conditions.prototypes.cards import describe_input

BIND: Literal["query-params"] = "query-params"
PREDICTED = "Predicted class"


def show(seen: ClassifiedImage) -> None:
    """Show the prototypes that add most to a class, of a network that has them."""
    st.subheader("Prototypes", anchor=False)
    names = seen.classifier.names.short
    chosen = st.selectbox(
        "Of the class",
        [PREDICTED, *names],
        key="prototypes",
        bind=BIND,
        width=320,
        help="This network adds up how similar parts of the image are to its prototypes, which are parts of training "
        "images. Left: the part of this image that is most similar to the prototype. Right: the prototype.",
    )
    k = seen.predicted_class if chosen == PREDICTED else names.index(chosen)
    matches = describe_input(seen.classifier, seen.inputs, k)
    for place, card in zip(st.columns(len(matches)), draw_input(seen.classifier, seen.inputs, matches), strict=True):
        place.image(card, width="stretch", alt=f"A part of the image, and the prototype of {names[k]} most like it")
    logit = float(seen.classifier.logits(seen.inputs[None])[0, k])
    st.markdown(escape_markdown(describe_matches(matches, names[k], logit)))
