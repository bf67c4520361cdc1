"""Work of the page that takes more than a moment: adding images or a network, and reading a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.typing import UploadedFile

from core.errors import ForetellError
from core.files import FileLimits, find_file
from core.sources.offers import Weights
from core.types import Progress
from dashboard.shared import cache
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from dashboard.shared.uploads import make_upload_entry
from data.types import ImageSet
from study.collection.access.permissions import Permission
from study.collection.researcher import Researcher
from study.network.fetching import fetch_network
from study.network.imagereport import ImageSetReport, report_images
from study.network.sources import open_classifier, open_set
from study.workspace.imagefolders import MOST_BYTES, AddedSet, Entry, list_folder, make_entry
from study.workspace.modelfiles import remove_file
from study.workspace.workspace import home
from study.workspace.zips import limit_bytes, open_zip

WHOLE_PATH = "Give the whole path of {}, beginning with / (or with C:\\ on Windows)."


class OpenedFiles(NamedTuple):
    """Files to add, and how many bytes all images may have."""

    entries: list[Entry]
    most_bytes: int


Opening = Callable[[], AbstractContextManager[OpenedFiles]]


class ReadSet(NamedTuple):
    """An image set of the workspace with its report."""

    images: ImageSet
    report: ImageSetReport


def take_ended(adding: str) -> tuple[Job | None, str]:
    """Take the job that the session keeps under a key once it has ended: the job if it is done, or why it is not.

    Called before anything is drawn: a busy browser can miss a run of the page that ends in another run.
    """
    job = pool().find(st.session_state.get(adding, ""))
    if job is None or not job.has_ended:
        return None, ""
    del st.session_state[adding]
    pool().forget(job.key)
    if job.state == "done":
        return job, ""
    return None, job.error if job.state == "failed" else "Stopped. Nothing was added."


def add_task(researcher: Researcher, name: str, opening: Opening, *, nested: bool = False) -> Task:
    """Return the task that adds an image set: one of a name at a time, whoever starts it.

    ``nested`` accepts class folders whose images are all in folders below them.
    """
    sets = cache.find_sets_folder()

    def work(progress: Progress) -> AddedSet:
        researcher.require_adding()  # before anything is opened
        with opening() as files:
            return researcher.add_image_set(name, files.entries, progress, files.most_bytes, nested=nested)

    return Task(digest("add images", str(sets), name), work)


def read_task(name: str) -> Task:
    """Return the task that reads a set as it is now."""
    source, content = cache.find_image_source(name), cache.stamp_image_set(name)

    def work(progress: Progress) -> ReadSet:
        images = open_set(*source)
        return ReadSet(images, report_images(images, progress))

    return Task(digest("read images", str(home()), name, content), work)


@contextmanager
def open_uploads(files: Sequence[Entry], category: str) -> Iterator[OpenedFiles]:
    """Open uploaded files: one zip, or images, which are of ``category`` unless their names have folders.

    Raises
    ------
    ForetellError
        A zip among other files, or what `open_zip` refuses.
    """
    zips = [file for file in files if file.name.lower().endswith(".zip")]
    if not zips:
        named = [file if "/" in file.name else replace(file, name=f"{category}/{file.name}") for file in files]
        yield OpenedFiles(named, MOST_BYTES)
        return
    if len(files) > 1:
        raise ForetellError("Add one zip alone: it becomes one image set.")
    with zips[0].open() as content, open_zip(content, zips[0].name) as entries:
        yield OpenedFiles(entries, limit_bytes(zips[0].size))


@contextmanager
def open_path(text: str, limits: FileLimits | None) -> Iterator[OpenedFiles]:
    """Open a folder or a zip on the machine that runs Foretell, within the limits of the account.

    Raises
    ------
    ForetellError
        Neither of them, one outside the limits, or what `open_zip` refuses.
    """
    given = text.strip()
    if not given.startswith("~") and not Path(given).is_absolute():
        raise ForetellError(WHOLE_PATH.format("a folder or a zip"))
    path = find_file(Path("/"), given, limits)
    if path.suffix.lower() == ".zip" and not path.is_dir():
        with open_zip(path, path.name) as entries:
            yield OpenedFiles(entries, limit_bytes(path.stat().st_size))
    else:
        yield OpenedFiles(list_folder(path), MOST_BYTES)


def model_task(researcher: Researcher, line: str, weights: Weights | None = None) -> Task:
    """Return the task that loads a model, fetching its weights, and adds its line to the list of models.

    ``weights`` describes the download, which can be stopped; leave it out for weights that are already on this machine.
    """
    base = home()

    def work(progress: Progress) -> str:
        researcher.require_adding()
        limits = researcher.find_file_limits()
        if weights is None or not weights.is_local:
            fetch_network(line, base, progress, weights.size if weights else None, is_limited=limits is not None)
        progress(0, 1, f"loading {line}")
        classifier = open_classifier(line, base, "cpu", limits=limits)
        researcher.list_network(line)
        return f"Added {line}: {len(classifier.categories):,} classes."

    return Task(digest("add model", str(base), line), work)


def clip_task(researcher: Researcher, name: str, title: str, names: Sequence[str], weights: Weights) -> Task:
    """Return the task that adds a CLIP network with a list of class names, which is removed if it cannot be loaded."""
    folder = home() / cache.MODELS
    line = f"clip:{name}?names={cache.MODELS}/{title}.txt"

    def work(progress: Progress) -> str:
        written = researcher.write_class_names(title, names)
        try:
            said: str = model_task(researcher, line, weights).compute(progress)
        except BaseException:
            remove_file(folder, written.name)
            raise
        return said

    return Task(digest("add model", str(folder), line), work)


def files_task(researcher: Researcher, find: Callable[[], list[Entry]], key: str, title: str, *, keep: bool) -> Task:
    """Return the task that adds the files of a network and loads it; they are removed if it fails, unless ``keep``.

    ``find`` lists them, ``key`` identifies them; several get a folder of the name ``title``, or of the network's file.
    """

    def work(progress: Progress) -> str:
        researcher.require(Permission.ADMINISTER)  # before anything is opened
        entries = find()
        progress(0, 1, f"loading {entries[0].name if entries else title}")
        model = researcher.add_network_files(entries, title)
        try:
            classifier = open_classifier(*cache.find_model_spec(model), device="cpu")
        except BaseException:
            if not keep:
                researcher.remove_network(model)
            raise
        return f"Added {model.removeprefix(f'{cache.MODELS}/')}: {len(classifier.categories):,} classes."

    return Task(digest("add model files", str(home()), key, title, str(keep)), work)


def upload_task(researcher: Researcher, files: Sequence[UploadedFile], *, keep: bool) -> Task:
    """Return the task that adds a network from uploaded files."""
    entries = [make_upload_entry(file) for file in files]
    key = digest(*(part for file in files for part in (file.name, file.file_id)))
    return files_task(researcher, lambda: entries, key, "", keep=keep)


def copy_task(researcher: Researcher, text: str, *, keep: bool) -> Task:
    """Return the task that adds a network from a file or a folder of this machine, which is copied."""
    path = Path(text.strip()).expanduser()

    def find() -> list[Entry]:
        if not path.is_absolute():
            raise ForetellError(WHOLE_PATH.format("a file or a folder"))
        if path.is_file():
            return [make_entry(path, path.name)]
        return list_folder(path)

    return files_task(researcher, find, str(path), path.name if path.is_dir() else "", keep=keep)
