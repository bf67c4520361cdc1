"""Work of the page that takes more than a moment: adding images or a network, and reading a set."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import streamlit as st

from core.errors import ForetellError
from core.sources.offers import Weights
from core.types import Progress
from dashboard.shared import cache
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from study.network.fetching import fetch_network
from study.network.imagereport import ImageSetReport, report_images
from study.network.sources import open_classifier, open_set
from study.workspace.imagefolders import MOST_BYTES, AddedSet, Entry, add_set, list_folder, make_entry
from study.workspace.modelfiles import ENDINGS, add_file, add_line, add_network, remove_file, write_names
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


def add_task(name: str, opening: Opening, *, nested: bool = False) -> Task:
    """Return the task that adds an image set: one of a name at a time, whoever starts it.

    ``nested`` accepts class folders whose images are all in folders below them.
    """
    sets = cache.find_sets_folder()

    def work(progress: Progress) -> AddedSet:
        with opening() as files:
            return add_set(sets, name, files.entries, progress, files.most_bytes, nested=nested)

    return Task(digest("add images", str(sets), name), work)


def read_task(name: str) -> Task:
    """Return the task that reads a set as it is now."""
    source, content = cache.find_image_source(name), cache.stamp_image_set(name)

    def work(progress: Progress) -> ReadSet:
        images = open_set(*source)
        return ReadSet(images, report_images(images, progress))

    return Task(digest("read images", str(home()), name, content), work)


@contextmanager
def open_uploads(files: Sequence[tuple[str, bytes]], category: str) -> Iterator[OpenedFiles]:
    """Open uploaded files: one zip, or images, which are of ``category`` unless their names have folders.

    Raises
    ------
    ForetellError
        A zip among other files, or what `open_zip` refuses.
    """
    zips = [(name, content) for name, content in files if name.lower().endswith(".zip")]
    if not zips:
        entries = [
            Entry(name if "/" in name else f"{category}/{name}", len(content), functools.partial(io.BytesIO, content))
            for name, content in files
        ]
        yield OpenedFiles(entries, MOST_BYTES)
        return
    if len(files) > 1:
        raise ForetellError("Add one zip alone: it becomes one image set.")
    name, content = zips[0]
    with open_zip(io.BytesIO(content), name) as entries:
        yield OpenedFiles(entries, limit_bytes(len(content)))


@contextmanager
def open_path(text: str) -> Iterator[OpenedFiles]:
    """Open a folder or a zip on the machine that runs Foretell.

    Raises
    ------
    ForetellError
        Neither of them, or what `open_zip` refuses.
    """
    path = Path(text.strip()).expanduser()
    if not text.strip() or not path.is_absolute():
        raise ForetellError(WHOLE_PATH.format("a folder or a zip"))
    if path.suffix.lower() == ".zip" and not path.is_dir():
        with open_zip(path, path.name) as entries:
            yield OpenedFiles(entries, limit_bytes(path.stat().st_size))
    else:
        yield OpenedFiles(list_folder(path), MOST_BYTES)


def model_task(line: str, weights: Weights | None = None) -> Task:
    """Return the task that loads a model, fetching its weights, and adds its line to the list of models.

    ``weights`` describes the download, which can be stopped; leave it out for weights that are already on this machine.
    """
    base = home()

    def work(progress: Progress) -> str:
        if weights is None or not weights.is_local:
            fetch_network(line, base, progress, weights.size if weights else None)
        progress(0, 1, f"loading {line}")
        classifier = open_classifier(line, base, "cpu")
        add_line(base / cache.MODELS, line)
        return f"Added {line}: {len(classifier.categories):,} classes."

    return Task(digest("add model", str(base), line), work)


def clip_task(name: str, title: str, names: Sequence[str], weights: Weights) -> Task:
    """Return the task that adds a CLIP network with a list of class names, which is removed if it cannot be loaded."""
    folder = home() / cache.MODELS
    line = f"clip:{name}?names={cache.MODELS}/{title}.txt"

    def work(progress: Progress) -> str:
        written = write_names(folder, title, names)
        try:
            said: str = model_task(line, weights).compute(progress)
        except BaseException:
            remove_file(folder, written.name)
            raise
        return said

    return Task(digest("add model", str(folder), line), work)


def files_task(find: Callable[[], list[Entry]], key: str, title: str, *, keep: bool) -> Task:
    """Return the task that adds the files of a network and loads it; they are removed if it fails, unless ``keep``.

    ``find`` lists them, ``key`` identifies them; several get a folder of the name ``title``, or of the network's file.
    """
    base = home()
    folder = base / cache.MODELS

    def work(progress: Progress) -> str:
        entries = find()
        progress(0, 1, f"loading {entries[0].name if entries else title}")
        if len(entries) == 1 and entries[0].name.endswith(ENDINGS):
            with entries[0].open() as source:
                model = f"{cache.MODELS}/{add_file(folder, entries[0].name, source.read()).name}"
        else:
            model = add_network(folder, entries, title)
        try:
            classifier = open_classifier(*cache.find_model_spec(model), device="cpu")
        except BaseException:
            if not keep:
                remove_file(folder, find_files(model))
            raise
        return f"Added {model.removeprefix(f'{cache.MODELS}/')}: {len(classifier.categories):,} classes."

    return Task(digest("add model files", str(base), key, title, str(keep)), work)


def upload_task(files: Sequence[tuple[str, bytes]], *, keep: bool) -> Task:
    """Return the task that adds a network from uploaded files."""
    entries = [Entry(name, len(content), functools.partial(io.BytesIO, content)) for name, content in files]
    key = digest(*(part for name, content in files for part in (name, content)))
    return files_task(lambda: entries, key, "", keep=keep)


def copy_task(text: str, *, keep: bool) -> Task:
    """Return the task that adds a network from a file or a folder of this machine, which is copied."""
    path = Path(text.strip()).expanduser()

    def find() -> list[Entry]:
        if not path.is_absolute():
            raise ForetellError(WHOLE_PATH.format("a file or a folder"))
        if path.is_file():
            return [make_entry(path, path.name)]
        return list_folder(path)

    return files_task(find, str(path), path.name if path.is_dir() else "", keep=keep)


def find_files(model: str) -> str:
    """Return the name of the file or the folder of a model of the workspace, within its folder of models."""
    return PurePosixPath(model.removeprefix(f"{cache.MODELS}/")).parts[0]
