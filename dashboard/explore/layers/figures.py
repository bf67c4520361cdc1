"""Figures of the view of layers: one for each question of the command `layers`, from its table."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from core.names import format_name
from dashboard.explore.layers.training import memorisation
from study import plots

TOP = 20
"""Rows of a figure of units at most: those with the largest effects."""
LETTERS, LINE_PX = 25, 16
"""Of a rule in a line of a figure, and the height of a line, and of the gap between two rules."""
SHARES = "Blues"
LOSSES = "RdBu"


def probes(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy of the probes by layer, with chance as a dotted line."""
    figure = plots.intervals(table, x="layer", y="accuracy", by="of", title="Probe accuracy", percent=True)
    return _add_limits(figure, table.groupby("of", sort=False)["chance"].first(), "chance")


def information(table: pd.DataFrame) -> go.Figure:
    """Draw the bits by layer; dotted, the entropy of each label, the most that is possible."""
    figure = plots.intervals(table, x="layer", y="bits", by="of", title="Information, bits", percent=False)
    return _add_limits(figure, table.groupby("of", sort=False)["most"].first(), "entropy")


def similarity(table: pd.DataFrame) -> go.Figure:
    """Draw the mean canonical correlation of every layer with every other."""
    wide = table.pivot(index="layer", columns="other", values="similarity")
    return _heat(
        wide.loc[_list_in_first_order(table["layer"]), _list_in_first_order(table["other"])],
        SHARES,
        (0, 1),
        "Similarity",
    ).update_layout(xaxis_title="Compared layer", yaxis_title="Layer")


def consistency(table: pd.DataFrame) -> go.Figure:
    """Draw the share of each layer that can be reconstructed, order by order, and the rest."""
    pairs = name_pairs(table)
    orders = [name for name in table if name.startswith("order_") and not name.endswith("_error")]
    figure = go.Figure()
    for k, name in enumerate([*orders, "inconsistent"]):
        color = plots.INK if name == "inconsistent" else plots.PALETTE[k]
        figure.add_bar(x=pairs, y=table[name], name=name.replace("_", " "), marker={"color": color})
    return plots.apply_layout(figure, "Share of the variance", percent=True).update_layout(barmode="relative")


def refinement(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy that is read from each layer's own, refined and compared features, with its interval."""
    pairs = name_pairs(table)
    figure = go.Figure()
    for k, name in enumerate(table["features"].unique()):
        own = table["features"] == name
        part = table[own]
        error = {"type": "data", "array": part["high"] - part["accuracy"], "arrayminus": part["accuracy"] - part["low"]}
        color = plots.INK if k == 0 else plots.PALETTE[k - 1]
        x = [pair for pair, chosen in zip(pairs, own, strict=True) if chosen]
        figure.add_bar(x=x, y=part["accuracy"], name=name, error_y=error, marker={"color": color})
    return plots.apply_layout(figure, "Accuracy", percent=True).update_layout(barmode="group")


def name_pairs(table: pd.DataFrame) -> list[str]:
    """Name the two layers that each row compares."""
    return [
        one if one == other else f"{one} from {other}"
        for one, other in zip(table["layer"], table["other"], strict=True)
    ]


def dissection(table: pd.DataFrame) -> go.Figure:
    """Draw how many units detect each concept."""
    counts = table[table["detects"]].groupby(["layer", "concept"], sort=False).size().reset_index(name="units")
    counts = counts.sort_values("units", ascending=False, kind="stable")
    figure = px.bar(counts, x="concept", y="units", color="layer", color_discrete_sequence=plots.PALETTE)
    return plots.apply_layout(figure, "Units that detect it", percent=False).update_xaxes(title=None)


def deletion(table: pd.DataFrame) -> go.Figure:
    """Draw what each class loses without a unit, for the units with the largest effects."""
    named = table.assign(unit=table["layer"] + ", " + table["unit"].astype(str))
    wide = named.pivot(index="unit", columns="class", values="drop")
    most = wide.abs().max(axis=1).nlargest(TOP)
    end = float(most.max()) or 1.0
    return _heat(wide.loc[most.index, _list_in_first_order(table["class"])], LOSSES, (-end, end), "Probability lost")


def attacks(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy under each attack, by radius."""
    shown = table.rename(columns={"right_low": "low", "right_high": "high"}).assign(
        attack=table["attack"].map(format_name)
    )
    radius = "Largest change of a pixel, grey levels"
    return plots.curves(shown, x="grey_levels", y="right", by="attack", title="Still correct", x_title=radius)


def margins(table: pd.DataFrame) -> go.Figure:
    """Draw the distance of the images to another prediction, by subspace; images without one are left out."""
    figure = go.Figure()
    for k, way in enumerate(("anywhere", "discriminative", "random")):
        met = table[np.isfinite(table[way])]
        looks = {"marker": {"color": plots.PALETTE[k], "symbol": plots.MARKS[k]}, "line": {"color": plots.PALETTE[k]}}
        figure.add_box(y=met[way], name=way, boxpoints="all", text=met["image"], showlegend=False, **looks)
    return plots.apply_layout(figure, "Smallest change that changes the prediction", percent=False).update_yaxes(
        type="log"
    )


def frequencies(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy on the low and on the high frequencies; dotted, on whole images."""
    parts = [
        pd.DataFrame(
            {"cycles": table["cycles"], "part": label, "right": table[name]}
            | {end: table[f"{name}_{end}"] for end in ("low", "high")}
        )
        for name, label in (("coarse", "low frequencies"), ("fine", "high frequencies"))
    ]
    radius = "Cut-off, cycles per image"
    figure = plots.curves(pd.concat(parts), x="cycles", y="right", by="part", title="Accuracy", x_title=radius)
    return figure.add_hline(y=float(table["whole"].iloc[0]), line=plots.DOTTED)


def bands(table: pd.DataFrame) -> go.Figure:
    """Draw the median margin by band of frequencies, with its interval."""
    centre = (table["low"] + table["high"]) / 2
    shown = pd.DataFrame({"cycles": centre, "margin": table["median"], "of": "median"})
    shown[["low", "high"]] = table[["median_low", "median_high"]].to_numpy()
    shown = shown[np.isfinite(shown["margin"])]
    title = "Smallest change that changes the prediction"
    x_title = "Changed frequencies, cycles per image"
    figure = plots.curves(shown, x="cycles", y="margin", by="of", title=title, x_title=x_title, percent=False)
    return figure.update_layout(showlegend=False)


def importance(table: pd.DataFrame) -> go.Figure:
    """Draw the channels with the largest importance, with standard errors."""
    most = table.loc[table["importance"].abs().nlargest(TOP).index]
    names = most["layer"] + ", " + most["channel"].astype(str)
    figure = go.Figure(go.Bar(x=names, y=most["importance"], marker={"color": plots.PALETTE[0]}))
    figure.update_traces(error_y={"array": most["error"], "color": plots.INK, "thickness": 1})
    return plots.apply_layout(figure, "Relative rise of −log p", percent=False)


def evidence(table: pd.DataFrame) -> go.Figure:
    """Draw the fall of the log-odds by method, and of as many random pixels."""
    own = table[["method", "change", "change_low", "change_high"]].assign(pixels="by heatmap")
    own.columns = ["method", "change", "low", "high", "pixels"]
    chance = table["random"]
    random = pd.DataFrame({"method": table["method"], "change": chance, "low": chance, "high": chance})
    both = pd.concat([own, random.assign(pixels="random pixels")])
    both["method"] = ["<br>".join(textwrap.wrap(format_name(name), 14)) for name in both["method"]]
    return plots.intervals(both, x="method", y="change", by="pixels", title="Log-odds lost")


def rules(table: pd.DataFrame) -> go.Figure:
    """Draw how often the rules, together and each, give the network's prediction, with intervals: a row for each."""
    shown = table.dropna(subset=["share"]).head(TOP).reset_index(drop=True)
    rows = [
        "<br>".join(textwrap.wrap(rule if pd.isna(said) else f"{rule}: {said}", LETTERS))
        for rule, said in zip(shown["rule"], shown["predicts"], strict=True)
    ]
    heights = np.array([LINE_PX * (2 + row.count("<br>")) for row in rows])
    places = heights.cumsum() - heights / 2
    kinds = np.where(shown["predicts"].isna(), "all images", "one rule")
    figure = go.Figure()
    for k, (kind, part) in enumerate(shown.groupby(kinds, sort=False)):
        looks = {"color": plots.PALETTE[k], "size": 11, "symbol": plots.MARKS[k]}
        error = plots.whiskers(part, "share", plots.PALETTE[k])
        y = places[part.index]
        figure.add_scatter(x=part["share"], y=y, mode="markers", marker=looks, error_x=error, name=str(kind))
    figure = plots.apply_layout(figure, "", percent=False)
    figure.update_layout(height=130 + int(heights.sum()), margin_l=10)
    figure.update_xaxes(title="Share predicted", tickformat=".0%", nticks=5, range=[-0.03, 1.03], gridcolor=plots.GRID)
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": rows, "tickfont_size": 12}
    return figure.update_yaxes(**ticks, range=[heights.sum(), 0], automargin=True, showgrid=False)


def modes(table: pd.DataFrame) -> go.Figure:
    """Draw how many of the class's images each mode has."""
    names = "mode " + table["mode"].astype(str)
    figure = go.Figure(go.Bar(x=names, y=table["images"], marker={"color": plots.PALETTE[0]}))
    return plots.apply_layout(figure, f"Images predicted to be {table['class'].iloc[0]}", percent=False)


def x_features(table: pd.DataFrame) -> go.Figure:
    """Draw what each x-feature adds to the logit of images of the class, more than to that of others."""
    each = table[table["x_feature"] != "all"]
    names = "x-feature " + each["x_feature"]
    figure = go.Figure(go.Bar(x=names, y=each["adds"], marker={"color": plots.PALETTE[0]}))
    return plots.apply_layout(figure, f"Added to the logit of {table['class'].iloc[0]}", percent=False)


def parts(table: pd.DataFrame) -> go.Figure:
    """Draw how much of its channel's activation each part explains, by layer."""
    figure = go.Figure()
    for k, (layer, own) in enumerate(table[table["part"] != "all"].groupby("layer", sort=False)):
        colour = plots.PALETTE[k % len(plots.PALETTE)]
        figure.add_bar(x=f"{layer}: " + own["part"], y=own["share"], name=str(layer), marker={"color": colour})
    return plots.apply_layout(figure, "Share explained", percent=True)


def explainer(table: pd.DataFrame) -> go.Figure:
    """Draw the instability of each feature against that of its channel, with the line where they are equal."""
    each = table[table["feature"] != "all"].dropna(subset=["instability"])
    if each.empty:
        first = table.iloc[0]
        figure = go.Figure(go.Bar(x=["p", "restored", "same"], y=[first[name] for name in ("p", "restored", "same")]))
        return plots.apply_layout(figure.update_traces(marker={"color": plots.PALETTE[0]}), "Share", percent=True)
    names = "feature " + each["feature"]
    dots = {"x": each["instability_channel"], "y": each["instability"], "text": names}
    figure = go.Figure(go.Scatter(**dots, mode="markers", marker={"color": plots.PALETTE[0]}))
    ends = [0, float(each[["instability", "instability_channel"]].to_numpy().max())]
    figure.add_scatter(x=ends, y=ends, mode="lines", line=plots.DOTTED, hoverinfo="skip")
    figure = plots.apply_layout(figure, "Instability of the feature", percent=False).update_layout(showlegend=False)
    return figure.update_xaxes(title="Instability of the channel")


def attributes(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy of the metamodels on held-out relatives by attribute and output, with chance as crosses."""
    figure = plots.intervals(table, x="attribute", y="accuracy", by="output", title="Accuracy", percent=True)
    chance = table.drop_duplicates("attribute")["chance"]
    marker = {"color": plots.INK, "symbol": "line-ew-open", "size": 28}
    return figure.add_scatter(x=list(range(len(chance))), y=chance, mode="markers", name="chance", marker=marker)


def decomposition(table: pd.DataFrame) -> go.Figure:
    """Draw the share of the contrast's energy that each layer does not rebuild, learned and with random filters."""
    each = table[table["filter"] == "all"]
    figure = go.Figure()
    for k, (name, error) in enumerate({"lost": "lost_error", "lost_random": "random_error"}.items()):
        label = "learned filters" if name == "lost" else "random filters"
        bars = {"array": each[error], "color": plots.INK, "thickness": 1}
        figure.add_bar(x="layer " + each["layer"].astype(str), y=each[name], name=label, error_y=bars,
                       marker={"color": plots.PALETTE[k]})  # fmt: skip
    return plots.apply_layout(figure, "Energy lost", percent=True)


def recognition(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy by features, next to that with random filters and without a pyramid, and chance."""
    figure = go.Figure()
    compared = {"accuracy": "with the pyramid", "random": "random filters", "without_pyramid": "without the pyramid"}
    for k, (name, label) in enumerate(compared.items()):
        error = {"type": "data", "array": table["high"] - table["accuracy"],
                 "arrayminus": table["accuracy"] - table["low"], "color": plots.INK, "thickness": 1}  # fmt: skip
        figure.add_bar(x=table["features"], y=table[name], name=label, marker={"color": plots.PALETTE[k]},
                       error_y=error if name == "accuracy" else None)  # fmt: skip
    figure.add_hline(y=float(table["chance"].iloc[0]), line=plots.DOTTED)
    return plots.apply_layout(figure, "Accuracy", percent=True).update_layout(barmode="group")


FIGURES: Mapping[str, Callable[[pd.DataFrame], go.Figure]] = {
    draw.__name__: draw
    for draw in (
        probes,
        information,
        similarity,
        consistency,
        refinement,
        dissection,
        deletion,
        attacks,
        margins,
        frequencies,
        bands,
        importance,
        evidence,
        rules,
        modes,
        x_features,
        parts,
        explainer,
        memorisation,
        attributes,
        decomposition,
        recognition,
    )
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


def _add_limits(figure: go.Figure, limits: pd.Series, name: str) -> go.Figure:
    """Add a dotted line for each series, in its colour and with its name, at the value that it is compared with."""
    for k, (of, limit) in enumerate(limits.items()):
        if np.isfinite(limit):
            line = plots.DOTTED | {"color": plots.PALETTE[k % len(plots.PALETTE)]}
            figure.add_scatter(
                x=figure.layout.xaxis.tickvals, y=[limit] * len(figure.layout.xaxis.tickvals), mode="lines", line=line,
                name=f"{name}, {of}", hovertemplate=f"%{{y:.3g}}<extra>{name}, {of}</extra>",
            )  # fmt: skip
    return figure


def _list_in_first_order(names: pd.Series) -> list[str]:
    return list(dict.fromkeys(names))
