"""Image sets: those of the workspace with their images, and a form that adds one."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import suppress

import pandas as pd
import streamlit as st

from core.errors import ForetellError
from dashboard.library import dropping, jobs
from dashboard.library.jobs import ReadSet
from dashboard.shared import cache, links
from dashboard.shared.jobs import pool
from dashboard.shared.keys import digest
from dashboard.shared.live import await_result, watch
from dashboard.shared.messages import escape_markdown, format_message, show_errors
from data.sets.images import EXTENSIONS
from data.types import ImageSet
from study.building.categories import count_of, list_some
from study.network.imagereport import ImageSetReport, match_categories
from study.network.sources import plain
from study.workspace.imagefolders import MOST_BYTES, MOST_FILES, check_name, format_bytes
from study.workspace.imagesets import count_images, list_left_out, remove_set, rename_categories

WAYS = ("Zip or images", "Folder", "Path on this machine")
KEEP, LEAVE_OUT = "Keep as it is", "Leave out"
CHOSEN, ADDING, ROUND, SAID = "set", "library_adding", "library_round", "library_said"
"""Keys of the session: the chosen set, the job that adds one, how many were added (the next form is empty), and what is
said about the last one."""
FAILED = "library_failed"
"""In the session: the last images could not be added."""
MOST_NAMED, MOST_OTHERS = 20, 3
LOOSE = (
    "Some of these files are in no folder, which would name their class. Remove them, and add the folder itself: drop "
    "it here, or choose it under “Folder”."
)


def show() -> None:
    """Draw the part: the form first where there is no set yet."""
    problem = _end_adding()
    is_open = not cache.list_image_sets() or ADDING in st.session_state or FAILED in st.session_state
    with st.expander("Add images", expanded=is_open, icon=":material/add:"), show_errors():
        _show_adding(problem)
    if added := st.session_state.pop("library_added", None):
        st.session_state[CHOSEN] = added
    if names := cache.list_image_sets():
        if st.session_state.get(CHOSEN) not in names:
            st.session_state.pop(CHOSEN, None)
        name = st.selectbox("Image set", names, key=CHOSEN, bind="query-params", width=420)
        with show_errors():
            _show_set(name)


def _end_adding() -> str:
    """Keep what is to be said of images that have been added since the page was drawn; return why there are none."""
    job, problem = jobs.take_ended(ADDING)
    if problem:
        st.session_state[FAILED] = True  # the form stays open while what was wrong is corrected
    if job is not None:
        st.session_state.pop(FAILED, None)
        name = st.session_state["library_added"] = job.result.folder.name
        st.session_state[SAID] = (
            name,
            f"Added {count_of(job.result.images, 'image')}.{_name_others(job.result.others)}",
        )
        st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    return problem


def _name_others(names: Sequence[str]) -> str:
    """Say which files were left out, the first of them by name."""
    if not names:
        return ""
    what = "1 file was not an image and was" if len(names) == 1 else f"{len(names):,} files were not images and were"
    return escape_markdown(f" {what} left out: {list_some(names, MOST_OTHERS)}.")


def _show_adding(problem: str) -> None:
    job = pool().find(st.session_state.get(ADDING, ""))
    if job is not None:
        watch(job)
    if problem:
        st.error(format_message(problem))
    _form(is_busy=job is not None)


def _form(*, is_busy: bool) -> None:
    """Draw the form, also while images are added: Streamlit forgets the fields that it does not draw."""
    way = st.segmented_control("From", WAYS, default=WAYS[0], required=True, key="library_way")
    opening: jobs.Opening | None = None
    if way == WAYS[2]:
        path = st.text_input("Folder or zip", key="library_path", placeholder="/data/my-images")
        st.caption(
            "On the machine that runs Foretell, read with the rights of the user who runs it. The images are copied "
            "into the workspace."
        )
        opening, suggested = functools.partial(jobs.open_path, path) if path else None, path
    else:
        opening, suggested = _uploads(way)
    stem = suggested.rstrip("/\\").replace("\\", "/").rpartition("/")[2].removesuffix(".zip")
    if stem != st.session_state.get("library_stem"):  # suggested once, and free to change
        st.session_state["library_stem"] = st.session_state["library_name"] = stem
    name = st.text_input("Name of the set", key="library_name", width=420)
    st.caption(
        f"One folder per class: CLASS/IMAGE. At most {MOST_FILES:,} images and {format_bytes(MOST_BYTES)}; an upload "
        "at most 200 MB."
    )
    if st.button("Add", type="primary", key="library_add", disabled=is_busy or opening is None or not name.strip()):
        assert opening is not None
        task = jobs.add_task(check_name(name), opening)
        pool().forget(task.key)
        st.session_state[ADDING] = task.ask().key
        st.rerun()


def _uploads(way: str) -> tuple[jobs.Opening | None, str]:
    """Return how to open the uploaded files, and a name for the set."""
    endings = [ending.removeprefix(".") for ending in EXTENSIONS]
    number = st.session_state.get(ROUND, 0)
    is_folder = way == WAYS[1]
    files = st.file_uploader(
        "A folder with one folder per class"
        if is_folder
        else "A zip or a dropped folder with one folder per class, or images of one class",
        endings if is_folder else ["zip", *endings],
        accept_multiple_files="directory" if is_folder else True,
        key=f"library_{'folder' if is_folder else 'files'}_{number}",
    )
    dropping.accept_folders()
    named = [(file.name, file.getvalue()) for file in files]
    if not named:
        return None, ""
    has_zip = any(name.lower().endswith(".zip") for name, _ in named)
    loose = [name for name, _ in named if "/" not in name]
    if not has_zip and loose and (is_folder or len(loose) < len(named)):
        st.warning(LOOSE)
        return None, ""
    if has_zip or not loose:
        return functools.partial(jobs.open_uploads, named, ""), named[0][0].partition("/")[0]
    category = st.text_input("Class of these images", key="library_category", width=420)
    return (functools.partial(jobs.open_uploads, named, check_name(category)) if category.strip() else None), ""


def _show_set(name: str) -> None:
    said_of, said = st.session_state.get(SAID, ("", ""))
    if said_of == name:
        st.success(said)
    read: ReadSet | None = await_result(jobs.read_task(name).ask())
    if read is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            links.show_link("Explain these images", "explore", source=name)
            _offer_removal(name)
        with st.container(horizontal=True, gap="xsmall"):
            for sample in read.samples:
                st.image(sample.content, escape_markdown(sample.category), width=jobs.SAMPLE_PX, alt=sample.id)
        left, right = st.columns(2, gap="large")
        with left:
            _show_report(read.report)
        with right, show_errors():
            _match(name, read)


def _offer_removal(name: str) -> None:
    with st.popover("Remove", icon=":material/delete:"):
        number = sum(count_images(cache.find_sets_folder() / name).values())
        st.markdown(f"Remove the set **{escape_markdown(name)}** and its {number:,} images from the workspace?")
        if st.button("Remove it", type="primary", key=f"library_remove_{name}"):
            remove_set(cache.find_sets_folder() / name)
            st.rerun()


def _show_report(report: ImageSetReport) -> None:
    st.header(f"{sum(report.counts.values()):,} images in {len(report.counts):,} classes", anchor=False)
    st.dataframe(pd.DataFrame({"Class": report.counts.keys(), "Images": report.counts.values()}), hide_index=True)
    if report.skipped:
        st.warning(f"Files that cannot be read and are not used: {len(report.skipped):,}.")
        _list([f"{skipped.id}: {skipped.reason}" for skipped in report.skipped], "Unreadable files")
    if report.duplicates is None:
        st.caption("Near-duplicates were not searched for: there are too many images.")
    elif report.duplicates:
        st.warning(
            f"Near-duplicates of other images: {len(report.duplicates):,}. A study does not show one as an example of "
            "the other."
        )
        _list([f"{later} repeats {earlier}" for later, earlier in report.duplicates], "Near-duplicates")
    else:
        st.caption("No near-duplicates.")


def _list(lines: list[str], label: str) -> None:
    with st.expander(label):
        st.code("\n".join(lines[:MOST_NAMED]), language=None)
        if len(lines) > MOST_NAMED:
            st.caption(f"and {len(lines) - MOST_NAMED:,} more")


@st.cache_data(max_entries=50, show_spinner=False)  # the page is drawn after every click
def _find_nearest_network(key: str, networks: bytes, _images: ImageSet) -> str:  # noqa: ARG001
    """Find the network, built in or of the workspace, that has a class for most folders of a set.

    ``key`` identifies the set, ``networks`` the files of the workspace's networks.
    """

    def count_matches(model: str) -> int:
        with suppress(ForetellError):  # a file that cannot be loaded is reported where it is chosen
            classes = match_categories(_images, cache.load_classifier(model)).values()
            return sum(name is not None for name in classes)
        return -1

    return max(cache.list_own_models(), key=count_matches)


def _match(name: str, read: ReadSet) -> None:
    """Show which categories are classes of a network, with a form for the others."""
    st.header("Labels and classes", anchor=False)
    models = cache.list_models()
    nearest = _find_nearest_network(read.images.digest, cache.stamp_models(), read.images)
    model = st.selectbox("Network", models, models.index(nearest), key="library_model")
    classifier = cache.load_classifier(model)
    matches = match_categories(read.images, classifier)
    unmatched = [category for category, label in matches.items() if label is None]
    matched = len(matches) - len(unmatched)
    verb = "matches" if matched == 1 else "match"
    st.markdown(f"{matched:,} of {count_of(len(matches), 'folder')} {verb} a class of this network.")
    if left_out := list_left_out(cache.find_sets_folder() / name):
        st.caption(escape_markdown(f"Left out: {', '.join(left_out)}. Their folders begin with a dot now."))
    if not unmatched:
        return
    if read.images.wnids is not None:
        st.caption("The folders are named by WordNet ids, which are matched by id.")
        return
    st.caption("Choose the class of the others. Images of a folder that is kept as it is have no known true class.")
    classes = sorted({plain(category) for category in classifier.categories})
    with st.form(f"library_match_{digest(name, model)}"):
        chosen = {
            category: st.selectbox(
                escape_markdown(category), [KEEP, LEAVE_OUT, *classes], key=f"match_{name}_{category}"
            )
            for category in unmatched
        }
        if st.form_submit_button("Apply"):
            names = {old: None if new == LEAVE_OUT else new for old, new in chosen.items() if new != KEEP}
            rename_categories(cache.find_sets_folder() / name, names)
            st.rerun()
