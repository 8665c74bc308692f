"""What verbs show on a terminal of 80 columns: no broken words, 20 lines unless more is asked for, and progress."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
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


def on_terminal(folder: Path, *arguments: str, **more: str) -> tuple[str, str, int]:
    """What is on the terminal and on standard error, and the status. Both are terminals."""
    (out, out_end), (err, err_end) = pty.openpty(), pty.openpty()
    for end in (out_end, err_end):
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "XDG", "NO_COLOR"))}
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
    command = [sys.executable, "-m", "hookproxy", *arguments]
    env = {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=60).stdout


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


def test_a_hint_is_broken_between_clauses_and_a_command_is_not() -> None:
    text = "hint: name files with --config FILE or --hooks FILE; hookproxy init guard --user writes a first guard"
    assert error_text(text, COLUMNS).split("\n") == [
        "hint: name files with --config FILE or --hooks FILE;",
        "  hookproxy init guard --user writes a first guard",
    ]
    usage = error_text("hint: usage: hookproxy hook --as DIALECT " + "[--option VALUE] " * 9, COLUMNS)
    assert all(len(line) <= COLUMNS for line in usage.split("\n"))
