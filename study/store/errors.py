"""Errors of the database."""

from __future__ import annotations

from core.errors import ForetellError


class StoreError(ForetellError):
    """The database cannot be opened, or a write failed and was rolled back."""
