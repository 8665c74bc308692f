"""Who has sent a request: the one Bearer token of its header decides, and what everybody else is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hookproxy.authorization.access_tokens import IssuerSettings
from hookproxy.authorization.authenticate import Authenticator, Challenge, bearer_token
from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.authorization.challenges import parameters
from hookproxy.authorization.resource_metadata import ProtectedResource, protected_resource
from hookproxy.authorization.token_file import create_token, digest_of, revoke_tokens
from hookproxy.authorization.token_issuer import TokenIssuer
from hookproxy.model.credentials import NotReady
from hookproxy.model.principal import Principal
from tests.support.oauth_server import OAuthServer
from tests.support.signed_tokens import AUDIENCE, SigningKey

OTHERS = [(b"Host", b"mcp.example.com"), (b"Accept", b"application/json, text/event-stream")]


class Gateway:
    """A gateway with a token file and an issuer, as far as it authenticates."""

    def __init__(self, folder: Path, oauth: OAuthServer) -> None:
        folder.chmod(0o700)
        self.file = str(folder / "tokens")
        self.own = self.new("alice", "dev")
        self.key = SigningKey("one")
        self.tenant = oauth.tenant(keys=[self.key.public()])
        self.reports: list[str] = []
        tokens = BearerTokens(self.file, self.reports.append, clock=count(0, 0.01).__next__)
        issuer = TokenIssuer(IssuerSettings(self.tenant.issuer, AUDIENCE), self.reports.append)
        self.authenticator = Authenticator(tokens, issuer)
        self.git = protected_resource(AUDIENCE, "git", self.tenant.issuer, ["mcp:read", "mcp:call"])
        self.open = protected_resource(AUDIENCE, "open", self.tenant.issuer)

    def new(self, user: str, *groups: str, days: float | None = None, now: float = 0.0) -> str:
        return create_token(self.file, user, groups, days, "", now or time.time())[0]

    def last_line(self) -> str:
        return Path(self.file).read_text().splitlines()[-1]

    def jwt(self, **claims: Any) -> str:  # noqa: ANN401  # any JSON
        return self.key.token(self.tenant.issuer, **claims)

    def check(self, *values: str | bytes, resource: ProtectedResource | None = None) -> Principal | Challenge:
        return self.check_headers(headers(values), resource)

    def check_headers(
        self, given: list[tuple[bytes, bytes]], resource: ProtectedResource | None = None
    ) -> Principal | Challenge:
        resource = resource or self.open
        token = bearer_token(given, resource)
        return token if isinstance(token, Challenge) else self.authenticator.check_token_now(token, resource)

    def refusal(self, *values: str | bytes, resource: ProtectedResource | None = None) -> Challenge:
        found = self.check(*values, resource=resource)
        assert isinstance(found, Challenge), found
        for value in values:
            token = value.split()[-1] if value.split() else None
            text = token.decode("latin-1") if isinstance(token, bytes) else token
            assert not text or len(text) < 20 or text not in repr(found)
        return found


def headers(values: Iterable[str | bytes]) -> list[tuple[bytes, bytes]]:
    given = [(b"Authorization", one.encode() if isinstance(one, str) else one) for one in values]
    return [*OTHERS, *given]


@pytest.fixture
async def gateway(tmp_path: Path, oauth: OAuthServer) -> Gateway:
    made = Gateway(tmp_path, oauth)
    assert made.authenticator._issuer
    await made.authenticator._issuer.prepare()
    return made


async def test_both_sorts_of_tokens_name_their_users(gateway: Gateway) -> None:
    assert gateway.check(f"Bearer {gateway.own}") == Principal("token:alice", "alice", ("dev",))
    found = gateway.check(f"Bearer {gateway.jwt()}")
    assert found == Principal(f"{gateway.tenant.issuer} alice", "alice", ("developers",))


def test_blanks_around_a_token_are_no_part_of_it_and_every_other_byte_is() -> None:
    resource = protected_resource(AUDIENCE, "git", "")
    assert bearer_token([(b"Authorization", b"Bearer  XabcX \t")], resource) == b"XabcX"
    assert bearer_token([(b"Authorization", b"Bearer abc\x0b")], resource) == b"abc\x0b"


@pytest.mark.parametrize("spelling", ["bearer {}", "BEARER {}", "Bearer   {}", "Bearer {} "])
async def test_the_name_of_the_scheme_has_any_case(gateway: Gateway, spelling: str) -> None:
    assert isinstance(gateway.check(spelling.format(gateway.own)), Principal)


@pytest.mark.parametrize("name", [b"authorization", b"AUTHORIZATION", b"aUTHORIZATION"])
async def test_the_name_of_the_header_has_any_case(gateway: Gateway, name: bytes) -> None:
    value = f"Bearer {gateway.own}".encode()
    assert isinstance(gateway.check_headers([(name, value)]), Principal)
    twins = gateway.check_headers([(name, value), (b"Authorization", value)])
    assert isinstance(twins, Challenge)


async def test_a_token_that_waits_for_keys_is_checked_by_the_slow_way(tmp_path: Path, oauth: OAuthServer) -> None:
    gateway = Gateway(tmp_path, oauth)
    token = gateway.jwt()
    with pytest.raises(NotReady):
        gateway.check(f"Bearer {token}")
    assert await gateway.authenticator.check(token.encode(), gateway.open) == gateway.check(f"Bearer {gateway.jwt()}")
    for other in (gateway.own, gateway.jwt(iss="x")):
        assert await gateway.authenticator.check(other.encode(), gateway.open) == gateway.check(f"Bearer {other}")


# --- no token ---


@pytest.mark.parametrize(
    "values", [[], [""], ["Basic YWxpY2U6c2VjcmV0"], ["Bearer"], ["Bearer "], ["{}"], ["Token {}"]]
)
async def test_a_request_without_a_bearer_token_learns_where_to_get_one(gateway: Gateway, values: list[str]) -> None:
    found = gateway.refusal(*(value.format(gateway.own) for value in values), resource=gateway.git)
    assert found.status == 401
    assert parameters(found.www_authenticate) == {
        "resource_metadata": f"{AUDIENCE}/.well-known/oauth-protected-resource/mcp/git",
        "scope": "mcp:read mcp:call",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b":path", b"/mcp/git?access_token={}"),
        (b"Cookie", b"access_token={}; Authorization=Bearer {}"),
        (b"X-Authorization", b"Bearer {}"),
        (b"Proxy-Authorization", b"Bearer {}"),
        (b"Authorization2", b"Bearer {}"),
        (b"Authorizatio\xfe", b"Bearer {}"),
        (b"Mcp-Authorization", b"Bearer {}"),
    ],
)
async def test_a_token_elsewhere_than_in_its_header_is_never_looked_at(
    gateway: Gateway, name: bytes, value: bytes
) -> None:
    sent = [*OTHERS, (name, value.replace(b"{}", gateway.own.encode()))]
    found = gateway.check_headers(sent)
    assert isinstance(found, Challenge)
    assert found.reason == "no token"


@pytest.mark.parametrize("second", ["Bearer {}", "Basic x", "", "Bearer other"])
async def test_two_headers_are_refused_even_if_one_is_right(gateway: Gateway, second: str) -> None:
    good = f"Bearer {gateway.own}"
    for values in ((good, second.format(gateway.own)), (second.format(gateway.own), good)):
        found = gateway.refusal(*values)
        assert found.status == 400
        assert parameters(found.www_authenticate)["error"] == "invalid_request"


# --- refused tokens ---


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token + "x",
        lambda token: token[:-1],
        lambda token: token.swapcase(),
        lambda token: f"{token}, Bearer {token}",
        lambda token: f"{token} {token}",
        lambda token: f'"{token}"',
        lambda token: "x" * 20_000,
        lambda token: "hkp_",
        lambda token: "sha256:" + "0" * 64,
    ],
)
async def test_an_unknown_token_is_invalid(gateway: Gateway, change: Callable[[str], str]) -> None:
    found = gateway.refusal(f"Bearer {change(gateway.own)}")
    assert found.status == 401
    assert parameters(found.www_authenticate)["error"] == "invalid_token"


@pytest.mark.parametrize("raw", [b"Bearer \xff\xfe", b"Bearer \x00", b"Bearer a.b.\xc3\xa9", b"\xff", b"Bearer\thkp_x"])
async def test_bytes_that_are_no_text_are_refused(gateway: Gateway, raw: bytes) -> None:
    assert gateway.refusal(raw).status == 401


async def test_the_digest_in_the_file_is_no_token(gateway: Gateway) -> None:
    digest = gateway.last_line().split()[-1]
    for token in (digest, digest.removeprefix("sha256:"), "hkp_" + digest.removeprefix("sha256:")):
        assert gateway.refusal(f"Bearer {token}").status == 401


async def test_a_token_that_is_revoked_between_two_requests_is_refused(gateway: Gateway) -> None:
    value = f"Bearer {gateway.own}"
    assert isinstance(gateway.check(value), Principal)
    revoke_tokens(gateway.file, "alice")
    assert gateway.refusal(value).status == 401


async def test_an_expired_token_is_named_by_its_id(gateway: Gateway) -> None:
    token = gateway.new("bob", days=1, now=time.time() - 2 * 86_400)
    found = gateway.refusal(f"Bearer {token}")
    assert parameters(found.www_authenticate)["error_description"] == "the token has expired"
    assert found.reason == f"token {gateway.last_line().split()[0]} has expired"


async def test_a_refused_jwt_is_named_by_the_beginning_of_its_digest(gateway: Gateway) -> None:
    found = gateway.refusal(f"Bearer {gateway.jwt(iss='https://evil.example')}")
    assert found.status == 401
    assert found.reason.startswith("token sha256:")
    assert found.reason.endswith("…: it is from another issuer")
    assert "evil" not in found.www_authenticate + found.message


# --- audience and scopes ---


@pytest.mark.parametrize(
    ("audience", "accepted"),
    [
        (AUDIENCE, True),
        ([AUDIENCE, "account"], True),
        (f"{AUDIENCE}/mcp/open", True),
        (f"{AUDIENCE}/mcp/git", False),
        (f"{AUDIENCE}/", False),
        (f"{AUDIENCE}.evil.example", False),
        ("account", False),
        ([], False),
        (None, False),
        ("", False),
    ],
)
async def test_a_token_is_for_the_gateway_or_for_this_server(
    gateway: Gateway, audience: object, accepted: bool
) -> None:
    value = f"Bearer {gateway.jwt(aud=audience)}"
    for _ in range(2):  # verified, and remembered
        if accepted:
            assert isinstance(gateway.check(value), Principal)
        else:
            assert gateway.refusal(value).status == 401


async def test_without_an_audience_in_the_configuration_a_token_is_for_one_server(gateway: Gateway) -> None:
    issuer = TokenIssuer(IssuerSettings(gateway.tenant.issuer), gateway.reports.append)
    await issuer.prepare()
    gateway.authenticator = Authenticator(None, issuer)
    assert isinstance(gateway.check(f"Bearer {gateway.jwt(aud=gateway.open.url)}"), Principal)
    for audience in ("", AUDIENCE, gateway.git.url, None):
        assert gateway.refusal(f"Bearer {gateway.jwt(aud=audience)}").status == 401


@pytest.mark.parametrize("scope", [None, "", "mcp:read", "mcp:readmcp:call", "MCP:READ MCP:CALL"])
async def test_a_token_with_too_few_scopes_learns_all_that_it_needs(gateway: Gateway, scope: str | None) -> None:
    found = gateway.refusal(f"Bearer {gateway.jwt(scope=scope)}", resource=gateway.git)
    assert found.status == 403
    challenge = parameters(found.www_authenticate)
    assert (challenge["error"], challenge["scope"]) == ("insufficient_scope", "mcp:read mcp:call")
    assert challenge["resource_metadata"] == gateway.git.metadata_url
    assert isinstance(
        gateway.check(f"Bearer {gateway.jwt(scope='mcp:call mcp:read x')}", resource=gateway.git), Principal
    )


async def test_a_token_of_the_file_needs_no_scope(gateway: Gateway) -> None:
    assert isinstance(gateway.check(f"Bearer {gateway.own}", resource=gateway.git), Principal)


# --- one sort only ---


async def test_without_an_issuer_a_jwt_is_unknown(gateway: Gateway) -> None:
    only_file = Authenticator(BearerTokens(gateway.file, gateway.reports.append), None)
    plain = protected_resource(AUDIENCE, "git", "")
    found = only_file.check_token_now(gateway.jwt().encode(), plain)
    assert isinstance(found, Challenge)
    assert parameters(found.www_authenticate) == {
        "error": "invalid_token",
        "error_description": "the token is not known",
    }


async def test_without_a_file_its_tokens_are_unknown(gateway: Gateway) -> None:
    gateway.authenticator = Authenticator(None, gateway.authenticator._issuer)
    assert gateway.refusal(f"Bearer {gateway.own}").status == 401
    gateway.authenticator = Authenticator(None, None)
    assert gateway.refusal(f"Bearer {gateway.own}").status == 401


async def test_an_issuer_that_is_away_is_no_fault_of_the_token(tmp_path: Path, oauth: OAuthServer) -> None:
    gateway = Gateway(tmp_path, oauth)
    gateway.tenant.keys_status = 503
    found = await gateway.authenticator.check(gateway.jwt().encode(), gateway.open)
    assert isinstance(found, Challenge)
    assert (found.status, found.www_authenticate, found.retry_after) == (503, "", 10)
    assert gateway.jwt()[:20] not in found.reason
    assert isinstance(gateway.check(f"Bearer {gateway.own}"), Principal)


# --- the words of each refusal ---


def shown(token: str) -> str:
    """How the log names a token."""
    return f"token sha256:{digest_of(token.encode()).hex()[:8]}…"


def invalid(gateway: Gateway, description: str, reason: str) -> Challenge:
    message = f"{description[0].upper()}{description[1:]}."
    return Challenge(401, message, gateway.git.challenge("invalid_token", description), reason=reason)


async def test_each_token_that_is_not_valid_is_refused_with_its_reason(gateway: Gateway) -> None:
    ended = gateway.new("bob", days=1, now=time.time() - 2 * 86_400)
    number = gateway.last_line().split()[0]
    elsewhere, foreign = gateway.jwt(iss="https://evil.example"), gateway.jwt(aud="account")
    for token, description, reason in (
        ("hkp_x", "the token is not known", f"{shown('hkp_x')} is not known"),
        (ended, "the token has expired", f"token {number} has expired"),
        ("x" * 16_385, "the token is too long", "a token is too long"),
        (elsewhere, "the token is not valid", f"{shown(elsewhere)}: it is from another issuer"),
        (foreign, "the token is not valid", f"{shown(foreign)}: it is for another audience"),
    ):
        expected = invalid(gateway, description, reason)
        assert gateway.refusal(f"Bearer {token}", resource=gateway.git) == expected
        if len(token) <= 16_384:
            assert await gateway.authenticator.check(token.encode(), gateway.git) == expected
    longest = "x" * 16_384
    assert gateway.refusal(f"Bearer {longest}").reason == f"{shown(longest)}: it is not a JWT"


async def test_a_token_of_the_file_is_accepted_until_it_ends(gateway: Gateway) -> None:
    assert gateway.check(f"Bearer {gateway.new('bob', days=1)}") == Principal("token:bob", "bob", ())


async def test_a_token_that_lacks_scopes_is_refused_with_those_that_it_lacks(gateway: Gateway) -> None:
    value = gateway.git.challenge("insufficient_scope", "the token lacks a scope")
    for scope, missing in (("mcp:read", "mcp:call"), ("x", "mcp:read mcp:call")):
        token = gateway.jwt(scope=scope)
        message = f"The token lacks a scope that is needed here: {missing}."
        expected = Challenge(403, message, value, reason=f"{shown(token)} lacks the scope {missing}")
        assert gateway.refusal(f"Bearer {token}", resource=gateway.git) == expected
        assert await gateway.authenticator.check(token.encode(), gateway.git) == expected


async def test_requests_without_one_token_are_refused_with_their_reason(gateway: Gateway) -> None:
    value = gateway.git.challenge()
    missing = Challenge(401, "Send a token in the header Authorization.", value, reason="no token")
    assert gateway.refusal(resource=gateway.git) == missing
    for text in ("Basic x", "Bearer", "Bearer \t "):
        wrong = Challenge(401, "Send a Bearer token.", value, reason="no Bearer token")
        assert gateway.refusal(text, resource=gateway.git) == wrong
    several = Challenge(
        400,
        "The request has several Authorization headers.",
        gateway.git.challenge("invalid_request", "several Authorization headers"),
        reason="several tokens",
    )
    assert gateway.refusal("Bearer x", "Bearer x", resource=gateway.git) == several


async def test_what_is_refused_for_an_issuer_that_is_away_says_when_to_try_again(
    tmp_path: Path, oauth: OAuthServer
) -> None:
    gateway = Gateway(tmp_path, oauth)
    gateway.tenant.keys_status = 503
    token = gateway.jwt()
    found = await gateway.authenticator.check(token.encode(), gateway.git)
    assert isinstance(found, Challenge)
    assert found.message == ("The token cannot be checked now, because its issuer cannot be reached. Try again later.")
    assert found.reason.startswith(f"{shown(token)} cannot be checked: ")
    assert found.headers == [(b"Retry-After", b"10")]
