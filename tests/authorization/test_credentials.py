"""The credentials of a run: renewed once, by whichever run, and never lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.authorization import credentials as module
from hookproxy.authorization.credentials import StoredCredentials
from hookproxy.authorization.login_store import LoginStore
from hookproxy.authorization.stored_login import Client, Secrets, StoredLogin
from hookproxy.model.credentials import NotReady
from hookproxy.model.errors import UserError
from tests.support.http_post import post
from tests.support.oauth_server import OAuthServer, Tenant


def credentials(tenant: Tenant, store: LoginStore) -> StoredCredentials:
    return StoredCredentials(tenant.url, store, post, {})


def header(login: StoredLogin) -> str:
    assert login.secrets is not None
    return f"Bearer {login.secrets.access_token}"


async def test_without_a_login_there_is_no_value_and_the_hint_names_the_command(
    oauth: OAuthServer, store: LoginStore
) -> None:
    tenant = oauth.tenant()
    run = credentials(tenant, store)
    assert await run.value() is None
    assert await run.refused(401, "Bearer", None) is None
    assert run.hint == (
        f"{tenant.url} needs a login. Tell the user to run `hookproxy login {tenant.url}`. "
        "After that the same call works, without a restart."
    )
    login = tenant.login()
    await store.write(login, keyring=False)
    assert await run.value() == header(login)
    assert tenant.requests == []


async def test_a_login_that_is_stored_after_the_refusal_is_used_at_once(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    old, new = tenant.login(), tenant.login()
    await store.write(old, keyring=False)
    run = credentials(tenant, store)
    used = await run.value()
    await store.write(new, keyring=False)
    assert await run.refused(401, "", used) == header(new)
    assert tenant.renewals == 0


async def test_a_value_that_needs_no_reading_and_no_renewal_is_there_at_once(
    oauth: OAuthServer, store: LoginStore
) -> None:
    tenant, looks = oauth.tenant(), count()

    def now() -> float:
        return time.time() + next(looks) * 0.01  # the file is looked at every 10 ms

    run = StoredCredentials(tenant.url, store, post, {}, now=now)
    assert run.value_now() is None
    await store.write(login := tenant.login(), keyring=False)
    with pytest.raises(NotReady):
        run.value_now()
    assert await run.value() == header(login)
    assert run.value_now() == header(login)
    await store.write(tenant.login(ends_in=59), keyring=False)
    with pytest.raises(NotReady):
        run.value_now()
    os.remove(store.path(login.server))
    assert run.value_now() is None


async def test_a_token_is_renewed_within_a_minute_of_its_end(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(ends_in=59), keyring=False)
    run = credentials(tenant, store)
    value = await run.value()
    assert value != header(login)
    assert tenant.accepts(value)
    assert await run.value() == value
    assert tenant.renewals == 1
    stored = await store.read(login.server)
    assert stored is not None
    assert header(stored) == value
    assert stored.expires_at is not None
    assert 3590 < stored.expires_at - time.time() <= 3600
    assert tenant.forms[0]["resource"] == tenant.url


async def test_a_token_of_a_few_seconds_is_not_renewed_for_each_call(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant(lifetime=5)
    await store.write(tenant.login(ends_in=0), keyring=False)
    run = credentials(tenant, store)
    values = {await run.value() for _ in range(5)}
    assert len(values) == tenant.renewals == 1


async def test_many_calls_renew_once(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(), keyring=False)
    run = credentials(tenant, store)
    got: list[str | None] = []

    async def call() -> None:
        got.append(await run.refused(401, "", header(login)))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(call)
    assert len(set(got)) == 1
    assert tenant.accepts(got[0])
    assert tenant.renewals == 1


async def test_several_runs_renew_once(oauth: OAuthServer, store: LoginStore, tmp_path: Path) -> None:
    tenant = oauth.tenant()
    await store.write(tenant.login(ends_in=-1), keyring=False)
    runs = [credentials(tenant, LoginStore(str(tmp_path / "logins"), lambda: None)) for _ in range(8)]
    got: list[str | None] = []

    async def call(run: StoredCredentials) -> None:
        got.append(await run.value())

    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(call, run)
    assert len(got) == 8
    assert len(set(got)) == 1
    assert tenant.accepts(got[0])
    assert tenant.renewals == 1


RUN = """
import sys, time, anyio
from hookproxy.authorization.credentials import StoredCredentials
from hookproxy.authorization.login_store import LoginStore
from tests.support.http_post import post

async def main(url, folder, seconds):
    run = StoredCredentials(url, LoginStore(folder, lambda: None), post, {})
    end = time.monotonic() + float(seconds)
    print("ready", flush=True)
    sys.stdin.readline()
    while time.monotonic() < end:
        print(await run.value(), flush=True)
        await anyio.sleep(0.02)

anyio.run(main, *sys.argv[1:])
"""


def values_of_processes(count: int, *arguments: str) -> list[str]:
    """What so many processes have used, which begin at the same time."""
    command, pipe = [sys.executable, "-c", RUN, *arguments], subprocess.PIPE
    runs = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    try:
        for run in runs:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("\n")
            run.stdin.flush()
        printed = [run.communicate(timeout=60)[0] for run in runs]
        assert [run.returncode for run in runs] == [0] * count
        return "".join(printed).split()
    finally:
        for run in runs:
            run.kill()
            run.wait()


@pytest.mark.slow
async def test_many_processes_renew_a_short_token_once_at_each_end(
    oauth: OAuthServer, store: LoginStore, tmp_path: Path
) -> None:
    """Its refresh token is good for one use, so a second renewal with the same one would end the login."""
    tenant = oauth.tenant(lifetime=1)
    await store.write(tenant.login(ends_in=-1), keyring=False)
    run_all = partial(values_of_processes, 8, tenant.url, str(tmp_path / "logins"), "2.5")
    values = set(await anyio.to_thread.run_sync(run_all))
    assert "None" not in values, "a login was asked for"
    tokens = values - {"Bearer"}
    assert 2 <= tenant.renewals == len(tokens), "each renewal gave all of them the same token"


async def test_a_token_that_was_just_issued_is_not_renewed_again(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(tenant.login(), keyring=False)
    run = credentials(tenant, store)
    second = await run.refused(401, "", await run.value())
    assert second
    assert await run.refused(401, "", second) is None
    assert "refuses a token that was just issued" in run.hint
    assert f"hookproxy login {tenant.url} --scope read" in run.hint
    assert tenant.renewals == 1


async def test_a_revoked_refresh_token_asks_for_a_login_and_stays_stored(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(ends_in=-1), keyring=False)
    tenant.refresh.clear()
    run = credentials(tenant, store)
    assert await run.value() == header(login)  # this machine's clock may be wrong: the server decides
    assert await run.refused(401, "", header(login)) is None
    assert "is no longer valid" in run.hint
    assert "invalid_grant: refresh token does not exist" in run.hint
    assert f"hookproxy login {tenant.url}" in run.hint
    assert await store.read(login.server) == login
    assert await run.value() == header(login)
    assert tenant.renewals == 1  # a refused refresh token is not sent again
    await store.write(newer := tenant.login(), keyring=False)
    assert await run.value() == header(newer)


async def test_the_loser_of_a_race_takes_the_winners_token(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(old := tenant.login(ends_in=-1), keyring=False)
    new = tenant.login()
    run = credentials(tenant, store)
    got: list[str | None] = []

    async def call() -> None:
        got.append(await run.value())

    async with anyio.create_task_group() as group, store.lock(old.server):  # another process renews it
        group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        await store.write(new, keyring=False)
    assert got == [header(new)]
    assert tenant.renewals == 0


async def test_a_login_that_is_removed_while_it_waits_is_gone(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(), keyring=False)
    run = credentials(tenant, store)
    used = await run.value()
    got: list[str | None] = []

    async def call() -> None:
        got.append(await run.refused(401, "", used))

    async with anyio.create_task_group() as group, store.lock(login.server):
        group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        await store.delete(login.server)
    assert got == [None]
    assert "needs a login" in run.hint
    assert await run.value() is None
    assert tenant.renewals == 0


@pytest.mark.parametrize("status", [302, 404, 429, 500, 503])
async def test_an_authorization_server_that_fails_is_reported_and_no_login_is_asked_for(
    oauth: OAuthServer, store: LoginStore, status: int
) -> None:
    tenant = oauth.tenant(token_status=status)
    await store.write(login := tenant.login(), keyring=False)
    run = credentials(tenant, store)
    assert await run.refused(401, "", header(login)) is None
    assert f"{tenant.issuer} cannot be used: the token endpoint responds with status {status}" in run.hint
    assert "A login is not needed" in run.hint
    assert "hookproxy login" not in run.hint
    assert await run.refused(401, "", header(login)) is None  # at once: calls do not wait for it one after another
    assert tenant.renewals == 1
    assert await store.read(login.server) == login


async def test_many_calls_ask_a_failing_authorization_server_once(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant(token_status=503)
    await store.write(login := tenant.login(), keyring=False)
    run = credentials(tenant, store)
    got: list[str | None] = []

    async def call() -> None:
        got.append(await run.refused(401, "", header(login)))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(call)
    assert got == [None] * 20
    assert tenant.renewals == 1


async def test_a_dead_network_is_tried_again_after_a_pause(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(), keyring=False)
    clock, dead = [time.time()], [True]

    async def sometimes(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        if dead[0]:
            raise ConnectionRefusedError(111, "Connection refused")
        return await post(url, headers, body)

    run = StoredCredentials(tenant.url, store, sometimes, {}, now=lambda: clock[0])
    assert await run.refused(401, "", header(login)) is None
    assert f"{tenant.issuer} cannot be used: Connection refused. A login is not needed" in run.hint
    dead[0] = False
    assert await run.refused(401, "", header(login)) is None
    clock[0] += 6
    assert tenant.accepts(await run.refused(401, "", header(login)))


async def test_a_silent_authorization_server_ends_the_wait(
    oauth: OAuthServer, store: LoginStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEWAL_TIMEOUT", 0.01)
    tenant = oauth.tenant()
    await store.write(login := tenant.login(), keyring=False)

    async def silent(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        await anyio.sleep_forever()
        raise AssertionError

    run = StoredCredentials(tenant.url, store, silent, {})
    assert await run.refused(401, "", header(login)) is None
    assert f"{tenant.issuer} has not responded within 0 s" in run.hint


async def test_a_cancelled_call_does_not_lose_the_refresh_token(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant(held=(held := threading.Event()))
    await store.write(login := tenant.login(ends_in=-1), keyring=False)
    sent = anyio.Event()

    async def slow(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        sent.set()
        return await post(url, headers, body)

    run = StoredCredentials(tenant.url, store, slow, {})
    async with anyio.create_task_group() as group:
        group.start_soon(run.value)
        await sent.wait()
        group.cancel_scope.cancel()
        held.set()
    stored = await store.read(login.server)
    assert stored is not None
    assert tenant.accepts(header(stored))
    assert tenant.renewals == 1


async def test_a_response_that_would_begin_another_header_is_not_used(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant(edit_token=lambda members: members | {"access_token": "a\r\nX-Injected: 1"})
    await store.write(login := tenant.login(), keyring=False)
    run = credentials(tenant, store)
    assert await run.refused(401, "", header(login)) is None
    assert "no usable token" in run.hint
    assert "Injected" not in run.hint


async def test_an_error_that_repeats_a_secret_is_shown_without_it(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(), keyring=False)
    assert login.secrets is not None
    secret = login.secrets.refresh_token

    async def tells(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        return 400, json.dumps({"error": "invalid_grant", "error_description": f"{secret} is unknown"}).encode()

    run = StoredCredentials(tenant.url, store, tells, {})
    assert await run.refused(401, "", header(login)) is None
    assert "… is unknown" in run.hint
    assert secret not in run.hint

    async def fails(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        raise OSError(f"the proxy has refused {body.decode()}")

    run = StoredCredentials(tenant.url, store, fails, {})
    assert await run.refused(401, "", header(login)) is None
    assert "the proxy has refused" in run.hint
    assert secret not in run.hint


# --- scopes ---


async def test_missing_scopes_are_named_together_with_those_that_are_granted(
    oauth: OAuthServer, store: LoginStore
) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(scope="read list"), keyring=False)
    run = credentials(tenant, store)
    challenge = 'Bearer error="insufficient_scope", scope="write read"'
    assert await run.refused(403, challenge, header(login)) is None
    assert f"hookproxy login {tenant.url} --scope 'read list write'`." in run.hint
    assert tenant.renewals == 0


async def test_scopes_from_a_server_are_quoted_for_the_shell(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(), keyring=False)
    run = credentials(tenant, store)
    await run.refused(403, "Bearer error=insufficient_scope, scope=\"$(id) `id` ';id;'\"", header(login))
    assert "--scope 'read $(id) `id` '\"'\"';id;'\"'\"''" in run.hint


@pytest.mark.parametrize(
    "challenge", ["", 'Bearer error="insufficient_scope", scope="read"', "Bearer error=other, scope=x"]
)
async def test_a_login_that_would_not_help_is_not_asked_for(
    oauth: OAuthServer, store: LoginStore, challenge: str
) -> None:
    tenant = oauth.tenant()
    await store.write(login := tenant.login(), keyring=False)
    run = credentials(tenant, store)
    assert await run.refused(403, challenge, header(login)) is None
    assert "hookproxy login" not in run.hint


# --- machines ---


async def test_a_machine_gets_a_new_token_with_the_secret_that_its_file_has_now(
    oauth: OAuthServer, store: LoginStore, tmp_path: Path
) -> None:
    tenant = oauth.tenant(machine_secret="s3cret")
    file = tmp_path / "secret"
    client = Client("machine", "client_secret_basic", secret_file=str(file))
    login = replace(tenant.login(), client=client, grant="client_credentials", secrets=Secrets("old"))
    await store.write(login, keyring=False)
    run = credentials(tenant, store)
    assert await run.refused(401, "", "Bearer old") is None
    assert f"{file}: cannot be read" in run.hint
    file.write_text("s3cret\n")
    again = credentials(tenant, store)
    assert tenant.accepts(await again.refused(401, "", "Bearer old"))
    assert tenant.forms[0]["scope"] == "read"


async def test_a_secret_in_the_environment_must_be_there(oauth: OAuthServer, store: LoginStore) -> None:
    tenant = oauth.tenant(machine_secret="s3cret")
    client = Client("machine", "client_secret_basic", secret_variable="MACHINE_SECRET")
    login = replace(tenant.login(), client=client, grant="client_credentials", secrets=Secrets("old"))
    await store.write(login, keyring=False)
    run = credentials(tenant, store)
    assert await run.refused(401, "", "Bearer old") is None
    assert "MACHINE_SECRET is not set" in run.hint
    run = StoredCredentials(tenant.url, store, post, {"MACHINE_SECRET": "s3cret"})
    assert tenant.accepts(await run.refused(401, "", "Bearer old"))


# --- the store ---


async def test_a_store_that_others_can_read_is_not_used(oauth: OAuthServer, store: LoginStore, tmp_path: Path) -> None:
    tenant = oauth.tenant()
    await store.write(tenant.login(), keyring=False)
    [path] = (tmp_path / "logins").glob("*.json")
    path.chmod(0o644)
    run = credentials(tenant, store)
    with pytest.raises(ValueError, match=f"^{path}: can be read or written by others"):
        await run.value()
    assert await run.refused(401, "", None) is None
    assert f"cannot be used: {path}: can be read or written by others (chmod go= {path}" in run.hint


async def test_tokens_that_cannot_be_stored_serve_this_run_and_are_reported(
    oauth: OAuthServer, store: LoginStore, tmp_path: Path
) -> None:
    tenant = oauth.tenant()
    await store.write(tenant.login(ends_in=-1), keyring=False)
    reported: list[str] = []

    async def then_full(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        (tmp_path / "logins").chmod(0o777)
        return await post(url, headers, body)

    run = StoredCredentials(tenant.url, store, then_full, {}, report=reported.append)
    value = await run.value()
    assert tenant.accepts(value)
    [line] = reported
    assert "is not stored" in line
    assert await run.value() == value


async def test_one_server_gets_no_token_of_another(oauth: OAuthServer, store: LoginStore) -> None:
    tenant, other = oauth.tenant(), oauth.tenant()
    await store.write(tenant.login(), keyring=False)
    assert await credentials(other, store).value() is None
    for address in (f"{tenant.url}/", f"{tenant.url}?a=1", tenant.url.replace("127.0.0.1", "localhost")):
        assert await StoredCredentials(address, store, post, {}).value() is None


def test_an_address_with_a_password_has_no_credentials(store: LoginStore) -> None:
    with pytest.raises(UserError, match="name or password"):
        StoredCredentials("https://user:secret@mcp.example.com/", store, post, {})
