"""`hookproxy hook`: whatever goes wrong refuses the call, because the agent would let it pass after a crash."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCUMENT = {
    "session_id": "s",
    "cwd": "/",
    "permission_mode": "default",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t",
}


def hook(document: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "hookproxy", "hook", *words]
    return subprocess.run(command, input=document, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    ("document", "words", "why"),
    [
        (b"", ("--as", "claude", "--", "true"), "the document on standard input cannot be read"),
        (b"{}", ("--as", "claude", "--", "true"), "the document on standard input comes from no known agent"),
        (b"{}", ("--for", "claude", "--as", "claude", "--", "true"), "the document has no hook_event_name"),
        (b"{}", ("--as", "nobody", "--", "true"), "there is no dialect 'nobody'"),
        (b"{}", ("--for", "nobody", "--as", "claude", "--", "true"), "'nobody' is not an agent that runs hooks"),
        (b"{}", ("--as", "claude"), "there is no hook to run"),
        (b"{}", ("--", "true"), "the following arguments are required: --as"),
        (b"{}", ("--as", "claude", "--timeout", "-1", "--", "true"), "-1 is not a number of seconds"),
    ],
)
def test_what_cannot_be_read_refuses_the_call(document: bytes, words: tuple[str, ...], why: str) -> None:
    ended = hook(document, *words)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert why in ended.stderr.decode()


def test_a_matcher_that_cannot_be_used_is_reported() -> None:
    ended = hook(json.dumps(DOCUMENT).encode(), "--as", "claude", "--matcher", "(", "--", "exit 2")
    assert (ended.returncode, ended.stdout) == (0, b"")
    assert b"matcher" in ended.stderr


def test_several_words_are_a_program_and_its_arguments() -> None:
    ended = hook(
        json.dumps(DOCUMENT).encode(), "--as", "claude", "--", "sh", "-c", 'echo "$0 said no" >&2; exit 2', "a b"
    )
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["hookSpecificOutput"]["permissionDecisionReason"] == "a b said no"


def test_what_a_hook_prints_among_its_answer_never_reaches_the_agent_raw() -> None:
    ended = hook(json.dumps(DOCUMENT).encode(), "--as", "claude", "--", "echo hello")
    assert (ended.returncode, ended.stdout) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_end_before_the_hook_has_decided_refuses_the_call(number: signal.Signals, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    words = ("--for", "claude", "--as", "claude", "--", f"echo > {shlex.quote(str(started))}; exec sleep 60")
    command = [sys.executable, "-m", "hookproxy", "hook", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdin is not None
        running.stdin.write(json.dumps(DOCUMENT).encode())
        running.stdin.close()
        running.stdin = None
        started.read_text()
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=60)
    assert (running.returncode, stdout) == (2, b"")
    assert b"was ended before the hook had decided" in stderr


def test_several_hooks_run_by_one_start_each_with_its_own_options(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    words = [
        *("--for", "claude", "--as", "claude", "--matcher", "Write", "--run", f"echo write >> {seen}"),
        *("--matcher", "Bash", "--run", f"echo bash >> {seen}"),
        *("--as", "kimi", "--run", f"echo kimi >> {seen}; echo no >&2; exit 2"),
        *("--as", "claude", "--run", f"echo last >> {seen}"),
    ]
    ended = hook(json.dumps(DOCUMENT).encode(), *words)
    assert json.loads(ended.stdout)["hookSpecificOutput"]["permissionDecisionReason"] == "no"
    assert seen.read_text().split() == ["bash", "kimi"]  # the systems' hooks run one after another until one denies


def test_options_after_the_last_hook_are_an_error() -> None:
    ended = hook(b"{}", "--as", "claude", "--run", "true", "--if", "Bash(rm *)")
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error: --if is after the last hook\nhint: the options of a hook are before")


def test_a_failure_refuses_the_call_for_the_hook_that_says_so_alone() -> None:
    for first, second in (("--fail-closed", ""), ("", "--fail-closed")):
        words = [
            "--for",
            "claude",
            "--as",
            "claude",
            *filter(None, [first]),
            "--run",
            "exit 9",
            *filter(None, [second]),
        ]
        ended = hook(json.dumps(DOCUMENT).encode(), *words, "--run", "true")
        assert (b'"deny"' in ended.stdout) is bool(first), (first, second)
        assert b"failed: exit 9: exited with status 9" in ended.stderr
