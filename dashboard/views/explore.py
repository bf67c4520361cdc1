"""Explore: a picture, what the AI says of it, and what in it the answer rests on."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from core.classifier import Classifier
from core.types import Explanation
from dashboard import cache, figures
from dashboard.widgets import certificate, parameters, progress, source
from dashboard.widgets.messages import errors_shown
from dashboard.widgets.source import Chosen
from study.sources import plain

TOP = 5


def page() -> None:
    """The whole page."""
    st.title("Explore", anchor=False)
    st.caption("Choose a picture and see what the AI makes of it, what in it speaks for that, and how far to trust it.")
    controls, results = st.columns([1, 2.3], gap="large")
    with controls, errors_shown():
        model = st.selectbox("Classifier", ["scenes", *cache.downloaded_models()], key="classifier")
        chosen = source.choose(model)
        method, settings, seed = parameters.method_and_parameters()
        with results, errors_shown():
            if chosen is None:
                st.info("Choose a picture file: it stays on this machine.")
                return
            _explained(cache.classifier(model), chosen, method, settings, seed)


def _explained(classifier: Classifier, chosen: Chosen, method: str, settings: dict[str, object], seed: int) -> None:
    inputs = classifier.preprocess(chosen.picture)
    probabilities = classifier.probabilities(inputs[None])[0]
    answer = int(probabilities.argmax())
    _headline(plain(classifier.categories[answer]), float(probabilities[answer]), chosen)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        target = _target(classifier, answer)
        opacity = st.slider("Opacity of the map", 0.0, 1.0, 0.8, 0.05, key="opacity", width=220)
        outline = chosen.mask is not None and st.toggle("Outline of the object", key="outline")
    maps = st.container()
    left, right = st.columns(2, gap="large")
    with left:
        _considered(classifier, probabilities, target)
    request = cache.Request(classifier, method, inputs, target, seed, settings)
    with maps, progress.bar("Explaining") as report:
        explanation = cache.explained(request.key, request, report)
    with maps:
        _maps(classifier, chosen, explanation, opacity, outline)
    with right:
        st.subheader("How far to trust this map", anchor=False)
        certificate.show(explanation.certificates[0], plain(classifier.categories[target]))


def _considered(classifier: Classifier, probabilities: Tensor, target: int) -> None:
    st.subheader("What the AI considered", anchor=False)
    for k in probabilities.argsort(descending=True)[:TOP].tolist():
        name = plain(classifier.categories[k])
        st.progress(float(probabilities[k]), f"{f'**{name}**' if k == target else name} {probabilities[k]:.1%}")


def _headline(says: str, probability: float, chosen: Chosen) -> None:
    """What the AI says, and whether it is right where that is known."""
    badges = []
    if chosen.truth is not None:
        badges.append(":green-badge[right]" if chosen.truth == says else f":orange-badge[wrong, truth: {chosen.truth}]")
    if chosen.context is not None:
        badges.append(f":gray-badge[place: {chosen.context}]")
    st.subheader(" ".join([f"The AI says {says}, {probability:.0%}", *badges]), anchor=False)


def _target(classifier: Classifier, answer: int) -> int:
    """The class to explain: the AI's answer unless another is chosen."""
    own = f"The AI's answer ({plain(classifier.categories[answer])})"
    names = [own, *map(plain, classifier.categories)]
    k = st.selectbox(
        "Explain", range(len(names)), format_func=names.__getitem__, key="target", persist_state="session", width=260
    )
    return answer if k == 0 else k - 1


def _maps(classifier: Classifier, chosen: Chosen, explanation: Explanation, opacity: float, outline: bool) -> None:
    fact = explanation.certificates[0]
    category = plain(classifier.categories[fact.target])
    drawing = figures.Drawing(chosen.picture, classifier.input_shape[1:], explanation, chosen.mask)
    caption = f"{parameters.words(fact.method)}: {category}"
    pictures = (drawing.picture(outline=outline), drawing.over(opacity, outline=outline), drawing.alone(caption))
    captions = ("What the AI saw", f"Orange: for {category}. Blue: against", "The map alone, with its scale")
    for place, picture, words in zip(st.columns(3), pictures, captions, strict=True):
        place.image(picture, caption=words, width="stretch", alt=words)
    with st.container(horizontal=True):
        _downloads(drawing, explanation, chosen, opacity, caption, category)


def _downloads(
    drawing: figures.Drawing, explanation: Explanation, chosen: Chosen, opacity: float, caption: str, category: str
) -> None:
    fact = explanation.certificates[0]
    stem = f"{chosen.name.rsplit('.', 1)[0].replace('/', '-')}.{fact.method}"
    files = {
        "Picture (PNG)": (lambda: figures.png(drawing.sheet(opacity, caption)), "png", "image/png"),
        "Map (NPY)": (lambda: figures.npy(explanation.map[0]), "npy", "application/octet-stream"),
        "Certificate (JSON)": (lambda: certificate.as_json(fact, category), "json", "application/json"),
    }
    for label, (content, ending, mime) in files.items():
        st.download_button(label, content, f"{stem}.{ending}", mime, on_click="ignore", icon=":material/download:")
