"""From a study file to a frozen bundle, resumable at every trial; and the check that a bundle is what it says."""

from __future__ import annotations

import hashlib
import platform
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.errors import ForetellError
from core.network.device import describe_arithmetic, one_thread
from core.network.geometry import Geometry
from core.types import Progress, silent
from study.adaptive.difficulty import measure_difficulty
from study.analysis.planned import means
from study.building.candidates import ROLE_OF_TYPE
from study.building.differences import ARITHMETIC, differences
from study.building.makers import TrialMaker, make_trial_maker
from study.bundle import FORMAT, MANIFEST, Bundle, Manifest, Trial
from study.network.methods import describe_missing_method
from study.network.placement import DRAWING, MEASURED, describe_misplacement
from study.network.sources import Sources, open_config_sources, open_sources
from study.plan.config import read_frozen
from study.plan.covariates import check_trials
from study.plan.texts import complete_texts
from study.workspace.files import gather_results, write_whole
from study.workspace.provenance import code_digest


def build(path: Path, home: Path, progress: Progress = silent, *, device: str | None = None) -> Bundle:
    """Build the study of a study file into the workspace, or return it if it is built already.

    A build that was killed resumes: predictions, heatmaps and finished trials are on disk. Several processes
    may build one study in one workspace: each makes what no other is at. The same file, images and weights give the
    same study hash, on any number of cores: each process counts with one thread.

    Parameters
    ----------
    device
        Where the network runs, e.g. ``"cuda:1"``; None: an accelerator if there is one.
    """
    sources = open_sources(path, device)
    folder = home / "bundles" / f"{sources.config.study.name}-{sources.key[:12]}"
    if (folder / MANIFEST).is_file():
        if not any(Bundle(folder).find_damage()):
            return Bundle(folder)
        (folder / MANIFEST).unlink()
    return _freeze(sources, folder, home / "cache", progress)


@one_thread()
def _freeze(sources: Sources, folder: Path, cache: Path, progress: Progress) -> Bundle:
    means.check(sources.config.analysis.means)
    assets, units = folder / "assets", folder / "units"
    maker = make_trial_maker(sources, assets, cache, progress)
    made = gather_results(
        [*maker.trials, *maker.practice],
        lambda planned: units / f"{planned.id}.json",
        lambda planned: _load_trial(assets, units / f"{planned.id}.json"),
        lambda planned, beat: _make_trial(maker, planned, units / f"{planned.id}.json", beat),
        progress,
        "explaining trials" if sources.config.task.is_of_predictions else "making trials",
    )
    count = len(maker.trials)
    made = [*measure_difficulty(sources.config.adaptive, made[:count]), *made[count:]]
    check_trials(sources.config.plan.covariates, made[:count])
    manifest = _manifest(sources, maker, made, assets)
    write_whole(folder / MANIFEST, manifest.model_dump_json(indent=1).encode())
    return Bundle(folder)


def _load_trial(assets: Path, path: Path) -> Trial | None:
    """Load a finished trial from disk, if its assets are all there and whole."""
    try:
        trial = Trial.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    return trial if all(_whole(assets / f"{name}.webp") for name in trial.assets.every) else None


def _make_trial(maker: TrialMaker, planned: Any, path: Path, progress: Progress) -> Trial:
    trial = maker.make(planned, progress)
    write_whole(path, trial.model_dump_json().encode())
    return trial


def _whole(path: Path) -> bool:
    if not path.is_file():
        return False
    if hashlib.sha256(path.read_bytes()).hexdigest() == path.stem:
        return True
    path.unlink()
    return False


def _manifest(sources: Sources, maker: TrialMaker, made: list[Trial], folder: Path) -> Manifest:
    config, classifier = sources.config, sources.classifier
    assets = sorted({name for trial in made for name in trial.assets.every})
    manifest = Manifest(
        format=FORMAT,
        name=config.study.name,
        seed=config.study.seed,
        config=config.model_dump(mode="json"),
        conditions=config.conditions,
        texts=complete_texts(
            config.language,
            {"title": config.study.title, **config.texts},
            config.saliency.method,
            config.saliency.parameters,
            config.task,
        ),
        classifier={"name": classifier.name, "fingerprint": classifier.fingerprint, **maker.describe()},
        sets={
            role: {"name": s.name, "digest": s.digest, "images": len(s), "skipped": len(s.skipped)}
            | ({"near_duplicates": maker.repeats} if role == "pool" else {})
            for role, s in sources.sets.items()
        },
        environment={
            **_describe_environment(sources.base),
            ARITHMETIC: describe_arithmetic(classifier.device),
            DRAWING: MEASURED,
            **maker.compare(),
        },
        trials=tuple(made[: len(maker.trials)]),
        practice=tuple(made[len(maker.trials) :]),
        dropped=maker.omissions,
        assets={name: (folder / f"{name}.webp").stat().st_size for name in assets},
    )
    return manifest.model_copy(update={"study_hash": manifest.compute_hash()})


def _describe_environment(base: Path) -> dict[str, str]:
    """Describe the machine and versions that built a bundle, which are not part of the study's identity."""
    packages = ("torch", "torchvision", "numpy", "pillow")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "code": code_digest(),
        "base": str(base),
        **{package: version(package) for package in packages},
    }


def verify(bundle: Bundle, progress: Progress = silent, *, render: bool = True) -> list[str]:
    """List what is wrong with a bundle, one sentence each; empty when it is exactly what it says.

    First the bytes of every asset against their names; then, unless ``render`` is False, the whole study is made
    again from its own settings and compared asset by asset. Without the file or folder of a method that Foretell did
    not make, that is not possible (`study.network.methods.describe_missing_method`).
    """
    faults = list(bundle.find_damage())
    if faults or not render or describe_missing_method(bundle.manifest):
        return faults
    base = Path(bundle.manifest.environment["base"])
    try:
        sources = open_config_sources(read_frozen(bundle.manifest.config), base)
    except ForetellError as error:
        return [f"The study cannot be rendered again: {error}"]
    with tempfile.TemporaryDirectory() as scratch:
        again = _freeze(sources, Path(scratch) / "bundle", Path(scratch) / "cache", progress).manifest
    return [
        *describe_misplacement(bundle.manifest, _geometries(bundle.manifest, sources)),
        *differences(bundle.manifest, again),
    ]


def _geometries(frozen: Manifest, sources: Sources) -> Iterator[Geometry | None]:
    """Locate the part that the network sees of each trial's target image."""
    for trial in frozen.trials:
        images = sources.sets[ROLE_OF_TYPE[trial.trial_type]]
        known = {f"{images.name}/{name}": i for i, name in enumerate(images.ids)}
        if trial.source in known:
            yield sources.classifier.geometry(images.open(known[trial.source]).size)
