"""Requests to a token endpoint, and which of its responses are accepted."""

from __future__ import annotations

import json
from typing import Literal
from urllib.parse import parse_qs

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk, jws
from msgspec.structs import replace

from hookproxy.authorization.stored_login import Client, Secrets, StoredLogin
from hookproxy.authorization.token_requests import (
    HttpRequest,
    TokenRefused,
    Tokens,
    TokenUnavailable,
    code_request,
    read_response,
    renewal_request,
    revocation_request,
    with_tokens,
)
from hookproxy.model.errors import UserError

LOGIN = StoredLogin(
    server="https://mcp.example.com/mcp",
    issuer="https://auth.example.com",
    token_endpoint="https://auth.example.com/token",
    client=Client("id"),
    grant="authorization_code",
    scope="read",
    resource="https://mcp.example.com/mcp",
    issued_at=1.0,
    expires_at=2.0,
    secrets=Secrets("access", "refresh"),
    revocation_endpoint="https://auth.example.com/revoke",
)
GOOD = {"access_token": "a", "token_type": "Bearer"}


def form(request: HttpRequest | None) -> dict[str, str]:
    assert request is not None
    return {name: value for name, [value] in parse_qs(request.body.decode()).items()}


def test_a_renewal_names_the_resource_and_no_scope() -> None:
    assert form(renewal_request(LOGIN, "", 0)) == {
        "grant_type": "refresh_token",
        "refresh_token": "refresh",
        "client_id": "id",
        "resource": "https://mcp.example.com/mcp",
    }


def test_a_person_without_refresh_token_cannot_be_renewed_but_a_machine_can() -> None:
    login = replace(LOGIN, secrets=Secrets("access"))
    assert renewal_request(login, "", 0) is None
    for either in (login, LOGIN):  # even if it has got a refresh token
        machine = form(renewal_request(replace(either, grant="client_credentials"), "", 0))
        assert (machine["grant_type"], machine["scope"]) == ("client_credentials", "read")


def test_a_secret_is_in_the_header_or_in_the_body_as_registered() -> None:
    basic = renewal_request(replace(LOGIN, client=Client("a b:c", "client_secret_basic")), "p%:w", 0)
    assert basic is not None
    assert basic.headers["Authorization"] == "Basic YSUyMGIlM0FjOnAlMjUlM0F3"  # "a%20b%3Ac:p%25%3Aw"
    assert "client_secret" not in form(basic)
    posted = renewal_request(replace(LOGIN, client=Client("id", "client_secret_post")), "p&w", 0)
    assert form(posted)["client_secret"] == "p&w"
    issued = replace(LOGIN, client=Client("id", "client_secret_post"), secrets=Secrets("a", "r", "theirs"))
    assert form(renewal_request(issued, "", 0))["client_secret"] == "theirs"


def test_what_is_secret_in_a_request_is_hidden_in_errors_about_it() -> None:
    request = renewal_request(replace(LOGIN, client=Client("id", "client_secret_basic")), "s3cret", 0)
    assert request is not None
    assert request.hide("id: s3cret and refresh are wrong") == "id: … and … are wrong"
    form = {"code": "c0de", "code_verifier": "c0de-verifier"}
    code = code_request("https://auth.example.com/token", Client("id"), "", "", 0, form)
    assert code.hide("c0de-verifier does not fit c0de") == "… does not fit …"


PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def pem(key: PrivateKey | ed448.Ed448PrivateKey | x25519.X25519PrivateKey, password: str = "") -> str:
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def public_pem(key: PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.mark.parametrize(
    ("key", "algorithm", "key_type"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256", "RSA"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256", "EC"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384", "EC"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512", "EC"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA", "OKP"),
    ],
)
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
def test_an_assertion_is_for_the_issuer_alone_and_short_lived(
    key: PrivateKey, algorithm: str, key_type: Literal["RSA", "EC", "OKP"]
) -> None:
    import time

    now = time.time()
    request = form(renewal_request(replace(LOGIN, client=Client("id", "private_key_jwt")), pem(key), now))
    assertion = request["client_assertion"]
    assert request["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    signed = jws.deserialize_compact(assertion, jwk.import_key(public_pem(key), key_type), [algorithm])
    claims = msgspec.json.decode(signed.payload or b"")
    assert signed.headers() == {"alg": algorithm, "typ": "JWT"}
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("id", "id", LOGIN.issuer)
    assert (claims["iat"], claims["exp"] - claims["iat"]) == (int(now), 300)


@pytest.mark.parametrize(
    "key",
    [
        "no key",
        pem(x25519.X25519PrivateKey.generate()),
        pem(ed448.Ed448PrivateKey.generate()),
        pem(ec.generate_private_key(ec.SECP224R1())),
        pem(ec.generate_private_key(ec.SECP256R1()), "password"),
        public_pem(ec.generate_private_key(ec.SECP256R1())),
        public_pem(ed25519.Ed25519PrivateKey.generate()),
    ],
)
def test_an_unusable_key_is_an_error_without_its_text(key: str) -> None:
    with pytest.raises(UserError, match="private key cannot be used") as raised:
        renewal_request(replace(LOGIN, client=Client("id", "private_key_jwt")), key, 0)
    assert key not in str(raised.value)


def test_the_refresh_token_is_revoked_if_there_is_one() -> None:
    assert form(revocation_request(LOGIN, "", 0))["token"] == "refresh"
    assert form(revocation_request(replace(LOGIN, secrets=Secrets("access")), "", 0))["token"] == "access"
    assert revocation_request(replace(LOGIN, revocation_endpoint=""), "", 0) is None


def test_a_response_is_read_with_all_its_members() -> None:
    body = GOOD | {"token_type": "bearer", "refresh_token": "r", "expires_in": "3600", "scope": "a b"}
    assert read_response(200, json.dumps(body).encode()) == Tokens("a", "r", 3600, "a b")
    assert read_response(201, json.dumps(GOOD).encode()) == Tokens("a", "", None, "")
    assert read_response(200, json.dumps(GOOD | {"expires_in": 10**30}).encode()).lifetime == 315_360_000


@pytest.mark.parametrize(
    "fault",
    [
        {"token_type": "DPoP"},
        {"token_type": None},
        {"access_token": ""},
        {"access_token": None},
        {"access_token": "a\r\nX-Injected: 1"},
        {"access_token": "a b"},
        {"access_token": "a\u00e9"},
        {"access_token": "a" * 16_385},
        {"refresh_token": "r\n"},
        {"refresh_token": 7},
        {"expires_in": -1},
        {"expires_in": True},
        {"expires_in": "soon"},
        {"expires_in": "²"},
        {"expires_in": [1]},
    ],
)
def test_a_response_that_cannot_be_used_is_not(fault: dict[str, object]) -> None:
    with pytest.raises(TokenUnavailable):
        read_response(200, json.dumps(GOOD | fault).encode())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b"[" * 100_000, b'{"a":"' + b"x" * 300_000 + b'"}'])
def test_a_body_that_is_no_object_is_unavailable(body: bytes) -> None:
    for status in (200, 302, 400, 500):
        with pytest.raises(TokenUnavailable):
            read_response(status, body)


def test_only_an_error_of_oauth_ends_a_login() -> None:
    refused = json.dumps({"error": "invalid_grant", "error_description": "gone\n\x1b[2J" + "x" * 999}).encode()
    with pytest.raises(TokenRefused) as raised:
        read_response(400, refused)
    assert str(raised.value).startswith(r"invalid_grant: gone\n\x1b[2Jxxx")
    assert len(str(raised.value)) == 200
    for status, code in ((500, "invalid_grant"), (429, "invalid_grant"), (400, "temporarily_unavailable"), (400, "")):
        body = json.dumps({"error": code} if code else {}).encode()
        with pytest.raises(TokenUnavailable):
            read_response(status, body)


def test_what_a_response_leaves_out_stays() -> None:
    login = with_tokens(LOGIN, Tokens("new", "", None, ""), 100)
    assert login == replace(LOGIN, issued_at=100, expires_at=None, secrets=Secrets("new", "refresh"))
    login = with_tokens(LOGIN, Tokens("new", "r2", 60, "less"), 100)
    assert login == replace(LOGIN, issued_at=100, expires_at=160, scope="less", secrets=Secrets("new", "r2"))


@given(st.integers(100, 599), st.binary(max_size=200))
def test_any_response_is_tokens_or_one_of_two_errors(status: int, body: bytes) -> None:
    with pytest.raises((TokenRefused, TokenUnavailable)):
        read_response(status, body)
