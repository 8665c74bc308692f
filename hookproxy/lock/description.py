"""What a server says of itself, in a form that is the same however it spells it.

An `Entry` is a tool, a prompt or a resource template with all members, also those that no agent is known to read:
tomorrow one may. Left out is only the `traceparent` of a request in `_meta`, which is another one each time and has
place for digits only. Two entries are
equal if their canonical texts are: the order of keys and the spacing between tokens do not count, everything inside of
strings does.

What two readers could read differently (twin keys, half of a surrogate pair, too many levels) has no canonical text: it
cannot be pinned, and is never equal to what is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import normalize, raw_json
from ..jsonrpc.raw_json import Unreadable

MOST_BYTES: Final = 1024 * 1024
"""Of one entry or text: a hundred times what the longest known description takes, and still a file that can be read."""

_DECODER: Final = msgspec.json.Decoder()
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_TRACE: Final = "traceparent"  # of W3C's trace context: its other two members may hold any text
_TRACE_FORM: Final = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Kind(Enum):
    """What is listed; the value is the word for it."""

    TOOL = "tool"
    PROMPT = "prompt"
    TEMPLATE = "resource template"

    __hash__ = object.__hash__  # that of Enum is slower than all else that finding an entry takes

    @property
    def list_method(self) -> str:
        """The method that lists it."""
        return _LISTS[self][0]

    @property
    def list_member(self) -> str:
        """The member of that method's result that has the list."""
        return _LISTS[self][1]

    @property
    def key(self) -> str:
        """The member that tells entries apart."""
        return "uriTemplate" if self is Kind.TEMPLATE else "name"


_LISTS: Final = {
    Kind.TOOL: ("tools/list", "tools"),
    Kind.PROMPT: ("prompts/list", "prompts"),
    Kind.TEMPLATE: ("resources/templates/list", "resourceTemplates"),
}


class Entry(Struct, frozen=True, dict=True):
    """A tool, a prompt or a resource template."""

    kind: Kind
    name: str
    """Its name; of a resource template, the template of its URIs."""
    text: bytes
    """Its canonical text."""

    @cached_property
    def quotes(self) -> int:
        """How many quotes its text has."""
        return self.text.count(b'"')

    def members(self) -> dict[str, object]:
        """Its members as values."""
        value = _DECODER.decode(self.text)
        assert isinstance(value, dict)
        return value


NAMES: Final = ("name", "version", "title")
"""The members of `serverInfo` that only name the server."""


class Identity(Struct, frozen=True, omit_defaults=True):
    """What a server says of itself beside its lists: in `initialize`, or in the results of the stateless era."""

    name: str = ""
    version: str = ""
    title: str = ""
    instructions: str = ""
    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    """In canonical form."""
    details: msgspec.Raw = msgspec.Raw(b"{}")
    """All else that `serverInfo` has, such as a description and icons, in canonical form."""


class Description(Struct, frozen=True):
    """All that a server says of itself."""

    identity: Identity
    entries: Mapping[tuple[Kind, str], Entry]
    """By kind and name, in the order of its lists."""


def canonical(raw: bytes | msgspec.Raw) -> bytes:
    """The canonical text of a JSON value. Raises Unreadable, DuplicateKeys.

    The fast decoder keeps the last of twin keys. They show in the number of quotes: the canonical text has as many as
    the text, unless a member was lost, or a quote is spelled as an escape; then a reader decides that knows twins.
    """
    return _read(bytes(raw))[0]


def _read(data: bytes) -> tuple[bytes, object]:
    """The canonical text of a value, and the value. Raises Unreadable, DuplicateKeys."""
    if b"\\u0022" not in data:
        try:
            value = _DECODER.decode(data)
            text = _ENCODER.encode(value)
        except (*raw_json.DECODE_ERRORS, ValueError):
            pass  # the slow reader says what is wrong
        else:
            if text.count(b'"') == data.count(b'"'):
                return (_ENCODER.encode(value) if _drop_trace(value) else text), value
    return _read_slowly(data)


def _read_slowly(data: bytes) -> tuple[bytes, object]:
    raw_json.check_utf8(data)
    try:
        value = _DECODER.decode(normalize.normalize(data))
        _drop_trace(value)
        return _ENCODER.encode(value), value
    except RecursionError:
        raise raw_json.TooDeep from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise Unreadable(str(error)) from None


def _drop_trace(value: object) -> bool:
    """Remove the trace of a request, which says nothing, from the value; False: it has none."""
    meta = value.get("_meta") if isinstance(value, dict) else None
    trace = meta.get(_TRACE) if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(trace, str) or not _TRACE_FORM.fullmatch(trace):
        return False
    del meta[_TRACE]
    return True


def digest(text: bytes) -> str:
    """The digest of a canonical text."""
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def is_same(pinned: Mapping[str, Entry], key: str, data: bytes) -> Entry | None:
    """The entry of `pinned`, by names, of which this is another spelling; None: it is none, or a slower look says so.

    `key` is the member that has the name. The number of quotes shows twin keys, as in `canonical`.
    """
    if len(data) > MOST_BYTES or (b"\\" in data and b"\\u0022" in data):  # one byte is found faster
        return None
    try:
        value = _DECODER.decode(data)
        same = pinned.get(value[key])
        return same if same and _ENCODER.encode(value) == same.text and data.count(b'"') == same.quotes else None
    except (*raw_json.DECODE_ERRORS, ValueError, TypeError, KeyError):
        return None


def entry(kind: Kind, raw: bytes | msgspec.Raw) -> Entry:
    """Read a listed entry. Raises Unreadable (also for one that is too long or has no name), DuplicateKeys."""
    if len(raw) > MOST_BYTES:
        raise Unreadable(f"is described in more than {MOST_BYTES} bytes")
    text, value = _read(bytes(raw))
    name = value.get(kind.key) if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise Unreadable(f"has no text as its {kind.key}")
    return Entry(kind, name, text)


def names_in(kind: Kind, raw: bytes) -> list[str]:
    """Every name that some reader takes for that of an entry which cannot be read in one way only."""
    try:
        members = json.loads(raw, object_pairs_hook=list, parse_int=str, parse_float=str) if raw[:1] == b"{" else []
    except (ValueError, RecursionError):
        return []
    return [value for key, value in members if key == kind.key and isinstance(value, str)]


def identity(result: Mapping[str, msgspec.Raw], server_info: bytes | msgspec.Raw | None = None) -> Identity:
    """Read the members of the result of `initialize` or `server/discover`. Raises Unreadable, DuplicateKeys.

    In the stateless era `server_info` is in the `_meta` of results.
    """
    old_place = result.get("serverInfo")
    if server_info and old_place and canonical(server_info) != canonical(old_place):
        raise Unreadable("the server names itself in two ways")
    info = raw_json.fields(server_info or old_place or b"{}")
    others = {name: value for name, value in info.items() if name not in NAMES}
    return Identity(
        name=_optional_text(info, "name"),
        version=_optional_text(info, "version"),
        title=_optional_text(info, "title"),
        instructions=_optional_text(result, "instructions"),
        capabilities=msgspec.Raw(canonical(result.get("capabilities", b"{}"))),
        details=msgspec.Raw(canonical(raw_json.encode(others))),
    )


def _optional_text(members: Mapping[str, msgspec.Raw], name: str) -> str:
    raw = bytes(members.get(name, b"null"))
    if raw == b"null":
        return ""
    if len(raw) > MOST_BYTES:
        raise Unreadable(f"it has more than {MOST_BYTES} bytes in its {name}")
    text = raw_json.text(raw)
    if text is None:
        raise Unreadable(f"it has no text as its {name}")
    return text
