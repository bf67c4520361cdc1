"""The background tasks of the search: where methods disagree, and where networks do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.attribution.cost import Cost
from core.network.classifier import Classifier
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate, estimate_seconds
from dashboard.shared.cache import Gallery
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from inquiry.debugging.classes import tabulate_classes
from inquiry.debugging.disagreement import (
    QUICK_METHODS,
    MethodAgreement,
    MethodComparison,
    Values,
    compare_networks,
)
from study.network.predictions import count_missing, probabilities_of
from study.workspace.workspace import home


def make_method_task(classifier: Classifier, images: ImageSet, rows: Sequence[int]) -> Task:
    """Return the task that compares the heatmaps of quick methods on these images."""
    comparison = MethodComparison(classifier, images, home() / "cache")

    def compute(progress: Progress) -> MethodAgreement:
        return comparison.compare(rows, progress)

    def estimate_all() -> float:
        each = sum(estimate(classifier, method, {})[1] or 0.0 for method in QUICK_METHODS)
        return comparison.count_missing(rows) * each

    return Task(digest("methods", comparison.key, str(sorted(rows))), compute, estimate_all)


def make_network_task(first: Classifier, second: Classifier, images: ImageSet) -> Task:
    """Return the task that compares two networks' predictions for all images of a set."""

    def compute(progress: Progress) -> Values:
        return compare_networks(first, second, images, home() / "cache", progress)

    def estimate_all() -> float | None:
        missing = count_missing(second, images, home() / "cache")
        return estimate_seconds(second, Cost(missing))

    classes = [*first.categories, "", *second.categories]
    return Task(
        digest("networks", first.fingerprint, second.fingerprint, images.digest, *classes), compute, estimate_all
    )


def make_class_task(classifier: Classifier, gallery: Gallery) -> Task:
    """Return the task that tabulates the classes of a classified set (`inquiry.debugging.classes`)."""

    def compute(progress: Progress) -> pd.DataFrame:
        scored = gallery.has_known_label
        probabilities = probabilities_of(classifier, gallery.images, home() / "cache", progress).astype(np.float64)
        return tabulate_classes(probabilities[scored], gallery.predictions.truth[scored], gallery.class_names)

    key = digest("classes", classifier.fingerprint, gallery.images.digest, *gallery.categories)
    return Task(
        key,
        compute,
        lambda: estimate_seconds(classifier, Cost(count_missing(classifier, gallery.images, home() / "cache"))),
    )
