from __future__ import annotations

import threading

import pytest

from study.workspace.files import open_replacement, write_whole


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_whole(tmp_path / "new" / "a.json", b"old")

    def fail():
        with open_replacement(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    """One temporary name for all would make the second's replacement fail, or mix the two."""
    path, together, failed = tmp_path / "a", threading.Barrier(2), []

    def write(content):
        try:
            with open_replacement(path) as file:
                file.write(content)
                together.wait(300)
        except OSError as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(c * 100,)) for c in (b"x", b"y")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert path.read_bytes() in (b"x" * 100, b"y" * 100)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
