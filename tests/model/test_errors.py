"""What the user sees if there is an error that the user can fix."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from hookproxy.model import errors
from hookproxy.model.errors import (
    EXIT_NOT_FOUND,
    EXIT_USER_ERROR,
    ConfigError,
    UserError,
    describe_error,
    file_hint,
    install_command,
    not_written,
    printable,
    resource_shortage,
)


def test_an_error_says_what_went_wrong_and_a_hint_what_to_do() -> None:
    assert str(UserError("no verb given", "see --help")) == "error: no verb given\nhint: see --help"


def test_an_error_ends_with_the_status_that_its_raiser_chose() -> None:
    assert UserError("x", "y").status == EXIT_USER_ERROR == 2
    assert UserError("x", "y", EXIT_NOT_FOUND).status == 127


def test_an_error_in_a_file_begins_with_its_place() -> None:
    error = ConfigError("hooks.json:3", "is no JSON", "remove the comma")
    assert str(error) == "error: hooks.json:3: is no JSON\nhint: remove the comma"
    assert error.args == ("hooks.json:3: is no JSON",)


def test_a_file_that_cannot_be_used_comes_with_a_command_that_shows_why() -> None:
    assert file_hint("/a b", PermissionError(errno.EACCES, "")) == "ls -ld '/a b' shows its type, owner and permissions"
    assert file_hint("/x", OSError(errno.ENOSPC, "")) == "free some disk space: df /x shows how much is left"
    assert file_hint("/x", FileNotFoundError(errno.ENOENT, "")).startswith("name a file that exists")


def test_a_terminal_interprets_no_character_of_a_printable_text() -> None:
    assert printable("é \x1b[31m\n\t\u202e\x9b") == "é \\x1b[31m\\n\\t\\u202e\\x9b"


def test_a_shortage_of_resources_is_distinguished_from_a_defect() -> None:
    lacking, missing = OSError(errno.EMFILE, "Too many open files"), FileNotFoundError(errno.ENOENT, "no such file")
    assert (resource_shortage(lacking), resource_shortage(missing), resource_shortage(KeyError("id"))) == (
        "Too many open files",
        "",
        "",
    )
    assert describe_error(lacking) == "the system is short of resources: Too many open files"
    assert describe_error(KeyError("id")) == "a defect of hookproxy: KeyError('id')"


@pytest.mark.parametrize(
    ("marker", "command"),
    [
        ("uv-receipt.toml", "uv tool install 'hookproxy[otel]' ("),
        ("pipx_metadata.json", "pipx install --force 'hookproxy[otel]' ("),
    ],
)
def test_an_extra_is_installed_by_the_tool_that_made_the_environment(marker: str, command: str, tmp_path: Path) -> None:
    assert install_command("otel", str(tmp_path)) == f"{tmp_path}/bin/python -m pip install 'hookproxy[otel]'"
    (tmp_path / marker).touch()
    assert install_command("otel", str(tmp_path)).startswith(command)


def test_what_was_installed_from_a_checkout_is_installed_from_it_again(tmp_path: Path) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    record = tmp_path / "lib/python3.13/site-packages/hookproxy-1.0.dist-info/direct_url.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"url": checkout.as_uri(), "dir_info": {}}))
    (tmp_path / "uv-receipt.toml").touch()
    assert install_command("top", str(tmp_path)).startswith(f"uv tool install '{checkout}[top]' (")
    for broken in ('{"url": "https://example.com/x.whl"}', "{", "[]"):
        record.write_text(broken)
        assert install_command("top", str(tmp_path)).startswith("uv tool install 'hookproxy[top]' (")


@pytest.mark.parametrize(
    ("number", "name", "command"),
    [
        (errno.EACCES, "here", "ls -ld '{0}' '{0}/here' shows types, owners and permissions"),
        (errno.EACCES, "new", "ls -ld '{0}' shows types, owners and permissions"),
        (errno.EROFS, "no/new", "it is on a file system that can only be read: df '{0}' shows which"),
        (errno.ENOSPC, "no/new", "free some disk space: df '{0}' shows how much is left"),
        (errno.ENOTDIR, "here/new", "ls -ld '{0}/here' shows types, owners and permissions"),
        (errno.ENOENT, "no/such/new", "make its folder: mkdir -p '{0}/no/such'"),
    ],
)
def test_what_cannot_be_written_comes_with_the_reason_and_a_command_that_works(
    number: int, name: str, command: str, tmp_path: Path
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "here").touch()
    error = not_written(f"{folder}/{name}", OSError(number, os.strerror(number)), first="nothing was written")
    assert error.message == f"{folder}/{name}: cannot be written: {os.strerror(number)}"
    assert error.hint == f"nothing was written; {command.format(folder)}"
    (words,) = re.findall(r"(?:ls -ld|df|mkdir -p)(?: '[^']+')+", error.hint)
    assert subprocess.run(shlex.split(words), capture_output=True, check=False).returncode == 0


def test_what_cannot_be_written_is_reported_in_one_place() -> None:
    own = re.compile(r"raise \w+Error\(\s*[^)]*cannot be (written|replaced|removed): \{(error|problem)\.")
    package = Path(errors.__file__).parents[1]
    assert [str(path) for path in package.rglob("*.py") if own.search(path.read_text())] == []
