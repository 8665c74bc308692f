"""The messages of the client and the guard on the socket: one request and one response for each event. Pure.

    request    hookproxy-guard 1 AGENT CWD ENVIRONMENT DOCUMENT\\n   and then the three parts, of so many bytes
    control    hookproxy-guard 1 status\\n  or  hookproxy-guard 1 stop\\n
    response   STATUS STDOUT STDERR\\n                                and then the two parts, of so many bytes
    failure    failed 0 TEXT\\n                                       and then why nothing can be judged

A client that gets no response asks again: the guard was killed, or another version of hookproxy is installed or asks,
and another guard listens then. `client.py` writes requests and reads responses by itself, because it imports nothing: a
test holds that both agree.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from ..dialects.agent_side import HookOutput
from ..processes.ancestry import Process

GREETING: Final = b"hookproxy-guard"
VERSION: Final = b"1"
"""The first two words of a request: who is meant, and the version of this form."""

Control = Literal["status", "stop", "run"]
"""What else is asked of the guard: how it is, that it ends when the events that it judges now are judged, or that it
answers a run of the proxy."""

_CONTROLS: Final[Mapping[bytes, Control]] = {b"status": "status", b"stop": "stop", b"run": "run"}

LONGEST_HEAD: Final = 256  # bytes of a first line: four numbers of 20 digits, and a name
LONGEST_DOCUMENT: Final = 16 * 1024 * 1024  # bytes: a call with its result; agents keep results far below that
LONGEST_PART: Final = 4 * 1024 * 1024  # bytes of an environment, or a path: systems allow 2 MiB and less
_PARTS: Final = 3


class NotARequest(Exception):
    """The text says why, in a few words; `agent` is who sent it, or empty."""

    def __init__(self, why: str, agent: str = "") -> None:
        super().__init__(why)
        self.agent = agent


class OtherVersion(Exception):
    """The request is in the form of another version of hookproxy."""


class Head(Struct, frozen=True):
    """The first line of a request."""

    agent: str
    lengths: tuple[int, int, int]
    """Of the working directory, the environment and the document, in bytes."""


class Request(Struct, frozen=True):
    """An event of an agent, as its hook was started for it."""

    agent: str
    """The name of its dialect."""
    cwd: str
    environ: Mapping[str, str]
    document: bytes
    process: Process | None = None
    """The agent, as far as the system says which process it is."""
    run: Process | None = None
    """The run of the proxy below which the agent stands; None: below none."""


def read_head(line: bytes) -> Head | Control:
    """Read the first line of a request, without its line feed. Raises NotARequest and OtherVersion."""
    words = line.split(b" ")
    if words[0] != GREETING:
        raise NotARequest("its first line cannot be read")
    if words[1:2] != [VERSION]:
        raise OtherVersion
    if len(words) == 3 and words[2] in _CONTROLS:  # greeting, version, word
        return _CONTROLS[words[2]]
    if len(words) != 3 + _PARTS or not all(word.isascii() and word.isdigit() for word in words[3:]):
        raise NotARequest("its first line cannot be read")
    agent, (cwd, environ, document) = words[2].decode("ascii", "replace"), map(int, words[3:])
    if cwd > LONGEST_PART or environ > LONGEST_PART:
        raise NotARequest("its environment is too long", agent)
    if document > LONGEST_DOCUMENT:
        raise NotARequest(f"its document has {document} bytes, and no more than {LONGEST_DOCUMENT} are judged", agent)
    return Head(agent, (cwd, environ, document))


def read_request(head: Head, parts: bytes, process: Process | None = None, run: Process | None = None) -> Request:
    """Read the parts that follow the first line, all together; `process` and `run` are as in Request."""
    cwd, environ, _ = head.lengths
    variables = _variables(parts[cwd : cwd + environ])
    return Request(head.agent, os.fsdecode(parts[:cwd]), variables, parts[cwd + environ :], process, run)


@lru_cache(maxsize=64)  # an agent gives its hooks the same ones again and again, and reading them takes 0.2 ms
def _variables(environ: bytes) -> Mapping[str, str]:
    pairs = (entry.partition("=") for entry in os.fsdecode(environ).split("\0"))
    return {name: value for name, _, value in pairs if name}


def write_control(control: Control) -> bytes:
    """The request that asks for it."""
    return b"%b %b %b\n" % (GREETING, VERSION, control.encode())


def write_response(output: HookOutput) -> bytes:
    """The response with what the agent reads from its hook."""
    text = output.stderr.rstrip("\n").encode("utf-8", "replace")
    text += b"\n" if text else b""
    return b"%d %d %d\n" % (output.status, len(output.stdout), len(text)) + output.stdout + text


def write_failure(why: str) -> bytes:
    """The response of a guard that can judge nothing: the client fails, or refuses if it is to fail closed."""
    text = why.encode("utf-8", "replace")
    return b"failed 0 %d\n" % len(text) + text
