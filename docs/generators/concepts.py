"""The page on concepts, from ``benchmarks/results/concepts.json``; ``docs/generate.py`` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "concepts.json"

PAPER = {
    "60-40": (0.00, 0.02, 0.00, 0.21, 0.76),
    "99-1": (0.58, 0.59, 0.30, 1.00, 1.00),
    "98-2": (0.47, 0.49, 0.26, 0.97, 0.96),
    "99-50": (0.39, 0.44, 0.04, 0.69, 0.96),
}
"""Table 1 of Goyal et al. 2019: by intervention, Dec-CaCE, EncDec-CaCE, ConExp, TCAV."""
COLUMNS = ("causal", "decoded", "reencoded", "observed", "tcav features.1")

HEAD = """\
# What a network relies on, in human concepts

<!-- Written by `python docs/generate.py` from benchmarks/results/concepts.json. Do not edit by hand. -->

A map says where. Whether a network goes by the sea or by the fins is asked with concepts, in two ways that answer
different questions:

- **TCAV** (Kim et al. 2018, arXiv:1711.11279): does the class's logit rise towards the concept in a layer? It needs
  pictures of the concept and others, and no generator. `python foretell.py concepts --target fish --concept FOLDER
  --random FOLDER`, from Python `core.concepts.tcav.tcav`. Foretell's p-value holds the concept against concepts
  that are none; the published t test finds concepts in noise.
- **Causal concept effect** (CaCE; Goyal et al. 2019, arXiv:1907.07165): by how much does the probability of the
  class change when the concept alone is changed? It needs pictures that can be drawn again. `scenes` can
  (`context`, `object`, `colour`), `bars` (`colour`, `orientation`) and `coloured_mnist` (`colour`): `--concept
  context=sea`, or `--concept context` for all its values. What mere observation makes of it (ConExp) stands beside
  it: where the concept goes with the class, it is something else.

Where nothing can be drawn again, a conditional VAE can stand in (`core.concepts.vae`): Dec-CaCE draws pictures by
chance under both values, EncDec-CaCE draws a picture's own code under both. `agreement` is the share of pictures
that the classifier still calls the same when the VAE draws them: near chance, the estimates say nothing.
"""

BARS = """\
## The paper's bars

Horizontal and vertical bars, red or green; the colour goes with the class in four ways. Each cell: the paper's
number, and ours with its standard error over {seeds} seeds (data, network and VAE anew). The effect is on the
probability of "horizontal", of red against green. The paper's numbers are those that a lecture on it prints, without
errors and without saying how the bars were drawn or the network was trained; so one constant of ours was chosen: how
often a bar is nearly square. With it, what Bayes' rule owes to the colour is known in closed form (the column "best
observer"; nothing else was fitted).
"""

READING = """\
How to read it: observation (ConExp) takes nearly all of the class for the colour's doing; TCAV says that the colour
matters, not how much; intervening says how much. In all rows the trained network is within .02 of the best observer.
The paper's first and last rows are not those of any best observer: one that owes the colour .5 at 98/2 owes it about
.05 at 60/40, and .3 at 99/50, where the paper has .00 and .39. Dec-CaCE errs to the high side, EncDec-CaCE to the low
side, as in the paper: part of the colour is in the code, where setting the condition does not reach it. Both scatter
far more between trainings of the VAE than their own Monte Carlo error says. TCAV is that of the first layer; nearer
to the answer it scatters too (99/50, second layer: {second}).

Slips of that lecture: TCAV of a network that does not mind the colour is said to be 0, but a share of derivatives
that are as often up as down is one half (the table itself has .76); 0 would mean that red always pushes down. ConExp
is written with f(l) for f(I). A calibrated classifier has a ConExp of at most .20, .98, .96 and .65 in the four rows;
the table's .21, 1.00, .97 and .69 are those of answers rather than probabilities, or of one that overdoes the colour.
"""

SCENES = """\
## The scenes

The same on the built-in network, with the factor drawn by chance for every picture. "Agreement" is the warning that
belongs to the two estimates: pictures of 96 x 96 px drawn by a VAE that is learned on a CPU in a minute are too
blurred for this network, and what it answers to them is no estimate of anything. Intervene where you can.
"""


def render_page() -> str:
    """Render the whole page."""
    told = json.loads(RESULTS.read_text(encoding="utf-8"))
    result = told["result"]
    return "\n".join(
        [
            HEAD,
            BARS.format(seeds=result["seeds"]),
            *_bars(result["bars"]),
            "",
            _reading(result["bars"]),
            *(_scenes(result) if "scenes" in result else []),
        ]
    )


def _reading(found: dict[str, Any]) -> str:
    return READING.format(second=_ours(found["99-50"]["tcav features.3"]))


def _bars(found: dict[str, Any]) -> list[str]:
    head = [
        "| red, horizontal / vertical | best observer | by intervention | Dec-CaCE | EncDec-CaCE | ConExp | TCAV |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = []
    for name, paper in PAPER.items():
        cells = [f"{theirs:.2f}; {_ours(found[name][ours])}" for theirs, ours in zip(paper, COLUMNS, strict=True)]
        shares = " / ".join(f"{share} %" for share in name.split("-"))
        rows.append(f"| {shares} | {found[name]['best_causal']:.2f} | {' | '.join(cells)} |")
    return head + rows


def _scenes(result: dict[str, Any]) -> list[str]:
    head = [
        "| effect | by intervention | ConExp | Dec-CaCE | EncDec-CaCE | agreement |",
        "|---|---|---|---|---|---|",
    ]
    columns = ("causal", "observed", "decoded", "reencoded", "agreement")
    rows = [
        f"| {factor}: {found['value']} against {found['against']}, on {found['class']} | "
        f"{' | '.join(_ours(found[name]) for name in columns)} |"
        for factor, found in result["scenes"].items()
    ]
    return [SCENES, *head, *rows, ""]


def _ours(cell: dict[str, float]) -> str:
    return f"{cell['mean']:.2f} ± {cell['error']:.2f}"
