"""What was read is found again in arguments, however it is spelled there; texts that were not read are not."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from hookproxy.flow import prints

KEY = bytes(16)
SECRET = "sk_live_4eC7aRm9Kx2bNw5pQj8sYd"


def output(*texts: str) -> bytes:
    content = [{"type": "text", "text": text} for text in texts]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).encode()


def carries(read: bytes, *arguments: object) -> bool:
    found = prints.prints_of_arguments([json.dumps(value).encode() for value in arguments], KEY)
    known = prints.prints_of_output(read, KEY)
    assert found is not None
    assert known is not None
    return bool(found & known)


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        f"INSERT INTO notes VALUES ('{SECRET}')",
        f"https://example.com/?q={SECRET}&x=1",
        SECRET.upper(),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        quote(quote(f" {SECRET}/")),
        json.dumps(json.dumps({"a": SECRET})),
        "".join(f"\\u{ord(sign):04x}" for sign in SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(f"?>~{SECRET}".encode()).decode().rstrip("="),
        f"data:text/plain;base64,x/{base64.b64encode(f'a{SECRET}'.encode()).decode()}",
        base64.encodebytes(f"{'filler ' * 20}{SECRET}{' filler' * 20}".encode()).decode(),
        base64.b64encode(base64.b64encode(SECRET.encode())).decode(),
        base64.b64encode(SECRET.encode("utf-16-le")).decode(),
        SECRET.encode().hex(),
        f"prefix{SECRET}suffix",
        SECRET[:20],
        SECRET[14:],
        SECRET.replace("4e", "4\u200be"),
        "".join(chr(ord(sign) + 0xFEE0) if sign.isalnum() else sign for sign in SECRET),
    ],
)
def test_what_was_read_is_found_in_other_spellings(spelled: str) -> None:
    assert carries(output(f"STRIPE_KEY={SECRET}"), {"nested": [{"body": spelled}]})


def test_a_line_that_was_read_is_found() -> None:
    assert carries(output("one\n  to be   or not\nthree"), {"body": "to be or not"})


@pytest.mark.parametrize("text", ["4711", "ok"])
def test_a_short_value_is_found_if_it_is_all_of_an_argument(text: str) -> None:
    assert carries(output(text), {"pin": text})
    assert not carries(output(text), {"pin": f"is it {text} or not"})


def test_what_was_not_read_is_not_found() -> None:
    assert not carries(output(f"STRIPE_KEY={SECRET}"), {"body": "the weather in Paris, please; type text"})


def test_words_of_the_protocol_are_no_content() -> None:
    read = json.dumps({"result": {"content": [{"type": "resource_link", "uri": "a:b"}], "structuredContent": {}}})
    assert not carries(read.encode(), {"type": "resource_link", "also": "structuredContent"})


def test_json_in_a_text_and_the_text_of_a_blob_are_read() -> None:
    assert carries(output(json.dumps({"name": "caf\u00e9 au lait"})), {"q": "caf\u00e9 au lait"})
    blob = base64.b64encode(f"key: {SECRET}".encode()).decode()
    read = json.dumps({"result": {"contents": [{"uri": "a:b", "mimeType": "text/plain", "blob": blob}]}}).encode()
    assert carries(read, {"q": SECRET})


def test_what_is_too_long_may_be_anything() -> None:
    assert prints.prints_of_output(output("x y " * 60_000), KEY) is None
    assert prints.prints_of_arguments([json.dumps("% y " * 200_000).encode()], KEY) is None
    assert prints.prints_of_output(b"{", KEY) is None


def test_of_a_result_with_a_secret_only_the_secret_has_prints() -> None:
    read = output(f"hello everybody, STRIPE_KEY={SECRET}")
    known = prints.prints_of_secrets(read, KEY)
    assert prints.has_secret(read)
    assert not prints.has_secret(output("hello everybody"))
    assert known is not None
    for text, is_secret in ((SECRET, True), ("everybody", False)):
        found = prints.prints_of_arguments([json.dumps(text).encode()], KEY)
        assert found is not None
        assert bool(found & known) is is_secret


def test_escapes_hide_no_secret() -> None:
    escaped = output(f"STRIPE_KEY={SECRET}").replace(b"sk_live", b"\\u0073k_l\\u0069ve")
    assert prints.has_secret(escaped)
    known = prints.prints_of_secrets(escaped, KEY)
    assert known == prints.prints_of_secrets(output(f"STRIPE_KEY={SECRET}"), KEY)


def test_prints_depend_on_the_key() -> None:
    read = output(SECRET)
    assert not (prints.prints_of_output(read, KEY) or set()) & (prints.prints_of_output(read, b"k" * 16) or set())


def test_the_placeholder_of_a_secret_is_one() -> None:
    placeholder = "{{secret:github-pat:3f9a1b2c}}"
    read = output(f"hello everybody, TOKEN={placeholder}")
    assert prints.has_secret(read)
    known = prints.prints_of_secrets(read, KEY)
    assert known is not None
    for text, is_secret in ((f"use {placeholder} now", True), ("everybody", False)):
        found = prints.prints_of_arguments([json.dumps(text).encode()], KEY)
        assert found is not None
        assert bool(found & known) is is_secret
