"""When an audit is signed: after so many lines, after some time, at the end; by several processes; on a full disk."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from hookproxy.audit import sealer
from hookproxy.audit.call_record import Record
from hookproxy.audit.checkpoints import SIGNED, read
from hookproxy.audit.log import Audit, file_options
from hookproxy.audit.sealer import Sealer
from hookproxy.model.settings import Settings
from tests.support.signed_audit import SignedAudit, forged


@pytest.fixture
def audit(tmp_path: Path) -> SignedAudit:
    return SignedAudit(tmp_path)


def record(number: int = 1, arguments: bytes = b"{}") -> Record:
    return Record("s", "files", "read", b"1", arguments, call=f"abc123-{number}")


def audit_of(audit: SignedAudit, **settings: object) -> Audit:
    return Audit(replace(audit.settings, **settings))


def signed_lines(audit: SignedAudit) -> list[int]:
    return [one.lines for one in audit.checkpoints()]


class Copies:
    """Waits until a checkpoint is in the audit's copy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._kept = threading.Semaphore(0)
        keep = Sealer._keep_copy

        def notice(own: Sealer, signed: object) -> None:
            keep(own, signed)  # type: ignore[arg-type]  # it is what it got
            self._kept.release()

        monkeypatch.setattr(Sealer, "_keep_copy", notice)

    def wait(self) -> None:
        assert self._kept.acquire(timeout=30)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Copies:
    return Copies(monkeypatch)


def test_an_audit_signs_what_it_has_written_when_it_is_closed(audit: SignedAudit) -> None:
    written = audit_of(audit)
    written.write(record())
    written.write(record(2))
    written.close()
    assert signed_lines(audit) == [2]
    assert audit.check().problems == []
    assert audit.check().closed
    assert not sealer._SHARED


def test_an_audit_that_has_written_nothing_signs_nothing(audit: SignedAudit) -> None:
    written = audit_of(audit)
    assert not written.failure()
    written.close()
    assert audit.lines() == []


def test_after_so_many_lines_a_checkpoint_is_written(audit: SignedAudit, copies: Copies) -> None:
    written = audit_of(audit, audit_checkpoint_lines=3)
    for number in range(3):
        written.write(record(number))
    copies.wait()
    assert signed_lines(audit) == [3]
    written.close()
    assert signed_lines(audit)[1:] == [1]  # closed


def test_after_so_many_bytes_a_checkpoint_is_written(
    audit: SignedAudit, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealer, "_MOST_UNSIGNED", 5000)
    written = audit_of(audit)
    written.write(record(1, b'{"x":"%b"}' % (b"x" * 6000)))
    copies.wait()
    assert signed_lines(audit) == [1]
    written.close()


def test_after_some_time_few_lines_are_signed_too(audit: SignedAudit, copies: Copies) -> None:
    written = audit_of(audit, audit_checkpoint_seconds=0.01)
    written.write(record())
    copies.wait()
    assert signed_lines(audit) == [1]
    written.close()


def test_all_audits_of_a_process_share_the_signatures_of_a_file(audit: SignedAudit) -> None:
    first, second = audit_of(audit), audit_of(audit)
    first.write(record())
    second.write(record(2))
    first.close()
    assert signed_lines(audit) == []  # the other one still writes
    second.write(record(3))
    second.close()
    assert signed_lines(audit) == [3]


def test_several_processes_may_sign_one_file(audit: SignedAudit) -> None:
    other = Sealer(str(audit.file), audit.options, audit.settings)
    for _ in range(5):
        audit.write(2)
        audit.seal()
        audit.write(1)
        assert other.seal() == ""
    assert audit.check().problems == []
    assert len(audit.checkpoints()) == 10
    assert audit.check().killed == 1  # or still at work
    audit.seal(closed=True)
    assert other.seal(closed=True) == ""
    assert (audit.check().killed, audit.check().closed) == (0, True)


def test_nothing_is_signed_twice(audit: SignedAudit) -> None:
    audit.write(2)
    audit.seal()
    audit.seal()
    assert len(audit.checkpoints()) == 1
    audit.seal(closed=True)
    audit.seal(closed=True)
    assert [one.closed for one in audit.checkpoints()] == [False, True]


def test_a_new_log_begins_with_the_lines_that_are_there(audit: SignedAudit) -> None:
    audit.write(7)
    audit.start()
    audit.sealer.begin()
    audit.sealer.close()
    first, *more = audit.checkpoints()
    assert (first.number, first.lines, first.total) == (1, 7, 7)
    assert [one.lines for one in more] in ([], [1])  # whether its thread came before the end
    assert audit.checkpoints()[-1].closed


def test_a_new_log_reads_no_further_back_than_a_call_can_wait(
    audit: SignedAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealer, "_FIRST_BYTES", 2000)
    audit.write(50, pad=500)
    audit.seal()
    assert 2 < signed_lines(audit)[0] < 6
    audit.write(10, pad=500)
    audit.seal()
    assert signed_lines(audit)[1] == 11  # to the last checkpoint in any case
    assert audit.check().problems == []


def test_what_a_killed_process_has_left_is_signed_by_the_next_one(audit: SignedAudit) -> None:
    audit.write(2)
    audit.seal()
    audit.write(3)
    audit.kill()
    audit.start()
    audit.sealer.begin()
    audit.sealer.close()
    assert signed_lines(audit)[:2] == [2, 4]
    assert audit.checkpoints()[-1].closed
    assert audit.check().problems == []


def test_the_copy_is_for_the_owner_alone_or_for_the_group_of_a_shared_audit(tmp_path: Path) -> None:
    audit = SignedAudit(tmp_path)
    audit.write(1)
    audit.seal()
    assert audit.copy.stat().st_mode & 0o777 == 0o600
    options = file_options(replace(audit.settings, audit_shared=True), str(audit.file))
    shared = Sealer(str(audit.file), options, audit.settings)
    audit.write(1)
    assert shared.seal() == ""
    assert audit.copy.stat().st_mode & 0o777 == 0o660


def test_an_older_copy_does_not_replace_a_newer_one(audit: SignedAudit) -> None:
    audit.write(1)
    audit.seal()
    first = read(audit.copy.read_bytes())
    audit.write(1)
    audit.seal()
    newer = audit.copy.read_bytes()
    assert first is not None
    audit.sealer._keep_copy(first)
    assert audit.copy.read_bytes() == newer


def test_a_link_in_the_place_of_the_copy_is_not_followed(audit: SignedAudit, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    os.symlink(tmp_path / "precious", f"{audit.file}{SIGNED}")
    audit.write(1)
    assert "symbolic link" in audit.sealer.seal()
    assert (tmp_path / "precious").read_text() == "x"


def test_a_checkpoint_that_cannot_be_written_is_reported_once_and_tried_again(
    audit: SignedAudit, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealer, "RETRY_SECONDS", 0.01)
    key = Path(audit.settings.audit_sign_key)
    hidden = key.rename(key.with_suffix(".away"))
    told = threading.Semaphore(0)
    reports: list[str] = []
    written = audit_of(audit, audit_checkpoint_lines=1)

    def report(text: str) -> None:
        reports.append(text)
        told.release()

    written.report_to(report)
    written.write(record())
    assert told.acquire(timeout=30)
    hidden.rename(key)
    copies.wait()
    written.close()
    assert reports == [
        f"the audit cannot be signed: {key}: No such file or directory; its lines are written all the same"
    ]
    assert audit.check().problems == []


def test_a_copy_of_files_that_were_removed_as_too_old_is_no_loss(tmp_path: Path) -> None:
    audit = SignedAudit(tmp_path, limit=65_536, keep=1)
    audit.write(1)
    audit.seal()
    early = audit.copy.read_bytes()
    for _ in range(30):
        audit.write(4, pad=2000)
        audit.seal()
    audit.kill()
    audit.start()
    audit.sealer.expect(early)
    audit.write(1)
    audit.seal()
    assert audit.reports == []
    assert audit.check().problems == []


def test_nothing_of_cryptography_is_imported_without_a_key(tmp_path: Path) -> None:
    written = Audit(Settings(audit_file=str(tmp_path / "audit.jsonl"), audit_chain=True))
    written.write(record())
    assert written._sealer is None
    written.close()


def test_a_copy_beside_the_audit_that_somebody_has_made_is_told_and_replaced(audit: SignedAudit) -> None:
    audit.write(2)
    audit.seal()
    line = next(line for line in audit.lines() if read(line) is not None)
    made = read(forged(line, Ed25519PrivateKey.generate(), number=999))
    assert made is not None
    audit.copy.write_bytes(made.text)
    audit.write(1)
    audit.seal()
    assert audit.check().problems == []  # it was replaced
    audit.kill()
    audit.copy.write_bytes(made.text)
    audit.start()
    audit.write(1)
    audit.seal()
    assert "was not signed by SHA256:" in audit.reports[0]
    assert "or its copy of the checkpoint before had been removed" in audit.check().problems[0]


def test_whoever_can_write_to_the_store_cannot_say_that_something_is_lost(audit: SignedAudit) -> None:
    audit.write(2)
    audit.seal()
    audit.kill()
    line = next(line for line in audit.lines() if read(line) is not None)
    made = read(forged(line, Ed25519PrivateKey.generate(), number=999))
    assert made is not None
    audit.start()
    audit.sealer.expect(made.text)
    audit.sealer.expect(b"nonsense")
    audit.write(1)
    audit.seal()
    assert "was not signed by SHA256:" in audit.reports[0]
    assert audit.check().problems == []
