"""Installed packages that offer methods: real ones on the path of another process, as pip lays them down."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from study.conditions import list_separate_conditions, placebos

ROOT = Path(__file__).parents[2]
GOOD = '''
def brightness(model, images, targets, *, times: float = 1.0):
    """Brightness times a number."""
    return images.sum(1) * times
'''
ASK = """
import sys
from core.attribution import METHODS
from core.attribution.outside.opening import open_method
from core.errors import ForetellError
names = list(METHODS)
assert "torch" in sys.modules and not {"lamp", "wreck"} & set(sys.modules), "listing imported a package"
from tests.core.networks import awkward, pictures
found = open_method("brightness")(awkward(), pictures(1), [0], times=2.0)
assert (found.map == pictures(1).sum(1) * 2).all()
print(found.certificates[0].method, found.certificates[0].origin)
print(METHODS["gradient"].__module__, "gradient" in METHODS.plugins, len(names) == len(set(names)))
for name in ("wrecked", "rival", "brightnes"):
    try:
        open_method(name)
    except ForetellError as error:
        print(error)
print(*METHODS.conflicts, sep="\\n")
"""


def install(folder: Path, package: str, code: str, entries: str) -> None:
    """Lay down a package with the metadata that pip writes."""
    (folder / f"{package}.py").write_text(code)
    info = folder / f"{package}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[foretell.methods]\n{entries}\n")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install(folder, "lamp", GOOD, "brightness = lamp:brightness\ngradient = lamp:brightness\nrival = lamp:brightness")
    install(folder, "wreck", "raise OSError('no such library')", "wrecked = wreck:explain\nrival = wreck:explain")
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_a_package_adds_a_method_and_a_broken_one_takes_nothing_with_it(site: Path) -> None:
    """Catches a package that is imported to be listed, replaces a method of Foretell, or stops all of them."""
    done = run(site, "-c", "import torch\n" + ASK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "brightness {'package': 'lamp 1.2'}",
        "core.attribution.gradients.plain False True",
        "The method 'wrecked' of the package wreck 1.2 cannot be imported (OSError: no such library). Repair or remove "
        "that package; everything else works without it.",
        "The packages lamp 1.2 and wreck 1.2 both offer the method 'rival', so neither is used. Remove one of them.",
        "Unknown method 'brightnes'. Did you mean 'brightness'?",
        "The package lamp 1.2 offers the method 'gradient', which Foretell has: Foretell's own is used. Rename it in "
        "that package's entry points.",
        "The packages lamp 1.2 and wreck 1.2 both offer the method 'rival', so neither is used. Remove one of them.",
    ]


def test_the_list_of_methods_names_what_is_wrong(site: Path) -> None:
    done = run(site, "-m", "dashboard.cli", "explain", "--list")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "brightness: Brightness times a number." in lines
    assert any(line.startswith("wrecked: The method 'wrecked' of the package wreck 1.2 cannot be") for line in lines)
    assert any(line.startswith("The package lamp 1.2 offers the method 'gradient'") for line in lines)
    assert any(line.startswith("gradient: ") for line in lines)
    assert any(line.startswith("heatmaps:FOLDER: finished heatmaps") for line in lines)


def test_a_condition_and_an_image_set_of_packages(tmp_path: Path) -> None:
    """Catches a broken package that stops the list of placebos, which every analysis reads."""
    install(tmp_path, "extra", "raise ImportError('half installed')", "")
    entries = "[foretell.conditions]\nodd = extra:CONDITION\n[foretell.image_sets]\nmoon = extra:load\n"
    (tmp_path / "extra-1.2.dist-info" / "entry_points.txt").write_text(entries)
    code = (
        "from study.conditions import CONDITIONS, list_separate_conditions, placebos\n"
        "from study.plan.config import IMAGE_SETS\n"
        "print('odd' in CONDITIONS, 'moon' in IMAGE_SETS, len(placebos()), len(list_separate_conditions()))\n"
    )
    done = run(tmp_path, "-c", code)
    counts = f"{len(placebos())} {len(list_separate_conditions())}"
    assert (done.returncode, done.stdout) == (0, f"True True {counts}\n"), done.stderr
