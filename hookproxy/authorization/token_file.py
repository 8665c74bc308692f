"""The file of bearer tokens: one record a line, with the SHA-256 of each token and never a token itself.

A token is 256 random bits. Nobody can find it by trying, so one SHA-256 is enough: the slow hashes of passwords protect
what people choose, and would cost 100 ms for each request here.

A line has these fields with blanks between them, and after ` # ` a note; lines that begin with `#` are comments:

    ID USER GROUPS CREATED EXPIRES sha256:DIGEST # NOTE

GROUPS has commas between them, or is `-`; times are as in RFC 3339, and EXPIRES is `-` if the token does not expire.
The line of a token that was revoked stays, with `revoked` as EXPIRES: other gateways learn of it.
Everybody who changes the file holds a lock on its folder, and replaces it atomically.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from io import StringIO
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..files.open_flags import READ_FILE
from ..files.replace import PRIVATE, replace_in_folder
from ..model.counts import counted
from ..model.errors import ConfigError, UserError, file_hint, not_written, printable
from ..processes import service

PREFIX: Final = "hkp_"
"""Each token begins so: scanners for leaked secrets find it, and it is not taken for a token of an issuer."""

_RANDOM_BYTES: Final = 32  # of a token: 256 bits
TOKEN_LENGTH: Final = len(PREFIX) + 43
"""Characters of a token: 32 bytes are 43 characters of base64."""

_HEADING: Final = "# Tokens of hookproxy: ID USER GROUPS CREATED EXPIRES sha256:DIGEST # NOTE\n"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@-]{0,127}")  # an account's name, or an address
_GROUP: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@:/-]{0,127}")  # no comma, and no `@` in front: that marks groups
_ID: Final = re.compile(r"[0-9a-f]{8}")
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")
_NONE: Final = "-"
REVOKED: Final = "revoked"
"""In the place of the time at which a token expires."""
_FIELDS: Final = 6  # of a line
_MAX_NOTE: Final = 200  # characters: it is one line of a list
_MAX_DAYS: Final = 36_500  # a hundred years: more is a mistake
_MAX_SIZE: Final = 16 * 1024 * 1024  # bytes: 100,000 tokens
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT_MODE: Final = 0o640  # what stays of an existing file's mode: its group may be that of the gateway's account
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_SYNTAX: Final = "each line is: ID USER GROUPS CREATED EXPIRES sha256:DIGEST # NOTE"


class TokenRecord(Struct, frozen=True):
    """What the file has of a token."""

    id: str
    user: str
    groups: tuple[str, ...]
    created: float
    """Seconds since 1970, as `expires`."""
    expires: float | None
    """None: never."""
    digest: bytes
    """The SHA-256 of the token's text."""
    note: str = ""
    revoked: bool = False
    """It was valid once."""

    def line(self) -> str:
        """The record as the file has it, with its line end."""
        expires = REVOKED if self.revoked else _NONE if self.expires is None else shown_time(self.expires)
        groups = ",".join(self.groups) or _NONE
        note = f" # {self.note}" if self.note else ""
        return f"{self.id} {self.user} {groups} {shown_time(self.created)} {expires} sha256:{self.digest.hex()}{note}\n"


class TokenFile(NamedTuple):
    """A token file as it was read."""

    lines: Sequence[str]
    """With their line ends."""
    records: dict[int, TokenRecord]
    """By the index of their lines."""
    owner: int
    group: int
    mode: int


def digest_of(token: bytes) -> bytes:
    """The digest under which a token is known."""
    return sha256(token).digest()


def shown_time(seconds: float) -> str:
    """A time as the file has it, in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- reading ---


def read_tokens(path: str) -> TokenFile:
    """Read the file. Raises ConfigError, with the line if one of them is wrong, also if others may change the file."""
    with _opened_folder(path) as (folder, name):
        file = _read(path, folder, name)
    if file is None:
        hint = f"hookproxy token new USER --file {path} makes it; an empty file accepts no token"
        raise ConfigError(path, "does not exist", hint)
    return file


def parse(path: str, text: str) -> dict[int, TokenRecord]:
    """The records in the text of a token file by the index of their lines. Raises ConfigError with the line."""
    records: dict[int, TokenRecord] = {}
    ids: dict[str, int] = {}
    digests: dict[bytes, int] = {}
    for index, line in enumerate(text.split("\n")):
        fields, _, note = line.partition("#")
        if not fields.strip():
            continue
        where = f"{path}:{index + 1}"
        record = _record(where, fields.split(), note.strip())
        for what, first in (
            ("id", ids.setdefault(record.id, index)),
            ("token", digests.setdefault(record.digest, index)),
        ):
            if first != index:
                raise ConfigError(where, f"has the {what} of line {first + 1}", "remove one of the two lines")
        records[index] = record
    return records


def _record(where: str, fields: Sequence[str], note: str) -> TokenRecord:
    if any(field.startswith(PREFIX) for field in fields):
        hint = f"remove the line: hookproxy token new USER --file {where.rpartition(':')[0]} makes another token"
        raise ConfigError(where, "has a token itself, which only its user may have", hint)
    if len(fields) != _FIELDS:
        raise ConfigError(where, f"has {counted(len(fields), 'field')} instead of {_FIELDS}", _SYNTAX)
    token_id, user, groups, created, expires, digest = fields
    if not _ID.fullmatch(token_id):
        raise ConfigError(where, "its id is not 8 hexadecimal digits", _SYNTAX)
    matched = _DIGEST.fullmatch(digest)
    if matched is None:
        raise ConfigError(where, "has no digest of the form sha256: and 64 hexadecimal digits", _SYNTAX)
    try:
        names = () if groups == _NONE else tuple(map(_checked_group, groups.split(",")))
        return TokenRecord(
            token_id,
            _checked_user(user),
            names,
            _seconds(created),
            None if expires in (_NONE, REVOKED) else _seconds(expires),
            bytes.fromhex(matched[1]),
            note,
            expires == REVOKED,
        )
    except UserError as error:
        raise ConfigError(where, error.message, error.hint) from None


def _seconds(text: str) -> float:
    hint = "a time is written as 2026-11-23T08:00:00Z"
    if not _TIME.fullmatch(text):
        raise UserError(f"{printable(text)} is not a time", hint)
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise UserError(f"{printable(text)} is not a time", hint) from None


def _checked_user(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UserError(f"{printable(name)!r} is not the name of a user", "letters, digits and . _ + @ -, at most 128")
    return name


def _checked_group(name: str) -> str:
    if not _GROUP.fullmatch(name):
        hint = "letters, digits and . _ + @ : / -, at most 128; without @ in front"
        raise UserError(f"{printable(name)!r} is not the name of a group", hint)
    return name


# --- changing ---


def create_token(
    path: str, user: str, groups: Sequence[str], days: float | None, note: str, now: float
) -> tuple[str, TokenRecord]:
    """Make a token, and add its record to the file, which is made if it does not exist. The token and its record.

    `days` from `now` (seconds since 1970) on it is valid; None: until it is revoked. Raises UserError, and nothing is
    changed then.
    """
    if days is not None and not 0 < days <= _MAX_DAYS:
        raise UserError(f"--expires {days:g}: is out of range", f"days above 0, at most {_MAX_DAYS}")
    if not note.isprintable() or len(note) > _MAX_NOTE:
        raise UserError("the note cannot be stored", f"one line of at most {_MAX_NOTE} characters")
    token = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    expires = None if days is None else now + timedelta(days=days).total_seconds()
    names = tuple(dict.fromkeys(map(_checked_group, groups)))
    new = TokenRecord("", _checked_user(user), names, now, expires, digest_of(token.encode()), note.strip())
    made: list[TokenRecord] = []

    def with_new(before: TokenFile | None) -> str:
        known = {record.id for record in before.records.values()} if before else set[str]()
        token_id = next(fresh for fresh in iter(lambda: secrets.token_hex(4), "") if fresh not in known)
        made.append(replace(new, id=token_id))
        text = "".join(before.lines) if before else _HEADING
        return text + ("" if text.endswith("\n") or not text else "\n") + made[0].line()

    _change(path, with_new)
    return token, made[0]


def revoke_tokens(path: str, user_or_id: str) -> list[TokenRecord]:
    """Revoke the token with this id, or all tokens of this user. Other lines stay as they are.

    Returns what was revoked. Raises UserError, also if there is none or if it may be a user as well as an id.
    """
    revoked: list[TokenRecord] = []

    def without(before: TokenFile | None) -> str:
        if before is None:
            raise ConfigError(path, "does not exist", "name the file that the gateway's configuration names as tokens")
        valid = {index: record for index, record in before.records.items() if not record.revoked}
        by_id = {index for index, record in valid.items() if record.id == user_or_id}
        by_user = {index for index, record in valid.items() if record.user == user_or_id}
        if by_id - by_user and by_user - by_id:
            hint = f"revoke each by its id: hookproxy token list --file {path}"
            raise UserError(f"{user_or_id} is the id of one token and the user of others", hint)
        gone = by_id | by_user
        if not gone:
            hint = f"hookproxy token list --file {path} shows all"
            raise UserError(f"{printable(user_or_id)}: has no token in {path}", hint)
        revoked.extend(valid[index] for index in sorted(gone))
        return "".join(
            replace(valid[index], revoked=True).line() if index in gone else line
            for index, line in enumerate(before.lines)
        )

    _change(path, without)
    return revoked


def _change(path: str, edit: Callable[[TokenFile | None], str]) -> None:
    """Replace the file's text by what `edit` makes of it, while nobody else changes it. Raises UserError."""
    with _opened_folder(path) as (folder, name):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
        except OSError as error:
            raise not_written(path, error, "cannot be locked") from None
        before = _read(path, folder, name)
        text = edit(before)
        parse(path, text)  # what could not be read again is never written
        try:
            _replace(folder, name, text.encode(), before)
        except OSError as error:
            raise not_written(path, error) from None


def _replace(folder: int, name: str, data: bytes, before: TokenFile | None) -> None:
    """Replace the file in the open folder. It keeps its owner, its group, and who may read it."""

    def keep_access(fd: int) -> None:
        if before is not None:
            os.fchown(fd, before.owner, before.group)
            os.fchmod(fd, before.mode & _KEPT_MODE | PRIVATE)

    replace_in_folder(folder, name, data, keep_access)


# --- who may change it ---


@contextmanager
def _opened_folder(path: str) -> Iterator[tuple[int, str]]:
    """Open the folder of the file, and the file's name in it. Raises ConfigError if others may write in the folder."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        fd = os.open(folder, _FOLDER)
    except OSError as error:
        if os.path.islink(folder):
            raise ConfigError(folder, "is a link, which is not followed", "name the folder itself") from None
        raise not_written(folder, error, "cannot be used") from None
    try:
        _check_writers(folder, os.fstat(fd))
        yield fd, name
    finally:
        os.close(fd)


def _unreadable_hint(path: str, error: OSError) -> str:
    if error.errno == errno.EACCES:
        return f"the gateway's account must be able to read it: {service.how_to_let_read(path)}"
    return file_hint(path, error)


def _read(path: str, folder: int, name: str) -> TokenFile | None:
    """The file in the open folder; None if there is none. Raises ConfigError."""
    try:
        fd = os.open(name, READ_FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError(path, "is a link, which is not followed", "name the file itself") from None
        raise ConfigError(path, f"cannot be read: {error.strerror}", _unreadable_hint(path, error)) from None
    try:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode):
            raise ConfigError(path, "is not a regular file", "name a regular file")
        _check_writers(path, state)
        with open(fd, "rb", closefd=False) as file:
            raw = file.read(_MAX_SIZE + 1)
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    finally:
        os.close(fd)
    if len(raw) > _MAX_SIZE:
        raise ConfigError(path, f"is larger than {_MAX_SIZE} bytes", "remove the tokens that have expired")
    try:
        text = raw.decode("utf-8-sig")  # editors on Windows put a mark before it
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}", "is not UTF-8", "correct this line") from None
    return TokenFile(
        StringIO(text).readlines(),
        parse(path, text),
        state.st_uid,
        state.st_gid,
        stat.S_IMODE(state.st_mode),
    )


def _check_writers(place: str, state: os.stat_result) -> None:
    """Raise ConfigError if somebody else than root and this account could have written it, or may write it."""
    if state.st_uid not in (0, os.geteuid()):
        hint = "run this as the account that it belongs to, or as one whose files it may be"
        raise ConfigError(place, "belongs to another account, so its tokens cannot be trusted", hint)
    if state.st_mode & _OTHERS_WRITE:
        hint = f"check which tokens it has, then: chmod go-w {place}"
        raise ConfigError(place, "is writable by others, so its tokens cannot be trusted", hint)
