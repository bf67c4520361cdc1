"""Image sets: those of the workspace with their images, and a form that adds one."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import streamlit as st

from dashboard.library import dropping, imageset, jobs
from dashboard.shared import cache, service
from dashboard.shared.jobs import pool
from dashboard.shared.live import watch
from dashboard.shared.messages import escape_markdown, format_message, show_errors
from dashboard.shared.uploads import make_upload_entry
from data.sets.images import EXTENSIONS
from study.building.categories import count_of, list_some
from study.workspace.imagefolders import MOST_BYTES, MOST_FILES, check_name

WAYS = ("Zip or images", "Folder", "Path on this machine")
CHOSEN, ADDING, ROUND, SAID = "set", "library_adding", "library_round", "library_said"
"""Keys of the session: the chosen set, the job that adds one, how many were added (the next form is empty), and what is
said about the last one."""
FAILED = "library_failed"
"""In the session: why the last images could not be added."""
MOST_OTHERS = 3
NESTED = "Class folders have folders in them"
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
        said_of, said = st.session_state.get(SAID, ("", ""))
        if said_of == name:
            st.success(said)
        with show_errors():
            imageset.show(name)


def _end_adding() -> str:
    """Keep what is to be said of images that have been added since the page was drawn; return why there are none."""
    job, problem = jobs.take_ended(ADDING)
    if problem:
        st.session_state[FAILED] = problem  # the form stays open while what was wrong is corrected
    if job is not None:
        st.session_state.pop(FAILED, None)
        name = st.session_state["library_added"] = job.result.folder.name
        st.session_state[SAID] = (
            name,
            f"Added {count_of(job.result.images, 'image')}."
            f"{_name_others(job.result.others, 'not an image', 'not images')}"
            f"{_name_others(job.result.unreadable, 'not readable as an image', 'not readable as images')}",
        )
        st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    return str(st.session_state.get(FAILED, ""))


def _name_others(names: Sequence[str], one: str, several: str) -> str:
    """Say which files were left out, the first of them by name."""
    if not names:
        return ""
    what = f"1 file was {one} and was" if len(names) == 1 else f"{len(names):,} files were {several} and were"
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
    researcher = service.get_acting_researcher()
    if refusal := researcher.explain_adding_refusal():
        st.info(escape_markdown(refusal))
        return
    way = st.segmented_control("From", WAYS, default=WAYS[0], required=True, key="library_way")
    st.caption(
        f"One folder per class: CLASS/IMAGE. At most {MOST_FILES:,} images and {MOST_BYTES // 2**30} GB; an upload at "
        "most 200 MB."
    )
    opening, suggested = _choose_path() if way == WAYS[2] else _uploads(way)
    _suggest_name(suggested)
    name = st.text_input("Name of the set", key="library_name", width=420)
    nested = st.checkbox(NESTED, key="library_nested")
    if st.button("Add", type="primary", key="library_add", disabled=is_busy or opening is None or not name.strip()):
        assert opening is not None
        task = jobs.add_task(researcher, check_name(name), opening, nested=nested)
        pool().forget(task.key)
        st.session_state.pop(FAILED, None)
        st.session_state[ADDING] = task.ask().key
        st.rerun()


def _suggest_name(path: str) -> None:
    """Suggest the name of a file or folder for the set, once: it is free to change."""
    stem = path.rstrip("/\\").replace("\\", "/").rpartition("/")[2].removesuffix(".zip")
    if stem != st.session_state.get("library_stem"):
        st.session_state["library_stem"] = st.session_state["library_name"] = stem


def _choose_path() -> tuple[jobs.Opening | None, str]:
    """Return how to open a folder or zip on this machine, and its path."""
    path = st.text_input("Folder or zip", key="library_path", placeholder="/data/my-images")
    st.caption(
        "On the machine that runs Foretell, read with the rights of the user who runs it. The images are copied into "
        "the workspace."
    )
    limits = service.get_acting_researcher().find_file_limits()
    return functools.partial(jobs.open_path, path, limits) if path else None, path


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
    named = [make_upload_entry(file) for file in files]
    if not named:
        return None, ""
    has_zip = any(file.name.lower().endswith(".zip") for file in named)
    loose = [file.name for file in named if "/" not in file.name]
    if not has_zip and loose and (is_folder or len(loose) < len(named)):
        st.warning(LOOSE)
        return None, ""
    if has_zip or not loose:
        return functools.partial(jobs.open_uploads, named, ""), named[0].name.partition("/")[0]
    category = st.text_input("Class of these images", key="library_category", width=420)
    return (functools.partial(jobs.open_uploads, named, check_name(category)) if category.strip() else None), ""
