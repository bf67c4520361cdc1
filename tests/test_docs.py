"""The documents are true: what they name exists, what they show runs, what is registered is written down."""

from __future__ import annotations

import inspect
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import typer
from PIL import Image

import foretell
from core.attribution import METHODS
from core.registry import Registry
from dashboard.cli import bench
from dashboard.cli.main import build_app
from data.errors import DataError
from study.analysis.planned import nested
from study.analysis.responses import reading as responses
from study.conditions import CONDITIONS
from study.network.sources import open_classifier, open_set
from study.plan.config import IMAGE_SETS, ImageSource
from study.plan.simulated_participants import THEORIES, compute_expected_accuracy
from study.service import Service
from study.simulate import simulate
from study.tasks.theory import ShownExplanations
from tests.commands import run
from tests.core import test_contracts
from tests.strings import read_page
from tests.study import test_conditions
from tests.study.analysis import simulated
from tests.study.studies import TINY

Written = Callable[[str, str, str], None]
ROOT = Path(__file__).parents[1]
OWN = ("*.md", "docs/**/*.md", "docs/notebooks/*.ipynb", "benchmarks/*.md")
PAGES = sorted({path for pattern in OWN for path in ROOT.glob(pattern) if "_build" not in path.parts})
README = (ROOT / "README.md").read_text(encoding="utf-8")
CATALOGUE = (ROOT / "docs" / "reference" / "catalogue.md").read_text(encoding="utf-8")
WALKTHROUGH = (ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
HOW_TO = ROOT / "docs" / "how-to"
PACKAGES = ("core", "data", "study", "inquiry", "dashboard", "tests", "docs", "benchmarks")

MakeBundle = Callable[..., Path]


def example(page: str, file: str) -> str:
    """The Python of a how-to page that stands under the name of its file."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    found = re.search(rf"^`{re.escape(file)}`:\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page} shows no {file}"
    return found[1]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """Writes an example to an importable file: ``written(page, file, module)``."""
    folder = tmp_path / "importable"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    modules: list[str] = []

    def write(page: str, file: str, module: str) -> None:
        (folder / f"{module}.py").write_text(example(page, file), encoding="utf-8")
        modules.append(module)

    yield write
    for module in modules:
        sys.modules.pop(module, None)


def register(monkeypatch: pytest.MonkeyPatch, registry: Registry, page: str, module: str) -> str:
    """Do what the page's line does, with the example's own module; the new name."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    ((name, attribute),) = re.findall(r'^"(\w+)": "[\w.]+:(\w+)",$', text, re.MULTILINE)
    monkeypatch.setitem(registry._table, name, f"{module}:{attribute}")
    return str(name)


# What is there is named


@pytest.mark.parametrize("registry", [METHODS, CONDITIONS, IMAGE_SETS, THEORIES], ids=lambda registry: registry.kind)
def test_everything_registered_is_in_the_catalogue_and_the_changelog(registry: Registry) -> None:
    """A method, condition, image set or simulated participant that no document mentions."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [name for name in registry if f"`{name}`" not in CATALOGUE or f"`{name}`" not in changes] == []


def test_the_readme_is_short() -> None:
    """A README that grows into a manual again."""
    assert len(README.splitlines()) < 90
    assert re.findall(r"^    (python foretell\.py\w* ?\w*)", README, re.MULTILINE) == [
        "python foretell.py ",
        "python foretell.py test",
    ]


def test_every_command_is_in_the_walkthrough() -> None:
    """A command that no guide mentions; ``serve`` is what happens without one."""
    named = {verb for _, verb, _ in commands(WALKTHROUGH)}
    assert re.search(r"^    python foretell\.py +#", README, re.MULTILINE)
    assert named | {"serve"} == set(foretell.summaries())


def commands(text: str) -> list[tuple[str, str, list[str]]]:
    """Every ``python foretell.py VERB ...`` of a page: the whole, the verb, its arguments."""
    found = []
    for whole in re.findall(r"python foretell\.py [a-z][^`\n]*", text):
        words = shlex.split(whole, comments=True)
        found.append((whole, words[2].rstrip(",.;"), words[3:]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_a_page_exist_with_their_options(page: Path) -> None:
    """A command that was renamed, or an option that is not there any more."""
    known = {command.name: {o for p in command.params for o in (*p.opts, *p.secondary_opts)} for command in verbs()}
    known["test"] = {"--no-browser", "--quick"}
    known["docs"] = {"--no-browser", "--out"}
    if page.name == "add-a-command.md":
        known["studies"] = set()  # which this guide adds
    for whole, verb, arguments in commands(read_page(page)):
        assert verb in known, whole
        options = {argument.split("=")[0] for argument in arguments if argument.startswith("--")}
        assert options <= known[verb] | {"--help", "--debug"}, whole


def verbs() -> list[Any]:
    return list(typer.main.get_command(build_app()).commands.values())  # type: ignore[attr-defined]


def test_every_benchmark_has_a_section() -> None:
    """A benchmark that no page explains, or results that no table shows."""
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    results = {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")}
    assert {name for name in bench.list_benchmarks() if f"python -m benchmarks.{name} " not in page} == set()
    assert {name for name in results if f"--json benchmarks/results/{name}.json\n" not in page} == set()
    assert {path.stem for path in (ROOT / "benchmarks" / "figures").glob("*.svg")} == results


# What is named is there


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_images_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", read_page(page), flags=re.MULTILINE | re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_a_page_names_exist(page: Path) -> None:
    """A file that was moved. New files of a how-to page are those it shows."""
    text = read_page(page)
    shown = set(re.findall(r"^`([\w./]+)`:$", text, re.MULTILINE))
    named = re.findall(rf"`((?:{'|'.join(PACKAGES)})/[\w./-]+)(?:::\w+)?[`:]", text)
    assert [name for name in named if name not in shown and not (ROOT / name).exists()] == []


def test_every_page_is_found_and_the_check_of_files_can_fail() -> None:
    """Negative control: the pattern above sees what it must see."""
    assert {"README.md", "docs/architecture.md", "docs/data-dictionary.md", "benchmarks/README.md"} <= {
        path.relative_to(ROOT).as_posix() for path in PAGES
    }
    assert len(re.findall(r"`study/[\w/]+\.py`", (ROOT / "docs" / "architecture.md").read_text())) > 10


def test_cited_tests_exist() -> None:
    """A guarantee whose test was renamed or removed."""
    cited = [pair for page in PAGES for pair in re.findall(r"(tests/[\w/]+\.py)::(\w+)", read_page(page))]
    assert len(cited) > 15
    lacking = [f"{file}::{name}" for file, name in cited if f"def {name}(" not in (ROOT / file).read_text("utf-8")]
    assert lacking == []


def test_pages_that_code_points_to_exist() -> None:
    """A comment that sends its reader to a page that is not there."""
    files = [path for package in PACKAGES[:4] for path in (ROOT / package).rglob("*.py")]
    files += [ROOT / "foretell.py", ROOT / "requirements.txt", ROOT / ".streamlit" / "config.toml"]
    named = {name for path in files for name in re.findall(r"docs/[\w./-]+\.md", path.read_text(encoding="utf-8"))}
    assert len(named) >= 2
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_decisions_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    files = sorted(path.name for path in folder.glob("0*.md"))
    numbers = [int(name[:4]) for name in files]
    assert numbers == sorted(set(numbers))
    assert re.findall(r"\((0[\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")) == files


GENERATED = runpy.run_path(str(ROOT / "docs" / "generate.py"))["PAGES"]


@pytest.mark.parametrize("name", GENERATED)
def test_generated_pages_are_current(name: str) -> None:
    """A renamed column, a new method, a new result: run ``python docs/generate.py``."""
    assert (ROOT / name).read_text(encoding="utf-8") == GENERATED[name]()


# What is shown runs


def walkthrough() -> list[list[str]]:
    """The commands of the walkthrough's marked block."""
    block = re.search(r"<!-- walkthrough: [^>]*-->\n```bash\n(.*?)```", WALKTHROUGH, re.DOTALL)
    assert block
    return [shlex.split(line) for line in block[1].splitlines()]


@pytest.mark.slow
def test_the_walkthrough_runs_to_its_end(tmp_path: Path) -> None:
    """Every command of the walkthrough, in its order, from a folder with only a (smaller) demo study in it."""
    (tmp_path / "data" / "studies").mkdir(parents=True)
    (tmp_path / "data" / "studies" / "demo.toml").write_text(TINY.replace('name = "tiny"', 'name = "demo"'))
    (tmp_path / "docs" / "images").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "images" / "fish.png", tmp_path / "docs" / "images")
    lines = walkthrough()
    assert [line[2] for line in lines][:5] == ["build", "verify", "simulate", "export", "analyze"]
    for line in lines:
        assert line[:2] == ["python", "foretell.py"]
        done = run(*line[2:], home=tmp_path / "home", cwd=tmp_path)
        assert done.returncode == 0, f"{shlex.join(line)}\n{done.stdout}{done.stderr}"
    answers = pd.read_csv(tmp_path / "demo.csv")
    assert (answers["participant"].nunique(), set(answers["mode"])) == (80, {"sim"})
    assert {path.name for path in (tmp_path / "results").iterdir()} >= {"models.json", "table1.csv", "figure1.html"}
    assert np.load(tmp_path / "maps" / "fish.bayesian_teaching.npy").shape == (96, 96)


CONTRACTS = {
    name: check if "parameters" not in inspect.signature(check).parameters else lambda name, own=check: own(name, {})
    for name, check in vars(test_contracts).items()
    if name.startswith("test_") and "name" in inspect.signature(check).parameters
}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_method_of_the_how_to_keeps_every_contract(
    contract: str, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    written("add-a-method.md", "core/attribution/perturbation/squares.py", "example_squares")
    CONTRACTS[contract](register(monkeypatch, METHODS, "add-a-method.md", "example_squares"))


def test_the_method_of_the_how_to_is_right(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed form: covering a part of a linear network loses exactly what the part gave."""
    from core.network.classifier import Classifier
    from tests.core.networks import SIDE, pictures, unit

    written("add-a-method.md", "core/attribution/perturbation/squares.py", "example_squares")
    name = register(monkeypatch, METHODS, "add-a-method.md", "example_squares")
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.randn(network[1].weight.shape, generator=torch.Generator().manual_seed(2)))
    classifier, image = Classifier(network, unit, name="linear"), pictures(1)
    found = METHODS[name](classifier, image, [1], window=SIDE, fill="black").map
    weight = network[1].weight[1].detach().view(3, SIDE, SIDE)
    expected = float((weight * (image[0] - classifier.fill("black"))).sum())
    torch.testing.assert_close(found, torch.full_like(found, expected), rtol=1e-4, atol=1e-4)


def test_the_condition_of_the_how_to_is_run_by_simulated_people(
    written: Written, monkeypatch: pytest.MonkeyPatch, service: Service, bundle: MakeBundle
) -> None:
    written("add-a-condition.md", "study/conditions/one_example.py", "example_condition")
    name = register(monkeypatch, CONDITIONS, "add-a-condition.md", "example_condition")
    test_conditions.test_factors_say_what_is_shown(name)
    assert CONDITIONS[name].shown(test_conditions.TRIAL).examples == {"boat": ("boat1",), "fish": ("fish1",)}
    study = service.researcher.open_study(bundle(conditions=("none", name)), per_condition=2)
    simulate(service, study, 4, {"belief_projector": 1.0}, seed=1)
    frame = service.researcher.responses(study, ("sim",))
    assert frame.groupby("condition")["participant"].nunique().to_dict() == {"none": 2, name: 2}
    assert set(frame[frame["condition"] == name]["examples"]) == {1}
    assert set(responses.prepare(frame).frame["condition"]) == {"none", name}


def test_the_image_set_of_the_how_to_reads_counts_and_refuses(
    written: Written, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written("add-a-dataset.md", "data/sets/listed.py", "example_listed")
    name = register(monkeypatch, IMAGE_SETS, "add-a-dataset.md", "example_listed")
    for k in range(4):
        Image.new("RGB", (8, 8), (60 * k, 0, 0)).save(tmp_path / f"{k}.png")
    (tmp_path / "broken.png").write_text("no picture")
    lines = ["file,category", "0.png,fish", "1.png,boat", "broken.png,boat", "2.png,fish", "3.png,boat"]
    (tmp_path / "pool.csv").write_text("\n".join(lines))
    source = ImageSource.model_validate({"set": name, "path": "pool.csv"})
    images = open_set(source, tmp_path)
    assert (images.categories, images.labels.tolist()) == (("boat", "fish"), [1, 0, 1, 0])
    assert [skipped.id for skipped in images.skipped] == ["broken.png"]
    assert images.open(3).getpixel((0, 0)) == (180, 0, 0)
    assert len(set(images.ids)) == len(images) == 4
    assert open_set(source, tmp_path).digest == images.digest
    Image.new("RGB", (8, 8), (61, 0, 0)).save(tmp_path / "1.png")
    assert open_set(source, tmp_path).digest != images.digest
    (tmp_path / "pool.csv").write_text("\n".join([*lines, "0.png,boat"]))
    with pytest.raises(DataError, match=r"lists 0\.png twice"):
        IMAGE_SETS[name](path=tmp_path / "pool.csv")


def test_the_classifier_of_the_how_to_is_opened_and_explained(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(example("write-a-network.md", "mine.py"), encoding="utf-8")
    classifier = open_classifier("mine.py:build", tmp_path)
    shades = [Image.new("RGB", (50, 40), (level, level, level)) for level in (30, 220)]
    inputs = torch.stack([classifier.preprocess(shade) for shade in shades])
    assert [classifier.categories[k] for k in classifier.logits(inputs).argmax(1)] == ["dark", "bright"]
    # Closed form: the logit of "bright" is the sum of the channels' means, so every pixel counts 3 / 32^2.
    gradient = METHODS["gradient"](classifier, inputs, [1, 1]).map
    torch.testing.assert_close(gradient, torch.full((2, 32, 32), 3 / 32**2), rtol=1e-5, atol=0)


def test_the_statistical_model_of_the_how_to_is_tested_among_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two steps it makes of one add up to that one, exactly as nested likelihoods must."""
    data = simulated.study(seed=3)
    before = {(t.smaller, t.larger): t for t in nested.analyze(data).tests}
    shown: dict[str, Any] = {}
    exec(example("add-a-statistical-model.md", "study/analysis/planned/nested.py"), shown)
    monkeypatch.setattr(nested, "FIXED", shown["FIXED"])
    after = {(t.smaller, t.larger): t for t in nested.analyze(data).tests}
    assert list(after) == [("null", "maps"), ("maps", "explanation"), ("explanation", "interaction")]
    steps = after["null", "maps"], after["maps", "explanation"]
    assert [step.df for step in steps] == [1, 1]
    assert sum(step.chisq for step in steps) == pytest.approx(before["null", "explanation"].chisq, abs=1e-4)


def test_the_simulated_person_of_the_how_to_takes_part(
    written: Written, monkeypatch: pytest.MonkeyPatch, service: Service, bundle: MakeBundle
) -> None:
    written("add-a-simulated-participant.md", "study/plan/simulated_participants.py", "example_people")
    name = register(monkeypatch, THEORIES, "add-a-simulated-participant.md", "example_people")
    standard = test_conditions.TRIAL
    adversarial = standard.model_copy(update={"trial_type": "adv_incorrect"})
    assert compute_expected_accuracy({name: 1}, adversarial, ShownExplanations()) == pytest.approx(0.5)
    # Standard and wrong: they name the truth with log-odds 2, so they predict the AI with log-odds -2.
    p = compute_expected_accuracy({name: 1}, standard, ShownExplanations(saliency=True), sd=0)
    assert p == pytest.approx(1 / (1 + np.exp(2)))
    study = service.researcher.open_study(bundle(), per_condition=1)
    assert simulate(service, study, 4, {name: 0.5, "guesser": 0.5}, seed=2) == 4 * 15
