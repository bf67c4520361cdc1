"""Export all heatmaps in one file, and the program that reproduces them."""

from __future__ import annotations

import io
import json
from pprint import pformat

import numpy as np
import torch

from dashboard.explore.methods import FOLDER
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable
from study.workspace.workspace import home

SCRIPT = '''"""Reproduce the heatmaps of maps.npz. Run it in the folder of Foretell: python {name}"""

from pathlib import Path

import numpy as np
import torch

{imports}
from core.attribution.outside.external import ImageRecord, reads_heatmaps
from core.attribution.outside.opening import open_method
from core.drawing.views import view
from study.network.sources import open_classifier

torch.set_num_threads({threads})  # another number of threads may change the last digit

CLASSIFIERS = {{
{classifiers}
}}
FINGERPRINTS = {{
{fingerprints}
}}
IMAGES = {{
{images}
}}
MAPS = {maps}

for name, network in CLASSIFIERS.items():
    if network.fingerprint != FINGERPRINTS[name]:
        raise SystemExit(f"{{name}} is not the network of these heatmaps: its weights or its structure differ.")

made = []
for classifier, image, method, target, seed, parameters in MAPS:
    network = CLASSIFIERS[classifier]
    called = open_method(method, Path({methods!r}))
    inputs = network.preprocess(IMAGES[image])
    found_by = {{"records": [ImageRecord.of(view(network, IMAGES[image], inputs), image)]}}
    explanation = called(
        network,
        inputs[None],
        [target],
        generator=torch.Generator().manual_seed(seed),
        **(found_by if reads_heatmaps(called) else {{}}),
        **parameters,
    )
    made.append(explanation.map[0].numpy())
    print(method, image, network.categories[target], explanation.certificates[0].probability)

np.savez("again.npz", **{{f"map_{{k}}": one for k, one in enumerate(made)}})
'''


def build_npz(table: HeatmapTable) -> bytes:
    """Write every computed heatmap as ``map_<k>`` (H, W) float32, its standard error, if any, as ``error_<k>``.

    ``facts`` is a JSON text with one entry per heatmap: where it comes from, its key, its zero, its certificate.
    """
    arrays, facts = {}, []
    for k, (column, cell) in enumerate(_list_computed_cells(table)):
        assert cell.explanation is not None
        arrays[f"map_{k}"] = cell.explanation.map[0].numpy()
        if cell.explanation.error is not None:
            arrays[f"error_{k}"] = cell.explanation.error[0].numpy()
        where = {
            "image": column.image.chosen.name,
            "classifier": column.image.opened_from[0],
            "category": cell.request.classifier.categories[cell.request.target],
            "key": cell.request.key,
            "zero": float(cell.explanation.zeros[0]),
        }
        facts.append(where | cell.explanation.certificates[0].as_dict())
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, facts=np.array(json.dumps(facts)), **arrays)
    return buffer.getvalue()


def build_script(table: HeatmapTable, name: str) -> str:
    """Write a Python program that reproduces the arrays of `build_npz`, bit for bit on the same machine."""
    made = _list_computed_cells(table)
    images = [column.image for column, _ in made]
    networks = {image.opened_from: image.classifier for image in images}
    maps = [
        (image.opened_from[0], image.chosen.name, r.method, r.target, r.seed, r.parameters)
        for image, r in zip(images, (cell.request for _, cell in made), strict=True)
    ]
    return SCRIPT.format(
        name=name,
        imports="\n".join(sorted({line for image in images for line in image.chosen.imports})),
        threads=torch.get_num_threads(),
        classifiers=_lines({name: f"open_classifier({name!r}, Path({str(base)!r}))" for name, base in networks}),
        fingerprints=_lines({name: repr(network.fingerprint) for (name, _), network in networks.items()}),
        images=_lines({image.chosen.name: image.chosen.code for image in images}),
        methods=str(home() / FOLDER),
        maps=pformat(maps, width=110, sort_dicts=False),
    )


def _list_computed_cells(table: HeatmapTable) -> list[tuple[HeatmapColumn, Cell]]:
    return [(column, cell) for column, cell in table.cells if cell.explanation is not None]


def _lines(pairs: dict[str, str]) -> str:
    return "\n".join(f"    {key!r}: {value}," for key, value in pairs.items())
