"""What `hookproxy connect --url` sends as its token, and what the user reads when a gateway refuses it."""

from __future__ import annotations

import anyio
import pytest

from hookproxy.authorization.gateway_credentials import GivenToken, LoginOrToken
from hookproxy.model.credentials import NoCredentials
from hookproxy.model.errors import UserError

GATEWAY = "https://mcp.example.com"
TOKENS_ONLY = 'Bearer realm="hookproxy"'
WITH_ISSUER = f'Bearer resource_metadata="{GATEWAY}/.well-known/oauth-protected-resource/mcp/git"'
EXPIRED = 'Bearer error="invalid_token", error_description="the token has expired"'


def refused(credentials: GivenToken | LoginOrToken, challenge: str, used: str | None) -> str | None:
    return anyio.run(credentials.refused, 401, challenge, used)


def test_a_refused_token_is_described_with_its_place_the_reason_and_a_command() -> None:
    credentials = GivenToken(GATEWAY, "/home/alice/token", lambda: "hkp_abc")
    assert credentials.value_now() == anyio.run(credentials.value) == "Bearer hkp_abc"
    for _ in range(2):
        assert refused(credentials, EXPIRED, "Bearer hkp_abc") is None
    said = f"{GATEWAY} does not accept the token in /home/alice/token: the token has expired."
    assert credentials.hint.startswith(said)
    assert "hookproxy token new USER" in credentials.hint
    assert "hkp_abc" not in credentials.hint


def test_a_token_that_has_taken_the_place_of_a_refused_one_is_used_at_once() -> None:
    tokens = ["old", "new", "new"]
    credentials = GivenToken(GATEWAY, "FILE", lambda: tokens.pop(0))
    assert refused(credentials, EXPIRED, "Bearer old") == "Bearer new"
    assert credentials.value_now() == "Bearer new"
    assert refused(credentials, "", "Bearer new") is None
    assert "HTTP status 401" in credentials.hint


def test_a_file_that_is_gone_is_the_reason() -> None:
    there = [True]

    def read() -> str:
        if not there:
            raise UserError("--token-file: FILE: No such file or directory", "name a file that exists")
        return "a"

    credentials = GivenToken(GATEWAY, "FILE", read)
    there.clear()
    assert refused(credentials, EXPIRED, "Bearer a") is None
    assert "No such file or directory (name a file that exists)" in credentials.hint


@pytest.mark.parametrize(
    ("challenge", "said"),
    [(TOKENS_ONLY, "needs a token, and hookproxy connect has none"), ("", "needs a token"), (WITH_ISSUER, "log in")],
)
def test_without_a_login_the_hint_depends_on_what_the_gateway_accepts(challenge: str, said: str) -> None:
    credentials = LoginOrToken(GATEWAY, NoCredentials("log in"))
    assert credentials.value_now() is None
    for _ in range(2):
        assert refused(credentials, challenge, None) is None
    assert said in credentials.hint
    assert ("--token-file" in credentials.hint and "HOOKPROXY_TOKEN" in credentials.hint) is (said != "log in")


def test_a_login_that_the_gateway_refuses_needs_another_login() -> None:
    credentials = LoginOrToken(GATEWAY, NoCredentials("log in again"))
    assert refused(credentials, TOKENS_ONLY, "Bearer of-a-login") is None
    assert credentials.hint == "log in again"
