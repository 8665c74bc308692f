"""The real program between random agents and servers: P1 to P5 of the properties that a transparent proxy must have.

One process serves all examples of a test: each example ends with a barrier that both sides know.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.documents import documents, objects
from tests.support.call_spellings import CARRIERS, SPELLINGS, Spelling, calls_seen
from tests.support.examples import examples

PATIENCE: Final = 30.0  # seconds: other tests run beside these
INITIALIZE: Final = b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"capabilities":{}}}\n'

SERVER: Final = """
import os, sys, threading
def pump(source, sink):
    while piece := os.read(source, 65536):
        while piece:
            piece = piece[os.write(sink, piece):]
    os.close(sink)
heard, says = int(sys.argv[1]), int(sys.argv[2])
threading.Thread(target=pump, args=(says, 1), daemon=True).start()
pump(0, heard)
"""
"""A server that is the test's: its input goes to one pipe, and its output comes from another."""


class Outlet:
    """One direction: where the test writes, and where it reads what came out at the other end."""

    def __init__(self, to: int, source: int) -> None:
        self.to, self.source = to, source
        os.set_blocking(to, False)
        os.set_blocking(source, False)

    def through(self, pieces: list[bytes], last: bytes) -> bytes:
        """Write the pieces one by one; gives all that comes out, up to the line `last`."""
        return self.until(pieces, lambda came: came.endswith(last))

    def lines(self, pieces: list[bytes], number: int) -> list[bytes]:
        """The same, until so many lines have come."""
        return self.until(pieces, lambda came: came.count(b"\n") >= number).splitlines(keepends=True)

    def until(self, pieces: list[bytes], enough: Callable[[bytes], bool]) -> bytes:
        rest, came = [piece for piece in pieces if piece], b""
        while rest or not enough(came):
            ready, writable, _ = select.select([self.source], [self.to] if rest else [], [], PATIENCE)
            assert ready or writable, f"nothing comes any more; so far: {came[-500:]!r}"
            if writable:
                written = os.write(self.to, rest[0][:60_000])
                rest[0] = rest[0][written:]
                if not rest[0]:
                    rest.pop(0)
            if ready:
                piece = os.read(self.source, 1 << 20)
                assert piece, f"the other end has closed; so far: {came[-500:]!r}"
                came += piece
        return came


class Running:
    """`hookproxy run` with the recording server behind it."""

    def __init__(self, folder: Path, *options: str) -> None:
        heard_out, heard_in = os.pipe()
        says_out, says_in = os.pipe()
        self.errors = folder / "errors"
        server = [sys.executable, "-S", "-E", "-c", SERVER, str(heard_in), str(says_out)]
        for fd in (heard_in, says_out):
            os.set_inheritable(fd, True)
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hookproxy", "run", *options, "--", *server],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=(heard_in, says_out),
                bufsize=0,
            )
        os.close(heard_in)
        os.close(says_out)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to_server = Outlet(self.process.stdin.fileno(), heard_out)
        self.to_agent = Outlet(says_in, self.process.stdout.fileno())
        self.count = 0

    def barrier(self) -> bytes:
        """A line that concerns nobody and comes once."""
        self.count += 1
        return b'{"jsonrpc":"2.0","method":"notifications/barrier","params":{"n":%d}}\n' % self.count

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        os.close(self.to_agent.to)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        os.close(self.to_server.source)
        return status


Start = Callable[..., Running]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    running: list[Running] = []
    config = str(tmp_path_factory.mktemp("config"))

    def starting(*options: str) -> Running:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CONFIG_HOME", config)
            running.append(Running(tmp_path_factory.mktemp("run"), *options))
        return running[-1]

    yield starting
    statuses = [one.end() for one in running]
    assert set(statuses) <= {0}


@pytest.fixture(scope="module")
def bare(start: Start) -> Running:
    return start()


@pytest.fixture(scope="module")
def elsewhere(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Running:
    """With a hook that is for a tool that nobody calls."""
    return start("--hooks", f"claude={settings_file(tmp_path_factory, [('PreToolUse', 'nothing', 'exit 2')])}")


def settings_file(factory: pytest.TempPathFactory, hooks: list[tuple[str, str, str]]) -> Path:
    events: dict[str, list[object]] = {}
    for event, matcher, command in hooks:
        entry = {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}
        events.setdefault(event, []).append(entry)
    path = factory.mktemp("hooks") / "settings.json"
    path.write_text(json.dumps({"hooks": events}))
    return path


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    at = sorted({place % (len(stream) + 1) for place in places})
    return [stream[start:end] for start, end in zip([0, *at], [*at, len(stream)], strict=True)]


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Notifications and requests, members in any order and spelling."""
    params = draw(objects()).strip()
    shape = draw(
        st.sampled_from(
            (
                b'{"jsonrpc":"2.0","method":"notifications/x","params":%b}',
                b'{"method": "x/y", "params": %b, "jsonrpc": "2.0"}',
                b'{"jsonrpc":"2.0","x":%b,"method":"notifications/progress"}',
                b'{"jsonrpc":"2.0","method":"\\u0061", "extra" : %b }',
            )
        )
    )
    return shape % params


def one_line(raw: bytes) -> bytes:
    """Without what is a line end to some readers: such lines are spelled anew where there are hooks."""
    for sign in (b"\r", b"\n", "\u2028".encode(), "\u2029".encode(), b"\xc2\x85"):
        raw = raw.replace(sign, b" ")
    return raw


CUTS: Final = st.lists(st.integers(0, 5000), max_size=8)
JUNK: Final = st.sampled_from(
    (
        b"",
        b"\r",
        b" ",
        b"hello",
        b"\xff\xfe",
        b'{"id":1,"id":2}',
        b'{"jsonrpc":"2.0","id":null,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1.0,"method":"x"}',
        b'[{"jsonrpc":"2.0","method":"x"},{"id":3,"method":"y"}]',
        b'{"n":1e400,"m":%b}' % (b"9" * 400),
        b'"\\ud800"',
        b"x" * 70_000,
    )
)


@examples(20)
@given(st.lists(st.one_of(messages(), documents().map(lambda one: one.replace(b"\n", b" ")), JUNK), max_size=6), CUTS)
def test_without_hooks_the_server_gets_the_agents_bytes(bare: Running, generated: list[bytes], cuts: list[int]) -> None:
    last = bare.barrier()
    stream = b"".join(line + b"\n" for line in generated) + last
    assert bare.to_server.through(cut(stream, cuts), last) == stream


@examples(20)
@given(st.lists(messages(), max_size=6), CUTS)
def test_without_hooks_the_agent_gets_the_servers_bytes(bare: Running, generated: list[bytes], cuts: list[int]) -> None:
    last = bare.barrier()
    stream = b"".join(one_line(line) + b"\n" for line in generated) + last
    assert bare.to_agent.through(cut(stream, cuts), last) == stream


@examples(20)
@given(st.lists(messages(), max_size=6), CUTS, st.booleans())
def test_with_hooks_for_other_tools_bytes_are_the_same_in_both_directions(
    elsewhere: Running, generated: list[bytes], cuts: list[int], from_agent: bool
) -> None:
    last = elsewhere.barrier()
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"safe","arguments":%b}}\n'
    stream = b"".join(one_line(line) + b"\n" for line in generated)
    calls = b"".join(call % (elsewhere.count * 100 + n, b"{}") for n in range(len(generated)))
    outlet = elsewhere.to_server if from_agent else elsewhere.to_agent
    stream = stream + (calls if from_agent else b"") + last
    assert outlet.through(cut(stream, cuts), last) == stream


def test_very_long_lines_pass_in_both_directions(bare: Running, elsewhere: Running) -> None:
    for running in (bare, elsewhere):
        for outlet in (running.to_server, running.to_agent):
            last = running.barrier()
            line = b'{"jsonrpc":"2.0","method":"x","params":{"x":"%b"}}\n' % (b"y" * 5_000_000)
            assert outlet.through([line, last], last) == line + last


# --- with hooks ---


def command(event: str, **members: object) -> str:
    answer = {"hookSpecificOutput": {"hookEventName": event, **members}}
    return f"echo {shlex.quote(json.dumps(answer))}"


@pytest.fixture(scope="module")
def hooked(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Running:
    hooks = [
        ("PreToolUse", ".*__rewritten", command("PreToolUse", updatedInput={"new": 1})),
        ("PreToolUse", ".*__danger", "exit 2"),
        ("PostToolUse", ".*__commented", command("PostToolUse", additionalContext="Hm.")),
    ]
    running = start("--hooks", f"claude={settings_file(tmp_path_factory, hooks)}")
    assert running.to_server.through([INITIALIZE], INITIALIZE) == INITIALIZE
    return running


TOOLS: Final = ("rewritten", "commented", "safe")


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, bytes, bytes, bytes]:
    """A tool, what stands before its arguments, these, and what stands after them."""
    tool = draw(st.sampled_from(TOOLS))
    head, tail = draw(
        st.sampled_from(
            (
                (b'{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"TOOL","arguments":', b"}}"),
                (b'{"id": "ID", "method": "tools\\/call", "params": {"arguments": ', b', "name": "TOOL"}, "x": 1e400}'),
                (
                    b' {"params":{"_meta":{"n":1.0},"name":"TOOL","\\u0061rguments" : ',
                    b' } ,"method":"tools/call","id":ID} ',
                ),
            )
        )
    )
    arguments = b'{"k%d":%b}' % (draw(st.integers(0, 99)), draw(st.sampled_from((b"1.50", b'"a"', b"[ 1 ]", b"null"))))
    return tool, head, arguments, tail


@examples(15)
@given(st.lists(calls(), min_size=1, max_size=4), st.lists(messages(), max_size=3), CUTS)
def test_a_rewritten_call_differs_only_in_its_arguments_and_everything_else_keeps_its_order(
    hooked: Running, generated: list[tuple[str, bytes, bytes, bytes]], others: list[bytes], cuts: list[int]
) -> None:
    hooked.count += 1
    sent: list[bytes] = []
    expected: list[bytes] = []
    plain: list[bytes] = []
    for at, (tool, head, arguments, tail) in enumerate(generated):
        number = str(hooked.count * 100 + at).encode()
        spelled = [part.replace(b"ID", number).replace(b"TOOL", tool.encode()) for part in (head, tail)]
        line = spelled[0] + arguments + spelled[1] + b"\n"
        sent.append(line)
        if tool == "rewritten":
            expected.append(spelled[0] + b'{"new": 1}' + spelled[1] + b"\n")
        else:
            (expected if tool == "commented" else plain).append(line)
    plain += [one_line(line) + b"\n" for line in others]
    stream = b"".join(sent + [one_line(line) + b"\n" for line in others])
    got = hooked.to_server.lines(cut(stream, cuts), len(expected) + len(plain))
    assert sorted(line for line in got if line not in plain) == sorted(expected)
    assert [line for line in got if line in plain] == plain


@examples(15)
@given(st.lists(objects(), min_size=1, max_size=3), st.lists(messages(), max_size=3), CUTS)
def test_a_response_with_feedback_differs_by_one_insertion_and_everything_else_keeps_its_order(
    hooked: Running, extras: list[bytes], others: list[bytes], cuts: list[int]
) -> None:
    hooked.count += 1
    ids = [hooked.count * 100 + number for number in range(len(extras))]
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"commented"}}\n'
    received = hooked.to_server.lines([call % number for number in ids], len(ids))
    assert sorted(received) == sorted(call % number for number in ids)
    head = b'{"jsonrpc":"2.0","id":%d, "result" : {"content":[{"type":"text","text":"x"} '
    tail = b'],"_meta":%b}}\n'
    answers = [(head % number, tail % one_line(extra).strip()) for number, extra in zip(ids, extras, strict=True)]
    plain = [one_line(line) + b"\n" for line in others]
    stream = b"".join([first + second for first, second in answers] + plain)
    got = hooked.to_agent.lines(cut(stream, cuts), len(answers) + len(plain))
    insertion = b',{"type":"text","text":"Hm."}'
    assert sorted(line for line in got if line not in plain) == sorted(
        first + insertion + second for first, second in answers
    )
    assert [line for line in got if line in plain] == plain


@examples(20)
@given(st.lists(st.sampled_from(SPELLINGS + CARRIERS), min_size=1, max_size=3), CUTS)
def test_no_spelling_of_a_denied_call_passes_in_any_pieces(
    hooked: Running, generated: list[Spelling], cuts: list[int]
) -> None:
    texts = [one.text for one in generated]
    last = hooked.barrier()
    came = hooked.to_server.until(cut(b"".join(texts) + last, cuts), lambda came: last in came)
    assert calls_seen(came) == []
    drain(hooked)


def drain(running: Running) -> None:
    """Read the refusals that have come so far: nobody else does."""
    while select.select([running.to_agent.source], [], [], 0)[0]:
        os.read(running.to_agent.source, 1 << 20)
