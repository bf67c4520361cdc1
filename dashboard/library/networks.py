"""The networks that Explore offers, with facts about each; those that were added can be removed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import streamlit as st

import data
from dashboard.shared import cache, links, service
from dashboard.shared.cache import NetworkFacts
from dashboard.shared.cards import describe_card
from dashboard.shared.live import await_result
from dashboard.shared.messages import escape_markdown
from data.scenes.zoo.store import PREFIX, read_card
from study.building.categories import count_of
from study.workspace.modelfiles import read_lines
from study.workspace.workspace import home

SENTENCES = {
    "scenes": "Relies on an object's usual context too, so that an unusual one misleads it.",
    "bars": "Tells horizontal bars from vertical ones, and relies partly on their colour.",
    "bars:belief": "A deep belief network of the bars, of whose units typical images can be drawn.",
}
"""What the built-in networks without a card are."""
TITLES = {"scenes": "Drawn scenes", "bars": "Drawn bars", "bars:belief": "Drawn bars, deep belief network"}
SAID = "library_model_said"
"""In the session: what is said about the network that was added last."""
SOURCES = {"timm": "timm", "hf": "Hugging Face", "clip": "CLIP", "torchvision": "torchvision"}
MANY = 8
"""Networks from which on a search is offered."""


class _Described(NamedTuple):
    """A network of the list: its name, and what it is in words."""

    name: str
    title: str
    sentence: str
    source: str


def show() -> None:
    """Draw the networks: those that were added first, and the built-in ones."""
    st.header("Networks that Explore offers", anchor=False)
    described = [_describe(name) for name in cache.list_models()]
    facts = await_result(cache.start_facts_job([one.name for one in described])) or {}
    asked = ""
    if len(described) > MANY:
        asked = st.text_input("Search", placeholder="Part of a name or a description", key="model_search", width=420)
    words = asked.casefold().split()
    described = [one for one in described if all(word in " ".join(one).casefold() for word in words)]
    if not described:
        st.caption("No network has these words in its name or description.")
    added = [one for one in described if one.name not in data.CLASSIFIERS]
    _list(added, facts)
    if len(added) < len(described):
        with st.expander(f"Built in ({len(described) - len(added)})", expanded=not added or bool(words)):
            _list([one for one in described if one not in added], facts)


def _list(described: Sequence[_Described], facts: dict[str, NetworkFacts | str]) -> None:
    lines = read_lines(home() / cache.MODELS)
    for one in described:
        left, right = st.columns([3, 1], vertical_alignment="center")
        code = "" if one.title == one.name else f" `{one.name}`"
        said = f"  \n:small[{escape_markdown(one.sentence)}]" if one.sentence else ""
        left.markdown(
            f"**{escape_markdown(one.title)}**{code}{said}  \n:small[{_format_facts(one, facts.get(one.name))}]"
        )
        with right.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", gap="small"):
            if one.name.startswith(PREFIX):
                with st.popover("Details"):
                    st.markdown(describe_card(read_card(one.name), one.name))
            links.show_link("Explore", "explore", classifier=one.name)
            _offer_removal(one.name, lines)


def _format_facts(one: _Described, facts: NetworkFacts | str | None) -> str:
    """Describe a network by its classes, input size, parameters and source, or say why it cannot be loaded."""
    if isinstance(facts, str):
        return f":orange[{escape_markdown(facts)}]"
    parts = [one.source]
    if facts is not None:
        height, width = facts.input_size
        side = f"{width}" if width == height else f"{width} × {height}"
        parts = [
            count_of(len(facts.categories), "class", "classes"),
            f"{side} px",
            f"{_format_count(facts.parameters)} parameters",
            *parts,
        ]
    return f":gray[{escape_markdown(' · '.join(parts))}]"


def _format_count(number: int) -> str:
    """Format a number of parameters: ``"3.5 million"``, ``"22,490"``."""
    return f"{number / 1e6:.1f} million" if number >= 1e5 else f"{number:,}"


def _describe(name: str) -> _Described:
    if name.startswith(PREFIX):
        return _Described(name, read_card(name)["title"], "", "built in")
    if name in data.CLASSIFIERS:
        return _Described(name, TITLES[name], SENTENCES[name], "built in")
    if name.endswith(".py"):
        return _Described(name, cache.name_model(name), read_description(home() / name), "Python file")
    source = name.partition(":")[0]
    is_program = name.startswith(f"{cache.MODELS}/")
    return _Described(
        name, cache.name_model(name), "", "exported program" if is_program else SOURCES.get(source, "torchvision")
    )


def read_description(path: Path) -> str:
    """Read the first sentence of a Python file's docstring; the file is not run."""
    with suppress(OSError, SyntaxError, ValueError):
        text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
        return " ".join(text.partition("\n\n")[0].split())
    return ""


def _offer_removal(name: str, lines: Sequence[str]) -> None:
    if name not in lines and not name.startswith(f"{cache.MODELS}/"):
        return
    researcher = service.get_acting_researcher()
    if researcher.explain_library_refusal("network", name) is not None:
        return
    if st.button("Remove", key=f"remove_{name}", help="Downloaded weights stay in the library's cache."):
        researcher.remove_network(name)
        st.session_state.pop(SAID, None)
        st.rerun()
