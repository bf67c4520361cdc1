"""Sheets of maps: what is on them, on which scale, and what a program makes of them again."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageColor

from core.attribution import METHODS as ALL_METHODS
from core.attribution.records import sign_of
from core.drawing import sheet as canvas
from core.drawing.rendering import scale_of
from core.types import Certificate, Explanation, silent
from dashboard.explore.figures import HeatmapDrawing, HeatmapStyle
from dashboard.explore.heatmap_jobs import Faithfulness, HeatmapRequest, make_faithfulness_task
from dashboard.explore.heatmaps import closeup, reproduce
from dashboard.explore.heatmaps import sheet as table
from dashboard.explore.heatmaps.grid import MOST_COLUMNS
from dashboard.explore.images import ChosenImage, ClassifiedImage
from dashboard.explore.source import open_from_set, open_upload
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable
from dashboard.pages import SHEET_WIDTHS
from study.workspace.workspace import ROOT
from tests.contrast import LEAST, measure_contrast
from tests.dashboard.conftest import gallery_of
from tests.dashboard.test_cache import MODEL
from tests.dashboard.views.conftest import OTHER
from tests.planted import MADE, RANDOM, misplaced, network_file, photograph

METHODS = {"gradient": {}, "rise": {"samples": 32}}


def seen(split: str, i: int) -> ClassifiedImage:
    return ClassifiedImage("scenes", open_from_set(gallery_of("scenes", split), split, i))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> HeatmapTable:
    """Two methods by two pictures."""
    patch = pytest.MonkeyPatch()
    patch.setenv("FORETELL_HOME", str(tmp_path_factory.mktemp("home")))
    pictures = [seen("adversarial", 3), seen("standard", 8)]
    columns = tuple(
        HeatmapColumn(s, s.predicted_class, (f"says {s.format_confidence(s.predicted_class)}",)) for s in pictures
    )
    rows = {method: tuple(cell(s, method, given) for s in pictures) for method, given in METHODS.items()}
    patch.undo()
    return HeatmapTable("scenes: two methods", columns, rows, "Shared", HeatmapStyle())


def cell(s: ClassifiedImage, method: str, given: dict[str, object]) -> Cell:
    request = HeatmapRequest(s.classifier, method, s.inputs, s.predicted_class, 5, given)
    return Cell(request, request.compute(lambda *_: None))


def words(shown: HeatmapTable) -> str:
    return " | ".join(item.text for item in table.draw_sheet(shown).items if isinstance(item, canvas.Words))


def test_a_row_shares_one_limit_or_each_map_has_its_own_and_the_sheet_says_which(made: HeatmapTable) -> None:
    for method, cells in made.rows.items():
        own = [scale_of(c.explanation) for c in cells]
        together = np.concatenate([(c.explanation.map - c.explanation.zeros[0]).abs().ravel() for c in cells])
        noise = [6 * c.explanation.error.median() for c in cells if c.explanation.error is not None]
        limit = max(float(np.quantile(together, 0.995)), *map(float, noise), 0.0)
        assert [scale.limit for scale in made.scales(method)] == pytest.approx([limit] * 2, rel=1e-4)
        assert [scale.zero for scale in made.scales(method)] == [scale.zero for scale in own]
        assert replace(made, scaling="Own").scales(method) == own
        assert f"+{made.scales(method)[0].limit:.3g} | shared scale" in words(made)
        for scale in own:
            low, high = (f"{scale.zero + side * scale.limit:.3g}".replace("-", "−") for side in (-1, 1))
            assert f"blue {low} to orange {high}" in " ".join(words(replace(made, scaling="Own")).split(" | "))
    gradient, rise = (made.scales(method)[0].limit for method in METHODS)
    assert gradient != rise
    assert "one scale for the heatmaps of a method" in words(made)
    assert "each heatmap on its own scale" in words(replace(made, scaling="Own"))


def test_columns_below_each_other_fit_a_phone_and_keep_the_scales_of_their_row(made: HeatmapTable) -> None:
    """Catches a phone that shows the first of several columns, and a shared scale of each column alone."""
    wide, narrow = table.draw_sheet(made), table.draw_stacked_sheet(made)
    assert narrow.width <= 358  # of 390 px, with the margins of the page
    texts = [item.text for item in narrow.items if isinstance(item, canvas.Words)]
    assert all(texts.count(column.lines[0]) == 1 for column in made.columns)
    for method in made.rows:
        assert texts.count(f"+{made.scales(method)[0].limit:.3g}") == 1, "the colours are explained once"
    images = [[item for item in sheet.items if isinstance(item, canvas.ImageItem)] for sheet in (wide, narrow)]
    big = [item for item in images[1] if item.height > 20]
    assert len(big) == len([item for item in images[0] if item.height > 20])
    heatmaps = [{np.asarray(item.image).tobytes() for item in items} for items in images]
    assert len(heatmaps[0] & heatmaps[1]) >= len(made.columns) * len(made.rows), "the same heatmaps, larger"
    assert {item.width for item in big} == {table.WIDE_SIDE}, "they fill the width"
    tops = [item.y for item in big]
    assert tops == sorted(tops)
    assert min(np.diff(tops)) > table.WIDE_SIDE
    assert all(0 <= item.x <= item.x + item.width <= narrow.width for item in images[1])


def test_the_sheet_of_a_dark_page_has_its_ground_and_can_be_read(made: HeatmapTable) -> None:
    """Catches a white sheet on a dark page, and text or curves in the light page's colours."""
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    for name, palette in (("light", table.LIGHT), ("dark", table.DARK)):
        ground = theme[name]["backgroundColor"]
        for draw in (table.draw_sheet, table.draw_stacked_sheet):
            sheet = draw(made, palette)
            assert canvas.render_png(sheet, 1).getpixel((0, 0)) == ImageColor.getrgb(ground)
            inks = {item.colour for item in sheet.items if isinstance(item, canvas.Words)}
            inks |= {palette.warning, palette.deletion, palette.insertion}
            faint = {ink for ink in inks if measure_contrast(ink, ground) < LEAST}
            assert not faint
    assert b'fill="white"' in canvas.render_svg(table.draw_sheet(made)), "files end on paper"


def test_another_scale_makes_another_image(made: HeatmapTable) -> None:
    shared, own = (np.asarray(canvas.render_png(table.draw_sheet(replace(made, scaling=s)))) for s in ("Shared", "Own"))
    assert not np.array_equal(shared[:200], own[: len(shared)]) or shared.shape != own.shape


def test_a_map_that_failed_is_a_sentence_in_its_place(made: HeatmapTable) -> None:
    broken = replace(made.rows["rise"][0], explanation=None, note="RISE needs at least 2 masks.")
    shown = replace(made, rows=made.rows | {"rise": (broken, made.rows["rise"][1])})
    assert "RISE needs at least 2 masks." in words(shown).replace(" | ", " ")
    assert shown.scales("rise")[0] is None
    assert len(json.loads(str(np.load(io.BytesIO(reproduce.build_npz(shown)))["facts"]))) == 3


def test_certificates_warnings_and_measures_stand_under_their_map(made: HeatmapTable) -> None:
    one = made.rows["rise"][0]
    certificate = replace(one.certificate, warnings=("Half of it is noise.",), completeness=0.0123)
    explanation = replace(one.explanation, certificates=(certificate,))
    found: Faithfulness = make_faithfulness_task(one.request, explanation, made.columns[0].image.chosen.mask).compute(
        lambda *_: None
    )
    shown = replace(
        made, rows={"rise": (replace(one, explanation=explanation, faithfulness=found), made.rows["rise"][1])}
    )
    text = words(shown).replace(" | ", " ")
    assert "Half of it is noise." in text
    assert "completeness +1.23%" in text
    for curve in (found.deletion, found.insertion):
        assert f"{curve.measure} {float(curve.area[0]):.3f} (probability, {curve.substrate} instead, 50 steps)" in text
    assert f"relevance mass on the object {found.mass:.0%}" in text
    lines = [item for item in table.draw_sheet(shown).items if isinstance(item, canvas.Line)]
    assert [len(line.points) for line in lines] == [51, 51]


def test_nothing_is_drawn_outside_the_sheet_or_over_a_neighbour(made: HeatmapTable) -> None:
    sheet = table.draw_sheet(made)
    pictures = [item for item in sheet.items if isinstance(item, canvas.ImageItem)]
    assert len(pictures) == 2 + 2 * (2 + 1)
    for item in pictures:
        assert 0 <= item.x <= item.x + item.width <= sheet.width
        assert 0 <= item.y <= item.y + item.height <= sheet.height
    big = [p for p in pictures if p.width == table.SIDE]
    apart = [(a, b) for a in big for b in big if a is not b]
    assert all(
        a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y for a, b in apart
    )


def test_a_blank_explanation_has_a_scale_to_be_drawn_on(made: HeatmapTable) -> None:
    one = made.rows["gradient"][0]
    flat = Explanation(torch.zeros_like(one.explanation.map), 0.0, (Certificate("gradient", 0, "f", 0.5),))
    shown = replace(made, rows={"gradient": (replace(one, explanation=flat), made.rows["gradient"][1])})
    assert canvas.render_png(table.draw_sheet(shown)).width > 0


def run(shown: HeatmapTable, folder: Path) -> dict[str, np.ndarray]:
    """What the program makes in a process of its own."""
    (folder / "again.py").write_text(reproduce.build_script(shown, "again.py"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "again.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "again.npz") as again:
        return dict(again)


def test_the_program_makes_the_same_arrays_bit_for_bit(made: HeatmapTable, tmp_path: Path) -> None:
    """As a reader does: take both files, run the program in another process, compare."""
    again = run(made, tmp_path)
    with np.load(io.BytesIO(reproduce.build_npz(made))) as maps:
        assert set(again) == {"map_0", "map_1", "map_2", "map_3"}
        assert set(maps.files) - set(again) == {"facts", "error_2", "error_3"}
        for name in again:
            assert again[name].dtype == np.float32
            assert np.array_equal(maps[name], again[name]), name
        facts = json.loads(str(maps["facts"]))
    assert [fact["method"] for fact in facts] == ["gradient", "gradient", "rise", "rise"]
    assert [fact["key"] for fact in facts] == [c.request.key for _, c in made.cells]
    assert facts[2]["samples"] == 32


def own_pictures(workspace: Path, folder: Path, model: str) -> HeatmapTable:
    """A gradient of a picture of the workspace's own set and of a file, by the workspace's own classifier."""
    (workspace / "models").mkdir()
    (workspace / "models" / "mine.py").write_text(model)
    picture = workspace / "pictures" / "mine" / "fish" / "a.png"
    picture.parent.mkdir(parents=True)
    Image.effect_noise((64, 48), 50).save(picture)
    turned = Image.effect_noise((64, 48), 90)
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(folder / "file.png", exif=exif)
    own = open_from_set(gallery_of("models/mine.py", "mine"), "mine", 0)
    file = open_upload((folder / "file.png").read_bytes(), "file.png")
    pictures = [ClassifiedImage("models/mine.py", chosen) for chosen in (own, file)]
    rows = {"gradient": tuple(cell(s, "gradient", {}) for s in pictures)}
    return HeatmapTable("", tuple(HeatmapColumn(s, None, ()) for s in pictures), rows, "Own", HeatmapStyle())


def test_the_program_finds_ones_own_classifier_images_and_files(workspace: Path, tmp_path: Path) -> None:
    """A classifier and a set of the workspace, and an uploaded file that lies beside the program."""
    shown = own_pictures(workspace, tmp_path, OTHER)
    again = run(shown, tmp_path)
    for k, (_, c) in enumerate(shown.cells):
        assert np.array_equal(again[f"map_{k}"], c.explanation.map[0])


def test_the_program_refuses_another_network(workspace: Path, tmp_path: Path) -> None:
    """One whose weights are drawn anew each time it is built."""
    drawn = MODEL.format(names=["fish", "bird"])
    with pytest.raises(AssertionError, match=r"models/mine\.py:build is not the network of these heatmaps"):
        run(own_pictures(workspace, tmp_path, drawn), tmp_path)


def see_planted(workspace: Path, made: str, image: Image.Image, mask: np.ndarray | None = None) -> ClassifiedImage:
    """An image as a network of the workspace sees it, whose transforms give ``made``."""
    (workspace / "models").mkdir()
    network_file(workspace / "models", made)
    return ClassifiedImage("models/network.py", ChosenImage(image, "", "", (), mask=mask))


def one_heatmap(s: ClassifiedImage) -> HeatmapTable:
    request = s.request_heatmap(0, "input_x_gradient", {}, 0)
    made = {"input_x_gradient": (Cell(request, request.compute(silent)),)}
    return HeatmapTable("", (HeatmapColumn(s, 0, ("",)),), made, "Own", HeatmapStyle())


@pytest.mark.parametrize("made_by", MADE.values(), ids=MADE)
def test_a_map_of_a_sheet_lies_where_the_network_looked(workspace: Path, made_by: str) -> None:
    """A planted square: the orange of the map lies on the white of the image above it."""
    image = photograph((300, 200), (0.3, 0.55) if made_by == MADE["corner"] else (0.55, 0.43))
    shown = one_heatmap(see_planted(workspace, made_by, image))
    pictures = [item for item in table.draw_sheet(shown).items if isinstance(item, canvas.ImageItem)]
    assert misplaced(pictures[0].image, pictures[1].image) < 0.015


def test_a_sheet_says_where_it_shows_the_networks_input_instead(workspace: Path) -> None:
    image = photograph((200, 200), (0.5, 0.5))
    one = see_planted(workspace, RANDOM["random crop"], image, np.ones((200, 200), dtype=bool))
    assert "the network's own input is shown instead" in words(one_heatmap(one)).replace(" | ", " ")
    assert one.object_pixels is None


def test_the_object_is_found_in_the_part_that_the_network_sees(workspace: Path) -> None:
    """The middle 160 x 160 of 300 x 200 px in 64: columns 100 to 140 become 12 to 28 (30 times 64 / 160)."""
    mask = np.zeros((200, 300), dtype=bool)
    mask[:, 100:140] = True
    inside = see_planted(workspace, MADE["crop"], photograph((300, 200), (0.5, 0.5)), mask).object_pixels
    assert inside is not None
    columns = np.flatnonzero(inside.all(0))
    assert (columns.min(), columns.max()) == (12, 27)
    assert not inside[:, 28:].any()


def test_the_slider_uncovers_each_heatmap_over_its_own_image(made: HeatmapTable) -> None:
    """Catches a heatmap over another column's image, in another row, or on a scale that the sheet does not have."""
    found = closeup.encode_cells.__wrapped__("key", made)

    def differ(source: str, drawn: Image.Image) -> float:
        sent = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))).convert("RGB")
        assert sent.size == drawn.size
        return float(np.abs(np.asarray(sent, dtype=float) - np.asarray(drawn, dtype=float)).mean())

    for k, column in enumerate(made.columns):
        drawn = [
            HeatmapDrawing(column.image.view, row[k].explanation, scale=made.scales(method)[k])
            for method, row in made.rows.items()
        ]
        assert differ(found["columns"][k]["source"], drawn[0].draw_input()) < 4
        for own, row, other in zip(drawn, found["rows"], reversed(drawn), strict=True):
            lost, wrong = (differ(row["heats"][k]["source"], one.draw(made.look)) for one in (own, other))
            assert lost < 0.5 * wrong
    assert [row["words"] for row in found["rows"]] == [sign_of(method, {}).words("the class") for method in made.rows]
    for method, row in zip(made.rows, found["rows"], strict=True):
        for heat, scale in zip(row["heats"], made.scales(method), strict=True):
            low, high = (float(end.replace("−", "-")) for end in heat["ends"].split(" to "))
            assert (low, high) == pytest.approx((scale.zero - scale.limit, scale.zero + scale.limit), rel=0.01)
    missing = replace(made, rows={"gradient": (Cell(made.rows["gradient"][0].request, note="Waiting …"),) * 2})
    (row,) = closeup.encode_cells.__wrapped__("other", missing)["rows"]
    assert [heat["note"] for heat in row["heats"]] == ["Waiting …"] * 2


@pytest.mark.parametrize(
    ("method", "parameters", "has_blue"),
    [
        ("gradient", {}, True),
        ("gradient", {"channels": "largest"}, False),
        ("grad_cam", {}, False),
        ("grad_cam", {"sign": "signed"}, True),
    ],
)
def test_legends_say_what_the_colours_mean_under_the_parameters(
    method: str, parameters: dict[str, str], has_blue: bool
) -> None:
    """Catches a legend of the method's default: blue that is not there, or blue that nothing explains."""
    one = seen("standard", 8)
    made = HeatmapTable(
        "", (HeatmapColumn(one, None, ("a",)),), {method: (cell(one, method, parameters),)}, "Own", HeatmapStyle()
    )
    assert (made.rows[method][0].explanation.evidence.min() < 0) == has_blue
    tiles = replace(made, rows=made.rows | dict.fromkeys(list(ALL_METHODS)[:6], made.rows[method]))
    legends = [row["words"] for row in closeup.encode_cells.__wrapped__("key", made)["rows"]]
    sheets = [table.draw_sheet(made), table.draw_stacked_sheet(made), table.draw_sheet(tiles)]
    legends += [" ".join(item.text for item in one.items if isinstance(item, canvas.Words)) for one in sheets]
    for legend in legends:
        assert sign_of(method, parameters).above.format("the class") in legend
        assert ("Blue: " in legend) == has_blue


def test_every_width_of_a_sheet_has_its_rule_on_the_page(made: HeatmapTable) -> None:
    """Catches a sheet of another width, which would be shrunk to the screen with its words."""
    column, cells = made.columns[0], {method: row[:1] for method, row in made.rows.items()}
    columns = [
        replace(made, columns=(column,) * n, rows={m: row * n for m, row in cells.items()})
        for n in range(1, MOST_COLUMNS + 1)
    ]
    lines = replace(
        made, columns=(column,), rows=dict.fromkeys(list(ALL_METHODS)[: table.PER_LINE + 1], cells["gradient"])
    )
    assert {table.draw_sheet(one).width for one in [*columns, lines]} == set(SHEET_WIDTHS)
