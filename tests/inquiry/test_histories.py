"""Rules over the last predictions of a stream: a planted stream counted by hand, a slow loop, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from core.types import silent
from dashboard.cli.assertions import assertions as run_command
from data.scenes.splits import picture
from inquiry.assertions import assertions as module
from inquiry.assertions.assertions import AssertionQuery, assertion_files
from inquiry.assertions.history import History
from inquiry.assertions.history_reports import StreamPredictions, check_histories, report_history
from inquiry.assertions.rules import RuleProcess, load_assertions
from inquiry.assertions.streams import Streams
from inquiry.measures.rules import assertion
from inquiry.units.exemplars import ImageCollection
from tests.conftest import ROOT
from tests.core.scenes import scene_net

RULES = re.search(
    r"^`stream\.py`:\n\n```python\n(.*?)^```",
    (ROOT / "docs" / "how-to" / "write-rules-about-a-stream.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)[1]
"""The file of the how-to page."""

FRAMES = "bbfbbbbbffbf"
"""What the network predicts for each frame, boat or fish. The third is labelled boat, all others as predicted."""

NAMES = {"b": "boat", "f": "fish"}


def history(predicted: str, categories: tuple[str, ...] = ("b", "f", "c")) -> History:
    n = len(predicted)
    return History(tuple(map(str, range(n))), tuple(predicted), (0.5,) * n, (None,) * n, categories)


def wilson(share: float, n: int) -> tuple[float, float]:
    z = 1.959963984540054
    centre, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """A folder of labelled frames, numbered from 1 without leading zeros, of two scenes that the network gets right."""
    network, folder, scenes = scene_net(), tmp_path_factory.mktemp("frames"), {}
    for index in range(60):
        scene = picture("standard", 0, index).image
        name = network.categories[int(network.logits(network.preprocess(scene)[None]).argmax())]
        scenes.setdefault(name, scene)
        if {"boat", "fish"} <= scenes.keys():
            break
    for at, predicted in enumerate(FRAMES, start=1):
        label = "boat" if at == 3 else NAMES[predicted]
        (folder / label).mkdir(exist_ok=True)
        scenes[NAMES[predicted]].save(folder / label / f"frame{at}.png")
    return folder


def test_planted_flickers_and_gaps_are_found_with_their_images_and_errors(frames, tmp_path, capsys):
    """Every number by hand, from `FRAMES`, on the command line."""
    (tmp_path / "stream.py").write_text(RULES)
    run_command(
        tmp_path / "stream.py", image_set="folder", setting=[f"path={frames}"], order="name", out=tmp_path / "out"
    )
    said = capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "scenes.stream.json").read_text())["assertions"]
    table = pd.read_csv(tmp_path / "out" / "scenes.stream.csv").sort_values("position")
    assert table["predicted"].tolist() == [NAMES[one] for one in FRAMES]
    assert table["position"].tolist() == list(range(1, 13))
    nan = float("nan")
    np.testing.assert_array_equal(table["no_flicker"], [nan] * 4 + [1, 1, 0, 0, 0, 0, 1, 2])
    np.testing.assert_array_equal(table["no_gap"], [nan] * 2 + [0, 1, 0, 0, 0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(table["few_boats"], [nan] * 7 + [1, 0, 0, 0, 0])
    counts = {name: [one[key] for key in ("window", "applied", "broken", "disjoint")] for name, one in report.items()}
    assert counts == {"no_flicker": [5, 8, 4, 2], "no_gap": [3, 10, 2, 4], "few_boats": [8, 5, 1, 1]}
    errors = {
        name: [(one[key]["errors"], one[key]["windows"]) for key in ("precision", "elsewhere")]
        for name, one in report.items()
    }
    assert errors == {
        "no_flicker": [(1, 2), (1, 1)],
        "no_gap": [(1, 2), (1, 3)],
        "few_boats": [(1, 1), (1, 1)],
    }
    gap, other = report["no_gap"]["violations"]
    assert gap["images"] == ["boat/frame2.png", "boat/frame3.png", "boat/frame4.png"]
    assert (gap["predicted"], gap["severity"], gap["error"]) == (["boat", "fish", "boat"], 1.0, True)
    assert other["images"] == ["fish/frame10.png", "boat/frame11.png", "fish/frame12.png"]
    assert other["error"] is False
    assert [one["images"][-1] for one in report["no_flicker"]["violations"]] == ["boat/frame5.png", "boat/frame11.png"]
    low, high = wilson(0.2, 4)
    share, both, third = (f"{a:.1%} to {b:.1%}" for a, b in ((low, high), wilson(1 / 2, 2), wilson(1 / 3, 3)))
    assert (
        f"no_gap: broken in 2 of 10 windows of 3 images (20.0%, 95%: {share}); 2 of these share no image; an error is "
        f"in 1 of 2 of them (50.0%, 95%: {both}), and in 1 of 3 where the rule holds (33.3%, 95%: {third})\n"
    ) in said


def test_without_labels_a_folder_is_a_stream_and_errors_are_unknown(frames, tmp_path):
    """Catches windows that go over the end of a stream: the folder of fish has too few frames for eight in a row."""
    (tmp_path / "r.py").write_text(
        "def six_boats(history, n=6):\n    return history.share_of('fish') == 0 and history.labels == (None,) * n\n"
        "def wide(picture, answer):\n    return picture.width > 0\n"
    )
    found, _ = assertion_files(AssertionQuery(tmp_path / "r.py", images=str(frames), order="name"), tmp_path / "out")
    one = found.report["assertions"]["six_boats"]
    assert list(found.report["assertions"]) == ["six_boats", "wide"]
    assert found.report["order"] == {"by": "name", "streams": 2}
    assert set(found.table["stream"]) == {"boat", "fish"}
    assert (one["applied"], one["broken"], one["disjoint"]) == (4, 3, 1)
    assert one["violations"][0]["images"] == [f"boat/frame{at}" for at in (1, 2, 3, 4, 5, 6)]
    assert one["violations"][0]["error"] is None
    assert (one["precision"], one["elsewhere"]) == (None, None)
    assert found.report["assertions"]["wide"]["applied"] == 12


@pytest.mark.parametrize(
    ("predicted", "changes", "gap"),
    [
        ("bbb", 0, None),
        ("bfb", 2, "b"),
        ("bbf", 1, None),
        ("fbb", 1, None),
        ("bbfbb", 2, "b"),
        ("bffbb", 2, None),
        ("bfbfb", 4, None),
        ("bcb", 2, "b"),
        ("bcfb", 3, None),
        ("bfbc", 3, None),
    ],
)
def test_changes_and_gaps_are_those_of_the_definition(predicted, changes, gap):
    last = history(predicted)
    assert (last.count_changes(), last.find_gap()) == (changes, gap)
    assert sum(last.share_of(name) for name in last.categories) == pytest.approx(1)
    assert last.share_of("b") == predicted.count("b") / len(predicted)


def random_streams(draws, sizes):
    """Streams whose images are shuffled in the set, with random predictions, labels and an unknown label at times."""
    total = sum(sizes)
    order = draws.permutation(total).tolist()
    rows = [tuple(order[sum(sizes[:k]) : sum(sizes[: k + 1])]) for k in range(len(sizes))]
    streams = Streams(tuple(map(str, range(len(sizes)))), tuple(rows), {})
    predicted = draws.choice(["b", "f"], total).tolist()
    labels = draws.choice(["b", "f", "", "other"], total, p=[0.45, 0.45, 0.05, 0.05]).tolist()
    ids = [f"image {row}" for row in range(total)]
    return StreamPredictions(streams, ids, predicted, np.full(total, 0.5, np.float32), labels, ("b", "f"))


def slow_report(given, n, severities):
    """The report's numbers, one image at a time."""
    windows = []
    for number, rows in enumerate(given.streams.rows):
        for end in range(n, len(rows) + 1):
            windows += [[(number, at, rows[at]) for at in range(end - n, end)]]

    def has_error(window):
        labels = [given.labels[row] for *_, row in window]
        if any(label not in given.categories for label in labels):
            return None
        return any(given.predicted[row] != given.labels[row] for *_, row in window)

    def disjoint(chosen):
        used, kept = set(), []
        for window in chosen:
            if not used & set(window):
                used |= set(window)
                kept.append(window)
        return kept

    applied = [window for window in windows if not np.isnan(severities[window[-1][2]])]
    broken = [window for window in applied if severities[window[-1][2]] > 0]
    holding = [window for window in applied if severities[window[-1][2]] == 0]

    def count(chosen):
        judged = [has_error(window) for window in disjoint(chosen) if has_error(window) is not None]
        return (sum(judged), len(judged)) if judged else None

    images = [[given.ids[row] for *_, row in window] for window in disjoint(broken)]
    return len(applied), len(broken), len(disjoint(applied)), images, count(broken), count(holding)


def test_a_report_is_that_of_a_slow_loop():
    """Over streams of every length, also shorter than the window, where rules sometimes do not apply."""
    draws = np.random.default_rng(0)
    seen = set()
    for n, trial in product((2, 3, 5), range(12)):
        given = random_streams(draws, [int(size) for size in draws.integers(1, 14, 3)] + [n + trial])
        severities = draws.choice([0.0, 0.0, 0.7, np.nan], len(given.ids))
        applied, broken, disjoint, images, precision, elsewhere = slow_report(given, n, severities)
        if not applied:
            continue
        found = report_history("says", n, severities, given)
        assert (found["applied"], found["broken"], found["disjoint"]) == (applied, broken, disjoint)
        assert [one["images"] for one in found["violations"]] == images
        for key, expected in (("precision", precision), ("elsewhere", elsewhere)):
            counted = found[key] and (found[key]["errors"], found[key]["windows"])
            assert counted == expected
            seen.add((key, expected is None))
        assert (found["low"], found["high"]) == pytest.approx(wilson(broken / applied, disjoint))
    assert {("precision", False), ("precision", True), ("elsewhere", False)} <= seen


def test_the_interval_covers_the_share_although_windows_overlap():
    """The share of windows with more than one change, known by enumeration, in 300 streams of independent images.

    The interval of as many separate windows, which is what counting each window would give, misses it far too often.
    """
    n, p, count = 5, 0.2, 80
    chances = [p ** sum(w) * (1 - p) ** (n - sum(w)) for w in product((0, 1), repeat=n) if sum(np.diff(w) != 0) > 1]
    truth, draws = sum(chances), np.random.default_rng(1)
    streams = Streams(("",), (tuple(range(count)),), {})
    covered = naive = 0
    for _ in range(300):
        values = draws.random(count) < p
        changes = np.convolve(np.diff(values) != 0, np.ones(n - 1), "valid")
        severities = np.concatenate([np.full(n - 1, np.nan), (changes > 1).astype(float)])
        names = np.where(values, "f", "b").tolist()
        given = StreamPredictions(streams, names, names, np.ones(count, np.float32), [""] * count, ("b", "f"))
        found = report_history("says", n, severities, given)
        covered += found["low"] <= truth <= found["high"]
        low, high = wilson(found["share"], found["applied"])
        naive += low <= truth <= high
    assert covered >= 0.93 * 300
    assert naive < 0.85 * 300


def test_the_process_of_the_rules_is_given_each_window_in_order(tmp_path):
    """A rule is called with the predictions of its window, the oldest first, and None means that it does not apply."""
    (tmp_path / "r.py").write_text(
        "def rule(history, n=2):\n"
        "    first, last = (int(name.split()[1]) for name in history.ids)\n"
        "    return None if history.labels[1] is None else 10 * first + last\n"
    )
    streams = Streams(("a", "b"), ((2, 0), (3, 1)), {})
    given = StreamPredictions(
        streams, [f"image {k}" for k in range(4)], list("bbbb"), np.ones(4, np.float32), ["b", "", "b", "b"], ("b",)
    )
    with closing(RuleProcess(tmp_path / "r.py")) as rules:
        found = check_histories(rules, given, "r.py", 60, silent)
    np.testing.assert_array_equal(found["rule"], [20, np.nan, np.nan, np.nan])


# What is refused


@pytest.mark.parametrize("arguments", ["history", "history, n", "history, n=1", "history, n=True", "history, n=3, m=4"])
def test_a_history_without_its_length_is_one_sentence(arguments, tmp_path):
    (tmp_path / "r.py").write_text(f"def rule({arguments}):\n    return True\n")
    with pytest.raises(
        ForetellError, match=r"r\.py:rule takes a history .* write \(history, n=5\), with n of 2 or more"
    ):
        load_assertions(tmp_path / "r.py")


HISTORY = "def rule(history, n=3):\n    return True\n"


def find_streams(windows, folder=None, order="name", **further):
    """The order that the command reads for rules with these histories, of a folder of frames or of scenes."""
    given = {"image_set": "folder", "settings": {"path": str(folder)}} if folder else {"settings": {"size": 4}}
    request = AssertionQuery(Path("r.py"), order=order, **{**given, **further})
    return module._find_streams(SimpleNamespace(windows=windows), request, module._open_images(request))


@pytest.mark.parametrize(
    ("windows", "order", "sentence"),
    [
        ({"rule": 3}, None, r"^r\.py:rule is about a history, and nothing says in which order.* --order name, or"),
        ({"rule": 13}, "name", r"^r\.py:rule is about 13 images in a row, and the longest stream has 12: give more"),
        ({}, "name", r"^r\.py has no rule about a history \(history, n=5\): leave out --order\.$"),
    ],
)
def test_what_does_not_apply_is_one_sentence(windows, order, sentence, frames):
    with pytest.raises(ForetellError, match=sentence):
        find_streams(windows, frames, order)
    assert find_streams({}, frames, None) is None


@pytest.mark.parametrize("further", [{}, {"images": "scenes"}])
def test_generated_images_have_no_order(further, monkeypatch):
    """The built-in scenes as a set, and without labels, of which a few are enough here."""
    if further:
        few = ImageCollection("scenes/standard", ("standard/0/000000", "standard/0/000001"), None)
        monkeypatch.setattr(module, "open_requested", lambda *_: (few, None))
    with pytest.raises(
        ForetellError, match=r"^r\.py:rule is about a history, and the images of scenes/\w+ are generated"
    ):
        find_streams({"rule": 3}, **further)


def test_a_rule_that_never_applies_is_one_sentence():
    never = SimpleNamespace(windows={"rule": 2}, severity_of_history=lambda *_: float("nan"))
    given = random_streams(np.random.default_rng(0), [3, 2])
    with pytest.raises(ForetellError, match=r"^r\.py:rule returns None for all 3 windows of 2 images: return True"):
        check_histories(never, given, "r.py", 60, silent)


def test_a_history_too_short_for_a_gap_and_an_unknown_class_are_refused():
    with pytest.raises(ForetellError, match=r"a gap needs a history of 3 or more images, and this has 2"):
        history("bb").find_gap()
    with pytest.raises(ForetellError, match=r"there is no class 'bote'; the first are b, f, c"):
        history("bbb").share_of("bote")


def test_an_unreadable_image_is_not_passed_over(frames, tmp_path):
    """Catches a window that goes over a frame that was left out; other files are no frames."""
    shutil.copytree(frames, tmp_path / "frames")
    (tmp_path / "frames" / "boat" / "notes.txt").write_text("fine")
    assert find_streams({"rule": 3}, tmp_path / "frames").longest == 12
    (tmp_path / "frames" / "boat" / "frame13.png").write_bytes(b"torn")
    with pytest.raises(ForetellError, match=r"and 1 of the images could not be read, such as boat/frame13\.png \("):
        find_streams({"rule": 3}, tmp_path / "frames")


def test_strata_are_of_single_images(tmp_path):
    (tmp_path / "r.py").write_text(HISTORY)
    with pytest.raises(
        ForetellError, match=r"^r\.py:rule is about a history, and a target is one image: choose a rule"
    ):
        assertion(SimpleNamespace(base=tmp_path, limits=None), file="r.py", rule="rule")


def test_names_of_places_cannot_be_rules(tmp_path):
    (tmp_path / "r.py").write_text(HISTORY.replace("rule", "position"))
    with pytest.raises(ForetellError, match=r"r\.py:position has the name of one of the table's columns"):
        assertion_files(AssertionQuery(tmp_path / "r.py", order="name"), tmp_path / "out")
