"""Finding images on the Explore page: filters, confusion matrix, orders by disagreement, a selection."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.stats import mannwhitneyu
from streamlit.testing.v1 import AppTest

from dashboard.explore.find.confusion import count_confusions
from dashboard.explore.find.filters import ANY, ImageFilter
from dashboard.explore.find.jobs import make_method_task
from dashboard.explore.find.orders import METHODS_DISAGREE, NETWORKS_DISAGREE, rank_images
from dashboard.explore.find.selection import build_archive
from dashboard.shared import cache
from dashboard.shared.cache import Gallery
from dashboard.shared.keys import IMAGES_KEY
from tests.dashboard.conftest import PATIENCE_S, gallery_of, read_headings
from tests.dashboard.views.conftest import FEW, OTHER, settled


@pytest.fixture
def gallery(opened) -> Gallery:
    return gallery_of("scenes", "adversarial")


def describe(gallery: Gallery) -> list[tuple[str, str, float, str]]:
    """Of each image its true class, predicted class, confidence and id, from the network itself."""
    network, images = cache.load_classifier("scenes"), gallery.images
    rows = []
    for i in range(FEW):
        p = network.probabilities(network.preprocess(images.open(i))[None])[0]
        truth = images.categories[images.labels[i]]
        rows.append((truth, network.categories[int(p.argmax())], float(p.max()), images.ids[i]))
    return rows


def test_each_filter_leaves_the_images_counted_by_hand(gallery: Gallery) -> None:
    """Catches a filter that mixes up the classes, their numbers, or the ends of the range."""
    rows = describe(gallery)
    truth, predicted = next(row[:2] for row in rows if row[0] != row[1])
    by_hand = {
        ImageFilter(): lambda row: True,
        ImageFilter(truth=truth): lambda row: row[0] == truth,
        ImageFilter(predicted=predicted): lambda row: row[1] == predicted,
        ImageFilter(verdict="Wrong"): lambda row: row[0] != row[1],
        ImageFilter(verdict="Right", truth=truth): lambda row: row[0] == row[1] == truth,
        ImageFilter(confidence=(50, 90)): lambda row: 0.5 <= row[2] <= 0.9,
        ImageFilter(text="0/00001"): lambda row: "0/00001" in row[3],
        ImageFilter(text="NOWHERE"): lambda row: False,
        ImageFilter(verdict="Wrong", among=frozenset({1, 2, 3})): lambda row: (
            row[0] != row[1] and row[3] in [rows[k][3] for k in (1, 2, 3)]
        ),
    }
    for asked, fits in by_hand.items():
        assert asked.fits(gallery).tolist() == [fits(row) for row in rows], asked
        assert asked.is_active == (asked != ImageFilter())


def test_a_link_brings_the_filters_and_the_page_says_how_many_images_are_left(opened, gallery: Gallery) -> None:
    """Catches a filter that the link does not hold, and a number of another filter."""
    wrong = [row for row in describe(gallery) if row[0] != row[1]]
    truth = wrong[0][0]
    count = sum(row[0] == truth for row in wrong)
    app = opened(view="Gallery", **{"filter.truth": truth, "filter.verdict": "Wrong"})
    assert f"{count} of {FEW} images fit the filters." in [c.value for c in app.caption]
    assert f"{count} images; 0 of {count} predictions are correct (0.0%)." in [c.value for c in app.caption]
    (clear,) = [button for button in app.button if button.label == "Clear filters"]
    clear.click().run()
    assert app.selectbox(key="filter.truth").value == ANY
    assert any(c.value.startswith(f"{FEW} images; ") for c in app.caption)
    assert "filter.truth" not in app.query_params
    said = "The link names the class “unicorn”, which does not exist here. Another one is shown instead."
    assert said in [w.value for w in opened(view="Gallery", **{"filter.truth": "unicorn"}).warning]


def test_a_single_image_is_one_that_fits_and_none_is_no_error(opened, gallery: Gallery) -> None:
    """Catches an image of the link that stays although the filter leaves it out, and a page that fails at none."""
    right = next(i for i, row in enumerate(describe(gallery)) if row[0] == row[1])
    app = opened(method="Gradient", image=f"adversarial/{right}", **{"filter.verdict": "Wrong"})
    assert "wrong, true class" in app.header[0].value
    app = opened(method="Gradient", **{"filter.text": "nothing has this"})
    assert not app.exception
    assert not app.header
    _clear_filters(app)


def test_a_gallery_without_a_match_says_so_and_offers_to_clear_the_filters(opened) -> None:
    """Catches “no label is one of the network's classes” of images that only a filter leaves out."""
    app = opened(view="Gallery", **{"filter.text": "nothing has this"})
    assert not any("no label" in caption.value for caption in app.caption)
    _clear_filters(app)
    assert any(caption.value.startswith(f"{FEW} images; ") for caption in app.caption)


def _clear_filters(app: AppTest) -> None:
    assert [info.value for info in app.info] == ["No image matches the filters."]
    next(button for button in app.button if button.label == "Clear the filters").click().run()
    assert not app.info


def test_every_cell_of_the_confusion_matrix_has_the_images_counted_by_hand(gallery: Gallery) -> None:
    """Catches rows and columns that are exchanged, and a cell whose filter shows other images than it counts."""
    rows = describe(gallery)
    matrix = count_confusions(gallery, np.ones(FEW, dtype=bool))
    assert matrix.counts.sum() == matrix.total == FEW
    assert matrix.counts[matrix.right].sum() == sum(row[0] == row[1] for row in rows)
    for r, truth in enumerate(matrix.rows):
        for c, predicted in enumerate(matrix.columns):
            count = sum(row[:2] == (truth, predicted) for row in rows)
            assert matrix.counts[r, c] == count
            assert ImageFilter(truth=truth, predicted=predicted).fits(gallery).sum() == count
            assert matrix.right[r, c] == (truth == predicted)


def test_of_many_classes_the_most_confused_are_shown_and_the_rest_is_said(gallery: Gallery) -> None:
    """Catches classes kept by their number: the two with the most errors must be there."""
    rows = describe(gallery)
    errors = {name: sum(name in row[:2] and row[0] != row[1] for row in rows) for name in gallery.categories}
    matrix = count_confusions(gallery, np.ones(FEW, dtype=bool), most=3)
    kept = {*matrix.rows, *matrix.columns}
    assert len(kept) <= 3
    left_out = [errors[name] for name in gallery.categories if name not in kept]
    assert min(errors[name] for name in kept) >= max(left_out)
    assert matrix.total == FEW > matrix.counts.sum()


def first_picked(app) -> int:
    """The image that the order begins with, in the single view."""
    return int(app.query_params["image"].rpartition("/")[2])


def test_the_images_on_which_methods_disagree_are_one_button_away(opened, gallery: Gallery) -> None:
    """Catches a button that only chooses the order, and then asks again before it starts."""
    app = opened(view="Gallery")
    (button,) = [b for b in app.button if b.label.startswith("Where methods disagree")]
    settled(button.click().run())
    assert app.selectbox(key="order").value == METHODS_DISAGREE
    assert any(c.value.startswith("Mean rank correlation of every two heatmaps by Gradient, ") for c in app.caption)
    classifier = cache.load_classifier("scenes")
    rows = rank_images(gallery, "Confident errors first")
    job = make_method_task(classifier, gallery.images, rows).ask()
    assert job.wait(PATIENCE_S)
    worst = min(rows, key=lambda i: job.result.correlations[i])
    single = opened(method="Gradient", order=METHODS_DISAGREE)
    assert first_picked(single) == worst


def test_the_image_that_two_networks_predict_most_differently_comes_first(opened, workspace: Path) -> None:
    """Against the divergence computed here, from predictions asked for here."""
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(OTHER.replace("1.05", "1.4"))
    gallery = gallery_of("scenes", "adversarial")
    networks = [cache.load_classifier(name) for name in ("scenes", "models/other.py:build")]
    inputs = [networks[0].preprocess(gallery.images.open(i))[None] for i in range(FEW)]
    p, q = (np.concatenate([net.probabilities(x).double().numpy() + 1e-12 for x in inputs]) for net in networks)
    middle = (p + q) / 2
    divergence = ((p * np.log2(p / middle)) + (q * np.log2(q / middle))).sum(1) / 2
    app = opened(method="Gradient", order=NETWORKS_DISAGREE)
    assert first_picked(app) == divergence.argmax()
    pair = opened(view="Compare models", method="Gradient")
    assert pair.selectbox(key="pair.order").value == NETWORKS_DISAGREE
    assert first_picked(pair) == divergence.argmax()


def test_another_order_begins_with_its_own_first_images(opened, gallery: Gallery) -> None:
    """Catches an order whose first image is not shown, and one that drops an image of the link or picked by hand."""
    last = rank_images(gallery, "Least confident first")
    app = opened(method="Gradient", image="adversarial/7")
    assert first_picked(app) == 7
    settled(app.selectbox(key="order").select("Least confident first").run())
    assert first_picked(app) == last[0] != 7
    grid = opened(view="Grid", method="Gradient", methods="Gradient")
    settled(grid.selectbox(key="order").select("Least confident first").run())
    assert grid.query_params["images"] == f"adversarial/{','.join(map(str, last[:3]))}"
    picked = opened(view="Grid", methods="Gradient", images="adversarial/3,5")
    settled(picked.selectbox(key="order").select("Least confident first").run())
    assert picked.query_params["images"] == "adversarial/3,5"


def test_a_selection_goes_to_the_grid_and_to_the_comparison(opened, workspace: Path) -> None:
    """Catches a selection that is lost on the way, and images of the comparison that were not selected."""
    (workspace / "models").mkdir()
    (workspace / "models" / "other.py").write_text(OTHER)

    def gallery_page():
        app = opened(view="Gallery", select="true", images="adversarial/3,5,7", method="Gradient", methods="Gradient")
        assert "3 selected" in [c.value for c in app.caption]
        return app, {button.label: button for button in app.button}

    app, buttons = gallery_page()
    settled(buttons["Grid"].click().run())
    assert list(app.dataframe[0].value["image"]) == [f"adversarial/0/00000{k}" for k in (3, 5, 7)]
    app, buttons = gallery_page()
    settled(buttons["Compare models"].click().run())
    assert set(app.dataframe[0].value["image"]) == {"adversarial/0/000003"}
    assert f"3 of {FEW} images fit the filters." in [c.value for c in app.caption]
    app, buttons = gallery_page()
    buttons["Clear selection"].click().run()
    assert not app.session_state[IMAGES_KEY]
    assert "images" not in app.query_params


def test_a_download_has_the_original_files_and_the_predictions(gallery: Gallery, workspace: Path) -> None:
    """Catches images that were encoded again, and rows that do not belong to their files."""
    for k, name in enumerate(("fish", "boat", "fish")):
        path = workspace / "pictures" / "mine" / name / f"{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((50, 40), 60 + k).convert("RGB").save(path, quality=70)
    own = gallery_of("scenes", "mine")
    with zipfile.ZipFile(io.BytesIO(build_archive(own, "mine", [2, 0]))) as archive:
        table = pd.read_csv(archive.open("images.csv"))
        for row, i in zip(table.itertuples(), (2, 0), strict=True):
            assert (row.id, row.true_class) == (own.images.ids[i], own.describe_prediction(i)[0])
            assert archive.read(row.file) == (workspace / "pictures" / "mine" / own.images.ids[i]).read_bytes()
            assert row.confidence == pytest.approx(float(own.predictions.probability[i]), abs=1e-6)
    with zipfile.ZipFile(io.BytesIO(build_archive(gallery, "adversarial", [4]))) as archive:
        drawn = Image.open(archive.open("images/adversarial/0/000004.png"))
        np.testing.assert_array_equal(np.asarray(drawn), np.asarray(gallery.images.open(4)))


def test_the_table_of_classes_is_of_this_network_on_this_set(opened, gallery: Gallery) -> None:
    """Against SciPy and predictions made here. Catches another set's labels, and filters that change the table."""
    app = settled(opened(view="Gallery", by_class="true", **{"filter.verdict": "Wrong"}).run())
    (drawn,) = [one for one in app.dataframe if "auc" in one.value]
    assert read_headings(drawn) == ["Class", "Images", "Sensitivity", "Precision", "AUC", "95% CI from", "to"]
    table = drawn.value
    classifier = cache.load_classifier("scenes")
    inputs = torch.stack([classifier.preprocess(gallery.images.open(i)) for i in range(FEW)])
    probabilities, truth = classifier.probabilities(inputs).double().numpy(), np.asarray(gallery.images.labels)
    assert table["images"].sum() == FEW
    for row in table.rename(columns={"class": "name"}).itertuples():
        k = gallery.categories.index(row.name)
        mine = truth == k
        area = mannwhitneyu(probabilities[mine, k], probabilities[~mine, k]).statistic / (mine.sum() * (~mine).sum())
        assert pytest.approx(area, abs=1e-9) == row.auc
        assert row.sensitivity == pytest.approx((probabilities[mine].argmax(1) == k).mean())
