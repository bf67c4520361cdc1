"""Which column of a file of others may be which of ours, by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "participant": ("subject", "subjectid", "participantid", "sub", "pid", "prolificid", "prolificpid", "workerid"),
    "category": ("class", "truecategory", "label"),
    "trial_type": ("type", "kind", "imagetype"),
    "saliency": ("saliencymap", "heatmap", "map"),
    "examples": ("example", "exampleimages"),
    "correct": ("accuracy", "acc", "iscorrect", "hit"),
    "condition": ("group", "explanation"),
    "trial": ("trialnumber", "trialindex", "trialid"),
    "item": ("stimulus", "image", "imageid", "picture", "itemid"),
    "mode": (),
    "truth": (),
    "choice": (),
    "first_choice": ("firstresponse", "initialchoice", "initialresponse"),
    "task": (),
    "n_classes": ("noptions", "nalternatives", "nchoices"),
    "block": (),
    "n_training": ("trainingimages", "ntrainingimages"),
    "period": (),
    "sitting": ("day", "visit"),
    "level": ("rating", "likert"),
    "n_levels": ("nlevels",),
    "rt_ms": ("rtms", "responsetimems", "reactiontimems"),
    "confidence": ("certainty",),
}
"""Other names of our columns, in small letters and digits alone. A time without its unit is none: it may be seconds."""


def guess_column(ours: str, columns: Sequence[str]) -> str | None:
    """Return the column that has our name, or else the only one that has another name of it; None where there is none.

    A guess is for people to confirm, never for an analysis that nobody looks at.
    """
    if ours in columns:
        return ours
    names = (_plain(ours), *SPELLINGS[ours])
    similar = [column for column in columns if _plain(column) in names]
    return similar[0] if len(similar) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
