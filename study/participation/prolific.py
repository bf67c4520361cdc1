"""Links that Prolific signs: a JSON Web Token (RFC 7519) over the three ids, checked offline with its public keys.

Prolific appends ``prolific_token`` to a study's address where "secured external URL" is on
(``is_external_study_url_secure``), signed with RS256 by a key of https://api.prolific.com/.well-known/study/jwks.json
(https://docs.prolific.com/api-reference/well-known-endpoints/get-study-jwks). ``aud`` is the study's address, ``exp``
the end, and ``prolific`` has the values that the address takes: the ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import KeySet, RSAKey
from pydantic import BaseModel, ConfigDict, Field

from core.errors import ForetellError
from study.participation.payloads import Recruit
from study.participation.refusals import Refusal
from study.workspace.tomlfile import load_toml

FILE = "prolific.toml"
ISSUER = "https://www.prolific.com"
ALGORITHM = "RS256"
"""The only one: with HS256 the public key would sign, and with none nothing does."""
LEEWAY_S = 60


class Signatures(BaseModel):
    """The file ``prolific.toml`` of a workspace: its studies are open to links that Prolific signed, and to ours."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: Annotated[str, Field(min_length=1)] = "prolific-jwks.json"
    """Prolific's public keys, as downloaded, relative to the workspace."""
    address: Annotated[str, Field(pattern=r"^https?://[^/\s?#]+$")]
    """Scheme and name of this server in the study's address at Prolific."""
    studies: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the studies whose links Prolific signs."""


def signatures_of(home: Path) -> tuple[Signatures, KeySet] | None:
    """Return what signed links are checked with; None without ``prolific.toml``.

    Raises
    ------
    ForetellError
        The file is wrong, or the keys are none.
    """
    try:
        settings = load_toml(home / FILE, Signatures)
    except FileNotFoundError:
        return None
    file = home / settings.keys
    try:
        keys = KeySet([RSAKey.import_key(key) for key in json.loads(file.read_bytes())["keys"] if key["kty"] == "RSA"])
    except (OSError, ValueError, KeyError, TypeError, JoseError) as error:
        keys = None
        reason = type(error).__name__
    if keys is None or not keys.keys or any(key.is_private or key.kid is None for key in keys.keys):
        why = "" if keys is not None else f" ({reason})"
        raise ForetellError(
            f"{file} holds no public keys of Prolific{why}. Download "
            "https://api.prolific.com/.well-known/study/jwks.json to this file again."
        )
    return settings, keys


def check(home: Path, study: str, recruit: Recruit | None, now_s: float) -> bool:
    """Tell whether Prolific signed the ids of a link; False where this workspace does not ask for it.

    Without a link's id there is nothing that Prolific could have signed.

    Raises
    ------
    Refused
        403: there is no signature, or it is not Prolific's, is too old, or is for other ids or another study.
    """
    signatures = signatures_of(home)
    if signatures is None or study not in signatures[0].studies:
        return False
    settings, keys = signatures
    if recruit is None or recruit.source != "prolific" or recruit.token is None:
        raise _refusal("This link is not signed by Prolific. Open the study from its page at Prolific.")
    claims = _claims(recruit.token, keys, now_s)
    ids = claims.get("prolific")
    ids = ids if isinstance(ids, Mapping) else {}
    if (ids.get("PROLIFIC_PID"), ids.get("STUDY_ID"), ids.get("SESSION_ID")) != (
        recruit.person,
        recruit.study,
        recruit.session,
    ):
        raise _refusal("Prolific signed this link for other ids. Open the study from its page at Prolific.")
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(one, str) and _is_ours(one, settings.address, study) for one in named):
        raise _refusal("Prolific signed this link for another study or server. Open the study from its page there.")
    return True


def _claims(token: str, keys: KeySet, now_s: float) -> Mapping[str, Any]:
    """Return a token's claims, once its signature, its issuer and its time are checked."""
    registry = jwt.JWTClaimsRegistry(
        now=int(now_s), leeway=LEEWAY_S, iss={"essential": True, "value": ISSUER}, exp={"essential": True}
    )
    try:
        decoded = jwt.decode(token, lambda one: keys.get_by_kid(one.headers()["kid"]), algorithms=[ALGORITHM])
        registry.validate(decoded.claims)
    except ExpiredTokenError:
        raise _refusal("This link has expired. Open the study from its page at Prolific again.") from None
    except (JoseError, ValueError, KeyError, TypeError):
        raise _refusal("The signature of this link is not Prolific's. Open the study from its page there.") from None
    return decoded.claims


def _is_ours(audience: str, address: str, study: str) -> bool:
    """Tell whether an audience is this server, and this study where it has a path."""
    try:
        parts = urlsplit(audience)
    except ValueError:
        return False
    return f"{parts.scheme}://{parts.netloc}" == address and parts.path.rstrip("/") in ("", f"/run/{study}")


def _refusal(sentence: str) -> Refusal:
    return Refusal(403, sentence, "refused_link")
