"""A Psych-DS data set: a folder with data files and a machine-readable description.

Psych-DS 1.0 (psych-ds.github.io): CSV files under ``data/`` with names of ``keyword-value`` pairs that end with
``_data.csv``, and a ``dataset_description.json`` whose ``variableMeasured`` lists every column of every file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from study.collection.export import DescribedTable, tables, write_csv
from study.collection.researcher import Researcher
from study.store.rows import Mode


def export(
    researcher: Researcher, study: str, folder: Path, modes: Sequence[Mode] = ("live",), *, published: bool = False
) -> Path:
    """Write the data set into `folder`, created if missing; files of the same names are replaced."""
    both = tables(researcher, study, modes, published=published)
    researcher.log_export(study, modes, len(both[0].frame))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    short = re.sub(r"[^a-zA-Z0-9]", "", study)
    for table in both:
        write_csv(table.frame, folder / "data" / f"study-{short}_desc-{table.name}_data.csv")
    text = json.dumps(description(study, both), indent=2, ensure_ascii=False) + "\n"
    (folder / "dataset_description.json").write_text(text, encoding="utf-8")
    return folder


def description(study: str, both: Sequence[DescribedTable]) -> dict[str, Any]:
    """Describe the data set as ``dataset_description.json``: JSON-LD with the vocabulary of schema.org."""
    columns = {name: told for table in both for name, told in table.columns.items()}
    hashes = sorted({value for table in both for value in table.frame["study_hash"]})
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": study,
        "description": (
            "Responses of participants who predicted an image classifier, one per row, and the participants, one per "
            "row. Pseudonymous. Collected with Foretell."
        ),
        "identifier": hashes,
        "variableMeasured": [_variable(name, told) for name, told in columns.items()],
    }


def _variable(name: str, told: Mapping[str, str]) -> dict[str, str]:
    optional = {"unitText": told.get("unit"), "valueReference": told.get("values")}
    known = {key: text for key, text in optional.items() if text}
    return {"@type": "PropertyValue", "name": name, "description": told["meaning"], **known}
