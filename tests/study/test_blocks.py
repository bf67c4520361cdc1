"""Blocks of long work: made once, and made again where the disk holds them no more as they were."""

from __future__ import annotations

import numpy as np
import pytest

from core.types import silent
from study.workspace.blocks import Blocks, Pieces


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 and no more", b"not an archive"])
def test_a_damaged_block_is_made_again_and_the_others_are_not(tmp_path, damage):
    """Catches a run that stops for ever at a block that a crash of the machine left empty or cut short."""
    made: list[range] = []

    def squares(rows: range) -> dict[str, np.ndarray]:
        made.append(rows)
        return {"square": np.square(np.asarray(rows))}

    blocks = Blocks(tmp_path, "key", 7, 3)
    assert blocks.join(squares, silent, "squares")["square"].tolist() == [0, 1, 4, 9, 16, 25, 36]
    assert made == [range(3), range(3, 6), range(6, 7)]
    (tmp_path / "key.1.npz").write_bytes(damage)
    made.clear()
    assert blocks.join(squares, silent, "squares")["square"].tolist() == [0, 1, 4, 9, 16, 25, 36]
    assert made == [range(3, 6)]
    blocks.forget()
    assert not list(tmp_path.iterdir())


def test_a_damaged_piece_is_made_again(tmp_path):
    """Catches the same in the other kind of long work."""
    for expected in (1.0, 2.0, 2.0):
        found = Pieces(tmp_path, "key").get("one", lambda value=expected: {"x": np.array([value])})
        assert found["x"].tolist() == [expected]
        if expected == 1.0:
            (tmp_path / "key.one.npz").write_bytes(b"PK")
