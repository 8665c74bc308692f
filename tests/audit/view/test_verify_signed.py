"""What an attacker who may write the audit, but has no key, can do to a signed one: each attack is found, or told."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hookproxy.audit.checkpoints import read
from hookproxy.audit.hash_chain import line_hash
from hookproxy.audit.signing_keys import name_of
from tests.support.signed_audit import KEY, KEYS, SignedAudit, forged, rechained

OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER_KEYS = {name_of(OTHER.public_key().public_bytes_raw()): OTHER.public_key().public_bytes_raw()}
Lines = list[bytes]


@pytest.fixture
def audit(tmp_path: Path) -> SignedAudit:
    """Lines 1 to 5 and 7 to 10 are calls; 6 and 11 are checkpoints."""
    one = SignedAudit(tmp_path)
    one.write(5)
    one.seal()
    one.write(4)
    one.seal()
    return one


def only(problems: list[str]) -> str:
    (problem,) = problems
    return problem


def test_a_whole_audit_has_no_problem(audit: SignedAudit) -> None:
    result = audit.check()
    assert result.problems == []
    assert (result.checkpoints, result.signed, result.unsigned, result.number) == (2, 10, 0, 2)
    assert result.keys == tuple(KEYS)
    assert result.verified
    assert not result.closed
    assert [one.lines for one in audit.checkpoints()] == [5, 5]
    assert [one.total for one in audit.checkpoints()] == [5, 10]


def test_without_a_public_key_the_rest_is_checked(audit: SignedAudit) -> None:
    assert not audit.check(keys={}).verified
    audit.put(rechained(audit.lines()[:8]))
    assert "lines are missing" in only(audit.check(keys={}).problems)


def test_a_cut_end_is_found_by_the_copy_beside_the_file(audit: SignedAudit) -> None:
    whole = audit.lines()
    for end in range(1, len(whole)):
        audit.put(whole[:end])
        problem = only(audit.check().problems)
        assert "after its end, lines are missing: copy0 names checkpoint 2, after 10 lines" in problem, end


def test_a_cut_to_a_checkpoint_with_its_copy_is_found_by_a_copy_that_is_kept_elsewhere(audit: SignedAudit) -> None:
    elsewhere = audit.copy.read_bytes()
    line = audit.lines()[10]
    audit.put(audit.lines()[:6])
    signed = read(audit.lines()[5])
    assert signed is not None
    audit.copy.write_bytes(signed.text)
    assert audit.check().problems == []  # nobody can know
    assert "lines are missing" in only(audit.check(elsewhere).problems)
    assert "lines are missing" in only(audit.check(line).problems)  # a collector keeps whole lines


def test_a_copy_that_was_removed_is_told_unless_something_else_shows_the_end(audit: SignedAudit) -> None:
    elsewhere = audit.copy.read_bytes()
    audit.copy.unlink()
    assert "audit.jsonl.signed is missing" in only(audit.check().problems)
    assert audit.check(elsewhere).problems == []
    assert audit.check(end_is_known=True).problems == []


def test_an_audit_whose_checkpoints_were_all_removed_is_told(audit: SignedAudit) -> None:
    audit.put(rechained([line for line in audit.lines() if read(line) is None]))
    assert audit.is_chained()
    assert "lines are missing" in only(audit.check().problems)
    audit.copy.unlink()
    assert "has no signed checkpoint" in only(audit.check().problems)


@pytest.mark.parametrize(
    ("tamper", "line", "what"),
    [
        (lambda lines: lines[1:], 5, "signed after 5 lines, and 4 are there"),
        (lambda lines: [*lines[:2], *lines[3:]], 5, "signed after 5 lines, and 4 are there"),
        (lambda lines: [*lines[:7], *lines[8:]], 10, "signed after 5 lines, and 4 are there"),
        (lambda lines: [*lines[:7], lines[7], *lines[7:]], 12, "signed after 5 lines, and 6 are there"),
        (lambda lines: [*lines[:7], lines[7].replace(b"push", b"pull"), *lines[8:]], 11, "are not those that were"),
        (lambda lines: [*lines[:6], lines[7], lines[6], *lines[8:]], 11, "are not those that were signed"),
        (lambda lines: [*lines[:5], *lines[6:]], 10, "not the next one after"),
        (lambda lines: [*lines[6:]], 5, "not the next one after"),
        (lambda lines: [*lines[5:]], 1, "signed after 5 lines, and 0 are there"),
    ],
)
def test_lines_that_were_changed_under_a_checkpoint_are_found_although_the_chain_was_made_anew(
    audit: SignedAudit, tamper: Callable[[Lines], Lines], line: int, what: str
) -> None:
    audit.put(rechained(tamper(audit.lines())))
    assert audit.is_chained()
    problems = audit.check().problems
    assert problems[0].startswith(f"{audit.file}:{line}: checkpoint ")
    assert what in problems[0]


def test_a_checkpoint_that_was_changed_has_no_signature_that_fits(audit: SignedAudit) -> None:
    lines = audit.lines()
    for changes in ({"time": "2020"}, {"closed": True}, {"number": 3}, {"lines": 4}, {"total": 99}, {"host": "x"}):
        audit.put([*lines[:10], forged(lines[10], None, **changes)])
        assert any("its signature does not fit" in problem for problem in audit.check().problems), changes


def test_another_key_is_found_also_if_the_checkpoint_names_the_true_one(audit: SignedAudit) -> None:
    lines = audit.lines()
    audit.put([*lines[:10], forged(lines[10], OTHER)])
    assert any("its signature does not fit" in problem for problem in audit.check().problems)
    audit.put([*lines[:10], forged(lines[10], OTHER, key=next(iter(OTHER_KEYS)))])
    assert any("another key than the given one" in problem for problem in audit.check().problems)


def test_an_audit_that_was_replaced_as_a_whole_with_another_key_is_found(tmp_path: Path, audit: SignedAudit) -> None:
    for file in (audit.file, audit.copy):
        file.unlink()
    replaced = SignedAudit(tmp_path, key=OTHER)
    replaced.write(9)
    replaced.seal()
    problems = replaced.check()
    assert all("another key than the given one" in problem for problem in problems.problems)
    assert len(problems.problems) == 2  # the line, and the copy
    assert replaced.check(keys={**KEYS, **OTHER_KEYS}).problems == []


def test_a_key_may_be_replaced_by_another_one_if_both_are_given(tmp_path: Path, audit: SignedAudit) -> None:
    audit.kill()
    later = SignedAudit(tmp_path, key=OTHER)
    later.write(2)
    later.seal()
    assert later.check(keys={**KEYS, **OTHER_KEYS}).problems == []
    assert later.checkpoints()[-1].number == 3
    assert "another key" in later.check().problems[0]


def test_checkpoints_of_two_audits_with_one_key_are_told_apart(tmp_path: Path, audit: SignedAudit) -> None:
    (tmp_path / "b").mkdir()
    other = SignedAudit(tmp_path / "b")
    other.write(5)
    other.seal()
    other.write(4)
    other.seal()
    ours = audit.lines()
    audit.put(rechained([*ours[:10], other.lines()[10]]))
    assert any("not the next one" in problem for problem in audit.check().problems)
    audit.put(ours)
    audit.copy.write_bytes(other.copy.read_bytes())
    assert "is not in the audit: it was replaced, or it is another one" in only(audit.check().problems)
    audit.copy.write_bytes(b"{}\n")
    assert "is not a checkpoint" in only(audit.check().problems)


def test_two_checkpoints_that_changed_places_are_found(audit: SignedAudit) -> None:
    lines = audit.lines()
    audit.put(rechained([*lines[:5], lines[10], *lines[6:10], lines[5]]))
    assert audit.check().problems


def test_lines_after_the_last_checkpoint_are_an_honest_gap(audit: SignedAudit) -> None:
    audit.write(3)
    result = audit.check()
    assert (result.problems, result.unsigned, result.closed) == ([], 3, False)


def test_a_writer_that_ended_in_order_has_closed_the_audit(audit: SignedAudit) -> None:
    audit.write(1)
    audit.seal(closed=True)
    assert audit.check().closed
    audit.write(1)
    assert not audit.check().closed
    audit.put(audit.lines()[:-2])
    assert "lines are missing" in only(audit.check().problems)


def test_a_killed_writer_is_told_apart_from_one_that_has_ended(audit: SignedAudit) -> None:
    audit.write(2)
    audit.kill()
    audit.start()
    audit.write(1)
    audit.seal(closed=True)
    result = audit.check()
    assert (result.problems, result.killed, result.signed) == ([], 1, 14)
    audit.start()
    audit.write(1)
    audit.seal(closed=True)
    assert audit.check().killed == 1


def test_a_torn_line_of_a_killed_writer_is_no_cut(audit: SignedAudit) -> None:
    audit.kill()
    with audit.file.open("ab") as file:
        file.write(b'{"previous":"half a li')
    audit.start()
    audit.write(1)
    audit.seal()
    assert audit.is_chained()
    assert audit.check().problems == []


def test_an_audit_that_was_cut_while_nobody_wrote_is_not_signed_as_if_it_were_whole(audit: SignedAudit) -> None:
    audit.kill()
    audit.put(audit.lines()[:8])
    audit.start()
    audit.write(2)
    audit.seal()
    assert "checkpoint 2, which was signed after 10 lines, is not in it" in only(audit.reports)
    assert audit.is_chained()
    problem = only(audit.check().problems)
    assert "had been cut or replaced: checkpoint 2, after 10 lines, was not in it" in problem
    audit.write(2)
    audit.seal()
    assert audit.check().problems == [problem]  # for ever


def test_an_audit_that_was_cut_together_with_its_copy_is_told_at_the_next_start(audit: SignedAudit) -> None:
    audit.kill()
    audit.put(audit.lines()[:6])
    audit.copy.unlink()
    audit.start()
    audit.write(1)
    audit.seal()
    assert "is missing" in only(audit.reports)
    assert "or its copy of the checkpoint before had been removed" in only(audit.check().problems)


def test_an_audit_that_was_removed_as_a_whole_is_told_at_the_next_start(audit: SignedAudit) -> None:
    audit.kill()
    audit.file.unlink()
    audit.start()
    audit.write(1)
    audit.seal()
    assert "checkpoint 2, after 10 lines, was not in it" in only(audit.check().problems)


def test_an_audit_that_was_cut_under_a_running_writer_is_told_although_its_copy_was_cut_too(audit: SignedAudit) -> None:
    cut = audit.lines()[:6]
    signed = read(cut[-1])
    assert signed is not None
    audit.put(cut)
    audit.copy.write_bytes(signed.text)
    for _ in range(3):
        audit.write(2)
        audit.seal()
    assert "checkpoint 2, which was signed after 10 lines, is not in it" in only(audit.reports)
    assert audit.is_chained()
    assert "checkpoint 2, after 10 lines, was not in it" in only(audit.check().problems)


def test_what_another_process_has_signed_over_a_cut_is_told_by_the_one_that_ran_before(audit: SignedAudit) -> None:
    cut = audit.lines()[:6]
    signed = read(cut[-1])
    assert signed is not None
    audit.put(cut)
    audit.copy.write_bytes(signed.text)
    running = audit.sealer
    audit.start()
    for _ in range(2):
        audit.write(2)
        audit.seal()
    audit.write(1)
    assert running.seal() == ""
    assert "checkpoint 2, after 10 lines, was not in it" in only(audit.check().problems)


def test_a_full_disk_does_not_make_a_cut_forgotten_nor_keeps_what_was_not_written(
    audit: SignedAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_options: object) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    audit.kill()
    audit.put(audit.lines()[:8])
    audit.start()
    audit.write(2)
    with monkeypatch.context() as patch:
        patch.setattr(audit.sealer._file, "_write", full)
        assert "No space left" in audit.sealer.seal()
    assert audit.sealer.newest is None
    audit.seal()
    assert "checkpoint 2, after 10 lines, was not in it" in only(audit.check().problems)
    audit.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(audit.sealer._file, "_write", full)
        assert "No space left" in audit.sealer.seal()
    audit.seal()
    assert len(audit.check().problems) == 1


def test_an_audit_that_is_moved_away_with_its_copy_is_no_cut(audit: SignedAudit) -> None:
    for path in (audit.file, audit.copy):
        path.rename(path.with_name(f"old-{path.name}"))
    audit.write(2)
    audit.seal()
    assert "a new log of checkpoints begins" in only(audit.reports)
    assert audit.check().problems == []
    assert "the audit before was moved away, with checkpoint 2 after 10 lines" in audit.lines()[-1].decode()


def test_an_audit_that_is_removed_with_its_copy_is_a_cut(audit: SignedAudit) -> None:
    for path in (audit.file, audit.copy):
        path.unlink()
    audit.write(2)
    audit.seal()
    assert "checkpoint 2, which was signed after 10 lines, is not in it" in only(audit.reports)
    assert "checkpoint 2, after 10 lines, was not in it" in only(audit.check().problems)


def test_a_copy_of_a_store_that_answers_later_is_compared_then(audit: SignedAudit) -> None:
    audit.kill()
    elsewhere = audit.copy.read_bytes()
    signed = read(audit.lines()[5])
    assert signed is not None
    audit.copy.write_bytes(signed.text)
    audit.put(audit.lines()[:6])
    audit.start()
    audit.write(1)
    audit.seal()
    assert audit.reports == []
    audit.sealer.expect(elsewhere)
    audit.seal()
    assert "checkpoint 2" in only(audit.reports)
    assert "checkpoint 2, after 10 lines, was not in it" in only(audit.check().problems)
    audit.write(1)
    audit.seal()
    assert len(audit.reports) == 1


def test_a_copy_that_comes_later_and_is_in_the_audit_is_no_loss(audit: SignedAudit) -> None:
    elsewhere = audit.copy.read_bytes()
    audit.write(1)
    audit.seal()
    audit.sealer.expect(elsewhere)
    audit.seal()
    assert (audit.reports, audit.check().problems) == ([], [])


def test_a_copy_of_a_store_is_compared_at_the_start(audit: SignedAudit) -> None:
    audit.kill()
    elsewhere = audit.copy.read_bytes()
    signed = read(audit.lines()[5])
    assert signed is not None
    audit.copy.write_bytes(signed.text)
    audit.put(audit.lines()[:6])
    audit.start()
    audit.sealer.expect(elsewhere)
    audit.write(1)
    audit.seal()
    assert "checkpoint 2" in only(audit.reports)


def test_rotated_files_are_signed_across_their_ends(tmp_path: Path) -> None:
    audit = SignedAudit(tmp_path, limit=65_536)
    for _ in range(12):
        audit.write(7, pad=2000)
        audit.seal()
    assert (tmp_path / "audit.jsonl.2").exists()
    result = audit.check()
    assert (result.problems, result.checkpoints) == ([], 12)
    lines = (tmp_path / "audit.jsonl.1").read_bytes().splitlines()
    (tmp_path / "audit.jsonl.1").write_bytes(b"".join(line + b"\n" for line in lines[:-3]))
    assert audit.check().problems


def test_other_lines_in_the_place_of_those_whose_beginning_was_removed_as_too_old_are_found(audit: SignedAudit) -> None:
    line = audit.lines()[-1]  # the last checkpoint, number 2 of 5 lines
    made = [
        b'{"previous":"%b","continues":"audit.jsonl.7","v":1,"call":"x"}' % (b"0" * 64),
        b'{"v":1,"call":"y"}',
        line,
    ]
    for number in (1, 2):
        members = msgspec.json.decode(made[number], type=dict[str, msgspec.Raw])
        members["previous"] = msgspec.Raw(msgspec.json.encode(line_hash(made[number - 1])))
        made[number] = msgspec.json.encode(members)
    audit.put(made)
    assert audit.is_chained()
    assert "the 2 lines before it are not those that were signed" in only(audit.check().problems)


def test_the_oldest_files_may_be_removed_and_no_others(tmp_path: Path) -> None:
    audit = SignedAudit(tmp_path, limit=65_536, keep=2)
    early = b""
    for _ in range(30):
        audit.write(4, pad=2000)
        audit.seal()
        early = early or audit.copy.read_bytes()
    assert not (tmp_path / "audit.jsonl.1").exists()
    assert audit.is_chained()
    assert audit.check().problems == []
    assert audit.check(early).problems == []  # it is of a file that was removed


def test_a_clock_that_goes_back_is_told_and_is_no_break(audit: SignedAudit) -> None:
    lines = audit.lines()
    audit.put([*lines[:10], forged(lines[10], KEY, time="2020-01-01T00:00:00+00:00")])
    signed = read(audit.lines()[10])
    assert signed is not None
    audit.copy.write_bytes(signed.text)
    result = audit.check()
    assert (result.problems, result.clock_back) == ([], 1)


def test_what_is_told_has_an_end(audit: SignedAudit) -> None:
    for _ in range(15):
        audit.write(1)
        audit.seal()
    audit.put(rechained([line for line in audit.lines() if read(line) is not None]))
    problems = audit.check().problems
    assert len(problems) == 11
    assert problems[-1].startswith("and ")


def test_an_audit_that_goes_on_from_an_earlier_state_is_found_by_a_copy_of_the_other_one(audit: SignedAudit) -> None:
    audit.kill()
    elsewhere = audit.copy.read_bytes()  # of checkpoint 2
    signed = read(audit.lines()[5])
    assert signed is not None
    audit.copy.write_bytes(signed.text)
    audit.put(audit.lines()[:6])
    for _ in range(2):
        audit.start()
        audit.write(1)
        audit.seal()
    assert audit.check().problems == []  # nobody can know
    assert "it was replaced" in only(audit.check(elsewhere).problems)
    audit.kill()
    audit.start()
    audit.sealer.expect(elsewhere)
    audit.write(1)
    audit.seal()
    assert "checkpoint 2" in only(audit.reports)
