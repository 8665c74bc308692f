"""The line about each decision on standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.audit.call_record import Record
from hookproxy.audit.verbose import VerboseAudit, decision_line
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Verdict
from hookproxy.model.settings import Arguments, Settings


def record(**members: object) -> Record:
    one = Record("s", "files", "delete_file", b"1", b"{}", decision="allow")
    for name, value in members.items():
        setattr(one, name, value)
    return one


def run(label: str, verdict: Verdict) -> HookRun:
    return HookRun(HookSpec("claude", "x", Event.PRE_TOOL_USE, label, shell="x"), HookResult(Ended.EXITED), verdict)


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (record(), "allow delete_file"),
        (
            record(decision="deny", result="refused", by="guard.sh", reason="no deletes"),
            "deny delete_file: guard.sh: no deletes",
        ),
        (record(decision="asked-deny", result="refused"), "asked-deny delete_file"),
        (
            record(final=b"{}", hook_runs=[run("look", Verdict()), run("fmt", Verdict(arguments=b"{}"))]),
            "allow delete_file (rewritten by fmt)",
        ),
        (
            record(result="error", result_after=b"{}", repeats=2),
            "allow delete_file (result error, result changed, repeated 2 times)",
        ),
        (record(decision="", result="cancelled"), "cancelled delete_file"),
        (record(tool="a\x1b[1m\nb"), "allow a\\x1b[1m\\nb"),
    ],
)
def test_a_decision_is_one_harmless_line(one: Record, line: str) -> None:
    assert decision_line(one) == line


def test_the_line_is_written_beside_the_audit_file(tmp_path: Path) -> None:
    reports: list[str] = []
    audit = VerboseAudit(Settings(audit_file=str(tmp_path / "audit.jsonl")), reports.append)
    assert audit.write(record()) == ""
    audit.close()
    assert reports == ["allow delete_file"]
    assert '"delete_file"' in (tmp_path / "audit.jsonl").read_text()


@pytest.mark.parametrize("kept", list(Arguments))
def test_a_line_has_no_secret_unless_the_audit_has_it(tmp_path: Path, kept: Arguments) -> None:
    reports: list[str] = []
    audit = VerboseAudit(Settings(audit_file=str(tmp_path / "a.jsonl"), audit_arguments=kept), reports.append)
    one = Record("session", "files", "write", b"1", b'{"password":"hunter22"}', "agent")
    one.decision, one.result, one.reason = "deny", "refused", "hunter22 is weak, as is PASSWORD=swordfish9"
    audit.write(one)
    audit.close()
    assert ("hunter22" in reports[0]) is ("swordfish9" in reports[0]) is (kept is Arguments.FULL)
