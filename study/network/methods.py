"""The heatmap method that a study names: its own file, folder or package, or one of Foretell's."""

from __future__ import annotations

from pathlib import Path

from core.attribution.method import HeatmapMethod
from core.attribution.outside.external import reads_heatmaps
from core.attribution.outside.folders import PREFIX
from core.attribution.outside.functions import OwnMethod
from core.attribution.outside.opening import open_method
from core.errors import ForetellError
from core.files import FileLimits
from core.network.classifier import Classifier
from core.parameters import parse_parameters
from core.userfiles import split_python
from study.bundle import Manifest
from study.plan.config import StudyConfig

REINITIALISED = "reinitialised_maps"
"""The condition whose heatmaps are of another network."""


def open_study_method(config: StudyConfig, base: Path, limits: FileLimits | None = None) -> HeatmapMethod:
    """Open the method of ``[saliency]``, files relative to ``base``, with its parameters and conditions checked.

    Raises
    ------
    ForetellError
        A method that cannot be opened, parameters it does not take, or a condition that it cannot serve.
    """
    method = open_method(config.saliency.method, base, limits)
    parse_parameters(method, config.saliency.parameters)
    if reads_heatmaps(method) and REINITIALISED in config.conditions:
        raise ForetellError(
            f"The condition {REINITIALISED!r} shows heatmaps of another network, and {method.__name__} has finished "
            "ones. Remove that condition, or name a method that makes heatmaps."
        )
    return method


def refuse_network(method: HeatmapMethod, classifier: Classifier) -> None:
    """Refuse a network without an explanation of its own, if that is the method."""
    if isinstance(method, OwnMethod):
        method.refuse_network(classifier)


def describe_missing_method(manifest: Manifest) -> str | None:
    """Say that the file or folder of a frozen study's method is not here; None if it is, or if there is none."""
    saliency = manifest.config.get("saliency", {})
    name = str(saliency.get("method", ""))
    python = split_python(name)
    if python is None and not name.startswith(PREFIX):
        return None
    given = name.removeprefix(PREFIX) if python is None else python[0]
    path = Path(manifest.environment["base"]) / Path(given).expanduser()
    if path.exists():
        return None
    return (
        f"{path} is not here, so the heatmaps were not made again. Every byte that participants see was compared with "
        "its hash; to render the study again, put back the file with the SHA-256 that its trials record."
    )
