"""Users' assertions against the network asked directly; what a killed run leaves; what a wrong file is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageOps
from scipy.stats import beta

from core.errors import ForetellError
from inquiry.assertions.assertions import AssertionQuery, assertion_files
from inquiry.assertions.rules import Endless, Prediction, RuleProcess
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.conftest import ROOT
from tests.core.scenes import scene_net
from tests.inquiry.killing import killed_and_whole

PREDICTION = Prediction(("boat",), np.ones(1, np.float32), None, lambda picture: np.ones(1, np.float32))
SETTINGS = {"split": "adversarial", "size": 48}
RULES = re.search(
    r"^`rules\.py`:\n\n```python\n(.*?)^```",
    (ROOT / "docs" / "how-to" / "write-rules.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)[1]
"""The file of the how-to page."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The page's assertions over misleading scenes: the table, the report."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.py").write_text(RULES)
    asserted, (csv, report) = assertion_files(AssertionQuery(folder / "rules.py", settings=SETTINGS), folder / "out")
    assert not (folder / "out" / "parts").exists()
    pd.testing.assert_frame_equal(pd.read_csv(csv), asserted.table, check_dtype=False)
    assert json.loads(report.read_text()) == asserted.report
    return asserted.table, asserted.report["assertions"]


@pytest.fixture(scope="module")
def asked():
    """Each picture and the network's probabilities of it, mirrored too, one at a time."""
    network = scene_net()
    images = open_set(ImageSource.model_validate({"set": "scenes", **SETTINGS}), None)

    def say(picture):
        return network.probabilities(network.preprocess(picture)[None])[0].numpy()

    pictures = [images.open(i) for i in range(len(images))]
    labels = [images.categories[k] for k in images.labels]
    return network, labels, [say(p) for p in pictures], [say(ImageOps.mirror(p)) for p in pictures]


def test_the_table_is_what_the_network_says(found, asked):
    table, _ = found
    network, labels, answers, mirrored = asked
    assert table["label"].tolist() == labels
    assert table["predicted"].tolist() == [network.categories[p.argmax()] for p in answers]
    np.testing.assert_allclose(table["confidence"], [p.max() for p in answers], atol=1e-5)
    expected = [float(p.argmax() != q.argmax()) for p, q in zip(answers, mirrored, strict=True)]
    assert 0 < sum(expected) < len(expected)
    assert table["same_when_mirrored"].tolist() == expected
    assert (table["as_sure_in_dim_light"] > 0).any()
    assert table["as_sure_in_dim_light"].between(0, 0.9).all()
    assert (table["no_boat_is_a_car"].notna() == (table["label"] == "boat")).all()


def test_the_report_counts_the_table(found):
    table, report = found
    for name, one in report.items():
        said = table[name].dropna()
        assert (one["applied"], one["broken"]) == (len(said), int((said > 0).sum()))
        assert one["low"] <= one["share"] <= one["high"]
        by_category = one["by_category"].values()
        assert sum(c["broken"] for c in by_category) == one["broken"]
        assert sum(c["applied"] for c in by_category) == one["applied"]
    assert report["same_when_mirrored"]["says"] == "The prediction does not change when the image is mirrored."
    assert list(report["no_boat_is_a_car"]["by_category"]) == ["boat"]
    dim = table.set_index("image")["as_sure_in_dim_light"]
    worst = report["as_sure_in_dim_light"]["worst"]
    assert worst[0] == dim.idxmax()
    assert (np.diff(dim[worst]) <= 0).all()


def test_the_interval_is_wilsons(found):
    """By the formula, and near the exact one of Clopper and Pearson."""
    one = found[1]["as_sure_in_dim_light"]
    n, p, z = one["applied"], one["share"], 1.959963984540054
    centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert one["low"] == pytest.approx((centre - half) / (1 + z**2 / n))
    assert one["high"] == pytest.approx((centre + half) / (1 + z**2 / n))
    assert one["low"] == pytest.approx(beta.ppf(0.025, one["broken"], n - one["broken"] + 1), abs=0.03)


def test_images_without_labels(tmp_path):
    for k in range(3):
        Image.new("RGB", (30, 20), (80 * k, 0, 0)).save(tmp_path / f"{k}.png")
    (tmp_path / "r.py").write_text(
        "def wide(picture, answer):\n    return answer.label is None and picture.width == 30\n"
    )
    asserted, (csv, _) = assertion_files(AssertionQuery(tmp_path / "r.py", images=str(tmp_path)), tmp_path / "out")
    assert csv.name == "scenes.r.csv"
    assert asserted.report["assertions"]["wide"] | {"low": 0, "high": 0} == {
        "says": "wide",
        "applied": 3,
        "broken": 0,
        "share": 0.0,
        "low": 0,
        "high": 0,
        "by_category": {},
        "worst": [],
    }


def test_a_image_that_is_drawn_upon_is_whole_for_the_next(tmp_path):
    (tmp_path / "r.py").write_text(
        "def first(picture, answer):\n    print('no reply')\n"
        "    picture.paste((0, 0, 0), (0, 0, 96, 96))\n    return True\n"
        "def second(picture, answer):\n    return picture.getextrema() != ((0, 0),) * 3\n"
    )
    asserted, _ = assertion_files(AssertionQuery(tmp_path / "r.py", settings={"size": 2}), tmp_path / "out")
    assert asserted.report["assertions"]["second"]["broken"] == 0


def test_an_answer_by_the_names_of_its_classes():
    """Two classes of one plain name are one name: their probabilities add up."""
    answer = Prediction(("crane", "boat", "crane"), np.array([0.2, 0.5, 0.3], np.float32), None, lambda _: None)
    assert (answer.category, answer.probability) == ("boat", 0.5)
    assert answer.of("crane") == pytest.approx(0.5)
    with pytest.raises(ForetellError, match="no class 'bote'"):
        answer.of("bote")


def test_a_kill_and_the_same_command_again(tmp_path):
    """Killed in the midst, it goes on and gives the same bytes as a run that was left alone."""
    (tmp_path / "rules.py").write_text(RULES)
    words = ["assertions", "rules.py", "--setting", "size=96"]
    for said in killed_and_whole(tmp_path, words, ["scenes.rules.csv", "scenes.rules.json"]):
        assert re.match(r"same_when_mirrored: broken by \d+ of 96 images \(", said)


def test_what_was_kept_is_of_this_file_and_these_images(tmp_path):
    """A run that was interrupted, then another rule of the same name: nothing of the old one is taken."""
    rules = tmp_path / "r.py"
    rules.write_text("def rule(picture, answer):\n    return True\n")

    def interrupted(done, total, what):
        if done == 32:
            raise KeyboardInterrupt

    request = AssertionQuery(rules, settings={"size": 40})
    with pytest.raises(KeyboardInterrupt):
        assertion_files(request, tmp_path / "out", interrupted)
    assert len(list((tmp_path / "out" / "parts").iterdir())) == 1
    rules.write_text("def rule(picture, answer):\n    return False\n")
    assert assertion_files(request, tmp_path / "out")[0].report["assertions"]["rule"]["broken"] == 40


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("x = 1\n", "has no assertion: write a function"),
        ("from json import dumps\ndef _helper(a, b): return True\n", "has no assertion"),
        ("def rule(picture): return True\n", r"r\.py:rule does not take \(image, prediction\)"),
        ("def label(picture, answer): return True\n", "has the name of one of the table"),
        (
            "def rule(picture, answer): return 1 / 0\n",
            r"rule failed on standard/0/000000 \(ZeroDivisionError: division",
        ),
        ("def rule(picture, answer): return answer.of('bote') > 0\n", "there is no class 'bote'"),
        ("def rule(picture, answer): return 'yes'\n", "gave 'yes' for standard/0/000000: return True"),
        ("def rule(picture, answer): return -0.5\n", "gave -0.5 for"),
        ("def rule(picture, answer): return float('nan')\n", "gave nan for"),
        ("def rule(picture, answer): pass\n", "returns None for all 4 images"),
        ("def rule(:\n", "failed while it was read: SyntaxError"),
        ("raise SystemExit(4)\n", r"r\.py failed while it was read: SystemExit: 4"),
        ("def rule(picture, answer): raise SystemExit(3)\n", r"rule failed on standard/0/000000 \(SystemExit: 3"),
        ("def rule(picture, answer): raise KeyboardInterrupt\n", r"rule failed on .* \(KeyboardInterrupt: "),
        ("def rule(picture, answer): return answer.to(3)\n", r"rule failed on standard/0/000000 \(\w+Error: "),
        (
            "from os import _exit\ndef rule(picture, answer): _exit(3)\n",
            r"r\.py:rule failed on standard/0/000000: it ended its process",
        ),
        ("from os import _exit\n_exit(3)\n", r"r\.py ended its process"),
    ],
)
def test_a_wrong_file_is_one_sentence_and_leaves_nothing(code, sentence, tmp_path):
    (tmp_path / "r.py").write_text(code)
    with pytest.raises(ForetellError, match=sentence):
        assertion_files(AssertionQuery(tmp_path / "r.py", settings={"size": 4}), tmp_path / "out")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_a_rule_that_never_ends_is_named_and_a_longer_limit_goes_on(tmp_path):
    """Catches a run that hangs for ever, and finished pictures that are lost to it."""
    (tmp_path / "r.py").write_text(
        "from pathlib import Path\nfrom time import sleep\nseen = Path(__file__).with_name('seen')\n"
        "def rule(picture, answer):\n"
        "    before = int(seen.read_text()) if seen.exists() else 0\n"
        "    seen.write_text(str(before + 1))\n"
        "    while before == 33:\n        sleep(0.01)\n"
        "    return True\n"
    )
    request = AssertionQuery(tmp_path / "r.py", settings={"size": 40}, limit=0.5)
    with pytest.raises(ForetellError, match=r"^r\.py:rule did not end within 0\.5 s on standard/\d/0000\d\d: correct"):
        assertion_files(request, tmp_path / "out")
    asserted, _ = assertion_files(replace(request, limit=30), tmp_path / "out")
    assert asserted.report["assertions"]["rule"]["applied"] == 40
    assert (tmp_path / "seen").read_text() == str(34 + 8)  # the first 32 were kept


def test_no_file_is_one_sentence():
    with pytest.raises(ForetellError, match=r"There is no file nowhere\.py: give a Python file"):
        RuleProcess(Path("nowhere.py"))


def test_an_unknown_set_is_one_sentence(tmp_path):
    (tmp_path / "r.py").write_text("def rule(picture, answer): return True\n")
    with pytest.raises(ForetellError, match=r"^Unknown image set 'scene'\. Did you mean 'scenes'\?$"):
        assertion_files(AssertionQuery(tmp_path / "r.py", image_set="scene"), tmp_path)


ENDLESS = {
    "loop": "while True:\n        pass",
    "one step of Python that never ends": "__import__('re').match('(a+)+$', 'a' * 60 + 'b')",
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS)
def test_a_rule_that_never_ends_is_killed_and_the_server_serves_meanwhile(code, tmp_path):
    """Catches a rule in the server's own process: the second one would stop every participant's page for ever."""
    (tmp_path / "r.py").write_text(f"def rule(picture, answer):\n    {code}\n")
    over, served = Event(), []
    server = Thread(target=lambda: [served.append(0) for _ in iter(lambda: over.wait(0.02), True)])
    with closing(RuleProcess(tmp_path / "r.py")) as rules:
        server.start()
        with pytest.raises(Endless, match=r"^r\.py:rule did not end within 1 s on a picture: correct it"):
            rules.severity("rule", Image.new("RGB", (4, 4)), PREDICTION, "a picture", 1)
        over.set()
        assert rules._process.wait(300) < 0  # by a signal
    assert len(served) > 10


def test_a_file_that_never_ends_is_killed_while_it_is_read(tmp_path):
    """Catches a page, or a command, that waits for ever for a file with a loop at its top."""
    (tmp_path / "r.py").write_text("while True:\n    pass\n")
    with pytest.raises(Endless, match=r"^r\.py was not read within 1 s\. Remove loops that do not end, and move slow"):
        RuleProcess(tmp_path / "r.py", limit=1)


def test_a_rule_that_never_ends_does_not_outlive_a_killed_server(tmp_path):
    """Catches a process that computes for ever because nobody is left to end it."""
    (tmp_path / "r.py").write_text(
        "def rule(picture, answer):\n    while True:\n        open('alive', 'a').write('.')\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", "from tests.inquiry.test_assertions import *; run_alone()"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    alive = tmp_path / "alive"
    while not alive.exists():
        assert server.poll() is None
        time.sleep(0.05)
    server.kill()
    server.wait()
    deadline, size = time.monotonic() + 60, -1
    while size != alive.stat().st_size:
        assert time.monotonic() < deadline
        size = alive.stat().st_size
        time.sleep(0.5)


def run_alone():
    """Run the file ``r.py`` as a server would."""
    RuleProcess(Path("r.py")).severity("rule", Image.new("RGB", (4, 4)), PREDICTION, "a picture")
