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
VAE = """\
## Images that cannot be changed

`concepts --by vae` estimates the effect of a concept where no generator can change an image. A conditional VAE learns
to draw the images from a code, the value of the concept and the class; the effect is what the prediction does when the
value alone changes. The concept is a factor of a set that records each image's value, or a folder of images with it
(`--concept`) and a folder without it (`--random`). Where the images of these folders are in one folder per class, the
VAE is told the class too; without, whatever goes with the concept counts as its effect, and the table says so. Explore
has the same under **Classes and units**, **Draw a concept by a VAE**, with image sets of the workspace for folders.

The network `bars` is the check: it was trained where 98% of the horizontal and 2% of the vertical bars are red, and red
in place of green adds .526 (.510 to .542) to its probability of "horizontal" by intervention, where the best observer
has .500 (`data/bars/card.json`; `python -m data.bars.train` trains it again). It is right in 98.2% (97.5% to 98.7%) of
2,000 held-out bars like those of its training, and in 73.2% (71.2% to 75.1%) where the colour is drawn at random. It is
opened by its name in commands, study files and notebooks; the pages, which have no images for it, leave it out.

```bash
python foretell.py concepts --by vae --model bars --set bars --setting size=4000 --target horizontal --concept colour
```

| images | code | `effect` (95% interval) | Dec-CaCE | EncDec-CaCE | as observed | shown |
|---|---|---|---|---|---|---|
| 60% / 40% red, the default | 6 | 0.49 (0.25 to 0.74) | 0.67 | 0.46 | 0.62 | 96% |
| 98% / 2% red | 6 | 0.34 (0.04 to 0.63) | 0.62 | 0.26 | 0.96 | 96% |
| 98% / 2% red, `--latent 16` | 16 | 0.19 (-0.18 to 0.56) | 0.64 | 0.13 | 0.96 | 63% |

- `effect` draws, under both values, codes that images have, exchanged among the images at random. Dec-CaCE draws codes
  from the prior, which the VAE's own codes do not match (their standard deviation is 2 to 3, not 1): its images are
  unlike any bar, and its effect is too large.
- The interval describes a single training (mean ± t · standard deviation over 5 VAEs, which begin with other weights
  and each leave out another quarter of the images). It covers what training changes, and nothing that all VAEs have in
  common. It is wide: where colour and class nearly coincide, little tells the VAE what the colour alone changes.
- `shown` is the share of the images drawn with the concept in which a linear reader of the images sees it. A larger
  code holds the colour itself, so setting the condition changes nothing; below 80% a sentence says that the effect is
  understated.
- Reconstructions must keep the prediction of 80% of the held-out images, and of more than one class alone would give:
  here they keep 98% or more. On the scenes (`--target fish --concept context --setting size=1200 --epochs 10 --latent
  32`) they keep 14% (11% to 19%), and of ResNet-20 on 3,334 test images of CIFAR-10, with the bluish ones as the folder
  of the concept, 18% (16% to 21%): the command refuses. Small VAEs draw simple images.
- Where the set can be changed, the effect by intervention is in the table too, and a sentence says when it is outside
  the interval. Intervene where you can.
"""

COLUMNS = ("causal", "decoded", "reencoded", "observed", "tcav features.1")

HEAD = """\
# What a network relies on, in human concepts

<!-- Written by `python docs/generate.py` from benchmarks/results/concepts.json. Do not edit by hand. -->

A heatmap shows where. Whether a network relies on the sea or on the fins is a question about concepts. There are two
ways to ask it, and they are different questions.

| | TCAV | causal concept effect, CaCE |
|---|---|---|
| paper | Kim et al. 2018, arXiv:1711.11279 | Goyal et al. 2019, arXiv:1907.07165 |
| question | Does the class's logit increase along the concept? | How much does changing the concept change the class? |
| needs | images of the concept and others | images that can be generated with another value |
| command | `--concept FOLDER --random FOLDER` | `--concept context=sea`, or `--concept context` for all values |
| Python | `core.concepts.tcav.tcav` | `core.concepts.effect` |

TCAV's p-value compares the concept with random concepts; the published t test finds concepts in noise. Interventions
work on `scenes` (`context`, `object`, `colour`), `bars` (`colour`, `orientation`) and `coloured_mnist` (`colour`).
ConExp is the effect as observed, without intervention: where the concept is correlated with the class, the two differ.

Where no image can be generated, a conditional VAE can replace the generator
([below](#images-that-cannot-be-changed)). In the tables, Dec-CaCE generates random images under both values, and
EncDec-CaCE generates an image's own code under both. `agreement` is the share of images that the classifier still
assigns to the same class when the VAE generates them; near chance, the estimates are meaningless.
"""

BARS = """\
## The paper's bars

Horizontal and vertical bars, red or green; the colour is correlated with the class in four ways. Each cell gives the
paper's number, then ours with its standard error over {seeds} random seeds (data, network and VAE). The effect is on
the probability of "horizontal", of red against green. The paper's numbers are those printed in a lecture about it,
without errors and without the details of the images or the training. We chose one constant: how often a bar is
nearly square. With it, Bayes' rule gives the effect of the colour in closed form (the column "best observer").
"""

READING = """\
- Observation (ConExp) attributes nearly all of the class to the colour. TCAV says that the colour matters, not how
  much. An intervention says how much: in all rows the trained network is within .02 of the best observer.
- The paper's first and last rows fit no best observer: an effect of .5 at 98/2 implies about .05 at 60/40 and .3 at
  99/50, where the paper has .00 and .39.
- Dec-CaCE is too high and EncDec-CaCE too low, as in the paper: part of the colour is in the code, where setting the
  condition does not reach it. Both vary far more between trainings of the VAE than their Monte Carlo error says.
- TCAV is computed on the first layer; closer to the output it varies more (99/50, second layer: {second}).
- Errors in that lecture: TCAV of a network that ignores the colour is one half, not 0 (the table itself has .76).
  ConExp is written with f(l) for f(I). A calibrated classifier has a ConExp of at most .20, .98, .96 and .65 in the
  four rows; the table's .21, 1.00, .97 and .69 belong to class labels rather than probabilities, or to an
  overconfident network.
"""

SCENES = """\
## The scenes

The same on the built-in network, with the factor drawn at random for every image. Images of 96 × 96 px from a VAE
trained on a CPU in a minute are too blurred for this network, as their agreement shows, so the last two estimates mean
nothing here. Intervene where you can.
"""


def render_page() -> str:
    """Render the whole page."""
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    result = record["result"]
    return "\n".join(
        [
            HEAD,
            BARS.format(seeds=result["seeds"]),
            *_bars(result["bars"]),
            "",
            _reading(result["bars"]),
            *(_scenes(result) if "scenes" in result else []),
            VAE,
        ]
    )


def _reading(record: dict[str, Any]) -> str:
    return READING.format(second=_ours(record["99-50"]["tcav features.3"]))


def _bars(record: dict[str, Any]) -> list[str]:
    head = [
        "| red, horizontal / vertical | best observer | by intervention | Dec-CaCE | EncDec-CaCE | ConExp | TCAV |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = []
    for name, paper in PAPER.items():
        cells = [f"{theirs:.2f}; {_ours(record[name][ours])}" for theirs, ours in zip(paper, COLUMNS, strict=True)]
        shares = " / ".join(f"{share}%" for share in name.split("-"))
        rows.append(f"| {shares} | {record[name]['best_causal']:.2f} | {' | '.join(cells)} |")
    return head + rows


def _scenes(result: dict[str, Any]) -> list[str]:
    head = [
        "| effect | by intervention | ConExp | Dec-CaCE | EncDec-CaCE | agreement |",
        "|---|---|---|---|---|---|",
    ]
    columns = ("causal", "observed", "decoded", "reencoded", "agreement")
    rows = [
        f"| `{factor}={record['value']}` against `{record['against']}`, on `{record['class']}` | "
        f"{' | '.join(_ours(record[name]) for name in columns)} |"
        for factor, record in result["scenes"].items()
    ]
    return [SCENES, *head, *rows, ""]


def _ours(cell: dict[str, float]) -> str:
    return f"{cell['mean']:.2f} ± {cell['error']:.2f}"
