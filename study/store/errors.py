"""What can go wrong with the database, in words."""

from __future__ import annotations

from core.errors import ForetellError


class StoreError(ForetellError):
    """The database cannot be opened, or a write failed; nothing of a failed write was kept."""
