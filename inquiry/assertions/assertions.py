"""Model assertions: a user's own rules about a network's predictions, checked over a set of images, with a report."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.shares import share_of
from core.types import Progress, silent
from data.sets.images import EXTENSIONS
from data.types import ImageSet, SkippedImage
from inquiry.assertions.history_reports import (
    StreamPredictions,
    check_histories,
    refuse_short_streams,
    report_history,
)
from inquiry.assertions.rules import LIMIT_S, Endless, Prediction, RuleProcess
from inquiry.assertions.streams import BY_NAME, POSITION, STREAM, Streams, read_streams
from inquiry.files.facts import facts_of, key_of
from inquiry.units.exemplars import ImageCollection, of_set, open_requested
from study.network.sources import open_classifier
from study.workspace.blocks import Blocks, table_files

BLOCK = 32
"""Images judged before the results are saved: at most this many are lost when a run is killed."""
WORST = 20
"""Images named in the report for each assertion."""
WHAT = "checking assertions"
PREDICTED, CONFIDENCE = "predicted", "confidence"
COLUMNS = ("image", "label", PREDICTED, CONFIDENCE)
"""Columns of the table, before those of the assertions."""
PLACE = (STREAM, POSITION)
"""Columns of the table that say where an image is in its stream, from 1, if an assertion is about a history."""


@dataclass(frozen=True)
class AssertionQuery:
    """A file of assertions, a network, and the images; as in `inquiry.debugging.uncertainty`.

    ``limit`` is the time that one assertion may take for one image, in seconds. ``order`` is that of a stream, for
    assertions over a history, as in `inquiry.assertions.streams.read_streams`.
    """

    file: Path
    model: str = "scenes"
    images: str | None = None
    image_set: str = "scenes"
    settings: Mapping[str, Any] = field(default_factory=dict)
    limit: float = LIMIT_S
    order: str | None = None


@dataclass(frozen=True)
class LabelledImages:
    """Images; for a labelled set, the label of each, the digest of the set and the images that were left out.

    ``generated`` says whether they are drawn by a generator rather than taken.
    """

    images: ImageCollection
    labels: tuple[str, ...] | None = None
    digest: str | None = None
    generated: bool = False
    skipped: tuple[SkippedImage, ...] = ()


@dataclass(frozen=True)
class AssertionResults:
    """Results of the assertions.

    Attributes
    ----------
    table
        One row an image: `COLUMNS`, with `PLACE` where there is an order, and each assertion's severity: 0 if it
        holds, empty if it does not apply. That of a history belongs to the image which ends it.
    report
        Settings and provenance; for each assertion under ``assertions``, the number of images it was ``applied`` to
        and ``broken`` by, their ``share`` with its 95 % interval ``low, high`` (Wilson), the same ``by_category`` of
        the label where there is one, and the ``worst`` images. For an assertion over a history, `report_history`.
    """

    table: pd.DataFrame
    report: dict[str, Any]

    def worst(self, name: str) -> list[int]:
        """List the rows of the table that break an assertion, the worst first."""
        return _worst(self.table, name)


def assertion_files(
    request: AssertionQuery, out: Path, progress: Progress = silent
) -> tuple[AssertionResults, list[Path]]:
    """Write ``<model>.<file>.csv`` and ``.json`` into ``out``; a run that was killed resumes with the same request."""
    with closing(RuleProcess(request.file, (*COLUMNS, *PLACE))) as rules:
        classifier = open_classifier(request.model, Path.cwd())
        asserted = assertions(classifier, rules, request, _open_images(request), out / "parts", progress)
    stem = f"{classifier.file_name}.{request.file.stem}"
    return asserted, [*table_files(out, stem, asserted.table, asserted.report, out / "parts")]


def _open_images(request: AssertionQuery) -> LabelledImages:
    images, labelled = open_requested(request.images, request.image_set, request.settings)
    if labelled is None:
        return LabelledImages(images, generated=request.images == "scenes")
    return load_judged_set(labelled)


def load_judged_set(images: ImageSet) -> LabelledImages:
    """Read the images of a set with their labels."""
    labels = tuple(images.categories[k] for k in images.labels)
    return LabelledImages(of_set(images), labels, images.digest, bool(images.factors), images.skipped)


def assertions(
    classifier: Classifier,
    rules: RuleProcess,
    request: AssertionQuery,
    judged: LabelledImages,
    parts: Path | None = None,
    progress: Progress = silent,
) -> AssertionResults:
    """Check every assertion on every image.

    ``parts`` is a folder for finished blocks, from which a run that was killed resumes; it is left empty.

    Raises
    ------
    ForetellError
        An assertion fails, does not end, returns anything but True, False, None or a number >= 0, or always None; or
        is about a history of images without an order.
    """
    streams = _find_streams(rules, request, judged)
    images, facts = judged.images, _facts(classifier, request, judged, streams)
    blocks = Blocks(parts, key_of(facts, images.ids), len(images), BLOCK)
    judge = partial(_judge_block, classifier, rules, request, judged, progress)
    try:
        columns = blocks.join(judge, progress, WHAT)
        table = _make_table(classifier, judged, columns, streams)
        severities = {name: columns[name] for name in rules.says if name not in rules.windows}
        _refuse_silent(severities, request.file.name)
        given = None if streams is None else _join_stream(classifier, streams, table)
        if given is not None:
            severities |= check_histories(rules, given, request.file.name, request.limit, progress)
    except Endless:  # a run with another limit resumes from these blocks
        raise
    except ForetellError:  # the file has to be corrected, which invalidates its blocks
        blocks.forget()
        raise
    table = pd.concat([table, pd.DataFrame({name: severities[name] for name in rules.says})], axis=1)
    blocks.forget()
    return AssertionResults(table, facts | {"assertions": _report_all(rules, table, given)})


def _find_streams(rules: RuleProcess, request: AssertionQuery, judged: LabelledImages) -> Streams | None:
    """Read the order of the images if an assertion is about a history; refuse images without one."""
    file, images = request.file.name, judged.images
    if not rules.windows:
        if request.order is not None:
            raise ForetellError(f"{file} has no rule about a history (history, n=5): leave out --order.")
        return None
    which = f"{file}:{next(iter(rules.windows))} is about a history"
    if request.order is None:
        raise ForetellError(
            f"{which}, and nothing says in which order the images were taken: give the command assertions --order "
            f"{BY_NAME}, or --order FILE.csv with columns image and order; elsewhere leave such rules out of the file."
        )
    if judged.generated and request.order == BY_NAME:
        raise ForetellError(
            f"{which}, and the images of {images.name} are generated one by one, in no order: choose images that were "
            "taken one after another."
        )
    missing = [image for image in judged.skipped if Path(image.id).suffix.lower() in EXTENSIONS]
    if missing and request.order == BY_NAME:
        raise ForetellError(
            f"{which}, and {len(missing)} of the images could not be read, such as {missing[0].id} "
            f"({missing[0].reason}): replace them, or give --order a CSV file without them."
        )
    streams = read_streams(request.order, images.ids, labelled=judged.labels is not None)
    refuse_short_streams(rules.windows, streams, file)
    return streams


def _make_table(
    classifier: Classifier, judged: LabelledImages, columns: Mapping[str, NDArray[Any]], streams: Streams | None
) -> pd.DataFrame:
    names = np.array(classifier.names.short)
    said = {"image": judged.images.ids, "label": judged.labels or "", PREDICTED: names[columns[PREDICTED]]}
    table = pd.DataFrame({**said, CONFIDENCE: columns[CONFIDENCE]})
    return table if streams is None else pd.concat([table, streams.describe_places()], axis=1)


def _join_stream(classifier: Classifier, streams: Streams, table: pd.DataFrame) -> StreamPredictions:
    return StreamPredictions(
        streams,
        ids=table["image"].tolist(),
        predicted=table[PREDICTED].tolist(),
        probabilities=table[CONFIDENCE].to_numpy(),
        labels=table["label"].tolist(),
        categories=classifier.names.short,
    )


def _refuse_silent(severities: Mapping[str, NDArray[Any]], file: str) -> None:
    for name, values in severities.items():
        if np.isnan(values).all():
            raise ForetellError(
                f"{file}:{name} returns None for all {len(values)} images: return True or False, or choose images "
                "to which it applies."
            )


def _judge_block(
    classifier: Classifier,
    rules: RuleProcess,
    request: AssertionQuery,
    judged: LabelledImages,
    progress: Progress,
    rows: range,
) -> dict[str, NDArray[Any]]:
    """Compute the columns of a block of images: `PREDICTED`, `CONFIDENCE`, and the severity of each assertion."""
    opened = [judged.images.open(i) for i in rows]
    probabilities = classifier.probabilities(torch.stack([classifier.preprocess(one) for one in opened])).numpy()
    severities: dict[str, list[float]] = {name: [] for name in rules.says if name not in rules.windows}
    for i, image, given in zip(rows, opened, probabilities, strict=True):
        progress(i, len(judged.images), WHAT)  # rules may be slow: a run can be stopped between two images
        prediction = make_prediction(classifier, given, judged.labels[i] if judged.labels else None)
        for name, values in severities.items():
            values.append(rules.severity(name, image, prediction, judged.images.ids[i], request.limit))
    columns: dict[str, NDArray[Any]] = {name: np.array(values) for name, values in severities.items()}
    return columns | {PREDICTED: probabilities.argmax(1), CONFIDENCE: probabilities.max(1)}


def make_prediction(classifier: Classifier, given: NDArray[np.float32], label: str | None) -> Prediction:
    """Wrap a network's probabilities (K,) for an image with that label, as the rules receive them."""

    def ask(image: Image.Image) -> NDArray[np.float32]:
        asked: NDArray[np.float32] = classifier.probabilities(classifier.preprocess(image)[None])[0].numpy()
        return asked

    return Prediction(classifier.names.short, given, label, ask)


def _report_all(rules: RuleProcess, table: pd.DataFrame, given: StreamPredictions | None) -> dict[str, Any]:
    report = {name: _report(says, table, name) for name, says in rules.says.items() if name not in rules.windows}
    if given is not None:
        for name, n in rules.windows.items():
            report[name] = report_history(rules.says[name], n, table[name].to_numpy(), given)
    return {name: report[name] for name in rules.says}


def _report(says: str, table: pd.DataFrame, name: str) -> dict[str, Any]:
    labelled = table[table["label"] != ""]
    by_category = {str(label): _count_violations(rows[name]) for label, rows in labelled.groupby("label")}
    return {
        "says": says,
        **_count_violations(table[name]),
        "by_category": {label: counted for label, counted in by_category.items() if counted["applied"]},
        "worst": table["image"].iloc[_worst(table, name)[:WORST]].tolist(),
    }


def _worst(table: pd.DataFrame, name: str) -> list[int]:
    rows = table.reset_index(drop=True)
    broken = rows[rows[name] > 0].sort_values([name, CONFIDENCE], ascending=False, kind="stable")
    return [int(i) for i in broken.index]


def _count_violations(severities: pd.Series[float]) -> dict[str, Any]:
    applied, broken = int(severities.notna().sum()), int((severities > 0).sum())
    if not applied:
        return {"applied": 0}
    share, low, high = share_of(broken, applied)
    return {"applied": applied, "broken": broken, "share": share, "low": low, "high": high}


def _facts(
    classifier: Classifier, request: AssertionQuery, judged: LabelledImages, streams: Streams | None
) -> dict[str, Any]:
    own = {
        "file": request.file.name,
        "file_sha256": hashlib.sha256(request.file.read_bytes()).hexdigest(),
        "images": judged.images.name,
        "digest": judged.digest,
        "count": len(judged.images),
    }
    return facts_of(classifier, own if streams is None else own | {"order": dict(streams.facts)})
