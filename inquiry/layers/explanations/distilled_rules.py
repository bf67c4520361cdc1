"""The question `rules` of `inquiry.layers`: by which rules could the network's predictions be predicted?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.attribution.places.place import select_layer
from core.distillation.factors import Clause, FactorColumn, encode_factors
from core.distillation.rules import Rules, fit_rules
from core.distillation.soft_tree import fit_soft_tree
from core.errors import ForetellError
from core.layers.layers import means_of
from core.network.decoding import read_batches
from core.shares import share_of
from core.types import Progress
from inquiry.layers.costs import read_each_layer
from inquiry.layers.figures import MOST_ROWS
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import TableWords, Topic, layer_question
from study import plots
from study.conditions.rules.draws import DescribedImages, describe_images, draw_again


def plot_rules(table: pd.DataFrame) -> go.Figure:
    """Draw how often the rules, together and each, give the network's prediction, with intervals: a row for each."""
    shown = table.dropna(subset=["share"]).head(MOST_ROWS).reset_index(drop=True)
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


LETTERS, LINE_PX = 25, 16
"""Of a rule in a line of a figure, and the height of a line, and of the gap between two rules."""


@layer_question(
    topic=Topic.EXPLANATIONS,
    asks="a tree that imitates the AI",
    reading=(
        "Share of held-out images for which the rules give the network's prediction, with 95% intervals: "
        "of all rules together, then of the largest rules."
    ),
    publications={"Frosst & Hinton 2017": "https://arxiv.org/abs/1711.09784"},
    layered=True,
    table=TableWords(shares="share|low|high"),
    figure=plot_rules,
    cost=read_each_layer,
)
def rules(
    inspected: LayerInspection,
    progress: Progress,
    *,
    on: Literal["factors", "units"] = "factors",
    drawn: Literal["as they are", "in random contexts"] = "as they are",
    leaves: int = 32,
    smallest: int = 5,
    depth: int = 5,
) -> pd.DataFrame:
    """Imitate the network by rules: a tree about what is in the images, or about the units of a layer.

    Model distillation. The tree (CART) and a soft tree are fitted to two thirds of the images
    and judged on the others. The first rows are their fidelity, the share of the judged images of which they give the
    network's prediction, with Wilson's 95 % interval; then there is a row for each rule, with the ``images`` that it
    was fitted to and the ``share`` of the judged images which meet it that get its class.

    Parameters
    ----------
    on
        What rules are about: the known factors of an image, such as object and context, or the units of layers.
    drawn
        Images as they are, or drawn again in random contexts: an object and its usual context no longer go together,
        so that the rules say which of the two decides.
    leaves
        Largest number of rules, the leaves of the tree.
    smallest
        Least number of images that a rule is fitted to.
    depth
        Depth of the soft tree; 0 for none.
    """
    features, columns, targets = _take_features(inspected, on, drawn, progress)
    predicted = targets.argmax(1).numpy()
    fitted_rules = fit_rules(
        features, columns, predicted, leaves=leaves, smallest=smallest, generator=inspected.generator()
    )
    rows: list[list[object]] = [
        ["whole tree", None, len(fitted_rules.fitted), len(fitted_rules.judged), *fitted_rules.fidelity]
    ]
    if depth:
        rows.append(_judge_soft_tree(inspected, fitted_rules, features, targets, depth, progress))
    rows.append(
        ["most common prediction", None, len(fitted_rules.fitted), len(fitted_rules.judged), *fitted_rules.chance]
    )
    names = inspected.classifier.names.short
    order = sorted(range(len(fitted_rules.tree.leaves)), key=lambda i: -int(fitted_rules.tree.leaves[i].counts.sum()))
    rows += [_tell_rule(fitted_rules, i, names) for i in order]
    return pd.DataFrame(rows, columns=["rule", "predicts", "images", "judged", "share", "low", "high"])


def _take_features(
    inspected: LayerInspection, on: str, drawn: str, progress: Progress
) -> tuple[NDArray[np.float64], tuple[FactorColumn, ...], Tensor]:
    """Return features (N, D), what they are, and the network's probabilities (N, K)."""
    images, classifier = inspected.images, inspected.classifier
    if on == "factors" and not any(factor.known for factor in images.factors.values()):
        raise ForetellError(
            f"Of the images of {images.name} no objects or contexts are known: choose rules on units, or a "
            "generated set such as scenes."
        )
    again = drawn != "as they are"
    described = None
    if again or on == "factors":
        described = draw_again(images, len(images), inspected.request.seed) if again else describe_images(images)
    inputs = _read(inspected, described) if described is not None and again else inspected.inputs
    targets = classifier.probabilities(inputs)
    if described is not None and on == "factors":
        return *encode_factors(described.values), targets
    features, columns = [], []
    for layer in inspected.request.layers or [select_layer(classifier, "")]:
        means = means_of(classifier, inputs, layer, progress=progress)
        features.append(means.double().numpy())
        columns += [FactorColumn(f"{layer}:{unit}") for unit in range(means.shape[1])]
    return np.concatenate(features, axis=1), tuple(columns), targets


def _read(inspected: LayerInspection, described: DescribedImages) -> Tensor:
    return torch.cat(list(read_batches(inspected.classifier, described.open, 0, len(described))))


def _judge_soft_tree(
    inspected: LayerInspection,
    fitted_rules: Rules,
    features: NDArray[np.float64],
    targets: Tensor,
    depth: int,
    progress: Progress,
) -> list[object]:
    """Return the row of a soft tree that is fitted to the network's probabilities of the same images."""
    x = torch.from_numpy(features)
    fitted, judged = torch.from_numpy(fitted_rules.fitted), torch.from_numpy(fitted_rules.judged)
    x = (x - x[fitted].mean(0)) / x[fitted].std(0).clamp(min=1e-9)
    tree = fit_soft_tree(x[fitted], targets[fitted], depth=depth, generator=inspected.generator(), progress=progress)
    agreeing = int((tree.predict(x[judged]).argmax(1) == targets[judged].argmax(1)).sum())
    share = share_of(agreeing, len(judged))
    return [f"soft tree of depth {depth}", None, len(fitted), len(judged), *share]


def _tell_rule(fitted_rules: Rules, i: int, names: Sequence[str]) -> list[object]:
    leaf, counts = fitted_rules.tree.leaves[i], fitted_rules.counts[i]
    among = int(counts.sum())
    share = share_of(int(counts[leaf.most_common]), among) if among else (None, None, None)
    text = " and ".join(map(describe_clause, fitted_rules.read_rule(i))) or "every image"
    return [text, names[leaf.most_common], int(leaf.counts.sum()), among, *share]


def describe_clause(clause: Clause) -> str:
    """Describe what a rule says of a factor, or of a unit."""
    if clause.values:
        *first, last = clause.values
        listed = f"{', '.join(first)} or {last}" if first else last
        return f"{clause.factor} is {'' if clause.holds else 'not '}{listed}"
    low = f"{clause.low:.4g} < " if np.isfinite(clause.low) else ""
    high = f" ≤ {clause.high:.4g}" if np.isfinite(clause.high) else ""
    return f"{low}{clause.factor}{high}"
