"""Training and test: responses in training blocks are no part of any analysis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

BLOCK, SEEN = "block", "n_training"
TRAINING, TEST = "training", "test"
LEFT_OUT = (
    "responses are in training, with explanations, and were left out: only those in test, to the image alone, are "
    "analysed."
)


def find_wrong_blocks(frame: pd.DataFrame) -> Iterator[str]:
    """Report training next to blocks other than test, no responses in test, and counts that are none.

    A column of this name without training is another one, such as a number, and means nothing here.
    """
    kinds = dict.fromkeys(frame[BLOCK].dropna().astype(str)) if BLOCK in frame else {}
    others = [kind for kind in kinds if kind not in (TRAINING, TEST)]
    if TRAINING in kinds and others:
        yield (
            f"Column {BLOCK!r} says {TRAINING!r} and {others[0]!r}: write {TRAINING} or {TEST} in each row, or rename "
            "the column if it is something else."
        )
    elif TRAINING in kinds and TEST not in kinds:
        yield f"Every response is in {TRAINING}, which is not analysed: add the responses in {TEST}."
    if SEEN in frame and frame[SEEN].notna().any():
        numbers = pd.to_numeric(frame[SEEN], errors="coerce")
        wrong = frame[SEEN][numbers.isna() | (numbers < 0) | (numbers % 1 != 0)]
        if len(wrong):
            yield (
                f"Column {SEEN!r} must have the number of training images seen, but row {wrong.index[0] + 1} says "
                f"{wrong.iloc[0]!r}: correct it."
            )


def leave_out_training(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out the responses in training, and say how many they are; the other rows keep their numbers.

    Where the blocks are wrong (`find_wrong_blocks`), everything stays.
    """
    if BLOCK not in frame or any(find_wrong_blocks(frame)):
        return frame, ()
    rows = frame[BLOCK].astype("str").eq(TRAINING)
    said = (f"{int(rows.sum()):,} of {len(frame):,} {LEFT_OUT}",) if rows.any() else ()
    return frame[~rows], said


def describe_training(messages: Sequence[str]) -> str:
    """Return what notices say of responses in training; empty where there were none."""
    return next((line for line in messages if line.endswith(LEFT_OUT)), "")


def list_seen_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """List the column of the training images seen, if it has any: without it, the rows have the hash they had."""
    return (SEEN,) if SEEN in frame and frame[SEEN].notna().any() else ()
