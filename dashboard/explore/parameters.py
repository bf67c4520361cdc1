"""Methods to choose from, and a form for whatever a method declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.attribution.places.place import select_layer
from core.attribution.records import group_methods
from core.errors import ForetellError
from core.names import format_name
from core.network.classifier import Classifier
from core.parameters import Parameter, list_parameters, parse_parameters, summary
from dashboard.explore import heatmap_jobs as work
from dashboard.explore.methods import list_methods, open_offered
from dashboard.shared import links
from dashboard.shared.live import format_duration
from dashboard.shared.messages import escape_markdown

HIDDEN = ("chunk",)
"""Parameters of speed and memory that change no heatmap."""
MOST_SEED = 2**53 - 1  # what a browser's number still holds exactly
COST_UNKNOWN = "The cost cannot be estimated in advance."
TEACHING = "bayesian_teaching"
SMALL = 128 * 128
"""Pixels of an image up to which Bayesian teaching takes seconds without a GPU."""
REFINED_KEY = "refined"
AUTOMATIC = "Automatic"
MOST_FORMS = 12
"""Methods of a grid with a form each: the widgets of many slow every click."""


def choose_method(classifier: Classifier, *, offers_refinement: bool = False) -> str:
    """Choose the method of a single heatmap; Bayesian teaching is one click away if another one is drawn at first."""
    names = list_methods(classifier)
    links.check("method", map(format_name, names), "method")
    first = _begin_with("method", _find_first(classifier))
    method = st.selectbox(
        "Method", names, names.index(first), format_func=format_name, key="method", bind="query-params"
    )
    if offers_refinement and method == first != TEACHING:
        seconds = work.estimate(classifier, TEACHING, {})[1]
        cost = f" ({format_duration(seconds)})" if seconds else ""
        st.button(f"Refine by Bayesian teaching{cost}", key="refine", on_click=_refine, width="stretch")
    return method


def _find_first(classifier: Classifier) -> str:
    """Return the method before anyone chooses one: Bayesian teaching, or one pass where that takes a minute or more."""
    _, height, width = classifier.input_shape
    if height * width <= SMALL or classifier.device.type != "cpu":
        return TEACHING
    try:
        select_layer(classifier, "")
    except ForetellError:
        return "gradient"
    return "grad_cam"


def _begin_with(key: str, first: str) -> str:
    """Take what another classifier began with back, unless something else was chosen; return ``first``."""
    before = st.session_state.get(f"{key}.first", first)
    if before != first and st.session_state.get(key) == before:
        st.session_state[key] = first
    st.session_state[f"{key}.first"] = first
    return first


def _refine() -> None:
    st.session_state["method"] = TEACHING
    st.session_state[REFINED_KEY] = True


def is_refined() -> bool:
    """Tell, once, whether the heatmap of this run was asked for by a click that showed its cost."""
    return bool(st.session_state.pop(REFINED_KEY, False))


def choose_methods(classifier: Classifier) -> list[str]:
    """Choose the methods of a grid, in the order of the choice, or a family of them by a click."""
    names = list_methods(classifier)
    links.check("methods", map(format_name, names), "method")
    with st.container(horizontal=True, gap="xxsmall"):
        for family, members in ({"All": tuple(names)} | group_methods()).items():
            st.button(family, key=f"family_{family}", on_click=select_methods, args=(members,))
    return st.multiselect(
        "Methods",
        names,
        list(dict.fromkeys(["gradient", "grad_cam", _find_first(classifier)])),
        format_func=format_name,
        key="methods",
        bind="query-params",
        wrap=True,
    )


def select_methods(methods: Sequence[str]) -> None:
    """Make these the methods of the grid, before the page is drawn again."""
    st.session_state["methods"] = list(methods)


def choose_settings(methods: list[str], classifier: Classifier) -> tuple[dict[str, dict[str, Any]], int]:
    """Choose the parameters of each method and the seed; each form shows the cost of a heatmap."""
    if len(methods) > MOST_FORMS:
        st.caption(f"Each method has its default parameters; with up to {MOST_FORMS} methods they can be changed.")
        given = {method: parse_parameters(open_offered(method, classifier), {}) for method in methods}
    else:
        given = {method: _form(method, classifier, alone=len(methods) == 1) for method in methods}
    seed = st.number_input("Random seed", 0, MOST_SEED, 0, 1, key="seed", bind="query-params")
    return given, int(seed)


def _form(method: str, classifier: Classifier, *, alone: bool) -> dict[str, Any]:
    opened = open_offered(method, classifier)
    label = "Description and parameters" if alone else f"{format_name(method)}: parameters"
    seen_at_once = st.empty()
    with st.expander(label):
        seen_when_opened = st.empty()
        st.caption(escape_markdown(summary(opened)))
        fields = [p for p in list_parameters(opened) if p.name not in HIDDEN]
        with st.form(f"parameters_{method}", border=False):
            given = {p.name: show_parameter(method, p, classifier) for p in fields}
            if fields:
                st.form_submit_button("Apply", width="stretch")
        parameters = parse_parameters(opened, given)
    (seen_at_once if alone else seen_when_opened).caption(_cost(classifier, method, parameters))
    return parameters


def _cost(classifier: Classifier, method: str, given: dict[str, Any]) -> str:
    passes, seconds = work.estimate(classifier, method, given)
    if passes is None:
        return COST_UNKNOWN
    counts = ((passes.forwards, "forward"), (passes.gradients, "forward and backward"))
    said = " and ".join(f"{count:,} {kind} pass{'es' * (count != 1)}" for count, kind in counts if count)
    speed = "" if seconds is None else f", {format_duration(seconds)} on this machine"
    return f"A heatmap takes about {said}{speed}."


def show_parameter(
    owner: str,
    parameter: Parameter,
    classifier: Classifier,
    *,
    label: str = "",
    several: Sequence[str] = (),
    format_value: Callable[[str], str] = format_name,
) -> Any:
    """Draw the widget of one parameter of a method, or of another ``owner``, which is part of its link.

    Parameters
    ----------
    label
        Its label; by default its name.
    several
        The names that it may list, separated by commas; empty if it is no such list.
    """
    label = label or format_name(parameter.name)
    key, meaning = f"{owner}.{parameter.name}", escape_markdown(parameter.help) or None
    if offered := parameter.choices or several:
        draw = links.selectbox if parameter.choices else links.multiselect
        return draw(label, offered, parameter.default, key=key, help=meaning, format_func=format_value)
    options: dict[str, Any] = {"key": key, "bind": "query-params", "help": meaning}
    if parameter.name in ("layer", "heatmap_layer"):
        return st.selectbox(label, ["", *classifier.layers], format_func=lambda name: name or AUTOMATIC, **options)
    if parameter.kind is bool:
        return st.toggle(label, parameter.default, **options)
    if parameter.kind is int:
        return st.number_input(label, value=parameter.default, step=1, **options)
    if parameter.kind is float:
        return st.number_input(label, value=parameter.default, format="%g", **options)
    return st.text_input(label, parameter.default, **options)
