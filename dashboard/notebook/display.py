"""Images and progress in a notebook, or in a terminal."""

from __future__ import annotations

import html
import importlib.util
import sys

from PIL import Image

from dashboard.shared.bars import ProgressBars


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


class Bars(ProgressBars):
    """Progress, as a widget where the notebook has widgets."""

    def __init__(self) -> None:
        widgets = is_notebook() and importlib.util.find_spec("ipywidgets") is not None
        module = importlib.import_module("tqdm.notebook" if widgets else "tqdm")
        super().__init__(lambda total: module.tqdm(total=total, leave=False))
