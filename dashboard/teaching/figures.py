"""Figures of the Teaching page."""

from __future__ import annotations

import base64

import pandas as pd
import plotly.graph_objects as go

from core.names import format_name
from core.types import TeachingSet
from dashboard.teaching.jobs import LessonResult
from study import plots

LARGE = 0.09
"""Side of an example's image in the plane, as a share of its width."""
LEAST_MARGIN = 0.05
"""Room above and below the learner's probabilities."""
SPREAD = 0.3
"""Width over which the policies' error bars are spread, in examples."""
CLOSE = 1.5
"""Ratio of two values of a logarithmic axis whose labels would touch."""


def plane(taught: LessonResult, policy: str, names: tuple[str, str]) -> tuple[go.Figure, pd.DataFrame]:
    """Draw the pool on the two main axes of the learner's space, with the images of one policy's set.

    ``names`` are the target category and the foil.
    """
    table = places(taught, policy, names)
    figure = go.Figure()
    for k, (name, part) in enumerate(table.groupby("kind", sort=False)):
        target = name == "target image"
        marker = {
            "color": plots.INK if target else plots.PALETTE[k],
            "symbol": "star" if target else plots.MARKS[k],
            "size": 16 if target else 9,
            "opacity": 1 if target else 0.75,
        }
        figure.add_scatter(
            x=part["x"],
            y=part["y"],
            mode="markers",
            name=str(name),
            marker=marker,
            customdata=part[["id", "log_odds"]].to_numpy(),
            hovertemplate="%{customdata[0]}<br>log-odds %{customdata[1]:.2f}<extra>" + str(name) + "</extra>",
        )
    _add_images(figure, taught, table)
    plots.apply_layout(figure, "Second axis", percent=False)
    return figure.update_xaxes(title="First axis", zeroline=False, showgrid=False), table


def places(taught: LessonResult, policy: str, names: tuple[str, str]) -> pd.DataFrame:
    """Return id, kind, x, y, log_odds (the classifier's own) and chosen (by the policy) of every possible example."""
    lesson = taught.lesson
    kinds = [names[0] if i < lesson.targets else names[1] for i in range(len(lesson.ids))]
    chosen = set(lesson.sets[policy].indices)
    return pd.DataFrame(
        {
            "id": [*lesson.ids, "target"],
            "kind": [*kinds, "target image"],
            "x": lesson.places[:, 0].tolist(),
            "y": lesson.places[:, 1].tolist(),
            "log_odds": lesson.log_odds.tolist(),
            "chosen": [*(i in chosen for i in range(len(lesson.ids))), False],
        }
    )


def _add_images(figure: go.Figure, taught: LessonResult, table: pd.DataFrame) -> None:
    """Draw the images of the target and of the chosen examples above their marks."""
    wide = table["x"].max() - table["x"].min()
    high = table["y"].max() - table["y"].min()
    shown = table[table["chosen"] | (table["kind"] == "target image")]
    for row in shown.itertuples():
        content = taught.thumbnails.get(str(row.id), taught.target)
        figure.add_layout_image(
            source=f"data:image/webp;base64,{base64.b64encode(content).decode()}",
            xref="x",
            yref="y",
            x=row.x,
            y=row.y + 0.02 * high,
            sizex=LARGE * wide,
            sizey=2 * LARGE * high,
            xanchor="center",
            yanchor="bottom",
        )
    figure.update_yaxes(range=[table["y"].min() - 0.1 * high, table["y"].max() + 0.3 * high])


def beliefs(table: pd.DataFrame) -> tuple[go.Figure, go.Figure]:
    """Draw the learner's probability, and their log-odds with standard deviation, after each example."""
    after = "Examples seen"
    table = table.assign(policy=table["policy"].map(format_name))
    exact = table.assign(low=table["probability"], high=table["probability"])
    p = plots.curves(exact, x="examples", y="probability", by="policy", title="P", x_title=after)
    spread = table.assign(low=table["log_odds"] - table["sd"], high=table["log_odds"] + table["sd"])
    places = {name: k for k, name in enumerate(dict.fromkeys(table["policy"]))}
    shift = table["policy"].map(places) - (len(places) - 1) / 2  # else one error bar covers the others
    spread["examples"] += SPREAD * shift / max(len(places) - 1, 1)
    odds = plots.curves(
        spread, x="examples", y="log_odds", by="policy", title="Log-odds ± SD", x_title=after, percent=False
    )
    p.update_yaxes(range=_choose_range(table["probability"]))
    return p.update_xaxes(dtick=1), odds.update_xaxes(dtick=1)


def search(chosen: TeachingSet) -> tuple[go.Figure, pd.DataFrame]:
    """Draw the best probability so far against the sets scored."""
    table = pd.DataFrame(chosen.curve, columns=["sets_scored", "best"])
    line = {"shape": "hv", "color": plots.PALETTE[0]}
    figure = go.Figure(go.Scatter(x=table["sets_scored"], y=table["best"], mode="lines+markers", line=line))
    plots.apply_layout(figure, "Best P so far", percent=True).update_yaxes(range=_choose_range(table["best"]))
    figure.update_xaxes(
        title="Sets scored", type="log", tickvals=_choose_ticks(int(table["sets_scored"].max())), showgrid=False
    )
    return figure, table


def _choose_ticks(last: int) -> list[int]:
    """Choose the ticks of a logarithmic axis from 1: powers of ten, and the end, which none of them is close to."""
    powers = [10**k for k in range(len(str(last)))]
    return [*(power for power in powers if CLOSE * power <= last), last]


def _choose_range(values: pd.Series[float]) -> list[float]:
    """Choose the range of an axis of probabilities: small changes are what there is to see."""
    low, high = values.min(), values.max()
    margin = max(LEAST_MARGIN, 0.3 * (high - low))
    return [max(0.0, low - margin), min(1.03, high + margin)]
