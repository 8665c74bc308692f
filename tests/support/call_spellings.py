"""Every way we know of spelling a tool call, and every reader we know of: a table for tests of law 1.

A call of DANGER in any SPELLING must leave no byte at the server. A CARRIER may pass, in some spelling, but no
reader may find a call in what has passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

DANGER: Final = "danger"
"""The tool whose calls hooks deny."""

MARK: Final = "MARK-7f3a"
"""Stands in the arguments of most denied calls."""

CALL: Final = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger","arguments":{"m":"MARK-7f3a"}}}'
_PARAMS: Final = '{"name":"danger","arguments":{"m":"MARK-7f3a"}}'


@dataclass(frozen=True, slots=True)
class Spelling:
    """What the agent writes: `text` is whole lines but for `no line end` cases."""

    title: str
    text: bytes

    def __str__(self) -> str:
        return self.title


def _rows() -> Iterator[tuple[str, str | bytes]]:
    yield "plain", CALL
    yield from _escapes()
    yield from _blanks()
    yield from _orders()
    yield from _duplicates()
    yield from _padded_duplicates()
    yield from _ids()
    yield from _parameters()
    yield from _batches()
    yield from _cases()
    yield from _strange_bytes()
    yield from _not_quite_json()
    yield from _depths()
    yield from _zero_bytes()
    yield from _unknown_members()


def _escapes() -> Iterator[tuple[str, str]]:
    everything = "".join(f"\\u{ord(letter):04x}" for letter in "tools/call")
    for title, method in {
        "slash": "tools\\/call",
        "first letter": "\\u0074ools/call",
        "last letter": "tools/cal\\u006c",
        "slash by number": "tools\\u002fcall",
        "slash by capital number": "tools\\u002Fcall",
        "every letter": everything,
    }.items():
        yield f"method escaped: {title}", CALL.replace("tools/call", method)
    for key in ("jsonrpc", "id", "method", "params", "name", "arguments"):
        first = f"\\u{ord(key[0]):04x}{key[1:]}"
        last = f"{key[:-1]}\\u{ord(key[-1]):04X}"
        yield f"{key} escaped at its start", CALL.replace(f'"{key}"', f'"{first}"')
        yield f"{key} escaped at its end", CALL.replace(f'"{key}"', f'"{last}"')
    yield "tool name escaped", CALL.replace("danger", "d\\u0061nger")
    yield "tool name escaped whole", CALL.replace("danger", "".join(f"\\u{ord(letter):04X}" for letter in "danger"))
    letters = re.sub(r"[A-Za-z]", lambda found: f"\\u{ord(found[0]):04x}", CALL)
    yield "every letter escaped", letters.replace(re.sub(".", lambda f: f"\\u{ord(f[0]):04x}", "MARK"), "MARK")


def _blanks() -> Iterator[tuple[str, str]]:
    for title, blank in {"blank": " ", "tab": "\t", "many blanks": "     ", "mixed": " \t "}.items():
        loose = CALL
        for sign in "{}:,":
            loose = loose.replace(sign, f"{blank}{sign}{blank}")
        yield f"{title} everywhere", loose
        yield f"{title} before", blank + CALL
        yield f"{title} after", CALL + blank
    yield "as Python spells it", json.dumps(json.loads(CALL))
    yield "line end of Windows", CALL + "\r"
    yield "line ends of Windows", CALL + "\r\r\r"
    yield "carriage return before", "\r" + CALL
    yield "carriage returns between tokens", CALL.replace(",", "\r,\r").replace(":", "\r:\r")
    yield "a blank line before", "\n" + CALL
    yield "a blank line of Windows before", "\r\n" + CALL
    yield "blank lines around", "\n \n\t\n" + CALL + "\n\n\n"


def _orders() -> Iterator[tuple[str, str]]:
    members = [*CALL[1:-1].split(",", 3)]
    for order in permutations(range(4)):
        yield f"order of members {order}", "{{{}}}".format(",".join(members[at] for at in order))
    yield "arguments before name", CALL.replace(_PARAMS, '{"arguments":{"m":"MARK-7f3a"},"name":"danger"}')


def _duplicates() -> Iterator[tuple[str, str]]:
    benign = {
        "jsonrpc": '"2.0"',
        "id": "8",
        "method": '"ping"',
        "params": '{"name":"safe"}',
    }
    for key, value in benign.items():
        escaped = f"\\u{ord(key[0]):04x}{key[1:]}"
        for title, duplicate in {"": key, ", escaped": escaped}.items():
            yield f"duplicate {key} first{title}", f'{{"{duplicate}":{value},{CALL[1:]}'
            yield f"duplicate {key} last{title}", f'{CALL[:-1]},"{duplicate}":{value}}}'
            yield f"duplicate {key} first, loose{title}", f'{{ "{duplicate}": {value}, {CALL[1:]}'
            yield (
                f"duplicate {key} last, blanks{title}",
                json.dumps(json.loads(CALL))[:-1] + f', "{duplicate}": {value}}}',
            )
    yield "the same twice", CALL[:-1] + "," + CALL[1:]
    for key, value in {
        "name": '"safe"',
        "arguments": "{}",
        "_meta": "{}",
        "task": "{}",
        "requestState": '""',
        "inputResponses": "{}",
    }.items():
        params = _PARAMS[:-1] + (f',"{key}":{value}' if f'"{key}"' not in _PARAMS else "") + "}"
        yield f"duplicate {key} in params first", CALL.replace(_PARAMS, f'{{"{key}":{value},{params[1:]}')
        yield f"duplicate {key} in params last", CALL.replace(_PARAMS, f'{params[:-1]},"{key}":{value}}}')
    yield "duplicate arguments, escaped", CALL.replace('"arguments"', '"\\u0061rguments":{},"arguments"')
    yield "duplicate name, escaped", CALL.replace('"name"', '"n\\u0061me":"safe","name"')
    yield "duplicate in arguments", CALL.replace('"m":', '"m":"harmless","m":')
    yield "duplicate in arguments, escaped", CALL.replace('"m":', '"\\u006d":"harmless","m":')
    yield "duplicate deep in arguments", CALL.replace('"m":', '"deep":[[{"q":{"a":1,"a":2}}]],"m":')
    yield "duplicate deep in arguments, loose", CALL.replace('"m":', '"deep":[[{"q":{ "a":1 ,"a" :2}}]],"m":')
    yield "duplicate in _meta", CALL.replace('"name"', '"_meta":{"progressToken":1,"progressToken":2},"name"')
    yield "duplicate methods of which neither is last", CALL[:-1] + ',"method":"ping","x":1}'


def _padded_duplicates() -> Iterator[tuple[str, str]]:
    """A key twice, and both values so long that who only measures finds a harmless message in their place."""
    tools_list = '"id": 1, "method": "tools/list", "params": {"pad":"%s"}' % ("x" * (len(_PARAMS) - 11))
    for number in range(6):
        loose = "".join(f'"k{each}": 0, ' for each in range(number))
        dense = loose.replace(" ", "")
        harmless = f'{{"z": 0, {loose}{tools_list}}}'
        call = '"id":1,"method":"tools/call","params":{}{}'.format(_PARAMS, "  " * number)
        yield f"a harmless message inside a duplicate, {number}", f'{{"x": 1,{dense}{call},"x":{harmless}}}'
    for number in range(3):
        loose = "".join(f'"k{each}": 0, ' for each in range(number)) + '"a": 1, "b": 1'
        dense = loose.replace(" ", "") + "1" + "  " * number
        params = f'{{"x": 1,"name":"danger",{dense},"x":{{"z": 0, "name": "nobody", {loose}}}}}'
        yield f"a harmless name inside a duplicate, {number}", CALL.replace(_PARAMS, params)


def _ids() -> Iterator[tuple[str, str]]:
    yield "no id", CALL.replace('"id":7,', "")
    for raw in ("null", "true", "false", "7.0", "7.5", "7e0", "-7.0", "1e400", "[]", "[7]", "{}", '{"id":7}'):
        yield f"id {raw}", CALL.replace('"id":7', f'"id":{raw}')
    for raw in ('"7"', '""', '" "', "0", "-0", "-7", "12345678901234567890123", '"\\u0037"', '"\\ud800"', '"é"'):
        yield f"id {raw}", CALL.replace('"id":7', f'"id":{raw}')
    yield "the same id twice in flight", CALL + "\n" + CALL
    yield "ids 7 and '7' in flight", CALL + "\n" + CALL.replace('"id":7', '"id":"7"')
    yield "no jsonrpc", CALL.replace('"jsonrpc":"2.0",', "")
    yield "jsonrpc 1.0", CALL.replace("2.0", "1.0")
    yield "jsonrpc null", CALL.replace('"2.0"', "null")
    yield "a result as well", CALL[:-1] + ',"result":{}}'
    yield "a result first", '{"result":{},' + CALL[1:]
    yield "an error as well", CALL[:-1] + ',"error":{"code":1,"message":""}}'
    yield "an error first, no id", '{"error":{"code":1,"message":""},' + CALL.replace('"id":7,', "")[1:]


def _parameters() -> Iterator[tuple[str, str]]:
    yield "positional params", CALL.replace(_PARAMS, '["danger",{"m":"MARK-7f3a"}]')
    for raw in ("null", '"danger MARK-7f3a"', "7", "true", "[]", f"[{_PARAMS}]"):
        yield f"params {raw[:20]}", CALL.replace(_PARAMS, raw)
    yield "no params", '{"jsonrpc":"2.0","id":7,"method":"tools/call"}'
    yield "params in the envelope", CALL.replace('"params":' + _PARAMS, _PARAMS[1:-1])
    yield "no name", CALL.replace('"name":"danger",', "")
    for raw in ('["danger"]', "7", "null", '{"name":"danger"}', '"danger\\ud800"'):
        yield f"name {raw}", CALL.replace('"name":"danger"', f'"name":{raw}')
    for raw in ('"MARK-7f3a"', '["MARK-7f3a"]', "7", "true", '"{\\"m\\":\\"MARK-7f3a\\"}"'):
        yield f"arguments {raw}", CALL.replace('{"m":"MARK-7f3a"}', raw)
    for raw in ("null", "{}"):
        yield f"arguments {raw}", CALL.replace('{"m":"MARK-7f3a"}', raw)
    yield "no arguments", CALL.replace(',"arguments":{"m":"MARK-7f3a"}', "")
    for raw in ("null", "{}", "7", '"x"', "[]", '{"progressToken":7}', '{"a":1,"a":2}'):
        yield f"_meta {raw}", CALL.replace('"name"', f'"_meta":{raw},"name"')
    yield "a task", CALL.replace('"name"', '"task":{"ttl":60000},"name"')
    yield "an input round", CALL.replace('"name"', '"requestState":"s","inputResponses":{},"name"')
    stateless = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name"'
    yield "stateless", CALL.replace('"name"', stateless)
    yield "numbers that floats cannot hold", CALL.replace('"m":', f'"n":1e400,"i":{"9" * 5000},"m":')
    yield "half a surrogate pair in arguments", CALL.replace("MARK", "\\ud83dMARK")
    yield "half a surrogate pair as a key in arguments", CALL.replace('"m"', '"\\udc00":1,"m"')
    yield "NaN in arguments", CALL.replace('"m":', '"n":NaN,"m":')


def _batches() -> Iterator[tuple[str, str]]:
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    yield "batch of one", f"[{CALL}]"
    yield "batch of one, loose", f" [ {CALL} ] "
    yield "batch, last", f"[{ping},{CALL}]"
    yield "batch, first", f"[{CALL},{ping}]"
    yield "batch of two", f"[{CALL},{CALL}]"
    yield "batch in a batch", f"[[{CALL}]]"
    yield "batch with nonsense", f'[7,"x",null,{CALL}]'
    for title, call in {
        "escaped": CALL.replace("tools/call", "tools\\u002fcall"),
        "duplicate method": CALL[:-1] + ',"method":"ping"}',
        "method in capitals": CALL.replace("method", "Method"),
        "notification form": CALL.replace('"id":7,', ""),
        "null id": CALL.replace('"id":7', '"id":null'),
        "positional params": CALL.replace(_PARAMS, '["danger",{"m":"MARK-7f3a"}]'),
        "NUL after the method": CALL.replace("tools/call", "tools/call\\u0000"),
        "a harmless message inside a duplicate": next(text for _, text in _padded_duplicates()),
    }.items():
        yield f"batch, {title}", f"[{call}]"
    yield "batch with carriage returns", f"[\r{CALL}\r,\r{ping}]"


def _cases() -> Iterator[tuple[str, str]]:
    """Readers that ignore case in keys: Go's encoding/json, with its folds of K and s."""
    for key, others in {
        "method": ("Method", "METHOD", "mEthod", "\\u004dethod"),
        "params": ("Params", "PARAMS", "pARAMS", "param\u017f", "param\\u017f", "PARAM\u017f"),
        "name": ("Name", "NAME", "nAme", "\\u004eame"),
        "arguments": ("Arguments", "ARGUMENTS", "argument\u017f"),
        "id": ("Id", "ID", "iD"),
    }.items():
        for other in others:
            yield f"{other} for {key}", CALL.replace(f'"{key}"', f'"{other}"')
            benign = {"method": '"ping"', "params": '{"name":"safe"}', "name": '"safe"', "id": "8"}.get(key, "{}")
            yield f"{other} beside {key}, first", CALL.replace(f'"{key}"', f'"{other}":{benign},"{key}"')
            yield f"{other} beside {key}, last", CALL.replace(f'"{key}":', f'"{key}":{benign},"{other}":')
    yield "long s in result beside the method", CALL[:-1] + ',"re\u017fult":{}}'
    yield "Kelvin sign in task", CALL.replace('"name"', '"tas\u212a":{},"name"')
    yield "long s in task", CALL.replace('"name"', '"ta\u017fk":{},"name"')
    yield "_META", CALL.replace('"name"', '"_META":{},"name"')
    yield "requeststate", CALL.replace('"name"', '"requeststate":"s","name"')
    yield (
        "all keys in capitals",
        CALL.replace('"method"', '"METHOD"').replace('"params"', '"PARAMS"').replace('"name"', '"NAME"'),
    )
    yield "two names that differ in case", CALL.replace('"m":', '"M":"harmless","m":')
    yield "two names that differ in a fold", CALL.replace('"m":', '"\u017f":"harmless","s":"x","m":')


def _strange_bytes() -> Iterator[tuple[str, bytes]]:
    call = CALL.encode()
    yield "byte order mark", b"\xef\xbb\xbf" + call
    yield "byte order mark inside", b"{\xef\xbb\xbf" + call[1:]
    yield "byte order mark before a batch", b"\xef\xbb\xbf[" + call + b"]"
    yield "zero-width blank before", "\u200b".encode() + call
    yield "no-break blank before", "\u00a0".encode() + call
    yield "record separator before", b"\x1e" + call
    yield "NUL before", b"\0" + call
    yield "NUL after", call + b"\0"
    yield "escape sequence before", b"\x1b[0m" + call
    yield "not UTF-8 in the arguments", call.replace(b"MARK", b"\xffMARK")
    yield "not UTF-8 in the name", call.replace(b"danger", b"danger\xff")
    yield "not UTF-8 in a key", call.replace(b'"m"', b'"m\xff"')
    yield "not UTF-8 in an unknown member", call[:-1] + b',"x":"\xc3"}'
    yield "not UTF-8 in an unknown key", call[:-1] + b',"\xc3":1}'
    yield "an overlong letter in the method", call.replace(b"tools/call", b"\xc1\xb4ools/call")
    yield "a surrogate in UTF-8", call.replace(b"MARK", b"\xed\xa0\x80MARK")
    yield "UTF-16", CALL.encode("utf-16-le")
    yield "UTF-16 with its mark", CALL.encode("utf-16")
    yield "UTF-32", CALL.encode("utf-32-be")
    yield "UTF-7", CALL.replace('"', "+ACI-").encode()
    for title, sign in SPLITTING.items():
        if sign != "\r":  # which JSON allows between tokens
            yield f"{title} before", sign.encode() + call
            yield f"{title} between tokens", call.replace(b",", b"," + sign.encode(), 1)
            yield f"{title} after", call + sign.encode()
        yield f"{title} in the arguments", call.replace(b"MARK", sign.encode() + b"MARK")


SPLITTING: Final = {
    "CR": "\r",
    "VT": "\x0b",
    "FF": "\x0c",
    "FS": "\x1c",
    "GS": "\x1d",
    "RS": "\x1e",
    "NEL": "\x85",
    "LS": "\u2028",
    "PS": "\u2029",
}
"""Where readers other than ours may end a line."""


def _not_quite_json() -> Iterator[tuple[str, str]]:
    yield "a comma too many", CALL[:-1] + ",}"
    yield "single quotes", CALL.replace('"', "'")
    yield "keys without quotes", re.sub(r'"(\w+)":', r"\1:", CALL)
    yield "a comment before", "/* */" + CALL
    yield "a comment inside", CALL.replace(",", ",/* , */", 1)
    yield "a comment after", CALL + "// end"
    yield "an object before it on the line", '{"jsonrpc":"2.0","method":"x"}' + CALL
    yield "an object after it on the line", CALL + '{"jsonrpc":"2.0","method":"x"}'
    yield "two on a line", CALL + CALL
    yield "two on a line, a blank between", f"{CALL} {CALL}"
    yield "two on a line, a comma between", f"{CALL},{CALL}"
    yield "a word after it", CALL + " true"
    yield "a bracket too many", CALL + "}"
    yield "a brace too few", CALL[:-1]
    yield "a brace too many before", "{" + CALL
    yield "an array that never ends", "[" + CALL
    yield "a string before", '""' + CALL
    yield "a server-sent event", "data: " + CALL
    yield "a header before", f"Content-Length: {len(CALL)}\r\n\r\n{CALL}"
    yield "a string that is a call", json.dumps(CALL)
    yield "over two lines", CALL.replace('"method"', '\n"method"')
    yield "over many lines", json.dumps(json.loads(CALL), indent=2)
    yield "over many lines of Windows", json.dumps(json.loads(CALL), indent=1).replace("\n", "\r\n")
    yield "a raw line end in a string", CALL.replace("MARK", "\nMARK")


def _depths() -> Iterator[tuple[str, str]]:
    for depth in (300, 900, 1100, 2_000, 50_000):
        deep = "[" * depth + "]" * depth
        yield f"{depth} deep in the arguments", CALL.replace('"m":', f'"d":{deep},"m":')
        yield f"{depth} deep in the envelope, before", f'{{"d":{deep},{CALL[1:]}'
        yield f"{depth} deep in the envelope, after", f'{CALL[:-1]},"d":{deep}}}'
        yield f"{depth} deep in params", CALL.replace('"name"', f'"d":{deep},"name"')
        yield f"{depth} deep in _meta", CALL.replace('"name"', f'"_meta":{{"d":{deep}}},"name"')
        yield f"{depth} deep as the id", CALL.replace('"id":7', f'"id":{deep}')
        yield f"{depth} deep batch", "[" * depth + CALL + "]" * depth
        objects = '{"a":' * depth + "1" + "}" * depth
        yield f"{depth} objects deep in the arguments", CALL.replace('"m":', f'"d":{objects},"m":')


def _zero_bytes() -> Iterator[tuple[str, str]]:
    """Readers whose strings end at a NUL: as C reads a decoded string."""
    yield "NUL after the method", CALL.replace("tools/call", "tools/call\\u0000")
    yield "NUL and more after the method", CALL.replace("tools/call", "tools/call\\u0000ping")
    yield "NUL after the key method", CALL.replace('"method"', '"method\\u0000"')
    yield (
        "NUL after a first method",
        CALL.replace('"method"', '"method\\u0000":"tools/call","method"').replace(
            '"method":"tools/call"', '"method":"ping"'
        ),
    )
    yield "NUL after the key params", CALL.replace('"params"', '"params\\u0000"')
    yield "NUL after the key name", CALL.replace('"name"', '"name\\u0000"')
    yield (
        "NUL after a first name",
        CALL.replace('"name"', '"name\\u0000":"danger","name"').replace('"name":"danger"', '"name":"safe"'),
    )
    yield "NUL after the tool's name", CALL.replace("danger", "danger\\u0000")
    yield "NUL and more after the tool's name", CALL.replace("danger", "danger\\u0000safe")


def _unknown_members() -> Iterator[tuple[str, str]]:
    for title, member in {
        "a word": '"x":1',
        "an object": '"x":{"method":"ping","id":3,"params":{"name":"safe"}}',
        "an empty key": '"":0',
        "a key of quotes": '"\\"method\\":\\"ping\\"":0',
        "a key outside ASCII": '"méthode":"ping"',
        "a long text": '"x":"%s"' % ("x" * 70_000),
        "much": '"x":[{}]'.format(",".join(map(str, range(30_000)))),
    }.items():
        yield f"before everything: {title}", f"{{{member},{CALL[1:]}"
        yield f"after everything: {title}", f"{CALL[:-1]},{member}}}"
        yield f"in params: {title}", CALL.replace('"name"', f'{member},"name"')
    yield "name of the tool in the envelope", '{"name":"safe",' + CALL[1:]


def _as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


_ALL: Final = [(title, _as_bytes(text)) for title, text in _rows()]

SPELLINGS: Final = tuple(Spelling(title, text + b"\n") for title, text in _ALL)

UNTERMINATED: Final = tuple(
    Spelling(f"{one.title}, no line end", one.text[:-1]) for one in SPELLINGS if one.text.count(b"\n") == 1
)
"""The same as the last bytes of the agent."""


def _hidden(carrier: str, sign: str) -> str:
    return carrier.replace("HERE", f"{sign}{CALL}{sign}")


_CARRIERS: Final = {
    "notification": '{"jsonrpc":"2.0","method":"notifications/x","params":{"x":[HERE]}}',
    "notification, loose": '{"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": [HERE]}}',
    "envelope": '{"jsonrpc":"2.0","method":"notifications/x","x":[HERE]}',
    "request": '{"jsonrpc":"2.0","id":31,"method":"resources/read","params":{"uri":"x","_meta":{"x":HERE}}}',
    "answer": '{"jsonrpc":"2.0","id":32,"result":{"roots":[HERE]}}',
    "error": '{"jsonrpc":"2.0","id":32,"error":{"code":1,"message":"","data":HERE}}',
    "call of another tool": (
        '{"jsonrpc":"2.0","id":33,"method":"tools/call","params":{"name":"safe","arguments":{"x":HERE}}}'
    ),
    "_meta of another call": (
        '{"jsonrpc":"2.0","id":34,"method":"tools/call","params":{"name":"safe","_meta":{"x":HERE}}}'
    ),
    "cancellation": ('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,"x":[HERE]}}'),
    "batch": '[{"jsonrpc":"2.0","method":"notifications/x","params":{"x":[HERE]}}]',
    "nothing but a member": '{"x":HERE}',
}

CARRIERS: Final = tuple(
    Spelling(f"{name}, {title}", _hidden(carrier, sign).encode() + b"\n")
    for name, carrier in _CARRIERS.items()
    for title, sign in {**SPLITTING, "line end": "\n", "line end of Windows": "\r\n", "nothing": ""}.items()
)
"""Messages that concern no hook, with a call inside, between two bytes that some reader takes for line ends."""


# --- readers ---


def calls_seen(received: bytes) -> list[str]:
    """How readers of these bytes see a call of DANGER; nothing if none does."""
    seen: list[str] = []
    text = received.decode("utf-8", "replace")
    for title, lines in {
        "lines": text.split("\n"),
        "universal lines": re.split(r"\r\n|\r|\n", text),
        "Python's lines": text.splitlines(),
        "strings that end at NUL": re.split(r"\n|\0", text),
        "a stream of values": [text],
    }.items():
        seen += [f"{title}: {value!r}"[:200] for line in lines for value in _values(line) if _is_call(value)]
    return seen


class _Pairs(list[tuple[str, Any]]):
    """An object with all its members, including duplicate keys."""


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Pairs, strict=False, parse_int=str, parse_float=str)


def _values(line: str) -> Iterator[Any]:
    """The JSON values that stand one after another; what is none is skipped to the next line end."""
    at = 0
    while at < len(line):
        if line[at] in " \t\r\n\ufeff\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029":
            at += 1
            continue
        try:
            value, at = _DECODER.raw_decode(line, at)
        except (ValueError, RecursionError):
            at = line.find("\n", at)
            if at < 0:
                return
        else:
            yield value


def _is_call(value: object) -> bool:
    if isinstance(value, _Pairs):
        methods = _named(value, "method")
        params = _named(value, "params")
        names = [name for one in (value, *params) if isinstance(one, _Pairs) for name in _named(one, "name")]
        names += [one[0] for one in params if isinstance(one, list) and one and not isinstance(one, _Pairs)]
        return "tools/call" in map(_plain, methods) and DANGER in map(_plain, names)
    return isinstance(value, list) and any(map(_is_call, value))


def _named(pairs: _Pairs, key: str) -> list[Any]:
    """All members whose key some reader takes for this one."""
    return [member for name, member in pairs if str(_plain(name)).casefold() == key]


def _plain(value: object) -> object:
    """A string as far as C reads it."""
    return value.partition("\0")[0] if isinstance(value, str) else value
