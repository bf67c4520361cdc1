"""What every answer of ours says to the browser, and what a browser says of where a request comes from."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

SAFE = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FRESH = {**SAFE, "Cache-Control": "no-store"}
IMMUTABLE = {**SAFE, "Cache-Control": "public, max-age=31536000, immutable"}


def foreign_origin(asked: HTTPConnection) -> bool:
    """Whether another site's page made this request; a program that is no browser says nothing of its origin."""
    site = asked.headers.get("sec-fetch-site")
    if site is not None:
        return site != "same-origin"
    origin = asked.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != asked.headers.get("host")
