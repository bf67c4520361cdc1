"""Foretell measures whether explanations help people predict what an AI will say.

This file is the installed package; in a checkout, ``import foretell`` finds `foretell.py`, which offers the same.
"""

from typing import TYPE_CHECKING

from dashboard.notebook import __dir__, __getattr__  # noqa: F401 - Python asks these two for the package's names

if TYPE_CHECKING:
    from dashboard.notebook import *  # noqa: F403
