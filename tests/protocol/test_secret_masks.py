"""A masked message differs from the server's only where a secret stood, however it was spelled."""

from __future__ import annotations

import base64
import json
import random
import re
import time
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.protocol import secret_masks
from hookproxy.protocol.secret_masks import SecretMasks
from hookproxy.protocol.secret_restores import restored
from hookproxy.protocol.secret_schemas import fitting
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.placeholders import Placeholders
from hookproxy.secrets.session_finder import SessionFinder

TOKEN: Final = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
VALUE: Final = 'Kd83&xQ/+2.mT"uw\\zé\n漢9😀'
FINDER: Final = Finder(SecretSettings(), {"MY_KEY": VALUE.encode()})

TEXTS: Final = st.text(st.sampled_from([*'ab "\\/\n\té漢😀{}[]:,0', "\u2028", "\x7f"]), max_size=12)
DOCUMENTS: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4) | inner.map(json.dumps),
    max_leaves=12,
)


def masks() -> SecretMasks:
    return SecretMasks(SessionFinder(FINDER), Placeholders(b"k" * 32))


def spelled(value: object, choose: random.Random) -> str:
    """JSON with needless escapes, blanks and spellings of numbers, as some server might write it."""
    if isinstance(value, str):
        return '"' + "".join(_character(char, choose) for char in value) + '"'
    blank = choose.choice(("", " ", "\t "))
    if isinstance(value, list):
        return f"[{blank}" + f",{blank}".join(spelled(item, choose) for item in value) + f"{blank}]"
    if isinstance(value, dict):
        members = (f"{spelled(name, choose)}{blank}:{blank}{spelled(item, choose)}" for name, item in value.items())
        return "{" + blank + f",{blank}".join(members) + blank + "}"
    return (
        choose.choice((f"{value}.0", f"{value}e0"))
        if type(value) is int and choose.random() < 0.3
        else json.dumps(value)
    )


def _character(char: str, choose: random.Random) -> str:
    if choose.random() < 0.2:
        units = char.encode("utf-16-be").hex()
        return "".join(
            f"\\u{choose.choice((str.upper, str.lower))(units[at : at + 4])}" for at in range(0, len(units), 4)
        )
    if char == "/" and choose.random() < 0.5:
        return "\\/"
    return json.dumps(char, ensure_ascii=char == "\u2028")[1:-1]


def replaced(value: object, old: str, new: str) -> object:
    """The value with another text in the place of one, also in JSON in its texts."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    if isinstance(value, dict):
        return {str(replaced(name, old, new)): replaced(item, old, new) for name, item in value.items()}
    return value


@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_a_document_without_a_secret_is_the_same_there_and_back(document: object, choose: random.Random) -> None:
    raw = spelled({"jsonrpc": "2.0", "id": 7, "result": document}, choose).encode()
    one = masks()
    assert one.message(raw) is raw
    assert restored(raw, one.placeholders.value_of) is raw


@given(DOCUMENTS, st.sampled_from([TOKEN, VALUE]), st.randoms(use_true_random=False))
def test_only_the_secret_is_replaced_and_restoring_it_gives_the_document(
    document: object, secret: str, choose: random.Random
) -> None:
    planted = {"a": document, "b": f"x {secret} y", "c": [secret, {secret: 1}], "d": document}
    raw = spelled(planted, choose).encode()
    one = masks()
    masked = one.json(raw)
    placeholder = one.placeholders.for_value("github-pat" if secret is TOKEN else "MY_KEY", secret.encode())
    assert json.loads(masked) == replaced(planted, secret, placeholder)
    assert json.loads(restored(masked, one.placeholders.value_of)) == planted


@given(
    st.lists(st.sampled_from([TOKEN, VALUE, "a", "\\", '"', ", ", "\\n", "é", "{}"]), max_size=5).map("".join),
    st.sampled_from(['"{}"', '["{}"]', '{{"k": "{}"}}', '{{"k": ["{}", "x"]}}', '[["{0}"], "{0}"]', '["[\\"{}\\"]"]']),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
def test_a_text_that_is_json_only_because_of_what_is_masked_is_restored(
    written: str, pattern: str, rounds: int, choose: random.Random
) -> None:
    text = pattern.format(written)
    for _ in range(rounds):
        text = json.dumps([text], ensure_ascii=choose.random() < 0.5)
    raw = spelled({"t": text}, choose).encode()
    one = masks()
    masked = one.json(raw)
    for part in (TOKEN[:12], VALUE[:12]):
        assert part not in json.dumps(_read_deeply(json.loads(masked)))
    assert _read_deeply(json.loads(restored(masked, one.placeholders.value_of))) == _read_deeply({"t": text})


def _read_deeply(value: object) -> object:
    """The value with what JSON in its texts says."""
    if isinstance(value, dict):
        return {name: _read_deeply(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_read_deeply(item) for item in value]
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return {"JSON": _read_deeply(json.loads(value))}
        except ValueError:
            return value
    return value


FRAGMENTS: Final = st.sampled_from(
    [
        *(
            '"',
            "\\",
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "0",
            "\\u",
            "\\ud83d",
            '\\"',
            '"text":"',
            '"blob":"',
            '"uri":"',
            "\\n",
        ),
        *("\\q", "é", "\x7f", "\udc80", TOKEN, VALUE, json.dumps(VALUE), json.dumps(json.dumps(TOKEN))),
        *("{{secret:github-pat:", "}}", "api_key = ", "-----BEGIN RSA PRIVATE KEY-----", "x9Qw72Lk0zVb31TyMnA4" * 5),
    ]
)


@given(st.lists(FRAGMENTS, max_size=12))
def test_whatever_a_server_writes_can_be_masked(fragments: list[str]) -> None:
    raw = "".join(fragments).encode(errors="surrogateescape")
    one = masks()
    for masked in (one.message(raw), one.raw_text(raw), one.json(b'{"text":"%b"}' % raw)):
        assert isinstance(restored(masked, one.placeholders.value_of), bytes)
    assert TOKEN.encode() not in one.raw_text(raw)


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("secret", [TOKEN, VALUE])
def test_json_in_strings_gets_the_placeholder_of_the_value_and_is_restored(
    secret: str, rounds: int, ascii_only: bool
) -> None:
    text: object = {"t": secret}
    for _ in range(rounds):
        text = {"in": json.dumps(text, ensure_ascii=ascii_only)}
    raw = json.dumps(text).encode()
    one = masks()
    masked = one.json(raw)
    placeholder = one.placeholders.for_value("github-pat" if secret is TOKEN else "MY_KEY", secret.encode())
    inner = json.loads(masked)
    for _ in range(rounds):
        inner = json.loads(inner["in"])
    assert inner == {"t": placeholder}
    again = json.loads(restored(masked, one.placeholders.value_of))
    for _ in range(rounds):
        again = json.loads(again["in"])
    assert again == {"t": secret}


def test_a_secret_that_is_split_over_blocks_is_one_placeholder() -> None:
    for cuts in ([3], [20], [10, 11, 30], [1, 39]):
        parts = [TOKEN[begin:end] for begin, end in zip([0, *cuts], [*cuts, None], strict=True)]
        content = [{"type": "text", "text": part} for part in ["before ", *parts, " after"]]
        one = masks()
        texts = [block["text"] for block in json.loads(one.json(json.dumps({"content": content}).encode()))["content"]]
        assert "".join(texts) == f"before {one.placeholders.for_value('github-pat', TOKEN.encode())} after"


def test_a_private_key_over_several_blocks_is_hidden_and_the_blocks_stay_blocks() -> None:
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *(f"{n}" + "x9Qw72Lk0zVb31TyMnA4" * 3 for n in range(8)), "ab12=="]
    key = "\n".join([*lines, "-----END RSA PRIVATE KEY-----"])
    for count in (1, 2, 3, 5):
        cuts = [len(key) * n // count for n in range(count + 1)]
        parts = [key[begin:end] for begin, end in pairwise(cuts)]
        content = [{"type": "text", "text": part} for part in ["before ", *parts, " after"]]
        result = {"content": content, "structuredContent": {"n": 5, "after": "plain"}, "isError": False}
        one = masks()
        masked = json.loads(one.message(json.dumps({"id": 1, "result": result, "jsonrpc": "2.0"}).encode()))
        shown = "".join(block["text"] for block in masked["result"]["content"])
        assert shown.startswith("before {{secret:private-key:")
        assert shown.endswith("}} after")
        assert "x9Qw" not in json.dumps(masked)
        assert [block["type"] for block in masked["result"]["content"]] == ["text"] * len(content)
        assert masked["result"]["structuredContent"] == {"n": 5, "after": "plain"}


def test_the_short_last_line_of_a_key_is_a_part_of_it() -> None:
    body = base64.b64encode(bytes(range(7, 160))).decode()
    lines = ["-----BEGIN PRIVATE KEY-----", body[:64], body[64:128], "abcd1234Zg==", "-----END PRIVATE KEY-----"]
    for value in (lines, {f"line{number}": line for number, line in enumerate(lines)}):
        masked = masks().json(json.dumps({"a": value, "audience": ["user"]}).encode())
        assert b"Zg==" not in masked
        assert b'"audience": ["user"]' in masked


def test_data_in_base64_is_masked_where_it_is_text_and_stays_where_it_is_not() -> None:
    one = masks()
    text, image = base64.b64encode(f"k={TOKEN}\n".encode()).decode(), base64.b64encode(bytes(range(256))).decode()
    raw = json.dumps({"contents": [{"uri": "x", "blob": text}, {"data": image}, {"blob": "ghp"}]}).encode()
    first, *others = json.loads(one.json(raw))["contents"]
    placeholder = one.placeholders.for_value("github-pat", TOKEN.encode())
    assert base64.b64decode(first["blob"]).decode() == f"k={placeholder}\n"
    assert others == [{"data": image}, {"blob": "ghp"}]


BASE64: Final = re.compile(rb"[A-Za-z0-9+/\r\n]+={0,2}[\r\n]*")


@given(st.text(st.sampled_from("Aa0+/=\r\n-"), max_size=12).map(str.encode))
def test_base64_is_what_has_its_signs_only_and_ends_in_two_equals_signs_at_most(content: bytes) -> None:
    is_base64 = secret_masks._is_base64(content)
    assert is_base64 == bool(BASE64.fullmatch(content)) or (not is_base64 and not content.strip())


def test_bytes_behind_a_long_text_are_not_a_text_either() -> None:
    data = base64.b64encode(TOKEN.encode() + b" " * 9000 + b"\0").decode()
    line = json.dumps({"data": data}).encode()
    assert masks().message(line) is line
    line = json.dumps({"data": base64.b64encode(b" " * 9000 + TOKEN.encode()).decode()}).encode()
    assert b"data" in (masked := masks().message(line)) != line
    assert b"{{secret:github-pat:" in base64.b64decode(json.loads(masked)["data"])


CONTENT: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


@given(st.lists(st.sampled_from(['"', "\\", "n", "u0041", "ud83d", "x", "é", "\n"]), max_size=14).map("".join))
def test_a_string_ends_at_the_first_quote_without_a_backslash_or_nowhere(text: str) -> None:
    raw = b'"' + text.encode()
    contents = secret_masks._Contents(raw)
    for at in [place + 1 for place, byte in enumerate(raw) if byte == ord('"')] * 2:
        match = CONTENT.match(raw, at)
        assert contents.end(at) == (match.end() if match else at)


def test_many_texts_with_wrong_escapes_take_no_longer_than_others() -> None:
    texts = b",".join([b'{"text":"\\q"}'] * 60_000)
    start = time.process_time()
    masks().search(b"[%b]" % texts)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("slash", ["/", "\\/"])
def test_base64_with_escaped_slashes_is_read(slash: str) -> None:
    text = base64.b64encode(f"??? {TOKEN}".encode()).decode()
    assert "/" in text
    raw = b'{"blob":"%b"}' % text.replace("/", slash).encode()
    assert b"{{secret:" in base64.b64decode(json.loads(masks().json(raw))["blob"])


def test_ids_and_tokens_of_progress_stay() -> None:
    raw = (
        b'{"jsonrpc":"2.0","id":"%b","method":"x","params":{"progressToken":"%b","requestId":"%b","m":"%b"}}'
    ).replace(b"%b", TOKEN.encode())
    message = json.loads(masks().message(raw))
    assert message["id"] == message["params"]["progressToken"] == message["params"]["requestId"] == TOKEN
    assert message["params"]["m"].startswith("{{secret:")


def test_a_number_that_is_a_secret_becomes_a_text() -> None:
    finder = Finder(SecretSettings(), {"PIN": b"4711081538"})
    one = SecretMasks(SessionFinder(finder), Placeholders(b"k" * 32))
    masked = json.loads(one.message(b'{"id":4711081538,"result":{"pin":4711081538,"n":47110815}}'))
    assert masked["id"] == 4711081538
    assert masked["result"]["pin"].startswith("{{secret:PIN:")
    assert masked["result"]["n"] == 47110815


def test_text_that_is_not_json_is_masked_as_text() -> None:
    masked = masks().raw_text(f"log: {TOKEN} and {json.dumps(VALUE)}".encode())
    assert TOKEN.encode() not in masked
    assert VALUE.encode() not in masked
    assert masked.count(b"{{secret:") == 2


SCHEMA: Final = {
    "type": "object",
    "properties": {
        "short": {"type": "string", "maxLength": 12},
        "kind": {"enum": ["a", TOKEN]},
        "list": {"type": "array", "items": {"type": "string", "format": "uri"}},
        "free": {"type": "string"},
        "deep": {"type": "array", "items": {"type": "object", "properties": {"k": {"const": TOKEN}}}},
    },
    "required": ["free"],
    "additionalProperties": {"type": "string"},
}


@pytest.mark.parametrize(
    ("structured", "left"),
    [
        ({"free": TOKEN, "other": TOKEN}, {"free": 1, "other": 1}),
        ({"free": "x", "kind": TOKEN}, {"free": "x"}),
        ({"free": "x", "list": ["a:b", f"https://{TOKEN}"]}, {"free": "x"}),
        ({"free": "x", "deep": [{"k": TOKEN, "n": 1}, {"n": 2}]}, {"free": "x", "deep": [{"n": 1}, {"n": 2}]}),
        ({"free": "x", TOKEN: "y"}, {"free": "x", 1: "y"}),
    ],
)
def test_members_that_cannot_hold_a_placeholder_are_left_out(
    structured: dict[str, object], left: dict[object, object]
) -> None:
    one = masks()
    raw = json.dumps(structured).encode()
    placeholder = one.placeholders.for_value("github-pat", TOKEN.encode())
    shown = {placeholder if name == 1 else name: placeholder if item == 1 else item for name, item in left.items()}
    fits = fitting(raw, one.json(raw), json.dumps(SCHEMA).encode())
    assert fits is not None
    assert json.loads(fits) == shown


def test_what_is_required_and_cannot_hold_a_placeholder_fits_nowhere() -> None:
    schema = {"type": "object", "properties": {"t": {"pattern": "^ghp_"}}, "required": ["t"]}
    raw = json.dumps({"t": TOKEN}).encode()
    assert fitting(raw, masks().json(raw), json.dumps(schema).encode()) is None


def test_a_schema_that_says_too_much_decides_nothing() -> None:
    raw = json.dumps({"t": TOKEN}).encode()
    masked = masks().json(raw)
    assert fitting(raw, masked, b'{"oneOf":[{"required":["t"]}]}') is masked


@pytest.mark.parametrize(
    "line",
    ['{"broken %s"', "{'token': '%s'}", "[INFO] %s", '{"a": 1} %s', '{"a": "%s"} and %s', '{"a": "%s}', '{%s: "%s"}'],
)
def test_of_a_line_that_only_begins_as_json_all_of_a_secret_is_masked(line: str) -> None:
    for secret in (VALUE.replace("\n", ""), TOKEN):
        written = line.replace("%s", secret).encode()
        finder = Finder(SecretSettings(), {"MY_KEY": VALUE.replace("\n", "").encode()})
        masked = SecretMasks(SessionFinder(finder), Placeholders(b"k" * 32)).message(written)
        assert secret[:5].encode() not in masked
        assert secret[-5:].encode() not in masked
        assert b"uw" not in masked
        assert b"{{secret:" in masked


def test_no_method_is_a_token() -> None:
    token = "ghp_jpBaZoGOkTTstNgrhoQJayUvRuyJoBuLyCWI"  # without a digit
    for method in (token, f"notifications/{token}"):
        line = json.dumps({"jsonrpc": "2.0", "method": method, "params": {"text": token}}).encode()
        assert token.encode() not in masks().message(line)
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"text": token}}).encode()
    assert b'"notifications/message"' in masks().message(line)
