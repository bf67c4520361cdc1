"""The controls of the view of layers: a topic, one of its questions, and what the question is asked about."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import streamlit as st

from core.names import format_name
from core.network.classifier import Classifier
from core.parameters import Parameter, list_parameters, summary
from dashboard.explore import parameters
from dashboard.explore.layers import words
from dashboard.shared import cache, links
from dashboard.shared.messages import escape_markdown
from inquiry.concepts.interventions import draw_rows
from inquiry.files.targets import TOP
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerQuery, blocks
from inquiry.layers.record import Topic, group_questions, record_of

BIND: Literal["query-params"] = "query-params"
FIRST = "probes"
LEAST, COUNT, MOST = 20, 200, 2000
"""Images of a question: at least, by default, and at most."""
COUNT_KEY, FORMER = "layers.images", "layers.former"
"""In the session: the number of images, and the network that was asked about before."""
MOST_FREQUENT = ""
"""The option of a class that is the one predicted most often: the name of no class."""
CLASS_HELP = "One of the network's classes, or the one that it predicts most often for these images."


def choose_question() -> str:
    """Choose a topic and one of its questions, which alone is part of the link."""
    groups = group_questions()
    names = {format_name(name): name for group in groups.values() for name in group}
    links.check("question", names, "question")
    linked = names.get(st.query_params.get("question", ""), FIRST)
    st.session_state.setdefault("topic", str(record_of(linked).topic))
    topic = Topic(str(st.segmented_control("Topic", list(map(str, groups)), required=True, key="topic", wrap=True)))
    offered = [format_name(name) for name in groups[topic]]
    if st.session_state.get("question") not in offered:
        st.session_state["question"] = format_name(linked) if linked in groups[topic] else offered[0]
    chosen = links.selectbox(
        "Question",
        offered,
        format_name(FIRST),
        key="question",
        format_func=lambda name: ": ".join(filter(None, (name, record_of(names[name]).asks))),
    )
    question = names[chosen]
    st.caption(escape_markdown(summary(QUESTIONS[question])))
    return question


def choose_networks(question: str, model: str, classifier: Classifier) -> tuple[LayerQuery, str]:
    """Choose the layers that a question is about, and the classifier to compare with."""
    record = record_of(question)
    layers = _choose_layers("Layers", classifier, "layers") if record.layered or record.compares else ()
    if not record.compares:
        return LayerQuery(question, model, layers=layers), model
    names = cache.list_models()
    former = st.session_state.get(FORMER)
    if former is not None and former == st.session_state.get("layers.other"):  # itself, which nobody chose
        st.session_state["layers.other"] = model
    st.session_state[FORMER] = model
    other = st.selectbox("Compared with", names, names.index(model), key="layers.other", bind=BIND)
    compared = cache.load_classifier(other)
    other_layers = _choose_layers("Its layers", compared, "layers.other_layers", "The same names")
    return LayerQuery(question, model, layers=layers, other_layers=other_layers), other


def choose_image_count(question: str) -> int:
    """Choose the maximum number of images."""
    if record_of(question).own_images:
        st.caption("This question asks about images of its own: those of the set are not used.")
    return int(st.number_input("Maximum number of images", LEAST, MOST, COUNT, 1, key=COUNT_KEY, bind=BIND))


def choose_seed() -> int:
    """Choose the random seed."""
    return int(st.number_input("Random seed", 0, parameters.MOST_SEED, 0, 1, key="seed", bind=BIND))


def choose_parameters(question: str, classifier: Classifier, most_frequent: str) -> dict[str, str]:
    """Choose the parameters of a question; ``most_frequent`` names the class predicted most often, if it is known."""
    fields = list_parameters(QUESTIONS[question])
    if not fields:
        return {}
    with st.form(f"question_{question}", border=False):
        given = {field.name: str(_show_field(question, field, classifier, most_frequent)) for field in fields}
        st.form_submit_button("Apply", width="stretch")
    return given


def name_most_frequent(gallery: cache.Gallery | None, classifier: Classifier, seed: int, count: int) -> str:
    """Name the class that is predicted most often for the images drawn; empty while they have no predictions."""
    if gallery is None:
        return ""
    predicted = gallery.predictions.predicted[draw_rows(len(gallery.images), seed, count)]
    return classifier.names.short[int(np.bincount(predicted).argmax())]


def _choose_layers(label: str, classifier: Classifier, key: str, otherwise: str = "Default layers") -> tuple[str, ...]:
    offered = dict.fromkeys([*_blocks(classifier.fingerprint, classifier), *classifier.layers])
    return tuple(st.multiselect(label, list(offered), key=key, bind=BIND, placeholder=otherwise, wrap=True))


@st.cache_data(max_entries=50, show_spinner=False)
def _blocks(key: str, _classifier: Classifier) -> tuple[str, ...]:  # noqa: ARG001
    return blocks(_classifier)


def _show_field(question: str, field: Parameter, classifier: Classifier, most_frequent: str) -> Any:
    label = words.find_label(question, field.name)
    if field.default == TOP:
        return _choose_class(label, f"{question}.{field.name}", classifier, most_frequent)
    return parameters.show_parameter(
        question,
        field,
        classifier,
        label=label,
        several=record_of(question).lists.get(field.name, ()),
        format_value=words.format_value,
    )


def _choose_class(label: str, key: str, classifier: Classifier, most_frequent: str) -> str:
    """Choose a class by its name; a link may name it as a command does, or by its index."""
    names = classifier.names.short
    if key not in st.session_state and (linked := st.query_params.get(key, TOP)) not in names:
        named = MOST_FREQUENT if linked == TOP else links.name_class(classifier.names, linked)
        st.session_state.update({key: named} if named != linked else {})
    first = f"Most often predicted ({most_frequent})" if most_frequent else "Most often predicted"
    chosen = links.selectbox(
        label,
        [MOST_FREQUENT, *names],
        MOST_FREQUENT,
        key=key,
        help=CLASS_HELP,
        format_func=lambda name: name or first,
    )
    return _name_target(classifier, names.index(chosen)) if chosen else TOP


def _name_target(classifier: Classifier, k: int) -> str:
    """Name a class as a command does: by its name, or by its index where the name has a meaning of its own."""
    name = classifier.names.short[k]
    return str(k) if name == TOP else name
