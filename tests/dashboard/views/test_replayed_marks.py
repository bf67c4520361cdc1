"""Monitor's replay of a study of places: the participant's mark on its image, next to the region."""

from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard.monitor.marks import MARKED, OPACITY, REGION, WORDS, draw_mark
from dashboard.shared import service
from study.participation.payloads import TrialResponse
from study.places.grid import SIDE, encode_cells
from study.places.marks import Kind
from study.places.region import make_region, open_region
from tests.conftest import write_bundle

SIZE = 320
CELL = SIZE // SIDE


def script() -> None:
    from dashboard.monitor import page as monitor

    monitor.page()


def draw(kind: Kind, text: str) -> np.ndarray:
    """A mark over a white image whose region is the left quarter."""
    evidence = np.zeros((SIDE, SIDE))
    evidence[:, : SIDE // 4] = 1.0
    region = open_region(make_region(evidence, 1.0, 1.0, None))
    return np.asarray(draw_mark(Image.new("RGB", (SIZE, SIZE), "white"), kind, text, region), dtype=int)


def test_a_brush_is_yellow_where_it_was_and_the_region_has_a_green_border() -> None:
    """The drawn pixels. Catches rows for columns, a region that hides the image, and a brush over the whole image."""
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[2, 20] = True
    drawn = draw("cells", encode_cells(cells))
    middle = drawn[2 * CELL + CELL // 2, 20 * CELL + CELL // 2]
    assert abs(middle - ((1 - OPACITY) * 255 + OPACITY * np.array(MARKED))).max() <= 1
    assert (drawn[20 * CELL, 2 * CELL + 5] == 255).all()  # not brushed
    assert (drawn[SIZE // 2, SIZE // 4 - 2] == REGION).all()
    assert (drawn[SIZE // 2, SIZE // 8] == 255).all()  # inside of the region
    assert (drawn[SIZE // 2, SIZE // 2] == 255).all()


def test_a_point_is_where_it_was_marked() -> None:
    """Catches y from the bottom, and a point in cells instead of the image."""
    drawn = draw("point", "0.75000,0.25000")
    assert (drawn[SIZE // 4, 3 * SIZE // 4] == MARKED).all()
    assert (drawn[3 * SIZE // 4, 3 * SIZE // 4] == 255).all()


@pytest.mark.parametrize(("task", "mark"), [("localise", "0.50000,0.50000"), ("highlight", "f" * 256)])
def test_the_replay_of_a_trial_shows_its_mark(workspace: Path, task: str, mark: str) -> None:
    """Catches a replay that says inside or outside, and not of what."""
    folder = workspace / "bundles" / "r-0123456789ab"
    config = {"study": {"task": task}}
    write_bundle(folder, name="r", trials=3, practice=0, conditions=("none",), config=config)
    researcher, participant = service.get_service().researcher, service.get_service().participant
    researcher.open_study(folder, 1)
    token = participant.begin("r", participant="p")
    participant.consent(token, True)
    participant.ready(token)
    participant.ready(token, "example")
    sent = TrialResponse(trial_index=0, attempt_id=str(uuid.uuid4()), side="1", place=mark, input="mouse", rt_ms=1500.0)
    assert participant.record(token, sent).code in (200, 201)
    researcher.close_study("r")
    app = AppTest.from_function(script).run()
    app.selectbox(key="replay_r_who").select_index(0)
    next(button for button in app.button if button.label == "Replay and log").click().run()
    assert not app.exception
    assert any(WORDS in str(one.proto) for one in (*app.get("imgs"), *app.get("image")))
