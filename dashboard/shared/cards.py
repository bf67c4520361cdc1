"""What is known of the built-in networks with a known difference, for the pages that offer them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.names import lower_first
from data.scenes.zoo.store import PREFIX, read_card

CLASSES = {"true_class": "the true class", "predicted_class": "the predicted class"}


def show_card(model: str) -> None:
    """Draw the card of a network of the zoo; nothing for any other."""
    if not model.startswith(PREFIX):
        return
    card = read_card(model)
    with st.expander(name_card(card)):
        st.markdown(card["difference"])
        if st.button("Measured differences", key=f"card_{model}"):
            _show_measurements(model, card)


@st.dialog("Measured differences", width="large")
def _show_measurements(model: str, card: dict[str, Any]) -> None:
    """Show the card's tables, for which a column of controls is too narrow."""
    st.markdown(describe_card(card, model))


def name_card(card: dict[str, Any]) -> str:
    """Return what a card says in a few words: how its network differs from the built-in one."""
    title = card["title"]
    return f"How it differs: {lower_first(title)}"


def describe_card(card: dict[str, Any], model: str) -> str:
    """Return a card as Markdown: the difference, accuracy, effects of interventions on it and the built-in one."""
    lines = ["| split | accuracy | 95% interval |", "|---|---|---|"]
    lines += [f"| {split} | {one['accuracy']:.1%} | {_range(one['interval_95'], '.1%')} |"
              for split, one in card["accuracy"].items()]  # fmt: skip
    lines += [
        *("", "Mean loss of probability over held-out scenes, with 95% intervals:", ""),
        *(f"| intervention | probability of | {model} | scenes |", "|---|---|---|---|"),
    ]
    own, built_in = card["effects"]["network"], card["effects"]["scenes"]
    lines += [
        f"| {name} | {words} | {_effect(own[name][kind])} | {_effect(built_in[name][kind])} |"
        for name in own
        for kind, words in CLASSES.items()
    ]
    return "\n".join([card["difference"], "", *lines])


def _effect(values: list[float]) -> str:
    return f"{values[0]:.3f} ({_range(values[1:], '.3f')})".replace("-", "−")


def _range(limits: list[float], form: str) -> str:
    return f"{limits[0]:{form}} to {limits[1]:{form}}"
