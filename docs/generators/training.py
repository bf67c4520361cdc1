"""The page ``docs/training.md``, and table and figure of ``benchmarks/results/training.json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generators.benchmark_tables import Result
from generators.markdown import format_table
from generators.plots import draw_lines
from generators.results import describe_machine, read_result

NAMES = {
    "true": "true labels",
    "corrupted": "half of the labels drawn again",
    "random_labels": "random labels",
    "shuffled": "pixels moved alike in all images",
    "random_pixels": "pixels moved in each image",
    "gaussian": "pixels drawn at random",
}
MEASURES = {
    "training": "training accuracy",
    "held_out": "held-out accuracy",
    "critical": "critical sample ratio",
    "gini": "Gini coefficient of the loss sensitivity",
}
MEMORISED = 0.95

HEAD = """\
# How a network learns

<!-- Written by `python docs/generate.py` from benchmarks/results/training.json. Do not edit by hand. -->

A network that is right on its training images has learned what images share, or has memorised them. This page is
the record of a training that shows both, after [Zhang et al. 2017](https://arxiv.org/abs/1611.03530) and [Arpit et
al. 2017](https://arxiv.org/abs/1706.05394). To make one of your own network and images, in the same units, with a
figure on the Explore page (**Layers**, topic **Training**, question **Memorisation**):

```bash
python foretell.py layers memorisation --setting split=standard --setting size=480 --out training
```

The network's architecture is trained again from random weights, on half of the images of each class; the others are
held out. Every layer with parameters is drawn again and trained, a fixed filter too. The network itself is not
changed. It takes as long as a training: with the built-in network and 200 scenes, minutes for each kind of data.

| column | meaning |
|---|---|
| `training`, `training_true` | share of training images predicted to have the label trained on, and the true one |
| `held_out` | accuracy on held-out images, by their true labels; pixels are modified like those of training images |
| `coarse`, `fine` | accuracy on the low frequencies of held-out images (up to `cut` cycles), and on the rest |
| `critical` | share of held-out images with another prediction within `radius` grey levels of every pixel |
| `sensitivity` | mean over training images of ‖∂L/∂x‖₁, the loss's gradient by the image, over the rows so far |
| `gini` | its Gini coefficient: 0 if the loss is as sensitive to every image, near 1 if to a few alone |
| `note` | warns of a training that was too short to compare |

The critical sample ratio is a lower bound, by Langevin adversarial sample search. Intervals of shares are Wilson's,
over images. They do not say how much another training would differ: try another `--seed`.
"""

RECORD = """\
## What the built-in network learns of six kinds of data

`python foretell.py bench training`: the built-in network's architecture, reading scenes at {side} px, with {trained}
training and {held} held-out scenes, {epochs} epochs, and one training for each kind of data, from the same random
weights. Chance is {chance:.1%}.
"""

READ = """\
How to read it: random labels, and pixels that are drawn at random, leave nothing to learn for other images. Their
training accuracy is memory alone: held-out accuracy is near chance, nearly every image is critical, and the loss is
about as sensitive to every training image (a low Gini coefficient). With true labels fewer images are critical, and
the loss is more sensitive to some images than to others. Pixels moved in each image keep their colours, from which
a network still learns. With half of the labels drawn again, {early_true:.0%} of the training images have their true
label after the first epoch and {early:.0%} the one trained on; at the end {late_true:.0%} and {late:.0%}. What
images share is learned first, and the rest is memorised. This is one training of each kind on few images, and the
critical sample ratio of a small network rises with true labels too.
"""

FREQUENCY = """\
## Which frequencies are learned first

Of the scenes with true labels the network has, after {early} epochs, an accuracy of {coarse:.0%} on the low frequencies
alone and of {fine:.0%} on the high ones, and after {last} epochs {last_coarse:.0%} and {last_fine:.0%}. No training
image lacks the low frequencies, so this says what the network relies on, not all that it could learn. The two ends are
networks that see [nothing but low or high frequencies](zoo.md): accuracy on scenes at 96 px, whole, with only what is
up to {cut:g} cycles per image, and with only the rest.
"""

WAVES = """\
Of a function that is a sum of waves of the same amplitude, a network of ReLUs learns the low frequencies first
([Rahaman et al. 2019](https://arxiv.org/abs/1806.08734), experiment 1): the number of training steps until half of
a wave is learned, for {seeds} random seeds (`core.training.spectrum.record_waves`: 200 points, 5 layers of 128
units). A wave at step 0 was there by chance in the random weights.
"""


def render_page() -> str:
    """Render the whole page."""
    record = read_result("training")
    if record is None:
        return HEAD
    result = record["result"]
    rows = result["record"]
    held = result["images"] - result["images"] // 2
    head = RECORD.format(
        trained=result["images"] // 2, held=held, epochs=result["epochs"], chance=rows[0]["chance"], side=result["side"]
    )
    figure = "![Record of six trainings](../benchmarks/figures/training.svg)"
    notes = [f"- {row['note']}" for row in rows if row["note"]]
    parts = [
        HEAD,
        head,
        describe_machine(record),
        "",
        *tabulate(result),
        "",
        figure,
        "",
        *notes,
        *([""] if notes else []),
    ]
    parts += [_read(rows), _describe_order(rows, result["cut"]), *_tabulate_ends(result), ""]
    return "\n".join([*parts, WAVES.format(seeds=len(result["waves"])), *_tabulate_waves(result), ""])


def tabulate(result: Result) -> list[str]:
    """Tabulate each training: when it had memorised its labels, and what it ended with."""
    head = ["data", f"epochs to {MEMORISED:.0%}", "training", "held out", "highest held out", "critical", "Gini"]
    rows = []
    for kind, name in NAMES.items():
        own = _select(result["record"], kind)
        last = own[-1]
        best = max(own, key=lambda row: row["held_out"])
        rows.append([name, _first(own, "training", MEMORISED), f"{last['training']:.0%}", _share(last, "held_out"),
                     f"{best['held_out']:.0%} (epoch {best['epoch']})", _share(last, "critical"),
                     f"{last['gini']:.2f}"])  # fmt: skip
    return format_table(head, rows)


def plot(result: Result) -> str:
    """Plot the measures by epoch."""
    panels = {}
    for measure, title in MEASURES.items():
        own = {name: _select(result["record"], kind) for kind, name in NAMES.items()}
        panels[title] = {
            name: ([row["epoch"] for row in rows], [row[measure] for row in rows]) for name, rows in own.items()
        }
    return draw_lines(panels, "epochs")


def _read(rows: Sequence[dict[str, Any]]) -> str:
    """Describe the trainings with the figures of the corrupted labels."""
    own = _select(rows, "corrupted")
    first, last = own[1], own[-1]
    return READ.format(
        early_true=first["training_true"], early=first["training"], late_true=last["training_true"],
        late=last["training"],
    )  # fmt: skip


def _describe_order(rows: Sequence[dict[str, Any]], cut: float) -> str:
    own = _select(rows, "true")
    early, last = own[len(own) // 2], own[-1]
    return FREQUENCY.format(
        early=early["epoch"], coarse=early["coarse"], fine=early["fine"], last=last["epoch"],
        last_coarse=last["coarse"], last_fine=last["fine"], cut=cut,
    )  # fmt: skip


def _tabulate_ends(result: Result) -> list[str]:
    rows = [
        [f"`{row['network']}`", *(f"{row[part]:.0%}" for part in ("whole", "coarse", "fine"))] for row in result["ends"]
    ]
    return format_table(["network", "whole", "low frequencies", "high frequencies"], rows)


def _tabulate_waves(result: Result) -> list[str]:
    rows = []
    for i, frequency in enumerate(result["waves"][0]["frequencies"]):
        orders = [wave["order"][i] for wave in result["waves"]]
        last = result["waves"][0]["steps"][-1]
        rows.append([str(frequency), ", ".join(f"more than {last:,}" if one is None else f"{one:,}" for one in orders)])
    return format_table(["cycles", "steps"], rows)


def _select(rows: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def _first(rows: Sequence[dict[str, Any]], measure: str, least: float) -> str:
    reached = [row["epoch"] for row in rows if row[measure] >= least]
    return str(reached[0]) if reached else f"more than {rows[-1]['epoch']}"


def _share(row: dict[str, Any], measure: str) -> str:
    return f"{row[measure]:.0%} ({row[f'{measure}_low']:.0%} to {row[f'{measure}_high']:.0%})"
