"""Which rights Landlock gives for which path."""

from __future__ import annotations

from pathlib import Path

from hookproxy.sandbox.folders import SYSTEM, SYSTEM_FILES
from hookproxy.sandbox.landlock import HANDLED, READS, SCOPES, of_file, rights, without
from hookproxy.sandbox.table import Layout

EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
MAKE_CHAR, MAKE_SOCKET, MAKE_BLOCK, REFER, TRUNCATE, IOCTL = 1 << 6, 1 << 9, 1 << 11, 1 << 13, 1 << 14, 1 << 15
GIVEN = rights(Layout("/w", ("/r",), ("/w",)))


def test_the_system_is_read_and_nothing_else() -> None:
    assert {GIVEN[path] for path in (*SYSTEM, *SYSTEM_FILES, "/r")} == {READS}
    assert READS == EXECUTE | READ | LIST
    assert not [path for path in GIVEN if path in ("/", "/etc", "/proc", "/tmp", "/home", "/run", "/var", "/dev")]


def test_of_proc_only_what_describes_the_machine_is_shown() -> None:
    shown = {path for path in GIVEN if path.startswith("/proc")}
    assert "/proc/meminfo" in shown
    assert not [path for path in shown if path.split("/")[2].isdigit() or path.startswith(("/proc/self", "/proc/key"))]


def test_in_its_folders_a_server_makes_neither_devices_nor_sockets() -> None:
    assert GIVEN["/w"] & (MAKE_CHAR | MAKE_BLOCK | MAKE_SOCKET | IOCTL) == 0
    assert GIVEN["/w"] & (WRITE | TRUNCATE | REFER) == WRITE | TRUNCATE | REFER


def test_devices_are_those_that_store_nothing() -> None:
    writable = [path for path, allowed in GIVEN.items() if allowed & WRITE and path != "/w"]
    assert sorted(writable) == ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"]


def test_signals_and_abstract_sockets_and_all_rights_of_the_abi_are_handled() -> None:
    assert (HANDLED, SCOPES) == (0xFFFF, 3)


def test_a_file_gets_what_a_file_can_have() -> None:
    assert of_file(HANDLED) == EXECUTE | WRITE | READ | TRUNCATE | IOCTL


def test_around_what_is_hidden_everything_else_is_named(tmp_path: Path) -> None:
    for name in ("a", "own/state", "own/other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("own")
    (tmp_path / "way").symlink_to("own/state")
    hidden = f"{tmp_path}/own/state"
    shown = without({str(tmp_path): READS, "/x": READ}, [hidden])
    assert shown == {f"{tmp_path}/a": READS, f"{tmp_path}/own/other": READS, "/x": READ}


def test_links_show_nothing_that_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "own" / "state").mkdir(parents=True)
    (tmp_path / "own" / "other").mkdir()
    (tmp_path / "link").symlink_to("own")
    (tmp_path / "way").symlink_to("own/state")
    hidden = f"{tmp_path}/own/state"
    assert without({f"{tmp_path}/link": READS}, [hidden]) == {f"{tmp_path}/own/other": READS}
    assert without({f"{tmp_path}/way": READS}, [hidden]) == {}


def test_a_folder_that_is_hidden_itself_is_not_shown(tmp_path: Path) -> None:
    assert without({str(tmp_path): READS}, [str(tmp_path)]) == {}
    assert without({f"{tmp_path}/missing": READS}, [f"{tmp_path}/missing/x"]) == {}
