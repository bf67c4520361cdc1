"""A real OpenID Connect provider on a port of this machine, that can be told to answer wrongly.

It signs by itself (RFC 7515 with ``cryptography`` alone), so what it makes is checked by nothing that made it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx
import uvicorn
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.ports import free_port

CLIENT, SECRET = "foretell", "the client's secret, which nobody else may see"
PERSON = {"sub": "7", "email": "ada@example.org", "email_verified": True}


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Provider:
    """One that does what the standard says, but for what a test puts into the fields below."""

    claims: dict[str, Any] = field(default_factory=lambda: dict(PERSON))
    """Into the ID token, over what is right; None leaves a claim out."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Over what is right."""
    answers: dict[str, Response] = field(default_factory=dict)
    """In place of an endpoint's own."""
    userinfo: dict[str, Any] = field(default_factory=lambda: dict(PERSON))
    sign: str = "RS256"
    """Or ``none``, ``HS256`` with the client's secret, ``stranger`` with a key nobody knows."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """Every authorization request."""
    hits: list[str] = field(default_factory=list)
    """Every path asked for."""
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.issuer = f"http://localhost:{self.port}"
        self._key = rsa.generate_private_key(65537, 2048)
        self._codes: dict[str, dict[str, str]] = {}
        paths = {
            "/.well-known/openid-configuration": self._metadata,
            "/authorize": self._authorize,
            "/token": self._token,
            "/keys": self._keys,
            "/userinfo": self._userinfo,
        }
        self.app = Starlette(routes=[Route(path, self._endpoint(path, do), methods=["GET", "POST"])
                                     for path, do in paths.items()])  # fmt: skip

    def _endpoint(self, path: str, do: Any) -> Any:
        async def answer(request: Request) -> Response:
            self.hits.append(path)
            return self.answers.get(path) or await do(request)

        return answer

    async def _metadata(self, _: Request) -> Response:
        told = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["none", "HS256", "RS256"],
        }
        return JSONResponse({**told, **self.metadata})

    async def _authorize(self, request: Request) -> Response:
        """A page with a button, as a person sees it; a program may press it by ``yes=``."""
        asked = dict(request.query_params)
        if "yes" not in asked:
            self.asked.append(asked)
            more = urlencode({**asked, "yes": "1"})
            return HTMLResponse(f"<title>Provider</title><a href='/authorize?{more}'>Yes, it is me</a>")
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")

    async def _token(self, request: Request) -> Response:
        """Of a code once, to the client that knows its secret and the verifier (RFC 6749, 4.1.3; RFC 7636, 4.6)."""
        sent = {key: value[0] for key, value in parse_qs((await request.body()).decode()).items()}
        basic = f"Basic {base64.b64encode(f'{CLIENT}:{SECRET}'.encode()).decode()}"
        if request.headers.get("authorization") != basic:
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self._codes.pop(sent.get("code", ""), None)
        digest = encoded(hashlib.sha256(sent.get("code_verifier", "").encode()).digest())
        if asked is None or asked["redirect_uri"] != sent["redirect_uri"] or asked.get("code_challenge") != digest:
            return JSONResponse({"error": "invalid_grant", "error_description": f"never {SECRET}"}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        claims = {key: value for key, value in {**claims, **self.claims}.items() if value is not None}
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": self._signed(claims)})

    async def _keys(self, _: Request) -> Response:
        numbers = self._key.public_key().public_numbers()
        e, n = (encoded(k.to_bytes((k.bit_length() + 7) // 8, "big")) for k in (numbers.e, numbers.n))
        return JSONResponse({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": n, "e": e}]})

    async def _userinfo(self, request: Request) -> Response:
        known = request.headers.get("authorization") == "Bearer a"
        return JSONResponse(self.userinfo) if known else JSONResponse({}, 401)

    def _signed(self, claims: dict[str, Any]) -> str:
        named = self.sign if self.sign in ("none", "HS256") else "RS256"
        parts = ({"alg": named, "typ": "JWT", "kid": "1"}, claims)
        message = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        return f"{message}.{encoded(self._signature(message.encode()))}"

    def _signature(self, message: bytes) -> bytes:
        if self.sign == "none":
            return b""
        if self.sign == "HS256":
            return hmac.digest(SECRET.encode(), message, "sha256")
        key = rsa.generate_private_key(65537, 2048) if self.sign == "stranger" else self._key
        return key.sign(message, padding.PKCS1v15(), hashes.SHA256())

    def forget(self) -> None:
        """Right again in everything."""
        fresh = Provider(port=self.port)
        for name in ("claims", "metadata", "answers", "userinfo", "sign", "asked", "hits"):
            setattr(self, name, getattr(fresh, name))


@contextmanager
def providing(provider: Provider) -> Iterator[Provider]:
    """A provider that answers, until the end."""
    server = uvicorn.Server(uvicorn.Config(provider.app, "127.0.0.1", provider.port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < deadline, "the provider did not start"
            time.sleep(0.01)
        yield provider
    finally:
        server.should_exit = True
        thread.join(300)


def pressed(http: httpx.Client, page: str) -> httpx.Response:
    """The provider's answer to who presses its button: the way back."""
    return http.get(f"{page}&yes=1")
