"""What differs between a tool call and a judged request of another method: one table, a row for each method.

A request of one of these methods is a call whose arguments are its params, but for the members that belong to the
protocol. It is read as strictly as a tool call: what two readers could take differently reaches no server (law 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.hooks import Tool
from . import calls
from .calls import Request
from .responses import Members

LISTEN: Final = b'"subscriptions/listen"'
"""The method of 2026-07-28 that subscribes to resources, among other things."""

_NOTIFICATIONS: Final = "notifications"
_SUBSCRIPTIONS: Final = "resourceSubscriptions"
_PROTOCOL_MEMBERS: Final = frozenset({"_meta", "requestState", "inputResponses"})
"""Members of params that are not arguments."""

_TEXT: Final = '{"type":"string"}'
_TEXTS: Final = '{"type":"object","additionalProperties":{"type":"string"}}'


class MethodForm(Struct, frozen=True):
    """How requests of one method are judged."""

    name: str
    """The method, as rules and hooks know it."""
    schema: bytes
    """What its params must be, with each member that MCP knows."""
    subject: str
    """The member that is a text and names what the request is about; empty: it has none."""
    content: str
    """The member of a result that hooks read."""

    @property
    def tool(self) -> Tool:
        """The method as if it were a listed tool: its schema checks rewrites, and the names of arguments."""
        return _TOOLS[self.name]


def _form(name: str, subject: str, content: str, properties: Mapping[str, str]) -> MethodForm:
    members = ",".join(f'"{key}":{of_key}' for key, of_key in properties.items())
    required = ",".join(f'"{key}"' for key in properties if key in (subject, "ref", "argument"))
    schema = f'{{"type":"object","properties":{{{members}}},"required":[{required}]}}'
    return MethodForm(name, schema.encode(), subject, content)


_READ: Final = _form("resources/read", "uri", "contents", {"uri": _TEXT})
_SUBSCRIBE: Final = _form("resources/subscribe", "uri", "", {"uri": _TEXT})
_COMPLETE: Final = _form(
    "completion/complete",
    "",
    "completion",
    {"ref": '{"type":"object"}', "argument": '{"type":"object"}', "context": '{"type":"object"}'},
)

FORMS: Final[Mapping[bytes, MethodForm]] = {
    b'"resources/list"': _form("resources/list", "", "resources", {"cursor": _TEXT}),
    b'"resources/read"': _READ,
    b'"resources/subscribe"': _SUBSCRIBE,
    LISTEN: _SUBSCRIBE,
    b'"prompts/get"': _form("prompts/get", "name", "messages", {"name": _TEXT, "arguments": _TEXTS}),
    b'"completion/complete"': _COMPLETE,
}
"""The judged methods of the agent, by the method as compact JSON."""

BY_NAME: Final[Mapping[str, MethodForm]] = {form.name: form for form in FORMS.values()}
"""The same, by the name of the method."""

_PROPERTIES: Final = {
    name: frozenset(raw_json.fields(raw_json.fields(form.schema)["properties"])) for name, form in BY_NAME.items()
}

_TOOLS: Final = {
    name: Tool(
        name,
        form.schema,
        properties=_PROPERTIES[name],
        by_loose_key={raw_json.loose_key(key): key for key in _PROPERTIES[name]},
    )
    for name, form in BY_NAME.items()
}


def may_be_judged(method: bytes, members: Members) -> bool:
    """False for a request that subscribes to no resource, which nothing concerns. Raises Unreadable, DuplicateKeys."""
    return method != LISTEN or _subscriptions(members) != []


def read(members: Members, method: bytes) -> Request:
    """Read a request of a judged method. Raises Unreadable, DuplicateKeys: then no server may get it."""
    form = FORMS[method]
    raw_id = calls.response_id(members)
    if raw_id == b"null":
        raise raw_json.Unreadable("its id is neither a string nor an integer")
    raw = bytes(members.get("params", b"{}" if not form.subject and form is not _COMPLETE else b""))
    if raw[:1] != b"{":
        raise raw_json.Unreadable("its params are not an object")
    params = raw_json.fields(raw)
    calls.check_param_keys(params)
    if "task" in params:
        raise raw_json.Unreadable("it has a task, which only tool calls may have")
    if method == LISTEN:
        uris = _subscriptions(members)
        if uris is None or len(uris) != 1:
            raise raw_json.Unreadable("it subscribes to several resources: send one request for each of them")
        arguments: Mapping[str, object] = {"uri": uris[0]}
    else:
        arguments = {name: value for name, value in params.items() if name not in _PROTOCOL_MEMBERS}
    given = raw_json.encode(arguments)
    if form.subject:
        _check_subject(given, form.subject)
    return Request(
        raw_id,
        calls.id_key(raw_id),
        form.name,
        given,
        bytes(params.get("_meta", b"")),
        params,
        mcp_method=form.name,
        listens=method == LISTEN,
    )


def _check_subject(arguments: bytes, subject: str) -> None:
    text = raw_json.text(bytes(raw_json.fields(arguments).get(subject, b"")))
    if text is None:
        raise raw_json.Unreadable(f"its {subject!r} is not a text")
    if "\0" in text:
        raise raw_json.Unreadable(f"its {subject!r} contains a NUL, where some readers stop")


def _subscriptions(members: Members) -> list[str] | None:
    """The URIs to which a `subscriptions/listen` subscribes; None: they cannot be read. Raises as `read`."""
    raw = bytes(members.get("params", b"{}"))
    params = raw_json.fields(raw) if raw[:1] == b"{" else {}
    raw = bytes(params.get(_NOTIFICATIONS, b"{}"))
    wanted = raw_json.fields(raw) if raw[:1] == b"{" else {}
    for known, names in ((_NOTIFICATIONS, params), (_SUBSCRIPTIONS, wanted)):
        for name in names:
            if name != known and raw_json.loose_key(name) == known.casefold():
                raise raw_json.Unreadable(f"some readers take its {name!r} for {known!r}")
    raw = bytes(wanted.get(_SUBSCRIPTIONS, b"null"))
    if raw == b"null":
        return []
    uris = [raw_json.text(bytes(item)) for item in raw_json.items(raw)] if raw[:1] == b"[" else [None]
    return None if None in uris else [uri for uri in uris if uri is not None]


def check_rewrite(method: str, before: bytes, arguments: bytes) -> None:
    """Raise Unreadable for a rewrite that adds a member which the method does not have."""
    for name in raw_json.fields(arguments).keys() - raw_json.fields(before).keys() - _PROPERTIES[method]:
        raise raw_json.Unreadable(f"{name!r} is not a member of {method}")


def with_arguments(params: bytes, before: bytes, arguments: bytes) -> bytes:
    """Return the params of a request with other arguments; what stays the same keeps its spelling.

    Raises ValueError.
    """
    old, new = raw_json.fields(before), raw_json.fields(arguments)
    span = raw_json.members(params)
    if _NOTIFICATIONS in span and "uri" in new and "uri" not in span:  # a `subscriptions/listen`
        wanted = params[slice(*span[_NOTIFICATIONS])]
        if bytes(new["uri"]) == bytes(old["uri"]):
            return params
        wanted = raw_json.with_member(wanted, _SUBSCRIPTIONS, b"[%b]" % raw_json.one_line(bytes(new["uri"])))
        return raw_json.with_member(params, _NOTIFICATIONS, wanted)
    for name in old.keys() - new.keys():
        params = raw_json.without_member(params, name)
    for name, value in new.items():
        if name not in old or bytes(old[name]) != bytes(value):
            params = raw_json.with_member(params, name, raw_json.one_line(bytes(value).replace(b"\n", b" ")))
    return params
