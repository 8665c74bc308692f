"""Who is connected, and what each may take."""

from __future__ import annotations

import pytest

from hookproxy.transports.http.peers import Crowd, HeldBytes, network_of


class One:
    """A connection."""

    def __init__(self, crowd: Crowd, *, is_idle: bool = True) -> None:
        self.crowd = crowd
        self.is_idle = is_idle
        self.why = ""

    def shed(self, why: str) -> None:
        self.why = why
        self.crowd.leave(self)  # as a connection that is closed at once


def entered(crowd: Crowd, network: str = "a", now: float = 0.0) -> One:
    one = One(crowd)
    assert crowd.enter(one, network, now)
    return one


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("x", "x"),
    ],
)
def test_ipv6_addresses_of_one_network_are_one_peer(address: str, network: str) -> None:
    assert network_of(address) == network


def test_old_strangers_of_a_network_make_room_for_its_next_and_for_nobody_else() -> None:
    crowd = Crowd(100, 100, 2, 10)
    first, second, other = entered(crowd), entered(crowd), entered(crowd, "b")
    third = entered(crowd, now=5.0)
    assert [one.why != "" for one in (first, second, third, other)] == [True, False, False, False]
    assert len(crowd) == 3


def test_young_strangers_are_spared_up_to_twice_the_limit() -> None:
    crowd = Crowd(100, 100, 2, 10)
    young = [entered(crowd) for _ in range(4)]
    assert not any(one.why for one in young)
    entered(crowd)
    assert [one.why != "" for one in young] == [True, False, False, False]


def test_whoever_is_known_is_not_closed_for_strangers() -> None:
    crowd = Crowd(100, 3, 2, 10)
    known = entered(crowd)
    assert crowd.know(known, "alice")
    for number in range(50):
        entered(crowd, f"network {number}", now=10.0 * number)
    assert known.why == ""
    assert crowd.strangers == 3
    assert len(crowd) == 4


def test_so_many_young_strangers_that_others_wait() -> None:
    crowd = Crowd(100, 2, 10, 10)
    assert not crowd.is_crowded(0.0)
    first, second = entered(crowd), entered(crowd)
    assert crowd.is_crowded(0.5)
    assert not crowd.is_crowded(1.5)  # then the oldest may go
    crowd.know(first, "alice")
    assert not crowd.is_crowded(0.5)
    assert second.why == ""


def test_a_user_with_too_many_connections_loses_the_oldest_idle_one() -> None:
    crowd = Crowd(100, 100, 100, 2)
    busy, idle, last = entered(crowd), entered(crowd), entered(crowd)
    busy.is_idle = False
    assert all(crowd.know(one, "alice") for one in (busy, idle, last))
    assert (busy.why, idle.why != "", last.why) == ("", True, "")
    last.is_idle = False
    another = entered(crowd)
    assert not crowd.know(another, "alice")
    assert crowd.know(another, "bob")
    assert crowd.know(last, "alice")  # it is counted already


def test_a_full_listener_closes_strangers_before_idle_connections() -> None:
    crowd = Crowd(2, 2, 2, 2)
    known, stranger = entered(crowd), entered(crowd)
    crowd.know(known, "alice")
    entered(crowd, "b")
    assert (known.why, stranger.why != "") == ("", True)
    crowd = Crowd(1, 2, 2, 2)
    known = entered(crowd)
    crowd.know(known, "alice")
    known.is_idle = False
    assert not crowd.enter(One(crowd), "b", 0.0)


def test_what_begins_as_one_thing_and_goes_on_as_another_keeps_its_place() -> None:
    crowd = Crowd(100, 100, 1, 10)
    begun = entered(crowd)
    going_on = One(crowd)
    crowd.replace(begun, going_on)
    assert (crowd.is_counted(begun), crowd.is_counted(going_on), len(crowd)) == (False, True, 1)
    entered(crowd, now=5.0)
    assert going_on.why
    crowd.replace(begun, One(crowd))  # it was closed meanwhile
    assert len(crowd) == 1


def test_nothing_is_kept_of_who_has_left() -> None:
    crowd = Crowd(100, 100, 100, 100)
    ones = [entered(crowd, f"network {number}") for number in range(5)]
    for number, one in enumerate(ones):
        crowd.know(one, f"user {number}")
        crowd.leave(one)
        crowd.leave(one)
    assert (crowd._places, crowd._strangers, crowd._of) == ({}, {}, {})


def test_each_payer_has_a_share_that_others_cannot_take() -> None:
    held = HeldBytes(6400, 3000)
    for payer in ("a", "b"):
        held.change(payer, 3000)
        assert held.may_go_on(payer)
    held.change("a", 1)
    assert not held.may_go_on("a")
    held.change("c", 500)
    assert held.is_full
    assert not held.may_go_on("b")
    assert not held.may_go_on("c")
    held.change("c", -400)
    held.change("b", 301)
    assert held.is_full
    assert held.may_go_on("c")  # its hundred bytes are a share of all
    for payer, size in (("a", 3001), ("b", 3301), ("c", 100)):
        held.change(payer, -size)
    assert (held.total, held._of) == (0, {})
