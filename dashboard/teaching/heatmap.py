"""The heatmap of a trial's target image, or its standard error, each with a key to its colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from torch import Tensor

from core.attribution.records import sign_of
from core.attribution.signs import Sign
from core.drawing.rendering import AGAINST, FOR, NEUTRAL, UNCERTAIN, draw_error
from dashboard.explore.figures import HeatmapDrawing
from dashboard.shared.messages import escape_markdown
from dashboard.teaching.jobs import HeatmapResult
from study.bundle import Bundle, Trial

ERROR = "Standard error"
SAID = ("What the AI saw", "Heatmap")
KEY = (
    '<div role="img" aria-label="Colour key: {said}" style="font-size:.8rem">'
    '<div style="height:.75rem;border-radius:.2rem;background:linear-gradient(90deg,{colours})"></div>'
    '<div aria-hidden="true" style="display:flex;justify-content:space-between">{values}</div></div>'
)


def show_heatmap(made: HeatmapResult, trial: Trial) -> None:
    """Draw the image and its heatmap as participants see it, or on request its standard error."""
    error = made.explanation.error
    wanted = error is not None and st.toggle(
        ERROR, key="map_error", help="How far the heatmap would vary with other random masks."
    )
    explanation, sign = made.explanation, sign_of(made.settings.method, made.settings.parameters)
    if made.settings.drawing == "values":  # as in `study.building.stimuli.compute_drawn_values`
        explanation = replace(explanation, zero=0.0, error=None)
    drawing = HeatmapDrawing(made.seen, explanation)
    plain, over = st.columns(2, wrap=False)
    plain.image(drawing.draw_input(), caption=SAID[0], width="stretch", alt=SAID[0])
    with over:
        if wanted:
            assert error is not None
            limit = float(error.max()) or 1.0
            st.image(draw_error(error[0], limit, drawing.size), caption=ERROR, width="stretch", alt=ERROR)
            _draw_key([_write_colour(NEUTRAL), _write_colour(UNCERTAIN)], [0.0, limit / 2, limit])
        else:
            overlaid = drawing.draw_overlay(made.settings.opacity)
            st.image(overlaid, caption=SAID[1], width="stretch", alt=SAID[1])
            _draw_heatmap_key(sign, drawing)
    if not wanted:
        st.caption(_describe_colours(sign, drawing, trial, is_faded=explanation.error is not None))
    st.caption(_describe_error(error))


def show_frozen(bundle: Bundle, trial: Trial) -> None:
    """Draw the image and its heatmap as participants see them, which are there at once."""
    with st.container():
        for place, asset, said in zip(
            st.columns(2, wrap=False), (trial.assets.target, trial.assets.target_map), SAID, strict=True
        ):
            place.image(str(bundle.asset(asset)), caption=said, width="stretch", alt=said)


def _describe_error(error: Tensor | None) -> str:
    if error is None:
        return "This method has no standard error."
    return f"Standard error of the heatmap: typically {float(error.median()):.3g}, at most {float(error.max()):.3g}."


def _draw_heatmap_key(sign: Sign, drawing: HeatmapDrawing) -> None:
    """Draw the key of a heatmap, from its zero on where the method has no values below."""
    zero, limit = drawing.scale.zero, drawing.scale.limit
    above = [_write_colour(FOR, 0), _write_colour(FOR)]
    if sign.below is None:
        _draw_key(above, [zero, zero + limit / 2, zero + limit])
    else:
        below = [_write_colour(AGAINST), f"{_write_colour(AGAINST, 0)} 50%"]
        _draw_key([*below, f"{above[0]} 50%", above[1]], [zero - limit, zero, zero + limit])


def _describe_colours(sign: Sign, drawing: HeatmapDrawing, trial: Trial, *, is_faded: bool) -> str:
    """Say what the colours mean, and where there is none."""
    faded = " Values within sampling error are faded." if is_faded else ""
    meaning = escape_markdown(sign.words(trial.target))
    return f"{meaning} Near {_write_value(drawing.scale.zero)}, the image shows through.{faded}"


def _draw_key(colours: Sequence[str], values: Sequence[float]) -> None:
    """Draw a bar of colours with the values of its two ends and its centre."""
    written = [_write_value(value) for value in values]
    st.html(
        KEY.format(
            said=", ".join(written),
            colours=",".join(colours),
            values="".join(f"<span>{value}</span>" for value in written),
        )
    )


def _write_value(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _write_colour(colour: NDArray[np.float32], opacity: int = 1) -> str:
    return f"rgb({' '.join(f'{part:.0f}' for part in colour)} / {opacity})"
