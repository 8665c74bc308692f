"""A fuzzer for both directions: hostile agents and servers on a relay and a router, in process and without waiting.

Every line is a message that has been damaged, spelled in an unusual way, put into another one, or cut into pieces. Two
laws hold at every moment, for every reader of `tests/support/readers.py`:

1. No call of a tool that hooks deny reaches the server, and a call that they allow has the arguments that they saw.
2. Nothing reaches the agent that could be the response to a call that hooks have not finished judging.

scripts/fuzz [--seconds N] [--seed S] runs it for as long as you like; a finding prints the steps that led to it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from hookproxy.protocol import actions, calls, feedback, request_edits
from hookproxy.protocol.calls import Call, Phase
from hookproxy.protocol.router import Router
from hookproxy.session.relay import Relay
from tests.support import readers
from tests.support.recording_channel import RecordingChannel

SECRET: Final = "SECRET-5e1c"
"""Stands in everything that the server says in a result."""

LIMIT: Final = 6000  # bytes of the longest line: short, so that long lines are frequent
STREAM_FROM: Final = 700  # bytes from which lines pass in pieces: more than the head that is read
STEPS: Final = 40  # of one session, and then a new one begins
IDS: Final = ("1", "2", "3", '"2"', '"a"', "2.0")
TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^{}\[\],:"]+', re.DOTALL)


class Finding(Exception):
    """A law is broken."""


class Session:
    """One agent, one server, and hooks that decide at random. Tools: `danger` is denied, `judged` is judged."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.steps: list[tuple[str, bytes]] = []
        self.router = Router(lambda tool: tool in ("danger", "judged"))
        self.agent, self.server = RecordingChannel(self.to_agent), RecordingChannel(self.to_server)
        self.relay = Relay(self.agent, self.server, self.router, LIMIT, True, self.perform, stream_from=STREAM_FROM)
        self.relay.start(_nothing, _nothing, _nothing)
        self.held: list[Call] = []
        self.answered: list[Call] = []
        self.barred: set[str] = set()
        self.unfinished = b""
        self.looked_at = 0
        self.number = 10
        self.lines = 0
        if dice.random() < 0.8:  # from now on, whole blocks may pass unread
            self.from_agent(b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"capabilities":{}}}\n')
            self.from_server(b'{"jsonrpc":"2.0","id":"i","result":{}}\n')

    # --- the proxy ---

    def perform(self, action: actions.AgentAction | actions.ServerAction, line: bytes) -> None:
        match action:
            case actions.StartCall(call):
                self.held.append(call)
            case actions.CallAnswered(call):
                self.answered.append(call)
            case actions.CancelCall(call, forward):
                if forward:
                    self.barred.add(readers.plain_id(json.loads(call.id)))
                    self.relay.to_server(calls.cancellation(line, call))
            case actions.Refused(why, raw_id, unreadable):
                self.relay.to_agent(feedback.refused_message(raw_id, why, unreadable=unreadable))
            case actions.Dropped(_, raw_id) if raw_id:
                self.relay.to_agent(feedback.unclear_response(raw_id))
            case actions.InitializeAnswered() | actions.ToolsListed():
                self.relay.to_agent(line)
            case _:
                pass

    def hooks_decide(self) -> None:
        """Allow or deny a call that is held."""
        call = self.held.pop(self.dice.randrange(len(self.held)))
        if call.tool == "danger" or self.dice.random() < 0.4:
            if self.router.calls.finish(call):
                self.relay.to_agent(feedback.failed_call(call.id, "denied"))
        elif not self.relay.passing and self.router.calls.release(call, unseen=self.dice.random() < 0.2):
            line = request_edits.line_for_server(call, None)
            self.check_arguments(call, line)
            self.relay.to_server(line)

    def hooks_finish(self) -> None:
        """Let the response to a judged call pass."""
        call = self.answered.pop(self.dice.randrange(len(self.answered)))
        if self.router.calls.finish(call):
            self.relay.to_agent(b'{"jsonrpc":"2.0","id":%b,"result":"JUDGED"}\n' % call.id)

    # --- the laws ---

    def to_server(self, piece: bytes) -> None:
        for model, message in readers.objects_seen(piece):
            methods = [readers.plain(str(one)) for one in readers.members(message, "method")]
            names = [
                readers.plain(str(name))
                for params in readers.members(message, "params") or [message]
                for name in _names(params)
            ]
            if "tools/call" in methods and "danger" in names:
                raise Finding(f"{model}: a denied call at the server: {shown(piece)}")

    def check_arguments(self, call: Call, line: bytes) -> None:
        """Readers of the line that goes to the server find the commands that hooks see.

        Deeper inside, a name in another spelling is only refused beside the name itself.
        """
        seen = _commands(readers.value(call.arguments))
        for model, message in readers.objects_seen(line):
            for params in readers.members(message, "params"):
                for arguments in readers.members(params, "arguments") if isinstance(params, readers.Pairs) else []:
                    found = _commands(arguments, folded=True)
                    depths = {path for path, _ in seen} | {()}
                    if not {one for one in found if one[0] in depths} <= seen:
                        raise Finding(f"{model}: hooks saw {seen}, and a server reads {found}: {shown(line)}")

    @property
    def withheld(self) -> set[str]:
        """The ids to which no response may reach the agent."""
        judging = (Phase.HELD, Phase.FORWARDED, Phase.ANSWERED)
        held = {readers.plain_id(json.loads(call.id)) for call in self.router.calls.values() if call.phase in judging}
        return held | self.barred

    def to_agent(self, piece: bytes) -> None:
        self.unfinished += piece
        withheld = self.withheld
        if withheld and SECRET.encode() in self.unfinished:
            for model, message in readers.objects_seen(self.unfinished[self.looked_at :]):
                ids = {readers.plain_id(one) for one in readers.members(message, "id")} & withheld
                content = [one for name in ("result", "error") for one in readers.members(message, name)]
                if ids and SECRET in json.dumps(content):
                    raise Finding(f"{model}: a response to {ids} at the agent: {shown(self.unfinished)}")
        end = self.unfinished.rfind(b"\n") + 1
        self.unfinished = self.unfinished[end:]
        # A reader that ends lines elsewhere has read all lines but the last one by now.
        ends = [
            found.end()
            for found in re.finditer(rb"[\r\x00\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]", self.unfinished)
        ]
        self.looked_at = ends[-1] if ends else 0

    # --- what the agent and the server do ---

    def step(self) -> None:
        """Do one thing at random."""
        chance = self.dice.random()
        if chance < 0.15 and self.held:
            self.hooks_decide()
        elif chance < 0.25 and self.answered:
            self.hooks_finish()
        elif chance < 0.6:
            self.in_pieces(self.from_agent, self.agent_line())
        else:
            self.in_pieces(self.from_server, self.server_line())

    def in_pieces(self, say: Callable[[bytes], None], text: bytes) -> None:
        """Say it in one piece, or in several with other things between them."""
        self.lines += text.count(b"\n")
        cuts = sorted(self.dice.sample(range(len(text) + 1), min(len(text), self.dice.choice((0, 0, 0, 1, 2)))))
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            if text[start:end]:
                say(text[start:end])
            if end < len(text) and self.held and self.dice.random() < 0.3:
                self.hooks_decide()
            if end < len(text) and say == self.from_server and self.dice.random() < 0.5:
                self.from_agent(self.call("judged", self.dice.choice(IDS)))

    def from_agent(self, piece: bytes) -> None:
        self.steps.append(("agent", piece))
        self.agent.says(piece)

    def from_server(self, piece: bytes) -> None:
        self.steps.append(("server", piece))
        self.server.says(piece)

    def call(self, tool: str, raw_id: str) -> bytes:
        arguments = self.dice.choice(ARGUMENTS)
        params = f'{{"name":"{tool}","arguments":{arguments}}}'
        return f'{{"jsonrpc":"2.0","id":{raw_id},"method":"tools/call","params":{params}}}\n'.encode()

    def agent_line(self) -> bytes:
        """A line of the agent: plain or damaged."""
        dice, raw_id = self.dice, self.dice.choice((*IDS, str(self.number)))
        self.number += 1
        kinds = {
            "danger": lambda: self.call("danger", raw_id),
            "judged": lambda: self.call("judged", raw_id),
            "safe": lambda: self.call("safe", raw_id),
            "ping": lambda: f'{{"jsonrpc":"2.0","id":{raw_id},"method":"ping"}}\n'.encode(),
            "cancel": lambda: (
                f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{raw_id}}}}}\n'.encode()
            ),
        }
        kind = dice.choice(("danger", "danger", "judged", "judged", "safe", "ping", "cancel"))
        line = kinds[kind]()
        if dice.random() < 0.15:  # a call inside another message
            inner = self.call("danger", raw_id).strip()
            sign = dice.choice(SIGNS)
            line = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"x":[%b%b%b]}}\n' % (sign, inner, sign)
        return damaged(line, dice) if dice.random() < (0.85 if kind == "danger" else 0.4) else line

    def server_line(self) -> bytes:
        """A line of the server: a response to something, plain or damaged."""
        dice = self.dice
        waiting = [key.decode(errors="replace") for key in (*self.router.requests, *self.router.calls)]
        raw_id = dice.choice((*IDS, *waiting)) if waiting else dice.choice(IDS)
        raw_id = raw_id if re.fullmatch(r'-?\d+(\.0)?|".*"', raw_id) else json.dumps(raw_id)
        text = SECRET + dice.choice(("", "", "x" * 1000, '\\"id\\":2', "\u2028", "x" * 1000 + "\\\\"))
        result = f'{{"content":[{{"type":"text","text":"{text}"}}]}}'
        other = dice.choice(IDS)
        lines = (
            f'{{"jsonrpc":"2.0","id":{raw_id},"result":{result}}}',
            f'{{"jsonrpc":"2.0","id":{raw_id},"result":{result}}}',
            f'{{"result":{result},"id":{raw_id},"jsonrpc":"2.0"}}',
            f'{{"jsonrpc":"2.0","id":{raw_id},"error":{{"code":1,"message":"{text}"}}}}',
            f'{{"jsonrpc":"2.0","id":{raw_id},"result":{result},"id":{other},"result":{result}}}',
            f'{{"jsonrpc":"2.0","method":"notifications/x","params":{result}}}',
            f'{{"jsonrpc":"2.0","method":"notifications/x","params":{result},"id":{other},"result":{result}}}',
            f'{{"jsonrpc":"2.0","pad":"{"x" * 900}","id":{other},"result":{result}}}',
            f'[{{"jsonrpc":"2.0","id":{raw_id},"result":{result}}}]',
        )
        line = dice.choice(lines).encode() + b"\n"
        if dice.random() < 0.2:
            inner = f'{{"jsonrpc":"2.0","id":{other},"result":{result}}}'.encode()
            sign = dice.choice(SIGNS)
            line = line.replace(b'"content":[', b'"content":[%b%b%b,' % (sign, inner, sign), 1)
        return damaged(line, dice) if dice.random() < 0.6 else line


ARGUMENTS: Final = (
    '{"command":"ls"}',
    '{"command":"ls","n":1.0}',
    '{"opts":{"command":"ls","x":[1,{"y":2}]}}',
    '{"command":"r\\u006d","t":"a\\/b"}',
    "{}",
    "null",
)

SIGNS: Final = (b"", b"", b"\r", b"\n", b"\x0b", b"\x0c", b"\x1e", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\0")

_INSERTED: Final = (
    *SIGNS,
    b" ",
    b"\t",
    b",",
    b"/* */",
    b'/*"*/',
    b"// x",
    b"\xff",
    b"\xc3",
    b"\xe2\x80",
    b"\xef\xbb\xbf",
    b"\\",
    b'"',
    b"\\u0000",
    b"{",
    b"}",
    b"[" * 70,
    b'"id":2,',
    b',"id":2',
    b',"\\u0069d":2',
    b',"ID":2,"Result":"SECRET-5e1c"',
    b'"method":"tools/call",',
    b',"Command":"rm"',
    b',"command":"rm"',
)
_KEYS: Final = (
    b'"id"',
    b'"method"',
    b'"params"',
    b'"result"',
    b'"error"',
    b'"name"',
    b'"arguments"',
    b'"command"',
    b'"jsonrpc"',
)


def variant(key: bytes, dice: random.Random) -> bytes:
    """Another spelling of a key, or of any other string."""
    inner = key[1:-1]
    if not inner:
        return key
    at = dice.randrange(len(inner))
    forms = (
        lambda: inner.upper(),
        lambda: inner.title(),
        lambda: inner[:at] + inner[at : at + 1].upper() + inner[at + 1 :],
        lambda: inner[:at] + b"\\u%04x" % inner[at] + inner[at + 1 :],
        lambda: inner + b"\\u0000",
        lambda: inner + b"\\u0000x",
        lambda: inner[:at] + b"\xff" + inner[at:],
        lambda: inner.replace(b"s", "\u017f".encode()).replace(b"k", "\u212a".encode()),
        lambda: "".join(chr(letter + 0xFEE0) if 97 <= letter < 123 else chr(letter) for letter in inner).encode(),
    )
    return b'"%b"' % dice.choice(forms)()


def damaged(line: bytes, dice: random.Random) -> bytes:
    """The line after one to three changes. It is still one line or several."""
    for _ in range(dice.choice((1, 1, 2, 3))):
        line = dice.choice(CHANGES)(line, dice)
    return line if line.endswith(b"\n") or dice.random() < 0.05 else line + b"\n"


def _respelled(line: bytes, dice: random.Random) -> bytes:
    tokens = TOKEN.findall(line)
    places = [at for at, token in enumerate(tokens) if token in _KEYS or (token[:1] == b'"' and dice.random() < 0.1)]
    if places:
        at = dice.choice(places)
        tokens[at] = variant(tokens[at], dice)
    return b"".join(tokens)


def _doubled(line: bytes, dice: random.Random) -> bytes:
    """A member twice: before or after the other one, with another value, in another spelling."""
    key = dice.choice(_KEYS)
    value = dice.choice(
        (
            b"2",
            b"8",
            b'"2"',
            b'"ping"',
            b'"tools/call"',
            b'"danger"',
            b'"2.0"',
            b'{"name":"safe"}',
            b'"rm"',
            b'"SECRET-5e1c"',
        )
    )
    member = (variant(key, dice) if dice.random() < 0.6 else key) + b":" + value
    places = [found.start() for found in re.finditer(rb"[{}]", line)]
    if not places:
        return line
    at = dice.choice(places)
    return (
        line[: at + 1] + member + b"," + line[at + 1 :]
        if line[at : at + 1] == b"{"
        else line[:at] + b"," + member + line[at:]
    )


def _inserted(line: bytes, dice: random.Random) -> bytes:
    tokens = TOKEN.findall(line)
    tokens.insert(dice.randrange(len(tokens) + 1), dice.choice(_INSERTED))
    return b"".join(tokens)


def _inserted_anywhere(line: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(line) + 1)
    return line[:at] + dice.choice(_INSERTED) + line[at:]


def _without_token(line: bytes, dice: random.Random) -> bytes:
    tokens = TOKEN.findall(line)
    del tokens[dice.randrange(len(tokens))]
    return b"".join(tokens)


def _loose(line: bytes, dice: random.Random) -> bytes:
    blank = dice.choice((b" ", b"\t", b"  ", b"\r"))
    return b"".join(
        token + blank if token in b"{}[],:" and dice.random() < 0.5 else token for token in TOKEN.findall(line)
    )


def _deep(line: bytes, dice: random.Random) -> bytes:
    depth = dice.choice((63, 70, 300, 1500))
    return line.replace(b"{", b'{"d":' + b"[" * depth + b"]" * depth + b",", dice.choice((1, 2)))


def _in_batch(line: bytes, dice: random.Random) -> bytes:
    return b"[%b]\n" % line.strip() if dice.random() < 0.7 else b'[{"jsonrpc":"2.0","method":"x"},%b]\n' % line.strip()


def _long(line: bytes, dice: random.Random) -> bytes:
    at = line.rfind(b"{")
    return line[: at + 1] + b'"pad":"%b",' % (b"x" * dice.choice((600, 1500, 7000))) + line[at + 1 :]


def _escaped(line: bytes, dice: random.Random) -> bytes:
    return re.sub(rb"(?<=\")[a-z]", lambda found: b"\\u%04x" % found[0][0] if dice.random() < 0.3 else found[0], line)


CHANGES: Final = (
    _respelled,
    _respelled,
    _doubled,
    _doubled,
    _inserted,
    _inserted,
    _inserted_anywhere,
    _without_token,
    _loose,
    _deep,
    _in_batch,
    _long,
    _escaped,
)


def _names(params: object) -> list[Any]:
    if isinstance(params, readers.Pairs):
        return readers.members(params, "name")
    return [params[0]] if isinstance(params, list) and params else []


def _commands(value: object, folded: bool = False) -> set[tuple[tuple[str, ...], str]]:
    """The values of all members `command` with their paths; with `folded`, of all that some reader takes for it."""
    if isinstance(value, readers.Pairs):
        found: set[tuple[tuple[str, ...], str]] = set()
        for key, item in value:
            name = readers.folded(key) if folded else key
            if name == "command":
                found.add(((), json.dumps(item)))
            found |= {((readers.folded(key), *path), text) for path, text in _commands(item, folded)}
        return found
    if isinstance(value, list):
        return {((str(at), *path), text) for at, item in enumerate(value) for path, text in _commands(item, folded)}
    return set()


def _nothing() -> None:
    pass


def shown(piece: bytes) -> str:
    """A piece for people, with long runs of one byte cut short."""
    return re.sub(r"(.)\1{20,}", lambda found: f"{found[1]}…{len(found[0])} times…", repr(piece))


def run(seed: int, sessions: range) -> int:
    """Play these sessions; return how many lines were tried. Raises Finding with the steps that led to it."""
    lines = 0
    for number in sessions:
        session = Session(random.Random(f"{seed}:{number}"))  # it has to be the same again
        try:
            for _ in range(STEPS):
                session.step()
            session.server.ends()
        except Exception as problem:
            steps = "\n".join(f"  {side} {shown(piece)}" for side, piece in session.steps)
            raise Finding(f"seed {seed}, session {number}\n{steps}\n{type(problem).__name__}: {problem}") from problem
        lines += session.lines
    return lines


def main() -> int:
    """Run until the time is over, and say how many lines were tried. A finding ends it with status 1."""
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long it runs; default: 60")
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="the same seed tries the same lines")
    arguments = parser.parse_args()
    end, lines, number = time.monotonic() + arguments.seconds, 0, 0
    sys.stdout.write(f"seed {arguments.seed}\n")
    try:
        while time.monotonic() < end:
            lines += run(arguments.seed, range(number, number + 50))
            number += 50
    except Finding as finding:
        sys.stderr.write(f"{finding}\n")
        return 1
    finally:
        sys.stdout.write(f"{lines} lines in {number} sessions\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
