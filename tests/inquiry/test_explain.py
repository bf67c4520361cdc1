"""Heatmaps of a user's own files: any picture, many at a time, made once, and faults that stop nothing else."""

from __future__ import annotations

import json
from functools import wraps
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.attribution import METHODS
from core.errors import ForetellError
from data.scenes.generator import render
from inquiry.files import chosen_methods, explain, heatmap_files
from inquiry.files.explain import ExplanationQuery, Outcome, explain_files, parameters_of

GRADIENT = ExplanationQuery("scenes", ("gradient",), target="fish")
RISE = ExplanationQuery("scenes", ("rise",), parameters={"samples": "96"})


@pytest.fixture
def fish():
    return render(5, category="fish", context="sea").image


@pytest.fixture
def folder(tmp_path):
    """Five scenes."""
    (tmp_path / "pictures").mkdir()
    for k in range(5):
        render(k, category="fish", context="sea").image.save(tmp_path / "pictures" / f"{k}.png")
    return tmp_path / "pictures"


def maps(paths, out, request=GRADIENT):
    explain_files(request, paths, out)
    return [np.load(out / f"{path.stem}.gradient.npy") for path in paths]


def test_a_phones_photograph_is_explained_upright(fish, tmp_path):
    """Stored turned, with the EXIF tag that says so: the map is that of the upright picture."""
    fish.save(tmp_path / "upright.png")
    turned = fish.transpose(Image.Transpose.ROTATE_90)
    exif = turned.getexif()
    exif[0x0112] = 6  # "turn by 90 degrees clockwise to see it"
    turned.save(tmp_path / "turned.png", exif=exif)
    upright, same = maps([tmp_path / "upright.png", tmp_path / "turned.png"], tmp_path / "out")
    np.testing.assert_array_equal(upright, same)


@pytest.mark.parametrize(
    ("mode", "ending"), [("RGBA", "png"), ("P", "png"), ("L", "png"), ("1", "png"), ("CMYK", "jpg")]
)
@pytest.mark.parametrize("size", [(96, 96), (1, 1), (3, 500)])
def test_any_mode_and_size_of_image(fish, tmp_path, mode, ending, size):
    fish.resize(size).convert(mode).save(tmp_path / f"one.{ending}")
    (found,) = maps([tmp_path / f"one.{ending}"], tmp_path / "out")
    assert np.isfinite(found).all()


def test_top_is_the_classifiers_answer(fish, tmp_path):
    fish.save(tmp_path / "fish.png")
    explain_files(ExplanationQuery("scenes", ("gradient",)), [tmp_path / "fish.png"], tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "fish.gradient.json").read_text())
    assert certificate["probability"] > 1 / 16
    explain_files(
        ExplanationQuery("scenes", ("gradient",), target=str(certificate["target"])), [tmp_path / "fish.png"], tmp_path
    )
    np.testing.assert_array_equal(
        np.load(tmp_path / "fish.gradient.npy"), np.load(tmp_path / "out" / "fish.gradient.npy")
    )


@pytest.mark.parametrize("request_", [GRADIENT, RISE], ids=["gradient", "rise"])
def test_a_map_does_not_depend_on_who_is_explained_with_it(folder, tmp_path, monkeypatch, request_):
    """One generator for all batches would give the second batch other masks; so would one per picture of a batch."""
    (method,) = request_.methods
    monkeypatch.setattr(explain, "MOST_AT_ONCE", 2)
    explain_files(request_, [folder], tmp_path / "together")
    for k in range(5):
        explain_files(request_, [folder / f"{k}.png"], tmp_path / "alone")
        together, alone = (np.load(tmp_path / of / f"{k}.{method}.npy") for of in ("together", "alone"))
        np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5 * np.abs(alone).max())


def test_what_is_there_is_kept_and_any_change_makes_it_again(folder, tmp_path):
    out = tmp_path / "out"
    assert explain_files(GRADIENT, [folder], out) == Outcome(n_made=5)
    assert explain_files(GRADIENT, [folder], out) == Outcome(n_kept=5)
    (out / "0.gradient.npy").unlink()
    (out / "1.gradient.json").write_text("{")
    (folder / "2.png").write_bytes((folder / "3.png").read_bytes())
    assert explain_files(GRADIENT, [folder], out) == Outcome(n_made=3, n_kept=2)
    for other in (
        ExplanationQuery("scenes", ("gradient",), target="boat"),
        ExplanationQuery("scenes", ("gradient",), "boat", {}, 1),
    ):
        assert explain_files(other, [folder], out) == Outcome(n_made=5)
    assert explain_files(
        ExplanationQuery("scenes", ("gradient", "input_x_gradient"), "boat", {}, 1), [folder], out
    ) == Outcome(n_made=5, n_kept=5)


def test_a_map_replaced_by_another_is_never_taken_for_the_old_one(folder, tmp_path, monkeypatch):
    """Cut off after another class's array is written: the old class's certificate must not stand beside it."""
    out, picture = tmp_path / "out", folder / "0.png"
    explain_files(GRADIENT, [picture], out)
    expected = np.load(out / "0.gradient.npy")

    def cut_off(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(heatmap_files, "draw_map", cut_off)
    with pytest.raises(KeyboardInterrupt):
        explain_files(ExplanationQuery("scenes", ("gradient",), target="boat"), [picture], out)
    monkeypatch.undo()
    assert not np.array_equal(np.load(out / "0.gradient.npy"), expected)
    assert explain_files(GRADIENT, [picture], out) == Outcome(n_made=1)
    np.testing.assert_array_equal(np.load(out / "0.gradient.npy"), expected)


def test_an_unreadable_image_is_named_and_the_others_are_explained(folder, tmp_path):
    (folder / "2.png").write_bytes(b"not a picture")
    with pytest.raises(
        ForetellError, match=r"^1 of 5 heatmaps could not be made; the others are there\. .*2\.png cannot"
    ):
        explain_files(GRADIENT, [folder], tmp_path / "out").complain()
    assert sorted(path.stem for path in (tmp_path / "out").glob("*.json")) == [f"{k}.gradient" for k in (0, 1, 3, 4)]


def test_a_method_that_refuses_one_image_names_it_and_makes_the_others(folder, tmp_path, monkeypatch):
    """The batch as a whole is refused: picture by picture tells which it is."""
    real = METHODS["gradient"]

    @wraps(real)
    def picky(classifier, images, targets, **options):
        if any(torch_sum == bad for torch_sum in images.sum((1, 2, 3)).tolist()):
            raise ForetellError("This one I cannot.")
        return real(classifier, images, targets, **options)

    classifier = explain.open_classifier("scenes", folder)
    bad = float(classifier.preprocess(Image.open(folder / "3.png")).sum())
    monkeypatch.setattr(chosen_methods, "open_method", lambda *_: picky)
    with pytest.raises(ForetellError, match=r"1 of 5 heatmaps could not be made.*3\.png: This one I cannot\.$"):
        explain_files(GRADIENT, [folder], tmp_path / "out").complain()
    assert len(list((tmp_path / "out").glob("*.json"))) == 4


def test_a_method_that_does_not_apply_leaves_the_others_their_work(folder, tmp_path):
    (tmp_path / "flat.py").write_text(
        "from torch import nn\ndef build():\n    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 224 * 224, 2))\n"
    )
    request = ExplanationQuery(str(tmp_path / "flat.py"), ("grad_cam", "gradient"))
    sentence = r"^5 of 10 heatmaps could not be made; the others are there\. flat has no layer with feature maps"
    with pytest.raises(ForetellError, match=sentence) as refused:
        explain_files(request, [folder], tmp_path / "out").complain()
    assert str(refused.value).count("flat has no layer") == 1
    assert len(list((tmp_path / "out").glob("*.gradient.json"))) == 5


def test_a_parameter_goes_to_the_methods_that_take_it():
    request = ExplanationQuery("scenes", ("gradient", "lime", "rise"), parameters={"samples": "200", "ridge": "2"})
    assert parameters_of(request) == {"gradient": {}, "lime": {"samples": 200, "ridge": 2.0}, "rise": {"samples": 200}}
    with pytest.raises(ForetellError, match="no parameter 'sample'"):
        parameters_of(ExplanationQuery("scenes", ("gradient", "lime"), parameters={"sample": "200"}))


def test_progress_only_goes_forward_and_ends_full(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(explain, "MOST_AT_ONCE", 2)
    seen = []
    explain_files(RISE, [folder], tmp_path / "out", lambda done, total, what: seen.append((done, total)))
    done = [d for d, _ in seen]
    assert done == sorted(done)
    assert seen[-1] == (5, 5)


def test_a_parameter_that_no_map_can_have_leaves_nothing_behind(fish, tmp_path):
    fish.save(tmp_path / "fish.png")
    request = ExplanationQuery("scenes", ("bayesian_teaching",), parameters={"samples": "1"})
    with pytest.raises(ForetellError, match=r"^samples=1: Bayesian-teaching saliency maps need at least 2 masks"):
        explain_files(request, [tmp_path / "fish.png"], tmp_path / "out").complain()
    assert not (tmp_path / "out").exists()


def test_either_engine_writes_the_same_files(tmp_path, monkeypatch):
    """Catches a worker that starts elsewhere, draws other masks, or leaves out an image or what is said of it."""
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    folder = Path("pictures")  # workers have to find relative names
    folder.mkdir()
    for k in range(8):
        render(k, category="fish", context="sea").image.save(folder / f"{k}.png")
    (folder / "8.png").write_bytes(b"no image")
    request = ExplanationQuery("scenes", ("gradient", "rise"), parameters={"samples": "32"})
    written, said = [], []
    for name, workers, engine in (("one", 1, "processes"), ("two", 2, "processes"), ("ray", 2, "ray")):
        with pytest.raises(ForetellError, match="2 of 18 heatmaps could not be made") as refused:
            explain_files(request, [folder], Path(name), workers=workers, engine=engine).complain()
        said.append(str(refused.value))
        written.append({path.name: path.read_bytes() for path in Path(name).iterdir()})
    assert len(written[0]) == 8 * 2 * 3
    assert written[0] == written[1] == written[2]
    assert said[0] == said[1] == said[2]
    again = explain_files(request, sorted(folder.glob("[0-7].png")), Path("two"), workers=2)
    assert (again.n_made, again.n_kept) == (0, 16)


def test_a_warning_of_a_certificate_is_counted_with_its_image(folder, tmp_path):
    """Catches warnings that stay in the certificates, where nobody who reads the terminal sees them."""
    query = ExplanationQuery("scenes", ("bayesian_teaching", "gradient"), parameters={"samples": "32"})
    outcome = explain_files(query, [folder], tmp_path / "out")
    files = sorted((tmp_path / "out").glob("*.bayesian_teaching.json"))
    warned = [json.loads(file.read_text())["warnings"] for file in files]
    assert outcome.warned == {"bayesian_teaching": sum(bool(said) for said in warned)}
    assert outcome.warnings == {"bayesian_teaching": f"0.png: {warned[0][0]}"}
