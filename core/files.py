"""Files that a name leads to, and the folders to which accounts without a shell on this machine are limited."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath

from core.errors import ForetellError


@dataclass(frozen=True)
class FileLimits:
    """Folders below which files must lie whose names come from an account without a shell on this machine.

    The deepest of these folders that holds a file decides, after links and ``..`` were followed.

    Attributes
    ----------
    code
        Folders of files that run: networks, methods and rules.
    data
        Further folders, whose files are only read.
    closed
        Folders of which nothing but the other ones is open.
    remedy
        What to do about a file elsewhere, as a sentence.
    """

    code: tuple[Path, ...]
    data: tuple[Path, ...]
    closed: tuple[Path, ...]
    remedy: str

    def allows(self, path: Path, *, runs: bool = False) -> bool:
        """Tell whether a path, which need not exist, lies in an open folder."""
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError):  # links in a circle, or no path at all
            return False
        holders = [one for one in (*self.code, *self.data, *self.closed) if resolved.is_relative_to(one)]
        deepest = max(holders, key=lambda one: len(one.parts), default=None)
        return deepest in (self.code if runs else (*self.code, *self.data))


def find_file(base: Path, name: str, limits: FileLimits | None = None, *, runs: bool = False) -> Path:
    """Return the path that ``name`` means, seen from the folder ``base``.

    Parameters
    ----------
    base, name
        The folder, and the name as it was given.
    limits
        Of the account that gave the name; None for a user of this machine, who may name every file.
    runs
        Whether the file is executed, and not only read.

    Raises
    ------
    ForetellError
        It lies elsewhere. The sentence is the same whether the file exists or not.
    """
    if limits is None:
        return base / Path(name).expanduser()
    path = base / name
    if name.startswith("~") or not limits.allows(path, runs=runs):
        raise ForetellError(f"{name!r} is outside the folders whose files you may name. {limits.remedy}")
    return path


def is_path(name: str) -> bool:
    """Tell a path from a name such as ``OWNER/NAME``: it begins at a root or a home, or has a part of dots."""
    path = PurePath(name)
    return path.is_absolute() or name.startswith("~") or bool({".", ".."} & {*name.replace("\\", "/").split("/")})
