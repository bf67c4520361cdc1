"""Settings and provenance of a run: written into its report, and hashed into the key of its unfinished work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from core.attribution.method import versions
from core.network.classifier import Classifier
from study.workspace.provenance import code_digest


def facts_of(classifier: Classifier, own: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the network, the run's ``own`` settings, and the versions of the code."""
    made = {"versions": versions(), "code": code_digest()}
    return {"model": classifier.name, "fingerprint": classifier.fingerprint, **own, **made}


def key_of(facts: Mapping[str, Any], further: Iterable[str] = ()) -> str:
    """Hash, shortened, the facts and whatever is too long to be listed among them (SHA-256)."""
    return hashlib.sha256("\0".join([json.dumps(facts, sort_keys=True), *further]).encode()).hexdigest()[:32]
