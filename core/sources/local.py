"""Networks that are on this machine: in a folder of the user's, and in the cache of huggingface.co."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.errors import ForetellError
from core.sources.spec import EXPORTED
from core.text import read_text

LIST = "models.txt"
"""A file of further models in a folder, one specification per line."""
NAMES = "names.txt"
"""The class names of a CLIP network, in its folder."""
CLIP_CONFIG = "open_clip_config.json"
PREFIX = "models--"
_BUILD = re.compile(r"^def build\b", re.MULTILINE)
"""In the file of a network; other files next to it are read by it."""
WEIGHTS = (".safetensors", ".bin", ".pt")


def list_local_models(base: Path, folder: str) -> list[str]:
    """List the models of a folder as `core.sources.load` takes them, relative to ``base``; nothing is executed.

    They are Python files, exported programs, folders with one of these and the files that it reads, folders as timm,
    transformers and open_clip write them (one of CLIP with its class names in ``names.txt``), and the lines of
    ``models.txt``.
    """
    models = []
    for path in sorted((base / folder).glob("*")):
        name = f"{folder}/{path.name}"
        if path.is_dir():
            models += list_folder_models(path, name)
        elif path.suffix == ".py" or _is_program(path):
            models.append(name)
    listed = base / folder / LIST
    lines = read_text(listed).splitlines() if listed.is_file() else []
    return [*models, *(line.strip() for line in lines if line.strip() and not line.startswith("#"))]


def list_fetched_models() -> list[str]:
    """List the image classifiers in the cache of huggingface.co that `core.sources.load` takes."""
    models = []
    for path in sorted(find_hub_cache().glob(f"{PREFIX}*--*")):
        owner, _, name = path.name.removeprefix(PREFIX).partition("--")
        snapshots = list((path / "snapshots").glob("*"))
        if owner == "timm" and any((one / "model.safetensors").exists() for one in snapshots):
            models.append(f"timm:{name}")
        elif any(_is_classifier(_read_json(one / "config.json")) for one in snapshots):
            models.append(f"hf:{owner}/{name}")
    return models


def find_hub_cache() -> Path:
    """Find the cache of huggingface.co as its client does, without importing it."""
    home = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    hub = os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", home)) / "hub"
    return Path(hub).expanduser()


def is_fetched(repository: str, stems: Sequence[str]) -> bool:
    """Tell whether the cache of huggingface.co holds weights of ``OWNER/NAME`` in a file of one of these names."""
    snapshots = find_hub_cache() / f"{PREFIX}{repository.replace('/', '--')}" / "snapshots"
    return any(path.stem in stems and path.suffix in WEIGHTS and path.exists() for path in snapshots.glob("*/*"))


def list_folder_models(path: Path, name: str) -> list[str]:
    """List the models of a folder of their own, whose specifications begin with ``name``; nothing is executed."""
    if (path / CLIP_CONFIG).is_file():
        return [f"clip:{name}?names={name}/{NAMES}"] if (path / NAMES).is_file() else []
    config = _read_json(path / "config.json")
    if "architecture" in config:
        return [f"timm:{name}"]
    if _is_classifier(config):
        return [f"hf:{name}"]
    files = sorted(path.glob("*.py"))
    builders = files if len(files) == 1 else [file for file in files if _BUILD.search(_peek(file))]
    programs = [] if files else sorted(filter(_is_program, path.glob("*")))
    return [f"{name}/{file.name}" for file in [*builders, *programs]]


def _is_classifier(config: dict[str, Any]) -> bool:
    return any("ForImageClassification" in str(one) for one in config.get("architectures") or ())


def _is_program(path: Path) -> bool:
    """Tell programs from files of weights, which often have the same ending, by their code."""
    if path.suffix.lower() not in EXPORTED:
        return False
    if path.suffix.lower() == EXPORTED[0]:
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _peek(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ForetellError):
        return ""


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(_peek(path))
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
