"""What verbs show on a terminal of 80 columns: no broken words, 20 lines unless more is asked for, and progress."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import tomllib
from pathlib import Path
from typing import Final

import pytest

from hookproxy.cli.layout import MOST_LINES, Page
from hookproxy.cli.words import error_text, wrap

COLUMNS: Final = 80
ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*[mK]")
POLICY: Final = """
[permissions]
deny = ["a_*", "b_*", "c_*", "d_*", "e_*", "f_*", "g_*", "h_*", "i_*", "j_*", "k_*", "l_*", "m_*", "n_*", "o_*", "p_*"]
ask = ["q_*", "r_*", "s_*", "t_*"]

[[hooks.PreToolUse]]
command = "sleep 1.5; echo 'Not allowed here, and the sentence that says why is rather long.' >&2; exit 2"
"""


def on_terminal(folder: Path, *arguments: str, columns: int = COLUMNS, **more: str) -> tuple[str, str, int]:
    """What is on the terminal and on standard error, and the status. Both are terminals."""
    (out, out_end), (err, err_end) = pty.openpty(), pty.openpty()
    for end in (out_end, err_end):
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    others = ("CLAUDE", "XDG", "NO_COLOR", "COLUMNS", "LINES")  # the last two are set where tests run side by side
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    env = {**kept, "HOME": str(folder), "TERM": "xterm", **more}
    command = [sys.executable, "-m", "hookproxy", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out_end, stderr=err_end
    ) as run:
        os.close(out_end)
        os.close(err_end)
        texts = [read(out), read(err)]
        status = run.wait(60)
    return texts[0], texts[1], status


def read(descriptor: int) -> str:
    pieces = []
    try:
        while piece := os.read(descriptor, 65536):
            pieces.append(piece)
    except OSError:  # the other end is closed
        pass
    os.close(descriptor)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def lines(text: str) -> list[str]:
    return ESCAPES.sub("", text).splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hookproxy.toml").write_text(POLICY)
    record = {"v": 1, "time": "2026-11-21T08:00:00.000+00:00", "session": "s", "server": "files", "result": "ok"}
    calls = [
        record | {"call": f"3f2a91-{number}", "tool": f"a_{number}", "id": number, "arguments": {}, "decision": "allow"}
        for number in range(40)
    ]
    (tmp_path / "audit.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls))
    return tmp_path


VERBS: Final = {
    "check": ("check", "hookproxy.toml"),
    "try": ("try", "z", '{"text": "' + "word " * 60 + '"}', "--config", "hookproxy.toml"),
    "audit": ("audit", "audit.jsonl"),
    "init": ("init", "guard", "--folder", "new"),
    "list": ("init", "--list"),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_page_has_twenty_lines_of_whole_words(folder: Path, verb: str) -> None:
    shown, errors, _ = on_terminal(folder, *VERBS[verb])
    whole = {word for line in all_output(folder, *VERBS[verb]).splitlines() for word in line.split()}
    found = lines(shown)
    assert 0 < len(found) <= MOST_LINES
    assert all(len(line) <= COLUMNS for line in found)
    assert all(len(line) <= COLUMNS for line in errors.rpartition("\x1b[K")[2].splitlines())
    known = whole | {
        "more",
        "lines:",
        "--verbose",
        "--since",
        "shows",
        "them",
        "all,",
        "these:",
        "before",
        "some",
        "\\",
    }
    new = {word for line in found for word in line.split() if word not in known and not re.search(r"\d|…", word)}
    assert not {word for word in new if any(word in one for one in whole) and len(word) > 3}, "a part of a word"


def all_output(folder: Path, *arguments: str) -> str:
    return run_piped(folder, *arguments).stdout


def run_piped(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hookproxy", *arguments]
    env = {**os.environ, "HOME": str(folder), **more}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=60)


@pytest.mark.slow
def test_verbose_shows_all_and_a_pipe_gets_all_without_colours(folder: Path) -> None:
    short, _, _ = on_terminal(folder, *VERBS["audit"])
    assert re.match(r"\d+ more before these: --verbose shows all", lines(short)[1])
    assert len(lines(on_terminal(folder, *VERBS["audit"], "--verbose")[0])) > 40
    piped = all_output(folder, *VERBS["audit"])
    assert len(piped.splitlines()) > 40
    assert "\x1b" not in piped
    assert "\x1b" not in on_terminal(folder, *VERBS["audit"], NO_COLOR="1")[0]


@pytest.mark.slow
def test_replay_shows_some_differences_and_the_summary(folder: Path) -> None:
    (folder / "deny.toml").write_text('[permissions]\ndeny = ["a_*"]\n')
    shown, _, status = on_terminal(folder, "replay", "audit.jsonl", "--config", "deny.toml")
    found = lines(shown)
    assert status == 1
    assert len(found) <= MOST_LINES
    assert found[-1] == "40 calls replayed, 40 would be decided differently"
    assert any(re.fullmatch(r"\d+ more: --verbose shows all", line) for line in found)
    every, _, _ = on_terminal(folder, "replay", "audit.jsonl", "--config", "deny.toml", "--verbose")
    assert len(lines(every)) > 100


@pytest.mark.slow
def test_who_waits_for_a_hook_reads_what_for_and_a_pipe_does_not(folder: Path) -> None:
    _, errors, _ = on_terminal(folder, *VERBS["try"])
    assert "waiting for the hooks ... 1 s" in errors
    assert errors.rstrip("\n").endswith("\r\x1b[K"), "nothing of it is left"
    env = {**os.environ, "HOME": str(folder)}
    command = [sys.executable, "-m", "hookproxy", *VERBS["try"]]
    piped = subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=60)
    assert "waiting" not in piped.stderr


# --- much of everything ---

SERVER: Final = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message.get("method") == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message.get("method") == "tools/list":
        text = f"Does what its name says, at some length, and with many words {sys.argv[1]}"
        schema = {"type": "object", "properties": {"path": {"type": "string", "description": text}}}
        tools = [{"name": f"tool_{n}", "description": text, "inputSchema": schema} for n in range(60)]
        result = {"tools": tools}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
START: Final = ("--", sys.executable, "server.py")


def key_id(number: int) -> str:
    """Letters as random as those of a key's id."""
    return base64.b32encode(hashlib.sha256(bytes([number])).digest()).decode()[:16]


@pytest.fixture(scope="module")
def much(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder that is also a project, with fifty rules, sixty hooks, a hundred servers and many calls."""
    folder = tmp_path_factory.mktemp("much")
    rules = ", ".join(f'"tool_{number}"' for number in range(50))
    hooks = "".join(
        f'[[hooks.PreToolUse]]\nmatcher = "tool_{number}"\ncommand = "./check.sh --number {number} --level strict"\n'
        for number in range(60)
    )
    cases = "".join(
        f'[[case]]\nname = "case {number} about what is refused, and why that is so"\n'
        f'call = {{ tool = "tool_{number}", arguments = {{}} }}\nexpect = {{ decision = "allow" }}\n'
        for number in range(30)
    )
    servers = {f"server-{number}": {"command": "npx", "args": ["-y", f"server-{number}"]} for number in range(100)}
    record = {"v": 1, "time": "2026-11-21T08:00:00.000+00:00", "session": "s", "server": "files", "result": "ok"}
    calls = (
        record
        | {"call": f"3f2a91-{number}", "tool": f"tool_{number % 40}", "id": number, "decision": "allow"}
        | {"arguments": {"path": f"/home/someone/projects/number-{number}/notes.txt"}}
        for number in range(300)
    )
    files = {
        "server.py": SERVER,
        "check.sh": "#!/bin/sh\n",
        "hookproxy.toml": f"[permissions]\ndeny = [{rules}]\n{hooks}",
        "tests.toml": cases,
        "settings.json": json.dumps({"hooks": {"PreToolUse": [
            {"matcher": f"mcp__s{number}__.*", "hooks": [{"type": "command", "command": f"./hook-{number}.sh"}]}
            for number in range(60)
        ]}}),
        ".mcp.json": json.dumps({"mcpServers": servers}, indent=2),
        "audit.jsonl": "".join(json.dumps(call) + "\n" for call in calls),
        "secrets.txt": "".join(f"aws = AKIA{key_id(number)}\n" for number in range(60)),
        "pack/hookproxy.toml": f"[permissions]\ndeny = [{rules}]\n{hooks}",
        "pack/check.sh": "#!/bin/sh\n",
    }  # fmt: skip
    for number in range(60):
        files[f"hook-{number}.sh"] = "#!/bin/sh\n"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
    assert on_terminal(folder, "lock", "--file", "old.lock", *START, "before")[2] == 0
    assert on_terminal(folder, "pack", "new", "pack")[2] == 0
    return folder


MUCH: Final = {
    "check": ("check", "hookproxy.toml"),
    "check a hook file": ("check", "claude=settings.json"),
    "check a server": ("check", "hookproxy.toml", *START, "now"),
    "try": ("try", "tool_1", "{}", "--config", "hookproxy.toml"),
    "test": ("test", "--config", "hookproxy.toml"),
    "explain": ("explain", "--config", "hookproxy.toml"),
    "explain a server": ("explain", "--config", "hookproxy.toml", *START, "now"),
    "explain a tool": ("explain", "tool_1", "--config", "hookproxy.toml"),
    "wrap": ("wrap",),
    "wrap --all": ("wrap", "--all", "--dry-run"),
    "unwrap": ("unwrap",),
    "setup": ("setup", "--dry-run"),
    "uninstall": ("uninstall", "--dry-run"),
    "audit": ("audit", "audit.jsonl"),
    "audit stats": ("audit", "stats", "audit.jsonl"),
    "replay": ("replay", "audit.jsonl", "--config", "hookproxy.toml"),
    "trust": ("trust", "--dry-run", "claude=settings.json"),
    "lock": ("lock", "--file", "old.lock", "--diff", *START, "now"),
    "secrets": ("secrets", "scan", "secrets.txt"),
    "init": ("init", "--from", "pack", "--folder", "new"),
    "flow": ("init", "flow", "--folder", "flow", *START, "now"),
    "pack list": ("pack", "list"),
    "login": ("login", "--list"),
    "allow-list": ("init", "allow-list", "--folder", "allow", *START, "now"),
    "demo": ("demo",),
    "schema": ("schema", "--path"),
    "interceptors": ("interceptors", "list", *START, "now"),
    "convert": ("convert", "--to", "copilot", "claude=settings.json"),
    "guard": ("guard", "install", "--dry-run", "claude"),
    "guard status": ("guard", "status"),
    "sessions": ("sessions",),
    "users": ("users",),
    "reload": ("reload",),
    "policy": ("policy", "status"),
    "token": ("token", "list"),
    "audit verify": ("audit", "verify", "audit.jsonl"),
    "audit show": ("audit", "show", "3f2a91-1", "audit.jsonl"),
    "test of a policy": ("test", "--config", "hookproxy.toml", "--mutate"),
    "lock new": ("lock", "--file", "new.lock", *START, "now"),
    "lock again": ("lock", "--file", "old.lock", "--check", *START, "now"),
    "pack verify": ("pack", "verify", "pack"),
    "pack remove": ("pack", "remove", "none"),
    "logout": ("logout", "https://mcp.example.com/mcp"),
    "console": ("console", "--nonsense"),
    "top": ("top", "--nonsense"),
    "serve": ("serve", "--config", "none.toml"),
    "connect": ("connect", "none"),
    "hook": ("hook", "--nonsense"),
    "run": ("run", "--config", "none.toml", *START, "now"),
    "replay none": ("replay", "none.jsonl"),
    "verb": ("chek",),
}
LEARNED: Final = ("learn", "audit.jsonl")


def too_wide(text: str) -> list[str]:
    """The lines that are wider than the terminal, and could be broken: a long word and a command of ours are whole."""
    wide = [line for line in text.rpartition("\x1b[K")[2].splitlines() if len(line) > COLUMNS]
    whole = ("hookproxy ", "+", "-")  # a command, and a line of a diff
    wide = [line for line in wide if not line.strip().startswith(whole) and "`hookproxy " not in line]
    return [line for line in wide if max(map(len, line.split())) < 70]


@pytest.mark.slow
@pytest.mark.parametrize("name", MUCH)
def test_much_of_everything_is_cut_to_twenty_lines_that_fit(much: Path, name: str) -> None:
    shown, errors, status = on_terminal(much, *MUCH[name])
    assert status in (0, 1, 2, 4)
    assert shown or errors
    assert len(lines(shown)) <= MOST_LINES
    assert not too_wide(ESCAPES.sub("", shown))
    assert not too_wide(ESCAPES.sub("", errors.replace("\r", "\n")))
    assert len(errors.rpartition("\x1b[K")[2].splitlines()) <= MOST_LINES


@pytest.mark.slow
@pytest.mark.parametrize("name", ["explain a server", "wrap", "wrap --all", "trust", "lock", "secrets", "audit stats"])
def test_what_is_cut_says_so_and_verbose_and_a_pipe_have_it(much: Path, name: str) -> None:
    verb, *rest = MUCH[name]
    words = (
        (verb, rest[0], "--verbose", *rest[1:]) if name in ("secrets", "audit stats") else (verb, "--verbose", *rest)
    )
    shown = lines(on_terminal(much, *MUCH[name])[0])
    whole = lines(on_terminal(much, *words)[0])
    piped = all_output(much, *MUCH[name]).splitlines()
    cut = [line for line in shown if re.fullmatch(r"\d+ more lines: --verbose shows them", line)]
    assert len(cut) == (len(whole) > MOST_LINES)
    assert len(whole) >= len(piped) >= len(shown) - 1
    if cut:
        assert int(cut[0].split()[0]) == len(whole) - MOST_LINES + 1


@pytest.mark.slow
def test_what_is_learned_is_cut_on_a_terminal_and_says_how_to_have_it_whole(much: Path) -> None:
    found = lines(on_terminal(much, *LEARNED)[0])
    assert len(found) == MOST_LINES
    assert re.fullmatch(r"# \d+ more lines: --verbose shows them, and --output FILE writes all of it", found[-1])
    assert all(len(line) <= COLUMNS for line in found)
    assert tomllib.loads(all_output(much, *LEARNED))["permissions"]["default"] == "deny"


@pytest.mark.slow
def test_what_is_written_as_toml_stays_toml_and_fits(much: Path) -> None:
    shown, _, _ = on_terminal(much, *LEARNED, "--verbose")
    assert tomllib.loads(ESCAPES.sub("", shown))["permissions"]["default"] == "deny"
    assert all(len(line) <= COLUMNS for line in lines(shown) if line.startswith("#"))


AGENT: Final = {"mcpServers": {
    "git": {"command": "uvx", "args": ["mcp-server-git"]},
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]},
}}  # fmt: skip


@pytest.fixture
def home(short_path: Path) -> Path:
    """A home folder with two agents' servers, hooks of one of them, and a policy."""
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}
    files = {
        ".claude.json": json.dumps(AGENT),
        ".mcp.json": json.dumps(AGENT),
        ".claude/settings.json": json.dumps({"hooks": hooks}),
        ".config/hookproxy/hookproxy.toml": '[permissions]\ndeny = ["delete_*"]\n',
    }
    for name, text in files.items():
        (short_path / name).parent.mkdir(parents=True, exist_ok=True)
        (short_path / name).write_text(text)
    return short_path


@pytest.mark.slow
def test_setup_that_asks_nothing_says_in_twenty_lines_what_it_does_and_how_to_undo_it(home: Path) -> None:
    planned, _, _ = on_terminal(home, "setup", "--dry-run")
    assert len(lines(planned)) <= MOST_LINES
    assert "changes, whose diff --verbose shows" in lines(planned)
    assert "  ~/.mcp.json: mcpServers.git, mcpServers.files" in lines(planned)
    diff = lines(on_terminal(home, "setup", "--dry-run", "--verbose")[0])
    assert len([line for line in diff if line.startswith("+{")]) == 2, "a line of a diff is not broken"
    done, problems, status = on_terminal(home, "setup", "--yes")
    assert status == 0, (done, problems)
    assert len(lines(done)) <= MOST_LINES
    assert "restart the agents; to undo this:" in lines(done)
    assert lines(done)[-2] == "everything at once: hookproxy uninstall"


@pytest.mark.slow
def test_a_pack_says_how_many_of_its_hooks_are_not_shown_and_verbose_shows_them(much: Path) -> None:
    shown = on_terminal(much, *MUCH["init"])[0]
    assert re.search(r"and \d+ more hooks: --verbose shows all", shown)
    hooks = [
        line for line in lines(on_terminal(much, "init", "--verbose", *MUCH["init"][1:])[0]) if "PreToolUse" in line
    ]
    assert len(hooks) == len(re.findall("(?m)PreToolUse", (much / "pack" / "hookproxy.toml").read_text()))


@pytest.mark.slow
def test_the_demo_has_twenty_lines_unless_more_is_asked_for(tmp_path: Path) -> None:
    shown, errors, status = on_terminal(tmp_path, "demo")
    found = lines(shown)
    assert status == 0
    assert len(found) <= MOST_LINES
    assert all(len(line) <= COLUMNS for line in (*found, *lines(errors.rpartition("\x1b[K")[2])))
    assert [line.split()[1] for line in found if line[:1].isdigit()] == ["allowed", "rewritten", "blocked", "failed"]
    assert found[-1] == "hookproxy demo --verbose shows every step, and where these hooks are"
    assert len(lines(on_terminal(tmp_path, "demo", "--verbose")[0])) > MOST_LINES


@pytest.mark.slow
def test_who_waits_for_a_server_reads_what_for(much: Path, tmp_path: Path) -> None:
    (much / "slow.py").write_text(f"import time\ntime.sleep(1.6)\n{SERVER}")
    for words in SLOW:
        _, errors, _ = on_terminal(
            much, *words, "--folder", str(tmp_path / words[1]), "--", sys.executable, "slow.py", "x"
        )
        assert re.search(r"waiting for .* \.\.\. 1 s\r", errors), words
        assert errors.rpartition("\x1b[K")[2] == ""


SLOW: Final = (("init", "allow-list"), ("init", "flow"))


PLAIN: Final = ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"CI": "true", "TERM": "dumb"})
FEW: Final = ("check", "try", "test", "audit", "explain", "wrap")


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_what_is_on_a_terminal_changes_its_colours_only_and_never_the_status(much: Path, name: str) -> None:
    shown, _, status = on_terminal(much, *MUCH[name])
    assert "\x1b[" in shown
    for more in PLAIN:
        plain, _, same = on_terminal(much, *MUCH[name], columns=COLUMNS, **more)
        assert "\x1b" not in plain, more
        assert same == status
        assert len(lines(plain)) <= MOST_LINES
    piped = run_piped(much, *MUCH[name], FORCE_COLOR="1")
    assert "\x1b" not in piped.stdout, "colours are for terminals"
    assert piped.returncode == status


@pytest.mark.slow
@pytest.mark.parametrize("name", ["check", "try", "test", "audit", "explain", "secrets"])
def test_json_is_whole_and_the_same_on_a_terminal_and_in_a_pipe(much: Path, name: str) -> None:
    verb, *rest = MUCH[name]
    words = (verb, rest[0], "--json", *rest[1:]) if name == "secrets" else (verb, "--json", *rest)
    shown, _, status = on_terminal(much, *words)
    piped = run_piped(much, *words)
    assert piped.returncode == status == on_terminal(much, *MUCH[name])[2]
    for text in (shown, piped.stdout):
        assert [json.loads(line) for line in text.splitlines()] if name in ("audit", "secrets") else json.loads(text)
    assert "more lines" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 200])
@pytest.mark.parametrize("name", FEW)
def test_narrow_and_wide_terminals_get_twenty_lines_too(much: Path, name: str, columns: int) -> None:
    shown, _, _ = on_terminal(much, *MUCH[name], columns=columns)
    assert 0 < len(lines(shown)) <= MOST_LINES
    needed = 76 if name == "audit" else 44  # columns of a table that cannot be narrower, and of a text beside a label
    long = [line for line in lines(shown) if len(line) > max(columns, needed)]
    assert [line for line in long if max(map(len, line.split())) < columns // 2] == []


# --- the layout ---


def page(most: int = 6) -> Page:
    return Page(40, "utf-8", coloured=False, most=most)


def test_details_are_left_out_first_and_whole_and_the_end_last() -> None:
    shown = page()
    shown.line("first")
    for number in range(2):
        with shown.details():
            shown.line(f"detail {number}")
            shown.line(f"detail {number}, second line")
    shown.line("usual")
    shown.begin_end()
    shown.line("end")
    assert shown.text.splitlines() == [
        "first",
        "detail 0",
        "detail 0, second line",
        "usual",
        "2 more lines: --verbose shows them",
        "end",
    ]


def test_a_page_for_which_there_is_room_is_whole_and_one_without_details_is_cut_before_its_end() -> None:
    for count in (6, 7, 50):
        shown = page()
        for number in range(count - 1):
            shown.line(f"{number}")
        shown.begin_end()
        shown.line("end")
        found = shown.text.splitlines()
        assert len(found) == 6
        assert found[-1] == "end"
        assert (found[-2] == f"{count - 5} more lines: --verbose shows them") is (count > 6)


def test_a_long_line_goes_on_below_with_its_styles_and_long_json_is_broken_between_members() -> None:
    shown = Page(40, "utf-8", coloured=True)
    shown.line(("a heading", "bold"), " and a text that is longer than the terminal is wide, by far")
    assert [len(line) <= COLUMNS // 2 for line in lines(shown.text)] == [True, True]
    assert (
        " ".join(ESCAPES.sub("", shown.text).split())
        == "a heading and a text that is longer than the terminal is wide, by far"
    )
    assert wrap('{"a":"b","cccccccccccccccccc":[1,2]}', 20) == ['{"a":"b",', '"cccccccccccccccccc":[1,2]}']
    assert wrap("/a/long/path/that/is/copied/whole x", 20) == ["/a/long/path/that/is/copied/whole ", "x"]


def test_an_error_is_broken_between_words_and_a_command_in_its_hint_is_not() -> None:
    text = "error: " + "word " * 20 + "\nhint: hookproxy " + "--option value " * 10 + "x"
    first, *rest, hint = error_text(text, 40).split("\n")
    assert all(len(line) <= 40 for line in (first, *rest))
    assert hint == text.split("\n")[1]


def test_sentences_are_broken_around_a_command() -> None:
    text = "no hook is configured yet, so wrapped servers run as before: hookproxy init guard --user writes one"
    assert error_text(text, COLUMNS).split("\n") == [
        "no hook is configured yet, so wrapped servers run as before:",
        "  hookproxy init guard --user writes one",
    ]
    text = "a sentence that is much longer than the terminal is wide, and goes on and on; hookproxy check shows why"
    assert all(len(line) <= COLUMNS for line in error_text(text, COLUMNS).split("\n"))


def test_a_part_of_the_details_is_shown_where_there_is_nothing_else() -> None:
    shown = page()
    with shown.details():
        for number in range(20):
            shown.line(f"detail {number}")
    shown.begin_end()
    shown.line("end")
    found = shown.text.splitlines()
    assert found[0] == "detail 0"
    assert found[-2:] == ["16 more lines: --verbose shows them", "end"]


def test_a_hint_is_broken_between_clauses_and_a_command_is_not() -> None:
    text = "hint: name files with --config FILE or --hooks FILE; hookproxy init guard --user writes a first guard"
    assert error_text(text, COLUMNS).split("\n") == [
        "hint: name files with --config FILE or --hooks FILE;",
        "  hookproxy init guard --user writes a first guard",
    ]
    usage = error_text("hint: usage: hookproxy hook --as DIALECT " + "[--option VALUE] " * 9, COLUMNS)
    assert all(len(line) <= COLUMNS for line in usage.split("\n"))


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_long_command_stays_on_its_line(indent: str) -> None:
    line = f"{indent}hookproxy unwrap /{'x' * 90}"
    assert error_text(f"to undo this:\n{line}", 80) == f"to undo this:\n{line}"
