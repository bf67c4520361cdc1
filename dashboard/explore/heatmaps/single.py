"""One image: its prediction, its heatmap, and how reliable the heatmap is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.attribution.outside.external import reads_heatmaps
from core.attribution.records import Family, record_of
from core.drawing.rendering import scale_of
from core.names import format_name
from dashboard.explore import figures
from dashboard.explore.figures import DELETION, INSERTION
from dashboard.explore.heatmap_jobs import Faithfulness, Robustness
from dashboard.explore.heatmaps import appearance, certificate, downloads, marks
from dashboard.explore.heatmaps.cells import cell_of, target_box, target_of, with_robustness
from dashboard.explore.heatmaps.predictions import TOP_HEADING, show_top_predictions
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.parameters import is_refined
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable
from dashboard.shared.live import JobCollector, begin, draw_live
from dashboard.shared.messages import escape_markdown
from dashboard.shared.small_tables import draw_table

SUBSTRATES = {"mean": "the mean colour", "blur": "a blurred image"}
"""What pixels are replaced by, in words."""
CLIP, PIXELS_CLIP = 0.5, 10.0
"""Percentage of pixels in full colour: as participants see a heatmap; and where neighbouring pixels differ so much
that over a photograph the few strongest of them are not seen."""
PIXEL_FAMILIES = (Family.GRADIENTS, Family.RELEVANCE)


def show(seen: ClassifiedImage, method: str, parameters: dict[str, Any], seed: int) -> None:
    """Show everything about one image and one method."""
    _headline(seen)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="explore_look"):
        target = target_of(seen, target_box(seen.classifier))
        assert target is not None
        look = _choose_style(method, object_known=seen.chosen.mask is not None)
        measured = appearance.choose_faithfulness()
    request = seen.request_heatmap(target, method, parameters, seed)
    if is_refined():
        begin([request.key])
    column = HeatmapColumn(seen, target, (seen.format_confidence(seen.predicted_class),))

    def collect(asking: JobCollector) -> HeatmapTable:
        cell = with_robustness(asking, cell_of(asking, request, seen, measured=measured))
        return HeatmapTable(f"{format_name(method)}: {request.class_name}", (column,), {method: (cell,)}, "Own", look)

    with st.container(key="explore_heatmap"):  # which a phone shows before its controls
        draw_live(collect, lambda shown: _draw(shown, measured=measured))


def _choose_style(method: str, *, object_known: bool) -> figures.HeatmapStyle:
    """Choose how the heatmap is drawn: of methods that explain each pixel, so that weaker values are seen too."""
    if record_of(method).family in PIXEL_FAMILIES:
        return appearance.choose_style(object_known=object_known, clip=PIXELS_CLIP, clip_key="pixels.clip")
    return appearance.choose_style(object_known=object_known, clip=CLIP)


def _draw(shown: HeatmapTable, *, measured: bool) -> None:
    """Draw the heatmap of a table with one, the likeliest classes, and how reliable the heatmap is."""
    ((column, cell),) = shown.cells
    seen = column.image
    _show_heatmap(seen, cell, shown.look)
    marks.show_marks(seen, cell)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader(TOP_HEADING, anchor=False)
        show_top_predictions(seen, column.target)
    with right:
        _trust(cell, measured=measured)
    stem = f"{seen.chosen.name.rsplit('.', 1)[0]}.{cell.request.method}".replace("/", "-").replace(":", ".")
    downloads.show_heatmap_downloads(shown, stem)


def _headline(seen: ClassifiedImage) -> None:
    """Show the prediction, and whether it is right if that is known."""
    badges, chosen = [], seen.chosen
    says = seen.classifier.names.short[seen.predicted_class]
    if seen.verdict:
        colour = "gray" if seen.truth is None else "green" if seen.verdict == "right" else "orange"
        badges.append(f":{colour}-badge[{escape_markdown(seen.verdict)}]")
    if chosen.context is not None:
        badges.append(f":gray-badge[context: {chosen.context}]")
    sure = float(seen.probabilities[seen.predicted_class])
    st.header(" ".join([f"The AI predicts {escape_markdown(says)}, {sure:.0%}", *badges]), anchor=False)


def _show_heatmap(seen: ClassifiedImage, cell: Cell, look: figures.HeatmapStyle) -> None:
    category = cell.request.class_name
    if seen.view.note:
        st.info(escape_markdown(seen.view.note))
    places = st.columns(3)
    if cell.explanation is None:
        image = seen.view.draw(seen.view.size(figures.SIDE))
        places[0].image(image, caption="What the AI saw", width="stretch", alt="What the AI saw")
        places[1].info(escape_markdown(cell.note))
        return
    scale = scale_of(cell.explanation, quantile=look.quantile)
    drawing = figures.HeatmapDrawing(seen.view, cell.explanation, seen.chosen.mask, scale)
    caption = f"{format_name(cell.request.method)}: {category}"
    over = cell.request.sign.words(category)
    if look.clip > CLIP:
        over = f"{over} Full colour: the strongest {look.clip:g}% of pixels; in a study {CLIP:g}%."
    if look.style == "Outline":
        over = f"The {look.percent:g}% of pixels with the strongest evidence for {category}"
    pairs = [("What the AI saw", drawing.draw_input(outline=look.outline)), (over, drawing.draw(look))]
    alone = "Heatmap alone, with its scale"
    if look.style == "Heatmap alone":  # once is enough
        del pairs[1]
        alone = f"{alone}. {over}"
    for place, (text, image) in zip(places, [*pairs, (alone, drawing.draw_with_scale(caption))], strict=False):
        place.image(image, caption=text, width="stretch", alt=text)


def _trust(cell: Cell, *, measured: bool) -> None:
    if cell.certificate is None:
        return
    st.subheader("Reliability of this heatmap", anchor=False)
    certificate.show(cell.certificate, cell.request.class_name)
    if cell.faithfulness is not None:
        _curves(cell.faithfulness)
    elif not measured:
        st.caption("Faithfulness and stability are not measured yet.")
        st.button("Measure them", key="measure", on_click=st.session_state.update, args=({"faithfulness": True},))
    if cell.robustness is not None:
        _robust(cell.robustness)
    elif cell.faithfulness is not None and reads_heatmaps(cell.request.heatmap_method):
        st.caption("Stability does not apply: Foretell reads these heatmaps and cannot compute others.")


def _curves(faithfulness: Faithfulness) -> None:
    """Draw the AI's confidence as the strongest pixels are removed and added."""
    figure = go.Figure()
    for curve, colour in ((faithfulness.deletion, DELETION), (faithfulness.insertion, INSERTION)):
        figure.add_scatter(
            x=100 * curve.fractions.numpy(),
            y=curve.values[0].numpy(),
            name=curve.measure.capitalize(),
            line={"color": colour},
            fill="tozeroy" if curve is faithfulness.deletion else None,
        )
    figure.update_layout(
        height=230,
        margin={"l": 0, "r": 16, "t": 10, "b": 0},  # room for half of the last number
        xaxis={"title": "Pixels removed or added, %", "range": [0, 100], "dtick": 25},
        yaxis={"title": faithfulness.deletion.output.capitalize(), "range": [0, 1.02]},
        legend={"orientation": "h", "y": 1.15},
    )
    st.plotly_chart(figure, key="faithfulness_curves", config={"displayModeBar": False})
    draw_table(tabulate_faithfulness(faithfulness), "faithfulness")
    st.caption(_describe_settings(faithfulness))


def _describe_settings(faithfulness: Faithfulness) -> str:
    """Say how faithfulness was measured."""
    removed, added, how = faithfulness.deletion, faithfulness.insertion, faithfulness.infidelity
    near = f" The strongest pixel may be {faithfulness.tolerance} px next to the object." if faithfulness.hit else ""
    return (
        f"{len(removed.fractions) - 1} steps: deletion replaces pixels by {SUBSTRATES[removed.substrate]}, insertion "
        f"adds them to {SUBSTRATES[added.substrate]}. Infidelity: {how.samples} squares, replaced by "
        f"{SUBSTRATES[how.substrate]}, at the scale that fits best.{near}"
    )


def tabulate_faithfulness(faithfulness: Faithfulness) -> pd.DataFrame:
    """Return each measure of faithfulness with its value, and which values are better."""
    how = faithfulness.infidelity
    empty = float(how.empty[0])
    rows = [
        ("Area under the deletion curve", f"{float(faithfulness.deletion.area[0]):.3f}", "smaller"),
        ("Area under the insertion curve", f"{float(faithfulness.insertion.area[0]):.3f}", "larger"),
        (
            "Infidelity, relative to an empty heatmap's",
            f"{float(how.value[0]) / empty:.2f}" if empty else "undefined",
            "smaller; 1 is no better than empty",
        ),
    ]
    if faithfulness.mass is not None and faithfulness.rank is not None:
        mass = "no evidence" if np.isnan(faithfulness.mass) else f"{faithfulness.mass:.0%}"
        rows += [
            ("Relevance mass on the object", mass, "larger"),
            ("Relevance rank on the object", f"{faithfulness.rank:.0%}", "larger"),
            ("Strongest pixel on the object", "yes" if faithfulness.hit else "no", "yes"),
        ]
    return pd.DataFrame(rows, columns=["Measure", "Value", "Better"])


def _robust(robustness: Robustness) -> None:
    """Report whether the heatmap depends on the trained weights, and how stable it is under small changes."""
    forgetting, moved = robustness.randomisation, robustness.sensitivity
    left = float(forgetting.correlations[-1, 0])
    said = (
        f"With all {len(forgetting.layers)} layers re-initialised, the heatmap's rank correlation with this one is "
        f"{left:.2f} (two heatmaps of the trained network: {float(forgetting.repeatability[0]):.2f}). Changes of the "
        f"image by at most {moved.radius:.0%} move the heatmap by up to {float(moved.relative[0]):.0%} of its length "
        f"({len(moved.distances)} changes tried)."
    )
    if forgetting.is_flagged:
        st.warning(f"This method barely depends on the trained weights (it fails the randomisation check). {said}")
    else:
        st.caption(said)
