"""What a server can write decides nothing of what it sees at its next start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.sandbox.installation import Installation, Surroundings, check_layout, find_installation
from hookproxy.sandbox.prepare import Task, prepared
from hookproxy.sandbox.table import Layout, Sandbox


class Place:
    """A folder that a server writes, with its program, and what it must not see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = folder / "own"
        self.own.mkdir()
        self.server = self.own / "server"
        self.secret = self.program(folder / "ssh" / "id", "secret")
        self.tool = self.program(folder / "tools" / "bin" / "tool")
        self.shown: tuple[str, ...] = (str(self.own),)

    @staticmethod
    def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def find(self, *command: str, path: str = "/usr/bin:/bin") -> Installation:
        around = Surroundings((), (), (str(self.own),), self.shown)
        return find_installation(command or (str(self.server),), path, str(self.own), around)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "#!{secret}",
        "#! {secret} -x",
        "#!{folder}/own/../ssh/id",
        "#!/usr/bin/env {secret}",
        "#!/usr/bin/env -S tool -x",
        "#!/usr/bin/env ../ssh/id",
        "#!{own}/second",
        "#!{own}/link",
        "#!{own}/folder/id",
        "#!{own}/up/ssh/id",
    ],
)
def test_the_first_line_of_a_script_that_a_server_writes_shows_it_nothing_new(place: Place, line: str) -> None:
    names = {"secret": place.secret, "own": place.own, "folder": place.folder}
    place.program(place.own / "second", f"#!{place.secret}\n")
    (place.own / "link").symlink_to(place.secret)
    (place.own / "folder").symlink_to(place.secret.parent)
    (place.own / "up").symlink_to("..")
    place.program(place.server, line.format(**names) + "\n")
    with pytest.raises(UserError, match="by a link or a first line in"):
        place.find(path=f"{place.tool.parent}:/usr/bin:/bin")


@pytest.mark.parametrize("line", ["#!/bin/sh", "#!/usr/bin/env sh", "#!{own}/second", "#!{own}/link", "#!sh", "#!", ""])
def test_it_may_name_the_systems_programs_and_its_own(place: Place, line: str) -> None:
    place.program(place.own / "second", "#!/bin/sh\n")
    (place.own / "link").symlink_to("/usr/bin/env")
    place.program(place.server, line.format(own=place.own) + "\n")
    assert all(path.startswith(str(place.own)) for path in place.find().paths)


def test_it_may_name_what_its_table_shows(place: Place) -> None:
    (place.tool.parents[1] / "lib").mkdir()
    place.program(place.server, f"#!{place.tool}\n")
    with pytest.raises(UserError) as problem:
        place.find()
    assert f"should see {place.tool.parents[1]}, name that in read" in problem.value.hint
    place.shown = (str(place.own), str(place.tool.parent))
    assert str(place.tool.parents[1]) not in place.find().paths


def test_the_first_line_is_not_read_where_the_command_names_the_interpreter(place: Place) -> None:
    place.program(place.server, f"#!{place.secret}\n")
    assert place.find("/bin/sh", str(place.server)).paths == [str(place.own)]


def test_a_trusted_link_into_what_a_server_writes_is_followed_no_further(place: Place) -> None:
    (place.own / "app").symlink_to(place.secret.parent)
    (place.folder / "app").symlink_to(place.own / "app")
    with pytest.raises(UserError):
        place.find(str(place.folder / "app" / "id"))


def test_links_in_a_ring_are_told(place: Place) -> None:
    place.program(place.server, f"#!{place.own}/ring/sh\n")
    (place.own / "ring").symlink_to("ring2")
    (place.own / "ring2").symlink_to("ring")
    with pytest.raises(UserError, match="too many links"):
        place.find()


def test_a_link_alone_is_shown_as_a_link(tmp_path: Path) -> None:
    target = Place.program(tmp_path / "home" / ".local" / "share" / "tool", "binary")
    (link := tmp_path / "home" / ".local" / "bin" / "tool").parent.mkdir()
    link.symlink_to(target)
    found = find_installation((str(link),), "", str(tmp_path), Surroundings((str(tmp_path / "home"),), (), ()))
    assert found.links == {str(link): str(target)}
    assert str(link) not in found.paths


@pytest.mark.parametrize("shown", ["/state", "/state/seal", "/", "/state/own/../seal"])
def test_what_no_server_may_see_is_in_no_layout(shown: str) -> None:
    with pytest.raises(UserError, match="no server may see"):
        check_layout([os.path.normpath(shown)], ["/state"], ["/state/own"])
    check_layout(["/state/own", "/state/own/a", "/other"], ["/state"], ["/state/own"])


def test_a_layout_is_checked_before_anything_starts(tmp_path: Path) -> None:
    layout = Layout(str(tmp_path), (str(tmp_path / "seal"),), ())
    task = Task(Sandbox(), layout, ("/bin/true",), {}, (str(tmp_path),), os.getuid())
    with pytest.raises(UserError, match="no server may see"), prepared(task, "auto"):
        pass
