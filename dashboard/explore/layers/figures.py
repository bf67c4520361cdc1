"""Figures of the Inside view: one for each question of the verb `inspect`, from its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from study.analysis import plots

TOP = 20
"""Rows of a figure of units at most: those with the largest effects."""
SHARES = "Blues"
LOSSES = "RdBu"


def probes(table: pd.DataFrame) -> go.Figure:
    """Accuracy of the readers by layer, each label's chance as a dotted line."""
    figure = plots.intervals(table, x="layer", y="accuracy", by="of", title="Read right", percent=True)
    for chance in table.groupby("of", sort=False)["chance"].first():
        figure.add_hline(y=chance, line=plots.DOTTED)
    return figure


def similarity(table: pd.DataFrame) -> go.Figure:
    """Mean canonical correlation of every layer with every other."""
    wide = table.pivot(index="layer", columns="other", values="similarity")
    return _heat(
        wide.loc[_list_in_first_order(table["layer"]), _list_in_first_order(table["other"])],
        SHARES,
        (0, 1),
        "similarity",
    )


def consistency(table: pd.DataFrame) -> go.Figure:
    """What of each layer can be made again, order by order, and the rest."""
    pairs = [
        one if one == other else f"{one} from {other}"
        for one, other in zip(table["layer"], table["other"], strict=True)
    ]
    orders = [name for name in table if name.startswith("order_") and not name.endswith("_error")]
    figure = go.Figure()
    for k, name in enumerate([*orders, "inconsistent"]):
        color = plots.INK if name == "inconsistent" else plots.PALETTE[k]
        figure.add_bar(x=pairs, y=table[name], name=name.replace("_", " "), marker={"color": color})
    return plots.apply_layout(figure, "Share of the variance", percent=True).update_layout(barmode="relative")


def dissection(table: pd.DataFrame) -> go.Figure:
    """Of each concept, how many units detect it."""
    counts = table[table["detects"]].groupby(["layer", "concept"], sort=False).size().reset_index(name="units")
    counts = counts.sort_values("units", ascending=False, kind="stable")
    figure = px.bar(counts, x="concept", y="units", color="layer", color_discrete_sequence=plots.PALETTE)
    return plots.apply_layout(figure, "Units that detect it", percent=False).update_xaxes(title=None)


def deletion(table: pd.DataFrame) -> go.Figure:
    """What each class loses without a unit, of the units whose largest loss or gain is largest."""
    named = table.assign(unit=table["layer"] + ", " + table["unit"].astype(str))
    wide = named.pivot(index="unit", columns="class", values="drop")
    most = wide.abs().max(axis=1).nlargest(TOP)
    end = float(most.max()) or 1.0
    return _heat(wide.loc[most.index, _list_in_first_order(table["class"])], LOSSES, (-end, end), "probability lost")


def attacks(table: pd.DataFrame) -> go.Figure:
    """What stays right under each attack, by radius."""
    shown = table.rename(columns={"right_low": "low", "right_high": "high"})
    radius = "Grey levels by which a pixel may change"
    return plots.curves(shown, x="grey_levels", y="right", by="attack", title="Still right", x_title=radius)


def margins(table: pd.DataFrame) -> go.Figure:
    """How far the pictures are from another answer, in each subspace; those that met none are left out."""
    figure = go.Figure()
    for k, way in enumerate(("anywhere", "discriminative", "random")):
        met = table[np.isfinite(table[way])]
        looks = {"marker": {"color": plots.PALETTE[k], "symbol": plots.MARKS[k]}, "line": {"color": plots.PALETTE[k]}}
        figure.add_box(y=met[way], name=way, boxpoints="all", text=met["picture"], showlegend=False, **looks)
    return plots.apply_layout(figure, "Least change that changes the answer", percent=False).update_yaxes(type="log")


def frequencies(table: pd.DataFrame) -> go.Figure:
    """How often the answer is right on the coarse and on the fine part; dotted, on whole pictures."""
    parts = [
        pd.DataFrame(
            {"cycles": table["cycles"], "part": name, "right": table[name]}
            | {end: table[f"{name}_{end}"] for end in ("low", "high")}
        )
        for name in ("coarse", "fine")
    ]
    radius = "Cycles a picture that part them"
    figure = plots.curves(pd.concat(parts), x="cycles", y="right", by="part", title="Right", x_title=radius)
    return figure.add_hline(y=float(table["whole"].iloc[0]), line=plots.DOTTED)


FIGURES: Mapping[str, Callable[[pd.DataFrame], go.Figure]] = {
    draw.__name__: draw
    for draw in (probes, similarity, consistency, dissection, deletion, attacks, margins, frequencies)
}
"""By question; one without a figure is shown as its table alone."""


def _heat(wide: pd.DataFrame, scale: str, ends: tuple[float, float], title: str) -> go.Figure:
    bar = {"title": {"text": title, "side": "top"}, "orientation": "h", "thickness": 12, "y": 1, "yanchor": "bottom"}
    figure = go.Figure(
        go.Heatmap(
            z=wide.to_numpy(),
            x=list(wide.columns),
            y=list(wide.index),
            colorscale=scale,
            zmin=ends[0],
            zmax=ends[1],
            colorbar=bar,
        )
    )
    height = 220 + 22 * len(wide)
    return (
        plots.apply_layout(figure, "", percent=False)
        .update_layout(height=height, margin_t=90)
        .update_yaxes(autorange="reversed")
    )


def _list_in_first_order(names: pd.Series) -> list[str]:
    return list(dict.fromkeys(names))
