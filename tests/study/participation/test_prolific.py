"""Links that Prolific signs, checked with real keys: what is not signed by it, for this study, now, starts nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from core.errors import ForetellError
from study.participation.links import signature
from study.participation.payloads import Recruit, SessionCredentials
from study.participation.refusals import Refusal
from study.service import Service
from tests.study.participants import MakeBundle

NOW_S = 1_800_000_000
PERSON, STUDY, SESSION = "5e" * 12, "aa" * 12, "bb" * 12
ADDRESS = "https://study.example.org"
IDS = {"PROLIFIC_PID": PERSON, "STUDY_ID": STUDY, "SESSION_ID": SESSION}
THEIRS, STRANGERS = (rsa.generate_private_key(65537, 2048) for _ in range(2))


def encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def public(key: rsa.RSAPrivateKey, kid: str) -> dict[str, Any]:
    """A public key as Prolific's key set has it."""
    numbers = key.public_key().public_numbers()
    n = encode(numbers.n.to_bytes(256, "big"))
    return {"kty": "RSA", "kid": kid, "alg": "RS256", "use": "sig", "key_ops": ["verify"], "n": n, "e": "AQAB"}


def by_rsa(key: rsa.RSAPrivateKey) -> Callable[[bytes], bytes]:
    return lambda said: key.sign(said, padding.PKCS1v15(), hashes.SHA256())


def token(
    sign: Callable[[bytes], bytes] = by_rsa(THEIRS), alg: str = "RS256", kid: str | None = "k1", **claims: Any
) -> str:
    """A token written by hand, by RFC 7515, so that no library decides what can be forged. None leaves a claim out."""
    ids = IDS | {"workspace_id": "cc" * 12}
    said = {"iss": "https://www.prolific.com", "aud": f"{ADDRESS}/run/demo?PROLIFIC_PID={PERSON}", "sub": SESSION,
            "exp": NOW_S + 600, "prolific": ids} | claims  # fmt: skip
    header = {"alg": alg, "typ": "JWT"} | ({} if kid is None else {"kid": kid})
    kept = {name: value for name, value in said.items() if value is not None}
    both = ".".join(encode(json.dumps(part).encode()) for part in (header, kept))
    return f"{both}.{encode(sign(both.encode()))}"


def recruit(shown: str | None, **ids: str) -> Recruit:
    return Recruit(**({"source": "prolific", "person": PERSON, "study": STUDY, "session": SESSION} | ids), token=shown)  # type: ignore[arg-type]


@pytest.fixture
def opened(tmp_path: Path, bundle: MakeBundle) -> Service:
    """A workspace whose study ``demo`` takes signed links, with a clock of its own."""
    home = tmp_path / "home"
    service = Service(home, f"sqlite:///{home / 'foretell.db'}", clock=lambda: NOW_S * 10**9)
    assert service.researcher.open_study(bundle(), per_condition=4) == "demo"
    (home / "prolific.toml").write_text(f'address = "{ADDRESS}"\nstudies = ["demo"]\n')
    (home / "prolific-jwks.json").write_text(json.dumps({"keys": [public(THEIRS, "k1")]}))
    return service


def pem() -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return THEIRS.public_key().public_bytes(serialization.Encoding.PEM, form)


@pytest.mark.parametrize("aud", [None, ADDRESS, f"{ADDRESS}/run/demo/", [ADDRESS, "https://other.example.org"]])
def test_a_signed_link_starts_and_resumes(opened: Service, aud: Any) -> None:
    """Resumed in a browser that has no secret: the signature is the proof."""
    shown = token() if aud is None else token(aud=aud)
    first = opened.participant.begin("demo", recruit=recruit(shown))
    assert opened.participant.begin("demo", recruit=recruit(shown)) != first
    opened.close()


FORGED = {
    "none": (lambda: None, "not signed by Prolific"),
    "empty": (lambda: "a.b.c", "signature of this link is not"),
    "another key": (lambda: token(by_rsa(STRANGERS)), "signature of this link is not"),
    "an unknown kid": (lambda: token(by_rsa(STRANGERS), kid="k2"), "signature of this link is not"),
    "no kid": (lambda: token(kid=None), "signature of this link is not"),
    "alg none": (lambda: token(lambda _: b"", alg="none"), "signature of this link is not"),
    "alg HS256 with the public key": (
        lambda: token(lambda said: hmac.new(pem(), said, hashlib.sha256).digest(), alg="HS256"),
        "signature of this link is not",
    ),
    "changed afterwards": (
        lambda: ".".join([*token().split(".")[:1], token(exp=NOW_S + 10**6).split(".")[1], token().split(".")[2]]),
        "signature of this link is not",
    ),
    "expired": (lambda: token(exp=NOW_S - 3600), "has expired"),
    "without an end": (lambda: token(exp=None), "signature of this link is not"),
    "another issuer": (lambda: token(iss="https://prolific.example.org"), "signature of this link is not"),
    "another server": (lambda: token(aud="https://study.example.org.evil.example/run/demo"), "another study or server"),
    "another study here": (lambda: token(aud=f"{ADDRESS}/run/other"), "another study or server"),
    "no audience": (lambda: token(aud=None), "another study or server"),
    "another person": (lambda: token(prolific={**IDS, "PROLIFIC_PID": "5f" * 12}), "other ids"),
    "another study there": (lambda: token(prolific={**IDS, "STUDY_ID": "ab" * 12}), "other ids"),
    "no ids": (lambda: token(prolific=None), "other ids"),
    "ids that are none": (lambda: token(prolific=["x"]), "other ids"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_any_other_link_starts_nothing(opened: Service, name: str) -> None:
    make, sentence = FORGED[name]
    with pytest.raises(Refusal, match=sentence) as refused:
        opened.participant.begin("demo", recruit=recruit(make()))
    assert (refused.value.code, refused.value.says) == (403, "refused_link")
    assert opened.participant.begin("demo", recruit=recruit(token()))  # theirs is not used up
    opened.close()


def test_links_without_an_id_and_with_another_are_refused_and_ours_are_not(opened: Service) -> None:
    """Else whoever leaves the ids out comes in all the same."""
    for arrival in (None, Recruit(person=PERSON), Recruit(person="7")):
        with pytest.raises(Refusal, match="not signed by Prolific"):
            opened.participant.begin("demo", recruit=arrival)
    signed = Recruit(person="7", signature=signature(opened.workspace.key, "demo", "7"))
    assert opened.participant.begin("demo", recruit=signed)
    assert opened.participant.begin("demo", mode="preview")
    opened.close()


def test_their_browser_resumes_when_the_signature_is_too_old(opened: Service) -> None:
    """Prolific's tokens end; a participation that was begun does not end with them."""
    mine, other = SessionCredentials(browser="m" * 40), SessionCredentials(browser="o" * 40)
    first = opened.participant.begin("demo", recruit=recruit(token()), proof=mine)
    opened.participant.consent(first, True)
    late = recruit(token(exp=NOW_S - 3600))
    assert opened.participant.begin("demo", recruit=late, proof=mine)
    with pytest.raises(Refusal, match="has expired"):
        opened.participant.begin("demo", recruit=late, proof=other)
    opened.close()


def test_a_signature_lets_nobody_past_a_closed_list(opened: Service) -> None:
    opened.researcher.set_access("demo", "list", ["6a" * 12])
    with pytest.raises(Refusal, match="invited participants only"):
        opened.participant.begin("demo", recruit=recruit(token()))
    opened.close()


def test_other_studies_ask_for_nothing(opened: Service) -> None:
    (opened.workspace.home / "prolific.toml").write_text(f'address = "{ADDRESS}"\nstudies = ["another"]\n')
    assert opened.participant.begin("demo")
    opened.close()


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("prolific.toml", 'address = "study.example.org"\nstudies = ["demo"]', "address: "),
        ("prolific.toml", f'address = "{ADDRESS}"', "studies: is missing"),
        ("prolific-jwks.json", "{}", "holds no public keys"),
        ("prolific-jwks.json", '{"keys": []}', "holds no public keys"),
        ("prolific-jwks.json", '{"keys": [{"kty": "RSA", "kid": "k1"}]}', "holds no public keys"),
        ("prolific-jwks.json", None, "Download https://api.prolific.com"),
    ],
)
def test_wrong_settings_let_nobody_in(opened: Service, file: str, content: str | None, sentence: str) -> None:
    """A file that cannot be read must not turn the check off."""
    (opened.workspace.home / file).unlink() if content is None else (opened.workspace.home / file).write_text(content)
    with pytest.raises(ForetellError, match=sentence):
        opened.participant.begin("demo", recruit=recruit(token()))
    opened.close()
