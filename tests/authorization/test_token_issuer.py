"""Tokens of an issuer, with the keys that it publishes: new keys, withdrawn keys, and an issuer that is away."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.authorization.access_tokens import IssuerSettings, IssuerUnavailable, TokenRejected
from hookproxy.authorization.token_issuer import TokenIssuer
from hookproxy.model.credentials import NotReady
from hookproxy.model.errors import UserError
from tests.support.oauth_server import OAuthServer, Tenant, self_signed, serving
from tests.support.signed_tokens import AUDIENCE, SigningKey


class Rig:
    """An issuer with one key, and what a gateway knows of it. Both clocks stand still unless a test moves them."""

    def __init__(self, oauth: OAuthServer, **faults: Any) -> None:  # noqa: ANN401  # any field
        self.key = SigningKey("one")
        self.tenant: Tenant = oauth.tenant(keys=[self.key.public()], **faults)
        self.time = time.time()
        self.clock = 5.0
        self.reports: list[str] = []
        self.settings = IssuerSettings(self.tenant.issuer, AUDIENCE)
        self.issuer = self.known()

    def known(self, settings: IssuerSettings | None = None) -> TokenIssuer:
        return TokenIssuer(
            settings or self.settings, self.reports.append, now=lambda: self.time, clock=lambda: self.clock
        )

    def token(self, key: SigningKey | None = None, **claims: Any) -> bytes:  # noqa: ANN401  # any JSON
        return (key or self.key).token(self.tenant.issuer, **claims).encode()

    def later(self, seconds: float) -> None:
        self.time += seconds
        self.clock += seconds

    async def user(self, token: bytes) -> str:
        """The user of the token, whether it is known at once or not."""
        return (await self.issuer.check(token)).principal.name


@pytest.fixture
def make(oauth: OAuthServer) -> Callable[..., Rig]:
    return lambda **faults: Rig(oauth, **faults)


async def test_the_first_token_waits_for_the_keys_and_the_next_does_not(make: Callable[..., Rig]) -> None:
    rig = make()
    with pytest.raises(NotReady):
        rig.issuer.check_now(rig.token())
    assert await rig.user(rig.token()) == "alice"
    assert rig.issuer.check_now(rig.token(sub="bob")).principal.name == "bob"
    assert rig.tenant.key_requests == 1
    assert rig.reports == []


async def test_prepared_keys_make_no_token_wait(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    assert rig.issuer.check_now(rig.token()).principal.id == f"{rig.tenant.issuer} alice"


@pytest.mark.parametrize("openid", [True, False], ids=["OpenID Connect", "RFC 8414"])
async def test_the_keys_are_found_by_either_metadata(make: Callable[..., Rig], openid: bool) -> None:
    assert await (rig := make(openid=openid)).user(rig.token()) == "alice"


async def test_concurrent_tokens_fetch_the_keys_once(make: Callable[..., Rig]) -> None:
    rig = make()
    users: list[str] = []

    async def check(name: str) -> None:
        users.append(await rig.user(rig.token(sub=name)))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(check, f"user{number}")
    assert len(set(users)) == 20
    assert rig.tenant.key_requests == 1


# --- other keys ---


async def test_a_new_key_is_found_by_the_first_token_that_it_signs(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    new = SigningKey("two")
    rig.tenant.keys.append(new.public())
    rig.later(11)
    with pytest.raises(NotReady):
        rig.issuer.check_now(rig.token(new))
    assert await rig.user(rig.token(new)) == "alice"
    assert await rig.user(rig.token()) == "alice"
    assert rig.tenant.key_requests == 2


async def test_a_withdrawn_key_ends_even_for_tokens_that_were_remembered(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    old, new = rig.token(), SigningKey("two")
    assert rig.issuer.check_now(old).principal.name == "alice"
    rig.tenant.keys[:] = [new.public()]
    rig.later(599)
    assert rig.issuer.check_now(old).principal.name == "alice"
    rig.later(2)
    assert rig.issuer.check_now(old).principal.name == "alice"
    assert await rig.user(rig.token(new)) == "alice"
    with pytest.raises(TokenRejected, match="names a key that the issuer does not have"):
        rig.issuer.check_now(old)


@pytest.mark.slow
async def test_random_keys_cause_one_request_in_ten_seconds(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    mallory = SigningKey("")
    for _ in range(3):
        rig.later(10)
        for number in range(50):
            mallory.kid = f"random{number}"
            with pytest.raises(TokenRejected):
                await rig.issuer.check(rig.token(mallory))
    assert rig.tenant.key_requests == 1 + 3
    assert rig.issuer.check_now(rig.token()).principal.name == "alice"


async def test_clients_that_leave_cause_no_further_request(make: Callable[..., Rig]) -> None:
    rig = make(keys_held=threading.Event())
    mallory = SigningKey("random")

    async def send() -> None:
        with suppress(TokenRejected):
            await rig.issuer.check(rig.token(mallory))

    for _ in range(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            assert rig.tenant.keys_held
            threading.Timer(0.05, rig.tenant.keys_held.set).start()
            tasks.cancel_scope.cancel()
    assert rig.tenant.key_requests == 1
    assert rig.issuer.check_now(rig.token()).principal.name == "alice"


# --- an issuer that is away ---


@pytest.mark.slow
async def test_known_keys_go_on_while_the_issuer_is_away_and_unknown_ones_say_so(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    rig.tenant.keys_status = 503
    rig.later(3600)
    assert await rig.user(rig.token(exp=rig.time + 60)) == "alice"
    rig.later(20)
    with pytest.raises(IssuerUnavailable, match="responds with status 503"):
        await rig.issuer.check(rig.token(SigningKey("two"), exp=rig.time + 60))
    assert len(rig.reports) == 1
    rig.tenant.keys_status = 200
    rig.later(61)
    assert await rig.user(rig.token(exp=rig.time + 60)) == "alice"
    assert rig.reports[1:] == [f"{rig.tenant.issuer}: its keys are known again"]


async def test_keys_are_not_used_for_more_than_a_day_without_their_issuer(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    rig.tenant.keys_status = 503
    rig.later(86_400)
    with pytest.raises(IssuerUnavailable):
        await rig.issuer.check(rig.token(exp=rig.time + 60))


async def test_while_an_attempt_runs_known_keys_are_used_without_waiting(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    rig.later(601)
    rig.tenant.keys_held = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.issuer.check, rig.token())
        await anyio.wait_all_tasks_blocked()
        rig.later(61)
        assert rig.issuer.check_now(rig.token(sub="bob")).principal.name == "bob"
        rig.tenant.keys_held.set()


@pytest.mark.parametrize(
    ("faults", "why"),
    [
        ({"edit_metadata": lambda found: found | {"issuer": "https://evil.example"}}, "is about the issuer"),
        ({"edit_metadata": lambda found: found | {"issuer": found["issuer"] + "/"}}, "is about the issuer"),
        ({"edit_metadata": lambda _: {}}, "has no metadata"),
        ({"edit_metadata": lambda found: found | {"jwks_uri": None}}, "has no metadata"),
        ({"edit_metadata": lambda found: found | {"jwks_uri": "http://mcp.example.com/keys"}}, "does not use https"),
        ({"edit_metadata": lambda found: found | {"jwks_uri": "file:///etc/passwd"}}, "is not a usable address"),
        ({"edit_metadata": lambda found: found | {"jwks_uri": "https://169.254.169.254/"}}, "is in a private network"),
        ({"edit_metadata": lambda found: found | {"status": 500}}, "responds with status 500"),
        ({"keys_status": 404}, "responds with status 404"),
    ],
)
async def test_an_issuer_that_cannot_be_used_is_named_with_its_reason(
    make: Callable[..., Rig], faults: dict[str, Any], why: str
) -> None:
    rig = make(**faults)
    with pytest.raises(IssuerUnavailable, match=why):
        await rig.issuer.check(rig.token())
    assert why in rig.reports[0]


async def test_an_issuer_without_a_usable_key_accepts_nothing(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.tenant.keys[:] = [{"kty": "oct", "k": "c2VjcmV0"}]
    with pytest.raises(IssuerUnavailable, match="has no usable key: key 1 is not used"):
        await rig.issuer.check(rig.token())


@pytest.mark.slow
async def test_a_key_that_is_left_out_is_reported_once(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.tenant.keys.append({"kty": "oct", "k": "c2VjcmV0"})
    for _ in range(3):
        await rig.issuer.prepare()
        rig.later(601)
    assert rig.reports == [f"{rig.tenant.issuer}: key 2 is not used: its type is not one of RSA, EC, OKP"]


@pytest.mark.parametrize("issuer", ["http://idp.example.com", "idp.example.com", "https://user@idp.example.com", ""])
def test_an_issuer_without_https_stops_the_start(make: Callable[..., Rig], issuer: str) -> None:
    rig = make()
    with pytest.raises(UserError, match=r"gateway\.oidc\.issuer"):
        rig.known(replace(rig.settings, issuer=issuer))


def test_without_the_extra_the_start_says_what_to_install(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make()
    monkeypatch.delitem(sys.modules, "hookproxy.authorization.verify_jwt")
    monkeypatch.setitem(sys.modules, "joserfc.errors", None)
    with pytest.raises(UserError, match="joserfc, which is not installed") as raised:
        rig.known()
    assert raised.value.hint.endswith("pip install 'hookproxy[gateway]'")


@pytest.mark.slow
def test_nothing_heavy_is_imported_without_an_issuer() -> None:
    heavy = ("joserfc", "httpx2", "mcp", "pydantic", "cryptography", "jwt")
    code = f"import sys, hookproxy.authorization.authenticate; print([one for one in {heavy} if one in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"[]\n"


async def test_the_issuer_of_a_company_is_trusted_by_the_authority_that_the_settings_name(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path / "server.pem")
    with serving(certificate) as https:
        rig = Rig(https)
        with pytest.raises(IssuerUnavailable, match="certificate verify failed"):
            await rig.issuer.check(rig.token())
        assert rig.tenant.requests == []
        rig.issuer = rig.known(replace(rig.settings, ca_file=certificate))
        assert await rig.user(rig.token()) == "alice"


# --- remembered tokens ---


async def test_a_remembered_token_is_not_verified_again_for_a_minute_and_ends_at_its_time(
    make: Callable[..., Rig],
) -> None:
    rig = make()
    await rig.issuer.prepare()
    token = rig.token(exp=rig.time + 100)
    verified = rig.issuer.check_now(token)
    rig.later(59)
    assert rig.issuer.check_now(token) is verified
    rig.later(2)
    again = rig.issuer.check_now(token)
    assert again is not verified
    rig.later(38)
    assert rig.issuer.check_now(token) is again
    rig.later(1)
    assert rig.issuer.check_now(token) is not again  # within the leeway, it is verified each time
    rig.later(30)
    with pytest.raises(TokenRejected, match="has expired"):
        rig.issuer.check_now(token)


async def test_a_clock_that_is_set_back_makes_no_token_be_remembered_longer(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    token = rig.token()
    verified = rig.issuer.check_now(token)
    rig.time -= 20
    rig.clock += 61
    assert rig.issuer.check_now(token) is not verified


async def test_refused_tokens_are_not_remembered(make: Callable[..., Rig]) -> None:
    rig = make()
    await rig.issuer.prepare()
    mallory = SigningKey("one")
    for _ in range(100):
        with pytest.raises(TokenRejected):
            rig.issuer.check_now(rig.token(mallory))
    assert not rig.issuer._remembered


async def test_what_is_remembered_has_an_end(make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookproxy.authorization.token_issuer._MAX_REMEMBERED", 10)
    rig = make()
    await rig.issuer.prepare()
    tokens = [rig.token(sub=f"user{number}") for number in range(15)]
    for number, token in enumerate(tokens):
        assert rig.issuer.check_now(token).principal.name == f"user{number}"
    assert len(rig.issuer._remembered) == 10
    assert rig.issuer.check_now(tokens[0]).principal.name == "user0"
