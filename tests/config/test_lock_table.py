"""`[lock]`, and the file that it names."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from hookproxy.config.load import load
from hookproxy.lock import lock_file
from hookproxy.lock.description import Description, Identity, Kind, entry
from hookproxy.model.errors import ConfigError
from hookproxy.model.lock_settings import LockSettings

LOCK = lock_file.text_of(
    {"s": Description(Identity(), {(Kind.TOOL, "a"): entry(Kind.TOOL, b'{"name":"a","description":"d"}')})}
)


def settings_of(folder: Path, text: str) -> LockSettings | None:
    file = folder / "hookproxy.toml"
    file.write_text(text)
    return load(str(file), (), None, {"HOME": str(folder)}, str(folder)).settings.lock


def test_a_file_beside_the_configuration_is_found_once_it_exists(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "") is None
    (tmp_path / "hookproxy.lock").write_text(LOCK)
    assert settings_of(tmp_path, "") == LockSettings(
        str(tmp_path / "hookproxy.lock"), LOCK.encode(), config=str(tmp_path / "hookproxy.toml")
    )


def test_a_table_names_another_file_and_says_what_follows(tmp_path: Path) -> None:
    (tmp_path / "x.lock").write_text(LOCK)
    text = '[lock]\nfile = "x.lock"\non_change = "deny"\nhidden_text = "withhold"'
    assert settings_of(tmp_path, text) == LockSettings(
        str(tmp_path / "x.lock"), LOCK.encode(), "deny", hidden_text="withhold", config=str(tmp_path / "hookproxy.toml")
    )


def test_a_file_that_is_to_be_created_may_be_missing(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "[lock]\ncreate = true") == LockSettings(
        str(tmp_path / "hookproxy.lock"), create=True, config=str(tmp_path / "hookproxy.toml")
    )


@pytest.mark.parametrize(
    ("lock", "text", "problem"),
    [
        (None, "[lock]", "there is no file"),
        (LOCK.replace('"d"', '"e"'), "", "hookproxy.lock:1"),
        ("{}", "", "hookproxy.lock:1"),
        (LOCK.replace('"hookproxy_lock": 1', '"hookproxy_lock": 2'), "", "hookproxy.lock:2"),
        (LOCK[:-9], "[lock]", "hookproxy.lock"),
        ("", "[lock]\ncreate = true", "hookproxy.lock"),
        (LOCK, '[lock]\non_change = "allow"', "lock.on_change"),
        (LOCK, "[lock]\nonchange = 1", "lock.onchange: unknown key"),
    ],
)
def test_a_file_or_a_table_that_cannot_be_used_stops_the_start(
    tmp_path: Path, lock: str | None, text: str, problem: str
) -> None:
    if lock is not None:
        (tmp_path / "hookproxy.lock").write_text(lock)
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, text)
    assert problem in str(caught.value)
    assert caught.value.hint


def test_a_link_to_nothing_and_a_folder_are_told(tmp_path: Path) -> None:
    lock = tmp_path / "hookproxy.lock"
    lock.symlink_to(tmp_path / "nothing")
    with pytest.raises(ConfigError, match=r"hookproxy\.lock"):
        settings_of(tmp_path, "")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(ConfigError, match="is not a file"):
        settings_of(tmp_path, "")


def test_a_file_that_others_can_change_is_not_used(tmp_path: Path) -> None:
    lock = tmp_path / "hookproxy.lock"
    lock.write_text(LOCK)
    lock.chmod(0o666)
    with pytest.raises(ConfigError, match="can be changed by everybody"):
        settings_of(tmp_path, "")


@pytest.mark.parametrize(
    ("group", "members", "is_used"),
    [("me", [], True), ("me", ["me"], True), ("me", ["me", "eve"], False), ("users", [], False), (None, [], False)],
)
def test_a_file_that_its_group_can_change_is_used_only_if_that_is_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str | None, members: list[str], is_used: bool
) -> None:
    def found(_id: int) -> object:
        if group is None:
            raise KeyError
        return SimpleNamespace(gr_name=group, gr_mem=members)

    monkeypatch.setattr("grp.getgrgid", found)
    monkeypatch.setattr("pwd.getpwuid", lambda _id: SimpleNamespace(pw_name="me"))
    lock = tmp_path / "hookproxy.lock"
    lock.write_text(LOCK)
    lock.chmod(0o664)
    if is_used:
        assert settings_of(tmp_path, "") is not None
        return
    with pytest.raises(ConfigError, match="can be changed by other accounts of its group") as error:
        settings_of(tmp_path, "")
    assert error.value.hint == f"chmod g-w {lock}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_account_is_not_used(tmp_path: Path) -> None:
    lock = tmp_path / "hookproxy.lock"
    lock.write_text(LOCK)
    os.chown(lock, 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to another account"):
        settings_of(tmp_path, "")


@pytest.mark.parametrize(
    ("mode", "problem"),
    [(0o777, "everybody"), (0o1777, ""), (0o755, ""), (0o775, "group"), (0o1775, "")],
)
@pytest.mark.parametrize("create", [False, True])
def test_a_folder_in_which_others_could_replace_the_file_stops_the_start(
    tmp_path: Path, mode: int, problem: str, *, create: bool
) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    if not create:
        (folder / "hookproxy.lock").write_text(LOCK)
    os.chown(
        folder, -1, next(gid for gid in (12345, *os.getgroups(), os.getgid()) if os.geteuid() == 0 or gid != 12345)
    )
    folder.chmod(mode)
    text = f'[lock]\nfile = "locks/hookproxy.lock"\ncreate = {str(create).lower()}'
    if not problem or (problem == "group" and os.geteuid()):
        assert settings_of(tmp_path, text) is not None
        return
    with pytest.raises(ConfigError, match=f"locks, which .*{problem}"):
        settings_of(tmp_path, text)


def test_a_folder_above_that_everybody_can_change_stops_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "open" / "mine"
    folder.mkdir(parents=True)
    (folder / "hookproxy.lock").write_text(LOCK)
    folder.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="open, which can be changed by everybody"):
        settings_of(folder, "")
