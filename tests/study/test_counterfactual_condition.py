"""The condition counterfactual from the study file to the table: what participants see, read from the images."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import Tensor

from core.drawing.rendering import MARK
from data.types import ImageSet
from study.analysis.planned import placebos
from study.analysis.responses import reading as responses
from study.building.build import build, verify
from study.bundle import TRIAL_TYPES, Bundle, Trial
from study.conditions import CONDITIONS
from study.network.sources import open_sets
from study.plan.config import read
from study.plan.texts import apply_condition_words, example, texts_of
from study.service import Service
from study.simulate import simulate
from tests.core.scenes import scene_net
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

ONE = SMALL.replace("practice = 0", "practice = 1")
FILE = f'conditions = ["none", "counterfactual"]\n{ONE.replace("size = 96", "size = 336")}'
CONDITION = CONDITIONS["counterfactual"]
GRID, CELL = 7, 48


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny study with the condition, drawn so large that a cell has 48 pixels."""
    home = tmp_path_factory.mktemp("counterfactual")
    (home / "tiny.toml").write_text(FILE)
    return build(home / "tiny.toml", home)


def read_cells(bundle: Bundle, name: str) -> set[int]:
    """Read from a drawn image which cells have a line of the mark's colour along all four sides."""
    drawn = np.asarray(Image.open(bundle.asset(name)).convert("RGB"), dtype=int)
    near = np.abs(drawn - np.array(MARK)).sum(2) < 150
    cells = near.reshape(GRID, CELL, GRID, CELL).transpose(0, 2, 1, 3)
    sides = [cells[..., :2, :], cells[..., -2:, :], cells[..., :2].swapaxes(2, 3), cells[..., -2:].swapaxes(2, 3)]
    whole = [side.any(2).mean(-1) > 0.8 for side in sides]
    return set(np.flatnonzero(np.logical_and.reduce(whole)).tolist())


def list_drawings(trial: Trial) -> dict[str, str]:
    """List the assets of the condition: "" is the target's."""
    shown = CONDITION.shown(trial)
    assert shown.target_map is not None
    return {"": shown.target_map, **{option: one for option, (one,) in shown.examples.items()}}


def open_target(trial: Trial, sets: dict[str, ImageSet]) -> Image.Image:
    """Open the image of a trial from the set that its source names."""
    images = next(one for one in sets.values() if trial.source.startswith(f"{one.name}/"))
    return images.open(images.ids.index(trial.source.removeprefix(f"{images.name}/")))


def exchange(inputs: Tensor, other: Tensor, cells: set[int]) -> Tensor:
    """Exchange cells pixel by pixel."""
    mixed, (height, width) = inputs.clone(), inputs.shape[1:]
    for y in range(height):
        for x in range(width):
            if (y * GRID // height) * GRID + x * GRID // width in cells:
                mixed[:, y, x] = other[:, y, x]
    return mixed


def test_the_marked_parts_change_the_prediction_to_the_other_name(built: Bundle, tmp_path: Path) -> None:
    """Reads the cells from the drawn images and exchanges them here. Catches marks in another place or image."""
    (tmp_path / "tiny.toml").write_text(FILE)
    sets, network = open_sets(read(tmp_path / "tiny.toml"), tmp_path), scene_net()
    for trial in built.manifest.trials:
        cells = {option: read_cells(built, name) for option, name in list_drawings(trial).items()}
        assert len(set(map(frozenset, cells.values()))) == 1  # the same cells in all three images
        marked = cells[""]
        assert 0 < len(marked) < GRID**2
        inputs = network.preprocess(open_target(trial, sets))
        sources = trial.assets.by_condition["counterfactual"].sources
        shown = [network.preprocess(sets["pool"].open(sets["pool"].ids.index(one))) for one in sources]
        wanted = [network.categories.index(one) for one in (trial.target, trial.alternative)]
        assert network.logits(torch.stack(shown)).argmax(1).tolist() == wanted  # "the AI calls this ..."
        mixed = torch.stack([inputs, exchange(inputs, shown[1], marked)])
        assert network.logits(mixed).argmax(1).tolist() == wanted
        fewer = torch.stack([exchange(inputs, shown[1], marked - {cell}) for cell in marked])
        assert (network.logits(fewer).argmax(1) != wanted[1]).all()


def test_the_images_of_both_names_are_the_most_similar_ones(built: Bundle, tmp_path: Path) -> None:
    """Against all distances. Catches a rule that differs between the options and so tells them apart."""
    (tmp_path / "tiny.toml").write_text(FILE)
    sets, network = open_sets(read(tmp_path / "tiny.toml"), tmp_path), scene_net()
    pool = sets["pool"]
    inputs = torch.stack([network.preprocess(pool.open(i)) for i in range(len(pool))])
    features, predicted = network.features(inputs), network.logits(inputs).argmax(1)
    for trial in built.manifest.trials:
        own = network.features(network.preprocess(open_target(trial, sets))[None])[0]
        distances = (features - own).norm(dim=1)
        for option, source in zip(
            (trial.target, trial.alternative), trial.assets.by_condition["counterfactual"].sources, strict=True
        ):
            k = network.categories.index(option)
            alike = [i for i in range(len(pool)) if int(predicted[i]) == k == int(pool.labels[i])]
            assert pool.ids[min(alike, key=lambda i: float(distances[i]))] == source


def test_nothing_shown_says_which_option_the_ai_chose(built: Bundle) -> None:
    """The same trial with the options changed about has the same screen but for the names' sides."""
    trial = built.manifest.trials[0]
    turned = trial.model_copy(update={"target": trial.alternative, "alternative": trial.target})
    assert CONDITION.shown(turned) == CONDITION.shown(trial)


def test_its_words_are_its_own_and_the_bundle_verifies(built: Bundle) -> None:
    texts = texts_of(built.manifest)
    said = example(texts, CONDITION)
    for key in ("example_counterfactual", "example_counterfactual_names", "example_counterfactual_both"):
        assert texts[key] in said
    assert texts["example_map"] not in said
    own = apply_condition_words(texts, CONDITION)
    assert own["map_legend"] == texts["counterfactual_legend"]
    assert own["examples_legend"] == texts["counterfactual_names_legend"]
    assert verify(built) == []


def test_simulated_people_take_part(built: Bundle, service: Service) -> None:
    study = service.researcher.open_study(built.folder, per_condition=3)
    simulate(service, study, 6, {"map_reader": 1.0}, seed=1)
    data = responses.prepare(service.researcher.responses(study, ("sim",)))
    assert set(data.frame["condition"]) == {"none"}
    assert {(c.more, c.less) for c in placebos.list_default_contrasts(data)} == {("counterfactual", "none")}


def test_next_to_heatmaps_it_is_compared_with_the_image_alone() -> None:
    """Catches the contrast of a placebo, the study's explanation minus this one."""
    rows = [("p", "c", kind, name) for kind in TRIAL_TYPES for name in ("none", "saliency", "counterfactual")]
    every = pd.DataFrame(rows, columns=["participant", "category", "trial_type", "condition"])
    data = SimpleNamespace(every=every, placebos=every[every["condition"] == "counterfactual"])
    found = placebos.list_default_contrasts(cast(responses.Responses, data))
    assert {(one.more, one.less) for one in found} == {("counterfactual", "none")}
