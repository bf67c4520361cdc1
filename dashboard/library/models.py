"""Networks: those that Explore offers, and a form that adds one by name or by file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from core.errors import ForetellError
from core.sources.hub import measure_download
from core.sources.offers import HUB, Weights, describe_weights, list_offers
from dashboard.library import jobs, networks
from dashboard.library.networks import SAID
from dashboard.shared import service
from dashboard.shared.jobs import pool
from dashboard.shared.live import watch
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.shared.tasks import Task
from study.collection.access.permissions import Permission
from study.workspace.imagefolders import format_bytes

SOURCES = {"torchvision": "torchvision", "timm": "timm", "Hugging Face": "hf", "CLIP": "clip", "File": "file"}
ADDING, FAILED = "library_adding_model", "library_model_failed"
SIZE = "library_size_of_"
"""Key of the session, before a repository: the bytes of its weights, or why they are unknown."""


def show() -> None:
    """Draw the part."""
    added, problem = jobs.take_ended(ADDING)
    if problem:
        st.session_state[FAILED] = problem  # said until the next try: the page is drawn again meanwhile
    if added is not None:
        st.session_state[SAID] = added.result
    if said := st.session_state.get(SAID):
        st.success(escape_markdown(said))
    with st.expander("Add a network", expanded=True, icon=":material/add:"), show_errors():
        _show_adding(st.session_state.get(FAILED, ""))
    with show_errors():
        networks.show()


def _show_adding(problem: str) -> None:
    job = pool().find(st.session_state.get(ADDING, ""))
    is_busy = job is not None
    if refusal := service.get_acting_researcher().explain_adding_refusal():
        st.info(escape_markdown(refusal))
        return
    if job is not None:
        st.caption("Loading the network. Weights that are downloaded stay in their library's cache on this machine.")
        watch(job)
    if problem:
        st.error(escape_markdown(problem))
    source = SOURCES[
        st.segmented_control("From", list(SOURCES), default="torchvision", required=True, key="model_from")
    ]
    task = FORMS[source]() if source in FORMS else _offer(source)
    if st.button("Add", type="primary", key="library_add_model", disabled=is_busy or task is None):
        assert task is not None
        pool().forget(task.key)
        for key in (SAID, FAILED):
            st.session_state.pop(key, None)
        st.session_state[ADDING] = task.ask().key
        st.rerun()


def _offer(source: str) -> Task | None:
    name, weights = _choose(source)
    return None if name is None else jobs.model_task(service.get_acting_researcher(), f"{source}:{name}", weights)


def _choose(source: str) -> tuple[str | None, Weights | None]:
    """Search a model by its name, and say what it would download."""
    names = list_offers(source)
    label = f"Search the {len(names):,} {'CLIP' if source == 'clip' else source} networks"
    name: str | None = st.selectbox(
        label, names, index=None, placeholder="Type a part of its name", key=f"name_{source}"
    )
    if name is None:
        return None, None
    weights = describe_weights(source, name)
    if weights.is_local:
        st.caption("The weights are on this machine: nothing is downloaded.")
        return name, weights
    return name, _show_download(weights, can_ask=source == "timm")


def _show_download(weights: Weights, revision: str = "", *, can_ask: bool) -> Weights:
    """Say how large a download is; where only huggingface.co knows, ask it when the button is pressed, not before."""
    repository = weights.origin.removeprefix(HUB)
    key = f"{SIZE}{repository}@{revision}"
    can_ask = can_ask and weights.size is None and repository != weights.origin
    if can_ask and not isinstance(st.session_state.get(key), int):
        st.button(
            "Ask huggingface.co for the size",
            key="library_ask_size",
            on_click=_ask_size,
            args=(key, repository, revision),
            help="Sends the model's name to huggingface.co, and downloads nothing.",
        )
    job = st.session_state.get(key)
    weights = replace(weights, size=job) if isinstance(job, int) else weights
    size = " (size unknown)" if weights.size is None else f" of {format_bytes(weights.size)}"
    st.caption(escape_markdown(f"Downloads the weights{size} from {weights.origin}"))
    if isinstance(job, str):
        st.caption(escape_markdown(job))
    return weights


def _ask_size(key: str, repository: str, revision: str) -> None:
    """Keep the size of a download in the session, or why it is unknown."""
    try:
        st.session_state[key] = measure_download(repository, revision)
    except ForetellError as error:
        st.session_state[key] = str(error)


def _hugging_face() -> Task | None:
    name = st.text_input("Model at huggingface.co", placeholder="google/vit-base-patch16-224", key="name_hf").strip()
    st.caption("An image classifier, as OWNER/NAME. Code in the repository is never run.")
    if not name:
        return None
    repository, _, revision = name.partition("@")
    weights = _show_download(Weights(HUB + repository, None, False), revision, can_ask=True)
    return jobs.model_task(service.get_acting_researcher(), f"hf:{name}", weights)


def _clip() -> Task | None:
    name, weights = _choose("clip")
    names = st.text_area("Class names, one per line", key="clip_names", placeholder="cat\ndog", height=120)
    title = st.text_input("Name of this list of classes", "classes", key="clip_title", width=420).strip()
    if name is None or weights is None or not names.strip() or not title:
        return None
    return jobs.clip_task(service.get_acting_researcher(), name, title, names.splitlines(), weights)


def _file() -> Task | None:
    researcher = service.get_acting_researcher()
    refusal = researcher.explain_refusal(Permission.ADMINISTER)
    if refusal is not None:  # what runs here can read every response
        st.info(escape_markdown(f"A file is run on this machine. {refusal}"))
        return None
    st.warning(
        "A Python file or an exported program is run on this machine, with the rights of the user who runs Foretell. "
        "Add only files that you trust."
    )
    files = st.file_uploader(
        "A Python file with build(), or an exported program, and the files that it reads (weights, class names)",
        accept_multiple_files=True,
        key="model_file",
    )
    path = st.text_input(
        "Or a file or folder on this machine", key="model_path", placeholder="/data/my-network", width=420
    )
    st.caption("An upload has at most 200 MB; what is on the machine that runs Foretell is copied, however large.")
    keep = st.checkbox("Keep the files even if the network cannot be loaded", key="model_keep")
    if path.strip():
        return jobs.copy_task(researcher, path, keep=keep)
    return jobs.upload_task(researcher, files, keep=keep) if files else None


FORMS: dict[str, Callable[[], Task | None]] = {"hf": _hugging_face, "clip": _clip, "file": _file}
