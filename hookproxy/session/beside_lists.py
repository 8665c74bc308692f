"""What a server says around what is pinned: the text of an error in its place, and members beside it.

No lock has these, because they are another text each time or have no name. A pinned server's reach nobody: the agent
gets an error in our words, and a result with the members of the protocol only, each of which can be no other text.
"""

from __future__ import annotations

import re
from typing import Final

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import AMBIGUOUS
from ..lock.description import Kind, canonical
from ..protocol.calls import SERVER_INFO_KEY
from ..protocol.response_edits import INTERNAL_ERROR, error_response, member_or_empty

_OF_LINES: Final = frozenset({"jsonrpc", "id", "result"})
_OF_RESULTS: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})
_OF_SERVERS: Final = frozenset(
    {"protocolVersion", "supportedVersions", "capabilities", "serverInfo", "instructions", *_OF_RESULTS}
)

_VERSIONS: Final = ("supported", "requested")
"""The members of an error's data by which both sides agree on a version of the protocol."""
_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}|DRAFT-\d{4}-v\d{1,3}")
_MOST_VERSIONS: Final = 32  # the protocol has had a handful
_CODE: Final = re.compile(rb"-?\d{1,9}")
_NOTHING: Final = (b"null", b'""', b"{}")
"""Values with which libraries fill members that say nothing, in canonical form."""

_ERRORS: Final = {-32600: "Invalid Request", -32601: "Method not found", -32602: "Invalid params"}
"""JSON-RPC's own words for its codes, by which agents know what a server does not have."""
_OTHER_ERROR: Final = "The server did not say what it has. Its words are withheld, because no lock can have them."
_OWN_ERROR: Final = "The server did not say what it has."
"""In place of our own error, which may quote the server."""
OF_OWN_ERROR: Final = "hookproxy's standard error says why."


def without_other_texts(kind: Kind | None, line: bytes, ours: str = "") -> tuple[bytes, str]:
    """Return a response without what no lock has, and what that is, for people; empty: nothing.

    It is that for a list of this kind, or (None) for what the server is. With `ours` it is our own error, and this is a
    sentence that says more, with no word of the server's. Raises Unreadable, DuplicateKeys.
    """
    spans = raw_json.members(line)
    if "error" in spans:
        return _own_error(line, spans, f"{_OWN_ERROR} {ours}" if ours else _OTHER_ERROR)
    if "result" not in spans:
        return line, ""
    new = result = line[slice(*spans["result"])]
    known = _OF_SERVERS if kind is None else _OF_RESULTS | {kind.list_member, "nextCursor"}
    of_result = raw_json.members(result)
    others = [name for name, span in of_result.items() if name not in known or not _fits(name, result[slice(*span)])]
    for name in others:
        new = raw_json.without_member(new, name)
    new = _with_plain_meta(new)
    around = [name for name, span in spans.items() if name not in _OF_LINES or not _fits(name, line[slice(*span)])]
    if new is result and not around:
        return line, ""
    line = raw_json.splice(line, [(spans["result"], new)])
    for name in around:
        line = raw_json.without_member(line, name)
    return line, f"what it says beside that ({'other members' if others or around else '_meta'})"


def _fits(name: str, raw: bytes) -> bool:
    """Whether a member of a line or a result has a value that only the protocol's use of it can have."""
    match name:
        case "jsonrpc":
            return raw_json.text(raw) == "2.0"
        case "resultType":
            return raw_json.text(raw) == "complete"
        case "cacheScope":
            return raw_json.text(raw) in ("public", "private")
        case "ttlMs":
            return isinstance(raw_json.decoded(raw), int | float)
        case "nextCursor":  # of which no agent shows its model anything
            return raw == b"null" or raw_json.text(raw) is not None
        case "protocolVersion" | "supportedVersions":
            return _are_versions(raw_json.decoded(raw))
        case _:
            return True


def _with_plain_meta(result: bytes) -> bytes:
    """The result with nothing in `_meta` but the server's name, which is compared."""
    meta = member_or_empty(result, "_meta")
    if not meta or _canonical_or_empty(meta) in _NOTHING:
        return result
    info = member_or_empty(meta, SERVER_INFO_KEY)
    if not info:
        return raw_json.without_member(result, "_meta")
    if len(raw_json.members(meta)) == 1:
        return result
    return raw_json.with_member(result, "_meta", b'{"%b":%b}' % (SERVER_INFO_KEY.encode(), info))


def _own_error(line: bytes, spans: dict[str, raw_json.Span], other: str) -> tuple[bytes, str]:
    """Return an error in our words in the place of a server's, and what is withheld, for people; empty: nothing.

    It keeps the code, and the versions of the protocol that its data names. `spans` are the members of the line, and
    `other` is what an error says that is none of JSON-RPC's own.
    """
    error = line[slice(*spans["error"])]
    raw_code = member_or_empty(error, "code")
    code = int(raw_code) if _CODE.fullmatch(raw_code) else INTERNAL_ERROR
    raw_id, text, data = line[slice(*spans["id"])], _ERRORS.get(code, other), member_or_empty(error, "data")
    same = error_response(raw_id, code, text, data if _canonical_or_empty(data) in _NOTHING else _versions(data))
    if canonical(same) == _canonical_or_empty(line):
        return line, ""
    return error_response(raw_id, code, text, _versions(data)), f"the text of an error ({code})"


def _canonical_or_empty(raw: bytes) -> bytes:
    """The canonical text of a value; empty: it has none."""
    try:
        return canonical(raw)
    except AMBIGUOUS:
        return b""


def _versions(data: bytes) -> bytes:
    """The data of an error with nothing in it but versions of the protocol; empty: it names none."""
    if not data.startswith(b"{"):
        return b""
    named: dict[str, object] = {}
    for name in _VERSIONS:
        value = raw_json.decoded(member_or_empty(data, name) or b"null")
        if _are_versions(value):
            named[name] = value
    return raw_json.encode(named) if named else b""


def _are_versions(value: object) -> bool:
    """Whether a value is a version of the protocol, or a list of some."""
    texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return 0 < len(texts) <= _MOST_VERSIONS and all(isinstance(v, str) and _VERSION.fullmatch(v) for v in texts)
