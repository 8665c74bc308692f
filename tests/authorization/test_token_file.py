"""The token file: what a line says, who may change the file, and that no change is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.authorization import token_file
from hookproxy.authorization.token_file import TokenRecord, create_token, parse, read_tokens, revoke_tokens
from hookproxy.model.errors import ConfigError, UserError

NOW = 1_700_000_000.0
DIGEST = "sha256:" + "ab" * 32
LINE = f"0123abcd alice dev,ops 2026-11-23T08:00:00Z - {DIGEST}"


@pytest.fixture
def file(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path / "tokens")


def records(path: str) -> list[TokenRecord]:
    return list(read_tokens(path).records.values())


def test_a_token_has_256_random_bits_and_the_file_only_its_digest(file: str) -> None:
    token, record = create_token(file, "alice", ["dev"], 30, "laptop", NOW)
    other, _ = create_token(file, "alice", [], None, "", NOW)
    assert token != other
    assert token.startswith("hkp_")
    assert len(token) == len(other) == token_file.TOKEN_LENGTH
    text = Path(file).read_text()
    assert token not in text
    assert sha256(token.encode()).hexdigest() in text
    assert record == records(file)[0]
    assert (record.user, record.groups, record.created, record.expires) == ("alice", ("dev",), NOW, NOW + 30 * 86_400)


def test_a_new_file_is_readable_by_its_owner_only(file: str) -> None:
    create_token(file, "alice", [], None, "", NOW)
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert os.listdir(os.path.dirname(file)) == ["tokens"]


@pytest.mark.parametrize(("before", "after"), [(0o640, 0o640), (0o644, 0o640), (0o400, 0o600)], ids=oct)
def test_a_changed_file_keeps_who_may_read_it_except_everybody(file: str, before: int, after: int) -> None:
    create_token(file, "alice", [], None, "", NOW)
    os.chmod(file, before)
    create_token(file, "bob", [], None, "", NOW)
    assert os.stat(file).st_mode & 0o777 == after


def test_comments_and_lines_of_others_stay_as_they_are(file: str) -> None:
    before = f"# ours\n\n{LINE}   # note # of a person\n  # \x0b end"
    Path(file).write_text(before)
    _, record = create_token(file, "bob", [], None, "", NOW)
    assert Path(file).read_text() == f"{before}\n{record.line()}"
    assert revoke_tokens(file, "bob") == [record]
    assert Path(file).read_text() == f"{before}\n{replace(record, revoked=True).line()}"
    assert " revoked sha256:" in Path(file).read_text()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("0123abcd alice", "has 2 fields instead of 6"),
        (f"{LINE} more", "has 7 fields instead of 6"),
        (LINE.replace("0123abcd", "0123ABCD"), "its id is not 8 hexadecimal digits"),
        (LINE.replace("alice", "@alice"), "'@alice' is not the name of a user"),
        (LINE.replace("alice", "\u0430lice"), "is not the name of a user"),
        (LINE.replace("dev,ops", "dev,,ops"), "'' is not the name of a group"),
        (LINE.replace("dev,ops", "@dev"), "'@dev' is not the name of a group"),
        (LINE.replace("Z", ""), "2026-11-23T08:00:00 is not a time"),
        (LINE.replace("11-23", "13-23"), "2026-13-23T08:00:00Z is not a time"),
        (LINE.replace(" - ", " never "), "never is not a time"),
        (LINE.replace("sha256:", "md5:"), "has no digest"),
        (LINE[:-1], "has no digest"),
        (LINE, " of line 1"),
        (LINE.replace("0123abcd", "ffffffff"), " of line 1"),
    ],
)
def test_a_line_that_is_wrong_is_named(file: str, line: str, why: str) -> None:
    Path(file).write_text(f"{LINE}\n# comment\n{line}\n")
    with pytest.raises(ConfigError) as raised:
        read_tokens(file)
    assert raised.value.message.startswith(f"{file}:3: ")
    assert why in raised.value.message
    with pytest.raises(ConfigError):
        create_token(file, "bob", [], None, "", NOW)
    assert Path(file).read_text() == f"{LINE}\n# comment\n{line}\n"


def test_bytes_that_are_not_utf8_are_named_with_their_line(file: str) -> None:
    Path(file).write_bytes(LINE.encode() + b"\n# \xff\n")
    with pytest.raises(ConfigError, match=r":2: is not UTF-8"):
        read_tokens(file)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        parse("FILE", text)
    except ConfigError as error:
        assert error.message.startswith("FILE:")  # noqa: PT017  # no error is right as well


@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=3), st.text(max_size=20))
def test_what_is_written_can_be_read_again(note: str, groups: list[str], user: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        try:
            _, record = create_token(f"{folder}/tokens", user, groups, 1, note, NOW)
        except UserError:
            assert os.listdir(folder) == []
        else:
            assert records(f"{folder}/tokens") == [record]


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf"), 1e6])
def test_a_time_out_of_range_makes_no_token(file: str, days: float) -> None:
    with pytest.raises(UserError):
        create_token(file, "alice", [], days, "", NOW)
    assert not os.path.exists(file)


def test_a_token_is_revoked_by_its_id_or_with_all_of_its_user(file: str) -> None:
    made = [create_token(file, user, [], None, "", NOW)[1] for user in ("alice", "bob", "alice", "carol")]
    assert revoke_tokens(file, made[0].id) == [made[0]]
    assert revoke_tokens(file, "carol") == [made[3]]
    gone = [replace(one, revoked=True) for one in made]
    assert records(file) == [gone[0], made[1], made[2], gone[3]], "their lines stay, so that other gateways learn of it"
    with pytest.raises(UserError, match="has no token"):
        revoke_tokens(file, "carol")


def test_a_name_that_is_an_id_as_well_revokes_nothing(file: str) -> None:
    _, record = create_token(file, "alice", [], None, "", NOW)
    create_token(file, record.id, [], None, "", NOW)
    with pytest.raises(UserError, match="is the id of one token and the user of others"):
        revoke_tokens(file, record.id)
    assert len(records(file)) == 2


# --- who may change it ---


def test_a_link_is_not_followed(file: str, tmp_path: Path) -> None:
    create_token(str(tmp_path / "other"), "mallory", [], None, "", NOW)
    os.symlink(tmp_path / "other", file)
    before = (tmp_path / "other").read_bytes()
    for use in (lambda: read_tokens(file), lambda: create_token(file, "bob", [], None, "", NOW)):
        with pytest.raises(ConfigError, match="is a link, which is not followed"):
            use()
    assert (tmp_path / "other").read_bytes() == before
    assert os.path.islink(file)


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(0o700)
    os.symlink(tmp_path / "real", tmp_path / "link")
    with pytest.raises(ConfigError, match="is a link, which is not followed"):
        create_token(str(tmp_path / "link" / "tokens"), "bob", [], None, "", NOW)
    assert os.listdir(tmp_path / "real") == []


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777], ids=oct)
def test_nothing_is_read_or_written_in_a_folder_where_others_may_write(file: str, mode: int) -> None:
    create_token(file, "alice", [], None, "", NOW)
    os.chmod(os.path.dirname(file), mode)
    for use in (lambda: read_tokens(file), lambda: create_token(file, "bob", [], None, "", NOW)):
        with pytest.raises(ConfigError, match="is writable by others"):
            use()
    os.chmod(os.path.dirname(file), 0o700)
    assert [record.user for record in records(file)] == ["alice"]


@pytest.mark.parametrize("mode", [0o620, 0o602], ids=oct)
def test_a_file_that_others_may_write_is_not_used(file: str, mode: int) -> None:
    create_token(file, "alice", [], None, "", NOW)
    os.chmod(file, mode)
    for use in (lambda: read_tokens(file), lambda: revoke_tokens(file, "alice")):
        with pytest.raises(ConfigError, match="is writable by others"):
            use()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another account")
@pytest.mark.parametrize("place", ["file", "folder"])
def test_what_belongs_to_another_account_is_not_used(file: str, place: str) -> None:
    create_token(file, "alice", [], None, "", NOW)
    os.chown(file if place == "file" else os.path.dirname(file), 12_345, -1)
    with pytest.raises(ConfigError, match="belongs to another account"):
        read_tokens(file)


def test_a_pipe_is_not_waited_for(file: str) -> None:
    os.mkfifo(file, 0o600)
    with pytest.raises(ConfigError, match="is not a regular file"):
        read_tokens(file)


def test_a_folder_is_no_file(file: str) -> None:
    os.mkdir(file, 0o700)
    for use in (lambda: read_tokens(file), lambda: create_token(file, "bob", [], None, "", NOW)):
        with pytest.raises(ConfigError, match="is not a regular file"):
            use()


def test_a_file_that_is_not_there_has_no_tokens_to_list_or_revoke(file: str) -> None:
    for use in (lambda: read_tokens(file), lambda: revoke_tokens(file, "alice")):
        with pytest.raises(ConfigError, match="does not exist"):
            use()


@pytest.mark.slow
def test_many_who_change_the_file_at_once_lose_nothing(file: str) -> None:
    code = (
        "import sys; from hookproxy.authorization.token_file import create_token, revoke_tokens\n"
        "for number in range(20):\n"
        "    _, record = create_token(sys.argv[1], sys.argv[2], [], None, '', 0)\n"
        "    if number % 2: revoke_tokens(sys.argv[1], record.id)\n"
    )
    users = [f"user{number}" for number in range(4)]
    started = [subprocess.Popen([sys.executable, "-c", code, file, user]) for user in users]
    assert [process.wait() for process in started] == [0] * 4
    for revoked in (True, False):
        found = [record.user for record in records(file) if record.revoked is revoked]
        assert {user: found.count(user) for user in users} == dict.fromkeys(users, 10)
    assert os.listdir(os.path.dirname(file)) == ["tokens"]
