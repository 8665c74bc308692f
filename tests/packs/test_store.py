"""The packs that are installed: whole or not at all, and unchanged since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.model.errors import ConfigError, UserError
from hookproxy.packs.manifest import Memory, Pack, verify
from hookproxy.packs.store import ENVIRONMENTS, Store
from tests.support.packs import pack
from tests.support.signed_policy import new_key


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "packs"))


def installed(store: Store, version: str = "1.0.0") -> Pack:
    one = verify(pack(version), None)
    with store.locked(one.name):
        store.write_files(one)
        store.make_current(one, "/from", "")
    return one


def test_what_is_installed_is_found_again(store: Store) -> None:
    one = installed(store)
    state = store.installed("quiet")
    assert state is not None
    assert (state.version, state.digest, state.source) == ("1.0.0", one.digest, "/from")
    assert store.pack("quiet", state.version, state.digest, None) == one
    assert store.names() == ["quiet"]
    assert store.installed("other") is None


def test_nothing_in_it_is_writable_and_hooks_are_executable(store: Store) -> None:
    one = installed(store)
    folder = Path(store.files(one.name, one.version, one.digest))
    modes = {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")}
    assert modes["hooks/quiet.sh"] == 0o555
    assert modes["hookproxy.toml"] == 0o444
    assert modes["hooks"] == folder.stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize("change", ["content", "more", "less", "link"])
def test_a_changed_file_is_noticed(store: Store, change: str) -> None:
    one = installed(store)
    folder = Path(store.files(one.name, one.version, one.digest))
    folder.chmod(0o755)
    (folder / "hookproxy.toml").chmod(0o644)
    match change:
        case "content":
            (folder / "hookproxy.toml").write_text("")
        case "more":
            (folder / "more.py").write_text("")
        case "less":
            (folder / "hookproxy.toml").unlink()
        case _:
            (folder / "more.py").symlink_to("hookproxy.toml")
    with pytest.raises(UserError, match=r"cannot be used|plain file") as raised:
        store.pack(one.name, one.version, one.digest, None)
    assert raised.value.hint
    store.write_files(one)
    assert store.pack(one.name, one.version, one.digest, None) == one, "installing it again repairs it"


def test_where_keys_are_configured_an_installed_pack_must_be_signed(store: Store) -> None:
    one = installed(store)
    with pytest.raises(UserError, match="it is not signed"):
        store.pack(one.name, one.version, one.digest, [new_key().public])


def test_the_version_before_stays_for_runs_that_began_with_it(store: Store) -> None:
    installed(store, "1.0")
    installed(store, "1.1")
    installed(store, "1.2")
    present = {name.partition("-")[0] for name in os.listdir(store.place("quiet"))}
    assert present == {"state.json", "1.1", "1.2"}


def test_a_version_that_does_not_count_is_forgotten(store: Store) -> None:
    one = installed(store)
    two = verify(pack("2.0"), None)
    folder = store.write_files(two)
    store.forget(two)
    assert not os.path.exists(folder)
    store.forget(one)
    assert store.pack(one.name, one.version, one.digest, None) == one


def test_a_pack_is_removed_with_all_of_it(store: Store) -> None:
    installed(store)
    os.makedirs(store.place("quiet", ENVIRONMENTS, "x"))
    store.remove("quiet", forget=True)
    assert not os.path.exists(store.place("quiet"))
    with pytest.raises(UserError, match="there is no pack quiet") as raised:
        store.remove("quiet")
    assert "init --from" in raised.value.hint


@pytest.mark.parametrize("name", ["..", "a/b", "", "A", "x" * 65, "a\n"])
def test_a_name_is_never_a_path(store: Store, name: str) -> None:
    with pytest.raises(UserError, match="is not the name of a pack"):
        store.installed(name)


@pytest.mark.parametrize("text", ["", "{}", '{"format": 2}', "[" * 100_000])
def test_a_state_that_cannot_be_read_is_an_error(store: Store, text: str) -> None:
    installed(store)
    Path(store.place("quiet", "state.json")).write_text(text)
    with pytest.raises(UserError, match="is not the state of a pack"):
        store.installed("quiet")


def test_if_a_version_cannot_be_written_nothing_is_left(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one = verify(pack(), None)
    with store.locked(one.name):
        Path(store.files(one.name, one.version, one.digest)).write_text("in the way")
        with pytest.raises(UserError, match="cannot be written") as raised:
            store.write_files(one)
    assert "nothing was installed" in raised.value.hint
    assert not [name for name in os.listdir(store.place("quiet")) if name.startswith(".")]
    assert store.installed("quiet") is None


def test_a_removed_pack_is_remembered_until_it_is_forgotten(store: Store) -> None:
    one = installed(store, "1.2")
    os.makedirs(store.place("quiet", ENVIRONMENTS, "x"))
    before = store.memory("quiet")
    store.remove("quiet")
    assert (store.installed("quiet"), store.names()) == (None, [])
    assert os.listdir(store.place("quiet")) == ["removed.json"]
    assert store.memory("quiet") == before == Memory("1.2", one.digest)
    with pytest.raises(UserError, match="there is no pack quiet"):
        store.remove("quiet")
    installed(store, "1.3")
    assert "removed.json" not in os.listdir(store.place("quiet"))
    store.remove("quiet")
    store.remove("quiet", forget=True)
    assert store.memory("quiet") is None
    with pytest.raises(UserError, match="there is no pack quiet"):
        store.remove("quiet", forget=True)


def test_what_is_remembered_and_cannot_be_read_lets_nothing_in(store: Store) -> None:
    installed(store)
    store.remove("quiet")
    with open(store.place("quiet", "removed.json"), "w") as file:
        file.write("{}")
    with pytest.raises(ConfigError, match="does not say which version was installed") as raised:
        store.memory("quiet")
    assert "--forget" in raised.value.hint
    store.remove("quiet", forget=True)
