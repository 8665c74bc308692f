"""The headers that repeat parts of a message's body (2026-07-28), made from the line that is posted, and compared.

So they are right after hooks have rewritten it. No value can end a header: what is not plain ASCII is encoded.
Source: MCP 2026-07-28, basic/transports/streamable-http, "Standard headers" and "Custom headers".
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...model.newest_entries import NewestEntries
from .messages import CALL_TOOL, Message

_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TASK_METHODS: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ANNOTATION: Final = "x-mcp-header"
_SENT_AS_IT_IS: Final = re.compile(r"[\t\x20-\x7e]*")
_INTEGRAL: Final = re.compile(r"(-?[0-9]{1,400})(?:\.0+)?")  # 400 digits: more than any number of a double has
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_UNNAMED: Final = frozenset({"additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
_ONE_SCHEMA: Final = _UNNAMED | {"items", "contains", "propertyNames", "not", "if", "then", "else", "contentSchema"}
_SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS: Final = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})
_MOST_BYTES: Final = 4 * 1024 * 1024  # of the annotations of one server's tools: those of some thousand tools
_PATH_BYTES: Final = 300  # of memory for one of them, besides its texts
_MAX_SAFE: Final = 2**53 - 1  # larger integers are not the same number to every reader, and are not repeated

Path = tuple[str, ...]
ParameterHeaders = Mapping[Path, str]
"""The header name after `Mcp-Param-` of each argument that has one, by the argument's path."""


class InvalidAnnotation(ValueError):
    """A tool's schema has an `x-mcp-header` that a client must not follow: the tool must not be used."""


def encode_value(value: str) -> bytes:
    """Return a header's value. What would not survive as it is (line ends, blanks at an end, other than ASCII) is
    encoded as `=?base64?…?=`."""
    if _PLAIN.fullmatch(value) and not _ENCODED.fullmatch(value):
        return value.encode()
    return b"=?base64?%b?=" % base64.b64encode(value.encode("utf-8", "surrogatepass"))


def decode_value(value: bytes) -> str | None:
    """Return the text that a header's value stands for; None: it is not the encoding of any text.

    Base64 has several spellings of the same bytes; only the one that encoders write is read.
    """
    text = value.decode("latin-1")
    if not _ENCODED.fullmatch(text):
        return text if _SENT_AS_IT_IS.fullmatch(text) else None
    payload = value[len("=?base64?") : -len("?=")]
    try:
        decoded = base64.b64decode(payload, validate=True)
        return decoded.decode() if base64.b64encode(decoded) == payload else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def headers(message: Message, parameters: ParameterHeaders | None) -> bytes:
    """Return the header lines of a stateless message, each with its CRLF."""
    lines = b"MCP-Protocol-Version: %b\r\n" % encode_value(message.version)
    if message.method:
        lines += b"Mcp-Method: %b\r\n" % encode_value(message.method)
    if (name := _name(message)) is not None:
        lines += b"Mcp-Name: %b\r\n" % encode_value(name)
    if parameters and message.method == CALL_TOOL:
        for header, value in parameter_values(parameters, bytes(message.params.arguments)):
            lines += b"Mcp-Param-%b: %b\r\n" % (header.encode(), encode_value(value))
    return lines


def named_by(method: str) -> str | None:
    """Return the member of `params` that `Mcp-Name` repeats for this method; None: none."""
    return "taskId" if method in _TASK_METHODS else _NAMED_BY.get(method)


def _name(message: Message) -> str | None:
    params = message.params
    value = {None: None, "taskId": params.task, "uri": params.uri, "name": params.name}[named_by(message.method)]
    return value if isinstance(value, str) else None


def parameter_values(parameters: ParameterHeaders, arguments: bytes) -> Iterator[tuple[str, str]]:
    """Yield the header name and the value of each argument that is present and not null."""
    try:
        decoded: object = msgspec.json.decode(arguments or b"{}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    for path, header in parameters.items():
        value = decoded
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if (text := written(value)) is not None:
            yield header, text


def written(value: object) -> str | None:
    """Return the text of an argument in its header; None: it has none, so there must be no header."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value)) if abs(value) <= _MAX_SAFE else None
    return None


def argument_values(parameters: ParameterHeaders, arguments: bytes) -> dict[str, object]:
    """Return the value of each argument that is present and not null, by the name of its header.

    Raises Unreadable, DuplicateKeys if readers could find different values.
    """
    values: dict[str, object] = {}
    for path, header in parameters.items():
        raw = arguments
        for key in path:
            raw = bytes(raw_json.fields(raw).get(key, b"")) if raw[:1] == b"{" else b""
        if raw not in (b"", b"null"):
            values[header] = _scalar(raw)
    return values


def _scalar(raw: bytes) -> object:
    if raw[:1] in (b"{", b"["):
        return ()  # no header agrees with it
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise raw_json.Unreadable("an argument cannot be read") from None


def is_plain(value: str) -> bool:
    """Whether a header says this, which is not empty, in these bytes, and nothing else in them."""
    return bool(value) and _PLAIN.fullmatch(value) is not None and not value.startswith("=?")


def agrees(sent: bytes, value: object) -> bool:
    """Whether a header says the same as a value of the body. Integers are compared as numbers: 42.0 is 42."""
    if isinstance(value, str) and sent == value.encode() and is_plain(value):
        return True  # nearly every value
    text = decode_value(sent)
    if text is None or value is None:
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = _INTEGRAL.fullmatch(text)
        return number is not None and int(number[1]) == value
    return text == written(value)


def parameter_headers(input_schema: bytes) -> ParameterHeaders:
    """Return the annotations of a tool's inputSchema. Raises InvalidAnnotation."""
    if _ANNOTATION.encode() not in input_schema and b"\\u" not in input_schema:  # nearly every tool
        return {}
    try:
        root: object = msgspec.json.decode(input_schema)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidAnnotation("its inputSchema cannot be read") from None
    by_path: dict[Path, str] = {}
    for path, schema in _schemas(root):
        if _ANNOTATION in schema:
            by_path[path or ()] = _checked(path, schema, by_path)
    return by_path


def _checked(path: Path | None, schema: Mapping[str, object], others: Mapping[Path, str]) -> str:
    header, kind = schema[_ANNOTATION], schema.get("type")
    if not path:
        raise InvalidAnnotation(f"{_ANNOTATION} stands where no single argument is described")
    where = ".".join(path)
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        raise InvalidAnnotation(f"{_ANNOTATION} of {where} is not a header name")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InvalidAnnotation(f"{where} has {_ANNOTATION}, but is not a string, integer or boolean")
    if header.lower() in (other.lower() for other in others.values()):
        raise InvalidAnnotation(f"{_ANNOTATION} {header} is used twice")
    return header


def _schemas(root: object) -> Iterator[tuple[Path | None, dict[str, object]]]:
    """Yield each schema with its path of `properties`; the path is None if another keyword lies on the way."""
    stack: list[tuple[Path | None, object]] = [((), root)]
    while stack:
        path, schema = stack.pop()
        if not isinstance(schema, dict):
            continue
        yield path, schema
        for key, value in schema.items():
            if key == "properties" and isinstance(value, dict):
                stack.extend((None if path is None else (*path, name), item) for name, item in value.items())
            elif key in _ONE_SCHEMA:
                stack.append((None, value))
            elif key in _SCHEMA_LISTS and isinstance(value, list):
                stack.extend((None, item) for item in value)
            elif key in _SCHEMA_MAPS and isinstance(value, dict):
                stack.extend((None, item) for item in value.values())


class ParameterTable(NewestEntries[ParameterHeaders]):
    """The annotated arguments of each listed tool that has some; of too many, those of the newest."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        super().__init__(most_bytes)

    def note(self, line: bytes) -> dict[str, str]:
        """Note the tools of a tools/list response; return why tools must not be used, by their names."""
        invalid: dict[str, str] = {}
        with contextlib.suppress(ValueError, KeyError):
            for item in raw_json.items(bytes(raw_json.fields(bytes(raw_json.fields(line)["result"]))["tools"])):
                self._note_tool(bytes(item), invalid)
        return invalid

    def _note_tool(self, item: bytes, invalid: dict[str, str]) -> None:
        with contextlib.suppress(ValueError):
            members = raw_json.fields(item)
            name = raw_json.text(bytes(members.get("name", b"")))
            if name is None:
                return
            try:
                parameters = parameter_headers(bytes(members.get("inputSchema", b"")))
            except InvalidAnnotation as problem:
                invalid[name] = str(problem)
                return
            self.forget(name)
            if parameters:
                self.keep(name, parameters, _size(parameters))


def _size(parameters: ParameterHeaders) -> int:
    """The bytes of memory that annotations take."""
    return sum(_PATH_BYTES + len(header) + sum(map(len, path)) for path, header in parameters.items())
