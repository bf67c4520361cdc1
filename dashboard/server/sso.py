"""``/login/sso``: to the OpenID Connect provider and back, logged in. Authorization code flow with PKCE.

Authlib speaks the protocol and checks what comes back (OpenID Connect Core 1.0, section 3.1.3.7). What is pending is
kept here once and its mark in the browser's cookie: a response that this browser did not request, or that comes
twice, is refused.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping
from functools import cache
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.starlette_client import OAuthError, StarletteIntegration, StarletteOAuth2App
from httpx2 import create_ssl_context
from joserfc.errors import JoseError
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import ForetellError
from dashboard.server.gate import LOGIN
from dashboard.server.headers import FRESH, is_foreign_origin, source_of
from dashboard.server.login import let_in, page, refuse
from dashboard.shared import service
from study.collection.access.provider import CALLBACK, Provider

SSO = f"{LOGIN}/sso"
PENDING_PATH = "/"
"""Of the cookie of a login under way: it begins at `SSO` and ends at `CALLBACK`."""
PENDING_S = 600
PATIENCE_S = 10.0
LEEWAY_S = 60
# Signatures that only the provider can make: never "none", which some list, nor one made with the client's own secret.
_SIGNED = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
# RFC 6749, sections 4.1.2.1 and 5.2.
_ERRORS = [
    "access_denied",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
]
_KEY = secrets.token_urlsafe(32)
_AGAIN = "This login was not started here, or more than ten minutes ago. Log in again."
_log = logging.getLogger("foretell.sso")


class InvalidProviderResponse(Exception):
    """The provider's response contradicts its own metadata or its ID token."""


class _Pending:
    """What Authlib keeps of a login that has begun; the door limits how many are."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, str]] = {}

    async def set(self, key: str, value: str, _: int) -> None:
        now = time.monotonic()
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > now}
        self._kept[key] = now + PENDING_S, value

    async def get(self, key: str) -> str | None:
        until, value = self._kept.get(key, (0.0, None))
        return value if until > time.monotonic() else None

    async def delete(self, key: str) -> None:
        self._kept.pop(key, None)


_pending = _Pending()


class _Sealed:
    """Starlette's signed cookie, on these routes alone; over TLS it is for TLS only."""

    def __init__(self, app: ASGIApp) -> None:
        self._by_tls = {
            tls: SessionMiddleware(app, _KEY, "foretell_sso", PENDING_S, PENDING_PATH, "lax", https_only=tls)
            for tls in (False, True)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._by_tls[scope["scheme"] == "https"](scope, receive, send)


@cache
def _trust_authorities() -> SSLContext:
    """Read the certificates of the authorities once: each request to the provider would hold all others for 50 ms."""
    context: SSLContext = create_ssl_context()
    return context


class _Client(StarletteOAuth2App):  # type: ignore[misc]
    """Authlib's client of one provider, made again for each request: metadata and keys are never older than that."""

    server_metadata: dict[str, Any]

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        super().__init__(
            StarletteIntegration("sso", _pending),
            client_id=provider.client_id,
            client_secret=provider.secret,
            server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": "openid email",
                "code_challenge_method": "S256",
                "timeout": PATIENCE_S,
                "verify": _trust_authorities(),
            },
        )

    async def load_server_metadata(self) -> dict[str, Any]:
        """Load the metadata that is needed, and nothing that could turn a check off."""
        if "issuer" not in self.server_metadata:
            told = await super().load_server_metadata()
            fault = find_metadata_fault(told, self._provider.issuer)
            if fault is not None:
                raise InvalidProviderResponse(fault)
            signed = [name for name in told.get("id_token_signing_alg_values_supported", ()) if name in _SIGNED]
            kept = {key: told[key] for key in ("issuer", "_loaded_at", *_ENDPOINTS) if key in told}
            self.server_metadata = {**kept, "id_token_signing_alg_values_supported": signed}
        return self.server_metadata

    async def claims(self, request: Request) -> Mapping[str, Any]:
        """Return the checked claims about the researcher who comes back with the provider's code."""
        must = {"iss": self._provider.issuer, "aud": self.client_id}
        options = {claim: {"essential": True, "value": value} for claim, value in must.items()}
        token = await self.authorize_access_token(request, claims_options=options, leeway=LEEWAY_S)
        if "userinfo" not in token:
            raise InvalidProviderResponse("no ID token")
        told: Mapping[str, Any] = token["userinfo"]
        if "email" in told or "userinfo_endpoint" not in self.server_metadata:
            return told
        more: Mapping[str, Any] = await self.userinfo(token=token)
        if more.get("sub") != told["sub"]:
            raise InvalidProviderResponse("userinfo of another user")
        return more


def find_metadata_fault(metadata: Mapping[str, Any], issuer: str) -> str | None:
    """Find why this is not that issuer's metadata (OpenID Connect Discovery 1.0, section 4.3), or is unsafe."""
    if metadata.get("issuer") != issuer:
        return "metadata of another issuer"
    allowed = ("https:",) if issuer.startswith("https:") else ("https:", "http:")
    bare = [key for key in _ENDPOINTS if key in metadata and not str(metadata[key]).startswith(allowed)]
    return "an endpoint without TLS" if bare else None


def routes() -> list[Route]:
    """List the routes to the provider, and back."""
    sealed = [Middleware(_Sealed)]
    return [Route(SSO, _begin, middleware=sealed), Route(CALLBACK, _end, middleware=sealed)]


async def _begin(request: Request) -> Response:
    provider = await run_in_threadpool(_provider)
    if provider is None or is_foreign_origin(request):
        return RedirectResponse(LOGIN, 303, headers=FRESH)
    if request.headers.get("host") != urlsplit(provider.address).netloc:
        # The provider responds to that address, where the cookie set here does not exist.
        return await page(request, f"{provider.name} logs in at {provider.address}{LOGIN} only. Go there.", 421)
    try:
        await run_in_threadpool(service.get_service().access.count_try, source_of(request))
        async with asyncio.timeout(PATIENCE_S):
            reply: Response = await _Client(provider).authorize_redirect(request, provider.callback)
    except Exception as error:
        return await _explain_error(request, provider, error)
    reply.headers.update(FRESH)
    return reply


async def _end(request: Request) -> Response:
    provider = await run_in_threadpool(_provider)
    if provider is None:
        return RedirectResponse(LOGIN, 303, headers=FRESH)
    try:
        async with asyncio.timeout(PATIENCE_S):
            claims = await _Client(provider).claims(request)
        return let_in(request, await run_in_threadpool(service.get_service().access.admit, claims, source_of(request)))
    except Exception as error:
        return await _explain_error(request, provider, error)


def _provider() -> Provider | None:
    return service.get_service().access.provider


async def _explain_error(request: Request, provider: Provider, error: Exception) -> Response:
    """Show one sentence for any error: a provider may be unreachable, or reply anything."""
    name = provider.name
    match error:
        case ForetellError():
            return await refuse(request, error)
        case MismatchingStateError():
            return await page(request, _AGAIN, 400)
    _log.warning("%s: %s %s", name, type(error).__name__, _why(error))
    match error:
        case OAuthError():
            return await page(request, f"{name} did not log you in. Try again, or ask {provider.contact}.", 401)
        case InvalidProviderResponse() | JoseError() | AuthlibBaseError():
            await run_in_threadpool(service.get_service().access.refuse, "an invalid response of the provider")
            return await page(request, f"{name} sent an invalid response. Log in again.", 401)
    return await page(request, f"{name} does not respond as it should. Try again later.", 502)


def _why(error: Exception) -> str:
    """Return what the log may contain: no text from outside, which may repeat what was sent."""
    if isinstance(error, InvalidProviderResponse | JoseError):
        return str(error)
    return next((known for known in _ERRORS if known == getattr(error, "error", None)), "")
