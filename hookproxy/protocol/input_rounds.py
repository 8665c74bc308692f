"""The server's requests in an `input_required` result, and the agent's answers in the next round (2026-07-28).

Pure: which of them are judged, and what becomes of each, is decided elsewhere. An edited message differs only in the
requests and answers that are named here (law 2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.late_pattern import late_pattern
from . import calls
from .responses import Members
from .server_requests import ELICITATION, METHODS

REQUESTS: Final = "inputRequests"
_ANSWERS: Final = "inputResponses"
_USUAL: Final = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
"""Members of nearly all results: no reader takes one of them for requests."""

_MAY_ASK: Final = late_pattern(rb"(?i:input[_-]*requests|elicitations)|\\")


def may_ask(line: bytes) -> bool:
    """False if no reader finds requests in this response, as in nearly all."""
    return _MAY_ASK.search(line) is not None or not line.isascii()


class JudgedInputs(Struct, frozen=True):
    """What becomes of the requests in a result."""

    line: bytes
    """The response as the agent gets it."""
    requested: bytes = b""
    """The requests that are left, as in CallRound; empty: nothing is judged."""
    refused: dict[str, bytes] = {}
    """Our answers to those that are not."""
    none_left: bool = False
    """All were refused."""


def requests(result: Members) -> Members:
    """The requests in a result by their names, as spelled. Raises Unreadable, DuplicateKeys."""
    if any(key != REQUESTS and raw_json.loose_key(key) == REQUESTS.casefold() for key in result):
        raise raw_json.Unreadable(f"some readers take another member for {REQUESTS!r}")
    return raw_json.fields(result.get(REQUESTS, b"{}"))


def method_of(request: bytes | msgspec.Raw) -> str:
    """The method of a request if it can be judged; empty: it is another one. Raises Unreadable, DuplicateKeys."""
    members = raw_json.fields(request)
    calls.check_spelling(members)
    return METHODS.get(calls.method(members), "")


def asks(result: Members, judged: Collection[str]) -> bool:
    """True if some reader may find one of these methods among the requests of a result."""
    if result.keys() <= _USUAL:
        return False
    try:
        return any(method_of(request) in judged for request in requests(result).values())
    except raw_json.AMBIGUOUS:
        return True


def asks_in_error(error: bytes | msgspec.Raw, judged: Collection[str]) -> bool:
    """True if some reader may find elicitations in an error that are judged: the person must see to them first.

    In 2025-11-25 such an error has the code -32042, and lists addresses for the person.
    """
    if ELICITATION not in judged or bytes(memoryview(error)[:1]) != b"{":
        return False
    try:
        members = raw_json.fields(error)
        if any(key != "data" and raw_json.folded_key(key) == "data" for key in members):
            return True
        data = bytes(members.get("data", b""))
        return data[:1] == b"{" and any(raw_json.folded_key(key) == "elicitations" for key in raw_json.fields(data))
    except raw_json.AMBIGUOUS:
        return True


def with_requests(line: bytes, removed: Collection[str], rewritten: Mapping[str, bytes]) -> bytes:
    """The response without some of the requests, and with others in the place of theirs. Raises ValueError."""
    start, end = raw_json.members(line)["result"]
    result = line[start:end]
    asked = result[slice(*raw_json.members(result)[REQUESTS])]
    for name in removed:
        asked = raw_json.without_member(asked, name)
    for name, request in rewritten.items():
        asked = raw_json.with_member(asked, name, request)
    return raw_json.splice(line, [((start, end), raw_json.with_member(result, REQUESTS, asked))])


def encode(answers: Mapping[str, bytes | msgspec.Raw]) -> bytes:
    """The answers as one object, each as it is spelled."""
    return raw_json.encode({name: msgspec.Raw(bytes(answer)) for name, answer in answers.items()})


def next_round(line: bytes, result: Members, answers: Mapping[str, bytes]) -> bytes:
    """The line that continues a call with an answer to each of the result's requests. Raises ValueError."""
    start, end = raw_json.members(line)["params"]
    params = raw_json.with_member(line[start:end], _ANSWERS, encode(answers))
    if "requestState" in result:
        params = raw_json.with_member(params, "requestState", bytes(result["requestState"]))
    else:
        params = raw_json.without_member(params, "requestState")
    return raw_json.splice(line, [((start, end), params)])


def with_answers(params: bytes, answers: bytes) -> bytes:
    """The params of a call with these answers; without any if they are empty."""
    if raw_json.fields(answers):
        return raw_json.with_member(params, _ANSWERS, raw_json.one_line(answers))
    return raw_json.without_member(params, _ANSWERS)
