"""What the tests of studies share: predictions, which the same network makes of the same images in many of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from numpy.typing import NDArray

from core.network.classifier import Classifier
from data.types import ImageSet
from study.network import predictions
from study.workspace.files import write_whole
from tests.conftest import folder_of_run


@pytest.fixture(scope="module")
def shared_predictions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let every process of this run predict a shard of images once, by the real network; other tests read a copy."""
    kept_in, compute = folder_of_run(tmp_path_factory) / "predictions", predictions._compute_shard

    def compute_once(
        classifier: Classifier, images: ImageSet, path: Path, start: int, features: bool
    ) -> list[NDArray[np.float32]]:
        kept = kept_in / path.parent.name / path.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{kept}.lock"):
            arrays = predictions._load_shard(kept) or compute(classifier, images, kept, start, features)
        write_whole(path, kept.read_bytes())
        return arrays

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "_compute_shard", compute_once)
        yield
