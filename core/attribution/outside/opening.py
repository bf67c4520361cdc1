"""Methods as study files and commands name them: registered, ``FILE.py:function``, ``heatmaps:FOLDER`` or ``own``."""

from __future__ import annotations

from pathlib import Path

from core.attribution import METHODS
from core.attribution.method import HeatmapMethod
from core.attribution.outside.folders import PREFIX, HeatmapFolder
from core.attribution.outside.functions import OWN, FunctionMethod, OwnMethod, open_file
from core.files import FileLimits, find_file
from core.userfiles import split_python

SPELLINGS = {
    "FILE.py:function": "a function (model, images, targets) of your own that returns heatmaps (B, H, W)",
    f"{PREFIX}FOLDER": "finished heatmaps by image name: grey PNG or NPY",
    OWN: "the network's own explain(images, targets)",
}
"""How methods that are not registered are named, with what they are."""


def open_method(name: str, base: Path | None = None, limits: FileLimits | None = None) -> HeatmapMethod:
    """Open a method by its name; files and folders are relative to ``base``, by default the working folder.

    ``FILE.py:function`` executes the file: pass on only names that the user of this machine gave, or with ``limits``
    those of an account, and never those of a link or a request.

    Raises
    ------
    ForetellError
        An unknown name, a missing file or folder, one outside the ``limits``, or code that fails.
    """
    if name == OWN:
        return OwnMethod()
    if name.startswith(PREFIX):
        return HeatmapFolder(find_file(base or Path.cwd(), name.removeprefix(PREFIX), limits))
    if is_external(name):
        return open_file(name, base or Path.cwd(), limits)
    return open_registered(name)


def open_registered(name: str) -> HeatmapMethod:
    """Open a method of Foretell or of an installed package: no file that a name could point to is executed.

    Raises
    ------
    ForetellError
        An unknown name, or a package that cannot be imported.
    """
    method: HeatmapMethod = METHODS[name]
    plugin = METHODS.plugins.get(name)
    return method if plugin is None else FunctionMethod(method, name, {"package": plugin.package}, plugin.digest)


def is_external(name: str) -> bool:
    """Tell whether a name is that of a file, a folder or the network's own explanation, none of them registered."""
    return name == OWN or name.startswith(PREFIX) or split_python(name) is not None


def file_name(method: HeatmapMethod) -> str:
    """Return a method's name as part of a file's name: ``mine.py:explain`` is ``mine.explain``."""
    return method.__name__.replace(".py:", ".").replace(":", ".")
