"""Secrets of logins and links: only their hashes are stored."""

from __future__ import annotations

import hashlib

LINK_KEY = "key"
"""The secret of a link, in its query."""


def hash_token(token: str) -> str:
    """Return the hash under which a secret of 256 random bits is stored."""
    return hashlib.sha256(token.encode()).hexdigest()
