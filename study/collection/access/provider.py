"""Login by an OpenID Connect provider, and the list of researchers whom it may admit to the pages."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from core.errors import ForetellError
from core.text import read_text
from study.workspace.tomlfile import load_toml

FILE = "oidc.toml"
CALLBACK = "/door/sso/callback"
"""Path registered with identity providers since version 0.1: it must not change."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ADDRESS = re.compile(r'[^@\s<>"]{1,64}@[^@\s<>"]{1,255}')
_DOMAIN = re.compile(r"[^@\s<>\"/:.*]+(\.[^@\s<>\"/:.*]+)+")


def plain(address: str) -> str:
    """Normalise an e-mail address for comparison: ASCII letters in lower case, no other (a Kelvin sign is no k)."""
    return address.encode().lower().decode()


def is_address(value: str) -> bool:
    """Tell whether a text is an e-mail address."""
    return _ADDRESS.fullmatch(value) is not None and value.isprintable()


def parse_address(value: str) -> str:
    """Return an e-mail address in its normalised form; raise `ForetellError` for anything else."""
    address = value.strip()
    if not is_address(address):
        raise ForetellError(f"{value!r} is not an e-mail address. Write it as ada@example.org.")
    return plain(address)


def _address(value: str) -> str:
    if not is_address(value):
        raise ValueError("is not an e-mail address; write it as ada@example.org")
    return plain(value)


def _domain(value: str) -> str:
    if not _DOMAIN.fullmatch(value):
        raise ValueError("is not a domain; write the part after the @, such as example.org")
    return plain(value)


def _https(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError("must begin with https://")
    if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("must be an address such as https://login.example.org, without a name, ? or #")
    return value


def _origin(value: str) -> str:
    if urlsplit(_https(value)).path not in ("", "/"):
        raise ValueError("must be scheme and name only, such as https://study.example.org")
    return value.rstrip("/")


class Provider(BaseModel):
    """The file ``oidc.toml`` of a workspace. Error messages never quote its values, which may be secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(min_length=1, max_length=60)]
    """Display name: the button says "Log in with NAME"."""
    issuer: Annotated[str, AfterValidator(_https)]
    """Issuer, as in the provider's own metadata at ``ISSUER/.well-known/openid-configuration``."""
    client_id: Annotated[str, Field(min_length=1, max_length=255)]
    secret_file: str | None = None
    """File with the client secret, readable by its owner only, relative to the workspace."""
    secret_variable: str | None = None
    """Environment variable with the client secret."""
    address: Annotated[str, AfterValidator(_origin)]
    """Scheme and name under which browsers reach the researcher's pages."""
    administrators: tuple[Annotated[str, AfterValidator(_address)], ...] = ()
    """Addresses that may log in and may do everything, in every study."""
    people: tuple[Annotated[str, AfterValidator(_address)], ...] = ()
    domains: tuple[Annotated[str, AfterValidator(_domain)], ...] = ()
    contact: Annotated[str, Field(min_length=1, max_length=200)]
    """Contact for researchers who are not on the list."""
    _secret: str = PrivateAttr("")

    @model_validator(mode="after")
    def _check_sources(self) -> Provider:
        if (self.secret_file is None) == (self.secret_variable is None):
            raise ValueError("name the source of the client secret: either secret_file or secret_variable.")
        if not self.people and not self.domains and not self.administrators:
            raise ValueError("no one may log in: name addresses in people, domains or administrators.")
        return self

    def allows(self, address: str) -> bool:
        """Tell whether this address, or its whole domain, is on the list."""
        one = plain(address)
        return one in (*self.people, *self.administrators) or one.rpartition("@")[2] in self.domains

    @property
    def callback(self) -> str:
        """Address to which the provider redirects browsers: register exactly this one."""
        return self.address + CALLBACK

    @property
    def secret(self) -> str:
        """The client secret."""
        return self._secret


def provider_of(home: Path) -> Provider | None:
    """Load the provider of a workspace with its secret; None without ``oidc.toml``.

    Raises
    ------
    ForetellError
        The file is wrong (every fault at once), or its secret is missing or readable by others.
    """
    try:
        provider = load_toml(home / FILE, Provider)
    except FileNotFoundError:
        return None
    try:
        provider._secret = _secret(provider, home)
    except ValueError as error:
        raise ForetellError(f"{home / FILE}: {error}") from None
    return provider


def _secret(provider: Provider, home: Path) -> str:
    if provider.secret_variable is not None:
        secret = os.environ.get(provider.secret_variable, "")
        if not secret:
            raise ValueError("the environment variable that secret_variable names is not set. Set it.")
        return secret
    path = home / str(provider.secret_file)
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise ValueError("others may read the file that secret_file names. Run chmod 600 on it.")
        secret = read_text(path).strip()
    except (OSError, ForetellError):
        raise ValueError("the file that secret_file names cannot be read. Create it.") from None
    if not secret:
        raise ValueError("the file that secret_file names is empty. Put the secret in.")
    return secret
