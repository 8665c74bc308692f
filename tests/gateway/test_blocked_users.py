"""Who is blocked stays blocked: by each name and token, over restarts, whatever becomes of the store and the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypeVar, cast

import msgspec
import pytest

from hookproxy.gateway.blocked_users import BlockedUsers, Decision
from hookproxy.gateway.sealed_values import SealedValues
from hookproxy.gateway.store import Store
from hookproxy.model.errors import ConfigError
from hookproxy.model.principal import Principal
from hookproxy.policy.shared_state import StoreUnavailable
from hookproxy.protocol.request_state import SealKey

ANNA = Principal("uid:1001", "anna", ("staff",))
T = TypeVar("T")
KEY = SealKey(os.urandom(32))


class Memory:
    """A store in memory: as much of Store as is asked for."""

    def __init__(self) -> None:
        self.prefix = "test:"
        self.failure = ""
        self.members: set[bytes] = set()

    def checked(self, type_: type[T], response: object) -> T:
        return msgspec.convert(response, type_)

    async def ask(self, command: str, _key: str, *members: bytes) -> object:
        if self.failure:
            raise StoreUnavailable(self.failure)
        if command == "SADD":
            self.members |= set(members)
        elif command == "SREM":
            self.members -= set(members)
        return set(self.members)


def blocked_users(path: Path | str = "", store: Memory | None = None, *keys: SealKey) -> BlockedUsers:
    reports: list[str] = []
    blocked = BlockedUsers(str(path), cast("Store | None", store), SealedValues(lambda: keys), reports.append)
    blocked.reports = reports  # type: ignore[attr-defined]
    return blocked


async def test_a_user_is_blocked_by_name_and_by_each_id_that_was_known(tmp_path: Path) -> None:
    blocked = blocked_users(tmp_path / "users.json")
    assert not blocked.blocks(ANNA)
    assert await blocked.decide("anna", True, "olga", [ANNA.id, "https://issuer 77"]) == []
    others = [Principal("token:anna", "anna"), Principal("https://issuer 77", "another name"), ANNA]
    assert all(map(blocked.blocks, others))
    assert not blocked.blocks(Principal("uid:7", "annabel"))
    await blocked.decide("anna", False, "olga")
    assert not any(map(blocked.blocks, others))


async def test_a_block_survives_a_restart_and_its_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "users.json"
    await blocked_users(path).decide("anna", True, "olga")
    assert blocked_users(path).blocks(ANNA)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_without_a_place_it_is_said_that_a_restart_forgets(tmp_path: Path) -> None:
    nowhere = blocked_users()
    [problem] = await nowhere.decide("anna", True, "olga")
    assert "until this gateway ends" in problem
    assert nowhere.blocks(ANNA)
    (tmp_path / "file").touch()
    [problem] = await blocked_users(tmp_path / "file" / "users.json").decide("anna", True, "olga")
    assert "cannot be written" in problem


@pytest.mark.parametrize("text", ["{", "[]", '{"v":2,"users":[]}', '{"v":1,"users":[{"user":7}]}', "\udcff"])
def test_a_file_that_cannot_be_used_stops_the_start(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigError) as caught:
        blocked_users(path)
    assert "remove it" in caught.value.hint


def test_a_file_that_others_can_write_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    path.write_text('{"v":1,"users":[]}')
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="writable by others"):
        blocked_users(path)


async def test_a_folder_that_others_can_write_keeps_nothing_and_that_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    blocked = blocked_users(folder / "users.json")
    [report] = blocked.reports  # type: ignore[attr-defined]
    assert "not kept over a restart" in report
    assert await blocked.decide("anna", True, "olga")
    assert blocked.blocks(ANNA)
    assert not list(folder.iterdir())
    (folder / "users.json").write_text('{"v":1,"users":[]}')
    with pytest.raises(ConfigError, match="writable by others"):
        blocked_users(folder / "users.json")


async def test_gateways_with_one_folder_learn_from_the_file_and_keep_what_they_know(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    one, other = blocked_users(path), blocked_users(path)
    ended: list[bool] = []
    other.on_change = lambda: ended.append(True)
    await one.decide("anna", True, "olga")
    await other.look()
    assert other.blocks(ANNA)
    assert ended
    path.write_text("nonsense")
    await other.look()
    await other.look()
    assert other.blocks(ANNA)
    assert len(other.reports) == 1  # type: ignore[attr-defined]
    path.unlink()
    await other.look()
    assert other.blocks(ANNA)


async def test_gateways_with_one_folder_that_block_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    here, there = blocked_users(path), blocked_users(path)
    await here.decide("bob", True, "olga")
    await there.decide("carol", True, "olga")  # it has not looked at the file since
    assert {one.user for one in there.blocked} == {"bob", "carol"}
    path.write_text(json.dumps({"v": 1, "users": [{"user": "x", "blocked": True, "at": 1.0, "by": "y"}]}))  # a race
    await there.look()
    assert {one.user for one in blocked_users(path).blocked} == {"bob", "carol", "x"}


@pytest.mark.parametrize("keys", [(), (KEY,)], ids=["plain", "sealed"])
async def test_gateways_with_one_store_block_and_allow_together(keys: tuple[SealKey, ...]) -> None:
    store = Memory()
    one, other = blocked_users("", store, *keys), blocked_users("", store, *keys)
    await one.decide("anna", True, "olga")
    await other.look()
    assert other.blocks(ANNA)
    await other.decide("anna", False, "lena")
    await one.look()
    assert not one.blocks(ANNA)
    assert len(store.members) == 1
    assert (b"anna" in next(iter(store.members))) is not bool(keys)


async def test_a_store_that_has_lost_its_memory_is_told_again() -> None:
    store = Memory()
    blocked = blocked_users("", store, KEY)
    await blocked.decide("anna", True, "olga")
    store.members.clear()
    await blocked.look()
    assert blocked.blocks(ANNA)
    assert len(store.members) == 1


async def test_who_writes_the_store_without_the_key_blocks_and_allows_nobody() -> None:
    store = Memory()
    blocked = blocked_users("", store, KEY)
    await blocked.decide("anna", True, "olga")
    for forged in ({"user": "anna", "blocked": False}, {"user": "lena", "blocked": True}):
        store.members.add(json.dumps({**forged, "at": 9e9, "by": "a forger"}).encode())
    store.members.add(b"nonsense")
    await blocked.look()
    assert blocked.blocks(ANNA)
    assert not blocked.blocks(Principal("uid:2", "lena"))


async def test_while_the_store_is_away_a_block_holds_here_and_it_is_said() -> None:
    store = Memory()
    store.failure = "gone"
    blocked = blocked_users("", store)
    assert any("other gateways learn it" in text for text in await blocked.decide("anna", True, "olga"))
    assert blocked.blocks(ANNA)
    store.failure = ""
    await blocked.look()
    assert store.members


async def test_a_clock_that_is_behind_does_not_keep_a_later_decision_from_counting() -> None:
    store = Memory()
    ahead, behind = blocked_users("", store), blocked_users("", store)
    ahead._learn([Decision("anna", True, 9e12, "olga")])
    await ahead.look()
    await behind.look()
    await behind.decide("anna", False, "lena")
    await ahead.look()
    assert not ahead.blocks(ANNA)


def test_of_two_decisions_of_the_same_time_the_one_that_blocks_counts() -> None:
    block, allow = Decision("anna", True, 5.0, "a"), Decision("anna", False, 5.0, "b")
    assert block.replaces(allow)
    assert not allow.replaces(block)
