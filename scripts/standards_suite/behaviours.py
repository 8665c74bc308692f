"""A server of the interceptors that a case needs: the behaviours of the working group's ADAPTER.md, on our server.

It is started as `behaviours.py CASE.json`, and speaks on standard input and output. The two behaviours about secrets
use what hookproxy knows: which texts look like secrets, and which published server has which tools.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec

from hookproxy.interceptors.over_stdio import serve
from hookproxy.interceptors.service import Invocation, Offered, Service
from hookproxy.jsonrpc import raw_json
from hookproxy.policy.presets import PRESETS
from hookproxy.protocol import interceptors as wire
from hookproxy.secrets.mask import Masking

Judge = Callable[[Invocation], Mapping[str, object]]
LONGEST = 1_000_000
"""Bytes of a message: cases have some hundred."""
TOKEN = re.compile(r"[A-Za-z0-9_+/=.-]{16,}")
"""What may be a token: shorter words are none."""


def payload_of(invocation: Invocation) -> dict[str, Any]:
    """The payload, if it is an object."""
    payload = json.loads(invocation.payload)
    return payload if isinstance(payload, dict) else {}


def note_of(invocation: Invocation) -> object:
    """The argument that the behaviours are about."""
    return payload_of(invocation).get("arguments", {}).get("note")


def invalid(text: str) -> Mapping[str, object]:
    """The result of a validation that blocks."""
    return {"valid": False, "severity": "error", "messages": [{"message": text, "severity": "error"}]}


def allow_all(_invocation: Invocation) -> Mapping[str, object]:
    """`allow-all`."""
    return {"valid": True}


def deny_all(_invocation: Invocation) -> Mapping[str, object]:
    """`deny-all`."""
    return invalid("denied by policy")


def require_note(invocation: Invocation) -> Mapping[str, object]:
    """`require-note`."""
    note = note_of(invocation)
    return {"valid": True} if isinstance(note, str) and note else invalid("note is required")


def require_uppercase_note(invocation: Invocation) -> Mapping[str, object]:
    """`require-uppercase-note`."""
    note = note_of(invocation)
    return {"valid": True} if isinstance(note, str) and note == note.upper() else invalid("note must be uppercase")


def uppercase_note(invocation: Invocation) -> Mapping[str, object]:
    """`uppercase-note`."""
    payload, note = payload_of(invocation), note_of(invocation)
    if not isinstance(note, str):
        return {"modified": False, "payload": msgspec.Raw(invocation.payload)}
    return {"modified": True, "payload": {**payload, "arguments": {**payload["arguments"], "note": note.upper()}}}


def crash(_invocation: Invocation) -> Mapping[str, object]:
    """`crash`."""
    raise RuntimeError("the interceptor crashed")


def secretless_redactor() -> Judge:
    """`secretless-redactor`: what looks like a secret does not go out."""

    def redact(invocation: Invocation) -> Mapping[str, object]:
        masked = Masking().json(invocation.payload)
        return {"modified": masked != invocation.payload, "payload": msgspec.Raw(masked)}

    return redact


def cross_boundary_guard() -> Judge:
    """`cross-boundary-guard`: a secret that came from one server does not go to another one."""
    read: dict[str, dict[str, str]] = {}  # by session: which server a secret came from first
    asked: dict[str, str] = {}  # by session: the server of the last request

    def secrets(invocation: Invocation) -> list[str]:
        return [word for word in TOKEN.findall(invocation.payload.decode()) if Masking().text(word) != word]

    def judge(invocation: Invocation) -> Mapping[str, object]:
        origins = read.setdefault(invocation.session, {})
        if invocation.phase == "response":
            server = asked.get(invocation.session, "")
            for secret in secrets(invocation):
                origins.setdefault(part_of(secret), server)
            return {"valid": True}
        tool = str(payload_of(invocation).get("name", ""))
        server = next((name for name, _ in PRESETS.naming(tool)), tool)
        asked[invocation.session] = server
        for secret in secrets(invocation):
            origin = origins.get(part_of(secret), server)
            if origin != server:
                return invalid(f"a secret that came from {origin} must not go to {server}")
        return {"valid": True}

    return judge


def part_of(word: str) -> str:
    """The secret itself: a word may have `NAME=` before it."""
    return word.rpartition("=")[2] if "=" in word.rstrip("=") else word


BEHAVIOURS: dict[str, Callable[[], Judge]] = {
    "allow-all": lambda: allow_all,
    "deny-all": lambda: deny_all,
    "require-note": lambda: require_note,
    "require-uppercase-note": lambda: require_uppercase_note,
    "uppercase-note": lambda: uppercase_note,
    "crash": lambda: crash,
    "cross-boundary-guard": cross_boundary_guard,
    "secretless-redactor": secretless_redactor,
}


def offered(entry: dict[str, Any]) -> Offered:
    """An interceptor of a case."""
    phases = wire.PHASES if entry["phases"] == "both" else (entry["phases"],)
    hooks = [{"events": entry["events"], "phase": phase} for phase in phases]
    kept = {key: entry[key] for key in ("name", "type", "mode", "failOpen", "priorityHint") if key in entry}
    [descriptor] = wire.read_list(raw_json.fields(json.dumps({"interceptors": [{**kept, "hooks": hooks}]}).encode()))
    judge = BEHAVIOURS[entry["behavior"]]()

    async def handle(invocation: Invocation) -> Mapping[str, object]:
        return judge(invocation)

    return Offered(descriptor, handle)


def main() -> None:
    """Serve until the host has gone."""
    case = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    service = Service([offered(entry) for entry in case["interceptors"]], lambda _text: None)
    anyio.run(serve, service, os.dup(0), os.dup(1), LONGEST)


if __name__ == "__main__":
    main()
