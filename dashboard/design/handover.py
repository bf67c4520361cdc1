"""What another page hands to a new study in the link: a network, an image set, a heatmap method."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import streamlit as st

from core.attribution import METHODS
from core.attribution.outside.opening import open_registered
from core.names import format_name
from core.parameters import parse_parameters
from dashboard.design.editor import change
from dashboard.design.network import relative_model
from dashboard.design.places import image_settings
from dashboard.shared import cache
from dashboard.shared.keys import HANDED_IMAGES as IMAGES
from dashboard.shared.keys import HANDED_METHOD as METHOD
from dashboard.shared.keys import HANDED_MODEL as MODEL
from study.building.splitting import ROLES
from study.plan.draft import MISSING


def _read_link(name: str, known: list[str]) -> str | None:
    value = st.query_params.get(name)
    return value if value in known else None


def _read_handover() -> dict[str, str | None]:
    return {
        MODEL: _read_link(MODEL, cache.list_models()),
        IMAGES: _read_link(IMAGES, cache.list_image_sets()),
        METHOD: _read_link(METHOD, list(METHODS)),
    }


def describe_handover() -> Iterator[str]:
    """Say what the new study takes over."""
    said = {MODEL: "the network {}", IMAGES: "the image set {}", METHOD: "the heatmap method {}"}
    sentences = [said[k].format(format_name(v) if k == METHOD else v) for k, v in _read_handover().items() if v]
    if sentences:
        yield f"The new study will use {', '.join(sentences)}."


def apply_handover(path: Path) -> None:
    """Write what was handed over into a new study file, and remove what belongs to its template alone."""
    handed = _read_handover()
    changes: dict[str, Any] = {"contact": MISSING}
    if model := handed[MODEL]:
        changes["classifier.model"] = relative_model(model)
    if images := handed[IMAGES]:
        for role in ROLES:
            changes[f"sets.{role}"] = image_settings(images)
    if method := handed[METHOD]:
        changes["saliency.method"] = method
        changes["saliency.parameters"] = {}
        parse_parameters(open_registered(method), {})
    change(path, changes)
