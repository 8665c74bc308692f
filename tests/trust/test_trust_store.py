"""The trust store is replaced atomically, and belongs to one user only."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hookproxy.model.errors import ConfigError, UserError
from hookproxy.trust import trust_store
from hookproxy.trust.sources import store_path
from hookproxy.trust.trust_store import TrustEntry, locked_entries, read_store
from tests.support.managed_folder import NOBODY


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "trust.json")


def put(store: str, **entries: TrustEntry) -> None:
    with locked_entries(store) as kept:
        kept.update(entries)


def test_the_store_is_in_the_state_folder() -> None:
    assert store_path({}, "/home/me") == "/home/me/.local/state/hookproxy/trust.json"
    assert store_path({"XDG_STATE_HOME": "/state"}, "/home/me") == "/state/hookproxy/trust.json"
    assert store_path({"XDG_STATE_HOME": "relative"}, "/home/me") == "/home/me/.local/state/hookproxy/trust.json"
    with pytest.raises(UserError, match="no folder for the trust store"):
        store_path({}, "")


def test_stored_entries_are_read_back_and_nobody_else_can_read_them(store: str) -> None:
    assert read_store(store) == {}
    put(store, a=TrustEntry("1", "text", ("x",)), b=TrustEntry("2"))
    assert read_store(store) == {"a": TrustEntry("1", "text", ("x",)), "b": TrustEntry("2")}
    assert os.stat(store).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(store)).st_mode & 0o777 == 0o700
    assert os.listdir(os.path.dirname(store)) == ["trust.json"]


def test_an_error_leaves_the_old_store(store: str) -> None:
    put(store, a=TrustEntry("1"))
    with pytest.raises(KeyError), locked_entries(store) as entries:
        del entries["a"], entries["b"]
    assert read_store(store) == {"a": TrustEntry("1")}


def test_concurrent_changes_lose_nothing(store: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: put(store, **{str(number): TrustEntry("x")}), range(40)))
    assert len(read_store(store)) == 40


def test_texts_beyond_the_limit_are_not_stored_but_their_hashes_are(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust_store, "_MAX_TOTAL_TEXT", 5)
    put(store, a=TrustEntry("1", "12345"), b=TrustEntry("2", "6"))
    assert read_store(store) == {"a": TrustEntry("1", "12345"), "b": TrustEntry("2")}


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "{}", '{"files": 7}', '{"files": {"a": 7}}', '{"files": {"a": {}}}',
     '{"files": {"a": {"sha256": 7}}}', '{"files": {"a": {"sha256": "x", "of": 7}}}', "\xff", "[" * 100_000],
)  # fmt: skip
def test_a_file_that_is_not_a_store_is_an_error(store: str, text: str) -> None:
    put(store)
    Path(store).write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="is not a trust store of hookproxy"):
        read_store(store)


@pytest.mark.parametrize("place", ["", ".."])
def test_a_store_that_others_may_write_is_an_error_that_names_the_fix(store: str, place: str) -> None:
    put(store, a=TrustEntry("1"))
    path = os.path.normpath(os.path.join(store, place))
    os.chmod(path, 0o722)
    with pytest.raises(ConfigError) as caught:
        read_store(store)
    assert caught.value.message.startswith(f"{path}: is writable by others")
    assert caught.value.hint.endswith(f"chmod go-w {path}")


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root gives files away")
def test_a_store_of_another_user_is_an_error(store: str) -> None:
    put(store, a=TrustEntry("1"))
    os.chown(store, NOBODY, NOBODY)
    with pytest.raises(ConfigError, match="belongs to another user"):
        read_store(store)


def test_a_link_or_a_pipe_is_not_accepted_as_a_store(store: str, tmp_path: Path) -> None:
    put(store)
    os.unlink(store)
    os.symlink(tmp_path / "elsewhere", store)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_store(store)
    os.unlink(store)
    os.mkfifo(store, 0o600)
    with pytest.raises(ConfigError, match="is not a regular file"):
        read_store(store)


def test_a_state_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be used"):
        put(str(tmp_path / "file" / "trust.json"))


def test_the_store_contains_its_version(store: str) -> None:
    put(store)
    assert json.loads(Path(store).read_text()) == {"v": trust_store.VERSION, "files": {}}
