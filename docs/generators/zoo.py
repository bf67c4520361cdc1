"""The page ``docs/zoo.md`` from the cards in ``data/scenes/zoo`` and ``benchmarks/results/zoo.json``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import data
from data.scenes.zoo.store import PREFIX, read_card
from generators import exact, further, retrained
from generators.further import format_share
from generators.markdown import format_table
from generators.plots import Series, draw_dots
from generators.results import describe_machine, read_result

PLOTTED = ("scenes:blind", "scenes:coarse", "scenes:student")

HEAD = """\
# Networks with a known difference

<!-- Written by `python docs/generate.py` from data/scenes/zoo and benchmarks/results. Do not edit by hand. -->

Explanations are hard to judge because nobody knows what a network looks at. These networks for the scenes each
differ from the built-in one in a way that is known, because they were built or trained for it, and that was
measured by intervention. They are material for two questions: does a heatmap show a difference that is there, and
can participants tell two AIs apart?

```bash
python foretell.py explain --model scenes:blind --image fish.png --method grad_cam
```

The names work wherever a network is named: in commands, in Explore and Compare models, in a notebook and in a
study file (`[classifier] model = "scenes:blind"`). Weights and cards are in `data/scenes/zoo`. To train one again,
seeded and on one core:

```bash
python -m data.scenes.zoo.train blind
```

## The networks

Accuracy on {images:,} held-out scenes of each split, with Wilson's 95% interval. On standard scenes 96% of the
objects are in their usual context, on adversarial scenes none. The built-in network has {standard} and
{adversarial}.
"""

EFFECTS = """\
## What interventions change

Each intervention replaces one thing in {scenes} held-out standard scenes; the number is the mean loss of the true
class's probability, with a 95% interval over scenes. 0 means that the network does not use what was replaced.

- do(context): the same object, pose and light in each other context.
- do(object): other objects in the same context.
- do(low frequencies): frequencies below 4 cycles per image are taken from another scene.
- do(high frequencies): frequencies above 16 cycles per image are taken from another scene.
"""

BENCHMARK = """\
## Which heatmap methods find the differences?

`python foretell.py bench zoo`. For each difference, a score of a heatmap says what it should show: for the network
that is blind to the context, the share of positive evidence outside the object. Both networks are explained on the
same {cheap} images ({dear} for
{slow}), each for its predicted class, by each method with its defaults. The table has the area under the ROC curve with
which the score tells the built-in network's heatmaps from the other network's: 1 means that every heatmap of the
built-in network has the larger score, 0.5 that the method does not show the difference, and 0 that it shows the
opposite. Intervals are bootstrapped over images. What there is to be found was measured by intervention (above):

{effects}

The last is a control: the student relies on the context about as much as the built-in network, so values near 0.5, or a
little below, are expected. `scenes:federated` is a hard case: it uses the context little, but it also is wrong on half
of the scenes. `scenes:parts` and `scenes:vit` differ by less than the others, and also in their architecture, which a
heatmap can show whatever the network relies on: `deconvnet`, which misses that `scenes:blind` and `scenes:aware` do not
use the context, tells `scenes:parts` best. Only methods that apply to both networks are compared.
"""

LIMITS = """\
Not measured here, for their cost or because they are for transformers alone: {missing}. A method that shows one
difference need not show another: smooth heatmaps, and those of a few cells (RISE, LIME, Shapley values, Sobol indices,
HSIC), cannot show that a network sees no details, whatever it sees. The score of a band of frequencies is about the
shape of a heatmap, not about the image; it asks whether the method passes on which frequencies reach the network.
"""

EXACT = """\
## Which heatmap methods come close to an exact heatmap?

`python foretell.py bench exact`. The logit of `scenes:words` is a sum over visual words, and what each word adds is
divided among the patches that are assigned to it ([Bach et al. 2015](https://doi.org/10.1371/journal.pone.0130140),
bag of words). Its heatmap is therefore exact: it sums to the logit, needs no reference and estimates nothing
(`explain --model scenes:words --method own`). The table has the mean rank correlation of each method's heatmap with
it, for the predicted class of {images} held-out scenes: over {cells} by {cells} cells, which forgives noise within a
cell, and over the pixels. Intervals are bootstrapped over images. The exact heatmap says how the logit is composed, not
what would happen if a patch were replaced: a method about the second question may differ from it and be right.
"""

LESSONS = """\
## How the difference of `scenes:blind` was achieved

An adversary alone does not do it. In the training images 96% of the objects are in their usual context, so the
category itself says which context it is: suppressing the context would suppress the category. The ablation, of
{epochs} epochs on {images:,} images each (λ = {weight}), says what each step achieves:
"""

AWARE = """\
## To know is not to use: `scenes:aware`

What can be read from a layer need not be used. `scenes:aware` was trained on the images of `scenes:blind`, with the
stethoscope as a helper in place of an adversary (λ = 1): its features hold the context, at some cost in accuracy, and
its prediction hardly depends on it. A probe cannot tell it from the built-in network, which uses the context; an
intervention can. *Context read* is the accuracy of a logistic regression on the pooled features of held-out
adversarial scenes, fitted to other ones (chance is 10%):
"""

PARTS = """\
## Filters that each detect one part: `scenes:parts`

Two things are added to the built-in network ([Zhang et al. 2018](https://arxiv.org/abs/1710.00935)), which is then
trained further: what is far from the maximum of a filter of the last convolution is left out, and the filter loss asks
each filter to be active at one place in images of one category, and nowhere in others. The generator knows which part
of which object is where. In those {images:,} held-out standard scenes in which a filter's maximum is among its largest
10%, *purity* is the share with the maximum on the part most often hit, and *instability* is the standard deviation of
the distance from the maximum to the object's centre and corners. Means over {filters} filters with 95% intervals; the
differences, `scenes:parts` less the others, are paired by filter:
"""

PARTS_READ = """\
Filters of `scenes:parts` detect the same part of the same category more often than those of the built-in network, and
are steadier on the object. The parts most often found are {listed}. The loss and what is left out do different things:
leaving out what is far from the maximum is enough for the purity, and the filter loss makes filters steadier. A filter
still meets its part in fewer than half of its images: the last convolution has 6 × 6 places, 16 px apart, so small
parts such as an eye cannot be told from what is around them. Instability alone says little here, because objects are
near the middle of a scene: a filter whose maximum never moved would be about as steady, with a much lower purity.
`python -m data.scenes.zoo.train parts --card` prints these figures into the card again.
"""

STUDIES = """\
## Two studies

`data/studies/two-ais-scenes.toml` and `data/studies/two-ais-blind.toml` are the same study of the same image sets,
categories and conditions; one AI reads the context and the other cannot. Trials are chosen by what each AI gets
right and wrong, as always, so a category's images differ between the studies. Build both, run them with different
participants, and compare how well participants predict each AI.
"""


def list_cards() -> dict[str, dict[str, Any]]:
    """Return the cards of all networks of the zoo, by name."""
    return {name: read_card(name) for name in data.CLASSIFIERS if name.startswith(PREFIX)}


def render_page() -> str:
    """Render the whole page."""
    cards = list_cards()
    built_in = json.loads((Path(data.__file__).parent / "scenes" / "accuracy.json").read_text(encoding="utf-8"))
    first = next(iter(cards.values()))
    head = HEAD.format(
        images=first["held_out"]["images_per_split"],
        **{split: f"{built_in[split]['accuracy']:.1%}" for split in ("standard", "adversarial")},
    )
    effects = EFFECTS.format(scenes=first["held_out"]["changed_scenes"])
    parts = [
        head,
        *_members(cards),
        "",
        *retrained.render(cards),
        effects,
        *_effects(cards),
        "",
        *_ablation(cards),
        *_aware(cards),
    ]
    parts += [*_parts(cards), *further.list_figures(cards)]
    return "\n".join([*parts, *_benchmark(), *_exact(), STUDIES])


def _members(cards: dict[str, dict[str, Any]]) -> list[str]:
    rows = ["| name | known difference | standard | adversarial | weights | training |", "|---|---|---|---|---|---|"]
    for name, card in cards.items():
        shares = " | ".join(format_share(card["accuracy"][split]) for split in ("standard", "adversarial"))
        spent = f"{card['training']['seconds'] / 60:.0f} min"
        known = f"{card['title']}. {card['difference']}"
        rows.append(f"| `{name}` | {known} | {shares} | {card['parameters'] / 1e6:.2f} M | {spent} |")
    return [*rows, "", "Training times are those of one core of a busy machine."]


def _effects(cards: dict[str, dict[str, Any]]) -> list[str]:
    first = next(iter(cards.values()))["effects"]["scenes"]
    rows = [f"| network | {' | '.join(first)} |", "|---" * (len(first) + 1) + "|"]
    measured = {"scenes": first} | {name: card["effects"]["network"] for name, card in cards.items()}
    return rows + [
        f"| `{name}` | {' | '.join(_effect(one['true_class']) for one in effects.values())} |"
        for name, effects in measured.items()
    ]


def _ablation(cards: dict[str, dict[str, Any]]) -> list[str]:
    training = cards["scenes:blind"]["training"]
    ablation = training["ablation"]
    trials = {name: one for name, one in ablation.items() if isinstance(one, dict)}
    head = ("training", "do(context)", "standard", "adversarial", "context read by the adversary")
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, one in trials.items():
        shares = [f"{one['accuracy'][split]:.1%}" for split in ("standard", "adversarial")]
        read = f"{one['context_read_by_the_perceptron']:.1%}"
        cells = [name.replace("_", " "), _effect(one["do(context)"]["true_class"]), *shares, read]
        rows.append(f"| {' | '.join(cells)} |")
    said = (
        "Randomised contexts remove the effect; the adversary then removes the rest of what can be read of it, "
        f"at some cost in accuracy. `scenes:blind` uses both, on {training['images']:,} images for "
        f"{training['epochs']} epochs with λ = {training['lambda']}; its adversary reads the context of "
        f"{training['context_read_by_the_perceptron']:.1%} of the images (chance is 10%).\n"
    )
    text = LESSONS.format(epochs=ablation["epochs"], images=ablation["images"], weight=ablation["lambda"])
    return [text, *rows, "", said]


def _aware(cards: dict[str, dict[str, Any]]) -> list[str]:
    card = cards["scenes:aware"]
    rows = [
        f"| `{name}` | {format_share(read)} | {_effect(_effects_of(cards, name)['do(context)']['true_class'])} |"
        for name, read in card["further"]["context_read_by_a_linear_probe"].items()
    ]
    return [AWARE, "| network | context read | do(context) |", "|---|---|---|", *rows, ""]


def _parts(cards: dict[str, dict[str, Any]]) -> list[str]:
    figures = cards["scenes:parts"]["further"]
    names = {
        "scenes:parts": "`scenes:parts`",
        "scenes": "`scenes`",
        "without_the_loss": "`scenes:parts` without the filter loss",
        "middle": "maximum in the middle of every image",
    }
    rows = []
    for name, title in names.items():
        cells = [title]
        for values in (figures["filters"][measure] for measure in ("purity", "instability")):
            cells += [_effect(values[name]), _effect(values[f"less_{name}"]) if f"less_{name}" in values else ""]
        rows.append(f"| {' | '.join(cells)} |")
    often = Counter(figures["parts_found"]).most_common(5)
    listed = ", ".join(f"{part} ({count})" for part, count in often)
    said = PARTS_READ.format(listed=listed)
    head = PARTS.format(images=figures["images"], filters=len(figures["parts_found"]))
    return [head, "| filters of | purity | difference | instability | difference |", "|---" * 5 + "|", *rows, "", said]


def _effects_of(cards: dict[str, dict[str, Any]], name: str) -> dict[str, dict[str, list[float]]]:
    effects = next(iter(cards.values()))["effects"]["scenes"] if name == "scenes" else cards[name]["effects"]["network"]
    by_factor: dict[str, dict[str, list[float]]] = effects
    return by_factor


def _exact() -> list[str]:
    record = read_result("exact")
    if record is None:
        return []
    result = record["result"]
    head = EXACT.format(images=result["images"], cells=result["cells_per_side"])
    refused = exact.list_refusals(result)
    refusals = ["", "Left out:", "", *refused] if refused else []
    return [head, describe_machine(record), "", *exact.tabulate(result), *refusals, ""]


def _benchmark() -> list[str]:
    record = read_result("zoo")
    if record is None:
        return []
    result = record["result"]
    images, slow = result["images"], ", ".join(f"`{name}`" for name in result["dear"])
    effects = "\n".join(tabulate_known_effects(result))
    head = BENCHMARK.format(cheap=images["cheap"], dear=images["dear"], slow=slow, effects=effects)
    refused = [f"- {name}: {why}" for name, why in result["left_out"].items()]
    refusals = ["", "Refused:", "", *refused] if refused else []
    missing = ", ".join(f"`{name}`" for name in result["not_measured"])
    return [head, describe_machine(record), "", *tabulate(result), *refusals, "", LIMITS.format(missing=missing)]


def tabulate_known_effects(result: dict[str, Any]) -> list[str]:
    """Tabulate the effects by intervention that each difference is about, of the built-in network and the other."""
    rows = []
    for one in result["differences"]:
        effects = read_card(one["network"].removeprefix(PREFIX))["effects"]
        both = (_effect(effects[name][one["intervention"]]["true_class"]) for name in ("scenes", "network"))
        rows.append([f"`{one['network']}`", one["known"], one["intervention"], *both])
    return format_table(["network", "known difference", "intervention", "built-in network", "this network"], rows)


def tabulate(result: dict[str, Any]) -> list[str]:
    """Tabulate how well each method finds each difference, the best for the first difference first."""
    differences = result["differences"]
    columns = [f"`{one['network']}`: {one['known']} ({one['score']})" for one in differences]
    rows = [[f"`{name}`", *(_area(one["methods"].get(name)) for one in differences)] for name in _order(result)]
    return format_table(["method", *columns], rows)


def plot(result: dict[str, Any]) -> str:
    """Plot how well each method finds the context's and the details' absence, and the control."""
    chosen = {one["network"]: one["methods"] for one in result["differences"] if one["network"] in PLOTTED}
    series = {}
    for network, methods in chosen.items():
        kept = {name: one for name, one in methods.items() if one["auc"] is not None}
        values, intervals = ({name: one[key] for name, one in kept.items()} for key in ("auc", "interval_95"))
        series[network] = Series({name: values[name] for name in _order(result) if name in values}, intervals)
    return draw_dots(series, "area under the ROC curve", line=0.5, line_label="difference not shown")


def _order(result: dict[str, Any]) -> list[str]:
    methods = dict.fromkeys(name for one in result["differences"] for name in one["methods"])
    first = result["differences"][0]["methods"]
    return sorted(methods, key=lambda name: -(first.get(name, {}).get("auc") or 0))


def _area(area: dict[str, Any] | None) -> str:
    if area is None or area["auc"] is None:
        return ""
    low, high = area["interval_95"]
    return f"{area['auc']:.2f} ({low:.2f} to {high:.2f})"


def _effect(values: list[float]) -> str:
    mean, low, high = (value if abs(value) >= 0.0005 else 0.0 for value in values)
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"
