"""Who an account is: what the directory says, never what a process says; and what holds while it says nothing."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Callable, Sequence

import anyio
import pytest

from hookproxy.model.errors import UserError
from hookproxy.model.principal import Principal
from hookproxy.transports import accounts
from hookproxy.transports.accounts import Accounts, read_account

TIMEOUT = 30.0  # seconds until a test gives up on what should come at once: other tests run beside it


class Directory:
    """A directory of accounts, its clock, and what was reported."""

    def __init__(self, *rule_groups: str) -> None:
        self.groups: Sequence[str] = ("staff",)
        self.failure = ""
        self.looked_up = 0
        self.now = 0.0
        self.reports: list[str] = []
        self.accounts = Accounts(self.reports.append, lambda: rule_groups, read=self.read, clock=lambda: self.now)

    def read(self, uid: int) -> Principal:
        self.looked_up += 1
        if self.failure:
            raise OSError(5, self.failure)
        return Principal(f"uid:{uid}", "anna", tuple(self.groups))

    async def anna(self) -> Principal:
        return await self.accounts.principal(1000)


async def test_an_answer_counts_for_two_seconds() -> None:
    directory = Directory()
    assert (await directory.anna()).groups == ("staff",)
    directory.groups = ("staff", "interns")
    assert (await directory.anna()).groups == ("staff",)
    directory.now = 2.0
    assert (await directory.anna()).groups == ("staff", "interns")
    assert directory.looked_up == 2


async def test_connections_at_the_same_time_need_one_look_up() -> None:
    directory = Directory()
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(directory.anna)
    assert directory.looked_up == 1


async def test_while_nothing_is_answered_the_last_answer_counts_for_a_minute_and_then_rules_that_deny() -> None:
    directory = Directory()
    await directory.anna()
    directory.failure = "broken"
    directory.now = 59.0
    assert not (await directory.anna()).in_doubt
    directory.now = 60.0
    user = await directory.anna()
    assert user.in_doubt
    assert user.may_be_among(["@interns"])
    assert not user.is_among(["@staff"])
    directory.failure = ""
    directory.now = 61.0
    assert not (await directory.anna()).in_doubt
    [away, back] = directory.reports
    assert away.startswith("accounts cannot be looked up: ")
    assert "broken" in away
    assert back == "accounts can be looked up again"


async def test_who_was_never_looked_up_is_not_let_in() -> None:
    directory = Directory()
    directory.failure = "broken"
    with pytest.raises(UserError, match=r"user 1000 cannot be looked up now: .*broken"):
        await directory.anna()


async def test_a_look_up_that_hangs_is_given_up_and_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_PATIENCE_SECONDS", 0.01)
    goes_on, started = threading.Event(), 0

    def hang(uid: int) -> Principal:
        nonlocal started
        started += 1
        goes_on.wait(TIMEOUT)
        return Principal(f"uid:{uid}", "anna")

    hanging = Accounts(lambda _text: None, read=hang)
    for _ in range(3):
        with pytest.raises(UserError, match="no answer within"):
            await hanging.principal(1000)
    assert started == 1
    monkeypatch.undo()
    goes_on.set()
    with anyio.fail_after(TIMEOUT):
        assert (await hanging.principal(1000)).name == "anna"  # by the same look-up
    assert started == 1


async def test_so_many_hanging_look_ups_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(accounts, "_MOST_LOOK_UPS", 2)
    goes_on = threading.Event()

    def hang(_uid: int) -> Principal:
        goes_on.wait(TIMEOUT)
        raise OSError

    hanging = Accounts(lambda _text: None, read=hang)
    try:
        for uid in (1, 2):
            with pytest.raises(UserError, match="no answer within"):
                await hanging.principal(uid)
        with pytest.raises(UserError, match="too many look-ups"):
            await hanging.principal(3)
    finally:
        goes_on.set()


async def test_a_group_of_a_rule_that_disappears_means_that_the_directory_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = {"interns"}
    monkeypatch.setattr(accounts, "is_local_group", there.__contains__)
    directory = Directory("interns", "never-there")
    directory.groups = ("staff", "interns")
    await directory.anna()
    there.clear()
    directory.groups, directory.now = ("staff",), 5.0  # as a directory answers that has only its local part
    assert (await directory.anna()).groups == ("staff", "interns")
    directory.now = 65.0
    user = await directory.anna()
    assert user == Principal("uid:1000", "anna", ("staff",), doubted=("interns",))
    assert user.may_be_among(["@interns"])
    assert user.is_among(["@staff"])
    assert (await directory.accounts.principal(7)).doubted  # who is new is let in, with the same doubt
    directory.accounts.forget()  # a reload: it is gone
    directory.now = 70.0
    assert (await directory.anna()) == Principal("uid:1000", "anna", ("staff",))


async def test_who_comes_from_an_unknown_user_namespace_is_not_taken_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounts, "_foreign_uid", lambda: 65534)
    with pytest.raises(UserError, match="another user namespace"):
        await Accounts(lambda _text: None).principal(65534)


def test_an_account_is_looked_up_with_all_its_groups() -> None:
    entry = pwd.getpwuid(os.getuid())
    found = read_account(os.getuid())
    assert (found.id, found.name, found.in_doubt) == (f"uid:{os.getuid()}", entry.pw_name, False)
    assert len(found.groups) == len(set(os.getgrouplist(entry.pw_name, entry.pw_gid)))


def test_an_account_without_an_entry_is_its_number_and_in_doubt() -> None:
    found = read_account(4_000_000)
    assert found == Principal("uid:4000000", "4000000", (), in_doubt=True)


def test_who_is_in_doubt_is_among_all_whom_a_rule_may_mean_but_other_numbers() -> None:
    number = Principal("uid:7", "7", in_doubt=True)
    assert number.is_among(["7"])
    assert number.may_be_among(["anna"])
    assert number.may_be_among(["@staff"])
    assert not number.may_be_among(["8"])
    named = Principal("uid:7", "bob", ("staff",), in_doubt=True)
    assert named.may_be_among(["@interns"])
    assert not named.may_be_among(["anna", "8"])
    assert not named.is_among(["@staff"])
    partly = Principal("uid:7", "bob", ("staff", "leads"), doubted=("interns", "leads"))
    assert partly.may_be_among(["@interns"])
    assert partly.is_among(["@staff"])
    assert not partly.is_among(["@leads"])
    assert not partly.may_be_among(["@others", "anna"])
    certain = Principal("uid:7", "bob", ("staff",))
    assert not certain.may_be_among(["@interns", "anna"])
    assert certain.is_among(["@staff"])


@pytest.mark.parametrize(("name", "shown"), [("domain users", True), ("a,b", False), ("a\nb", False)])
def test_a_group_that_hooks_could_take_for_several_is_its_number(
    monkeypatch: pytest.MonkeyPatch, name: str, shown: bool
) -> None:
    group: Callable[[int], object] = lambda _gid: type("Group", (), {"gr_name": name})  # noqa: E731
    monkeypatch.setattr("grp.getgrgid", group)
    assert accounts._group_name(77) == (name if shown else "77")
