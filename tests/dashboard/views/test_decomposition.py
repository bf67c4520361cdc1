"""The question decomposition on the Layers page: the figure, the caption, the drawings; and as a command."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from dashboard.explore.layers.jobs import LayerRequest
from inquiry.layers.inspection import LayerQuery
from inquiry.layers.record import record_of
from tests.commands import run
from tests.core.scenes import scene_net
from tests.dashboard.views.test_inside import answered, begun

SMALL = {"filters": "4,3", "images": "12", "side": "16", "size": "3", "epochs": "2"}


def test_the_page_shows_the_table_the_drawings_and_the_images_used(opened) -> None:
    """Catches a parameter that does not arrive, a page without drawings, and a count of images that were not used."""
    link = {"view": "Layers", "question": "Decomposition", "layers.images": "40"}
    app = begun(opened(**link, **{f"decomposition.{name}": value for name, value in SMALL.items()}))
    found = answered(app)
    assert found["layer"].tolist() == [1] * 5 + [2] * 4
    assert found["images"].iloc[0] == 4
    assert any("12 of the 48 images" in caption.value for caption in app.caption)
    drawn = [image.proto.imgs[0].caption for image in app.get("image")]  # type: ignore[attr-defined]
    assert [end in caption for end, caption in zip(("layer 1", "layer 2", "rebuilds it"), drawn, strict=True)] == [
        True
    ] * 3


def test_the_figure_has_both_kinds_of_filters_by_layer() -> None:
    """Catches learned filters that are called random, and the error of another column."""
    table = pd.DataFrame({"layer": [1, 1, 2], "filter": ["all", "0", "all"], "lost": [0.1, None, 0.2],
                          "lost_random": [0.3, None, 0.4], "lost_error": [0.01, None, 0.02],
                          "random_error": [0.03, None, 0.04]})  # fmt: skip
    learned, random = record_of("decomposition").figure(table).data
    assert (learned.name, random.name) == ("learned filters", "random filters")
    assert (list(learned.x), list(learned.y), list(random.y)) == (["layer 1", "layer 2"], [0.1, 0.2], [0.3, 0.4])
    assert (list(learned.error_y.array), list(random.error_y.array)) == ([0.01, 0.02], [0.03, 0.04])


def test_its_duration_is_not_that_of_the_network() -> None:
    """Catches an estimate of seconds from the speed of a network that is not asked."""
    network = scene_net()
    request = LayerRequest(LayerQuery("decomposition"), network, network, range(48), 8)
    seconds = 0.2
    assert request.estimate() == pytest.approx(8 * seconds)
    large = LayerQuery("decomposition", parameters={"side": "96", "epochs": "16"})
    assert replace(request, query=large).estimate() == pytest.approx(8 * seconds * 4 * 2)


def test_the_command_writes_table_and_drawings_or_refuses(workspace, tmp_path) -> None:
    """Catches a drawing that is not written, and another exit code than 2."""
    given = ["layers", "decomposition", "--setting", "split=standard", "--setting", "size=32", "--out", tmp_path]
    words = [word for name, value in SMALL.items() for word in ("--param", f"{name}={value}")]
    ran = run(*given, *words, home=workspace)
    assert ran.returncode == 0, ran.stderr
    ends = ("csv", "json", "filters_of_layer_1.png", "filters_of_layer_2.png", "images_as_rebuilt.png")
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} >= {
        f"scenes.decomposition.{end}" for end in ends
    }
    ran = run(*given, "--param", "filters=many", home=workspace)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert "filters='many': give the number of filters" in ran.stderr
