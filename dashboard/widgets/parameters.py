"""A form for whatever a method declares."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.attribution import METHODS
from core.parameters import Parameter, declared, parsed, summary
from dashboard.widgets.messages import escaped

HIDDEN = ("chunk",)
"""Parameters of speed and memory that change no map."""
MOST_SEED = 2**53 - 1  # what a browser's number still holds exactly


def words(name: str) -> str:
    """A registered name as people write it: ``"integrated_gradients"`` -> ``"Integrated gradients"``."""
    return name.replace("_", " ").capitalize()


def method_and_parameters() -> tuple[str, dict[str, Any], int]:
    """Chosen method, its parameters, and the seed."""
    names = list(METHODS)
    method = st.selectbox(
        "Method",
        names,
        index=names.index("bayesian_teaching"),
        format_func=words,
        key="method",
        bind="query-params",
    )
    with st.expander("What it does, and its parameters"), st.form(f"parameters_{method}", border=False):
        st.caption(escaped(summary(METHODS[method])))
        given = {p.name: _field(method, p) for p in declared(METHODS[method]) if p.name not in HIDDEN}
        seed = st.number_input("Seed", 0, MOST_SEED, 0, 1, key=f"parameter_{method}_seed", persist_state="session")
        st.form_submit_button("Explain again", width="stretch")
    return method, parsed(METHODS[method], given), int(seed)


def _field(method: str, parameter: Parameter) -> Any:
    label = words(parameter.name)
    options: dict[str, Any] = {"key": f"parameter_{method}_{parameter.name}", "persist_state": "session"}
    if parameter.choices is not None:
        index = parameter.choices.index(parameter.default)
        return st.selectbox(label, parameter.choices, index=index, **options)
    if parameter.kind is bool:
        return st.toggle(label, parameter.default, **options)
    if parameter.kind is int:
        return st.number_input(label, value=parameter.default, step=1, **options)
    if parameter.kind is float:
        return st.number_input(label, value=parameter.default, format="%g", **options)
    return st.text_input(label, parameter.default, **options)
