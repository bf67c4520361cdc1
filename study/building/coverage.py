"""Images of a plan by their names, under which finished heatmaps are found."""

from __future__ import annotations

from collections.abc import Iterator

from core.attribution.external import ImageRecord
from core.attribution.folders import HeatmapFolder
from data.types import ImageSet
from study.building.design import Candidate
from study.building.plan import PlannedTrial, TrialPlan
from study.network.sources import Sources


def names_of_image(role: str, images: ImageSet, index: int) -> tuple[str, str]:
    """Return the names of an image: with its set's role in the study (``pool/...``), and its own."""
    return f"{role}/{images.ids[index]}", images.ids[index]


def names_of_trial(sets: dict[str, ImageSet], planned: PlannedTrial) -> list[tuple[str, str]]:
    """Return the names of a trial's five images: the target's, then those of its examples."""
    candidate = planned.candidate
    target = names_of_image(candidate.role, sets[candidate.role], candidate.index)
    return [target, *(names_of_image("pool", sets["pool"], i) for i in planned.teaching.indices)]


def explained_classes(candidate: Candidate) -> list[int]:
    """Return the class each of the five heatmaps explains: the prediction, then each example's own category."""
    return [candidate.target, *[candidate.target] * 2, *[candidate.alternative] * 2]


def refuse_uncovered(sources: Sources, plan: TrialPlan) -> None:
    """Refuse a plan with images for which the study's folder of heatmaps has none.

    Raises
    ------
    ForetellError
        Names the first of them and counts the others.
    """
    method = sources.method
    if isinstance(method, HeatmapFolder):
        records, classes = zip(*_list_needed(sources, plan), strict=True) if plan.trials else ((), ())
        categories = [(k, sources.classifier.categories[k]) for k in classes]
        method.refuse_missing(records, sources.config.saliency.parameters.get("layout", "images"), categories)


def _list_needed(sources: Sources, plan: TrialPlan) -> Iterator[tuple[ImageRecord, int]]:
    for planned in (*plan.trials, *plan.practice):
        pairs = zip(names_of_trial(sources.sets, planned), explained_classes(planned.candidate), strict=True)
        yield from ((ImageRecord(names, (0, 0), None), k) for names, k in pairs)
