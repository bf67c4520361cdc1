"""Error slices of an image set: a planted fault of a network is found, named, written and counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.debugging.slices import ErrorSlices
from core.types import silent
from inquiry.debugging.debugging import DebuggingQuery, DebuggingResults, debug_classifier, debugging_files
from inquiry.debugging.slices import describe_slice, tabulate_slices
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

SIZE = 640


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[DebuggingResults, np.ndarray]:
    """Standard scenes in which every boat is labelled car, and every bird what the network does not know.

    The network errs on what it takes for a boat.
    """
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": SIZE}), None)
    boat, car = (images.categories.index(name) for name in ("boat", "car"))
    is_boat = images.labels == boat
    changed = replace(
        images,
        labels=np.where(is_boat, car, images.labels),
        categories=tuple("unknown" if name == "bird" else name for name in images.categories),
        digest=f"no boats {images.digest}",
    )
    return debug_classifier(scene_net(), changed, tmp_path_factory.mktemp("cache"), silent), is_boat


def test_a_planted_fault_is_the_first_slice_and_named(planted: tuple[DebuggingResults, np.ndarray]) -> None:
    """Catches members of another set, shares of another column, and a label taken for a prediction."""
    found, is_boat = planted
    assert isinstance(found.slices, ErrorSlices)
    first = found.slices.slices[0]
    assert first.is_found
    assert is_boat[list(first.members)].mean() > 0.85
    assert first.rate.low > found.slices.overall.high
    told = describe_slice(first, found.images, found.predictions, found.class_names)
    for said in ("labelled car (", "predicted boat (", "context sea ("):
        assert said in told
    share = np.mean([found.images.labels[i] == found.images.categories.index("car") for i in first.members])
    assert f"labelled car ({share:.0%})" in told


def test_the_table_and_the_column_are_of_the_same_images(planted: tuple[DebuggingResults, np.ndarray]) -> None:
    found, _ = planted
    assert isinstance(found.slices, ErrorSlices)
    table = tabulate_slices(found.slices, found.images, found.predictions, found.class_names)
    rows = found.table()
    assert rows["slice"].gt(0).sum() == len(found.slices.tested) == table["images"].sum()
    assert len(found.slices.tested) == found.has_known_label.sum() - found.has_known_label.sum() // 2 < SIZE // 2
    counted = rows[rows["slice"] > 0].groupby("slice")["correct"].agg(lambda right: int((~right).sum()))
    assert counted.to_dict() == dict(zip(table["slice"], table["errors"], strict=True))
    assert table["error_rate"].tolist() == (table["errors"] / table["images"]).tolist()


def test_a_set_without_labels_of_the_network_says_why(tmp_path: Path) -> None:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 48}), None)
    named = replace(images, categories=tuple(f"unknown {k}" for k in images.categories), digest="unknown")
    found = debug_classifier(scene_net(), named, tmp_path, silent)
    assert found.slices == "Error slices need at least 40 images with a label: there are 0."
    assert "slice" not in found.table()


def test_the_command_writes_tables_and_a_report(tmp_path: Path) -> None:
    """Catches files of another run, and a report that differs from the table."""
    query = DebuggingQuery("scenes", "scenes", {"split": "standard", "size": 320})
    found, (csv, report, slices) = debugging_files(query, tmp_path, silent)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "scenes.debugging.csv",
        "scenes.debugging.json",
        "scenes.slices.csv",
    ]
    told, table = json.loads(report.read_text()), pd.read_csv(slices)
    assert len(pd.read_csv(csv)) == told["count"] == 320
    assert [one["errors"] for one in told["slices"]] == table["errors"].tolist()
    assert isinstance(found.slices, ErrorSlices)
    assert table["images"].sum() == len(found.slices.tested)
