"""What a run of an inquiry depends on: told in its report, and the key of what it keeps until it is done."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from core.attribution.method import versions
from core.classifier import Classifier
from study.workspace.provenance import code_digest


def facts_of(classifier: Classifier, own: Mapping[str, Any]) -> dict[str, Any]:
    """The network, the run's ``own`` settings, and what made it."""
    made = {"versions": versions(), "code": code_digest()}
    return {"model": classifier.name, "fingerprint": classifier.fingerprint, **own, **made}


def key_of(facts: Mapping[str, Any], further: Iterable[str] = ()) -> str:
    """SHA-256, shortened, of the facts and of what is too long to be told among them."""
    return hashlib.sha256("\0".join([json.dumps(facts, sort_keys=True), *further]).encode()).hexdigest()[:32]
