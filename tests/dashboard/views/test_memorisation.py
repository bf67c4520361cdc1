"""The figure of the question memorisation, and the estimate of its duration."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dashboard.explore.layers.jobs import LayerRequest
from inquiry.layers.inspection import LayerQuery
from inquiry.layers.record import record_of
from tests.core.scenes import scene_net

PANELS = {
    "training": "Training images",
    "held_out": "Held-out images",
    "coarse": "Low frequencies",
    "fine": "High frequencies",
    "critical": "Near another class",
    "gini": "Gini coefficient",
}


def test_every_measure_has_a_panel_with_a_line_for_each_kind() -> None:
    """Catches names of the code, values of another panel, a chance line across a ratio, and a legend over a title."""
    values = {name: np.linspace(0, 1, 6) / (k + 1) for k, name in enumerate(PANELS)}
    table = pd.DataFrame(
        {"kind": ["true"] * 3 + ["random_labels"] * 3, "epoch": [0, 1, 2] * 2, "chance": 0.0625} | values
    )
    table.loc[3:, ["coarse", "fine"]] = np.nan
    figure = record_of("memorisation").figure(table)
    titles = {text.text: (text.x, text.y) for text in figure.layout.annotations if text.text}
    assert set(titles) == set(PANELS.values())
    assert figure.layout.legend.y > 1.05, "above the titles of the panels, also in two lines"
    lines = {(line.name, line.xaxis): list(line.y) for line in figure.data}
    assert len(lines) == 12
    for name, title in PANELS.items():
        for kind, part in (("True", table[:3]), ("Random labels", table[3:])):
            axis = _axis_below(figure, *titles[title])
            np.testing.assert_array_equal(lines[kind, axis], part[name])
    dotted = {shape.yref for shape in figure.layout.shapes}
    below = {_axis_below(figure, *titles[PANELS[name]])[1:] for name in ("critical", "gini")}
    assert len(figure.layout.shapes) == 4
    assert dotted.isdisjoint({f"y{number} domain" for number in below} | {f"y{number}" for number in below})


def _axis_below(figure, x: float, y: float) -> str:
    """Return the horizontal axis of the panel under a title: of those in its column, the highest that is below it."""
    own = []
    for name in figure.layout:
        if name.startswith("xaxis") and figure.layout[name].domain[0] <= x <= figure.layout[name].domain[1]:
            number = name.removeprefix("xaxis")
            top = figure.layout[f"yaxis{number}"].domain[1]
            if top <= y + 1e-9:
                own.append((top, f"x{number}"))
    return max(own)[1]


def test_the_estimate_counts_steps_and_measures() -> None:
    """By hand: 8 images, 4 trained on and 4 held out; 2 epochs, 3 moments, each a gradient and 10 steps; 2 kinds."""
    network = scene_net()
    asked = LayerRequest(LayerQuery("memorisation"), network, network, range(48), 8)
    found = record_of("memorisation").cost(asked, {"epochs": 2, "kinds": "true,gaussian"})
    assert found.gradients == 2 * 4 * (2 + 3 * 11)
    assert found.forwards == 2 * 3 * 4 * 4
