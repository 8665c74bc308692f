"""The guard's entries in agents' hook files: written, read back by their dialects, and taken out byte for byte."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from hookproxy.cli import check, guard, main
from hookproxy.config.hook_files import Use, read_use
from hookproxy.dialects.agent_side import AgentSide, agent_side, names
from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.registry import DIALECTS
from hookproxy.guard import entries
from hookproxy.model.errors import UserError
from hookproxy.model.hooks import Event
from hookproxy.trust.sources import FileContext

USERS = [name for name in names() if (side := agent_side(name)) is not None and side.user_folder is not None]


@pytest.fixture
def tmp_path(short_path: Path) -> Path:
    """Home folders are in it, and the guard's socket is in these."""
    return short_path


def _claude() -> AgentSide:
    side = agent_side("claude")
    assert side is not None
    return side


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("XDG_") or name in {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("agent", USERS)
def test_entries_are_written_and_taken_out_again(agent: str, home: Path) -> None:
    assert guard.main(["install", agent]) == 0
    written = files_in(home)
    assert any(entries.CLIENT.encode() in content for content in written.values())
    assert guard.main(["install", agent]) == 0  # it is there already
    assert files_in(home) == written
    assert guard.main(["uninstall", agent]) == 0
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("agent", USERS)
def test_its_own_dialect_reads_an_entry_for_each_event(agent: str, tmp_path: Path) -> None:
    side = agent_side(agent)
    assert side is not None
    line = entries.command(side, "/home/x/guard.sock", "/usr/bin/hookproxy", fails_closed=True)
    found: set[Event] = set()
    for path, text in entries.files(side, line).items():
        if not side.script_folder and not text.startswith("#!"):
            hooks = DIALECTS[agent].read_hook_file(HookFile(f"/p/{path}", text, "/p", cwd="/p"))
            assert hooks.notes == ()
            found |= {spec.event for spec in hooks.hooks}
    assert not found or Event.PRE_TOOL_USE in found


@pytest.mark.parametrize("fails_closed", [True, False])
def test_a_client_knows_how_its_agent_reads_a_refusal_and_whether_to_fail_closed(fails_closed: bool) -> None:
    for agent in USERS:
        side = agent_side(agent)
        assert side is not None
        line = entries.command(side, "/s/guard.sock", "/bin/hookproxy", ["HOME=/x"], fails_closed=fails_closed)
        words = shlex.split(line)
        assert words[1:9] == ["-I", "-S", "-E", entries.CLIENT, agent, "/s/guard.sock", "/bin/hookproxy", "HOME=/x"]
        refusal = side.refuse(entries.CLOSED)
        assert words[10:] == [*([] if fails_closed else ["open"]), str(refusal.status), refusal.stdout.decode()]


def test_an_entry_whose_client_is_gone_ends_as_the_page_on_the_guard_says(tmp_path: Path) -> None:
    line = shlex.split(entries.command(_claude(), "/s/guard.sock", "/bin/hookproxy", fails_closed=False))
    gone = str(tmp_path / "client.py")
    ended = subprocess.run(
        [gone if word == entries.CLIENT else word for word in line], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert gone.encode() in ended.stderr


def test_a_client_gives_up_before_its_agent_does() -> None:
    """An agent that gives up first lets the call go on."""
    for agent in USERS:
        side = agent_side(agent)
        assert side is not None
        line = entries.command(side, "/s/guard.sock", "/bin/hookproxy", fails_closed=True)
        seconds = float(shlex.split(line)[8].removeprefix("SECONDS="))
        waits = DIALECTS[agent].default_timeout
        for path, text in entries.files(side, line).items():
            if not text.startswith("#!"):
                hooks = DIALECTS[agent].read_hook_file(HookFile(f"/p/{path}", text, "/p", cwd="/p")).hooks
                waits = min(spec.timeout for spec in hooks if spec.event is Event.PRE_TOOL_USE)
        assert 0 < seconds < waits, agent


def test_the_rest_of_a_file_stays_and_comes_back_byte_for_byte(home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    text = '{\n    "model": "opus", // mine\n    "hooks": {"PreToolUse": [{"hooks": []}]}\n}'
    settings.write_text(text)
    assert guard.main(["install", "claude"]) == 0
    assert text.partition("[{")[0] in settings.read_text()
    assert guard.main(["uninstall", "--all"]) == 0
    assert settings.read_text() == text
    assert [path.name for path in home.iterdir()] == [".claude"]
    assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]


def test_what_was_written_later_stays(home: Path) -> None:
    guard.main(["install", "codex"])
    file = home / ".codex" / "hooks.json"
    values = json.loads(file.read_text())
    values["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "mine"}]})
    file.write_text(json.dumps(values))
    assert guard.main(["uninstall", "codex"]) == 1
    assert "mine" in file.read_text()


@pytest.mark.parametrize("words", [["install", "nope"], ["uninstall"], ["uninstall", "claude", "--all"]])
def test_what_cannot_be_done_is_an_error_with_a_hint(words: list[str], home: Path) -> None:
    with pytest.raises(UserError) as error:
        guard.main(words)
    assert error.value.hint
    assert list(home.iterdir()) == []


def test_a_hook_file_that_cannot_be_written_is_one_error(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".codex").touch()
    assert main.main(["guard", "install", "codex"]) == 2
    reason = f"error: {home}/.codex: cannot be written: Not a directory\n"
    hint = f"hint: nothing was written; ls -ld {home} {home}/.codex shows types, owners and permissions\n"
    assert capsys.readouterr().err == reason + hint


def test_agents_whose_files_can_be_written_get_their_entries(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".codex").touch()
    assert main.main(["guard", "install", "codex", "claude"]) == 1
    assert (home / ".claude" / "settings.json").exists()
    (home / ".gemini").touch()
    assert main.main(["guard", "install", "codex", "gemini"]) == 2
    assert capsys.readouterr().err.count("error: ") == 3


@pytest.mark.parametrize("text", ["", "{}"])
def test_entries_that_cannot_be_recorded_come_with_a_command_that_takes_them_out(
    text: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    if text:
        settings.write_text(text)
    (home / ".local").symlink_to(home / "gone")
    assert guard.main(["install", "claude"]) == 0
    (command,) = re.findall("hookproxy uninstall will not find it: (.*) undoes it\n", capsys.readouterr().err)
    assert entries.CLIENT in settings.read_text()
    subprocess.run(shlex.split(command), check=True)
    assert (settings.read_text() if settings.exists() else "") == text


def test_a_dry_run_writes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard.main(["install", "claude", "--dry-run"]) == 0
    assert entries.CLIENT in capsys.readouterr().out
    assert list(home.iterdir()) == []


def test_entries_of_an_older_hookproxy_are_replaced(home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}')
    guard.main(["install", "claude"])
    now = settings.read_text()
    guard.main(["uninstall", "claude"])
    with pytest.MonkeyPatch.context() as older:
        older.setattr(entries, "CLIENT", "/old/hookproxy/guard/client.py")
        guard.main(["install", "claude"])
    assert "/old/hookproxy" in settings.read_text()
    guard.main(["install", "claude", "--dry-run"])
    assert "/old/hookproxy" in settings.read_text()
    assert guard.main(["install", "claude"]) == 0
    assert settings.read_text() == now
    guard.main(["uninstall", "claude"])
    assert settings.read_text() == '{"model": "opus"}'


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    status = check.main(words)
    return status, capsys.readouterr().out


def configure(home: Path, text: str) -> None:
    folder = home / ".config" / "hookproxy"
    folder.mkdir(parents=True)
    (folder / "hookproxy.toml").write_text(text)


def test_check_tells_of_the_entries_and_of_what_their_agents_cannot_do(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, '[permissions]\ndeny = ["Bash(rm *)"]\n[lock]\ncreate = true\n')
    assert "judges its own tools" not in checked(capsys)[1]
    with pytest.raises(UserError):
        checked(capsys, "--agent", "claude-code")  # neither its servers nor its own tools are judged
    guard.main(["install", "claude", "cline"])
    status, text = checked(capsys)
    assert status == 0
    assert f"claude: the guard judges its own tools, by {home}/.claude/settings.json" in text
    assert "hookproxy guard install claude --no-fail-closed lets claude decide" in text
    assert "cline: its hooks cannot ask the person" in text
    assert "[lock] is about servers' tools" in text
    status, text = checked(capsys, "--agent", "claude")
    assert (status, "cline" in text) == (0, False)
    guard.main(["install", "claude", "--no-fail-closed"])
    assert "a call that it cannot judge may go on, as claude decides" in checked(capsys, "--agent", "claude")[1]


def test_check_says_that_labels_stay_at_one_server_where_there_is_no_guard(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, sink = (
        '[[flow.sources]]\nserver = "web"\nlabels = ["a"]\n',
        '[[flow.sinks]]\ntool = "send"\nlabels = ["a"]\n',
    )
    configure(home, source + sink)
    status, text = checked(capsys)
    assert (status, "labels hold within one server's run" in text) == (0, True)
    guard.main(["install", "claude"])
    assert "labels hold within" not in checked(capsys)[1]


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (entries.CLIENT, "/gone/hookproxy/guard/client.py", "which is gone"),
        ("/bin/hookproxy ", "/bin/../bin/hookproxy ", "start another hookproxy"),
        (" SECONDS=540", "", "those of an older hookproxy"),
        ("PostToolUseFailure", "Other", ""),
    ],
)
def test_check_finds_entries_that_do_not_work_any_more(
    before: str, after: str, problem: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, '[permissions]\ndeny = ["Bash(rm *)"]\n')
    guard.main(["install", "claude"])
    settings = home / ".claude" / "settings.json"
    text = settings.read_text()
    assert before in text
    settings.write_text(text.replace(before, after))
    status, output = checked(capsys)
    assert (status, problem in output) == (int(bool(problem)), True)
    assert "hookproxy guard install claude" in output or not problem
    assert status == checked(capsys, "--agent", "claude")[0]


def test_check_finds_that_entries_are_missing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, '[permissions]\ndeny = ["Bash(rm *)"]\n')
    guard.main(["install", "claude"])
    settings = home / ".claude" / "settings.json"
    members = json.loads(settings.read_text())
    del members["hooks"]["PostToolUse"]
    settings.write_text(json.dumps(members))
    assert checked(capsys)[0] == 1


@pytest.mark.parametrize("agent", USERS)
def test_a_hook_file_that_is_used_does_not_ask_the_guard(agent: str, home: Path) -> None:
    """The guard would ask itself, and a run would ask it about what it judges itself."""
    guard.main(["install", agent])
    for path, text in files_in(home).items():
        if entries.CLIENT.encode() in text:
            loaded = list(read_use(Use(path, "/", "--hooks", DIALECTS[agent]), FileContext({"HOME": str(home)}, "/")))
            assert [file.group.hooks for file in loaded] == [()], path


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([], "is refused; hookproxy guard install claude --no-fail-closed lets claude decide"),
        (["--fail-closed"], "is refused; hookproxy guard install claude --no-fail-closed lets claude decide"),
        (
            ["--no-fail-closed"],
            "may go on, as claude decides; hookproxy guard install claude --fail-closed refuses it",
        ),
    ],
)
def test_what_becomes_of_calls_that_no_guard_can_judge_is_reported(
    words: list[str], reported: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard.main(["install", "claude", *words]) == 0
    assert f"claude: a call that it cannot judge {reported}\n" in capsys.readouterr().err


def test_what_an_agent_cannot_express_is_reported(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guard.main(["install", "cline", "--dry-run"])
    assert "its hooks cannot ask the person" in capsys.readouterr().err


def test_an_agent_whose_documents_do_not_name_servers_is_reported(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guard.main(["install", "cursor", "crush", "claude", "--dry-run"])
    reported = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines() if "which server" in line]
    assert reported == ["cursor", "crush"]


def test_entries_without_a_record_are_not_called_absent(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard.main(["install", "codex"]) == 0
    shutil.rmtree(home / ".local" / "state" / "hookproxy")
    capsys.readouterr()
    verbs = {("guard", "uninstall", "codex"): 1, ("guard", "uninstall", "--all"): 1, ("uninstall", "--yes"): 2}
    for words, status in verbs.items():
        assert main.main(words) == status
        reported = capsys.readouterr()
        why = "it has entries of the guard, and hookproxy has no record of them"
        assert f"{home}/.codex/hooks.json stays: {why}" in reported.err
        assert "no hook file" not in reported.err
        assert "pip uninstall" not in reported.out  # each call would be refused from then on
    assert (home / ".codex" / "hooks.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        json.dumps({"a": "x" * 2_000_000}),
        json.dumps({"a": "'" * 500_000}),
        json.dumps({"a": " -I -S -E 'x" * 50_000}),
        json.dumps({"a": "x'y -I -S -E /a/guard/client.py c s p " * 10_000}),
    ],
    ids=["deep", "long", "quotes", "half entries", "entries"],
)
def test_a_file_is_read_in_proportion_to_its_size_whatever_is_in_it(content: str, home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(content)
    begun = process_time()
    for verb in ("install", "uninstall"):
        with suppress(UserError):
            guard.main([verb, "claude"])
    assert process_time() - begun < 10, "it took minutes when each place was read as the beginning of an entry"


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_what_is_not_a_file_is_not_waited_for(verb: str, home: Path) -> None:
    (home / ".claude").mkdir()
    os.mkfifo(home / ".claude" / "settings.json")
    with suppress(UserError):
        guard.main([verb, "claude"])
    assert stat.S_ISFIFO((home / ".claude" / "settings.json").lstat().st_mode)


def test_root_is_told_of_the_home_folder_of_somebody_else(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    owner = pwd.getpwuid(1)
    monkeypatch.setattr("os.stat", _owned_by(str(home), owner.pw_uid))
    assert guard.main(["install", "claude", "--dry-run"]) == 0
    assert f"sudo -u {owner.pw_name} -H hookproxy guard install claude" in "".join(capsys.readouterr())
    monkeypatch.setattr("os.stat", _owned_by(str(home), 0))
    assert guard.main(["install", "claude", "--dry-run"]) == 0
    assert "sudo" not in "".join(capsys.readouterr())


def _owned_by(folder: str, uid: int) -> Callable[..., os.stat_result]:
    stat_of = os.stat

    def owned(path: str, *args: Any, **options: Any) -> os.stat_result:  # noqa: ANN401  # as `os.stat`
        result = stat_of(path, *args, **options)
        return os.stat_result((*result[:4], uid, *result[5:])) if path == folder else result

    return owned
