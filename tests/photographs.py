"""A study of real photographs: CIFAR-10, the real ResNet-20, three image folders."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from study.building.build import build
from study.bundle import Bundle
from study.workspace.workspace import bundle_named

STUDY = """
[study]
name = "photographs"
title = "What will the AI call this photograph?"
seed = 11
[classifier]
model = "{model}:build"
[sets.pool]
set = "folder"
path = "pool"
[sets.standard]
set = "folder"
path = "standard"
[sets.adversarial]
set = "folder"
path = "adversarial"
[trials]
categories = 4
practice = 2
[saliency]
parameters = {{ samples = 64 }}
[teaching]
policy = "best"
"""


BUILT = "built"
"""The file that a finished build leaves."""


@dataclass(frozen=True)
class Photographs:
    """The folder with images and study file, the workspace, and the built study."""

    folder: Path
    home: Path
    bundle: Bundle


def open_photographs(real: Path, folder: Path) -> Photographs:
    """Open the study that another process has built in the folder, or build it there."""
    with FileLock(f"{folder}.lock"):
        if (folder / BUILT).exists():
            home = folder / "home"
            return Photographs(folder, home, bundle_named(home, "photographs"))
        found = build_photographs(real, folder)
        (folder / BUILT).touch()
        return found


def build_photographs(real: Path, folder: Path) -> Photographs:
    """Unpack the images as a user would and build the study."""
    folder.mkdir(exist_ok=True)
    source = real / "cifar10"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, source / "unpack.py", folder], check=True, env=environment)
    (folder / "photographs.toml").write_text(STUDY.format(model=(source / "resnet.py").as_posix()))
    home = folder / "home"
    return Photographs(folder, home, build(folder / "photographs.toml", home))
