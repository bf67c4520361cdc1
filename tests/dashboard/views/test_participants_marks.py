"""What participants marked, in Explore: on the image of their trial, and on no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest

from core.attribution import METHODS
from dashboard.explore.heatmaps.marks import HUE, draw_importance
from dashboard.explore.images import ChosenImage, ClassifiedImage
from dashboard.shared import service
from study.building.build import build
from study.building.reopening import ReopenedStudy, reopen
from study.places.grid import RADIUS, SIDE, decode_cells, pool
from study.simulate import simulate
from tests.dashboard.conftest import open_scenes
from tests.dashboard.views.conftest import settled
from tests.study.studies import SMALL

FILE = SMALL.replace('title = "A tiny study"', 'title = "Marks"\ntask = "TASK"').replace("tiny", "marked")
FILE = FILE.replace("parameters = { samples = 8 }", 'method = "grad_cam"').replace(
    "[study]", 'conditions = ["none"]\n[study]'
)


def script() -> None:
    import streamlit as st

    from dashboard.explore.heatmaps import single
    from dashboard.explore.images import ChosenImage, ClassifiedImage

    chosen = ChosenImage(st.session_state["picked"], "an image", "", ())
    single.show(ClassifiedImage("scenes", chosen), "grad_cam", {}, 0)


def open_image(image: Image.Image) -> AppTest:
    app = AppTest.from_function(script)
    app.session_state["picked"] = image
    return settled(app.run())


@pytest.fixture(params=["highlight", "localise"])
def study(workspace: Path, request: pytest.FixtureRequest) -> ReopenedStudy:
    """A built study whose six participants have marked its images, simulated."""
    (workspace / "studies").mkdir()
    file = workspace / "studies" / "marked.toml"
    file.write_text(FILE.replace("TASK", request.param))
    bundle = build(file, workspace)
    study = service.get_service().researcher.open_study(bundle.folder, per_condition=6)
    simulate(service.get_service(), study, 6, {"map_reader": 1.0}, seed=3)
    return reopen(bundle, workspace / "cache")


def list_masks(own: pd.DataFrame) -> list[np.ndarray]:
    """The cells of each mark: a brush's own, or those around a point, one by one."""
    if own["cells"].notna().all():
        return [decode_cells(text) for text in own["cells"]]
    return [
        np.array(
            [[np.hypot(c + 0.5 - x * SIDE, r + 0.5 - y * SIDE) <= RADIUS for c in range(SIDE)] for r in range(SIDE)]
        )
        for x, y in zip(own["x"], own["y"], strict=True)
    ]


def test_marks_are_next_to_the_heatmap_of_their_image_with_their_agreement(study: ReopenedStudy) -> None:
    """Against SciPy's Spearman of the exported brushes and the network's own heatmap.

    Catches the marks of another trial, a heatmap of another class, and a chance level with the image's own marks.
    """
    frame = service.get_service().researcher.responses("marked", ("sim",))
    importance = {item: np.mean(list_masks(own), axis=0) for item, own in frame.groupby("item")}
    trial = next(one for one in study.bundle.manifest.trials if one.id in importance)
    app = open_image(study.open_image(trial))
    assert "What participants marked" in [one.value for one in app.subheader]
    network = study.sources.classifier
    heatmap = METHODS["grad_cam"](
        network, network.preprocess(study.open_image(trial))[None], [network.names.short.index(trial.target)]
    )
    evidence = pool(heatmap.evidence[0].clamp(min=0).numpy())
    each = {item: float(spearmanr(drawn, evidence, axis=None).statistic) for item, drawn in importance.items()}
    own = each.pop(trial.id)
    said = [str(one.proto) for one in [*app.get("imgs"), *app.get("image")]]
    wanted = (
        f"Rank correlation with this heatmap {own:.2f}; of the marks on other images {np.mean([*each.values()]):.2f}"
    )
    assert any(f"No explanation: at most {importance[trial.id].max():.0%} of 6 participants" in one for one in said)
    assert any(wanted in one for one in said)
    assert any("Simulated participants." in one.value for one in app.caption)


def test_an_image_of_no_trial_has_no_marks(study: ReopenedStudy) -> None:
    """Catches marks by the place of an image in its set, which another set has too."""
    pool_image = study.sources.sets["pool"].open(0)
    assert "What participants marked" not in [one.value for one in open_image(pool_image).subheader]


def test_a_bundle_that_cannot_be_read_leaves_the_heatmap_as_it_is(workspace: Path) -> None:
    """Catches Explore without any heatmap because one study of the workspace is damaged."""
    for name, manifest in (("cut", "{"), ("empty", "{}")):
        folder = workspace / "bundles" / f"{name}-0123456789ab"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(manifest)
    app = open_image(open_scenes("standard", 400).open(0))
    assert not [*app.exception, *app.error]
    assert "Reliability of this heatmap" in [one.value for one in app.subheader]


def test_where_most_participants_brushed_is_yellow_and_the_rest_grey() -> None:
    """The drawn pixels; catches rows exchanged for columns, and a scale by which few brushes are not seen."""
    white = Image.new("RGB", (96, 96), "white")
    importance = np.zeros((SIDE, SIDE))
    importance[: SIDE // 4, SIDE // 2 :] = 0.1
    seen = ClassifiedImage("scenes", ChosenImage(white, "white", "", ()))
    drawn = np.asarray(draw_importance(seen, importance), dtype=int)
    side = len(drawn)
    top_right, left = drawn[side // 16, -side // 8], drawn[side // 2, side // 8]
    assert (left == 255).all()
    assert abs(top_right - (0.2 * 255 + 0.8 * np.array(HUE))).max() <= 2
