"""Which JWTs are accepted: each forgery and each mistake that is known has its row."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, Key, OKPKey
from msgspec.structs import replace

from hookproxy.authorization.access_tokens import IssuerSettings, TokenRejected, UnknownKey, VerifiedToken
from hookproxy.authorization.verify_jwt import read_keys, verify
from hookproxy.model.principal import Principal
from tests.support.signed_tokens import AUDIENCE, SigningKey, encoded, rsa_key

ISSUER = "https://idp.example.com/realm"
SETTINGS = IssuerSettings(ISSUER, AUDIENCE)
KEY = SigningKey("one")
OTHER = SigningKey("other")


def keys(*signing: SigningKey, **members: Any) -> list[Key]:  # noqa: ANN401  # any JSON
    return read_keys(json.dumps({"keys": [key.public(**members) for key in signing]}).encode())[0]


KEYS = keys(KEY)


def check(token: str, known: list[Key] = KEYS, settings: IssuerSettings = SETTINGS) -> VerifiedToken:
    return verify(token, known, settings, time.time())


def name(token: str, known: list[Key] = KEYS, settings: IssuerSettings = SETTINGS) -> str:
    return check(token, known, settings).principal.name


def refusal(token: str, known: list[Key] = KEYS, settings: IssuerSettings = SETTINGS) -> str:
    with pytest.raises(TokenRejected) as raised:
        check(token, known, settings)
    assert not any(part and part in str(raised.value) for part in token.split("."))
    return str(raised.value)


def test_a_token_says_who_it_is_about() -> None:
    found = check(KEY.token(ISSUER, scope="mcp:read mcp:call", aud=[AUDIENCE, "other"]))
    assert found.principal == Principal(f"{ISSUER} alice", "alice", ("developers",))
    assert found.scopes == {"mcp:read", "mcp:call"}
    assert found.audiences == {AUDIENCE, "other"}


@pytest.mark.parametrize(
    ("algorithm", "make"),
    [
        ("RS256", rsa_key),
        ("RS512", rsa_key),
        ("PS256", rsa_key),
        ("ES256", ECKey.generate_key),
        ("ES384", lambda: ECKey.generate_key("P-384")),
        ("ES512", lambda: ECKey.generate_key("P-521")),
        ("EdDSA", OKPKey.generate_key),
        ("Ed25519", OKPKey.generate_key),
    ],
)
def test_each_asymmetric_signature_is_accepted(algorithm: str, make: Callable[[], Any]) -> None:
    key = SigningKey("k", algorithm, make())
    assert check(key.token(ISSUER), keys(key)).principal.name == "alice"


# --- forged signatures ---


@pytest.mark.parametrize("algorithm", ["none", "None", "nOnE", ""])
def test_no_signature_is_no_signature(algorithm: str) -> None:
    _, payload, signature = KEY.token(ISSUER).split(".")
    header = encoded({"alg": algorithm, "kid": "one", "typ": "at+jwt"})
    for end in ("", signature):
        refusal(f"{header}.{payload}.{end}")


def public_texts(key: SigningKey) -> list[bytes]:
    """Each way in which somebody could take the public key for a shared secret."""
    pem = key.key.as_pem(private=False)
    return [pem, pem.strip(), key.key.as_der(private=False), json.dumps(key.public()).encode()]


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("signing", [KEY, SigningKey("rsa", "RS256", rsa_key())], ids=["EC", "RSA"])
def test_the_public_key_is_no_shared_secret(algorithm: str, signing: SigningKey) -> None:
    payload = signing.token(ISSUER).split(".")[1]
    signing_input = f"{encoded({'alg': algorithm, 'kid': signing.kid, 'typ': 'at+jwt'})}.{payload}"
    for secret in public_texts(signing):
        mac = hmac.digest(secret, signing_input.encode(), getattr(hashlib, f"sha{algorithm[2:]}"))
        assert refusal(f"{signing_input}.{encoded(mac)}", keys(signing)) == "its signature is of no accepted kind"


def test_a_key_with_the_same_name_does_not_sign_for_the_issuer() -> None:
    refusal(SigningKey("one").token(ISSUER))


@pytest.mark.parametrize("member", ["jwk", "jku", "x5u", "x5c"])
def test_a_key_that_the_token_brings_is_never_used(member: str) -> None:
    values = {"jwk": OTHER.public(), "jku": "https://evil.example", "x5u": "https://evil.example", "x5c": ["MIIB"]}
    refusal(OTHER.token(ISSUER, header={"kid": "one", member: values[member]}))


def test_another_kid_of_the_same_set_is_another_key() -> None:
    """Kid confusion: a token is tried with the key that it names, and with no other."""
    both = keys(KEY, OTHER)
    assert name(OTHER.token(ISSUER), both) == "alice"
    refusal(OTHER.token(ISSUER, header={"kid": "one"}), both)


@pytest.mark.parametrize("kid", ["two", "", "../../dev/null", "one\x00", "ONE", "' or 1=1"])
def test_a_strange_kid_is_an_unknown_key(kid: str) -> None:
    with pytest.raises(UnknownKey, match=r"^it names a key that the issuer does not have$"):
        check(KEY.token(ISSUER, header={"kid": kid}))


def test_a_token_without_kid_needs_an_issuer_with_one_fitting_key() -> None:
    token = KEY.token(ISSUER, header={"kid": None})
    assert name(token, keys(KEY, SigningKey("rsa", "RS256", rsa_key()))) == "alice"
    assert refusal(token, keys(KEY, OTHER)) == "it does not say which key has signed it"


def test_two_keys_of_one_name_are_both_tried() -> None:
    twin = SigningKey("one")
    assert name(KEY.token(ISSUER), keys(twin, KEY)) == "alice"


def test_a_key_serves_only_the_signature_that_it_is_for() -> None:
    signing = SigningKey("rsa", "PS256", rsa_key())
    assert name(signing.token(ISSUER), keys(signing)) == "alice"
    with pytest.raises(UnknownKey):
        check(signing.token(ISSUER), keys(signing, alg="RS256"))


def test_a_changed_byte_anywhere_is_refused() -> None:
    token = KEY.token(ISSUER)
    for index, one in enumerate(token):
        if one != ".":
            changed = token[:index] + ("A" if one != "A" else "B") + token[index + 1 :]
            with pytest.raises(TokenRejected):
                check(changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token + "=",
        lambda token: token + "\n",
        lambda token: " " + token,
        lambda token: token + ".",
        lambda token: token.replace(".", "..", 1),
        lambda token: token + "AAAA",
        lambda token: token.rpartition(".")[0] + ".",
        lambda token: json.dumps(dict(zip(("protected", "payload", "signature"), token.split("."), strict=True))),
        lambda _: "a.b.c",
        lambda _: "..",
        lambda _: "é.é.é",
    ],
)
def test_another_spelling_of_a_token_is_none(change: Callable[[str], str]) -> None:
    with pytest.raises(TokenRejected):
        check(change(KEY.token(ISSUER)))


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c.d", "a.b.ü", "a.b.c\n", "a. b.c"])
def test_what_has_not_three_parts_is_not_a_jwt(text: str) -> None:
    with pytest.raises(TokenRejected, match=r"^it is not a JWT$"):
        check(text)


def test_a_header_may_be_as_long_as_one_with_a_certificate() -> None:
    header = {"alg": "ES256", "kid": "one", "typ": "at+jwt", "x5t": ""}
    for more, accepted in ((0, True), (1, False)):
        header["x5t"] = "x" * (3072 - len(json.dumps(header | {"x5t": ""})) + more)
        token = KEY.sign_raw(header, json.dumps(KEY.claims(ISSUER)).encode())
        assert (len(token.partition(".")[0]) <= 4096) is accepted
        assert (name(token) == "alice") if accepted else (refusal(token) == "its header cannot be read")


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 3000,
        b"[]",
        b'"alg"',
        b"{",
        b"\xff",
        b"A" * 5000,
    ],
)
def test_a_header_that_cannot_be_read_is_refused(header: bytes) -> None:
    _, payload, signature = KEY.token(ISSUER).split(".")
    assert refusal(f"{encoded(header)}.{payload}.{signature}") == "its header cannot be read"


@pytest.mark.parametrize("header", [{"alg": []}, {"alg": {}}, {}, {"alg": "ES256", "kid": 1}])
def test_a_header_must_name_a_signature_and_may_name_a_key(header: dict[str, Any]) -> None:
    token = KEY.sign_raw({"typ": "at+jwt"} | header, json.dumps(KEY.claims(ISSUER)).encode())
    assert refusal(token) == "its signature is of no accepted kind"


@pytest.mark.parametrize("claims", [b"[" * 5000, b"[]", b"1", b"", b"{", b"\xff", b'{"exp":1e999}', b"x" * 20_000])
def test_signed_claims_that_cannot_be_read_are_refused(claims: bytes) -> None:
    with pytest.raises(TokenRejected):
        check(KEY.sign(claims))


@pytest.mark.parametrize(
    "extension", [{"crit": ["exp"]}, {"crit": []}, {"crit": ["b64"], "b64": False}, {"b64": False}]
)
def test_an_extension_that_must_be_understood_is_refused(extension: dict[str, Any]) -> None:
    assert refusal(KEY.token(ISSUER, header=extension)) == "its header has an extension"


@pytest.mark.parametrize("claims", [{"token_use": "access"}, {"typ": "Bearer"}, {"_claim_names": {"other": "src1"}}])
def test_access_tokens_of_known_providers_are_accepted(claims: dict[str, Any]) -> None:
    assert name(KEY.token(ISSUER, **claims)) == "alice"


def test_header_members_that_mean_nothing_here_are_ignored() -> None:
    assert name(KEY.token(ISSUER, header={"x5t": "abc", "nonce": "1", "org": {"a": 1}})) == "alice"


# --- claims ---


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": "https://evil.example"}, "it is from another issuer"),
        ({"iss": ISSUER + "/"}, "it is from another issuer"),
        ({"iss": ISSUER.upper()}, "it is from another issuer"),
        ({"iss": [ISSUER]}, "it is from another issuer"),
        ({"iss": None}, "it is from another issuer"),
        ({"exp": None}, "it does not say when it expires"),
        ({"exp": "9999999999"}, "its exp is not a time"),
        ({"exp": True}, "its exp is not a time"),
        ({"exp": float("inf")}, "cannot be read"),
        ({"exp": 10**400}, "its exp is not a time"),
        ({"exp": 1e300}, "its exp is not a time"),
        ({"exp": -1}, "its exp is not a time"),
        ({"exp": float("nan")}, "cannot be read"),
        ({"exp": 253_402_300_800}, "its exp is not a time"),
        ({"exp": [9_999_999_999]}, "its exp is not a time"),
        ({"nbf": "now"}, "its nbf is not a time"),
        ({"iat": "now"}, "its iat is not a time"),
        ({"sub": None}, "it has no usable sub"),
        ({"sub": ""}, "it has no usable sub"),
        ({"sub": 7}, "it has no usable sub"),
        ({"sub": "alice\nroot"}, "it has no usable sub"),
        ({"sub": "alice\x00"}, "it has no usable sub"),
        ({"sub": "a" * 513}, "it has no usable sub"),
        ({"sub": " alice"}, "it has no usable sub"),
        ({"groups": {"developers": True}}, "its groups is neither a text nor a list of texts"),
        ({"groups": ["developers", 7]}, "its groups is neither a text nor a list of texts"),
        ({"groups": ["a\nb"]}, "its groups cannot be used"),
        ({"groups": ["a\u00a0b"]}, "its groups cannot be used"),
        ({"groups": ["staff,interns"]}, "its groups has a group with a comma or a blank in its name"),
        ({"groups": "staff interns"}, "its groups has a group with a comma or a blank in its name"),
        ({"groups": [f"g{number}" for number in range(1001)]}, "its groups cannot be used"),
        ({"aud": {"a": 1}}, "its aud is neither a text nor a list of texts"),
        ({"scope": 7}, "its scope is neither a text nor a list of texts"),
        ({"at_hash": "x"}, "it is not an access token"),
        ({"c_hash": "x"}, "it is not an access token"),
        ({"s_hash": "x"}, "it is not an access token"),
        ({"token_use": "id"}, "it is not an access token"),
        ({"typ": "ID"}, "it is not an access token"),
        ({"typ": "Refresh"}, "it is not an access token"),
        ({"cnf": {"jkt": "x"}}, "it is bound to a key of its client, which cannot be checked here"),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, "its groups are not in it"),
        ({"groups": None, "hasgroups": True}, "its groups are not in it"),
        ({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}, "it is not an access token"),
    ],
)
def test_wrong_claims_are_refused_with_their_reason(claims: dict[str, Any], why: str) -> None:
    assert refusal(KEY.token(ISSUER, **claims)).endswith(why)


def test_what_is_as_long_as_it_may_be_is_accepted() -> None:
    groups = [f"g{number}" for number in range(1000)]
    found = check(KEY.token(ISSUER, sub="a" * 512, exp=253_402_300_799, groups=[*groups, *groups[:2]]))
    assert found.principal == Principal(f"{ISSUER} {'a' * 512}", "a" * 512, tuple(sorted(groups)))
    assert found.expires == 253_402_300_799.0


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": -29}, ""),
        ({"exp": -30}, "it has expired"),
        ({"exp": -31}, "it has expired"),
        ({"nbf": 30}, ""),
        ({"nbf": 31}, "it is not valid yet"),
        ({"nbf": 31, "iat": 0}, "it is not valid yet"),
        ({"nbf": -1_700_000_000}, ""),
        ({"iat": 30}, ""),
        ({"iat": 31}, "it is not valid yet"),
        ({"iat": 3000, "exp": 9000}, "it is not valid yet"),
    ],
)
def test_clocks_may_differ_by_half_a_minute(claims: dict[str, float], why: str) -> None:
    now = 1_700_000_000.0
    times: dict[str, Any] = {"iat": now, "exp": now + 60} | {name: now + seconds for name, seconds in claims.items()}
    token = KEY.token(ISSUER, **times)
    if not why:
        assert verify(token, KEYS, SETTINGS, now).expires == times["exp"]
        return
    with pytest.raises(TokenRejected, match=f"^{why}$"):
        verify(token, KEYS, SETTINGS, now)


@pytest.mark.parametrize(
    ("kind", "strict", "loose"),
    [
        ("at+jwt", True, True),
        ("application/at+jwt", True, True),
        ("AT+JWT", True, True),
        ("JWT", False, True),
        (None, False, True),
        ("", False, True),
        ("logout+jwt", False, False),
        ("dpop+jwt", False, False),
        ("secevent+jwt", False, False),
        (7, False, False),
    ],
)
def test_the_type_of_the_token_is_that_of_an_access_token(kind: object, strict: bool, loose: bool) -> None:
    for settings, accepted in ((SETTINGS, strict), (replace(SETTINGS, any_type=True), loose)):
        token = KEY.token(ISSUER, header={"typ": kind}) if kind != 7 else _typed(7)
        if accepted:
            assert name(token, settings=settings) == "alice"
        elif loose:
            why = "its type is not at+jwt (RFC 9068), and gateway.oidc.any_type is not set"
            assert refusal(token, settings=settings) == why
        else:
            assert refusal(token, settings=settings) == "its type is not that of an access token"


def _typed(kind: object) -> str:
    _, payload, signature = KEY.token(ISSUER).split(".")
    return f"{encoded({'alg': 'ES256', 'kid': 'one', 'typ': kind})}.{payload}.{signature}"


def test_whose_token_does_not_say_its_groups_is_denied_what_a_group_is_denied() -> None:
    token = KEY.token(ISSUER, groups=None)
    silent = check(token).principal
    assert silent.may_be_among(["@interns"])
    assert not silent.is_among(["@interns"])
    assert not silent.may_be_among(["bob"])
    without = check(token, settings=replace(SETTINGS, missing_groups="none")).principal
    assert not without.may_be_among(["@interns"])
    with pytest.raises(TokenRejected, match="it has no groups"):
        check(token, settings=replace(SETTINGS, missing_groups="refuse"))
    empty = KEY.token(ISSUER, groups=[])
    for what in ("doubt", "refuse", "none"):
        assert not check(empty, settings=replace(SETTINGS, missing_groups=what)).principal.in_doubt


def test_the_configuration_names_the_claims_of_user_and_groups() -> None:
    settings = replace(SETTINGS, user_claim="preferred_username", groups_claim="roles")
    token = KEY.token(ISSUER, sub="f3", preferred_username="alice", roles="admin")
    assert check(token, settings=settings).principal == Principal(f"{ISSUER} f3", "alice", ("admin",))
    assert refusal(KEY.token(ISSUER), settings=settings) == "it has no usable preferred_username"


@pytest.mark.parametrize(("verified", "accepted"), [(True, True), (False, False), (None, False), ("true", False)])
def test_an_email_address_counts_only_if_it_is_verified(verified: object, accepted: bool) -> None:
    settings = replace(SETTINGS, user_claim="email")
    token = KEY.token(ISSUER, email="ceo@example.com", email_verified=verified)
    if accepted:
        assert check(token, settings=settings).principal.name == "ceo@example.com"
    else:
        assert refusal(token, settings=settings) == "its issuer has not verified the email address"


@pytest.mark.parametrize("claims", [{"scp": ["a", "b"]}, {"scp": "a b"}, {"scope": "a b"}, {"scope": " a  b "}])
def test_scopes_are_read_in_each_spelling_of_issuers(claims: dict[str, Any]) -> None:
    assert check(KEY.token(ISSUER, **claims)).scopes == {"a", "b"}


def test_only_blanks_stand_between_scopes() -> None:
    assert check(KEY.token(ISSUER, scope="a\tb c")).scopes == {"a\tb", "c"}


def test_a_name_may_be_one_character() -> None:
    assert name(KEY.token(ISSUER, sub="a")) == "a"


# --- the issuer's keys ---


def left_out(*members: object) -> list[str]:
    found, lines = read_keys(json.dumps({"keys": [KEY.public(), *members]}).encode())
    assert found[0].kid == "one"
    assert len(found) + len(lines) == 1 + len(members)
    return lines


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ({"kty": "oct", "k": "c2VjcmV0"}, "its type is not one of RSA, EC, OKP"),
        ({"kty": "AKP", "alg": "ML-DSA-44", "pub": "x"}, "its type is not one of RSA, EC, OKP"),
        (OTHER.public(use="enc"), "it is not for signatures"),
        (OTHER.public(key_ops=["encrypt"]), "it is not for signatures"),
        (OTHER.public(key_ops=7), "it is not valid"),
        (OTHER.key.as_dict(private=True), "it is a private key, which its issuer must replace"),
        (
            ECKey.generate_key("secp256k1").as_dict(private=False),
            "its curve is not one of P-256, P-384, P-521, Ed25519",
        ),
        (OKPKey.generate_key("X25519").as_dict(private=False), "its curve is not one of P-256, P-384, P-521, Ed25519"),
        ({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, "it is not valid"),
        ({"kty": "RSA"}, "it has fewer than 2048 bits"),
        ({"kty": []}, "its type is not one of RSA, EC, OKP"),
        ("key", "it is not an object"),
    ],
)
def test_a_key_that_must_not_be_used_is_left_out_with_its_reason(member: object, why: str) -> None:
    assert left_out(member) == [f"key 2 is not used: {why}"]


def test_a_short_rsa_key_is_left_out() -> None:
    modulus = (1 << 2047 | 1).to_bytes(256, "big")
    assert left_out({"kty": "RSA", "e": "AQAB", "n": encoded(modulus)}) == []
    for short in (modulus[:-1], b"\0" + modulus[:-1]):
        assert left_out({"kty": "RSA", "e": "AQAB", "n": encoded(short)}) == [
            "key 2 is not used: it has fewer than 2048 bits"
        ]


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b'{"keys":{}}', b"<html>", b'{"keys":' + b"[" * 9000])
def test_what_is_no_key_set_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"^it is not a JWK Set$"):
        read_keys(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = ("iss", "sub", "aud", "exp", "nbf", "iat", "groups", "scope", "scp", "cnf", "typ", "_claim_names", "email")


@given(st.dictionaries(st.sampled_from(NAMES), JSON), st.dictionaries(st.sampled_from(("alg", "kid", "typ")), JSON))
def test_whatever_an_issuer_signs_is_accepted_or_refused(claims: dict[str, Any], header: dict[str, Any]) -> None:
    """Nothing else is raised, and who is accepted is who the token says."""
    members = KEY.claims(ISSUER) | claims
    try:
        found = check(
            KEY.sign_raw({"alg": "ES256", "kid": "one", "typ": "at+jwt"} | header, json.dumps(members).encode())
        )
    except TokenRejected:
        return
    assert members["iss"] == ISSUER
    assert found.principal.id == f"{ISSUER} {members['sub']}"


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes_in_three_parts_are_refused(header: bytes, payload: bytes, signature: bytes) -> None:
    with pytest.raises(TokenRejected):
        check(".".join(map(encoded, (header, payload, signature))))


JWK = ("kid", "use", "key_ops", "alg", "crv", "x", "y", "n", "e", "x5c", "x5u", "kty")
PUBLIC = [
    KEY.public(),
    SigningKey("rsa", "RS256", rsa_key()).public(),
    SigningKey("ed", "EdDSA", OKPKey.generate_key()).public(),
]


@given(
    st.sampled_from(PUBLIC),
    st.dictionaries(st.sampled_from(JWK), JSON | st.sampled_from(["", "AA", "RSA", "EC", "OKP"])),
)
def test_whatever_stands_in_a_key_set_is_a_key_or_left_out(public: dict[str, Any], members: dict[str, Any]) -> None:
    found, lines = read_keys(json.dumps({"keys": [public | members]}).encode())
    assert len(found) + len(lines) == 1
    if found:  # a token with it is accepted or refused, and nothing else
        with pytest.raises(TokenRejected):
            check(OTHER.token(ISSUER, header={"kid": found[0].kid or "x"}), found)
