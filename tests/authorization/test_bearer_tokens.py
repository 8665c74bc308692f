"""The tokens in force: a change of their file holds at once, if the file can be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.authorization.token_file import create_token, digest_of, revoke_tokens
from hookproxy.model.errors import ConfigError
from hookproxy.model.principal import Principal


class File:
    """A token file, and the tokens in force from it."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o700)
        self.path = folder / "tokens"
        self.time = 1000.0
        self.clock = 5.0
        self.reports: list[str] = []
        self.first = self.new("alice", "dev")
        self.tokens = BearerTokens(str(self.path), self.reports.append, now=lambda: self.time, clock=lambda: self.clock)

    def new(self, user: str, *groups: str, days: float | None = None) -> str:
        return create_token(str(self.path), user, groups, days, "", self.time)[0]

    def owner(self, token: str) -> str | None:
        known = self.tokens.find(token.encode())
        return None if known is None or self.tokens.is_expired(known) else known.principal.name


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


def test_a_token_names_its_user_and_groups_and_nothing_of_itself(file: File) -> None:
    known = file.tokens.find(file.first.encode())
    assert known is not None
    assert known.principal == Principal("token:alice", "alice", ("dev",))
    assert file.first not in repr(known)


def test_two_tokens_of_a_user_are_the_same_principal(file: File) -> None:
    known = [file.tokens.find(token.encode()) for token in (file.first, file.new("alice"))]
    assert {one.principal.id for one in known if one} == {"token:alice"}


@pytest.mark.parametrize(
    "change", [str.upper, lambda text: text + " ", lambda text: text[:-1], lambda _: "hkp_", lambda _: ""]
)
def test_another_text_is_no_token(file: File, change: object) -> None:
    assert callable(change)
    assert file.owner(change(file.first)) is None


def test_a_new_token_is_accepted_at_once_and_a_revoked_one_refused_within_10_ms(file: File) -> None:
    second = file.new("bob")
    assert file.owner(second) == "bob"
    revoke_tokens(str(file.path), "bob")
    file.clock += 0.01
    assert file.owner(second) is None
    assert file.owner(file.first) == "alice"
    assert file.owner(file.new("carol")) == "carol"


def test_a_token_that_another_gateway_has_revoked_is_refused_although_the_file_has_it(file: File) -> None:
    assert file.owner(file.first) == "alice"
    file.tokens.refuse({digest_of(file.first.encode())})
    assert file.owner(file.first) is None
    assert file.owner(file.new("bob")) == "bob"


def test_a_revoked_token_is_known_as_revoked_also_after_a_restart(file: File) -> None:
    revoke_tokens(str(file.path), "alice")
    file.tokens.refresh()
    again = BearerTokens(str(file.path), file.reports.append)
    for tokens in (file.tokens, again):
        assert tokens.revoked == {digest_of(file.first.encode())}
        assert tokens.find(file.first.encode()) is None


def test_a_token_ends_at_its_time_without_a_change_of_the_file(file: File) -> None:
    token = file.new("bob", days=1)
    file.time += 86_399.9
    assert file.owner(token) == "bob"
    file.time += 0.1
    assert file.owner(token) is None


@pytest.mark.parametrize("fault", ["link", "line", "gone", "writable", "folder"])
def test_an_unusable_file_changes_nothing_and_is_reported_once(file: File, fault: str, tmp_path: Path) -> None:
    match fault:
        case "link":
            os.rename(file.path, tmp_path / "moved")
            os.symlink(tmp_path / "moved", file.path)
        case "line":
            file.path.write_text("nonsense\n")
        case "gone":
            file.path.unlink()
        case "writable":
            file.path.chmod(0o666)
        case _:
            tmp_path.chmod(0o777)
            file.path.touch()
    for _ in range(3):
        assert file.owner(file.first) == "alice"
        file.clock += 1
    assert len(file.reports) == 1
    assert "the tokens that were read before stay in force" in file.reports[0]


def test_a_file_that_is_right_again_is_in_force_again(file: File) -> None:
    good = file.path.read_text()
    file.path.write_text("nonsense\n")
    file.clock += 0.01
    assert file.owner(file.first) == "alice"
    file.path.write_text(f"# only bob\n{good.replace('alice', 'bob')}")
    file.clock += 0.01
    assert file.owner(file.first) == "bob"


def test_a_file_that_cannot_be_used_for_a_while_is_tried_again_without_another_change(
    file: File, tmp_path: Path
) -> None:
    token = file.new("bob")
    assert file.owner(token) == "bob"
    revoke_tokens(str(file.path), "bob")
    tmp_path.chmod(0o777)
    file.clock += 0.01
    assert file.owner(token) == "bob"
    tmp_path.chmod(0o700)
    file.clock += 0.01
    assert file.owner(token) == "bob"
    file.clock += 1
    assert file.owner(token) is None
    assert len(file.reports) == 1


def test_an_empty_file_revokes_all(file: File) -> None:
    file.path.write_text("")
    assert file.owner(file.first) is None


def test_a_file_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        BearerTokens(str(tmp_path / "tokens"), lambda _: None)


def test_a_file_that_everybody_can_read_is_used_with_a_warning(file: File) -> None:
    file.path.chmod(0o644)
    assert file.owner(file.first) == "alice"
    assert file.reports == [f"{file.path}: everybody can read who has tokens (chmod o-r {file.path})"]
