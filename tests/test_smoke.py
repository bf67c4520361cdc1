"""Every command does a small piece of real work, and every page opens: what a change anywhere may break.

No figure is tested here: the tests of each part do that. The commands share one workspace, in the order of the table,
as a study goes: open, simulate, export, back up.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.commands import COMMANDS
from dashboard.cli.main import build_app
from dashboard.pages import PAGES
from dashboard.shared import service
from data.errors import DataError
from data.scenes.generator import render
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.conftest import write_bundle
from tests.study.analysis import simulated

REFUSED = 2
FEW = ("--setting", "size=8")
RUNS: dict[str, tuple[tuple[str, ...], int]] = {
    "doctor": ((), 0),
    "explain": (("--image", "fish.png", "--method", "gradient", "--out", "maps"), 0),
    "counterfactual": (("--image", "fish.png", "--other", "fish.png", "--out", "counterfactuals"), REFUSED),
    "prototypes": (("--image", "fish.png", "--out", "prototypes"), 0),
    "units": (("--unit", "features.3.0:12", "--images", "nowhere"), REFUSED),
    "uncertainty": ((*FEW, "--out", "uncertainty"), 0),
    "concepts": (("--target", "fish", "--concept", "weather"), REFUSED),
    "layers": (("--list",), 0),
    "debug": (("--setting", "size=96", "--out", "debugging"), 0),
    "assertions": (("rules.py", *FEW), REFUSED),
    "prior": (("--setting", "split=unknown"), REFUSED),
    "build": (("missing.toml",), REFUSED),
    "verify": (("missing",), REFUSED),
    "simulate": (("smoke", "--participants", "8"), 0),
    "code": (("smoke",), REFUSED),
    "access": (("smoke", "list", "--ids", "ids.txt"), 0),
    "links": (("smoke", "ids.txt", "--address", "https://study.example.org", "--out", "links.csv"), 0),
    "members": (("smoke",), 0),
    "account": (("ada@example.org", "--address", "https://study.example.org"), 0),
    "export": (("smoke", "--out", "smoke.csv"), 0),
    "bonus": (("smoke", "--out", "bonus.csv"), 0),
    "reconcile": (("smoke", "missing.csv"), REFUSED),
    "withdraw": (("K7QHTM2XWPAC",), REFUSED),
    "subject-access": (("smoke", "K7QHTM2XWPAC", "--request", "letter", "--out", "person.json"), REFUSED),
    "analyze": (("responses.csv", "--plan", "missing.toml"), REFUSED),
    "glmm": (("responses.csv", "--formula", "correct ~ trial_type + (1|participant)"), 0),
    "importance": (("smoke", "--simulated"), REFUSED),  # its participants choose a class and mark nothing
    "reliance": (("decisions.csv", "--column", "ai=advice", "--out", "reliance.csv"), 0),
    "power": (("missing.toml",), REFUSED),
    "password": ((), 1),  # without a terminal nobody types it
    "login": (("--address", "https://study.example.org"), 0),
    "backup": (("saved",), 0),
    "restore": (("saved",), REFUSED),  # the workspace is not empty
    "bench": (("unknown",), REFUSED),
    "serve": (("--port", "0"), REFUSED),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two images, ids, responses, and a workspace with a built study."""
    path = tmp_path_factory.mktemp("smoke")
    (path / "home").mkdir(mode=0o700)
    for category, name in (("fish", "fish.png"), ("boat", "boat.png")):
        render(3, category=category, context="meadow").image.save(path / name)
    (path / "ids.txt").write_text("one\ntwo\n")
    simulated.study(12, 4, 4, seed=1).to_csv(path / "responses.csv", index=False)
    (path / "decisions.csv").write_text("participant,condition,first,advice,final,truth\np1,none,cat,dog,dog,dog\n")
    with Service(path / "home") as opened:
        study = write_bundle(path / "home" / "bundles" / "smoke-00", name="smoke")
        opened.researcher.open_study(study, per_condition=2)
    return path


def test_no_command_is_left_out() -> None:
    """Catches a new command that is not tried here."""
    assert set(RUNS) == set(COMMANDS)


@pytest.mark.parametrize("name", RUNS)
def test_a_command_does_a_small_piece_of_work(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a command that breaks, instead of doing its work or refusing in a sentence."""
    arguments, code = RUNS[name]
    monkeypatch.chdir(folder)
    monkeypatch.setenv(VARIABLE, str(folder / "home"))
    done = CliRunner().invoke(build_app((name, "doctor")), [name, *arguments])
    if isinstance(done.exception, ForetellError | DataError):
        assert code == REFUSED, str(done.exception)
        assert len(str(done.exception)) > 20
    else:
        assert done.exit_code == code, f"{done.output}\n{done.exception!r}"


@pytest.mark.parametrize("name", ["home", "help", *PAGES])
def test_a_page_opens(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a page that ends in a traceback in a workspace where nothing was made yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    service.close()
    app = AppTest.from_function(SCRIPTS.get(name, _open), args=(name,)).run()
    assert not app.exception
    assert app.title or app.header or app.subheader, "an empty page"
    service.close()


def _open_home(_: str) -> None:
    from dashboard import pages

    pages.main()


def _open_help(_: str) -> None:
    from dashboard.home import helping

    helping.page()


def _open(name: str) -> None:
    import importlib

    from dashboard.pages import PAGES

    importlib.import_module(PAGES[name].module).page()


SCRIPTS = {"home": _open_home, "help": _open_help}
