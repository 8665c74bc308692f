"""Which folders overlap, where a program is installed, and what is opened for a sandbox."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.model.sizes import SIZE, size_in_bytes
from hookproxy.sandbox.folders import SYSTEM_FILES, is_common, overlaps
from hookproxy.sandbox.installation import Installation, Surroundings, find_installation
from hookproxy.sandbox.places import close_all, open_all, own_folder

NOTHING = Surroundings((), (), ())


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def found(folder: Path, *command: str, around: Surroundings = NOTHING) -> Installation:
    return find_installation(command, "/usr/bin:/bin", str(folder), around)


@pytest.mark.parametrize(
    ("path", "other", "do"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/a", "/a/b", True),
        ("/ab", "/a", False),
        ("/", "/a", True),
        ("/a/b", "/a/c", False),
    ],
)
def test_folders_overlap_if_one_lies_in_the_other(path: str, other: str, do: bool) -> None:
    assert overlaps(path, other) is do


def test_a_home_folder_and_what_contains_one_belong_to_no_program() -> None:
    assert is_common("/home/bob", ["/home/bob"])
    assert is_common("/data", ["/data/homes/bob"])
    assert not is_common("/home/bob/app", ["/home/bob"])
    assert is_common("/opt", [])


@pytest.mark.parametrize(
    ("text", "size"), [("1GiB", 1024**3), ("2 GB", 2 * 1000**3), ("512MiB", 512 * 1024**2), ("10", 10), ("3kB", 3000)]
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert re.search(SIZE, text)
    assert size_in_bytes(text) == size


def test_a_python_environment_is_shown_with_the_python_that_it_was_made_from(tmp_path: Path) -> None:
    program(tmp_path / "base" / "bin" / "python3.12", "binary")
    (tmp_path / "base" / "lib").mkdir()
    server = program(tmp_path / "venv" / "bin" / "server", f"#!{tmp_path}/venv/bin/python\n")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "venv" / "bin" / "python").symlink_to(tmp_path / "base" / "bin" / "python3.12")
    assert found(tmp_path, str(server)).paths == [str(tmp_path / "venv"), str(tmp_path / "base")]


def test_a_node_program_is_shown_with_its_package_and_modules(tmp_path: Path) -> None:
    (tmp_path / "app" / "node_modules").mkdir(parents=True)
    script = program(tmp_path / "app" / "dist" / "index.js", "")
    assert found(tmp_path, "/bin/sh", str(script)).paths == [str(tmp_path / "app")]


def test_of_a_home_folder_only_the_program_itself_is_shown(tmp_path: Path) -> None:
    around = Surroundings([str(tmp_path)], (), ())
    one = program(tmp_path / ".local" / "bin" / "tool")
    (tmp_path / ".local" / "lib").mkdir()
    other = program(tmp_path / "tool")
    assert found(tmp_path, str(one), around=around).paths == [str(one)]
    assert found(tmp_path, str(other), around=around).paths == [str(other)]


def test_beside_what_is_the_gateways_only_the_program_itself_is_shown(tmp_path: Path) -> None:
    script = program(tmp_path / "conf" / "server.sh")
    around = Surroundings((), [str(tmp_path / "conf" / "gateway.toml")], ())
    assert found(tmp_path, str(script), around=around).paths == [str(script)]


def test_a_relative_word_that_is_a_file_starts_from_the_folder_of_the_configuration(tmp_path: Path) -> None:
    script = program(tmp_path / "own" / "server.py", "")
    assert found(tmp_path / "own", "/bin/sh", "server.py", "other.py").command == ("/bin/sh", str(script), "other.py")


def test_what_a_server_writes_does_not_decide_what_is_shown(tmp_path: Path) -> None:
    (writable := tmp_path / "w").mkdir()
    program(tmp_path / "elsewhere" / "secret")
    (writable / "server").symlink_to(tmp_path / "elsewhere" / "secret")
    (writable / "bin").symlink_to(tmp_path / "elsewhere")
    around = Surroundings((), (), [str(writable)])
    for path in (writable / "server", writable / "bin" / "secret"):
        with pytest.raises(UserError, match="which servers may write"):
            found(tmp_path, str(path), around=around)


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="command not found: nothing-such"):
        found(tmp_path, "nothing-such")


def test_a_folder_that_has_become_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "real" / "sub").mkdir(parents=True)
    descriptors = open_all([str(tmp_path / "a")])
    assert os.fstat(descriptors[str(tmp_path / "a")]).st_ino == (tmp_path / "a").stat().st_ino
    close_all(descriptors.values())
    (tmp_path / "link").symlink_to(tmp_path / "real")
    before = len(os.listdir("/proc/self/fd"))
    for path in (tmp_path / "link", tmp_path / "link" / "sub"):
        with pytest.raises(UserError, match="leads through a link"):
            open_all([str(tmp_path / "a"), str(path)])
    with pytest.raises(UserError, match="cannot be opened"):
        open_all([str(tmp_path / "none")])
    assert len(os.listdir("/proc/self/fd")) == before


def test_each_user_has_a_folder_that_others_cannot_enter(tmp_path: Path) -> None:
    names = ("uid:1", "uid:2", "token:a/../../b", "token:a/../..-b", "", "x" * 5000, "..")
    folders = {own_folder(str(tmp_path), "git", name) for name in names}
    assert len(folders) == len(names)
    assert {os.path.dirname(folder) for folder in folders} == {str(tmp_path / "servers" / "git")}
    assert all(os.stat(folder).st_mode & 0o077 == 0 for folder in folders)
    assert os.stat(tmp_path / "servers").st_mode & 0o077 == 0


def test_the_first_line_of_a_script_shows_nothing_that_no_server_may_see(tmp_path: Path) -> None:
    state, own = tmp_path / "state", tmp_path / "state" / "own"
    own.mkdir(parents=True)
    (state / "seal.key").write_text("secret")
    script = own / "server.py"
    program(script, f"#!{state}/seal.key\n")
    around = Surroundings((), (str(state),), ())
    with pytest.raises(UserError, match="no server may see"):
        find_installation((str(script),), None, str(own), around)
    around = Surroundings((), (str(state),), (str(own),))
    assert find_installation(("/bin/sh", str(script)), None, str(own), around).paths == [str(script)]


def test_the_page_names_all_that_is_shown_of_etc() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()
    paragraph = page.partition("### Of /etc\n")[2].split("\n## ")[0].partition("They must")[0]
    named = {f"/etc/{name}" for name in re.findall(r"`([^`]+)`", paragraph) if name != "/etc"}
    assert named == set(SYSTEM_FILES)
