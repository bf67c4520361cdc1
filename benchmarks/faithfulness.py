"""Faithfulness of heatmaps: the pointing game, and the context's share against its measured effect.

``python -m benchmarks.faithfulness --real FOLDER``. The pointing game on photographs with boxes, against the middle of
the photograph and a random pixel (`benchmarks.pointing`); on scenes, the context's share of the evidence against
its share of the measured causal effect (`benchmarks.contexts`). Every method runs with its defaults. Rows are saved
one by one in ``--rows FILE``, so that an interrupted run resumes with the same arguments. ``--join FILE`` adds the
named ``--methods`` to a stored result, so that a new method does not take a run of all others.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.contexts import OUTPUTS, context_share, context_table, even_share, stage_scenes
from benchmarks.machine import arguments, hand_over, join_measured, note_join
from benchmarks.pointing import (
    chance,
    chance_anywhere,
    correct_for_all,
    is_centre_hit,
    is_hit,
    photographs,
    pointing_table,
)
from benchmarks.rows import Row, Rows
from core.attribution import METHODS
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.sources import load
from study.network.sources import open_classifier
from study.workspace.workspace import home

BUDGET = 20.0
"""Processor seconds that a method's first heatmap of an image may take, by default."""
PARTS = ("pointing", "contexts")
BY_METHOD = ("methods", "seconds_per_map", "left_out")
"""Entries of a part's result that have an entry for each method; the others depend on the images alone."""


class OverBudget(Exception):
    """A heatmap took longer than allowed."""


def main(words: Sequence[str] | None = None) -> None:
    """Read the arguments, compute missing rows, print the tables."""
    parser = arguments("faithfulness")
    parser.add_argument("--real", type=Path, default=os.environ.get("FORETELL_REAL"), help="folder of real networks")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated; all by default")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"comma-separated out of {', '.join(PARTS)}")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds a method's first heatmap may take")
    parser.add_argument("--images", type=int, default=0, help="photographs, the first ones; 0 is all")
    parser.add_argument("--scenes", type=int, default=200, help="scenes")
    parser.add_argument("--seed", type=int, default=0, help="of the scenes and of random methods")
    parser.add_argument("--rows", type=Path, help="file of the rows; in the workspace by default")
    parser.add_argument("--join", type=Path, help="a stored result on the same images, to add the methods to")
    given = parser.parse_args(words)
    unknown = set(given.parts.split(",")) - set(PARTS)
    if unknown or (given.real is None and "pointing" in given.parts):
        parser.error(f"--parts takes {', '.join(PARTS)}; pointing needs --real FOLDER or FORETELL_REAL.")
    if given.join is None:
        hand_over("faithfulness", given, lambda: measure(given))
        return
    join_measured(given, lambda: measure(given), join_results)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure both tables and the skipped methods, JSON-ready."""
    parts: dict[str, Callable[[argparse.Namespace, Path], dict[str, Any]]]
    parts = {"pointing": _pointing, "contexts": _contexts}
    path = given.rows or home() / "benchmarks" / "faithfulness.jsonl"
    return {name: parts[name](given, path) for name in given.parts.split(",")}


def join_results(stored: dict[str, Any], measured: dict[str, Any], machine: dict[str, Any]) -> dict[str, Any]:
    """Add the methods of ``measured`` to those of a stored result, and note when; p is corrected for all of them.

    Raises
    ------
    SystemExit
        The images are not the same.
    """
    result = dict(stored["result"])
    for part, new in measured.items():
        old = result[part]
        differing = [name for name in old if name not in BY_METHOD and old[name] != new[name]]
        if differing:
            raise SystemExit(f"The stored result is of other images: {', '.join(differing)} of {part} differ.")
        both = {name: old[name] | new[name] for name in BY_METHOD}
        both["left_out"] = {name: why for name, why in both["left_out"].items() if name not in both["methods"]}
        result[part] = old | both
        if part == "pointing":
            correct_for_all(result[part]["methods"])
    methods = {part: list(new["methods"]) for part, new in measured.items()}
    return stored | {"machine": note_join(stored, machine, methods), "result": result}


def _pointing(given: argparse.Namespace, path: Path) -> dict[str, Any]:
    folder = Path(given.real) / "imagenet"
    classifier = load(f"{folder / 'mobilenet_v2.py'}:build")
    shown = photographs(folder / "pointing", classifier)[: given.images or None]
    work = [(one.name, one.x, one.target, lambda map_, one=one: {"hit": is_hit(one, map_)}) for one in shown]
    by_method, left_out = _rows("pointing", classifier, work, given, path)
    hits = {method: [row["hit"] for row in rows] for method, rows in by_method.items()}
    table = pointing_table(hits, *([ask(one) for one in shown] for ask in (is_centre_hit, chance, chance_anywhere)))
    return table | _summarise(by_method, left_out)


def _contexts(given: argparse.Namespace, path: Path) -> dict[str, Any]:
    classifier = open_classifier("scenes", Path.cwd())
    shown = stage_scenes(classifier, given.scenes, given.seed)
    work = [(one.name, one.x, one.target, lambda map_, one=one: {"share": context_share(one, map_)}) for one in shown]
    by_method, left_out = _rows("contexts", classifier, work, given, path)
    shares = {method: np.array([row["share"] for row in rows]) for method, rows in by_method.items()}
    effects = {output: np.array([one.shares[output] for one in shown]) for output in OUTPUTS}
    return context_table(shares, effects, np.array([even_share(one) for one in shown])) | _summarise(
        by_method, left_out
    )


Work = list[tuple[str, Tensor, int, Callable[[Tensor], Row]]]
"""Name, input and target of each image, and the function that scores its heatmap."""


def _rows(
    part: str, classifier: Classifier, work: Work, given: argparse.Namespace, path: Path
) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """Compute the rows of each method that applies, image by image, and why the others were skipped."""
    rows = Rows(path, {"network": classifier.fingerprint, "seed": given.seed})
    by_method: dict[str, list[Row]] = {}
    left_out: dict[str, str] = {}
    for method in given.methods.split(","):
        try:
            by_method[method] = [
                rows.get(part, method, name)
                or rows.add(_row(classifier, method, x, target, asked, given, first=not index), part, method, name)
                for index, (name, x, target, asked) in enumerate(work)
            ]
        except OverBudget:
            left_out[method] = f"its first heatmap took more than {given.budget:g} s"
        except ForetellError as error:
            left_out[method] = str(error)
        print(f"{part}: {method} {left_out.get(method, 'done')}", file=sys.stderr, flush=True)
    return by_method, left_out


def _row(
    classifier: Classifier,
    method: str,
    x: Tensor,
    target: int,
    asked: Callable[[Tensor], Row],
    given: argparse.Namespace,
    *,
    first: bool,
) -> Row:
    start = time.process_time()

    def watch(*_: object) -> None:
        if first and time.process_time() - start > given.budget:
            raise OverBudget

    generator = torch.Generator().manual_seed(given.seed)
    explanation = METHODS[method](classifier, x[None], [target], generator=generator, progress=watch)
    return asked(explanation.evidence[0]) | {"seconds": round(time.process_time() - start, 3)}


def _summarise(by_method: dict[str, list[Row]], left_out: dict[str, str]) -> dict[str, Any]:
    seconds = {
        method: round(statistics.median(row["seconds"] for row in rows), 3) for method, rows in by_method.items()
    }
    return {"seconds_per_map": seconds, "left_out": left_out}


if __name__ == "__main__":
    main()
