"""From the source into force: what fails changes nothing, and what the administrator goes back to stays."""

# ruff: noqa: ASYNC221, ASYNC240  # short commands, and small files on a local disk
from __future__ import annotations

import json
import os
import ssl
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookproxy.bundles import make, store
from hookproxy.bundles.store import State, Store, verified_bundle
from hookproxy.bundles.update import keys_of, read_file, refresh, resume, roll_back
from hookproxy.files.folder_use import FolderUse
from hookproxy.model.errors import UserError
from hookproxy.model.policy_source import PolicySource
from tests.support.http_server import Request, serving
from tests.support.signed_policy import bundle, new_key, packed, source

KEY, OTHER = new_key(), new_key()


class Publisher:
    """A web server with one bundle, and the machine that fetches it."""

    def __init__(self, port: int, folder: Path) -> None:
        self.policy = source(str(folder), f"http://127.0.0.1:{port}/{{ring}}", KEY)
        self.files: dict[str, bytes] = {}
        self.store = Store(str(folder))
        self.tried: list[str] = []
        self.problem = ""
        self.etag = ""

    @property
    def state(self) -> State:
        return self.store.state()

    @property
    def version(self) -> int:
        """Of the policy in force, all of it as it was signed."""
        current = self.state.current
        assert current is not None
        verified, _ = verified_bundle(self.store.path_of(current.digest), read_file, keys_of(self.policy))
        assert verified.manifest.version == current.version
        return current.version

    def try_bundle(self, folder: str) -> None:
        self.tried.append(folder)
        if self.problem:
            raise UserError(self.problem, "repair it")

    async def take(self, files: dict[str, bytes] | None = None, **changes: object) -> int | None:
        """The version that was taken; None: there was nothing new."""
        if files is not None:
            self.files = files
        if changes:
            self.policy = replace(self.policy, **changes)
        taken = await refresh(self.policy, self.try_bundle, {})
        return None if taken is None else taken.version

    async def refused(self, files: dict[str, bytes]) -> str:
        with pytest.raises(UserError) as caught:
            await self.take(files)
        return caught.value.message


@pytest.fixture
async def publisher(tmp_path: Path) -> AsyncIterator[Publisher]:
    async def respond(request: Request) -> None:
        if made.etag and request.headers.get("if-none-match") == made.etag:
            await request.json(b"", "304 Not Modified")
        else:
            await request.json(packed(made.files), extra=f"ETag: {made.etag}\r\n" if made.etag else "")

    async with serving(respond) as server:
        made = Publisher(server.port, tmp_path / "state")
        yield made


async def test_a_new_version_is_unpacked_for_reading_only_and_is_in_force(publisher: Publisher) -> None:
    files = bundle(KEY, 4, files={"guards/a.sh": b"#!/bin/sh\n"}, executable=frozenset({"guards/a.sh"}))
    assert await publisher.take(files) == 4
    assert publisher.version == 4
    folder = Path(publisher.tried[0])
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(files)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes["a.sh"] == modes["guards"] == modes[folder.name] == 0o555
    assert modes["policy.toml"] == 0o444
    assert await publisher.take() is None
    assert len(publisher.tried) == 1


async def test_what_is_refused_leaves_the_last_good_one_and_says_why(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 4))
    for files, why in (
        (bundle(OTHER, 5), "is not signed by one of the keys"),
        (bundle(KEY, 3), "version 3 is older than version 4"),
        (bundle(KEY, 4, files={"a": b""}), "another content"),
        (bundle(KEY, 5, seconds=-5), "version 5 has expired"),
        (bundle(KEY, 5, rings=["canary"]), "for the ring canary"),
        ({**bundle(KEY, 5), "policy.toml": b""}, "is not the file that"),
    ):
        assert why in await publisher.refused(files)
        assert publisher.version == 4
        assert why in publisher.state.failure
    assert publisher.state.failures == 6
    assert len(publisher.tried) == 1
    assert await publisher.take(bundle(KEY, 5)) == 5
    assert publisher.state.failure == ""
    assert publisher.state.failures == 0


async def test_a_policy_that_does_not_work_here_is_not_taken_and_leaves_nothing(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 4))
    publisher.problem = "policy.toml:3: there is no key dney"
    assert "version 5 is refused, because it does not work here: policy.toml:3" in await publisher.refused(
        bundle(KEY, 5)
    )
    assert publisher.version == 4
    assert len(os.listdir(Path(publisher.store.folder, "bundles"))) == 1
    publisher.problem = ""
    assert await publisher.take() == 5


async def test_a_source_that_is_away_leaves_the_last_good_one(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 4))
    publisher.policy = replace(publisher.policy, source="http://127.0.0.1:1/x")
    with pytest.raises(UserError, match="nothing listens there") as caught:
        await publisher.take()
    assert "the last good policy stays in force" in caught.value.hint
    assert publisher.version == 4


async def test_what_was_changed_on_the_disk_is_repaired(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 4))
    path = Path(publisher.tried[0], "policy.toml")
    path.parent.chmod(0o755)
    path.unlink()
    path.write_text("# nothing is denied\n")
    assert await publisher.take() == 4
    assert publisher.version == 4


@pytest.mark.parametrize("etag", ["", '"1"'])
async def test_what_is_gone_from_the_disk_comes_again_also_if_the_source_says_that_nothing_is_new(
    publisher: Publisher, etag: str
) -> None:
    publisher.etag = etag
    await publisher.take(bundle(KEY, 4))
    assert await publisher.take() is None
    folder = Path(publisher.tried[0])
    folder.rename(folder.with_name("gone"))
    assert await publisher.take() == 4
    assert publisher.version == 4


@pytest.mark.parametrize("etag", ["", '"1"'])
async def test_one_policy_for_two_rings_at_one_address_is_taken_when_the_ring_changes(
    publisher: Publisher, etag: str
) -> None:
    publisher.etag = etag
    await publisher.take(
        bundle(KEY, 4, rings=["stable", "canary"]), source=publisher.policy.source.removesuffix("{ring}")
    )
    assert await publisher.take(ring="canary") == 4
    assert publisher.state.current is not None
    assert publisher.state.current.ring == "canary"
    assert await publisher.take(ring="stable") == 4


async def test_rollback_is_the_administrators_act_and_stays_until_a_newer_version_or_resume(
    publisher: Publisher,
) -> None:
    for version in (1, 2, 3):
        await publisher.take(bundle(KEY, version))
    before, older = roll_back(publisher.policy, None, "root", publisher.try_bundle)
    assert (before.version, older.version, publisher.version) == (3, 2, 2)
    pinned = publisher.state.pinned
    assert pinned is not None
    assert (pinned.by, pinned.until) == ("root", 3)
    assert await publisher.take() is None  # the source still has version 3
    assert publisher.version == 2
    assert roll_back(publisher.policy, None, "root", publisher.try_bundle)[1].version == 1
    newest = resume(publisher.policy, "root", publisher.try_bundle)
    assert newest is not None
    assert (newest.version, publisher.version) == (3, 3)
    assert Store(publisher.store.folder).state().pinned is None
    assert resume(publisher.policy, "root", publisher.try_bundle) is None
    roll_back(publisher.policy, 1, "root", publisher.try_bundle)
    assert await publisher.take(bundle(KEY, 4)) == 4
    assert publisher.state.pinned is None
    events = [json.loads(line) for line in Path(publisher.store.folder, "history.jsonl").read_text().splitlines()]
    assert [(event["event"], event["version"], event["by"]) for event in events[3:]] == [
        ("rolled back", 2, "root"),
        ("rolled back", 1, "root"),
        ("resumed", 3, "root"),
        ("rolled back", 1, "root"),
        ("taken", 4, events[0]["by"]),
    ]


async def test_what_cannot_be_put_into_the_history_does_not_happen(publisher: Publisher) -> None:
    for version in (1, 2):
        await publisher.take(bundle(KEY, version))
    history = Path(publisher.store.folder, "history.jsonl")
    history.rename(history.with_name("away"))
    history.mkdir()
    with pytest.raises(UserError, match=r"history\.jsonl: cannot be written: Is a directory"):
        roll_back(publisher.policy, None, "anna", publisher.try_bundle)
    assert publisher.version == 2
    history.rmdir()
    roll_back(publisher.policy, None, "anna", publisher.try_bundle)
    assert publisher.version == 1
    history.unlink()
    history.mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        resume(publisher.policy, "anna", publisher.try_bundle)
    assert publisher.version == 1


async def test_rollback_does_not_open_the_way_for_an_older_version_of_the_source(publisher: Publisher) -> None:
    for version in (1, 2, 3):
        await publisher.take(bundle(KEY, version))
    roll_back(publisher.policy, 1, "root", publisher.try_bundle)
    assert "version 2 is older than version 3" in await publisher.refused(bundle(KEY, 2))


async def test_a_version_that_cannot_be_gone_back_to_is_said(publisher: Publisher) -> None:
    with pytest.raises(UserError, match="no policy was taken yet"):
        roll_back(publisher.policy, None, "root", publisher.try_bundle)
    await publisher.take(bundle(KEY, 2, seconds=1000))
    with pytest.raises(UserError, match="there is no older version in stable"):
        roll_back(publisher.policy, None, "root", publisher.try_bundle)
    await publisher.take(bundle(KEY, 3))
    with pytest.raises(UserError, match="no version 7 older than 3") as caught:
        roll_back(publisher.policy, 7, "root", publisher.try_bundle)
    assert caught.value.hint == "these are there: 2"
    publisher.policy = replace(publisher.policy, min_version=3)
    with pytest.raises(UserError, match="lower than min_version"):
        roll_back(publisher.policy, None, "root", publisher.try_bundle)
    assert publisher.version == 3


async def test_the_last_five_are_kept(publisher: Publisher) -> None:
    for version in range(1, 8):
        await publisher.take(bundle(KEY, version))
    assert [taken.version for taken in publisher.state.kept] == [7, 6, 5, 4, 3]
    assert len(os.listdir(Path(publisher.store.folder, "bundles"))) == 5


async def test_what_somebody_uses_is_kept_until_nobody_does(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 1))
    current = publisher.state.current
    assert current is not None
    used = publisher.store.path_of(current.digest)
    use = FolderUse(used)
    for version in range(2, 9):
        await publisher.take(bundle(KEY, version))
    assert Path(used, "policy.toml").is_file()
    del use
    await publisher.take(bundle(KEY, 9))
    assert not Path(used).exists()
    assert len(os.listdir(Path(publisher.store.folder, "bundles"))) == 5


async def test_of_what_is_used_for_ever_so_many_are_kept(publisher: Publisher) -> None:
    uses = []
    for version in range(1, 8):
        await publisher.take(bundle(KEY, version))
        current = publisher.state.current
        assert current is not None
        uses.append(FolderUse(publisher.store.path_of(current.digest)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_MOST_USED", 1)
        await publisher.take(bundle(KEY, 8))
    assert len(os.listdir(Path(publisher.store.folder, "bundles"))) == 6
    assert FolderUse("/no/such/folder") == uses[0]


async def test_rings_have_versions_of_their_own(publisher: Publisher) -> None:
    rings = ["stable", "canary"]
    assert await publisher.take(bundle(KEY, 9, rings=rings), ring="canary") == 9
    assert await publisher.take(bundle(KEY, 7, rings=rings), ring="stable") == 7
    publisher.policy = replace(publisher.policy, ring="canary")
    assert "version 8 is older than version 9" in await publisher.refused(bundle(KEY, 8, rings=rings))


async def test_a_lost_memory_is_bounded_by_min_version(publisher: Publisher, tmp_path: Path) -> None:
    await publisher.take(bundle(KEY, 9))
    publisher.store = Store(str(tmp_path / "anew"))
    publisher.policy = replace(publisher.policy, folder=publisher.store.folder, min_version=9)
    assert "version 8 is lower than min_version, 9" in await publisher.refused(bundle(KEY, 8))
    assert await publisher.take(bundle(KEY, 9)) == 9


async def test_a_dropped_key_signs_nothing_more_until_the_administrator_says_otherwise(publisher: Publisher) -> None:
    statement = make.key_statement({}, [OTHER.public], KEY)
    assert await publisher.take(bundle(OTHER, 2, files=statement)) == 2
    assert "lacks a statement of keys" in await publisher.refused(bundle(KEY, 3))
    both = (KEY.public.line, OTHER.public.line)
    assert await publisher.take(bundle(KEY, 3), keys=both) == 3


async def test_a_key_that_has_published_the_highest_version_there_is_can_be_replaced(publisher: Publisher) -> None:
    assert await publisher.take(bundle(KEY, 2**53, rings=["stable", "canary"])) == 2**53
    assert "is older than version" in await publisher.refused(bundle(KEY, 4))
    statement = make.key_statement({}, [OTHER.public], KEY)
    assert await publisher.take(bundle(OTHER, 4, files=statement)) == 4
    assert "version 3 is older than version 4" in await publisher.refused(bundle(OTHER, 3, files=statement))
    assert await publisher.take(bundle(OTHER, 5, files=statement)) == 5


async def test_in_each_ring_the_versions_of_a_new_key_begin_anew(publisher: Publisher) -> None:
    highest = bundle(KEY, 2**53, rings=["stable", "canary"])
    assert await publisher.take(highest, ring="canary") == 2**53
    assert await publisher.take(highest, ring="stable") == 2**53
    replaced = bundle(OTHER, 4, rings=["stable", "canary"], files=make.key_statement({}, [OTHER.public], KEY))
    assert await publisher.take(replaced) == 4
    assert await publisher.take(ring="canary") == 4
    assert "version 3 is older" in await publisher.refused(
        bundle(OTHER, 3, rings=["canary"], files=make.key_statement({}, [OTHER.public], KEY))
    )


async def test_a_new_statement_puts_back_nothing_that_a_key_of_before_has_signed(publisher: Publisher) -> None:
    assert await publisher.take(bundle(KEY, 9)) == 9
    both = make.key_statement({}, [KEY.public, OTHER.public], KEY)
    assert "version 8 is older than version 9" in await publisher.refused(bundle(KEY, 8, files=both))
    dropped = both | make.key_statement(both, [OTHER.public], KEY)
    again = dropped | make.key_statement(dropped, [KEY.public], OTHER)
    assert "version 8 is older than version 9" in await publisher.refused(bundle(KEY, 8, files=again))


async def test_other_keys_of_the_administrator_alone_put_nothing_back(publisher: Publisher) -> None:
    assert await publisher.take(bundle(KEY, 9)) == 9
    publisher.policy = replace(publisher.policy, keys=(OTHER.public.line,))
    statement = make.key_statement({}, [KEY.public], OTHER)
    assert "version 8 is older than version 9" in await publisher.refused(bundle(KEY, 8, files=statement))


async def test_a_mark_that_was_guessed_holds_back_a_version_for_an_hour_at_most(publisher: Publisher) -> None:
    publisher.etag = '"of-the-next-one"'
    assert await publisher.take(bundle(KEY, 1)) == 1
    assert await publisher.take(bundle(KEY, 2)) is None, "the server says that it is known"
    for came in (time.time() - 3601, time.time() + 3601):
        with publisher.store.locked():
            publisher.store.write(replace(publisher.state, came=came))
        assert await publisher.take() == publisher.version
        publisher.files = bundle(KEY, publisher.version + 1)


async def test_a_state_that_cannot_be_read_is_not_taken_for_none(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 9))
    for text in ("", "{", '{"format":2}', "[" * 100_000):
        Path(publisher.store.folder, "state.json").write_text(text)
        with pytest.raises(UserError, match="is not the state of a policy") as caught:
            await publisher.take(bundle(KEY, 1))
        assert "min_version" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "json.py").write_text("import os"),
        lambda folder: (folder / "policy.toml").write_text(""),
        lambda folder: (folder / "policy.toml").unlink(),
        lambda folder: (folder / "more").symlink_to("/etc"),
        lambda folder: os.rename(folder / "manifest.json.sig", folder / "keys"),
    ],
)
async def test_a_bundle_that_was_changed_is_not_used(publisher: Publisher, change: Callable[[Path], object]) -> None:
    await publisher.take(bundle(KEY, 9))
    folder = Path(publisher.tried[0])
    folder.chmod(0o755)
    (folder / "policy.toml").chmod(0o644)
    change(folder)
    with pytest.raises(ValueError, match=r"."):
        verified_bundle(str(folder), read_file, keys_of(publisher.policy))


async def test_a_good_bundle_in_the_folder_of_another_is_not_used(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 1))
    await publisher.take(bundle(KEY, 2))
    old, new = map(Path, publisher.tried)
    os.rename(new, new.with_name("away"))
    os.rename(old, new)
    with pytest.raises(ValueError, match="another one than the name of its folder"):
        verified_bundle(str(new), read_file, keys_of(publisher.policy))


async def test_compiled_modules_are_removed_before_a_bundle_is_used(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 1))
    folder = Path(publisher.tried[0])
    folder.chmod(0o755)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "guard.cpython-311.pyc").write_bytes(b"evil")
    verified_bundle(str(folder), read_file, keys_of(publisher.policy))
    assert not (folder / "__pycache__").exists()


async def test_a_credential_that_cannot_be_used_is_named_and_not_shown(publisher: Publisher, tmp_path: Path) -> None:
    publisher.policy = replace(publisher.policy, credential=str(tmp_path / "token"))
    with pytest.raises(UserError, match=r"token: cannot be read"):
        await publisher.take(bundle(KEY, 1))
    (tmp_path / "token").write_text("secret\nX-Evil: 1\n")
    with pytest.raises(UserError, match="in one line") as caught:
        await publisher.take()
    assert "secret" not in str(caught.value)
    (tmp_path / "token").write_text("secret\n")
    assert await publisher.take() == 1


async def test_over_https_only_a_server_with_a_certificate_that_is_trusted_is_believed(tmp_path: Path) -> None:
    for name in ("own", "other"):
        names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost"]
        made = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ]
        files = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        subprocess.run([*made, *names, *files], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "own.pem", tmp_path / "own.key")
    data = packed(bundle(KEY, 1))

    async def respond(request: Request) -> None:
        await request.json(data)

    async with serving(respond, tls) as server:
        policy = source(str(tmp_path / "kept"), f"https://localhost:{server.port}/p", KEY)
        for ca, why in (
            ("", r"certificate verify failed: self-signed certificate \(policy\.ca names a file"),
            ("other.pem", "certificate verify failed"),
            ("own.key", r"policy\.ca: .*own\.key: it cannot be used"),
            ("nothing", r"policy\.ca: .*nothing: No such file"),
        ):
            with pytest.raises(UserError, match=why):
                await refresh(replace(policy, ca=str(tmp_path / ca) if ca else ""), lambda _folder: None, {})
        assert not server.requests
        taken = await refresh(replace(policy, ca=str(tmp_path / "own.pem")), lambda _folder: None, {})
        assert taken is not None
        assert taken.version == 1


async def test_when_the_source_was_asked_is_remembered(publisher: Publisher) -> None:
    await publisher.take(bundle(KEY, 1))
    first = publisher.state.checked
    assert abs(time.time() - first) < 60
    await publisher.take()
    assert publisher.state.checked > first


def test_a_policy_source_has_keys() -> None:
    policy: PolicySource = source("/x", "https://p.example/x", KEY, OTHER)
    assert keys_of(policy) == [KEY.public, OTHER.public]
