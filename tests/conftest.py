"""Fixtures for all tests: the real data's folder, and small real bundles."""

from __future__ import annotations

import functools
import gc
import hashlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import typer.main
from hypothesis import settings
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright
from streamlit.testing.v1 import AppTest

from foretell import find_installed_chromium
from study.bundle import (
    FORMAT,
    MANIFEST,
    TRIAL_TYPES,
    ConditionAssets,
    Example,
    Manifest,
    Trial,
    TrialAssets,
    canonical,
)
from study.conditions import CONDITIONS, list_separate_conditions
from study.plan.texts import complete_texts
from study.service import Service
from study.tasks import find_task
from study.workspace.workspace import DATABASE
from tests import quick
from tests.photographs import Photographs, open_photographs
from tests.postgresql import FOUND, Postgresql
from tests.regions import plant_region

settings.register_profile("any machine", deadline=None)  # no test depends on the machine being quiet
settings.load_profile("any machine")

ROOT = Path(__file__).parents[1]
CATEGORIES = ("fish", "boat", "bird", "house", "tree", "car")

MakeBundle = Callable[..., Path]

pytest_plugins = ["tests.failures"]

PATIENCE_S = 300
"""How long a test waits for what it expects: no test may depend on a quiet machine."""
PATIENCE_MS = 1000 * PATIENCE_S
CHROMIUM = find_installed_chromium()
# max-lazy: a page runs little of the megabytes of scripts of Streamlit; compiled when called, they take a quarter less.
LIGHT = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--js-flags=--max-lazy"]
# Ray's own 15 leaves its workers nothing while other tests run.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's name for it
os.environ["FORETELL_NICENESS"] = "0"  # the same for builds in the background


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of slow tests: with one of them last, a core would wait for the other.

    Only ``--quick`` begins with the files that are nearest to a change.
    """
    if quick.DEADLINE in os.environ:
        return
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Take what the test files imported out of the garbage collector's sight.

    Streamlit collects all garbage after each run of a page, which takes .2 s with the objects of PyTorch and pandas.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Make fixtures, of a session too, with a seed: a random network is the same whichever tests ran before."""
    with seed_networks():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Run the test with the seed again: a fixture that another test has already made draws nothing now."""
    with seed_networks():
        yield


@contextmanager
def seed_networks() -> Iterator[None]:
    """Seed PyTorch where a test has imported it: a random ReLU network can be zero on every input of a test."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_certificate_store() -> Iterator[None]:
    """Read the certificates once: a client of httpx takes 50 ms for them, and no test speaks TLS with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx._transports.default, "create_ssl_context", functools.cache(httpx.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def _parameters_of_commands_once() -> Iterator[None]:
    """Read the signature of each command once: the command line is made for each call, and took 0.1 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_params_from_function", functools.cache(typer.main.get_params_from_function))
        yield


@pytest.fixture(scope="session", autouse=True)
def _patient_pages() -> Iterator[None]:
    """Let a page that AppTest runs take its time: it imports libraries, and Streamlit gives it three seconds."""
    begin = AppTest.__init__

    def begin_patiently(self: AppTest, *given: Any, default_timeout: float, **options: Any) -> None:
        begin(self, *given, default_timeout=max(default_timeout, PATIENCE_S), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AppTest, "__init__", begin_patiently)
        yield


@pytest.fixture(autouse=True)
def own_main() -> Iterator[None]:
    """A page run by Streamlit's AppTest stays behind as ``__main__``, which every spawned process would import."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser; skipped visibly where there is none."""
    with sync_playwright() as playwright:
        if CHROMIUM is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium; install one or set FORETELL_CHROMIUM")
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=LIGHT)
        make_context = browser.new_context

        def make_patient_context(**options: Any) -> BrowserContext:
            # Streamlit's icons that move draw a page 60 times a second: a third of the processor time of opening one.
            context = make_context(**{"reduced_motion": "reduce"} | options)
            context.set_default_timeout(PATIENCE_MS)  # a page's first visit imports libraries, on a busy machine too
            return context

        browser.new_context = make_patient_context  # type: ignore[method-assign]
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real networks, photographs and responses."""
    folder = (ROOT / os.environ.get("FORETELL_REAL", "../shared/real")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set FORETELL_REAL")
    return folder


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """A running PostgreSQL; skipped visibly where it is not installed."""
    if not FOUND:
        pytest.skip("no PostgreSQL; on Debian: apt install postgresql")
    server = Postgresql()
    server.start()
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def _no_database_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE, raising=False)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test twice: every service over SQLite, then every service over an empty PostgreSQL database."""
    if request.param == "postgresql":
        monkeypatch.setenv(DATABASE, request.getfixturevalue("postgresql").database())
    return str(request.param)


@pytest.fixture
def bundle(tmp_path: Path) -> MakeBundle:
    """Makes a small real bundle: ``bundle(name="demo", trials=12, practice=3, ...) -> folder``."""

    def make(name: str = "demo", **options: Any) -> Path:
        folder = tmp_path / "bundles" / f"{name}-{len(list(tmp_path.glob('bundles/*')))}"
        return write_bundle(folder, name=name, **options)

    return make


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service over an empty workspace."""
    home = tmp_path / "home"
    home.mkdir()
    with Service(home) as opened:
        yield opened


def write_bundle(
    folder: Path,
    *,
    name: str,
    trials: int = 12,
    practice: int = 3,
    seed: int = 7,
    conditions: tuple[str, ...] = ("none", "saliency", "examples", "both"),
    texts: dict[str, str] | None = None,
    swap_answers: bool = False,
    side: int = 96,
    config: dict[str, Any] | None = None,
) -> Path:
    """Write a bundle of generated pictures; `swap_answers` exchanges target and alternative and nothing else."""
    assets: dict[str, int] = {}
    (folder / "assets").mkdir(parents=True)

    def picture(category: str, number: int, mapped: bool) -> str:
        content = webp(category, number, mapped, side)
        sha256 = hashlib.sha256(content).hexdigest()
        (folder / "assets" / f"{sha256}.webp").write_bytes(content)
        assets[sha256] = len(content)
        return sha256

    def placebo(name: str, number: int, options: tuple[str, ...]) -> ConditionAssets:
        if CONDITIONS[name].shows_saliency:
            return ConditionAssets(target_map=picture(name, number, True), relevance=0.5)
        if CONDITIONS[name].explains_each_option:
            return ConditionAssets(examples={c: (picture(c, number, True),) for c in options}, relevance=0.5)
        return ConditionAssets(
            examples={c: tuple(picture(f"other {c}", number + k, False) for k in (1, 2)) for c in options}
        )

    def mix(one: str, two: str, rng: np.random.Generator) -> tuple[str, ...]:
        count = find_task(config or {}).options
        if count == 2:
            return (one, two) if rng.random() < 0.5 else (two, one)
        others = [c for c in CATEGORIES if c not in (one, two)][: count - 2]
        return tuple(map(str, rng.permutation([one, two, *others])))

    def trial(index: int, kind: str) -> Trial:
        rng = np.random.default_rng([seed, index, len(kind)])
        one, two = (str(c) for c in rng.choice(CATEGORIES, 2, replace=False))
        target, other = (two, one) if swap_answers else (one, two)
        options = mix(one, two, rng)
        number = 1000 * len(kind) + 10 * index
        examples = tuple(
            Example(
                category=c, source=f"{c}/{k}", image=picture(c, number + k, False), map=picture(c, number + k, True)
            )
            for c in sorted((one, two))
            for k in (1, 2)
        )
        shown = TrialAssets(
            target=picture("target", number, False),
            target_map=picture("target", number, True),
            examples=examples,
            by_condition={c: placebo(c, number, options) for c in list_separate_conditions() if c in conditions},
        )
        trial_type = TRIAL_TYPES[index % 3]
        return Trial(
            id=f"{kind}-{index}",
            trial_type=trial_type,
            target=target,
            alternative=other,
            truth=target if trial_type == "std_correct" else other,
            options=options,
            ai_probability=0.75,
            source=f"pool/{number}",
            assets=shown,
            teaching={"p_learner": 0.9},
            saliency={"effective_samples": 300.0},
            region=None if find_task(config or {}).place is None else plant_region(index),
        )

    manifest = Manifest(
        format=FORMAT,
        name=name,
        seed=seed,
        config=config or {},
        conditions=conditions,
        texts=complete_texts(
            (config or {}).get("language", "en"), {"title": name, **(texts or {})}, task=find_task(config or {})
        ),
        classifier={"name": "test"},
        sets={},
        environment={},
        trials=tuple(trial(i, "main") for i in range(trials)),
        practice=tuple(trial(i, "practice") for i in range(practice)),
        dropped=(),
        assets=assets,
    )
    finished = manifest.model_copy(update={"study_hash": manifest.compute_hash()})
    (folder / MANIFEST).write_bytes(canonical(finished.model_dump(mode="json")))
    return folder


@functools.cache
def webp(category: str, number: int, mapped: bool, side: int) -> bytes:
    """A picture of two discs whose colours depend on the category and places on the number; a blob if mapped."""
    rng = np.random.default_rng([*category.encode(), number])
    hue = np.random.default_rng([*category.encode()]).integers(40, 220, 3)
    y, x = np.mgrid[:side, :side] / side
    pixels = np.full((side, side, 3), hue // 2 + 20, dtype=float)
    for _ in range(2):
        cx, cy = rng.random(2)
        pixels[(x - cx) ** 2 + (y - cy) ** 2 < 0.04] = 255 - hue
    if mapped:
        cx, cy = rng.random(2)
        heat = np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 0.05)[..., None]
        pixels = pixels * (1 - 0.7 * heat) + 0.7 * heat * np.array([250, 220, 40])
    stream = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, "WEBP", quality=80)
    return stream.getvalue()


@pytest.fixture(scope="session")
def photographs(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Photographs:
    """A built study of real photographs (`tests.photographs`), built once for all processes of this run."""
    return open_photographs(real, folder_of_run(tmp_path_factory) / "photographs")


def folder_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of this run share, and no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
