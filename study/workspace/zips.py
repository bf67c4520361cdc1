"""Read a zip of images from an untrusted source: refused in words before anything is unpacked."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from core.errors import ForetellError
from study.workspace.imagefolders import MOST_BYTES, MOST_FILES, Entry, format_bytes, refuse_number

MOST_RATIO = 100
"""Bytes unpacked per byte of the zip: images are compressed already, and hardly become smaller in a zip."""
SMALL_BYTES = 64 * 2**20
"""Below this, no ratio is too high: drawings of a few colours compress well."""
MOST_DIRECTORY_BYTES = MOST_FILES * 300
END = struct.Struct("<4s4H2LH")
END_64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR = struct.Struct("<4sLQL")
LONGEST_COMMENT = 2**16
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The usual ones. Those of bzip2 and LZMA unpack a block at a time, however large it is."""
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


@contextmanager
def open_zip(file: IO[bytes] | Path, name: str) -> Iterator[list[Entry]]:
    """Open a zip as the files in it; ``name`` is what it is called in messages.

    Raises
    ------
    ForetellError
        No zip, a damaged or encrypted one, one with links, other special files or too many files.
    """
    try:
        source = file.open("rb") if isinstance(file, Path) else file
    except OSError as error:
        raise ForetellError(f"{file} cannot be opened ({error.strerror}). Check the path.") from None
    with source:
        try:
            _refuse_long_directory(source, name)
            archive = zipfile.ZipFile(source)
        except (*DAMAGED, ValueError, struct.error) as error:
            raise _refuse_damaged(name, error) from None
        try:
            with archive:
                yield [_entry(archive, info) for info in _list_files(archive, name)]
        except DAMAGED as error:  # while a file is read
            raise _refuse_damaged(name, error) from None


def _refuse_damaged(name: str, error: Exception) -> ForetellError:
    return ForetellError(f"{name} is damaged, or not a zip ({_reason(error)}). Make it again; nothing was added.")


def limit_bytes(size: int) -> int:
    """Return how many bytes a zip of ``size`` bytes may have unpacked."""
    return min(MOST_BYTES, max(SMALL_BYTES, MOST_RATIO * size))


def _refuse_long_directory(source: IO[bytes], name: str) -> None:
    """Read the number of files and the size of their list from the end of the zip, without reading the list."""
    size = source.seek(0, os.SEEK_END)
    begin = max(0, size - LONGEST_COMMENT - END.size)
    source.seek(begin)
    tail = source.read()
    place = len(tail) - END.size
    if place < 0 or tail[place : place + 4] != b"PK\5\6" or tail[-2:] != b"\0\0":
        place = tail.rfind(b"PK\5\6")
    if place < 0 or place + END.size > len(tail):
        raise zipfile.BadZipFile("it has no list of files")
    _, _, _, _, files, directory, _, _ = END.unpack_from(tail, place)
    if place >= LOCATOR.size and tail[place - LOCATOR.size : place - LOCATOR.size + 4] == b"PK\6\7":
        source.seek(LOCATOR.unpack_from(tail, place - LOCATOR.size)[2])
        record = source.read(END_64.size)
        if len(record) == END_64.size and record[:4] == b"PK\6\6":
            files, directory = max(files, END_64.unpack(record)[7]), END_64.unpack(record)[8]
    refuse_number(files, name)
    if directory > MOST_DIRECTORY_BYTES:
        raise ForetellError(f"{name} has a list of files of {format_bytes(directory)}: more than an image set has.")
    source.seek(0)


def _list_files(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    infos = archive.infolist()
    refuse_number(len(infos), name)
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if "\0" in info.orig_filename:
            raise ForetellError(f"{name} has a file name with a zero byte in it. Nothing was added.")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ForetellError(
                f"{info.filename[:60]!r} in {name} is a link or a special file. Put the image itself into the zip."
            )
        if info.flag_bits & 1:
            raise ForetellError(f"{name} is encrypted. Make a zip without a password; nothing was added.")
        if info.compress_type not in METHODS and not info.is_dir():
            raise ForetellError(f"{name} is compressed in an unusual way. Make the zip with the usual method, deflate.")
    return [info for info in infos if not info.is_dir()]


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    def open_file() -> IO[bytes]:
        try:
            return archive.open(info)
        except (ValueError, RuntimeError, struct.error) as error:  # of places and names that cannot be
            raise zipfile.BadZipFile(_reason(error)) from None

    return Entry(info.orig_filename, info.file_size, open_file)


def _reason(error: Exception) -> str:
    return str(error).split("\n")[0][:100] or type(error).__name__
