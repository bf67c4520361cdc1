"""Python files that users write: networks, rules and methods. Nothing here imports torch; a rule may not need it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from core.errors import ForetellError

SUFFIX = ".py"


class _AsWritten(SourceFileLoader):
    """Compile the file as it is: Python's cache of compiled files checks only seconds and size."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - importlib's own signature
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


class _WithOperators(Loader):
    """Import torchvision as `core.loading.import_torchvision` does: with the operators that its build lacks."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        try:
            self._loader.exec_module(module)
        except RuntimeError as error:
            from core.loading import declare_missing_operators

            declare_missing_operators(error)
            for name in [name for name in sys.modules if name.startswith("torchvision.")]:
                del sys.modules[name]
            self._loader.exec_module(module)


class _TorchvisionFinder(MetaPathFinder):
    """Find torchvision for files that import it, at their top or later, without importing it for those that do not."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torchvision":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _WithOperators(spec.loader)
        return spec


_finder = _TorchvisionFinder()


def split_python(name: str) -> tuple[str, str] | None:
    """Split ``FILE.py:function`` into the file and the function, which may be missing; None for any other name.

    The ending of the file decides: ``photo.py.png`` is no Python file.
    """
    file, colon, function = name.rpartition(":")
    if colon and file.lower().endswith(SUFFIX) and not {"/", "\\"} & {*function}:
        return file, function
    return (name, "") if name.lower().endswith(SUFFIX) else None


def describe_missing_file(path: Path, error: BaseException) -> str:
    """Name the file that a user's file reads and that is not there; empty for any other error."""
    if not isinstance(error, FileNotFoundError) or not error.filename:
        return ""
    missing = Path(str(error.filename))
    folder = missing.resolve().parent
    return f"The file {missing.name} is missing: {path.name} reads it from {folder}. Add the two together."


def execute_file(path: Path) -> ModuleType:
    """Run a user's file as a module, with its own folder importable meanwhile: run only files you trust.

    Raises
    ------
    ForetellError
        Not a Python file by its ending, or it fails.
    """
    if path.suffix.lower() != SUFFIX:
        raise ForetellError(f"{path.name} is no Python file. Give a file that ends in {SUFFIX}.")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    name = f"foretell_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsWritten(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        missing = describe_missing_file(path, error)
        raise ForetellError(missing or f"{path} failed while it was read: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    return module
