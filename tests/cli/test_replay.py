"""`hookproxy replay` as people and programs get it: a real run's audit, replayed on changed hooks of six systems."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.cli.replay import build_parser, main
from hookproxy.model.errors import UserError
from tests.support import preloaded_program
from tests.support.hook_files import DENIALS, HOOK_FILES, config, hooks_file

pytestmark = pytest.mark.slow

LITTLE: Final = 180_000_000  # bytes: less than the long record has
HOOKPROXY: Final = [sys.executable, "-m", "hookproxy"]
SERVER: Final = str(Path(__file__).parents[1] / "docs" / "tiny_server.py")
CALL: Final[dict[str, Any]] = {
    "v": 1,
    "time": "2026-11-21T08:00:00.000+00:00",
    "session": "s",
    "server": "files",
    "tool": "write",
    "id": 7,
    "arguments": {"path": "a"},
    "decision": "allow",
    "result": "ok",
}


def ran(
    folder: Path, *arguments: str, given: str = "", preexec: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDE")}
    if preexec is None:
        return preloaded_program.run(arguments, folder, env, document=given)
    return subprocess.run(
        [*HOOKPROXY, *arguments],
        cwd=folder,
        env=env,
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        preexec_fn=preexec,
    )


def replay(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(folder, "replay", "audit.jsonl", *arguments)


def document(folder: Path, *arguments: str, status: int) -> dict[str, Any]:
    ended = replay(folder, *arguments, "--json")
    assert (ended.returncode, ended.stderr) == (status, "")
    read: dict[str, Any] = json.loads(ended.stdout)
    assert read["status"] == status
    return read


def audit(folder: Path, *calls: dict[str, Any] | str) -> None:
    lines = [call if isinstance(call, str) else json.dumps(call) for call in calls]
    (folder / "audit.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder with the audit of a real run: one call allowed, one refused, one rewritten."""
    config(
        tmp_path,
        """
        [[hooks.PreToolUse]]
        matcher = "danger"
        command = "echo not here >&2; exit 2"
        [[hooks.PreToolUse]]
        matcher = "rewritten"
        command = '''echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":2}}}' '''
        [audit]
        file = "audit.jsonl"
        calls = "all"
        """,
    )
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": {"a": 1}}}
        for number, tool in enumerate(("plain", "danger", "rewritten"), 1)
    ]
    given = "".join(json.dumps(call) + "\n" for call in calls)
    ended = ran(tmp_path, "run", "--config=hookproxy.toml", "--name=files", "--", sys.executable, SERVER, given=given)
    assert ended.returncode == 0, ended.stderr
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 3
    lines.sort(key=lambda line: json.loads(line)["id"])  # side by side, they are recorded as they end
    (tmp_path / "audit.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_runs_own_record_replayed_on_the_same_hooks_has_no_difference(recorded: Path) -> None:
    ended = replay(recorded, "--config=hookproxy.toml")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "3 calls replayed, none would be decided differently\n"
    assert document(recorded, "--config=hookproxy.toml", status=0) == {
        "v": 1,
        "differences": [],
        "status": 0,
        "replayed": 3,
        "differing": 0,
        "digests": 0,
        "partial": 0,
        "partial_calls": [],
        "undecided": 0,
        "limited": 0,
        "unread": 0,
        "troubled": 0,
        "unread_lines": [],
        "notes": [],
    }
    assert len((recorded / "audit.jsonl").read_text().splitlines()) == 3, "nothing is audited"


def test_a_closed_standard_error_is_not_an_error(recorded: Path) -> None:
    changed = config(recorded, '[[hooks.PreToolUse]]\ncommand = "cat; echo no >&2; exit 2"\n')
    command = f"exec {' '.join(HOOKPROXY)} replay audit.jsonl {changed} 2>&-"
    ended = subprocess.run(command, shell=True, cwd=recorded, stdout=subprocess.PIPE, encoding="utf-8", timeout=60)
    assert ended.returncode == 1
    assert ended.stdout.endswith("\n3 calls replayed, 2 would be decided differently\n")


def test_changed_hooks_show_each_call_that_would_be_decided_otherwise(recorded: Path) -> None:
    old = f"{recorded}/hookproxy.toml: hooks.PreToolUse"
    ended = replay(recorded, config(recorded, '[permissions]\ndeny = ["plain"]\n'))
    assert (ended.returncode, ended.stderr) == (1, "")
    blocks = ended.stdout.split("\n\n")
    assert [block.split("  ")[0] for block in blocks] == [
        *("plain of files", "danger of files", "rewritten of files"),
        "3 calls replayed, 3 would be decided differently\n",
    ]
    assert blocks[0].split("\n")[1:] == [
        "  was      allow",
        "  now      deny, by the permission rule plain: it is about every call of this tool",
    ]
    assert blocks[1].split("\n")[1:] == [
        f"  was      deny, by the PreToolUse hook {old}[0]: not here",
        "  now      allow",
    ]
    assert f"  was      allow, by the PreToolUse hook {old}[1]\n  now      allow\n" in blocks[2]
    assert '  -  "a": 2\n  +  "a": 1\n' in blocks[2]


def test_programs_get_each_difference_with_who_decides(recorded: Path) -> None:
    read = document(recorded, config(recorded, '[permissions]\nask = ["*"]\n'), status=1)
    assert [one["tool"] for one in read["differences"]] == ["plain", "danger", "rewritten"]
    first = read["differences"][0]
    assert list(first) == ["line", "time", "session", "server", "tool", "id", "before", "after", "masked", "left_out"]
    assert (first["line"], first["id"], first["server"]) == (1, 1, "files")
    assert first["before"] == {"decision": "allow", "by": "", "reason": "", "arguments": {"a": 1}}
    assert first["after"] == {
        "decision": "asked",
        "by": "the permission rule * of hookproxy.toml",
        "reason": "",
        "arguments": {"a": 1},
    }
    assert read["differences"][1]["before"]["reason"] == "not here"
    assert read["differences"][2]["before"]["arguments"] == {"a": 2}
    assert (read["replayed"], read["differing"]) == (3, 3)


@pytest.mark.parametrize("dialect", HOOK_FILES)
def test_hooks_of_each_system_judge_what_was_recorded(tmp_path: Path, dialect: str) -> None:
    audit(tmp_path, CALL)
    assert replay(tmp_path, hooks_file(tmp_path, dialect, "echo {}")).returncode == 0
    read = document(tmp_path, hooks_file(tmp_path, dialect, DENIALS[dialect]), status=1)
    (one,) = read["differences"]
    assert (one["after"]["decision"], one["after"]["reason"]) == ("deny", "no")
    assert one["after"]["by"].startswith("the PreToolUse hook ")


def test_calls_are_selected_by_tool_and_time(tmp_path: Path) -> None:
    audit(
        tmp_path,
        CALL,
        CALL | {"tool": "read", "time": "2026-11-22T08:00:00+02:00"},
        CALL | {"tool": "write_all", "time": "no time"},
    )
    rules = config(tmp_path, '[permissions]\ndeny = ["*"]\n')

    def lines(*options: str) -> list[int]:
        return [one["line"] for one in document(tmp_path, rules, *options, status=1)["differences"]]

    assert lines("--tool", "write*") == [1, 3]
    assert lines("--tool", "read", "--tool", "write") == [1, 2]
    assert lines("--since", "2026-11-22T00:00Z") == [2, 3]
    assert lines("--since", "2026-11-22T06:00:01Z") == [3]
    assert lines("--since", "999999h") == [1, 2, 3]
    assert replay(tmp_path, rules, "--tool", "nothing").stdout == (
        "no calls replayed, none would be decided differently\n"
    )


def test_unreadable_lines_are_named_and_the_others_are_replayed(tmp_path: Path) -> None:
    audit(tmp_path, "nonsense \x1b[31m", CALL | {"v": 9}, {"v": 1, "note": "dropped"}, CALL, '{"v":1,"tool":"wr')
    named = config(tmp_path, '[permissions]\ndeny = ["delete"]\n')
    ended = replay(tmp_path, "--tool", "write", named)
    assert ended.returncode == 0
    assert ended.stdout == (
        "  not read line 1: not JSON\n"
        "  not read line 2: it has format 9, and this hookproxy reads 1\n"
        "  not read line 5: not JSON\n"
        "1 call replayed, none would be decided differently, 3 lines not read\n"
    )
    read = document(tmp_path, named, status=0)
    assert [one["line"] for one in read["unread_lines"]] == [1, 2, 5]


def test_without_a_policy_nothing_is_replayed_and_the_status_is_4(tmp_path: Path) -> None:
    audit(tmp_path, CALL)
    for options in ((), (config(tmp_path, "strict = false\n"),)):
        ended = replay(tmp_path, *options)
        assert (ended.returncode, ended.stdout) == (4, "")
        assert ended.stderr.startswith("error: no policy is loaded")


def test_a_file_without_calls_to_replay_has_status_2(tmp_path: Path) -> None:
    digest = {name: value for name, value in CALL.items() if name != "arguments"} | {"arguments_sha256": "0" * 64}
    audit(tmp_path, digest, digest)
    named = config(tmp_path, '[permissions]\ndeny = ["delete"]\n')
    ended = replay(tmp_path, named)
    assert ended.returncode == 2
    assert "2 recorded with only a digest of the arguments\n" in ended.stdout
    assert ended.stderr.startswith("error: no call could be replayed\nhint: ")
    assert json.loads(replay(tmp_path, named, "--json").stdout)["status"] == 2


def test_an_empty_file_has_no_difference(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").touch()
    assert replay(tmp_path, config(tmp_path, '[permissions]\ndeny = ["delete"]\n')).returncode == 0


def test_notes_say_which_hooks_are_left_out(tmp_path: Path) -> None:
    audit(tmp_path, CALL)
    text = "[[hooks.PostToolUse]]\ncommand = 'touch ran'\n[[hooks.PreToolUse]]\ncommand = 'touch ran'\nasync = true\n"
    ended = replay(tmp_path, config(tmp_path, text.replace("async = true\n", "")))
    assert "  note     hooks after a call were not run, because results are not recorded\n" in ended.stdout
    (tmp_path / "ran").unlink()
    hooks = [{"hooks": [{"type": "command", "command": "touch ran", "async": True}]}]
    (tmp_path / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": hooks}}))
    ended = replay(tmp_path, "--hooks", "settings.json")
    assert "  note     background hooks were not run, because they decide nothing\n" in ended.stdout
    assert not (tmp_path / "ran").exists()


def test_a_long_file_is_replayed_in_little_memory(tmp_path: Path) -> None:
    long = CALL | {"arguments": {"text": "x" * 2_000_000}}
    with (tmp_path / "audit.jsonl").open("w") as file:
        for number in range(100):
            file.write(json.dumps(long | {"tool": "read" if number % 20 else "write"}) + "\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (LITTLE, LITTLE))

    rules = config(tmp_path, '[permissions]\ndeny = ["write"]\n')
    ended = ran(tmp_path, "replay", "audit.jsonl", "--tool=write", rules, preexec=limit)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.endswith("5 calls replayed, 5 would be decided differently\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: AUDIT"),
        (["gone.jsonl"], "FOLDER/gone.jsonl: there is no such file"),
        (["."], "is a folder"),
        (["a\0b"], "is not a path"),
        (["x", "--since", "yesterday"], "--since 'yesterday': is not a time"),
        (["hookproxy.toml", "--hooks", "gone.json"], "FOLDER/gone.json: there is no such file"),
    ],
)
def test_a_wrong_command_line_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    config(tmp_path, '[permissions]\ndeny = ["delete"]\n')
    with pytest.raises(UserError) as error:
        main([*arguments, "--config", "hookproxy.toml"] if arguments else [])
    assert message.replace("FOLDER", str(tmp_path)) in str(error.value)
    assert error.value.status == 2


def test_a_file_that_is_not_there_is_told_before_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit.jsonl").touch()
    with pytest.raises(UserError, match="there is no such file") as error:
        main(["audti.jsonl"])
    assert error.value.hint == "did you mean 'audit.jsonl'?"


def test_help_says_that_hooks_run_for_real_and_which_do_not(tmp_path: Path) -> None:
    ended = ran(tmp_path, "replay", "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = " ".join(ended.stdout.split())
    assert " ".join(build_parser().usage.split()) in shown
    assert "run for real" in shown
    assert "Hooks after a call are not run" in shown


def test_the_summary_names_calls_whose_arguments_are_masked(tmp_path: Path) -> None:
    config(tmp_path, '[permissions]\ndeny = ["write"]\n')
    audit(tmp_path, CALL | {"call": "3f2a91-7", "arguments": {"password": "[masked: name]"}, "masked": ["name"]}, CALL)
    ended = replay(tmp_path, "--config", "hookproxy.toml")
    assert ended.returncode == 1
    text = " ".join(ended.stdout.split())
    assert "the record lacks parts of its arguments (masked: name)" in text
    assert "1 call ran with masked or missing parts of the arguments (3f2a91-7)" in text
    found = document(tmp_path, "--config", "hookproxy.toml", status=1)
    assert (found["partial"], found["partial_calls"]) == (1, ["3f2a91-7"])
    assert [one["masked"] for one in found["differences"]] == [["name"], []]


def test_what_is_only_watched_is_replayed_if_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text(json.dumps(CALL) + "\n", "utf-8")
    (tmp_path / "hookproxy.toml").write_text('[permissions]\nmode = "monitor"\ndeny = ["write"]\n', "utf-8")
    as_it_is = replay(tmp_path, "--config", "hookproxy.toml")
    assert (as_it_is.returncode, "--watched" in as_it_is.stdout) == (0, True)
    enforced = replay(tmp_path, "--config", "hookproxy.toml", "--watched")
    assert enforced.returncode == 1
    assert "1 would be decided differently" in enforced.stdout
