"""Filter the images of a set by class, prediction, confidence and id; the filters are part of the link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.class_names import ClassNames
from dashboard.shared import links
from dashboard.shared.cache import Gallery

ANY = "Any class"
Verdict = Literal["Right or wrong", "Right", "Wrong"]
EITHER: Verdict = "Right or wrong"
TRUTH_KEY, PREDICTED_KEY, VERDICT_KEY, CONFIDENCE_KEY, TEXT_KEY, SELECTED_KEY, NOTED_KEY = (
    f"filter.{name}" for name in ("truth", "predicted", "verdict", "confidence", "text", "selected", "noted")
)
"""In the session and in the link."""
DEFAULTS: dict[str, Any] = {
    TRUTH_KEY: ANY,
    PREDICTED_KEY: ANY,
    VERDICT_KEY: EITHER,
    CONFIDENCE_KEY: (0, 100),
    TEXT_KEY: "",
    SELECTED_KEY: False,
    NOTED_KEY: False,
}


@dataclass(frozen=True)
class ImageFilter:
    """What images have to be: of a true class, a predicted class, right or wrong, with a confidence in per cent.

    ``text`` is part of the image's id, whatever the case; ``among`` are the only images that fit, or None.
    """

    truth: str = ANY
    predicted: str = ANY
    verdict: Verdict = EITHER
    confidence: tuple[int, int] = (0, 100)
    text: str = ""
    among: frozenset[int] | None = None

    @property
    def is_active(self) -> bool:
        """Whether any image may be left out."""
        return self != ImageFilter()

    @property
    def of_any_class(self) -> ImageFilter:
        """Return the filter without its classes, as the confusion matrix counts."""
        return replace(self, truth=ANY, predicted=ANY)

    def fits(self, gallery: Gallery) -> NDArray[np.bool_]:
        """Return whether each image of a set fits (N,); an image that cannot be scored is neither right nor wrong."""
        predictions, images = gallery.predictions, gallery.images
        low, high = (share / 100 for share in self.confidence)
        fit: NDArray[np.bool_] = (predictions.probability >= low) & (predictions.probability <= high + 1e-6)
        if self.truth != ANY:
            fit &= images.labels == list(images.categories).index(self.truth)
        if self.predicted != ANY:
            fit &= predictions.predicted == gallery.class_names.index(self.predicted)
        if self.verdict != EITHER:
            fit &= gallery.has_known_label & (predictions.correct == (self.verdict == "Right"))
        if self.text:
            asked = self.text.casefold()
            fit &= np.fromiter((asked in name.casefold() for name in images.ids), dtype=bool, count=len(images))
        if self.among is not None:
            fit &= np.isin(np.arange(len(images)), list(self.among))
        return fit


def choose_filter(gallery: Gallery, selected: frozenset[int], noted: frozenset[int]) -> ImageFilter:
    """Draw the filters; they can be limited to the images ``selected``, and to those with a note."""
    names = gallery.class_names
    links.update_classes(PREDICTED_KEY, ClassNames(gallery.categories), [ANY])
    truth = _class_box("True class", TRUTH_KEY, _occurring(gallery.images.categories, gallery.images.labels))
    predicted = _class_box("Predicted class", PREDICTED_KEY, _occurring(names, gallery.predictions.predicted))
    links.check(VERDICT_KEY, get_args(Verdict), "filter")
    verdict: Verdict = st.selectbox("Prediction", get_args(Verdict), key=VERDICT_KEY, bind="query-params")
    confidence = st.slider("Confidence, %", 0, 100, DEFAULTS[CONFIDENCE_KEY], key=CONFIDENCE_KEY, bind="query-params")
    text = st.text_input("Text in the image's id", key=TEXT_KEY, bind="query-params")
    only = bool(selected) and st.toggle(f"Only the {len(selected):,} selected", key=SELECTED_KEY, bind="query-params")
    among = selected if only else None
    if noted and st.toggle(f"Only the {len(noted):,} with a note", key=NOTED_KEY, bind="query-params"):
        among = noted if among is None else among & noted
    return ImageFilter(truth, predicted, verdict, confidence, text.strip(), among)


def set_filter(**values: Any) -> None:
    """Set filters by their names, e.g. ``truth="boat"``, before the page is drawn again; the others stay."""
    for name, value in values.items():
        st.session_state[f"filter.{name}"] = value


def clear_filters() -> None:
    """Set every filter so that all images fit."""
    for key, value in DEFAULTS.items():
        st.session_state[key] = value


def show_no_match() -> None:
    """Say that the filters leave no image, with a button that clears them."""
    st.info("No image matches the filters.")
    st.button("Clear the filters", on_click=clear_filters, icon=":material/filter_alt_off:", type="primary")


def _occurring(names: Sequence[str], numbers: NDArray[np.int64]) -> list[str]:
    """Return the names that occur, in alphabetical order."""
    return sorted(names[k] for k in np.unique(numbers))


def _class_box(label: str, key: str, names: Sequence[str]) -> str:
    links.check(key, [ANY, *names], "class")
    return st.selectbox(label, [ANY, *names], key=key, bind="query-params")
