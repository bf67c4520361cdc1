"""Foretell from Python, in a notebook or a program: what ``import foretell`` offers.

Each name is imported when it is first used: ``import foretell`` loads neither torch nor Streamlit.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # editors and type checkers read these lines, programs `PUBLIC`
    from core.errors import ForetellError as ForetellError
    from dashboard.notebook.explanations import Explanations as Explanations
    from dashboard.notebook.explanations import explain as explain
    from dashboard.notebook.models import FittedModel as FittedModel
    from dashboard.notebook.models import glmm as glmm
    from dashboard.notebook.networks import compare as compare
    from dashboard.notebook.networks import inspect as inspect
    from dashboard.notebook.networks import load as load
    from dashboard.notebook.networks import methods as methods
    from dashboard.notebook.studies import write_study as write_study

PUBLIC = {
    "ForetellError": "core.errors:ForetellError",
    "Explanations": "dashboard.notebook.explanations:Explanations",
    "FittedModel": "dashboard.notebook.models:FittedModel",
    "compare": "dashboard.notebook.networks:compare",
    "explain": "dashboard.notebook.explanations:explain",
    "glmm": "dashboard.notebook.models:glmm",
    "inspect": "dashboard.notebook.networks:inspect",
    "load": "dashboard.notebook.networks:load",
    "methods": "dashboard.notebook.networks:methods",
    "write_study": "dashboard.notebook.studies:write_study",
}
"""What ``import foretell`` offers, with where each name is defined."""

__all__ = [*PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"The package has no {name!r}. It has: {', '.join(PUBLIC)}.")
    module, _, attribute = PUBLIC[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return [*PUBLIC]
