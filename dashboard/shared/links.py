"""Links to a view: former names are replaced, and parts that name something that does not exist are reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from core.class_names import ClassNames, fold
from core.errors import ForetellError
from dashboard.shared.keys import digest
from dashboard.shared.messages import escape_markdown

Read = TypeVar("Read")

FORMER = {
    **{
        f"{key}={former}": f"{key}={now}"
        for key in ("method", "methods", "hover")
        for former, now in {
            "Grad CAM": "Grad-CAM",
            "Grad CAM plus plus": "Grad-CAM++",
            "Guided Grad CAM": "Guided Grad-CAM",
            "Layer CAM": "LayerCAM",
            "Score CAM": "Score-CAM",
        }.items()
    },
    "view=One map": "view=Single image",
    "view=Two classifiers": "view=Compare models",
    "view=All pictures": "view=Gallery",
    "view=Units": "view=Classes and units",
    "view=Inside": "view=Layers",
    "source=Misleading": "source=Adversarial",
    "source=Ordinary": "source=Standard",
    "order=Confident and right first": "order=Confident and correct first",
    "columns=Pictures": "columns=Images",
    "target=The AI's answer": "target=The AI's prediction",
    "classes=Answer": "classes=Prediction",
    "classes=2nd answer": "classes=2nd prediction",
    "classes=3rd answer": "classes=3rd prediction",
    "classes=4th answer": "classes=4th prediction",
    "classes=5th answer": "classes=5th prediction",
    "classes=The truth": "classes=True class",
    "part=Doubtful labels": "part=Label errors",
    "part=Network and images": "part=Study",
    "part=Explanations": "part=Trials",
    "place=Confidence and doubt": "place=Confidence and uncertainty",
    "colour=The AI's answer": "colour=The AI's prediction",
    "judge=The AI's answers: ": "judge=The AI's predictions: ",
    "judge=A reader of its features: ": "judge=Linear probe: ",
    "judge=Where both agree: ": "judge=Both agree: ",
    "noise=Not asked": "noise=None",
    "doubt=Entropy of the answer": "uncertainty=Entropy of the prediction",
    "doubt=": "uncertainty=",
    "doubt.measure=Doubt": "uncertainty.measure=Least confidence",
    "uncertainty.measure=Doubt": "uncertainty.measure=Least confidence",
    "doubt.measure=": "uncertainty.measure=",
    "picture=": "image=",
    "pictures=": "images=",
    "inside.layers=": "layers=",
    "inside.other=": "layers.other=",
    "inside.other_layers=": "layers.other_layers=",
    "inside.pictures=": "layers.images=",
    "section=Answer": "section=Main result",
    "pilot_source=The paper's estimates (Table 1)": "pilot_source=Folke et al. (2021), Table 1",
    "pilot_source=Simulated people": "pilot_source=Simulated participants",
    "pilot_source=A CSV file of mine": "pilot_source=Upload a CSV file",
    "monitor_study=": "study=",
    "results_source=A CSV file of mine": "results_source=Upload a CSV file",
}
"""Parts of links of former versions, and what they are called today: beginnings end in ``=`` or a space."""

INSTEAD = "Another one is shown instead."
_UNKNOWN = "link_unknown"
"""In the session: of each faulty parameter the sentence, and the value that the page took instead."""


def show_link(label: str, page: str, *, place: str = "", **query: str) -> None:
    """Draw a link to another page of Foretell, which opens in this tab and keeps what the session holds.

    A link in Markdown would open a new tab, with a session of its own. ``query`` is that of the page's address;
    ``place`` tells links to the same address on one page apart.
    """
    with st.container(key=f"go_{digest(place, page, *map('='.join, query.items()))[:12]}", width="content"):
        st.page_link(
            st.Page(_draw_nothing, title=label, url_path=page), label=escape_markdown(label), query_params=query
        )


def _draw_nothing() -> None:
    """Draw nothing: a link needs a page, and Streamlit finds the one that is meant by its path."""


def show_view_link(label: str, address: str) -> None:
    """Draw a link to a view of the page that is open, which is loaded again: nothing of this view may stay."""
    st.html(f'<a class="view" href="{escape(address)}" target="_self">{escape(label)}</a>')


def read_query() -> str:
    """Return the query of the link to this view."""
    return urlencode([(key, value) for key in st.query_params for value in st.query_params.get_all(key)])


def update(query: str) -> str:
    """Replace the former names and values in the query of a link."""
    parts = parse_qsl(query, keep_blank_values=True)
    today = [_update_part(*part) for part in parts]
    return query if today == parts else urlencode(today)


def _update_part(name: str, value: str) -> tuple[str, str]:
    part = f"{name}={value}"
    for former, today in FORMER.items():
        if part == former or (former[-1] in "= " and part.startswith(former)):
            name, _, value = (today + part.removeprefix(former)).partition("=")
            break
    return name, value


def check(key: str, options: Iterable[Any], what: str) -> None:
    """Note a value of the link that is not among a widget's options; call it before the widget is drawn.

    A widget bound to the query parameter ``key`` falls back to its default without a message.
    """
    given, known = st.query_params.get_all(key), {str(option) for option in options}
    for value in given:
        if value not in known:
            note(key, f"The link names the {what} “{value}”, which does not exist here. {INSTEAD}")


def update_classes(key: str, names: ClassNames, others: Iterable[str] = (), *, several: bool = False) -> None:
    """Replace classes that the link names as a command may, or as former versions did, by their names on the pages.

    ``others`` are the options that are no classes, and ``several`` can be chosen. Call it before the widget is drawn
    and before `check`.
    """
    given = st.query_params.get_all(key)
    today = [value if value in others else name_class(names, value) for value in given]
    if today != given:
        st.query_params[key] = today
        st.session_state.setdefault(key, today if several else today[-1])


def name_class(names: ClassNames, value: str) -> str:
    """Return the name on the pages of a class that a link names; the value itself where it is no class, or several.

    Former versions wrote the index after a name that several classes have before their first comma.
    """
    matches = names.find_numbered(value)
    former = re.fullmatch(r"(.+) \((\d+)\)", value)
    if not matches and former and (k := int(former[2])) < len(names.categories):
        matches = (k,) if fold(names.categories[k].partition(",")[0]) == fold(former[1]) else ()
    return names.short[matches[0]] if len(matches) == 1 else value


def note(key: str, sentence: str) -> None:
    """Keep a sentence about a part of the link until the reader changes that part."""
    st.session_state.setdefault(_UNKNOWN, {})[key] = (sentence, None)


def selectbox(label: str, options: Sequence[str], default: str, *, key: str, what: str = "", **given: Any) -> str:
    """Draw a selectbox whose link names the option itself; ``what`` it names is said of an unknown one.

    A selectbox bound to the link writes there what ``format_func`` makes of the option.
    """
    if st.session_state.get(key) not in options:
        st.session_state[key] = _read_name(key, options, default, what)
    chosen: str = st.selectbox(label, options, key=key, **given)
    _write_names(key, chosen, default)
    return chosen


def multiselect(label: str, options: Sequence[str], default: str, *, key: str, **given: Any) -> str:
    """Draw a choice of several options, the default ones if none is chosen.

    The link, ``default`` and the result name them, separated by commas.
    """
    if key not in st.session_state:
        st.session_state[key] = _read_names(key, options, default)
    chosen = ",".join(st.multiselect(label, options, key=key, placeholder="The default ones", **given)) or default
    _write_names(key, chosen, default)
    return chosen


def _read_name(key: str, options: Sequence[str], default: str, what: str) -> str:
    """Return the option that the link names, which may have commas, or, with a note, the default one."""
    if key in st.session_state:  # the options have changed, and the link names one of the former
        return default
    return default if _note_unknown(key, [name := st.query_params.get(key, default)], options, what) else name


def _read_names(key: str, options: Sequence[str], default: str) -> list[str]:
    """Return the options that the link names, or, with a note, the default ones if it names others."""
    names = [name.strip() for name in st.query_params.get(key, default).split(",")]
    return default.split(",") if _note_unknown(key, names, options) else names


def _note_unknown(key: str, names: Sequence[str], options: Sequence[str], what: str = "") -> bool:
    """Note the names that are not among the options, and return whether there are any."""
    unknown = [name for name in names if name not in options]
    for name in unknown:
        note(key, f"The link names {f'the {what} ' if what else ''}“{name}”, which does not exist here. {INSTEAD}")
    return bool(unknown)


def _write_names(key: str, chosen: str, default: str) -> None:
    if chosen != default:
        st.query_params[key] = chosen
    elif key in st.query_params:
        del st.query_params[key]


def text_input(label: str, default: str, *, key: str, **options: Any) -> str:
    """Draw a text field that starts with the link's value; `accept` keeps the link at what it says.

    A widget bound to the link writes every value there, also one that ends in an error message.
    """
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(key, default)
    text: str = st.text_input(label, key=key, **options)
    return text


def accept(key: str, text: str, default: str, read: Callable[[str], Read]) -> Read:
    """Read the value of a `text_input`, and write it to the link.

    Raises
    ------
    ForetellError
        From `read`; what it refused is not in the link, nor what the link brought.
    """
    try:
        value = read(text)
    except ForetellError:
        if st.query_params.get(key) == text:
            del st.query_params[key]
        raise
    if text != st.query_params.get(key, default):
        st.query_params[key] = text
    return value


def show() -> None:
    """Draw what was noted, as long as the page still shows what it took instead."""
    noted: dict[str, tuple[str, Any]] = st.session_state.get(_UNKNOWN, {})
    for key, (sentence, before) in list(noted.items()):
        now = str(st.session_state.get(key))
        if before is not None and now != before:
            del noted[key]
            continue
        noted[key] = (sentence, now)
        st.warning(escape_markdown(sentence))
