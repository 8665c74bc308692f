"""The limits of a gateway's file: whom they are about, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.model.errors import ConfigError
from hookproxy.model.principal import Principal

SERVERS = '[servers.a]\ncommand = ["cat"]\n[servers.b]\ncommand = ["cat"]\n'
ALICE, BOB = Principal("uid:1", "alice", ("leads",)), Principal("uid:2", "bob")
GIB = 1 << 30


def load(folder: Path, text: str) -> GatewayConfig:
    (folder / "gateway.toml").write_text(text)
    return load_gateway("gateway.toml", {}, str(folder))


def test_without_a_word_each_user_and_all_together_have_bounds(tmp_path: Path) -> None:
    each, total, *servers = load(tmp_path, SERVERS).bounds
    assert (each.name, each.sessions, each.memory, each.together) == ("gateway.per_user", 32, 2 * GIB, False)
    assert (total.name, total.sessions, total.together) == ("gateway.total", 1024, True)
    assert total.memory is not None
    assert [(bound.name, bound.sessions, bound.together) for bound in servers] == [
        ("servers.a.max_sessions", 1024, True),
        ("servers.b.max_sessions", 1024, True),
    ]


@pytest.mark.parametrize(
    "text", ["max_sessions_per_user = 7\n", "[gateway.per_user]\nsessions = 7\n", "per_user = { sessions = 7 }\n"]
)
def test_the_older_name_of_the_sessions_of_a_user_still_counts(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, f"[gateway]\n{text}{SERVERS}").bounds[0].sessions == 7


def test_limits_become_bounds_and_rate_limits_for_their_users_and_servers(tmp_path: Path) -> None:
    text = """
[[limits]]
users = ["@leads"]
calls = 5
per = "minute"
[[limits]]
servers = ["b"]
sessions = 2
memory = "1 GB"
together = true
[[limits]]
tool = "read"
calls = 9
per = "hour"
servers = ["a"]
[[servers.a.limits]]
users = ["bob"]
calls = 1
bytes = "2KiB"
per = "day"
sessions = 1
"""
    config = load(tmp_path, text + SERVERS)
    found = [
        (one.name, one.sessions, one.memory, sorted(one.servers), one.users, one.together) for one in config.bounds
    ]
    assert found[-2:] == [
        ("limits[1]", 2, 10**9, ["b"], (), True),
        ("servers.a.limits[0]", 1, None, ["a"], ("bob",), False),
    ]
    limits = {
        (name, user.name): [
            (limit.tool, limit.most, limit.by) for limit in config.servers[name].settings_for(user).limits
        ]
        for name in ("a", "b")
        for user in (ALICE, BOB)
    }
    leads, reads, bobs = ("*", 5, "limits[0]"), ("read", 9, "limits[2]"), ("*", 1, "servers.a.limits[0]")
    assert limits == {
        ("a", "alice"): [leads, reads],
        ("a", "bob"): [reads, bobs, ("*", 2048, "servers.a.limits[0]")],
        ("b", "alice"): [leads],
        ("b", "bob"): [],
    }
    assert ("limits[0].users[0]", "@leads") in config.people


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("[[limits]]\n", "limits[0] limits nothing", "memory = "),
        ('[[limits]]\nusers = ["a"]\n', "limits[0] limits nothing", "sessions = 4"),
        ("[[limits]]\ncalls = 5\n", "limits[0].calls needs a period", "per ="),
        ('[[limits]]\nbytes = "5MiB"\n', "limits[0].bytes needs a period", "per ="),
        ('[[limits]]\nbytes = "5MiB"\nper = "hour"\ntool = "x("\n', "limits[0].tool", "glob"),
        ('[[limits]]\nsessions = 5\nper = "hour"\n', "limits[0].per is for limits of calls", "calls = 100"),
        ('[[limits]]\nsessions = 5\ntool = "x"\n', "limits[0].tool is for limits of calls", "calls = 100"),
        (
            '[[limits]]\ncalls = 5\nper = "session"\ntogether = true\n',
            "limits[0].together has no meaning",
            "another per",
        ),
        ('[[limits]]\ncalls = 5\nwithin = "agent"\ntogether = true\n', "limits[0].together has no meaning", "remove"),
        ('[[limits]]\nsessions = 5\nwindow = "5m"\n', "limits[0].window is for limits of calls", "calls = 100"),
        ('[[limits]]\nsessions = 5\nservers = ["bb"]\n', "there is no server bb", "did you mean b"),
        ('[[limits]]\nsessions = 5\nusers = ["@"]\n', "not the name of a user", "without the list"),
        ('[[limits]]\nmemory = "5"\nsession = 5\n', "session", "sessions"),
        ('[[limits]]\nmemory = "five"\n', "limits[0].memory", "1GiB"),
        ('[[limits]]\ncalls = 5\nper = "hour"\ntool = "x("\n', "limits[0].tool", "glob"),
        ('[[servers.a.limits]]\nsessions = 5\nservers = ["b"]\n', "servers.a.limits[0].servers", "remove it"),
        ("[gateway]\nmax_sessions_per_user = 5\nper_user = { sessions = 5 }\n", "two names", "remove max_sessions"),
        ("[gateway.per_user]\nsessions = 0\n", "gateway.per_user.sessions", ""),
        ('[gateway.total]\nmemory = "0MiB"\n', "gateway.total.memory", "1GiB"),
        ("[gateway]\nqueue_seconds = -1\n", "gateway.queue_seconds", ""),
    ],
)
def test_a_limit_that_cannot_be_meant_is_an_error_with_its_place(
    tmp_path: Path, text: str, problem: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text + SERVERS)
    assert problem in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_limit_within_a_session_needs_no_period_and_counts_each_session_alone(tmp_path: Path) -> None:
    text = '[[limits]]\nsame = 3\nwindow = "10m"\n[[limits]]\nseconds = 60\nwithin = "session"\nthen = "comment"\n'
    same, seconds = load(tmp_path, text + SERVERS).servers["a"].settings_for(ALICE).limits
    assert (same.measure, same.period, same.of_session) == ("same", 600, False)
    assert (seconds.measure, seconds.beyond, seconds.of_session) == ("seconds", "comment", True)


@pytest.mark.parametrize("text", ["seconds = 60", 'result_bytes = "1MiB"'])
@pytest.mark.parametrize("table", ["limits", "servers.a.limits"])
def test_what_several_gateways_cannot_count_together_is_an_error_with_a_store(
    tmp_path: Path, text: str, table: str
) -> None:
    store = '[gateway.store]\nurl = "unix:///run/store.sock"\n'
    with pytest.raises(ConfigError, match="counted by each gateway alone") as raised:
        load(tmp_path, f'{store}{SERVERS}[[{table}]]\n{text}\nper = "hour"\n')
    assert f"{table}[0]" in raised.value.message
    load(tmp_path, f'{store}{SERVERS}[[{table}]]\ncalls = 3\nsame = 2\nper = "hour"\n')
