"""Images and progress in a notebook, or in a terminal."""

from __future__ import annotations

import html
import importlib.util
import sys
from types import TracebackType
from typing import Any

from PIL import Image


def escape(text: str) -> str:
    """Escape a text for HTML: names of files and classes come from anywhere."""
    return html.escape(text, quote=True)


def is_notebook() -> bool:
    """Tell whether this program runs in a notebook, which shows images."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


def show_image(image: Image.Image) -> None:
    """Show an image in the notebook, or in the system's viewer."""
    if is_notebook():
        sys.modules["IPython"].display.display(image)
    else:
        image.show()


class Bars:
    """Progress, one bar after the other, as a widget where the notebook has widgets; a `core.types.Progress`."""

    def __init__(self) -> None:
        widgets = is_notebook() and importlib.util.find_spec("ipywidgets") is not None
        self._module = importlib.import_module("tqdm.notebook" if widgets else "tqdm")
        self._bar: Any = None

    def __call__(self, done: int, total: int, what: str) -> None:
        """Move the bar; a new one begins where the total changes."""
        if self._bar is None or self._bar.total != total or done < self._bar.n:
            self._close()
            self._bar = self._module.tqdm(total=total, leave=False, desc=what)
        self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Bars:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
