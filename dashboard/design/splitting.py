"""Divide one image set of the workspace into pool, standard and adversarial images, by errors and then by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import ForetellError
from core.files import find_file
from core.text import read_lines
from core.types import Progress
from dashboard.design.editor import Editor, change, keep_errors
from dashboard.design.fields import WIDEST
from dashboard.design.places import describe_set, image_settings
from dashboard.shared import cache, links, service
from dashboard.shared.keys import digest
from dashboard.shared.live import get_result
from dashboard.shared.messages import escape_markdown
from dashboard.shared.tasks import Task
from study.building.candidates import MIN_POOL_IMAGES
from study.building.categories import list_some
from study.building.splitting import ROLES, split_by_errors
from study.collection.access.door import name_of_file
from study.collection.access.permissions import Permission
from study.network.predictions import predict
from study.network.sources import UNMATCHED, open_classifier, open_set
from study.plan.config import ImageSource
from study.plan.draft import MISSING
from study.workspace.files import write_whole
from study.workspace.workspace import home

LEFT_OUT = "left out"
MOST_ROWS = 3000
"""Images that the table by hand holds."""
MOST_NAMED = 10
"""Categories that a warning names."""


class Division(NamedTuple):
    """Images with the role of each, and the categories of which all are left out, being no class of the network."""

    table: pd.DataFrame
    unmatched: list[str]


def is_one_set(editor: Editor) -> bool:
    """Whether the file names one image set for all roles, divided by lists of images or not divided yet."""
    sources = [editor.draft.get(f"sets.{role}") for role in ROLES]
    named = [{k: v for k, v in one.items() if k != "images"} for one in sources if isinstance(one, dict)]
    return len(named) == len(ROLES) and all(one == named[0] for one in named)


def show_split(editor: Editor) -> None:
    """Draw the division of one image set, which writes a list of images for each role."""
    _describe_images(editor)
    sets = cache.list_image_sets()
    if not sets:
        st.info("There is no image set in the workspace yet that could replace them.")
        links.show_link("Add images", "library")
        return
    name = st.selectbox("Image set", sets, key=f"design.{editor.name}.one_set", width=WIDEST)
    st.caption(
        "Of the images that the network gets wrong, the more confident half of each category becomes adversarial and "
        "the other half standard. Of the images that it gets right, a random half becomes the example pool and the "
        "other half standard."
    )
    key = f"design.{editor.name}.divide"
    if _ask_to_divide(editor, name, key):
        division = get_result(_split_task(editor, name), key)
        if division is not None:
            _show_table(editor, name, division)


def _ask_to_divide(editor: Editor, name: str, key: str) -> bool:
    """Draw the button that divides a set; return whether it was clicked for this one."""
    asked = bool(st.session_state.get(f"{key}.asked") == name)
    needed = not asked and is_one_set(editor) and not is_divided(editor)
    st.button(
        "Divide",
        key=key,
        type="primary" if needed else "secondary",
        on_click=st.session_state.update,
        args=({f"{key}.asked": name},),
    )
    return asked


def _split_task(editor: Editor, name: str) -> Task:
    model, seed = str(editor.value("classifier.model")), int(editor.value("study.seed") or 0)
    whole, base, folder = editor.value("classifier.resize") == "whole", editor.path.parent, home()
    content, limits = cache.stamp_image_set(name), editor.find_limits("classifier.model")

    def work(progress: Progress) -> Division:
        classifier = open_classifier(model, base, whole=whole, limits=limits)
        images = open_set(ImageSource.model_validate(image_settings(name)), base)
        predictions = predict(classifier, images, folder / "cache", progress)
        role = dict.fromkeys(range(len(images)), LEFT_OUT)
        role |= {int(i): kind for kind, indices in split_by_errors(predictions, seed).items() for i in indices}
        strangers = np.unique(images.labels[predictions.truth == UNMATCHED])
        table = pd.DataFrame(
            {
                "Image": images.ids,
                "Category": [images.categories[k] for k in images.labels],
                "Prediction": [classifier.names.short[k] for k in predictions.predicted],
                "Confidence": predictions.probability,
                "Use as": [role[i] for i in range(len(images))],
            }
        )
        return Division(table, [images.categories[k] for k in strangers])

    return Task(digest("split", model, str(whole), str(seed), str(folder), name, content), work)


def is_divided(editor: Editor) -> bool:
    """Whether the file names a list of images for each role."""
    return all(editor.draft.get(f"sets.{role}.images") is not MISSING for role in ROLES)


def _show_table(editor: Editor, name: str, division: Division) -> None:
    """Show how many images each role has, offer changes by hand, and write the lists."""
    table = division.table
    with st.expander("Change by hand"):
        if len(table) > MOST_ROWS:
            st.caption(f"The first {MOST_ROWS:,} of {len(table):,} images.")
        edited = st.data_editor(
            table.head(MOST_ROWS),
            key=f"design.{editor.name}.roles.{name}",
            hide_index=True,
            disabled=["Image", "Category", "Prediction", "Confidence"],
            column_config={
                "Use as": st.column_config.SelectboxColumn(options=[*ROLES, LEFT_OUT], required=True),
                "Confidence": st.column_config.NumberColumn(format="percent"),
            },
        )
    final = pd.concat([edited, table.iloc[MOST_ROWS:]])
    counts = pd.crosstab(final["Category"], final["Use as"]).reindex(columns=[*ROLES, LEFT_OUT], fill_value=0)
    st.dataframe(counts.reset_index(), hide_index=True)
    _warn(name, counts["pool"], division.unmatched)
    st.button(
        "Use these images",
        type="primary",
        key=f"design.{editor.name}.use",
        on_click=write_lists,
        args=(editor.path, name, final),
    )


def _warn(name: str, pool: pd.Series, unmatched: list[str]) -> None:
    """Say which categories are left out and why, and which have too few images in the example pool."""
    if unmatched:
        listed = escape_markdown(list_some(unmatched, MOST_NAMED))
        st.warning(f"Left out: no class of this network is called {listed}. Match them on the page Models & images.")
        links.show_link("Match classes", "library", set=name)
    few = pool[(pool < MIN_POOL_IMAGES) & ~pool.index.isin(unmatched)]
    if len(few):
        listed = escape_markdown(list_some([f"{category} ({count})" for category, count in few.items()], MOST_NAMED))
        st.warning(
            f"Fewer than {MIN_POOL_IMAGES} pool images: {listed}. Examples are chosen from the pool, so the study "
            "cannot use these categories."
        )


def write_lists(path: Path, name: str, table: pd.DataFrame) -> None:
    """Write a list of images for each role next to the study file, and name the lists in it."""
    folder = path.parent / f"{path.stem}.images"
    changes: dict[str, Any] = {}
    with keep_errors():
        service.get_acting_researcher().require(Permission.DESIGN, name_of_file(path))
        folder.mkdir(exist_ok=True)
        for role in ROLES:
            ids = table.loc[table["Use as"] == role, "Image"]
            write_whole(folder / f"{role}.txt", "".join(f"{one}\n" for one in ids).encode())
            changes[f"sets.{role}"] = {**image_settings(name), "images": f"{folder.name}/{role}.txt"}
        change(path, changes)


def _describe_images(editor: Editor) -> None:
    """Say which images the file uses now."""
    for role in ROLES:
        value = editor.draft.get(f"sets.{role}")
        if not isinstance(value, dict):
            continue
        count = _count_listed(editor, role, value.get("images"))
        listed = describe_set(value) if count is None else f"{count:,} images listed in {value['images']}"
        st.caption(escape_markdown(f"{role.capitalize()}: {listed}."))


def _count_listed(editor: Editor, role: str, listed: Any) -> int | None:
    """Count the images in the list of a role; None where there is none, or none that whoever named it may read."""
    try:
        file = find_file(editor.path.parent, str(listed or ""), editor.find_limits(f"sets.{role}"))
        return len(read_lines(file, "one image per line")) if file.is_file() else None
    except ForetellError:
        return None
