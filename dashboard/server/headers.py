"""What every reply of ours says to the browser, and where a request comes from."""

from __future__ import annotations

import ipaddress
import logging
from functools import cache
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

_POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors"
SAFE = {
    "Content-Security-Policy": f"{_POLICY} 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
RESEARCHERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss: data: blob:; "
        "worker-src 'self' blob:; media-src 'self' data: blob:; frame-src 'self' data: blob:; "
        "base-uri 'self'; form-action 'self'; frame-ancestors 'self'; object-src 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Of Streamlit's pages, which need scripts and styles in the page; nothing from elsewhere, and in nobody's frame."""
FRESH = {**SAFE, "Cache-Control": "no-store"}
FRAMED = {**FRESH, "Content-Security-Policy": f"{_POLICY} 'self'"}
"""Of a page that a researcher's page shows in a frame; no other is shown in any."""
IMMUTABLE = {**SAFE, "Cache-Control": "public, max-age=31536000, immutable"}


log = logging.getLogger(__name__)

HSTS = "max-age=31536000"
"""Strict-Transport-Security of every reply to a request that came by TLS: the browser asks by TLS alone for a year."""


def is_foreign_origin(asked: HTTPConnection) -> bool:
    """Whether another site's page made this request; a program that is no browser says nothing of its origin."""
    site = asked.headers.get("sec-fetch-site")
    if site is not None:
        return site != "same-origin"
    origin = asked.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != asked.headers.get("host")


@cache
def _warn_of_proxy(host: str) -> None:
    """Say once that a proxy is not trusted: all participants behind it count as one address."""
    log.warning(
        "%s sends X-Forwarded-For and is not trusted: all that it forwards counts as one address. If it is your "
        "proxy, set FORWARDED_ALLOW_IPS to its address.",
        host,
    )


def source_of(asked: HTTPConnection) -> str:
    """Return the source whose requests are counted: an address, or the 64-bit network of one household."""
    host = asked.client.host if asked.client else ""
    forwarded = asked.headers.get("x-forwarded-for", "")
    if forwarded and host not in forwarded:
        _warn_of_proxy(host)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network(f"{host}/64", strict=False))
