"""The words for bubblewrap: what they show, and what they never do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hookproxy.sandbox.bubblewrap import Tools, arguments
from hookproxy.sandbox.limits import limited
from hookproxy.sandbox.table import Layout, Sandbox

TOOLS = Tools("/usr/bin/bwrap", system=["/usr"], system_links={"/bin": "usr/bin"}, system_files={"/etc/hosts": "/e/h"})
COMMAND = ("/opt/server", "--x")


def words(
    layout: Layout | None = None, sandbox: Sandbox | None = None, tools: Tools = TOOLS, **descriptors: int
) -> list[str]:
    named = {path.replace("_", "/"): number for path, number in descriptors.items()}
    return list(arguments(tools, layout or Layout("/w", (), ()), sandbox or Sandbox(), named, COMMAND))


def has(argv: Sequence[str], *run: str) -> bool:
    return any(tuple(argv[at : at + len(run)]) == run for at in range(len(argv)))


def test_a_server_is_alone_without_rights_and_ends_with_us() -> None:
    argv = words()
    for word in ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--die-with-parent"):
        assert word in argv
    assert has(argv, "--cap-drop", "ALL")
    assert not [word for word in argv if word.startswith(("--dev-bind", "--share", "--bind-try", "--ro-bind-try"))]
    assert has(argv, "--remount-ro", "/", "--chdir", "/w", "--")


def test_the_network_is_there_unless_it_is_denied() -> None:
    assert "--unshare-net" not in words()
    assert "--unshare-net" in words(sandbox=Sandbox(network=False))


def test_folders_are_handed_over_as_descriptors_where_that_is_possible() -> None:
    layout = Layout("/w", ("/r",), ("/w",))
    argv = words(layout, _r=7, _w=8)
    assert has(argv, "--ro-bind-fd", "7", "/r")
    assert has(argv, "--bind-fd", "8", "/w")
    old = words(layout, tools=Tools("/usr/bin/bwrap", takes_descriptors=False), _r=7, _w=8)
    assert has(old, "--ro-bind", "/r", "/r")
    assert has(old, "--bind", "/w", "/w")


def test_what_lies_in_another_folder_comes_after_it() -> None:
    argv = words(Layout("/", ("/a/b", "/a-b"), ("/a", "/a/b/c")))
    places = [argv.index(path) for path in ("/a", "/a/b", "/a/b/c")]
    assert places == sorted(places)


def test_a_folder_that_is_written_is_not_shown_for_reading_only() -> None:
    argv = words(Layout("/w", ("/w",), ("/w",)))
    assert has(argv, "--bind", "/w", "/w")
    assert not has(argv, "--ro-bind", "/w", "/w")


def test_what_is_hidden_is_covered_after_all_that_is_shown() -> None:
    argv = words(Layout("/w", ("/opt",), ("/w",), {"/opt/state": True, "/opt/key": False}))
    last_shown = max(at for at, word in enumerate(argv) if word == "/w" and argv[at - 1] == "/w")
    assert argv.index("/opt/state") > last_shown
    assert has(argv, "--perms", "0000", "--tmpfs", "/opt/state")
    assert has(argv, "--ro-bind", "/dev/null", "/opt/key")


def test_links_of_the_program_are_made_outside_of_what_is_shown() -> None:
    argv = words(Layout("/w", ("/opt/app",), (), {}, {"/opt/current": "/opt/app", "/opt/app/x": "/y"}))
    assert has(argv, "--symlink", "/opt/app", "/opt/current")
    assert not has(argv, "--symlink", "/y", "/opt/app/x")


def test_folders_for_temporary_files_have_a_size_and_are_its_own() -> None:
    argv = words(sandbox=Sandbox(memory=5000))
    assert has(argv, "--size", "5000", "--tmpfs", "/tmp")
    assert has(argv, "--size", "5000", "--tmpfs", "/dev/shm")
    assert has(argv, "--symlink", "/tmp", "/var/tmp")


def test_a_folder_below_var_tmp_can_be_shown() -> None:
    argv = words(Layout("/w", (), ("/var/tmp/work",)))
    assert not has(argv, "--symlink", "/tmp", "/var/tmp")
    assert argv.index("/var/tmp/work") > argv.index("/var/tmp")


@pytest.mark.parametrize("mounts", [True, False])
def test_there_is_a_proc_of_its_own_or_none(mounts: bool) -> None:
    argv = words(tools=Tools("/usr/bin/bwrap", mounts_proc=mounts))
    assert has(argv, "--proc", "/proc") is mounts
    assert has(argv, "--dir", "/proc") is not mounts


def test_settings_of_the_kernel_are_not_roots() -> None:
    argv = words(tools=Tools("/usr/bin/bwrap", read_only_proc=True))
    assert has(argv, "--proc", "/proc", "--remount-ro", "/proc")


def test_of_etc_single_files_are_copied() -> None:
    assert has(words(_etc_hosts=9), "--file", "9", "/etc/hosts")
    assert has(words(), "--ro-bind", "/e/h", "/etc/hosts")
    assert "/etc" not in words()


def test_signals_reach_the_server_and_not_what_stands_around_it() -> None:
    argv = words()
    assert argv[:2] == ["/bin/sh", "-c"]
    assert "trap '' TERM HUP INT" in argv[2]
    assert has(argv, "/usr/bin/env", "--default-signal=TERM,HUP,INT")
    assert words(tools=Tools("/usr/bin/bwrap", env=""))[0] == "/usr/bin/bwrap"


def test_limits_are_set_before_the_server_runs() -> None:
    sandbox = Sandbox(memory=8 << 20, processes=7)
    shell, _, script, _, *rest = limited(sandbox, COMMAND)
    assert (shell, tuple(rest)) == ("/bin/sh", COMMAND)
    assert "ulimit -d 8192 || exit 126" in script
    assert "ulimit -u 7" in script
    assert script.endswith('exec "$@"')
    assert "ulimit -u" not in limited(sandbox, COMMAND, in_group=True)[2]
    assert 'mkdir -m 700 "$TMPDIR"' in limited(sandbox, COMMAND, makes_temporary=True)[2]
    assert words(sandbox=sandbox)[-len(rest) :] == list(COMMAND)
