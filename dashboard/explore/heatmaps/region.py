"""Mark a region of the image, replace it, and see the new prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
import streamlit as st
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from core.attribution.cost import Cost
from core.faithfulness.region import ELSEWHERE, RegionEffect, replace_region
from core.network.classifier import Classifier
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.explore.heatmaps.cells import target_of
from dashboard.explore.heatmaps.change import describe_change, draw_change
from dashboard.explore.images import ClassifiedImage
from dashboard.shared.keys import digest, tensor_digest
from dashboard.shared.live import draw_when_ready
from dashboard.shared.messages import escape_markdown
from dashboard.shared.tasks import Task

BIND: Literal["query-params"] = "query-params"
NOTHING, DRAWN, BOX = WAYS = ("Nothing", "A drawn region", "A box")
SUBSTRATES = {"Blur": "blur", "Mean colour": "mean", "Black": "black", "Noise": "noise"}
WIDE = 0.5
"""Share of the image above which the same shape elsewhere is mostly the same region."""
DOTS = 32
"""Invisible points per side of the image: the browser reports a selection only where there are points."""
Region = NDArray[np.bool_]


def show(seen: ClassifiedImage, seed: int) -> None:
    """Choose the region and what replaces it, and show the new prediction."""
    st.subheader("What if a region were replaced?", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        way = st.selectbox("Replace", WAYS, key="region", bind=BIND, width=220)
        if way == NOTHING:
            return
        by = st.selectbox("With", list(SUBSTRATES), key="region.with", bind=BIND, width=220)
    left, right = st.columns([1, 2], gap="large")
    with left:
        region = _draw_region(seen) if way == DRAWN else _choose_box(seen)
    if region is None or not region.any():
        return
    asked = target_of(seen, st.session_state["target"])
    target = seen.predicted_class if asked is None else asked
    task = make_region_task(seen.classifier, seen.inputs, region, SUBSTRATES[by], seed)
    with right:
        draw_when_ready(task, lambda effect: _show_effect(seen, target, effect), "_region")


def make_region_task(classifier: Classifier, inputs: torch.Tensor, region: Region, substrate: str, seed: int) -> Task:
    """Return the task that replaces a region (H, W) of an input (C, H, W)."""

    def compute(progress: Progress) -> RegionEffect:
        kind: Any = substrate
        return replace_region(
            classifier, inputs, torch.from_numpy(region), substrate=kind, seed=seed, progress=progress
        )

    settings = f"{substrate}|{seed}|{ELSEWHERE}"
    key = digest("region", classifier.fingerprint, settings, tensor_digest(inputs), region.tobytes())
    return Task(key, compute, lambda: estimate_seconds(classifier, Cost(2 + ELSEWHERE)))


def _draw_region(seen: ClassifiedImage) -> Region | None:
    """Let the reader draw a box or a free line on the image; None until there is one."""
    own = seen.view.own
    chosen = st.plotly_chart(
        _figure(own),
        key=f"region.drawn.{digest(seen.model, tensor_digest(seen.inputs))}",  # elsewhere the line means nothing
        on_select="rerun",
        selection_mode=("lasso", "box"),
        config={
            "displaylogo": False,
            "displayModeBar": True,
            "modeBarButtonsToRemove": ["zoom2d", "pan2d", "autoScale2d", "resetScale2d"],
        },
    )
    st.caption("Draw around a region; for a box, choose the dotted square above. Double-click to clear it.")
    return rasterise(chosen.selection, own.size)


def _choose_box(seen: ClassifiedImage) -> Region:
    """Let the reader set a box by numbers: by the keyboard, and kept in the link."""
    width, height = seen.view.own.size
    left, right = st.slider("Columns, % from the left", 0, 100, (25, 75), key="region.columns", bind=BIND)
    top, bottom = st.slider("Rows, % from the top", 0, 100, (25, 75), key="region.rows", bind=BIND)
    region = np.zeros((height, width), dtype=bool)
    region[_slice(top, bottom, height), _slice(left, right, width)] = True
    own = np.asarray(seen.view.own)
    shaded = Image.fromarray(np.where(region[..., None], own, own // 3))
    st.image(shaded, caption="The region, not darkened", width="stretch", alt="The region, not darkened")
    return region


def _slice(first: int, last: int, length: int) -> slice:
    return slice(round(first * length / 100), round(last * length / 100))


def rasterise(selection: Mapping[str, Any], size: tuple[int, int]) -> Region | None:
    """Fill the boxes and lines that were drawn on an image of ``size`` = (width, height); None if there are none."""
    lines = [list(zip(line["x"], line["y"], strict=True)) for line in selection.get("lasso", ())]
    boxes = [(box["x"], box["y"]) for box in selection.get("box", ())]
    lines += [[(x[0], y[0]), (x[-1], y[0]), (x[-1], y[-1]), (x[0], y[-1])] for x, y in boxes]
    if not lines:
        return None
    drawn = Image.new("1", size)
    for line in lines:
        if len(line) > 2:
            ImageDraw.Draw(drawn).polygon([(float(x), float(y)) for x, y in line], fill=1)
    return np.asarray(drawn, dtype=bool)


def _figure(image: Image.Image) -> go.Figure:
    """Draw the image with a lattice of invisible points over it."""
    width, height = image.size
    x, y = np.meshgrid(np.linspace(0, width, DOTS), np.linspace(0, height, DOTS))
    unseen = {"size": 4, "opacity": 0}
    figure = go.Figure(
        go.Scatter(x=x.ravel(), y=y.ravel(), mode="markers", marker=unseen, hoverinfo="skip", showlegend=False)
    )
    figure.update_traces(selected={"marker": {"opacity": 0}}, unselected={"marker": {"opacity": 0}})
    place = {"x": 0, "y": 0, "sizex": width, "sizey": height, "xref": "x", "yref": "y", "layer": "below"}
    figure.add_layout_image(source=image, sizing="stretch", **place)
    figure.update_xaxes(visible=False, range=[0, width], constrain="domain")
    figure.update_yaxes(visible=False, range=[height, 0], scaleanchor="x", constrain="domain")
    line = {"color": "#ffffff", "width": 3, "dash": "solid"}
    figure.update_layout(
        height=320,
        margin={"l": 0, "r": 0, "t": 30, "b": 0},
        dragmode="lasso",
        newselection={"line": line},
        activeselection={"fillcolor": "rgba(43, 138, 107, .35)"},
    )
    return figure


def _show_effect(seen: ClassifiedImage, target: int, effect: RegionEffect) -> None:
    replaced = seen.classifier.render_input(effect.replaced)
    names = seen.classifier.names.short
    left, words = st.columns(2, gap="large")
    left.image(replaced, caption="With the region replaced", width="stretch", alt="With the region replaced")
    with words:
        st.markdown("\n\n".join(escape_markdown(line) for line in describe_effect(effect, names, target)))
    st.plotly_chart(
        draw_change(effect.before, effect.after, names), key="region.change", config={"displayModeBar": False}
    )


def describe_effect(effect: RegionEffect, names: Sequence[str], target: int) -> list[str]:
    """Describe the new prediction, the change of one class, and how much the same shape elsewhere changes it."""
    kept = describe_change(effect.before, effect.after, names)
    before, after, others = effect.before[target], effect.after[target], effect.elsewhere[:, target]
    lines = [
        f"{kept} {effect.share:.0%} of the image is replaced.",
        f"Probability of {names[target]}: {float(before):.1%}, then {float(after):.1%}.",
    ]
    if effect.share > WIDE:
        return [*lines, "The region covers most of the image: no other place can be compared with it."]
    changed = int(((others - before).abs() >= (after - before).abs()).sum())
    spread = f"{float(others.min()):.1%} to {float(others.max()):.1%}"
    return [
        *lines,
        f"The same shape at {len(others)} random other places: {spread}; {changed} of them change it as much or more.",
    ]
