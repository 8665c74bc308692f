"""The file hookproxy.lock: readable, the same for the same servers, and never used if it is not as it was written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookproxy.lock import lock_file
from hookproxy.lock.description import Description, Identity, Kind, entry
from hookproxy.model.errors import ConfigError, UserError


def server(*names: str, description: str = "Reads.") -> Description:
    entries = [entry(Kind.TOOL, json.dumps({"name": name, "description": description}).encode()) for name in names]
    return Description(Identity(name="files", version="1"), {(item.kind, item.name): item for item in entries})


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "hookproxy.lock")


def written(path: str, lock: lock_file.Lock) -> str:
    lock_file.update(path, lambda _before: lock)
    return Path(path).read_text("utf-8")


def test_the_order_of_servers_and_tools_does_not_matter(path: str) -> None:
    one = written(path, {"a": server("x", "y"), "b": server("z")})
    assert written(path, {"b": server("z"), "a": server("y", "x")}) == one
    assert lock_file.read(path).keys() == {"a", "b"}


def test_characters_that_are_not_seen_are_escaped(path: str) -> None:
    text = written(path, {"a": server("x", description="é 日本 \u200b\u202e\U000e0041\x1b\x7f\u3164")})
    assert r"é 日本 \u200b\u202e\udb40\udc41\u001b\u007f\u3164" in text
    assert (
        lock_file.read(path)["a"].entries[Kind.TOOL, "x"]
        == server("x", description="é 日本 \u200b\u202e\U000e0041\x1b\x7f\u3164").entries[Kind.TOOL, "x"]
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ('"Reads."', '"Reads all."', 0, "the tool x of the server a was edited: the text does not have this digest"),
        ('"version": "1"', '"version": "2"', 0, "what the server a says of itself was edited"),
        ('"digest": "sha256:', '"digest": "sha256:0', 6, "what the server a says of itself was edited"),
        ('"hookproxy_lock": 1', '"hookproxy_lock": 2', 2, "is a lock file of version 2"),
        ('"hookproxy_lock": 1', '"hookproxy_lock": "1"', 2, 'is a lock file of version "1"'),
        ('"hookproxy_lock": 1,', "", 1, "is not a lock file: it does not begin with hookproxy_lock"),
        ('"tools": {', '"tools": {,', 12, "is not JSON: Expecting property name"),
        ('"tools": {', '"tols": {},\n"tools": {', 12, "is not a lock file: Object contains unknown field `tols`"),
        ('"tools": {', '"prompts": {},\n"tools": {', 0, "the key 'prompts' appears twice"),
        ('"prompts": {}', '"prompts": []', 0, "is not a lock file: Expected `object`, got `array`"),
        ('"x": {', '"y": {', 0, "the tool y of the server a has another name in its text"),
        ('"hookproxy_lock": 1,', '"hookproxy_lock": 1,\n<<<<<<< HEAD', 3, "is not JSON"),
    ],
)
def test_a_file_that_was_edited_is_not_used(path: str, old: str, new: str, line: int, problem: str) -> None:
    text = written(path, {"a": server("x")})
    assert old in text
    Path(path).write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(ConfigError) as error:
        lock_file.read(path)
    assert problem in error.value.message
    place, number = error.value.message.split(":")[:2]
    assert place == path
    assert int(number) == line or (line == 0 and int(number) > 1)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"5", b'"x"', b"null", b"{}", b"[" * 99_999, b'{"a": 1e999}'])
def test_what_is_not_a_lock_file_is_an_error_with_its_place(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)
    with pytest.raises(ConfigError, match=r"hookproxy\.lock:1: "):
        lock_file.read(path)


def test_a_digest_is_that_of_the_meaning_and_not_of_the_spelling(path: str) -> None:
    value: Any = json.loads(written(path, {"a": server("x")}))
    Path(path).write_text(json.dumps(value, sort_keys=True), "utf-8")
    assert lock_file.read(path)["a"].entries == server("x").entries


def test_a_link_is_read_and_not_written_through(path: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    os.symlink(victim, path)
    with pytest.raises(UserError, match="it is a link: name the file that it points to"):
        written(path, {"a": server("x")})
    os.remove(victim)
    with pytest.raises(UserError, match="it is a link"):
        written(path, {"a": server("x")})
    assert not victim.exists()
    lock_file.update(str(victim), lambda _before: {"a": server("x")})
    assert lock_file.read(path).keys() == {"a"}


def test_a_file_that_may_not_be_written_stays_as_it_is(path: str, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    before = written(path, {"a": server("x")})
    os.chmod(path, 0o444)
    with pytest.raises(UserError, match="cannot be written: it may only be read"):
        written(path, {"b": server("x")})
    os.chmod(path, 0o644)
    os.chmod(tmp_path, 0o555)
    with pytest.raises(UserError, match="cannot be written: Permission denied"):
        written(path, {"b": server("x")})
    os.chmod(tmp_path, 0o755)
    assert Path(path).read_text("utf-8") == before
    assert os.listdir(tmp_path) == ["hookproxy.lock"]


def test_a_file_keeps_its_mode_and_its_owner(path: str) -> None:
    written(path, {"a": server("x")})
    assert os.stat(path).st_mode & 0o777 == 0o644
    os.chmod(path, 0o600)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    written(path, {"b": server("x")})
    state = os.stat(path)
    assert state.st_mode & 0o777 == 0o600
    assert state.st_uid == (12345 if os.geteuid() == 0 else os.geteuid())


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_not_a_file_is_neither_read_nor_replaced(path: str, make: Callable[[str], None]) -> None:
    make(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        lock_file.read(path)
    with pytest.raises(UserError, match="cannot be written: it is not a file"):
        written(path, {"a": server("x")})


def test_a_broken_file_is_not_replaced(path: str) -> None:
    Path(path).write_text("broken")
    with pytest.raises(ConfigError, match="is not JSON"):
        lock_file.update(path, lambda before: {**before, "a": server("x")})
    assert Path(path).read_text() == "broken"
