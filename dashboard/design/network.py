"""The network of a study, and where its three sets of images come from."""

from __future__ import annotations

import re
from collections.abc import Mapping

import streamlit as st

from core.userfiles import split_python
from dashboard.design import splitting
from dashboard.design.editor import Editor, change
from dashboard.design.fields import NARROWEST, WIDEST, follow, show, show_faults
from dashboard.design.places import UP, describe_set, image_settings
from dashboard.design.settings import RESIZE
from dashboard.design.tasks import asks_predictions, asks_units
from dashboard.shared import cache
from study.building.splitting import ROLES, Role
from study.workspace.workspace import home

ROLE_HELP = {
    "pool": "Example pool: examples are chosen from the images of it that the network classifies correctly.",
    "standard": "Standard images: targets that the network classifies correctly, and others that it gets wrong.",
    "adversarial": "Adversarial images: targets that the network gets wrong with confidence.",
}
OF_UNITS: tuple[Role, ...] = ("pool", "standard")
"""The sets of a study about units or attributes."""
UNIT_HELP = {
    "pool": "Pool: the references of a unit are the images of it that activate the unit least and most.",
    "standard": "Standard images: the two images of a trial are among those that activate the unit least and most.",
}
GRID_HELP = {
    "pool": "Pool: images that some heatmap methods need; grids show none of them.",
    "standard": "Standard images: the grids are drawn from the two classes of it.",
}
ONE, THREE = "One image set, divided into three", "Three image sets"
OTHER = "Another folder"


def show_sources(editor: Editor) -> None:
    """Draw the choice of the network and of the images."""
    grid = st.grid(2, min_column_width=NARROWEST)
    with grid.container():
        _choose_network(editor)
    with grid.container():
        show(editor, RESIZE)
    st.header("Images", anchor=False)
    if not asks_predictions(editor):
        for role in OF_UNITS:
            _choose_role(editor, role)
    elif _choose_way(editor) == ONE:
        splitting.show_split(editor)
    else:
        for role in ROLES:
            _choose_role(editor, role)


def _choose_way(editor: Editor) -> str:
    """Choose what is drawn: one image set to divide or three sets; at first, and when the file changes, as it says."""
    key = f"design.{editor.name}.how"
    current = ONE if splitting.is_one_set(editor) else THREE
    if st.session_state.get(f"{key}.file") != current or key not in st.session_state:
        st.session_state[key] = st.session_state[f"{key}.file"] = current
    way = st.segmented_control(
        "Where images come from", (ONE, THREE), required=True, key=key, label_visibility="collapsed", wrap=True
    )
    return way or current


def is_here(model: str) -> bool:
    """Whether the network of a study file is on this machine, so that opening it downloads nothing."""
    return split_python(model) is not None or model in {relative_model(name) for name in cache.list_models()}


def relative_model(name: str) -> str:
    """Return a network of Explore as a file in the workspace's ``studies`` names it."""
    spec = f"{name}:build" if name.endswith(".py") else name
    folder = home()

    def move(part: re.Match[str]) -> str:
        is_file = (folder / part[0]).is_file() or ("/" in part[0] and (folder / part[0]).is_dir())
        return f"{UP}/{part[0]}" if is_file else part[0]

    return re.sub(r"[^:?&=]+", move, spec)


def _choose_network(editor: Editor) -> None:
    known = {relative_model(name): name for name in cache.list_models()}
    value = str(editor.value("classifier.model"))
    offered = dict.fromkeys([*known, value])
    key = f"design.{editor.name}.classifier"
    follow(key, value)

    def write() -> None:
        change(editor.path, {"classifier.model": st.session_state[key]})

    st.selectbox(
        "Network",
        list(offered),
        format_func=lambda spec: cache.name_model(known[spec]) if spec in known else spec,
        key=key,
        on_change=write,
        accept_new_options=True,
        width=WIDEST,
        help="One of this workspace, or type a name: resnet50, timm:vit_base_patch16_224, hf:OWNER/NAME, "
        "clip:NAME?names=FILE.",
    )
    show_faults(editor, "classifier.model")


def _choose_role(editor: Editor, role: str) -> None:
    """Choose one of the workspace's image sets for a role, or a folder."""
    place, value = f"sets.{role}", editor.draft.get(f"sets.{role}")
    current = value if isinstance(value, dict) else {}
    own = {name: image_settings(name) for name in cache.list_image_sets()}
    named = next((name for name, settings in own.items() if settings == current), None)
    named = named or (describe_set(current) if current else OTHER)
    key = f"design.{editor.name}.{place}"
    follow(key, named)

    def write() -> None:
        chosen = st.session_state[key]
        if chosen in own:
            change(editor.path, {place: own[chosen]})

    left, right = st.columns(2)
    offered = list(dict.fromkeys([*([named] if current else []), *own, OTHER]))
    left.selectbox(
        role.capitalize(),
        offered,
        key=key,
        on_change=write,
        help=_choose_help(editor)[role],
    )
    with right:
        _enter_folder(editor, place, f"{key}.path")
    show_faults(editor, place)


def _choose_help(editor: Editor) -> Mapping[str, str]:
    """Return what the sets are for, by role."""
    if asks_predictions(editor):
        return ROLE_HELP
    return UNIT_HELP if asks_units(editor) else GRID_HELP


def _enter_folder(editor: Editor, place: str, key: str) -> None:
    """Draw the field for a folder that is no image set of the workspace."""

    def write() -> None:
        text = st.session_state[key].strip()
        if text:
            change(editor.path, {place: {"set": "folder", "path": text}})

    st.text_input(
        "or a folder on this machine", key=key, on_change=write, placeholder="with one subfolder per category"
    )
