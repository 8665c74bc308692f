"""What gateways share in a real Valkey or Redis server, and what happens without it."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import time
from unittest.mock import ANY

import anyio
import pytest

from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.authorization.token_file import create_token, revoke_tokens
from hookproxy.config.gateway_models import StoreTable
from hookproxy.gateway.metrics import Metrics
from hookproxy.gateway.revocations import Revocations
from hookproxy.gateway.session import SessionIdentity
from hookproxy.gateway.store import Store, StoreApprovals, StoreLimits, shared_of
from hookproxy.model.errors import UserError
from hookproxy.model.limits import Beyond, CountedCall, Limit, Measure, Per, Within
from hookproxy.model.principal import Principal
from hookproxy.policy.rate_limits import LimitReached, refusing
from hookproxy.policy.shared_state import Approved, StoreUnavailable
from hookproxy.policy.similar_calls import similar_calls
from tests.support.free_ports import free_port
from tests.support.oauth_server import self_signed
from tests.support.store_process import PROGRAM, StoreProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="neither valkey-server nor redis-server is installed"),
]

MINUTE = Limit("*", 3, Per.MINUTE, "limits[0]")
SECOND = Limit("read", 1, Per.SECOND, "limits[1]")
SESSION = Limit("*", 2, Per.SESSION, "limits[2]")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "gateway-cluster.md"
ALICE = Principal("uid:1000", "alice")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    process = StoreProcess(tmp_path)
    try:
        yield process
    finally:
        process.kill()


@asynccontextmanager
async def open_store(
    server: StoreProcess,
    reports: list[str] | None = None,
    prefix: str = "test:",
    password: str | None = None,
    table: StoreTable | None = None,
) -> AsyncIterator[Store]:
    table = table or StoreTable(server.url, prefix=prefix, password=password)
    store = Store(table, "/", (reports if reports is not None else []).append, Metrics())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.keep_in_touch)
        await store.look()
        yield store
        tasks.cancel_scope.cancel()


def limits_of(store: Store, user: str = "alice", session: str = "s") -> StoreLimits:
    return StoreLimits(store, "files", user, session, 60)


async def until_back(store: Store) -> None:
    with anyio.fail_after(30):
        while store.failure:
            await store.look()


async def test_a_limit_lets_exactly_so_many_calls_through_at_all_gateways_together(server: StoreProcess) -> None:
    limit, passed = Limit("*", 100, Per.MINUTE, "limits[0]"), 0

    async def call_often(store: Store) -> None:
        nonlocal passed
        for _ in range(40):
            found = await limits_of(store).count([limit])
            passed += found is None

    async with open_store(server) as one, open_store(server) as two, open_store(server) as three:
        async with anyio.create_task_group() as tasks:
            for store in (one, two, three):
                for _ in range(3):
                    tasks.start_soon(call_often, store)
        assert passed == 100
        reached = await limits_of(one).count([limit])
        assert reached is not None
        assert 50 < reached.retry_after <= 60


async def test_a_call_over_one_of_its_limits_counts_for_none(server: StoreProcess) -> None:
    async with open_store(server) as store:
        limits = limits_of(store)
        assert await limits.count([MINUTE, SECOND]) is None
        assert await limits.count([MINUTE, SECOND]) == LimitReached(SECOND, 1)
        assert await limits.count([MINUTE]) is None
        assert await limits.exceeded([MINUTE]) == [], "to look counts nothing"
        assert await limits.count([MINUTE]) is None
        for found in (refusing(await limits.exceeded([SECOND, MINUTE])), await limits.count([SECOND, MINUTE])):
            assert found is not None
            assert found.limit == MINUTE, "the one with the longest wait"


async def test_a_limit_is_a_sliding_window(server: StoreProcess) -> None:
    async with open_store(server) as store:
        limits, limit = limits_of(store), Limit("*", 2, Per.SECOND, "limits[0]")
        assert await limits.count([limit]) is None
        assert await limits.count([limit]) is None
        await anyio.sleep(1.1)  # the store's clock is the one that counts
        assert await limits.count([limit]) is None


async def test_a_limit_of_a_session_counts_that_session(server: StoreProcess) -> None:
    async with open_store(server) as store:
        for _ in range(2):
            assert await limits_of(store).count([SESSION]) is None
        assert await limits_of(store).count([SESSION]) == LimitReached(SESSION, 0)
        assert await limits_of(store, session="other").count([SESSION]) is None
        assert await limits_of(store, user="bob").count([SESSION]) is None


async def test_a_limit_that_stands_twice_counts_once(server: StoreProcess) -> None:
    async with open_store(server) as store:
        for _ in range(3):
            assert await limits_of(store).count([MINUTE, MINUTE]) is None
        assert await limits_of(store).count([MINUTE, MINUTE]) is not None


async def test_other_users_servers_and_prefixes_count_apart(server: StoreProcess) -> None:
    async with open_store(server) as store, open_store(server, prefix="other:") as other:
        for one in (
            limits_of(store),
            limits_of(store, user="bob"),
            StoreLimits(store, "mail", "alice", "s", 60),
            StoreLimits(store, "fil", "esalice", "s", 60),
            limits_of(other),
        ):
            for _ in range(3):
                assert await one.count([MINUTE]) is None
            assert await one.count([MINUTE]) is not None


async def test_what_was_used_once_is_used_at_every_gateway(server: StoreProcess) -> None:
    async with open_store(server) as one, open_store(server) as two:
        won: list[bool] = []

        async def use(store: Store) -> None:
            won.append(await store.use_once("nonce", time()))

        async with anyio.create_task_group() as tasks:
            for store in (one, two, one, two, two):
                tasks.start_soon(use, store)
        assert sorted(won) == [False] * 4 + [True]
        assert await one.use_once("another", time())


async def test_what_was_made_before_the_store_has_lost_its_memory_counts_as_used(server: StoreProcess) -> None:
    async with open_store(server) as store:
        assert await store.use_once("early", time())
        made = time() - 10
        for loss in ("unseen", "seen"):
            if loss == "seen":
                server.kill()
                await store.look()
                server.start()
                await until_back(store)
            else:
                assert server.ask("FLUSHALL") == b"+OK\r\n"
            assert not await store.use_once("early", made)
            assert not await store.use_once("never used", made), "nobody can know it"
            assert await store.use_once("new", time() + 2)


async def test_what_is_allowed_for_a_session_is_allowed_everywhere(server: StoreProcess) -> None:
    similar = similar_calls("run", b'{"command":"git status","cwd":"/x"}', "command")
    entries = [Approved("write"), Approved("read", rule="Read(./**)"), Approved("run", similar=similar)]
    async with open_store(server) as one, open_store(server) as two:
        here, there = (StoreApprovals(store, "files", "alice", "policy", 60) for store in (one, two))
        assert await there.approved() == []
        for entry in entries:
            await here.allow(entry)
        found = await there.approved()
        assert {(one.tool, one.rule, one.similar is not None) for one in found} == {
            ("write", "", False),
            ("read", "Read(./**)", False),
            ("run", "", True),
        }
        again = next(one.similar for one in found if one.similar is not None)
        assert again.include("run", b'{"command":"git status -s","cwd":"/x"}')
        assert not again.include("run", b'{"command":"git status","cwd":"/y"}')
        for other in (("mail", "alice", "policy"), ("files", "bob", "policy"), ("files", "alice", "newer")):
            assert await StoreApprovals(two, *other, 60).approved() == []


async def test_an_entry_of_another_version_allows_nothing(server: StoreProcess) -> None:
    async with open_store(server) as store:
        approvals = StoreApprovals(store, "files", "alice", "policy", 60)
        await approvals.allow(Approved("write"))
        key = store.key("approvals", "files", "alice", "policy")
        for entry in ('{"tool":"run","only_on":"monday"}', "", "null", '{"rule":"x"}', '{"tool":7}'):
            assert server.ask("SADD", key, entry) == b":1\r\n"
        assert [one.tool for one in await approvals.approved()] == ["write"]


async def test_approvals_of_one_session_have_a_bound(server: StoreProcess) -> None:
    async with open_store(server) as store:
        approvals = StoreApprovals(store, "files", "alice", "policy", 60)
        for number in range(1030):
            await approvals.allow(Approved(f"tool{number}"))
        assert len(await approvals.approved()) == 1024


async def test_everything_in_the_store_is_forgotten_some_time_and_names_nobody(server: StoreProcess) -> None:
    async with open_store(server) as store:
        await limits_of(store).count([MINUTE, SESSION])
        await store.use_once("nonce", time())
        await StoreApprovals(store, "files", "alice", "policy", 60).allow(Approved("write"))
        keys = server.ask("KEYS", "*").decode().split("\r\n")[2::2]
        assert len(keys) == 5
        for key in set(keys) - {"test:since"}:
            assert key.startswith("test:")
            assert "alice" not in key
            assert int(server.ask("TTL", key)[1:]) > 0


async def test_only_stateless_requests_share_approvals(server: StoreProcess) -> None:
    async with open_store(server) as store:
        bound = shared_of(store, "files", SessionIdentity("s1", ALICE), 900, "policy")
        free = shared_of(store, "files", SessionIdentity("s2", ALICE, is_stateless=True), 900, "policy")
        assert (bound.limits is None, bound.approvals is None) == (False, True)
        assert (free.limits is None, free.approvals is None) == (False, False)


async def test_a_store_that_is_away_is_reported_once_and_comes_back_by_itself(server: StoreProcess) -> None:
    reports: list[str] = []
    async with open_store(server, reports) as store:
        metrics = store._metrics
        assert metrics.text(Counter(), "", draining=False).endswith("hookproxy_store_failures_total 0\n")
        server.kill()
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="the store cannot be reached"):
                await limits_of(store).count([MINUTE])
            with pytest.raises(StoreUnavailable):
                await store.use_once("nonce", time())
            await store.look()
        found = metrics.text(Counter(), "", draining=False)
        assert "hookproxy_store_up 0\n" in found
        assert "hookproxy_store_failures_total 6\n" in found
        server.start()
        await until_back(store)
        assert await limits_of(store).count([MINUTE]) is None
        assert "hookproxy_store_up 1\n" in metrics.text(Counter(), "", draining=False)
    assert [text.partition(": ")[0] for text in reports] == [
        f"the store at {server.path} responds",
        f"the store at {server.path} cannot be reached",
        f"the store at {server.path} responds",
    ]


async def test_a_gateway_may_start_before_its_store(server: StoreProcess) -> None:
    server.kill()
    reports: list[str] = []
    async with open_store(server, reports) as store:
        assert len(reports) == 1
        with pytest.raises(StoreUnavailable):
            await store.use_once("nonce", time())
        server.start()
        await until_back(store)
        assert await store.use_once("nonce", time())


async def test_a_store_that_does_not_answer_holds_nobody_up_for_long(server: StoreProcess) -> None:
    async with open_store(server) as store:
        with anyio.fail_after(30):
            assert server.ask("CLIENT", "PAUSE", "3000", "ALL") == b"+OK\r\n"
            with pytest.raises(StoreUnavailable, match=r"(?i)time"):
                await store.use_once("nonce", time())
            with anyio.fail_after(1.5), pytest.raises(StoreUnavailable):  # at once, now that it is known
                await store.use_once("nonce", time())
            await until_back(store)


async def test_many_calls_at_a_time_are_all_counted(server: StoreProcess) -> None:
    limit, refused = Limit("*", 1000, Per.MINUTE, "limits[0]"), list[LimitReached]()

    async def call(store: Store) -> None:
        if (reached := await limits_of(store).count([limit])) is not None:
            refused.append(reached)

    async with open_store(server) as store:
        async with anyio.create_task_group() as tasks:
            for _ in range(1500):
                tasks.start_soon(call, store)
        assert len(refused) == 500


async def test_a_call_that_is_cancelled_before_it_was_sent_does_not_count(server: StoreProcess) -> None:
    limit = Limit("*", 1, Per.DAY, "limits[0]")
    async with open_store(server) as store:
        assert server.ask("CLIENT", "PAUSE", "500", "ALL") == b"+OK\r\n"
        async with anyio.create_task_group() as others:
            others.start_soon(store.use_once, "a command that is sent before", time())
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(limits_of(store).count, [limit])
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
        assert await limits_of(store).count([limit]) is None


async def test_a_store_that_may_forget_is_reported(tmp_path: Path) -> None:
    server = StoreProcess(tmp_path, "--maxmemory-policy", "allkeys-lru")
    reports: list[str] = []
    try:
        async with open_store(server, reports):
            assert "its maxmemory-policy is allkeys-lru, and should be noeviction" in reports[-1]
    finally:
        server.kill()


async def test_a_store_that_is_full_refuses(server: StoreProcess) -> None:
    async with open_store(server) as store:
        assert server.ask("CONFIG", "SET", "maxmemory", "1") == b"+OK\r\n"
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            await store.use_once("nonce", time())
        server.ask("CONFIG", "SET", "maxmemory", "0")
        await until_back(store)
        assert await limits_of(store).count([MINUTE]) is None


async def test_a_store_that_is_paused_refuses_and_its_late_answers_are_taken_for_no_others(
    server: StoreProcess,
) -> None:
    one, two = Limit("one", 1, Per.DAY, "limits[0]"), Limit("two", 9, Per.DAY, "limits[1]")
    async with open_store(server) as store:
        assert await limits_of(store).count([one]) is None
        server.pause()
        try:
            async with anyio.create_task_group() as tasks:
                for limit in (one, two, one):
                    tasks.start_soon(refused, limits_of(store), limit)
        finally:
            server.resume()
        await until_back(store)
        for _ in range(3):
            assert await limits_of(store).count([one]) == LimitReached(one, ANY)
            assert await limits_of(store).count([two]) is None
            assert await StoreApprovals(store, "files", "alice", "policy", 60).approved() == []
        assert await store.use_once("nonce", time())
        assert not await store.use_once("nonce", time())


async def refused(limits: StoreLimits, limit: Limit) -> None:
    with pytest.raises(StoreUnavailable):
        await limits.count([limit])


REFUSES_TO_WRITE = {
    "full": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "maxmemory"),
    "a read-only replica": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "replica"),
    "without enough replicas": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
        "replicas",
    ),
}


@pytest.mark.parametrize("state", REFUSES_TO_WRITE)
async def test_a_store_that_cannot_be_written_refuses_limits_and_approvals_and_says_why(
    server: StoreProcess, state: str
) -> None:
    enter, leave, why = REFUSES_TO_WRITE[state]
    reports: list[str] = []
    async with open_store(server, reports) as store:
        await limits_of(store).count([MINUTE])
        assert server.ask(*enter) == b"+OK\r\n"
        approvals = StoreApprovals(store, "files", "alice", "policy", 60)
        for ask in (
            lambda: limits_of(store).count([MINUTE]),
            lambda: store.use_once("nonce", time()),
            lambda: approvals.allow(Approved("write")),
        ):
            store.failure = ""  # as if it were not known yet
            with pytest.raises(StoreUnavailable, match=why):
                await ask()
        await store.look()
        assert store.failure
        assert "hookproxy_store_up 0\n" in store._metrics.text(Counter(), "", draining=False)
        assert server.ask(*leave) == b"+OK\r\n"
        await until_back(store)
        assert await limits_of(store).count([MINUTE]) is None
        assert await approvals.approved() == []
    assert len(reports) == 3
    assert "cannot be reached" in reports[1]
    assert why in reports[1]
    assert "script" not in reports[1], "whose hash says nothing to people"


@pytest.mark.parametrize("state", REFUSES_TO_WRITE)
async def test_a_store_that_cannot_be_written_is_reported_before_a_call_needs_it(
    server: StoreProcess, state: str
) -> None:
    async with open_store(server) as store:
        assert server.ask(*REFUSES_TO_WRITE[state][0]) == b"+OK\r\n"
        await store.look()
        assert REFUSES_TO_WRITE[state][2] in store.failure


async def test_after_a_failover_the_new_primary_is_found_at_the_same_address(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    one, two = map(StoreProcess, folders)
    address = tmp_path / "primary.sock"
    address.symlink_to(one.path)
    store = Store(StoreTable(f"unix://{address}"), "/", print, Metrics())
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.keep_in_touch)
            await store.look()
            assert not store.failure
            assert one.ask("REPLICAOF", "127.0.0.1", "1") == b"+OK\r\n"  # it stays connected, and lives
            (tmp_path / "new").symlink_to(two.path)
            (tmp_path / "new").replace(address)
            await store.look()
            assert "replica" in store.failure
            await until_back(store)
            assert await limits_of(store).count([MINUTE]) is None
            tasks.cancel_scope.cancel()
    finally:
        one.kill()
        two.kill()


async def test_a_store_that_is_restarted_is_used_again(server: StoreProcess) -> None:
    async with open_store(server) as store:
        assert await limits_of(store).count([MINUTE]) is None
        server.kill()
        server.start()
        with pytest.raises(StoreUnavailable):  # what was sent on a connection that has broken is not sent again
            await limits_of(store).count([MINUTE])
        await until_back(store)
        for _ in range(3):
            assert await limits_of(store).count([MINUTE]) is None
        assert await limits_of(store).count([MINUTE]) is not None


async def test_a_store_with_appendonly_remembers_limits_and_used_approvals_after_kill(tmp_path: Path) -> None:
    server = StoreProcess(tmp_path, "--appendonly", "yes")
    limit, made = Limit("*", 2, Per.DAY, "limits[0]"), time() + 2
    try:
        async with open_store(server) as store:
            assert await limits_of(store).count([limit]) is None
            assert await store.use_once("used", made)
            server.kill()
            await store.look()
            server.start()
            await until_back(store)
            assert await limits_of(store).count([limit]) is None
            assert await limits_of(store).count([limit]) is not None
            assert not await store.use_once("used", made)
            assert await store.use_once("asked before, used after", made), "nobody is asked again"
    finally:
        server.kill()


async def test_a_sharded_cluster_is_no_store(tmp_path: Path) -> None:
    ports = ("--port", str(free_port()), "--cluster-port", str(free_port()))
    server = StoreProcess(tmp_path, "--cluster-enabled", "yes", *ports, "--bind", "127.0.0.1")
    reports: list[str] = []
    try:
        async with open_store(server, reports) as store:
            for slots in ((), ("0", "9999"), ("10000", "16383")):  # none, some, and all of them
                if slots:
                    assert server.ask("CLUSTER", "ADDSLOTSRANGE", *slots) == b"+OK\r\n"
                for _ in range(3):
                    await store.look()
                    assert "sharded cluster" in store.failure
                with pytest.raises(StoreUnavailable, match="sharded cluster"):
                    await limits_of(store).count([MINUTE])
        assert len(reports) == 1
    finally:
        server.kill()


async def test_the_documented_user_may_do_all_that_the_gateway_asks_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("sekret-of-the-store\n")
    [line] = re.findall(r"(?m)^user hookproxy .*$", PAGE.read_text())
    (tmp_path / "users.acl").write_text(
        f"user default on nopass ~* &* +@all\n{line}\n".replace("PASSWORD", "sekret-of-the-store")
    )
    server, reports = StoreProcess(tmp_path, "--aclfile", str(tmp_path / "users.acl")), list[str]()
    table = StoreTable(server.url, user="hookproxy", password=str(tmp_path / "password"))
    try:
        async with open_store(server, reports, table=table) as store, open_store(server, reports, table=table) as other:
            assert not store.failure, store.failure
            assert await limits_of(store).count([MINUTE, SECOND, SESSION]) is None
            assert await limits_of(store).exceeded([SESSION]) == []
            assert await store.use_once("nonce", time())
            approvals = StoreApprovals(store, "files", "alice", "policy", 60)
            await approvals.allow(Approved("write"))
            assert len(await approvals.approved()) == 1
            here = Machine(tmp_path / "here", store)
            revoke_tokens(str(here.path), "alice")
            there = Machine(tmp_path / "there", other, here.path)
            for machine in (here, there):
                await machine.revocations.look()
            assert there.tokens.revoked_elsewhere
            for question in (
                ("SET", "1", "NX", "PX", "9"),
                ("GET",),
                ("DEL",),
                ("SADD", "1"),
                ("SREM", "1"),
                ("SMEMBERS",),
            ):
                await store.ask(question[0], f"{store.prefix}question", *question[1:])  # those of consoles
            for words in (
                ("KEYS", "*"),
                ("FLUSHALL",),
                ("CONFIG", "GET", "*"),
                ("CLIENT", "LIST"),
                ("GET", "of-others"),
                ("EVAL", "return redis.call('GET', 'of-others')", 0),
            ):
                with pytest.raises(StoreUnavailable, match=r"permissions|access"):
                    await store.ask(*words)
                await until_back(store)
    finally:
        server.kill()
    assert "sekret" not in str(reports)


async def test_over_tls_the_stores_certificate_must_be_of_the_named_authority(tmp_path: Path) -> None:
    certificate, other = self_signed(tmp_path / "store.pem"), self_signed(tmp_path / "other.pem")
    port = free_port()
    options = ("--tls-port", str(port), "--tls-auth-clients", "no", "--tls-cert-file", certificate)
    try:
        server = StoreProcess(
            tmp_path, "--bind", "127.0.0.1", *options, "--tls-key-file", certificate, "--tls-ca-cert-file", certificate
        )
    except AssertionError:
        if "Failed finding TLS support" in (tmp_path / "store.log").read_text():
            pytest.skip("NOT TESTED: this server was built without TLS")
        raise
    try:
        for authority, why in (
            (certificate, ""),
            (other, "CERTIFICATE_VERIFY_FAILED"),
            (None, "CERTIFICATE_VERIFY_FAILED"),
        ):
            table = StoreTable(f"rediss://127.0.0.1:{port}/0", ca=authority)
            async with open_store(server, table=table) as store:
                assert why in store.failure
                assert bool(store.failure) is bool(why)
                if not why:
                    assert await limits_of(store).count([MINUTE]) is None
        wrong_name = StoreTable(f"rediss://localhost:{port}/0", ca=certificate)
        async with open_store(server, table=wrong_name) as store:
            assert "CERTIFICATE_VERIFY_FAILED" in store.failure
    finally:
        server.kill()


async def test_a_password_comes_from_a_file_and_is_nowhere_reported(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("sekret-of-the-store\n")
    (tmp_path / "wrong").write_text("sekret-of-another\n")
    server, reports = StoreProcess(tmp_path, "--requirepass", "sekret-of-the-store"), list[str]()
    try:
        for name, reached in (("password", True), ("wrong", False), (None, False)):
            file = str(tmp_path / name) if name else None
            async with open_store(server, reports, password=file) as store:
                assert (not store.failure) is reached, store.failure
    finally:
        server.kill()
    assert "sekret" not in str(reports)


# --- revoked tokens ---


class Machine:
    """A gateway's own token file, and what it knows of the store."""

    def __init__(self, folder: Path, store: Store, copy_of: Path | None = None) -> None:
        folder.mkdir(mode=0o700)
        self.path = folder / "tokens"
        if copy_of is not None:
            shutil.copy(copy_of, self.path)
        else:
            self.token = create_token(str(self.path), "alice", [], None, "", 0)[0].encode()
        self.tokens = BearerTokens(str(self.path), print)
        self.revocations = Revocations(store, self.tokens)


async def test_a_token_that_is_revoked_at_one_gateway_is_refused_at_all(server: StoreProcess, tmp_path: Path) -> None:
    async with open_store(server) as one, open_store(server) as two:
        here = Machine(tmp_path / "here", one)
        there = Machine(tmp_path / "there", two, here.path)
        other = create_token(str(there.path), "bob", [], None, "", 0)[0].encode()
        for machine in (here, there):
            await machine.revocations.look()
        assert there.tokens.find(here.token) is not None
        revoke_tokens(str(here.path), "alice")
        for machine in (here, there):
            await machine.revocations.look()
        assert there.tokens.find(here.token) is None
        assert there.tokens.find(other) is not None
        late = Machine(tmp_path / "late", two, there.path)
        await late.revocations.look()
        assert late.tokens.find(here.token) is None, "a gateway that starts later learns it, too"


async def test_a_revocation_is_published_again_when_the_store_has_lost_it_and_stays_in_force_meanwhile(
    server: StoreProcess, tmp_path: Path
) -> None:
    async with open_store(server) as one, open_store(server) as two:
        here = Machine(tmp_path / "here", one)
        there = Machine(tmp_path / "there", two, here.path)
        revoke_tokens(str(here.path), "alice")
        for machine in (here, there):
            await machine.revocations.look()
        server.kill()
        for machine, store in ((here, one), (there, two)):
            await store.look()
            await machine.revocations.look()
            assert machine.tokens.find(here.token) is None
        server.start()
        await until_back(one)
        await until_back(two)
        for machine in (there, here):
            await machine.revocations.look()
        assert there.tokens.find(here.token) is None
        new = Machine(tmp_path / "new", two, there.path)
        await new.revocations.look()
        assert new.tokens.find(here.token) is None, "the store has it again"


@pytest.mark.parametrize("url", ["redis://h/0?max_connections=x", "redis://h/0?timeout=x"])
def test_an_address_that_cannot_be_used_is_an_error(url: str) -> None:
    with pytest.raises(UserError, match=r"gateway\.store\.url cannot be used"):
        Store(StoreTable(url), "/", print, Metrics())


SAME = Limit("*", 2, Per.SESSION, "limits[3]", measure=Measure.SAME, window=60.0)


async def test_the_same_call_is_counted_at_all_gateways_together(server: StoreProcess) -> None:
    async with open_store(server) as store, open_store(server) as other:
        repeated, another = CountedCall("s/read", b'{"a":1}'), CountedCall("s/read", b'{"a":2}')
        for one in (store, other):
            assert await limits_of(one).count([SAME], repeated) is None
        for one in (store, other):
            reached = await limits_of(one).count([SAME], repeated)
            assert reached is not None
            assert 58 <= reached.retry_after <= 60
            assert await limits_of(one).count([SAME], another) is None


async def test_a_limit_that_asks_or_comments_counts_on_beyond_itself(server: StoreProcess) -> None:
    asks = Limit("*", 1, Per.DAY, "limits[4]", beyond=Beyond.ASK)
    comments = Limit("x*", 1, Per.DAY, "limits[5]", beyond=Beyond.COMMENT)
    async with open_store(server) as store:
        limits = limits_of(store)
        assert await limits.count([asks, comments]) is None
        assert [reached.limit for reached in await limits.exceeded([asks, comments])] == [asks, comments]
        refused = await limits.count([asks, comments])
        assert refused is not None
        assert refused.limit == asks, "nobody was asked"
        assert await limits.count([asks, comments], approved=[asks.key]) is None
        assert await limits.count([comments]) is None
        refused = await limits.count([asks, MINUTE])
        assert refused is not None
        assert await limits.exceeded([MINUTE]) == [], "a call that is not approved counts nowhere"


async def test_a_limit_within_a_session_counts_that_session_alone(server: StoreProcess) -> None:
    limit = Limit("*", 1, Per.HOUR, "limits[6]", within=Within.SESSION)
    async with open_store(server) as store:
        for session in ("a", "b"):
            assert await limits_of(store, session=session).count([limit]) is None
            assert await limits_of(store, session=session).count([limit]) is not None
