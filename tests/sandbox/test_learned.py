"""What is proposed for a server that was watched. The traces were recorded of the published servers at work."""

from __future__ import annotations

import itertools
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec.json
import pytest

from hookproxy.processes.watched_calls import Access
from hookproxy.sandbox.folders import SYSTEM_FILES
from hookproxy.sandbox.learned import Around, Proposal, Watched, propose, variables_named
from hookproxy.sandbox.learned_text import options_of, toml_of

TRACES = Path(__file__).with_name("traces")
HOME, PROJECT, INSTALLED = "/home/anna", "/home/anna/projects/site", "/opt/servers"
SYSTEM = ("/usr", "/lib", *SYSTEM_FILES)
STATE = f"{HOME}/.local/state/hookproxy"


def around(*named: str, home: str = HOME) -> Around:
    return Around((home,), (*SYSTEM, INSTALLED), {STATE: "a part of hookproxy"}, named, ("/tmp", "/var/tmp"))


def recorded(name: str) -> Watched:
    lines = (TRACES / f"{name}.jsonl").read_bytes().splitlines()
    return Watched(dict.fromkeys((msgspec.json.decode(line, type=Access) for line in lines), 1), 110 * 1024**2, 11)


def used(*accesses: tuple[Any, str]) -> Watched:
    return Watched({Access(what, path.rstrip("/") or "/", "node"): 1 for what, path in accesses})


def proposed(*accesses: tuple[Any, str], named: tuple[str, ...] = ()) -> Proposal:
    return propose(used(*accesses), around(*named))


def table(proposal: Proposal, name: str = "x") -> Mapping[str, Any]:
    found: Mapping[str, Any] = tomllib.loads(toml_of(proposal, name, "seen"))["servers"][name]["sandbox"]
    return found


def test_git_reads_its_repository_and_writes_what_belongs_to_git() -> None:
    proposal = propose(recorded("git"), around())
    assert list(proposal.read) == [PROJECT]
    assert list(proposal.write) == [f"{PROJECT}/.git"]
    assert not proposal.network
    assert list(proposal.left_out) == [f"{HOME}/.gitconfig"]


def test_the_folder_that_the_filesystem_server_is_given_is_taken_as_a_whole() -> None:
    proposal = propose(recorded("filesystem"), around(PROJECT))
    assert (list(proposal.read), list(proposal.write), proposal.network) == ([], [PROJECT], False)
    assert "its command line names it" in proposal.write[PROJECT]


def test_what_a_shell_reads_at_home_is_left_out_and_its_network_is_named() -> None:
    proposal = propose(recorded("desktop-commander"), around())
    assert list(proposal.write) == [f"{PROJECT}/notes"]
    assert proposal.network
    assert "192.0.2.53:53" in proposal.network_why
    assert {f"{HOME}/.bashrc", f"{HOME}/.claude-server-commander", "/", "/mnt", "/home"} <= set(proposal.left_out)
    assert not {HOME, "/"} & {*proposal.read, *proposal.write}


def test_limits_are_well_above_what_was_used() -> None:
    proposal = propose(Watched({}, memory=700 * 1024**2, tasks=40), around())
    assert (proposal.memory, proposal.processes) == (3 * 512 * 1024**2, 256)
    assert table(proposal)["memory"] == "1536MiB"


def test_a_server_that_used_nothing_still_has_limits_that_it_can_start_with() -> None:
    assert table(propose(Watched({}), around())) == {"network": "none", "memory": "512MiB", "processes": 64}


# --- files become folders ---


def test_one_file_is_an_entry_by_itself_and_two_in_one_folder_are_the_folder() -> None:
    assert list(proposed(("read", "/srv/a/x")).read) == ["/srv/a/x"]
    assert list(proposed(("read", "/srv/a/x"), ("read", "/srv/a/y")).read) == ["/srv/a"]


def test_three_folders_beside_each_other_become_the_one_around_them_but_never_one_at_the_root() -> None:
    wide = [("list", f"/srv/data/{name}/") for name in "abc"]
    assert list(proposed(*wide).read) == ["/srv/data"]
    top = [("list", f"/data/{name}/") for name in "abc"]
    assert list(proposed(*top).read) == ["/data/a", "/data/b", "/data/c"]


def test_what_is_made_or_removed_needs_its_folder_and_what_is_changed_in_place_only_the_file() -> None:
    assert list(proposed(("make", "/srv/a/x")).write) == ["/srv/a"]
    assert list(proposed(("remove", "/srv/a/x")).write) == ["/srv/a"]
    assert list(proposed(("write", "/srv/a/x")).write) == ["/srv/a/x"]


def test_what_may_be_written_is_not_listed_as_read_again() -> None:
    proposal = proposed(("make", "/srv/a/x"), ("read", "/srv/a/b/c"))
    assert (list(proposal.read), list(proposal.write)) == ([], ["/srv/a"])


def test_files_for_a_while_are_its_own_and_others_in_the_same_place_are_not() -> None:
    own = ("make", "/tmp/x1/"), ("make", "/tmp/x1/file"), ("read", "/tmp/x1/file"), ("list", "/tmp/")
    others = ("read", "/tmp/given/a"), ("make", "/tmp/given/b")
    proposal = proposed(*own, *others)
    assert (list(proposal.read), list(proposal.write), proposal.left_out) == ([], ["/tmp/given"], {})


def test_bytecode_and_what_every_server_has_is_not_mentioned() -> None:
    proposal = proposed(
        *(("read", f"{INSTALLED}/lib/x.py"), ("make", f"{INSTALLED}/lib/__pycache__/x.pyc"), ("run", "/usr/bin/git")),
        *(("read", "/proc/1/environ"), ("write", "/dev/null"), ("read", "/etc/passwd")),
    )
    assert (proposal.read, proposal.write, proposal.left_out) == ({}, {}, {})


# --- what is never proposed ---


@pytest.mark.parametrize(
    ("what", "path"),
    [
        *(("list", "/"), ("list", f"{HOME}/"), ("list", "/home/"), ("list", "/var/"), ("list", "/etc/")),
        *(("make", f"{HOME}/x"), ("make", "/x"), ("remove", "/srv/x"), ("make", "/etc/cron.d/x")),
        *(("read", f"{HOME}/.ssh/id_ed25519"), ("read", "/etc/shadow"), ("read", "/srv/app/.aws/credentials")),
        *(("read", "/etc/ssh/ssh_host_ed25519_key"), ("write", "/usr/bin/git"), ("make", "/usr/lib/x.so")),
        *(("read", f"{STATE}/audit.jsonl"), ("make", f"{STATE}/x"), ("list", f"{STATE}/")),
    ],
)
def test_what_belongs_to_many_and_what_is_secret_is_listed_with_a_warning(what: str, path: str) -> None:
    proposal = proposed((what, path))
    assert (proposal.read, proposal.write) == ({}, {})
    assert [why for why in proposal.left_out.values() if "WARNING" in why]


def test_a_folder_that_contains_what_no_server_may_see_is_not_proposed() -> None:
    placed = Around((HOME,), SYSTEM, {"/srv/data/gateway/tokens": "the gateway's tokens"}, ("/srv/data",))
    many = used(*(("read", f"/srv/data/{name}/{file}") for name in "abc" for file in "xy"))
    proposal = propose(many, placed)
    assert list(proposal.read) == ["/srv/data/a", "/srv/data/b", "/srv/data/c"]
    assert "WARNING" in proposal.left_out["/srv/data"]


def test_a_named_home_or_root_folder_is_not_proposed_and_what_was_used_in_it_is() -> None:
    for named in ("/", HOME, "/home"):
        proposal = proposed(("read", f"{HOME}/notes/a"), named=(named,))
        assert (list(proposal.read), list(proposal.left_out)) == ([f"{HOME}/notes/a"], [named])


def test_many_hidden_files_at_home_are_one_line() -> None:
    proposal = proposed(*(("read", f"{HOME}/.cache/{number}") for number in range(9)))
    assert list(proposal.left_out) == [f"{HOME}/.cache"]


def test_sockets_of_other_programs_are_reported_and_that_of_docker_is_warned_of() -> None:
    proposal = proposed(("connect", "/run/user/1000/bus"), ("connect", "/run/docker.sock"))
    assert not proposal.network
    assert "WARNING" not in proposal.left_out["/run/user/1000/bus"]
    assert "WARNING" in proposal.left_out["/run/docker.sock"]


def test_calls_that_could_not_be_seen_are_reported() -> None:
    assert list(propose(Watched({Access("unseen", "", "ssh-agent"): 3}), around()).left_out) == ["ssh-agent"]


# --- the network and variables ---


@pytest.mark.parametrize("access", [("connect", "192.0.2.1:443"), ("listen", "127.0.0.1:80"), ("internet", "")])
def test_whoever_uses_the_network_gets_it(access: tuple[str, str]) -> None:
    assert table(propose(Watched({Access(access[0], access[1], "node"): 1}), around()))["network"] == "all"  # type: ignore[arg-type]


def test_a_variable_is_proposed_if_the_program_names_it_as_a_word() -> None:
    files = {"/opt/x.js": b"process.env.API_TOKEN; MY_REGION_NAME", "/opt/y.js": b"'API_TOKEN' REGION"}
    found = variables_named(["API_TOKEN", "REGION", "API", "NAME"], files)
    assert found == {"API_TOKEN": "/opt/x.js", "REGION": "/opt/y.js"}
    text = toml_of(propose(Watched({}, variables=found), around()), "x", "seen")
    assert tomllib.loads(text)["servers"]["x"]["sandbox"]["env"] == ["API_TOKEN", "REGION"]
    assert "credentials" in text


# --- the text ---


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "a\nwrite = ['/']", "a\u2028b", "a\x7fb", "a\x1b[2Jb", "a\U0001f600b", "a'''b", 'a"""b']
)
def test_no_name_of_a_file_a_program_or_a_server_gets_out_of_its_place(name: str) -> None:
    accesses = {Access("read", f"/srv/{name}", name): 1, Access("connect", name, name): 1, Access("list", "/", name): 1}
    proposal = propose(Watched(accesses, variables={"X": f"/opt/{name}"}), around())
    text = toml_of(proposal, name, name)
    read = tomllib.loads(text)["servers"][name]["sandbox"]
    assert (read["read"], sorted(read)) == ([f"/srv/{name}"], ["env", "memory", "network", "processes", "read"])
    assert all(character.isprintable() for line in text.split("\n") for character in line)


def test_a_name_that_is_not_utf_8_cannot_be_an_entry() -> None:
    proposal = proposed(("read", "/srv/\udcff"))
    assert (proposal.read, list(proposal.left_out)) == ({}, ["/srv/\udcff"])
    toml_of(proposal, "x", "seen").encode()


def test_each_entry_has_its_reason() -> None:
    text = toml_of(proposed(("make", "/srv/a/x"), ("read", "/srv/b/y")), "x", "seen")
    lines = text.splitlines()
    entries = [
        (line, before)
        for before, line in itertools.pairwise(lines)
        if not line.startswith(("#", "[", "]", "read", "write"))
    ]
    assert len(entries) == 5
    assert all("  # " in line or before.startswith("# ") for line, before in entries)


def test_the_same_as_options_of_one_agent_is_what_a_shell_and_the_parser_read() -> None:
    from hookproxy.cli.options import Parser, add_sandbox_options

    proposal = proposed(("make", "/srv/a b/x"), ("read", "/srv/c/y"))
    proposal.env = {"TOKEN": "x"}
    parser = Parser("run", "")
    add_sandbox_options(parser)
    options = parser.parse_args(shlex.split(options_of(proposal)))
    assert (options.sandbox, options.sandbox_network, options.sandbox_env) == (True, "none", ["TOKEN"])
    assert (options.sandbox_read, options.sandbox_write) == ([*proposal.read], [*proposal.write])
    assert options_of(proposed(("read", "/srv/a\x1b[2J/x"))) == ""
