"""Links that only this workspace can make: an id and a keyed hash over it."""

from __future__ import annotations

import base64
import hmac
from urllib.parse import urlencode

LENGTH = 16
"""Bytes of a signature: 128 bits, which nobody guesses."""


def signature(key: bytes, study: str, person: str) -> str:
    """Return the signature of an id in a study's link (HMAC-SHA-256, RFC 2104)."""
    digest = hmac.new(key, f"link\0{study}\0{person}".encode(), "sha256").digest()[:LENGTH]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def is_signed(key: bytes, study: str, person: str, shown: str) -> bool:
    """Tell whether a signature is that of this id in this study."""
    return hmac.compare_digest(signature(key, study, person).encode(), shown.encode())


def sign_path(key: bytes, study: str, person: str) -> str:
    """Return the path of a personal link, to be appended to the server's address."""
    return f"/run/{study}?{urlencode({'pid': person, 'sig': signature(key, study, person)})}"
