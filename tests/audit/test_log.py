"""One JSON line per call, one write each, and no call unrecorded where that is required."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.audit.call_record import Record
from hookproxy.audit.lines import Lines
from hookproxy.audit.log import Audit
from hookproxy.audit.view.verify import verify
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Permission, Session, Verdict
from hookproxy.model.settings import Arguments, Settings

SESSION = Session("session", "files", "/", "/")


def record(arguments: bytes = b'{"a":1.0}') -> Record:
    return Record("session", "files", "write", b'"7"', arguments, agent="Lean 1")


def hook_run(verdict: Verdict, ms: float = 1.25) -> HookRun:
    spec = HookSpec("claude", "hooks.json: 0", Event.PRE_TOOL_USE, "guard", argv=("guard", "-x"))
    return HookRun(spec, HookResult(Ended.EXITED, 2, ms=ms), verdict)


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "audit.jsonl"


def test_a_record_is_one_line_with_everything_that_is_known(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_arguments=Arguments.FULL))
    one = record()
    one.hook_runs = [
        hook_run(Verdict(Permission.DENY, "no", messages=("look",))),
        hook_run(Verdict(failure="crashed"), 2.0),
        hook_run(Verdict()),
    ]
    one.decision, one.result, one.reason, one.ms = "deny", "refused", "no", 12.3456
    assert audit.write(one) == ""
    audit.close()
    (line,) = written(file)
    assert line.pop("time").endswith("+00:00")
    assert line.pop("user")
    assert (line.pop("host"), line.pop("pid")) == (os.uname().nodename, os.getpid())
    hooks = line.pop("hooks")
    assert line == {
        "v": 1,
        "session": "session",
        "server": "files",
        "tool": "write",
        "id": "7",
        "arguments": {"a": 1.0},
        "changed": [],
        "decision": "deny",
        "reason": "no",
        "result": "refused",
        "ms": 12.346,
        "hook_ms": 4.5,
        "agent": "Lean 1",
    }
    assert hooks[0] == {
        "source": "hooks.json: 0",
        "event": "PreToolUse",
        "dialect": "claude",
        "command": "guard -x",
        "ended": "exited",
        "exit": 2,
        "ms": 1.25,
        "outcome": "blocking",
        "verdict": "deny",
        "reason": "no",
        "messages": ["look"],
        "feedback": [],
    }
    assert [one["verdict"] for one in hooks] == ["deny", "trouble", "none"]
    assert hooks[1]["reason"] == "crashed"


@pytest.mark.parametrize(
    ("result", "verdict", "outcome"),
    [
        (HookResult(Ended.EXITED), Verdict(), "success"),
        (HookResult(Ended.EXITED), Verdict(Permission.ASK), "success"),
        (HookResult(Ended.EXITED, 2), Verdict(Permission.DENY), "blocking"),
        (HookResult(Ended.EXITED), Verdict(stop=True), "blocking"),
        (HookResult(Ended.EXITED, 1), Verdict(failure="exited with status 1"), "non_blocking_error"),
        (HookResult(Ended.TIMED_OUT), Verdict(failure="timed out after 1 s"), "cancelled"),
        (HookResult(Ended.CANCELLED), Verdict(), "cancelled"),
    ],
)
def test_each_hook_has_one_of_four_outcomes(file: Path, result: HookResult, verdict: Verdict, outcome: str) -> None:
    audit = Audit(Settings(audit_file=str(file)))
    one = record()
    one.hook_runs = [replace(hook_run(verdict), result=result)]
    audit.write(one)
    audit.close()
    (line,) = written(file)
    assert [hook["outcome"] for hook in line["hooks"]] == [outcome]


def test_arguments_keep_their_spelling(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file)))
    audit.write(record(b'{"n":1e400,"a":"\\u2028"}'.replace(b"\\u2028", "\u2028".encode())))
    audit.close()
    line = file.read_bytes()
    assert b'"arguments":{"n":1e400,"a":"\\u2028"}' in line
    assert len(line.decode().splitlines()) == 1


def test_a_record_names_what_was_changed(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file)))
    one = record()
    one.final, one.result_before, one.result_after = b'{ "a" : 2 }', b"{}\n", b"[]\n"
    audit.write(one)
    audit.close()
    (line,) = written(file)
    assert (line["changed"], line["rewritten"]) == (["arguments", "result"], {"a": 2})


def test_a_digest_replaces_the_arguments_if_configured(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_arguments=Arguments.DIGEST))
    one = record()
    one.final = b'{"a":2}'
    audit.write(one)
    audit.close()
    (line,) = written(file)
    assert line["arguments_sha256"] == hashlib.sha256(b'{"a":1.0}').hexdigest()
    assert line["rewritten_sha256"] == hashlib.sha256(b'{"a":2}').hexdigest()
    assert "arguments" not in line
    assert "rewritten" not in line
    assert b"1.0" not in file.read_bytes()


def test_the_file_is_private_and_not_inherited_by_children(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file)))
    assert audit.failure() == ""
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert not os.get_inheritable(audit._open()._opened()[0].fd)
    assert fcntl.fcntl(audit._open()._opened()[0].fd, fcntl.F_GETFL) & os.O_APPEND
    audit.close()


def test_the_default_file_is_not_written_where_a_link_leads(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    file.parent.mkdir()
    file.symlink_to(elsewhere)
    audit = Audit(Settings(audit_file=str(file), audit_default=True))
    problem = audit.write(record()) or audit.close()
    assert "audit.jsonl" in problem
    assert elsewhere.read_bytes() == b""
    named = Audit(Settings(audit_file=str(file)))
    assert named.write(record()) == ""
    named.close()
    assert elsewhere.read_bytes() != b""


def test_lines_are_added_to_what_is_there(file: Path) -> None:
    for _ in range(2):
        audit = Audit(Settings(audit_file=str(file)))
        audit.write(record())
        audit.write(record())
        audit.close()
    assert len(written(file)) == 4


def test_without_a_file_nothing_happens() -> None:
    audit = Audit(Settings())
    assert audit.failure() == ""
    assert audit.write(record()) == ""
    assert audit.note(SESSION, "something") == ""
    audit.close()


def test_a_required_audit_without_a_file_is_a_failure() -> None:
    assert "no audit file" in Audit(Settings(audit_required=True)).failure()


def test_what_belongs_to_no_call_is_a_note(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file)))
    assert audit.note(SESSION, "dropped an\nanswer") == ""
    audit.close()
    (line,) = written(file)
    assert (line["v"], line["session"], line["server"], line["note"]) == (
        1,
        "session",
        "files",
        "dropped an\nanswer",
    )


def test_a_failure_names_the_file_and_the_reason(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    audit = Audit(Settings(audit_file=str(taken / "audit.jsonl")))
    assert str(taken) in audit.failure()
    assert str(taken) in audit.write(record())
    folder = Audit(Settings(audit_file=str(tmp_path)))
    assert "Is a directory" in folder.failure()


def test_a_line_that_cannot_be_written_is_written_with_the_next_one(tmp_path: Path) -> None:
    fifo = tmp_path / "audit"
    os.mkfifo(fifo)
    audit = Audit(Settings(audit_file=str(fifo)))
    assert "No such device" in audit.write(record(b'{"a":1}')), "nobody reads"
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert audit.write(record(b'{"a":2}')) == ""
    lines = [json.loads(line) for line in os.read(reader, 65536).splitlines()]
    assert [line["arguments"] for line in lines] == [{"a": 1}, {"a": 2}]
    audit.close()
    os.close(reader)


def test_records_whose_lines_cannot_be_made_now_wait(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes a line is imported with the first one, which fails while descriptors are short."""
    scheduled: list[None] = []
    audit = Audit(Settings(audit_file=str(file), audit_default=True, audit_arguments=Arguments.FULL))
    audit.schedule = lambda: scheduled.append(None)
    make = Lines.of_call

    def cannot_be_made(*_: object) -> bytes:
        raise ImportError(f"mask.so: cannot open shared object file: {os.strerror(errno.EMFILE)}")

    monkeypatch.setattr(Lines, "of_call", cannot_be_made)
    assert audit.write(record(b"1")) == ""
    assert audit.flush() == f"{file}: {os.strerror(errno.EMFILE)}"
    assert audit.note(SESSION, "while it cannot be written") == f"{file}: {os.strerror(errno.EMFILE)}"
    audit.write(record(b"2"))
    assert len(scheduled) == 2, "a flush that has failed is tried again with the next record"
    for number in range(3, 67):
        audit.write(record(b"%d" % number))
    monkeypatch.setattr(Lines, "of_call", make)
    assert audit.flush() == ""
    assert [line["arguments"] for line in written(file)[:-1]] == list(range(3, 67))
    assert written(file)[-1]["note"] == "2 lines lost"


def test_a_module_that_is_missing_is_not_a_shortage(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot_be_made(*_: object) -> bytes:
        raise ImportError("No module named 'mask'")

    monkeypatch.setattr(Lines, "of_call", cannot_be_made)
    with pytest.raises(ImportError, match="mask"):
        Audit(Settings(audit_file=str(file))).write(record())


def test_a_torn_line_is_followed_by_the_whole_line(tmp_path: Path) -> None:
    fifo = tmp_path / "audit"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    audit = Audit(Settings(audit_file=str(fifo), audit_arguments=Arguments.FULL))
    arguments = json.dumps({"a": "x" * 100_000}).encode()
    assert "space" in audit.write(record(arguments)), "a pipe takes 64 KiB"
    first = os.read(reader, 1 << 20)
    assert audit.failure() in ("", f"{fifo}: No space left on device")
    second = os.read(reader, 1 << 20)
    assert second.startswith(b"\n{"), "half a line has an end, and then the whole begins"
    assert second[1:].startswith(first[:1000])
    audit.close()
    os.close(reader)


def test_lines_of_two_processes_do_not_mix(file: Path) -> None:
    audits = [Audit(Settings(audit_file=str(file))) for _ in range(2)]
    for number in range(20):
        audits[number % 2].write(record(json.dumps({"n": number, "x": "y" * 5000}).encode()))
    for audit in audits:
        audit.close()
    assert [line["arguments"]["n"] for line in written(file)] == list(range(20))


@pytest.mark.parametrize("tool", ["\x00", "\u2028", "\x7f", "\n", "é"])
def test_no_name_of_a_tool_breaks_a_line(file: Path, tool: str) -> None:
    audit = Audit(Settings(audit_file=str(file)))
    one = record()
    one.tool = tool
    assert audit.write(one) == ""
    audit.close()
    (line,) = written(file)
    assert line["tool"] == tool


def test_a_record_names_an_alias_and_who_refused_if_there_are_any(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file)))
    one = record()
    audit.write(one)
    one.alias, one.by = "Write", "limits[0]"
    audit.write(one)
    audit.close()
    plain, line = written(file)
    assert not {"alias", "by"} & plain.keys()
    assert (line["tool"], line["alias"], line["by"]) == ("write", "Write", "limits[0]")


# --- chains, secrets, other accounts ---


def test_lines_are_chained_if_configured(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_chain=True))
    for _ in range(3):
        assert audit.write(record()) == ""
    audit.close()
    lines = file.read_bytes().splitlines()
    assert [line["previous"] for line in written(file)] == ["", *(hashlib.sha256(one).hexdigest() for one in lines[:2])]


def test_secrets_are_not_written_wherever_they_stand(file: Path) -> None:
    audit = Audit(
        Settings(
            audit_file=str(file),
            audit_arguments=Arguments.FULL,
            audit_redact=("s3cret",),
            audit_redact_keys=("api_key", "session", "tool"),
        )
    )
    one = record(b'{"text":"a s3cret","deep":[{"apiKey":{"x":"hidden"}}],"esc":"s\\u0033cret"}'.replace(b"\\\\", b"\\"))
    verdict = Verdict(Permission.DENY, "s3cret", feedback=("s3cret",), messages=("s3cret",))
    failed = replace(hook_run(verdict), result=HookResult(Ended.FAILED, stderr=b"a s3cret"))
    one.hook_runs = [replace(failed, spec=replace(failed.spec, argv=("curl", "s3cret")))]
    one.final, one.reason, one.agent = b'{"api-key":7,"n":1e400}', "s3cret", "s3cret"
    assert audit.write(one) == ""
    assert audit.note(SESSION, "a s3cret") == ""
    audit.close()
    assert b"s3cret" not in file.read_bytes()
    assert b"hidden" not in file.read_bytes()
    call, note = written(file)
    assert call["arguments"]["deep"] == [{"apiKey": "[redacted]"}]
    assert b'"rewritten":{"api-key":"[redacted]","n":1e400}' in file.read_bytes()
    assert call["hooks"][0]["command"] == "curl [redacted]"
    assert (call["session"], call["tool"], note["note"]) == ("session", "write", "a [redacted]")


@pytest.mark.parametrize("kept", list(Arguments))
def test_a_secret_value_is_not_written_where_hooks_or_names_repeat_it(file: Path, kept: Arguments) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_arguments=kept, audit_redact_keys=("password",)))
    one = replace(record(b'{"password":"hunter2","n":1}'), tool="x-hunter2", id=b'"hunter2"', agent="hunter2")
    run = hook_run(Verdict(Permission.DENY, "hunter2 is weak", feedback=("hunter2",), messages=("hunter2",)))
    result = replace(run.result, stdout=b'{"new":{"password":"swordfish"}}', stderr=b"hunter2 swordfish")
    one.hook_runs = [replace(run, result=result, input=b'{"a":"hunter2"}', tool_name="mcp__x-hunter2")]
    one.reason, one.by, one.place, one.decision = "hunter2 is weak", "hunter2", "hunter2", "deny"
    audit.write(one)
    audit.close()
    assert b"hunter2" not in file.read_bytes()
    assert b"swordfish" not in file.read_bytes()
    (line,) = written(file)
    mark = "[masked: name]" if kept is Arguments.MASKED else "[redacted]"
    assert (line["tool"], line["id"], line["decision"]) == (f"x-{mark}", "[redacted]", "deny")
    assert line["tool_sha256"] == hashlib.sha256(b"x-hunter2").hexdigest()


def test_an_agent_cannot_hide_a_decision_behind_a_secret_value(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_redact_keys=("password",)))
    one = record(b'{"password":["deny","refused","session","files"]}')
    one.decision, one.result = "deny", "refused"
    audit.write(one)
    audit.close()
    (line,) = written(file)
    assert [line[name] for name in ("decision", "result", "session", "server")] == [
        "deny",
        "refused",
        "session",
        "files",
    ]


def test_digests_are_of_the_unredacted_arguments(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_arguments=Arguments.DIGEST, audit_redact=("1",)))
    audit.write(record())
    audit.close()
    assert written(file)[0]["arguments_sha256"] == hashlib.sha256(b'{"a":1.0}').hexdigest()


def test_a_held_lock_does_not_lose_lines_silently(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_chain=True, audit_required=True))
    assert audit.failure() == ""
    with open(f"{file}.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "holds the lock" in audit.failure()
        assert "holds the lock" in audit.write(record(b'{"a":1}'))
    assert audit.write(record(b'{"a":2}')) == "", "it is free again"
    audit.close()
    assert [line["arguments"]["a"] for line in written(file)] == [1, 2]


def test_waiting_lines_are_written_at_the_end(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_chain=True))
    assert audit.failure() == ""
    with open(f"{file}.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert audit.write(record()) != ""
    audit.close()
    assert len(written(file)) == 1


@pytest.mark.skipif(os.getuid() == 0, reason="root may rename all")
def test_a_file_that_cannot_be_rotated_gets_one_note_about_it(file: Path) -> None:
    audit = Audit(Settings(audit_file=str(file), audit_max_file_bytes=100))
    audit.write(record())
    file.parent.chmod(0o500)
    try:
        for _ in range(3):
            assert audit.write(record()) == ""
    finally:
        file.parent.chmod(0o700)
        audit.close()
    assert [line.get("note", "")[:24] for line in written(file)] == ["", "", "the file is over its lim", "", ""]


def test_each_account_writes_its_own_file(tmp_path: Path) -> None:
    audit = Audit(Settings(audit_file=f"{tmp_path}/{{user}}/audit.jsonl"))
    assert audit.write(record()) == ""
    audit.close()
    (line,) = written(Path(audit.path))
    assert Path(audit.path) == tmp_path / line["user"] / "audit.jsonl"
    (tmp_path / "other").symlink_to("elsewhere")
    linked = tmp_path / f"{line['user']}.jsonl"
    linked.symlink_to(tmp_path / "target")
    audit = Audit(Settings(audit_file=f"{tmp_path}/"))
    assert "symbolic links" in audit.write(record())
    audit.close()
    assert not (tmp_path / "target").exists()


AS_OTHER: str = """
import os, sys
from hookproxy.audit import append_file, hash_chain
from hookproxy.audit.call_record import Record
from hookproxy.audit.lines import Lines
from hookproxy.audit.log import Audit
from hookproxy.model.settings import Settings
from hookproxy.secrets.mask import Masking
path, uid = sys.argv[1], int(sys.argv[2])
masking = Masking()  # read before the account changes, which may not read the package
hash_chain.line_hash(b"")
os.setgroups([54321])
os.setgid(uid)
os.setuid(uid)
os.umask(0o077)
audit = Audit(Settings(audit_file=path, audit_shared=True, audit_chain=True, audit_max_file_bytes=1500))
for _ in range(3):
    if problem := audit.write(Record("session", "files", "write", b"7", b"{}")):
        sys.exit(problem)
"""
"""All that it imports is there before it becomes another account, which may not read where we lie."""


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become others")
def test_several_accounts_write_one_chained_file() -> None:
    folder = Path(tempfile.mkdtemp())  # the folder of a test is closed to others
    try:
        os.chown(folder, 0, 54321)
        folder.chmod(0o2770)
        path = folder / "audit.jsonl"
        for uid in (0, 12345, 12346, 12345):
            subprocess.run([sys.executable, "-c", AS_OTHER, str(path), str(uid)], check=True, timeout=30)
        files = [*sorted(folder.glob("audit.jsonl.[0-9]")), path]
        lines = [line for one in files for line in written(one)]
        assert [line["user"] for line in lines] == ["root"] * 3 + ["12345"] * 3 + ["12346"] * 3 + ["12345"] * 3
        assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o660}
        assert {one.stat().st_gid for one in folder.iterdir()} == {54321}
        assert [one.broken for one in verify(str(path))] == [None] * len(files)
        assert len(files) > 1
    finally:
        shutil.rmtree(folder)


def test_arguments_too_large_for_readers_are_replaced_by_a_digest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookproxy.audit.lines._LONGEST", 20)  # else a test of 144 MiB
    audit = Audit(Settings(audit_file=str(file), audit_arguments=Arguments.FULL, audit_chain=True))
    small, large = record(b'{"a":1}'), record(b'{"a":1}')
    small.final, large.final = b'{"a":2}', b'{"a":"longer by far"}'
    assert (audit.write(small), audit.write(large)) == ("", "")
    audit.close()
    whole, short = written(file)
    assert (whole["arguments"], whole["rewritten"]) == ({"a": 1}, {"a": 2})
    assert short["arguments_sha256"] == hashlib.sha256(b'{"a":1}').hexdigest()
    assert short["rewritten_sha256"] == hashlib.sha256(large.final).hexdigest()
    assert {"arguments", "rewritten"}.isdisjoint(short)
