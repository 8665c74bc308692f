"""The store of logins: who can read it, what it refuses, and that two holders of a lock exclude each other."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import anyio
import pytest

from hookproxy.authorization import login_store
from hookproxy.authorization.login_store import LoginStore
from hookproxy.authorization.stored_login import Client, Secrets, StoredLogin
from hookproxy.authorization.system_keyring import SystemKeyring, find_keyring
from hookproxy.model.errors import UserError

SERVER = "https://mcp.example.com/mcp"
LOGIN = StoredLogin(
    server=SERVER,
    issuer="https://auth.example.com",
    token_endpoint="https://auth.example.com/token",
    client=Client("id"),
    grant="authorization_code",
    scope="read",
    resource=SERVER,
    issued_at=1.0,
    expires_at=2.0,
    secrets=Secrets("access", "refresh"),
)


def file_of(tmp_path: Path) -> Path:
    [path] = (tmp_path / "logins").glob("*.json")
    return path


async def test_a_login_is_read_as_it_was_written_and_only_for_its_server(tmp_path: Path, store: LoginStore) -> None:
    assert store.signature(SERVER) is None
    assert store.all() == ([], [])
    await store.write(LOGIN, keyring=True)
    assert await store.read(SERVER) == LOGIN
    assert await store.read(f"{SERVER}/") is None
    assert store.all() == ([(str(file_of(tmp_path)), LOGIN)], [])
    assert store.signature(SERVER)


async def test_nobody_else_can_read_it_whatever_the_umask_is(tmp_path: Path, store: LoginStore) -> None:
    before = os.umask(0)
    try:
        await store.write(LOGIN, keyring=False)
        async with store.lock(SERVER):
            pass
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "logins").iterdir()}
    assert set(modes.values()) == {0o600}
    assert (tmp_path / "logins").stat().st_mode & 0o777 == 0o700


async def test_each_writing_gives_another_signature(store: LoginStore) -> None:
    await store.write(LOGIN, keyring=False)
    before = store.signature(SERVER)
    await store.write(LOGIN, keyring=False)
    assert before != store.signature(SERVER)


async def test_a_removed_login_is_gone(store: LoginStore) -> None:
    await store.write(LOGIN, keyring=False)
    assert await store.delete(SERVER) is True
    assert await store.read(SERVER) is None
    assert await store.delete(SERVER) is False


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
async def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, store: LoginStore, mode: int) -> None:
    await store.write(LOGIN, keyring=False)
    file_of(tmp_path).chmod(mode)
    with pytest.raises(UserError, match="can be read or written by others") as raised:
        await store.read(SERVER)
    assert f"chmod go= {file_of(tmp_path)}" in raised.value.hint
    await store.write(LOGIN, keyring=False)  # another login corrects it
    assert await store.read(SERVER) == LOGIN


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
async def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, store: LoginStore, mode: int) -> None:
    await store.write(LOGIN, keyring=False)
    (tmp_path / "logins").chmod(mode)
    for doing in (store.read(SERVER), store.write(LOGIN, keyring=False)):
        with pytest.raises(UserError, match="writable by others"):
            await doing


async def test_links_are_refused(tmp_path: Path, store: LoginStore) -> None:
    await store.write(LOGIN, keyring=False)
    path = file_of(tmp_path)
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UserError, match="cannot be read"):
        await store.read(SERVER)
    (tmp_path / "logins").rename(tmp_path / "real")
    (tmp_path / "logins").symlink_to(tmp_path / "real")
    path.unlink()
    (tmp_path / "elsewhere.json").rename(path)
    with pytest.raises(UserError, match="is not a folder"):
        await store.read(SERVER)


async def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path, store: LoginStore) -> None:
    async with store.lock(SERVER):
        pass
    [lock] = (tmp_path / "logins").glob("*.lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "target")
    with pytest.raises(UserError, match="cannot be opened"):
        async with store.lock(SERVER):
            pass
    assert not (tmp_path / "target").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_another_users_file_is_refused(tmp_path: Path, store: LoginStore) -> None:
    await store.write(LOGIN, keyring=False)
    os.chown(file_of(tmp_path), 12345, 12345)
    with pytest.raises(UserError, match="belongs to another user"):
        await store.read(SERVER)


@pytest.mark.parametrize("content", ["", "{}", "[", '{"server": 1}', "\xff"])
async def test_an_unreadable_file_is_an_error_and_not_a_missing_login(
    tmp_path: Path, store: LoginStore, content: str
) -> None:
    await store.write(LOGIN, keyring=False)
    file_of(tmp_path).write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match="is not a stored login"):
        await store.read(SERVER)
    assert await store.delete(SERVER) is True


async def test_a_lock_excludes_others_until_it_is_free(store: LoginStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_store, "LOCK_TIMEOUT", 0.05)
    async with store.lock(SERVER):
        with pytest.raises(UserError, match="another process"):
            async with store.lock(SERVER):
                pass
        async with store.lock(f"{SERVER}/other"):
            pass
    async with store.lock(SERVER):
        pass


async def test_who_waits_for_a_lock_can_be_cancelled(store: LoginStore) -> None:
    async with store.lock(SERVER):
        with anyio.move_on_after(0.01) as waiting:
            async with store.lock(SERVER):
                pytest.fail("the lock is held")
        assert waiting.cancelled_caught


def test_secrets_are_in_no_representation() -> None:
    assert "access" not in repr(LOGIN).replace("access_token", "")
    assert "refresh" not in repr(LOGIN)


# --- the keyring ---


class MemoryKeyring:
    """A backend as the package `keyring` has them."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise RuntimeError("locked: secret")
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise RuntimeError(f"locked: {password}")
        self.entries[(service, username)] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[(service, username)]


@pytest.fixture
def keyring() -> MemoryKeyring:
    return MemoryKeyring()


@pytest.fixture
def with_keyring(tmp_path: Path, keyring: MemoryKeyring) -> LoginStore:
    return LoginStore(str(tmp_path / "logins"), lambda: SystemKeyring(keyring))


async def test_a_keyring_keeps_the_secrets_out_of_the_file(
    tmp_path: Path, with_keyring: LoginStore, keyring: MemoryKeyring
) -> None:
    await with_keyring.write(LOGIN, keyring=True)
    text = file_of(tmp_path).read_text()
    assert '"access"' not in text
    assert '"refresh"' not in text
    assert with_keyring.in_keyring(SERVER)
    assert await with_keyring.read(SERVER) == LOGIN
    assert await with_keyring.delete(SERVER) is True
    assert keyring.entries == {}


async def test_a_login_in_a_file_removes_the_former_one_from_the_keyring(
    with_keyring: LoginStore, keyring: MemoryKeyring
) -> None:
    await with_keyring.write(LOGIN, keyring=True)
    await with_keyring.write(LOGIN, keyring=False)
    assert keyring.entries == {}
    assert await with_keyring.read(SERVER) == LOGIN


async def test_a_keyring_that_is_gone_or_locked_is_an_error_that_says_so(
    store: LoginStore, with_keyring: LoginStore, keyring: MemoryKeyring
) -> None:
    await with_keyring.write(LOGIN, keyring=True)
    with pytest.raises(UserError, match="no system keyring here"):
        await store.read(SERVER)
    keyring.locked = True
    with pytest.raises(UserError, match="cannot be read: RuntimeError") as raised:
        await with_keyring.read(SERVER)
    assert "secret" not in str(raised.value)
    with pytest.raises(UserError, match="cannot be written") as raised:
        await with_keyring.write(LOGIN, keyring=True)
    assert "access" not in str(raised.value)


def backend(module: str) -> object:
    return type("Keyring", (MemoryKeyring,), {"__module__": module})()


@pytest.mark.parametrize(
    ("found", "usable"),
    [
        (backend("keyring.backends.SecretService"), True),
        (backend("keyring.backends.macOS"), True),
        (backend("keyring.backends.fail"), False),
        (backend("keyring.backends.null"), False),
        (backend("keyrings.alt.file"), False),
        (RuntimeError("no D-Bus"), False),
    ],
)
def test_only_the_systems_own_keyrings_are_used(monkeypatch: pytest.MonkeyPatch, found: object, usable: bool) -> None:
    def get_keyring() -> object:
        if isinstance(found, Exception):
            raise found
        return found

    package = ModuleType("keyring")
    package.get_keyring = get_keyring  # type: ignore[attr-defined]  # it stands for the optional package
    monkeypatch.setitem(sys.modules, "keyring", package)
    assert (find_keyring() is not None) is usable


def test_the_first_usable_backend_of_several_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = ModuleType("chain")
    chain.backends = [backend("keyrings.alt.file"), backend("keyring.backends.kwallet")]  # type: ignore[attr-defined]  # as keyring's ChainerBackend has it
    package = ModuleType("keyring")
    package.get_keyring = lambda: chain  # type: ignore[attr-defined]  # it stands for the optional package
    monkeypatch.setitem(sys.modules, "keyring", package)
    found = find_keyring()
    assert found is not None
    found.set("name", "text")
    assert found.get("name") == "text"


def test_without_the_package_there_is_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert find_keyring() is None
