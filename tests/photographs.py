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


UNPACKED, BUILT = "unpacked", "built"
"""The files that the finished steps leave."""


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
        found = build_photographs(real, unpack_images(real, folder))
        (folder / BUILT).touch()
        return found


def unpack_images(real: Path, folder: Path) -> Path:
    """Unpack the images as a user would, unless another process has; return their folder."""
    with FileLock(f"{folder}.images.lock"):
        if not (folder / UNPACKED).exists():
            folder.mkdir(exist_ok=True)
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            subprocess.run([sys.executable, real / "cifar10" / "unpack.py", folder], check=True, env=environment)
            (folder / UNPACKED).touch()
    return folder


def build_photographs(real: Path, folder: Path) -> Photographs:
    """Build the study of the unpacked images."""
    model = (real / "cifar10" / "resnet.py").as_posix()
    (folder / "photographs.toml").write_text(STUDY.format(model=model))
    home = folder / "home"
    return Photographs(folder, home, build(folder / "photographs.toml", home))
