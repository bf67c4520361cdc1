"""What the benchmark of faithfulness computes, and that it can be stopped and continued."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats

from benchmarks import contexts, coverage, faithfulness, pointing
from benchmarks.rows import Rows, join_rows
from core.attribution import METHODS
from core.network.classifier import Classifier
from core.network.geometry import Geometry
from core.sources import load
from data.scenes.splits import picture
from tests.conftest import ROOT
from tests.core.scenes import scene_net

MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    """Catches one that names something renamed since: benchmarks are run by hand, and seldom."""
    importlib.import_module(f"benchmarks.{name}")


# Coverage


def test_intervals_of_accuracies_cover_the_accuracy_of_their_own_cell() -> None:
    """Catches truths of another condition or trial type, and the percentiles of before, which covered .85 of these."""
    cells = coverage.measure_cells(300, 5)
    assert len({(cell["condition"], cell["trial_type"]) for cell in cells}) == len(cells) == 12
    assert min(cell["coverage"] for cell in cells) > 0.95 - 4 * max(cell["error"] for cell in cells)
    for cell in cells:
        assert cell["error"] == pytest.approx(np.sqrt(cell["coverage"] * (1 - cell["coverage"]) / 300), abs=1e-4)


# Rows


def test_rows_are_kept_through_a_kill_and_only_for_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "rows" / "kept.jsonl"
    rows = Rows(path, {"seed": 1})
    rows.add({"hit": False}, "pointing", "gradient", "a.jpg")
    with path.open("a", encoding="utf-8") as file:
        file.write('\n{"stamp": "cut sho')
    again = Rows(path, {"seed": 1})
    assert again.get("pointing", "gradient", "a.jpg") == {"hit": False}
    again.add({"share": float("nan")}, "contexts", "gradient", "b")
    assert len(Rows(path, {"seed": 1})) == 2
    assert len(Rows(path, {"seed": 2})) == 0


def test_rows_of_other_code_count_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A map of a method that was mended since."""
    Rows(tmp_path / "kept.jsonl", {}).add({"hit": True}, "a")
    monkeypatch.setattr("benchmarks.rows._code", lambda: "other")
    assert len(Rows(tmp_path / "kept.jsonl", {})) == 0


# The pointing game


def photograph(width: int, height: int, rows: slice, columns: slice) -> pointing.Photograph:
    """Of a network that resizes the short side to 256 px and sees the middle 224 px."""
    inside = torch.zeros(height, width, dtype=torch.bool)
    inside[rows, columns] = True
    scale = min(width, height) / 256
    matrix = ((scale, 0.0, (width - 224 * scale) / 2), (0.0, scale, (height - 224 * scale) / 2))
    geometry = Geometry((width, height), (224, 224), matrix)
    return pointing.Photograph("photograph", torch.zeros(3, 224, 224), 0, inside, geometry)


@pytest.mark.real
@pytest.mark.parametrize(("width", "height"), [(640, 427), (360, 480), (500, 500)])
def test_a_place_is_located_where_it_was_in_the_photograph(real: Path, width: int, height: int) -> None:
    """A white dot seen through the network's own transforms: its brightest place leads back to the dot."""
    network = load(f"{real / 'imagenet' / 'mobilenet_v2.py'}:build")
    shorter = min(width, height)
    for right, down in ((0.5, 0.5), (0.4, 0.7), (0.63, 0.35)):
        column, row = int(right * shorter + (width - shorter) / 2), int(down * shorter + (height - shorter) / 2)
        pixels = np.zeros((height, width, 3), dtype=np.uint8)
        pixels[row - 2 : row + 3, column - 2 : column + 3] = 255
        seen = network.preprocess(Image.fromarray(pixels)).sum(0)
        place = np.unravel_index(int(seen.argmax()), seen.shape)
        geometry = network.geometry((width, height))
        assert geometry is not None
        back = [int(found) for found in geometry.pixels(*map(np.array, place))]
        assert abs(back[0] - row) <= 3
        assert abs(back[1] - column) <= 3


def test_the_tolerance_is_in_pixels_of_the_photograph() -> None:
    """9 px beside the box in a photograph of 256 px, which is not resized; 17 in one of twice the size."""
    for scale, hit in ((1, True), (2, False)):
        large = photograph(256 * scale, 256 * scale, slice(0, 256 * scale), slice(128 * scale, 256 * scale))
        evidence = torch.zeros(224, 224)
        evidence[100, 112 - 9] = 1
        assert pointing.is_hit(large, evidence) is hit
        assert pointing.is_centre_hit(large) is True


def test_a_random_pixel_hits_as_often_as_counted_one_by_one() -> None:
    shown = photograph(30, 40, slice(20, 30), slice(12, 16))
    hits = []
    for row in range(0, 224, 28):
        for column in range(0, 224, 28):
            evidence = torch.zeros(224, 224)
            evidence[row, column] = 1
            hits.append(pointing.is_hit(shown, evidence))
    near = [
        [(max(20 - y, 0, y - 29) ** 2 + max(12 - x, 0, x - 15) ** 2) ** 0.5 <= 15 for x in range(30)] for y in range(40)
    ]
    scale = 30 / 256
    rows, columns = (
        np.floor((size - 224 * scale) / 2 + (np.arange(224) + 0.5) * scale).astype(int) for size in (40, 30)
    )
    assert pointing.chance(shown) == pytest.approx(np.array(near)[np.ix_(rows, columns)].mean())
    assert hits == np.array(near)[np.ix_(rows[::28], columns[::28])].ravel().tolist()


def test_the_table_has_wilsons_interval_and_the_exact_paired_test() -> None:
    """8 of 10: Wilson .4902 to .9433. Of 6 discordant pairs all for the method: p = 2 / 2^6 (binomial)."""
    centre = [True] * 2 + [False] * 8
    table = pointing.pointing_table({"a": [True] * 8 + [False] * 2, "b": centre}, centre, [0.25] * 10, [0.1] * 10)
    assert table["methods"]["a"]["share"] == 0.8
    assert table["methods"]["a"]["interval_95"] == pytest.approx([0.4902, 0.9433], abs=1e-4)
    assert table["methods"]["a"]["p_against_centre"] == pytest.approx(2 / 64)
    assert table["methods"]["a"]["p_holm"] == pytest.approx(4 / 64)
    assert table["methods"]["b"]["p_against_centre"] == 1
    assert (table["random_pixel"], table["centre"]["share"], table["photographs"]) == (0.25, 0.2, 10)


# Contexts


class ByColour(torch.nn.Module):
    """A network that sees nothing but the mean brightness of the picture's rim, or of its middle."""

    def __init__(self, rim: bool) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(96, 96))
        self.weight[:] = 1.0 if rim else 0.0
        self.weight[24:72, 24:72] = 0.0 if rim else 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value = (x.mean(1) * self.weight).flatten(1).mean(1)
        return torch.stack([value, -value], 1)


def test_a_network_that_sees_the_objects_place_alone_owes_the_context_nothing() -> None:
    """Where the object covers all the network looks at, no other context changes its answer: the share is 0."""
    network = ByColour(rim=False)
    scenes = (picture("standard", 0, index) for index in range(300))
    scene = next(scene for scene in scenes if scene.mask[36:60, 36:60].all())
    network.weight[:] = 0
    network.weight[36:60, 36:60] = 1
    classifier = Classifier(network, scene_net().preprocess, name="middle")
    measured = contexts._measure_scene(classifier, scene, "scene")
    assert measured.shares["logit"] < 0.05
    assert contexts.context_share(measured, torch.from_numpy(scene.mask).float()) == 0
    assert contexts.context_share(measured, torch.ones(96, 96)) == pytest.approx(contexts.even_share(measured))


def test_the_built_in_network_owes_its_errors_on_shifted_scenes_to_the_context() -> None:
    """What it was trained to do: where it errs the context speaks for the answer more than where it is right."""
    network = scene_net()
    shown = contexts.stage_scenes(network, 30, seed=5)
    assert [scene.name for scene in shown[:3]] == ["standard/5/0", "adversarial/5/0", "standard/5/1"]
    shares: dict[bool, list[float]] = {True: [], False: []}
    for scene in shown[1::2]:
        right = network.categories[scene.target] == picture("adversarial", 5, int(scene.name.split("/")[2])).label
        shares[right].append(scene.shares["logit"])
    assert min(len(found) for found in shares.values()) >= 4
    assert np.nanmean(shares[False]) > np.nanmean(shares[True]) + 0.2
    assert all(0 <= share <= 1 for found in shares.values() for share in found if np.isfinite(share))


def test_the_correlation_is_scipys_and_its_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random(60)
    own = (truth + 0.5 * rng.random(60)).round(1)
    own[3], truth[5] = np.nan, np.nan
    table = contexts.context_table({"own": own, "none": np.full(60, 0.5)}, {"logit": truth}, rng.random(60))
    found = table["methods"]["own"]["logit"]
    kept = np.isfinite(own) & np.isfinite(truth)
    assert found["scenes"] == 58
    assert found["spearman"] == pytest.approx(stats.spearmanr(own[kept], truth[kept]).statistic, abs=1e-4)
    assert found["interval_95"][0] < found["spearman"] < found["interval_95"][1]
    assert found["gain_interval_95"][0] > 0
    assert table["methods"]["none"]["logit"]["spearman"] is None
    assert json.loads(json.dumps(table, allow_nan=False))["scenes"] == 60
    covered = []
    for _ in range(100):
        pairs = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 50)
        low, high = contexts._interval(contexts._spearman(*pairs.T)[1])
        covered.append(low < 6 / np.pi * np.arcsin(0.25) < high)
    assert 0.85 <= np.mean(covered) <= 1


# The whole


def test_it_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--parts", "contexts", "--methods", "gradient,input_x_gradient", "--scenes", "4"]
    words += ["--rows", str(tmp_path / "kept.jsonl"), "--json", str(tmp_path / "out.json")]
    gradient, asked = METHODS["gradient"], []

    def stopping(*given: Any, **options: Any) -> Any:
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return gradient(*given, **options)

    monkeypatch.setattr("core.attribution.gradients.plain.gradient", stopping)
    with pytest.raises(KeyboardInterrupt):
        faithfulness.main(words)
    faithfulness.main(words)
    assert len(asked) == 3 + 2  # two were kept, one was stopped, two were lacking
    result = json.loads((tmp_path / "out.json").read_text())["result"]["contexts"]
    assert list(result["methods"]) == ["gradient", "input_x_gradient"]
    assert result["left_out"] == {}
    faithfulness.main([*words[:-2], "--json", str(tmp_path / "again.json")])
    assert json.loads((tmp_path / "again.json").read_text())["result"]["contexts"] == result
    assert len(asked) == 5
    capsys.readouterr()


def test_a_method_that_is_too_slow_or_does_not_apply_is_left_out_and_named(tmp_path: Path) -> None:
    words = ["--parts", "contexts", "--scenes", "2", "--rows", str(tmp_path / "kept.jsonl"), "--budget", "0"]
    words += ["--json", str(tmp_path / "out.json"), "--methods", "occlusion,nonsense"]
    faithfulness.main(words)
    result = json.loads((tmp_path / "out.json").read_text())["result"]["contexts"]
    assert result["methods"] == {}
    assert result["left_out"]["occlusion"] == "its first heatmap took more than 0 s"
    assert "Unknown method 'nonsense'" in result["left_out"]["nonsense"]


def test_a_method_is_added_to_a_stored_result_as_if_all_had_run_together(tmp_path: Path) -> None:
    """Catches methods joined over other scenes, one that is left out and measured, and a run that nothing notes."""
    out, words = tmp_path / "out.json", ["--parts", "contexts", "--rows", str(tmp_path / "kept.jsonl"), "--methods"]
    faithfulness.main([*words, "gradient,attention_rollout", "--scenes", "4", "--json", str(out)])
    faithfulness.main([*words, "input_x_gradient", "--scenes", "4", "--join", str(out)])
    every = "gradient,input_x_gradient,attention_rollout"
    faithfulness.main([*words, every, "--scenes", "4", "--json", str(tmp_path / "all.json")])
    joined, whole = (json.loads(path.read_text()) for path in (out, tmp_path / "all.json"))
    assert joined["result"] == whole["result"]
    assert list(joined["result"]["contexts"]["left_out"]) == ["attention_rollout"]
    assert joined["machine"]["joined"][0]["methods"] == {"contexts": ["input_x_gradient"]}
    before = out.read_text()
    with pytest.raises(SystemExit, match="The stored result is of other images: scenes, "):
        faithfulness.main([*words, "input_x_gradient", "--scenes", "3", "--join", str(out)])
    assert out.read_text() == before


def test_rows_that_were_measured_again_replace_the_stored_ones() -> None:
    """Catches rows of other methods or networks that are lost, and a run that nothing notes. Expected: by hand."""
    machine = {"processor": "", "measured_at": "", "load_average_1min": 0, "versions": {}}
    stored = {"machine": {"cores": 2}, "result": {"a": {"x": 1, "y": 2}, "b": {"x": 3}}}
    joined = join_rows(stored, {"a": {"y": 5}}, machine)
    assert joined["result"] == {"a": {"x": 1, "y": 5}, "b": {"x": 3}}
    assert joined["machine"] == {"cores": 2, "joined": [machine | {"methods": {"a": ["y"]}}]}


def test_joined_methods_are_corrected_with_the_others() -> None:
    """Catches a p that is corrected for the methods of one run alone. Oracle: one table of all methods."""
    centre, hits = [True] * 6 + [False] * 14, {"a": [True] * 20, "b": [True] * 16 + [False] * 4, "c": [False] * 20}
    tables = [
        pointing.pointing_table({name: hits[name] for name in names}, centre, [0.5], [0.5])
        | {"seconds_per_map": dict.fromkeys(names, 1), "left_out": {}}
        for names in ("ab", "c", "abc")
    ]
    machine = {"processor": "", "measured_at": "", "load_average_1min": 0, "versions": {}}
    joined = faithfulness.join_results(
        {"machine": {}, "result": {"pointing": tables[0]}}, {"pointing": tables[1]}, machine
    )
    assert joined["result"]["pointing"] == tables[2]
