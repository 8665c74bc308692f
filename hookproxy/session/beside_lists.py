"""What a server says around what is pinned: the text of an error in its place, and members beside a list.

No lock has these, because they are another text each time or have no name. A pinned server's reach nobody: the agent
gets an error in our words, and a result with the members of the protocol only.
"""

from __future__ import annotations

import re
from typing import Final

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import AMBIGUOUS
from ..lock.description import Kind, canonical
from ..protocol.calls import SERVER_INFO_KEY
from ..protocol.response_edits import INTERNAL_ERROR, error_response, member_or_empty

_OF_LISTS: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope", "nextCursor"})

_VERSIONS: Final = ("supported", "requested")
"""The members of an error's data by which both sides agree on a version of the protocol."""
_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_VERSIONS: Final = 32  # the protocol has had a handful
_CODE: Final = re.compile(rb"-?\d{1,9}")
_NOTHING: Final = (b"null", b'""', b"{}")
"""Values with which libraries fill members that say nothing, in canonical form."""

_ERRORS: Final = {-32600: "Invalid Request", -32601: "Method not found", -32602: "Invalid params"}
"""JSON-RPC's own words for its codes, by which agents know what a server does not have."""
_OTHER_ERROR: Final = "The server did not say what it has. Its words are withheld, because no lock can have them."


def without_other_texts(kind: Kind, line: bytes) -> tuple[bytes, str]:
    """Return a response for a list without what no lock has, and what that is, for people; empty: nothing.

    Raises Unreadable, DuplicateKeys.
    """
    spans = raw_json.members(line)
    if "error" in spans:
        return own_error(line, spans)
    result = line[slice(*spans.get("result", (0, 0)))]
    if not result:
        return line, ""
    others = raw_json.members(result).keys() - _OF_LISTS - {kind.list_member}
    new = result
    for name in others:
        new = raw_json.without_member(new, name)
    new = _with_plain_meta(new)
    if new is result:
        return line, ""
    what = "other members" if others else "_meta"
    return raw_json.splice(line, [(spans["result"], new)]), f"what it says beside that ({what})"


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


def own_error(line: bytes, spans: dict[str, raw_json.Span]) -> tuple[bytes, str]:
    """Return an error in our words in the place of a server's, and what is withheld, for people; empty: nothing.

    It keeps the code, and the versions of the protocol that its data names. `spans` are the members of the line.
    """
    error = line[slice(*spans["error"])]
    raw_code = member_or_empty(error, "code")
    code = int(raw_code) if _CODE.fullmatch(raw_code) else INTERNAL_ERROR
    raw_id, text, data = line[slice(*spans["id"])], _ERRORS.get(code, _OTHER_ERROR), member_or_empty(error, "data")
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
        texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if texts and len(texts) <= _MOST_VERSIONS and all(isinstance(v, str) and _VERSION.fullmatch(v) for v in texts):
            named[name] = value
    return raw_json.encode(named) if named else b""
