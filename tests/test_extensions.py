"""One file and one line: each guide of docs/how-to is followed in a copy of the project, and the copy is used."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from PIL import Image

from core.names import format_name
from study.network.sources import open_classifier, set_named
from tests import commands
from tests.study.analysis.simulated import study

ROOT = Path(__file__).parents[1]
HOW_TO = ROOT / "docs" / "how-to"
COPIED = ("core", "data", "study", "inquiry", "dashboard", "foretell.py", "requirements.txt", ".streamlit")

WITHIN = {"inquiry.layers.training.attributes:RELATIVES"}
"""Registries of what belongs to an entry of another one."""
PAGE = """
from streamlit.testing.v1 import AppTest
home = AppTest.from_file("dashboard/pages.py", default_timeout=300).run()
assert any(link.proto.label.endswith(". Take notes**") for link in home.get("page_link")), home
script = "import importlib, dashboard.pages as p; importlib.import_module(p.PAGES['notes'].module).page()"
assert AppTest.from_string(script, default_timeout=300).run().title[0].value == "Notes"
print("drawn")
"""
EXPLORE = """
import sys
from dashboard.shared import cache
from streamlit.testing.v1 import AppTest
from tests.dashboard.views.conftest import script, settled
cache.SCENE_COUNT = 48
method, known = sys.argv[1], sys.argv[2] == "known"
def open_page(**link):
    app = AppTest.from_function(script, default_timeout=300)
    for name, value in link.items():
        app.query_params[name] = value
    app = settled(app.run())
    assert not app.exception, app.exception[0].value
    return app
single = open_page(method=method, image="adversarial/7")
assert single.get("imgs") or single.get("image"), "no heatmap is drawn"
said = [one.value for one in single.caption]
assert any(one.startswith("A heatmap takes about " if known else "The cost cannot be estimated") for one in said), said
grid = open_page(view="Grid", methods=[method], images="adversarial/7")
assert grid.dataframe[0].value["probability"].notna().all()
(button,) = [one for one in grid.button if one.label == "Perturbation"]
chosen = button.click().run()
assert not chosen.exception, chosen.exception[0].value
if method == "Squares":  # the heatmaps of its family take a while, and are the same next to each method
    chosen = settled(chosen)
shown = chosen.multiselect(key="methods").value
print("in its family" if method.lower() in [one.lower() for one in shown] else "in no family", said)
"""
CARRIED = '''
from core.attribution.cost import forwards
from core.attribution.method import heatmap_method
from core.attribution.records import Family
from core.attribution.signs import Sign

GLOW = Sign("how bright this place is", None, "_influence")


@heatmap_method(family=Family.PERTURBATION, sign=GLOW, cost=forwards())
def glow(query):
    """Brightness, as a package brings it."""
    return query.explain(query.inputs.sum(1))


def plain(model, images, targets):
    """Brightness, by a function that knows nothing of Foretell."""
    return images.sum(1)


def count(inspected, progress):
    """Count the images of each label, by a function without a record."""
    import pandas

    labels = pandas.Series(inspected.images.labels)
    return labels.groupby(labels).size().rename_axis("label").reset_index(name="images")
'''
LAYERS = """
import sys
from dashboard.shared import cache
from streamlit.testing.v1 import AppTest
from tests.dashboard.views.conftest import script, settled
cache.SCENE_COUNT = 48
question, topic = sys.argv[1:]
app = AppTest.from_function(script, default_timeout=300)
for name, value in {"view": "Layers", "question": question, "layers.images": "48"}.items():
    app.query_params[name] = value
app = settled(app.run())
assert not app.exception, app.exception[0].value
assert not app.error, app.error[0].value
assert app.segmented_control(key="topic").value == topic
assert app.dataframe, [one.value for one in [*app.caption, *app.info, *app.warning, *app.markdown]]
assert len(app.dataframe[0].value), "no table is shown"
print(len(app.get("plotly_chart")), *(one.value for one in app.caption), sep="\\n")
"""
LISTED = """
from study.plan.config import IMAGE_SETS
print(IMAGE_SETS["listed"].__module__)
"""
TRANSLATED = """
from study.locales import CATALOGUES
from study.plan.procedure import Procedure
print(CATALOGUES[Procedure(language="fr").language]["ui.continue"])
"""
STUDY = """
[study]
name = "spread"
title = "Spread"
[classifier]
model = "scenes"
[sets.pool]
set = "scenes"
split = "pool"
size = 160
[sets.standard]
set = "scenes"
split = "standard"
size = 400
[sets.adversarial]
set = "scenes"
split = "adversarial"
size = 160
[trials]
categories = 2
practice = 1
[trials.strata]
measure = "brightness"
bins = 2
[saliency]
method = "squares"
parameters = { window = 16 }
[teaching]
policy = "best"
sets = 20
[display]
size = 64
"""
SQUARES = 'method = "squares"\nparameters = { window = 16 }'


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which every guide was followed."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    entries = (
        "a-method a-layer-question a-task a-condition a-dataset a-measure an-exploratory-analysis a-page a-command"
    )
    for name in entries.split():
        follow(HOW_TO / f"add-{name}.md", folder)
    translate(HOW_TO / "add-a-language.md", folder)
    return folder


def follow(guide: Path, folder: Path) -> None:
    """Write the guide's file, and its line as the last of the table that it names."""
    text = guide.read_text(encoding="utf-8")
    file, code = re.findall(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]
    table, line = re.findall(r"^The line in `([\w/]+\.py)`:\n\n```text\n(.*?)\n```", text, re.MULTILINE | re.DOTALL)[0]
    path = folder / file
    assert not path.exists()
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    path.write_text(code, encoding="utf-8")
    lines = (folder / table).read_text(encoding="utf-8").split("\n")
    value = line.split(": ", 1)[1]
    value = value[:10] if value[0] == '"' else value.partition("(")[0]  # what the table's other lines begin with
    entries = [i for i, written in enumerate(lines) if re.match(rf' +"\w+": {re.escape(value)}', written)]
    end = next(i for i in range(entries[-1], len(lines)) if re.fullmatch(r" *\},?", lines[i]))
    lines.insert(end, line)
    (folder / table).write_text("\n".join(lines), encoding="utf-8")


def translate(guide: Path, folder: Path) -> None:
    """Copy the file that the guide names, in place of a translation, and write its line after that of German."""
    text = guide.read_text(encoding="utf-8")
    [(source, target)] = re.findall(r"copy `(\S+)` to `(\S+)`", text)
    shutil.copy2(folder / source, (folder / source).with_name(target))
    [(table, line)] = re.findall(r"^The line in `([\w/]+\.py)`:\n\n```text\n(.*?)\n```", text, re.MULTILINE | re.DOTALL)
    path = folder / table
    path.write_text(
        path.read_text(encoding="utf-8").replace('    "de",\n', f'    "de",\n    {line}\n'), encoding="utf-8"
    )


def run(folder: Path, home: Path, *arguments: str) -> str:
    done = commands.run(*arguments, root=folder, home=home)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("studies",), ""),
        (("explain", "--list"), "squares"),
        (("-c", PAGE + LISTED + TRANSLATED), "drawn\ndata.sets.listed\nContinue"),
    ],
    ids=["command", "method", "page, image set and language"],
)
def test_what_a_guide_adds_is_there(copy: Path, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    """Catches a second place that must know a name: an extension of one file and one line would not be found."""
    assert expected in run(copy, tmp_path, *arguments)


def test_the_page_of_extension_points_has_every_registry() -> None:
    """Catches a registry that a newcomer is not told of, and one that the page still names."""
    extensions = runpy.run_path(str(ROOT / "docs" / "generate.py"))["extensions"]
    known = {point.table for point in extensions.POINTS}
    found = set(extensions.find_registries())
    assert len(found) > 10
    assert found - known <= WITHIN


@pytest.fixture(scope="module")
def packaged(copy: Path) -> Path:
    """The copy, and next to it an installed package that offers two methods, one with a record, and a question."""
    (copy / "carried.py").write_text(CARRIED, encoding="utf-8")
    info = copy / "carried-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: carried\nVersion: 1.0\n")
    offered = {"methods": ("glow", "plain"), "layer_questions": ("count",)}
    lines = [
        f"[foretell.{group}]\n" + "".join(f"{name} = carried:{name}\n" for name in of) for group, of in offered.items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__", "frozen"))
    return copy


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that keeps the predictions of one test for the next, which asks about another method."""
    return tmp_path_factory.mktemp("predicted")


@pytest.mark.parametrize(("method", "known"), [("squares", True), ("glow", True), ("plain", False)])
def test_a_new_method_is_estimated_drawn_and_offered(
    packaged: Path, predicted: Path, tmp_path: Path, method: str, known: bool
) -> None:
    """Catches a cost that is guessed from names of parameters, and a family or a meaning that stands elsewhere."""
    (tmp_path / "spread.toml").write_text(STUDY.replace(SQUARES, f'method = "{method}"'), encoding="utf-8")
    checked = run(packaged, predicted, "build", str(tmp_path / "spread.toml"), "--check")
    assert (f"The time that {method} takes for its heatmaps is not in this estimate." in checked) != known
    drawn = run(packaged, predicted, "-c", EXPLORE, format_name(method), "known" if known else "unknown")
    assert drawn.startswith("in its family" if known else "in no family")


def test_a_new_question_is_answered_by_the_command(copy: Path, tmp_path: Path) -> None:
    """Against the network's own layer. Catches a command that knows the questions by a list of its own."""
    given = ("--layer", "features.0", "--setting", "split=adversarial", "--setting", "size=48", "--param", "above=0.1")
    printed = run(copy, tmp_path, "layers", "sparsity", *given, "--out", str(tmp_path / "out"))
    assert "active" in printed
    table = pd.read_csv(tmp_path / "out" / "scenes.sparsity.csv").set_index("layer")
    classifier = open_classifier("scenes", tmp_path)
    images, outputs = set_named("scenes", {"split": "adversarial", "size": 48}), []
    with classifier.exclusive() as module:
        hook = module.get_submodule("features.0").register_forward_hook(lambda *given: outputs.append(given[2]))
        module(torch.stack([classifier.preprocess(images.open(i)) for i in range(48)]))
        hook.remove()
    expected = [float(outputs[0].mean()), float((outputs[0] > 0.1).float().mean())]
    assert table.loc["features.0", ["mean", "active"]].tolist() == pytest.approx(expected, rel=1e-4)
    assert "sparsity: Measure the mean activation" in run(copy, tmp_path, "layers", "--list")


def test_a_new_question_has_figure_reading_and_publications_on_the_page(packaged: Path, tmp_path: Path) -> None:
    """Catches a topic, a sentence, a figure or a cost that stands elsewhere than in the question's record."""
    figures, *said = run(packaged, tmp_path, "-c", LAYERS, "Sparsity", "Representations").splitlines()
    assert figures == "1"
    assert (
        "Share of activations above the threshold, over images, channels and places. The lower, the sparser. Method: "
        "[Glorot, Bordes & Bengio 2011](https://proceedings.mlr.press/v15/glorot11a.html)." in said
    )
    assert not [one for one in said if one.startswith("The cost cannot be estimated")]


def test_a_packages_question_is_answered_and_offered_without_a_record(packaged: Path, tmp_path: Path) -> None:
    """Catches an error where a question has no record, and a result that does not depend on the package's code."""
    figures, *said = run(packaged, tmp_path, "-c", LAYERS, "Count", "Other").splitlines()
    assert figures == "0"
    assert "The cost cannot be estimated in advance." in said
    run(packaged, tmp_path, "layers", "count", "--setting", "size=40", "--out", str(tmp_path / "out"))
    assert pd.read_csv(tmp_path / "out" / "scenes.count.csv")["images"].sum() == 40
    facts = json.loads((tmp_path / "out" / "scenes.count.json").read_text())
    assert facts["package"] == "carried 1.0"
    assert len(facts["package_digest"]) == 64


def test_a_new_method_explains_a_photograph(copy: Path, tmp_path: Path) -> None:
    """Catches a command that knows the methods by a list of its own."""
    Image.effect_noise((64, 64), 80).convert("RGB").save(tmp_path / "noise.png")
    given = ("--image", str(tmp_path / "noise.png"), "--method", "squares", "--out", str(tmp_path / "maps"))
    run(copy, tmp_path, "explain", *given)
    assert (tmp_path / "maps" / "noise.squares.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_study_uses_a_new_measure_and_a_new_condition(copy: Path, tmp_path: Path) -> None:
    """Catches a build that makes stimuli or strata by a list of names."""
    (tmp_path / "spread.toml").write_text('conditions = ["none", "one_example"]\n' + STUDY, encoding="utf-8")
    run(copy, tmp_path, "build", str(tmp_path / "spread.toml"), "--workers", "1")
    run(copy, tmp_path, "simulate", "spread", "--participants", "4")
    run(copy, tmp_path, "export", "spread", "--simulated", "--out", str(tmp_path / "x.csv"))
    assert "one_example" in (tmp_path / "x.csv").read_text(encoding="utf-8")


def test_a_report_has_a_new_exploratory_analysis(copy: Path, tmp_path: Path) -> None:
    """Catches a report that lists the analyses it knows: a new one would be in no file and on no page."""
    responses = study(24, 6, 6, seed=5)
    responses.to_csv(tmp_path / "responses.csv", index=False)
    run(copy, tmp_path, "analyze", str(tmp_path / "responses.csv"), "--out", str(tmp_path / "out"))
    own = pd.read_csv(tmp_path / "out" / "exploratory_participants.csv").set_index("participant")["accuracy"]
    expected = responses.groupby("participant")["correct"].mean()
    assert own.to_dict() == pytest.approx(expected.to_dict())
    assert '>Participants <span class="label">exploratory</span></h2>' in (tmp_path / "out" / "report.html").read_text()
