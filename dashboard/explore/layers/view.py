"""What the network holds inside and how near its boundaries are: the questions of the verb `inspect`."""

from __future__ import annotations

import json
from typing import Any, Literal

import streamlit as st

from core.classifier import Classifier
from core.parameters import list_parameters, summary
from dashboard.explore import parameters
from dashboard.explore.heatmaps import downloads
from dashboard.explore.layers.figures import FIGURES
from dashboard.explore.layers.jobs import InspectionRequest, LayerResult
from dashboard.explore.table import format_name
from dashboard.shared import cache, files, numbers
from dashboard.shared.live import draw_when_ready
from dashboard.shared.messages import escape_markdown
from data.types import ImageSet
from study.inquiry.layers import COMPARING, LAYERED, QUESTIONS, LayerQuery, blocks

BIND: Literal["query-params"] = "query-params"
LEAST, COUNT, MOST = 20, 200, 2000
"""Pictures asked about: at least, unless another number is chosen, and at most."""
READ = {
    "probes": "Bars: 95 % intervals over held-out pictures. Dotted: chance.",
    "similarity": "1: each layer is a linear map of the other. What unlike layers reach by chance stands in the table.",
    "consistency": "Order 0: by a linear map; order k: what k hidden layers add. On pictures no map was trained on.",
    "dissection": "A unit detects what it agrees with best where it agrees better than with masks of other pictures.",
    "deletion": "What each class's own pictures lose when the unit is set to 0, of the units that matter most.",
    "attacks": "95 % intervals. A bound from above: an attack that finds nothing proves nothing.",
    "margins": "In units of the network's input, each point a picture. Those that met no other answer are left out.",
    "frequencies": "95 % intervals. Dotted: how often it is right on the whole pictures.",
}


def choose_question(model: str, classifier: Classifier) -> tuple[LayerQuery, str]:
    """The question with all that it is asked with, and the classifier that is compared."""
    question = st.selectbox("Question", list(QUESTIONS), format_func=format_name, key="question", bind=BIND)
    st.caption(escape_markdown(summary(QUESTIONS[question])))
    layers = _layers("Layers", classifier, "inside.layers") if question in LAYERED else ()
    other, other_layers = model, layers[:0]
    if question in COMPARING:
        names = cache.list_models()
        other = st.selectbox("Compared with", names, names.index(model), key="inside.other", bind=BIND)
        other_layers = _layers("Its layers", cache.load_classifier(other), "inside.other_layers", "The same names")
    given = _form(question, classifier)
    seed = int(st.number_input("Seed of the draws", 0, parameters.MOST_SEED, 0, 1, key="seed", bind=BIND))
    asked = LayerQuery(question, model, layers=layers, other_layers=other_layers, parameters=given, seed=seed)
    return asked, other


def choose_image_count() -> int:
    """How many of the set are asked about at most."""
    return int(st.number_input("Pictures at most", LEAST, MOST, COUNT, 1, key="inside.pictures", bind=BIND))


def _layers(label: str, classifier: Classifier, key: str, otherwise: str = "Chosen by the question") -> tuple[str, ...]:
    offered = dict.fromkeys([*_blocks(classifier.fingerprint, classifier), *classifier.layers])
    return tuple(st.multiselect(label, list(offered), key=key, bind=BIND, placeholder=otherwise, wrap=True))


@st.cache_data(max_entries=50, show_spinner=False)
def _blocks(key: str, _classifier: Classifier) -> tuple[str, ...]:  # noqa: ARG001
    return blocks(_classifier)


def _form(question: str, classifier: Classifier) -> dict[str, str]:
    fields = list_parameters(QUESTIONS[question])
    if not fields:
        return {}
    with st.form(f"question_{question}", border=False):
        given = {field.name: str(parameters.show_parameter(question, field, classifier)) for field in fields}
        st.form_submit_button("Ask again", width="stretch")
    return given


def show(asked: LayerQuery, classifier: Classifier, compared: Classifier, images: ImageSet, count: int) -> None:
    """The answer as a figure and a table, once it is there."""
    st.subheader(format_name(asked.question), anchor=False)
    same = classifier.fingerprint == compared.fingerprint
    if asked.question == "consistency" and same and (not asked.other_layers or asked.layers == asked.other_layers):
        st.info(
            "Knowledge consistency compares two networks, or two layers of one. Choose a network under **Compared "
            "with**, or different layers under **Layers** and **Its layers**."
        )
        return
    request = InspectionRequest(asked, classifier, compared, images, count)
    draw_when_ready(request, lambda found: _draw_result(request, found), "_inside")
    downloads.show_downloads(None)


def _draw_result(request: InspectionRequest, found: LayerResult) -> None:
    question, name = request.asked.question, f"{request.classifier.name}.{request.asked.question}"
    if question in FIGURES and len(found.table):
        st.plotly_chart(FIGURES[question](found.table), key="inside_figure", config={"displaylogo": False})
        asked = len(found.table) if "picture" in found.table else request.image_count
        st.caption(f"{READ.get(question, '')} {asked:,} of the {len(request.images):,} pictures.")
    numbers.table(found.table, name)
    files.offer_download(
        f"{name}.json, how it was found", lambda: _format_facts(found.facts), f"{name}.json", "application/json"
    )


def _format_facts(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
