"""The file that says who else may say who somebody is."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ForetellError
from study.collection.access.provider import Provider, provider_of

RIGHT = {
    "name": "The University", "issuer": "https://login.example.org/", "client_id": "foretell",
    "secret_variable": "FORETELL_TEST_SECRET", "address": "https://study.example.org/",
    "people": ["Ada@Example.org"], "domains": ["Staff.Example.org"], "contact": "Grace",
}  # fmt: skip
SECRET = "what nobody else may see"


@pytest.fixture(autouse=True)
def _set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETELL_TEST_SECRET", SECRET)


def read(home: Path, **other: object) -> Provider | None:
    keys = {key: value for key, value in {**RIGHT, **other}.items() if value is not None}
    (home / "oidc.toml").write_text("".join(f"{key} = {value!r}\n" for key, value in keys.items()), encoding="utf-8")
    return provider_of(home)


def test_what_it_says(tmp_path: Path) -> None:
    """Catches a file not read, a way back with two slashes, and a secret that is shown with the rest."""
    assert provider_of(tmp_path) is None
    provider = read(tmp_path)
    assert provider is not None
    assert (provider.secret, provider.callback) == (SECRET, "https://study.example.org/door/sso/callback")
    assert SECRET not in repr(provider) + str(provider) + provider.model_dump_json()


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("ada@example.org", True),
        ("ADA@EXAMPLE.ORG", True),
        ("anybody@staff.example.org", True),
        ("bob@example.org", False),
        ("ada@example.org@evil.example", False),
        ("x@staff.example.org.evil.example", False),
        ("x@notstaff.example.org", False),
        ("x@\u017ftaff.example.org", False),
        ("ada@example.org ", False),
    ],
)
def test_who_is_on_the_list(tmp_path: Path, address: str, allowed: bool) -> None:
    """Catches a comparison by a part of the address, and letters that only look alike (a long s is no s)."""
    provider = read(tmp_path)
    assert provider is not None
    assert provider.allows(address) is allowed


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"name": None}, "name: is missing; add it"),
        ({"client_secret": SECRET}, "client_secret: unknown key; remove it"),
        ({"issuer": "http://login.example.org"}, "issuer: must begin with https://"),
        ({"issuer": "https://login.example.org?x=1"}, "issuer: must be an address such as"),
        ({"address": "http://study.example.org"}, "address: must begin with https://"),
        ({"address": "https://study.example.org/pages"}, "address: must be scheme and name only"),
        ({"people": [], "domains": []}, "the file: no one may log in"),
        ({"people": ["example.org"]}, "people.0: is not an e-mail address"),
        ({"domains": ["@example.org"]}, "domains.0: is not a domain"),
        ({"domains": ["*.example.org"]}, "domains.0: is not a domain"),
        ({"domains": ["org"]}, "domains.0: is not a domain"),
        ({"secret_variable": None}, "the file: name the source of the client secret"),
        ({"secret_file": "x"}, "the file: name the source of the client secret"),
        ({"secret_variable": f"{SECRET} by mistake"}, "variable that secret_variable names is not set"),
        ({"secret_variable": [SECRET]}, "secret_variable: must be text"),
        ({"secret_variable": None, "secret_file": "missing"}, "file that secret_file names cannot be read"),
    ],
)
def test_a_wrong_file_is_told_without_what_it_holds(tmp_path: Path, other: dict[str, object], sentence: str) -> None:
    """Catches a fault that is let through, or that repeats a secret put in the wrong place."""
    with pytest.raises(ForetellError) as told:
        read(tmp_path, **other)
    assert sentence in str(told.value)
    assert SECRET not in str(told.value)


def test_a_secret_in_a_file(tmp_path: Path) -> None:
    """Catches a file that everybody may read, or an empty one."""
    file = tmp_path / "oidc.secret"
    place = {"secret_variable": None, "secret_file": "oidc.secret"}
    for content, mode, sentence in (
        (SECRET, 0o644, "Run chmod 600"),
        (SECRET, 0o640, "chmod 600"),
        (" ", 0o600, "empty"),
    ):
        file.write_text(content)
        file.chmod(mode)
        with pytest.raises(ForetellError, match=sentence):
            read(tmp_path, **place)
    file.write_text(f"{SECRET}\n")
    provider = read(tmp_path, **place)
    assert provider is not None
    assert provider.secret == SECRET


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    """Catches a traceback, and a server that starts open because its file was not understood."""
    (tmp_path / "oidc.toml").mkdir()
    with pytest.raises(ForetellError, match="cannot be read"):
        provider_of(tmp_path)
    (tmp_path / "oidc.toml").rmdir()
    (tmp_path / "oidc.toml").write_text("name = ")
    with pytest.raises(ForetellError, match="is not valid TOML"):
        provider_of(tmp_path)
