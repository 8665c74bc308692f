"""`hookproxy audit` as people, pipes and programs see it: the real program in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.audit.call_record import Record, Skipped
from hookproxy.audit.log import Audit
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Permission, Session, Verdict
from hookproxy.model.settings import Results, Settings
from tests.support import preloaded_program, terminal

pytestmark = pytest.mark.slow

AUDIT: Final = [sys.executable, "-m", "hookproxy", "audit"]
PATIENCE: Final = 30  # seconds until a test gives up on what should come at once
EVIL: Final = "\x1b]0;owned\x07\x9b2J\u202e\u2028\U000e0041"


def environment(home: Path) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return known | {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return preloaded_program.run(["audit", *arguments], folder, environment(folder))


def record(number: int, tool: str = "write", decision: str = "allow") -> Record:
    one = Record("session", "files", tool, b"%d" % number, b'{"n":%d}' % number, agent="Lean 1")
    spec = HookSpec("claude", "hooks.json: 0", Event.PRE_TOOL_USE, "guard", argv=("guard.sh",))
    verdict = Verdict(Permission.DENY, "not this") if decision == "deny" else Verdict()
    one.hook_runs = [HookRun(spec, HookResult(Ended.EXITED, ms=2.0), verdict)]
    one.decision, one.result = decision, "refused" if decision == "deny" else "ok"
    one.reason = "not this" if decision == "deny" else ""
    return one


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[Audit]:
    """Three calls and a note, chained; the calls have no ids, as in older files."""
    one = Audit(Settings(audit_file=str(tmp_path / "audit.jsonl"), audit_chain=True))
    for number, (tool, decision) in enumerate((("write", "allow"), ("read", "deny"), (f"x{EVIL}", "allow"))):
        assert one.write(record(number, tool, decision)) == ""
    one.note(Session("session", "files", "/", "/"), "dropped an answer")
    yield one
    one.close()


@pytest.fixture
def folder(audit: Audit) -> Path:
    return Path(audit.path).parent


# --- the calls ---


def test_calls_are_rows_with_the_hooks_verdicts_below(folder: Path) -> None:
    done = run(folder, "audit.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    head, first, _, second, _, verdict, *rest = done.stdout.splitlines()
    assert head.split() == ["TIME", "DECISION", "RESULT", "MS", "CALL", "TOOL"]
    assert first.split()[2:] == ["allow", "ok", "0", "files/write"]
    assert second.split()[2:] == ["deny", "refused", "0", "files/read"]
    assert verdict == "    deny: guard.sh: not this"
    assert rest[-1].endswith("files: dropped an answer")


def test_nothing_reaches_the_terminal_raw(folder: Path) -> None:
    for arguments in ((), ("--json",), ("stats",), ("stats", "--json"), ("verify",)):
        verb = [word for word in arguments if not word.startswith("-")]
        done = run(folder, *verb, "audit.jsonl", *(word for word in arguments if word.startswith("-")))
        assert done.returncode == 0
        assert all(one.isprintable() or one == "\n" for one in done.stdout), arguments


def test_json_output_has_one_line_for_each_record(folder: Path) -> None:
    done = run(folder, "audit.jsonl", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [json.loads(line) for line in (folder / "audit.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--tool", "r*"], [1]),
        (["--tool", "mcp__files__*"], [0, 1, 2]),
        (["--decision", "deny"], [1]),
        (["--since", "1h", "--decision", "allow"], [0, 2]),
        (["--since", "2999-01-01"], []),
        (["--session", "other"], []),
    ],
)
def test_filters_select_records(folder: Path, options: list[str], ids: list[int]) -> None:
    done = run(folder, "audit.jsonl", "--json", *options)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ids
    assert ("no record matches" in done.stderr) == (not ids)


def test_a_line_that_is_not_a_record_is_reported_with_status_1(folder: Path) -> None:
    path = folder / "audit.jsonl"
    path.write_bytes(b"nonsense\x1b[2J\n" + path.read_bytes() + b'{"tool":"half')
    done = run(folder, "audit.jsonl", "--json")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 4)
    first, last = done.stderr.splitlines()
    assert first == "hookproxy: audit.jsonl:1: not JSON"
    assert "audit.jsonl:6: it is unfinished" in last
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    assert run(folder, "audit.jsonl").returncode == 0, "an unfinished last line is no finding"


def test_the_configured_file_is_read_if_none_is_named(folder: Path) -> None:
    (folder / "hookproxy").mkdir()
    own = folder / "hookproxy" / "hookproxy.toml"
    own.write_text('[audit]\nfile = "../audit.jsonl"\n')
    assert "files/read" in run(folder).stdout
    own.write_text("")
    done = run(folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "hookproxy/audit.jsonl: there is no such file" in done.stderr
    own.write_text("[audit]\nenabled = false\n")
    assert run(folder).stderr.startswith("error: no audit log is kept\nhint: hookproxy audit FILE")
    other = folder / "other.toml"
    other.write_text('[audit]\nfile = "{user}/"\n')
    (folder / "audit.jsonl").rename(folder / "audit.jsonl.1")
    done = run(folder, "--config", "other.toml")
    assert done.returncode == 2
    assert "there is no such file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "missing.jsonl: there is no such file"),
        (
            ["git_commit"],
            "git_commit: there is no such file\nhint: the calls of a tool: hookproxy audit --tool git_commit",
        ),
        (["git/commit"], "hookproxy audit --tool git/commit"),
        (["mcp__git__*"], "hookproxy audit --tool 'mcp__git__*'"),
        (["stats", "git_commit"], "hookproxy audit --tool git_commit"),
        (["3f2a91", "--since", "2h"], "one call: hookproxy audit show 3f2a91"),
        (["stats", "3f2a91"], "one call: hookproxy audit show 3f2a91"),
        (["7d0b33f1-55c0"], "the calls of a session: hookproxy audit --session 7d0b33f1-55c0"),
        (["denied"], "the calls with a decision: hookproxy audit --decision deny"),
        (["shwo"], "did you mean `hookproxy audit show`?"),
        (["--decision", "denied", "x"], "hint: did you mean 'deny'?"),
        (["--decision", "refused", "x"], "hint: did you mean '*deny'?"),
        (["."], ".: is a folder"),
        (["--decision", "refuse", "x"], "there is no such decision"),
        (["--since", "soon", "x"], "is not a time"),
        (["--nonsense"], "there is no option --nonsense"),
        (["verify", "--head", "abc", "x"], "is not a head"),
        (["--config", "missing.toml"], "there is no such file"),
    ],
)
def test_a_wrong_command_line_is_an_error_with_a_hint(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """What a terminal of 80 columns gets."""
    return terminal.shown([*AUDIT, *arguments], folder, environment(folder) | variables, 80)


@pytest.mark.parametrize("verb", [[], ["stats"]])
def test_colours_are_only_for_terminals_and_add_no_information(folder: Path, verb: list[str]) -> None:
    coloured = on_a_terminal(folder, *verb, "audit.jsonl")
    plain = on_a_terminal(folder, *verb, "audit.jsonl", NO_COLOR="1")
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert terminal.plain(coloured) == plain
    assert max(map(len, plain.splitlines())) <= 80
    assert all(one.isprintable() or one == "\n" for one in plain)


# --- following a file ---


@contextmanager
def following(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [*AUDIT, "audit.jsonl", "--follow", *arguments]
    one = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    try:
        yield one
    finally:
        one.kill()
        one.communicate()


def next_of(one: subprocess.Popen[str]) -> dict[str, Any]:
    assert one.stdout is not None
    record: dict[str, Any] = json.loads(one.stdout.readline())
    return record


def test_new_records_are_shown_also_after_rotation(folder: Path, audit: Audit) -> None:
    with following(folder, "--json", "--tool", "w*") as one:
        assert next_of(one)["id"] == 0
        audit.write(record(7))
        assert next_of(one)["id"] == 7
        (folder / "audit.jsonl").rename(folder / "audit.jsonl.1")
        audit.write(record(8))
        assert next_of(one)["id"] == 8
        one.send_signal(signal.SIGINT)
        assert one.wait(PATIENCE) == 130


@pytest.mark.parametrize("shown", [1, 3])
def test_following_ends_when_nobody_reads(folder: Path, shown: int) -> None:
    with following(folder, "--json") as one:
        for _ in range(shown):  # all that there are: then it waits
            next_of(one)
        assert one.stdout is not None
        one.stdout.close()
        assert one.wait(PATIENCE) == 141
        assert one.stderr is not None
        assert one.stderr.read() == ""


# --- sums ---


def test_sums_are_charts_and_json(folder: Path) -> None:
    done = run(folder, "stats", "audit.jsonl", "--tool", "[rw]*")
    assert done.stdout.startswith("2 calls, 1 refused, 0 rewritten")
    assert "guard.sh (PreToolUse)  1 refusal" in done.stdout
    sums = json.loads(run(folder, "stats", "audit.jsonl", "--json").stdout)
    assert (sums["all"]["calls"], sums["tools"]["files/read"]["refused"]) == (3, 1)
    assert sums["hooks"]["guard.sh (PreToolUse)"]["ms"] == 6.0


# --- verification ---


def test_an_unchanged_file_is_reported_with_its_head(folder: Path) -> None:
    done = run(folder, "verify", "audit.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    first, head = done.stdout.splitlines()
    assert first == "audit.jsonl: 4 chained lines are unchanged"
    (word, sum_) = head.split()
    assert (word, len(sum_)) == ("head", 64)
    assert run(folder, "verify", "audit.jsonl", "--head", sum_).returncode == 0
    path = folder / "audit.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert run(folder, "verify", "audit.jsonl").returncode == 0
    done = run(folder, "verify", "audit.jsonl", "--head", sum_)
    assert (done.returncode, done.stdout.splitlines()[-1][:15]) == (1, "head: not found")


def test_a_changed_line_is_named(folder: Path) -> None:
    path = folder / "audit.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"n":1', b'"n":9'))
    done = run(folder, "verify", "audit.jsonl")
    assert done.returncode == 1
    assert done.stdout.startswith("audit.jsonl:3: the line before it is not the one that it names")
    found = json.loads(run(folder, "verify", "audit.jsonl", "--json").stdout)
    assert found["files"][0]["broken"]["line"] == 3


def test_a_torn_last_line_is_not_a_finding(folder: Path) -> None:
    path = folder / "audit.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    done = run(folder, "verify", "audit.jsonl")
    assert done.returncode == 0
    assert "1 torn" in done.stdout
    assert "the last line is unfinished" in done.stdout


def test_an_empty_new_file_is_not_a_finding_and_earlier_files_are_checked(folder: Path) -> None:
    (folder / "audit.jsonl").rename(folder / "audit.jsonl.1")
    (folder / "audit.jsonl").touch()
    done = run(folder, "verify", "audit.jsonl")
    assert done.returncode == 0
    assert "audit.jsonl.1: 4 chained lines are unchanged" in done.stdout
    assert "audit.jsonl: no line has been written to it yet" in done.stdout


def test_a_file_without_a_chain_is_reported(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text('{"tool":"x"}\n')
    done = run(tmp_path, "verify", "audit.jsonl")
    assert done.returncode == 1
    assert (
        "not chained: none of its 1 lines refers to the line before\n"
        "  to chain all lines written from now on, set chain = true in [audit]" in done.stdout
    )
    (tmp_path / "audit.jsonl").write_text("")
    assert "not chained: it has no lines\n" in run(tmp_path, "verify", "audit.jsonl").stdout


# --- one call ---


@pytest.fixture
def whole(tmp_path: Path) -> str:
    """A refused and a rewritten call, recorded in full; the rewritten one has the id `a-1`."""
    settings = Settings(audit_file=str(tmp_path / "audit.jsonl"), audit_results=Results.FULL)
    one, refused = Audit(settings), record(1, "read", "deny")
    refused.call, refused.cause, refused.by, refused.place = "b-1", "rule", "read", "/h.toml:3: permissions.deny[0]"
    refused.reason, refused.hook_runs = "it is about every call of this tool", []
    one.write(refused)
    call = record(2)
    (hook_run,) = call.hook_runs
    result = HookResult(Ended.EXITED, stdout=b'{"updated":1}', stderr=b"slow\x1b[2J", ms=3)
    got = {"input": b'{"tool_name":"write"}', "tool_name": "mcp__files__write", "unread": ("printed 'updated'",)}
    call.hook_runs = [replace(hook_run, result=result, **got)]
    call.call, call.final = "a-1", b'{"n":2,"safe":true}'
    call.result_before, call.result_after = b'{"result":1e3}\n', b'{"result":0}\n'
    call.skipped = [Skipped(hook_run.spec, "its matcher 'x' does not match the tool")]
    one.write(call)
    one.write(replace(record(3), call="a-10"))
    one.close()
    return "audit.jsonl"


def test_the_id_of_a_call_alone_shows_that_call(tmp_path: Path) -> None:
    (tmp_path / "hookproxy").mkdir()
    (tmp_path / "hookproxy" / "hookproxy.toml").write_text('[audit]\nfile = "../audit.jsonl"\n')
    one = Audit(Settings(audit_file=str(tmp_path / "audit.jsonl")))
    one.write(replace(record(1), call="3f2a91-7"))
    one.write(replace(record(2), call="77aa01-1"))
    one.close()
    shown = run(tmp_path, "show", "3f2a91-7")
    assert shown.returncode == 0
    of_file = (["3f2a91-7", "audit.jsonl"], ["audit.jsonl", "3f2a91-7"])
    for words in (["3f2a91-7"], ["3f2a"], ["3f2a", "--session", "sess"], *of_file):
        assert run(tmp_path, *words).stdout == shown.stdout
    assert json.loads(run(tmp_path, "--json", "3f2a").stdout)["call"] == "3f2a91-7"
    assert "there is no call 'abcd'" in run(tmp_path, "abcd").stderr
    (tmp_path / "77aa01-1").touch()
    assert run(tmp_path, "77aa01-1").stderr == "hookproxy: no record matches\n", "a file of this name is a file"


def test_show_prints_one_call_whole(tmp_path: Path, whole: str) -> None:
    done = run(tmp_path, "show", "a-1", whole)
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        "files/write",
        "decision   allow",
        '  -  "n": 2',
        '  +  "n": 2,',
        '  +  "safe": true',
        "PreToolUse hook guard.sh",
        "  saw        mcp__files__write",
        "  ended      exited with status 0 after 3 ms",
        "  problem    printed 'updated'",
        '      "tool_name": "write"',
        '      "updated": 1',
        "    slow\\x1b[2J",
        "  PreToolUse guard.sh (hooks.json: 0): its matcher 'x' does not match the tool",
        '  -  "result": 1e3',
        '  +  "result": 0',
    ):
        assert line in done.stdout.splitlines()


def test_show_says_where_the_rule_is_that_refused_a_call(tmp_path: Path, whole: str) -> None:
    refused = "refused    read (/h.toml:3: permissions.deny[0]): it is about every call of this tool"
    assert refused in run(tmp_path, "show", "b", whole).stdout.splitlines()
    assert refused.split(maxsplit=1)[1] in run(tmp_path, whole).stdout


def test_show_prints_the_record_as_json(tmp_path: Path, whole: str) -> None:
    (line,) = run(tmp_path, "show", "a-1", whole, "--json").stdout.splitlines()
    assert json.loads(line) == json.loads((tmp_path / whole).read_bytes().splitlines()[1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("c", "there is no call 'c'"),
        ("a", "'a' may be several calls\nhint: name one: a-1, a-10"),
        ("d", "several sessions have a call 'd'\nhint: add --session: session, other"),
    ],
)
def test_an_unknown_or_ambiguous_id_is_an_error(tmp_path: Path, whole: str, call: str, message: str) -> None:
    one = Audit(Settings(audit_file=str(tmp_path / whole)))
    one.write(replace(record(4), call="d"))
    one.write(replace(record(5), call="d", session="other"))
    one.close()
    done = run(tmp_path, "show", call, whole)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert run(tmp_path, "show", "d", whole, "--session", "o").returncode == 0


def test_a_call_that_has_begun_and_ended_is_shown_once_and_one_without_an_end_too(tmp_path: Path) -> None:
    one = Audit(Settings(audit_file=str(tmp_path / "a.jsonl"), audit_required=True))
    ended, stopped = replace(record(1), call="x-1"), replace(record(2), call="x-2")
    for each in (ended, stopped):
        assert one.write_begun(each) == ""
    one.write(ended)
    one.close()
    assert [line.split()[3] for line in run(tmp_path, "a.jsonl").stdout.splitlines() if "x-" in line] == ["ok", "begun"]
    assert json.loads(run(tmp_path, "stats", "a.jsonl", "--json").stdout)["all"]["calls"] == 2
    assert "result     ok" in run(tmp_path, "show", "x-1", "a.jsonl").stdout
    assert "its end is not recorded" in run(tmp_path, "show", "x-2", "a.jsonl").stdout


def test_verify_with_the_key_says_how_many_lines_were_written_with_it(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    one = Audit(Settings(audit_file=str(tmp_path / "a.jsonl"), audit_chain=True, audit_chain_key_file=str(key)))
    for number in range(3):
        assert one.write(record(number)) == ""
    one.close()
    done = run(tmp_path, "verify", "a.jsonl", "--key", "key")
    assert "3 of them were written with the key, up to number 3" in done.stdout
    assert done.returncode == 0
    key.write_bytes(b"x" * 32)
    done = run(tmp_path, "verify", "a.jsonl", "--key", "key")
    assert (done.returncode, "a.jsonl:1: its mac does not fit the key" in done.stdout) == (1, True)
    key.chmod(0o644)
    assert "--key key: may be read by other accounts" in run(tmp_path, "verify", "a.jsonl", "--key", "key").stderr


def test_a_call_is_found_whatever_blanks_the_file_has(folder: Path) -> None:
    path = folder / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    call = lines[0]["call"] = "c1f0a2"
    for separators in ((", ", ": "), (" , ", " : ")):
        path.write_text("".join(f"{json.dumps(line, separators=separators)}\n" for line in lines))
        done = run(folder, "show", call, "audit.jsonl")
        assert (done.returncode, done.stderr) == (0, "")
        assert call in done.stdout
