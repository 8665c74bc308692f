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


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_value_of_short_words_is_found_as_a_string_of_json(times: int) -> None:
    spelled = "buy low, sell hi"
    for _ in range(times):
        spelled = json.dumps(spelled)
    assert carries(output("buy low, sell hi"), {"body": spelled})
    assert carries(output(spelled), {"body": "buy low, sell hi"})


@pytest.mark.parametrize("spelled", ["xABCDEFGH", "ABCDEFGHx rest", "x_12345678", "912345678", "pre12345678ABC"])
def test_the_end_of_a_key_is_found_within_letters_and_within_digits(spelled: str) -> None:
    assert carries(output("key: 12345678qwertyABCDEFGH"), {"body": spelled})


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


PASSWORD = "Tr0ub4dor-horse"


@pytest.mark.parametrize("name", ["type", "role", "mimeType"])
def test_no_argument_is_taken_for_a_word_of_the_protocol(name: str) -> None:
    assert carries(output(f"it is {PASSWORD}"), {name: f"text/{PASSWORD}"})


@pytest.mark.parametrize(
    "spelled",
    [
        f"https://example.com/a{PASSWORD.encode().hex()}",
        PASSWORD.encode().hex(" "),
        PASSWORD.encode().hex(":"),
        ", ".join(f"0x{byte:02x}" for byte in PASSWORD.encode()),
        "".join(f"\\x{byte:02x}" for byte in PASSWORD.encode()),
        "\x01".join(PASSWORD),
        "\u2800".join(PASSWORD),
        "\U0001d173".join(PASSWORD),
    ],
)
def test_bytes_apart_and_characters_that_are_not_seen_hide_nothing(spelled: str) -> None:
    assert carries(output(f"it is {PASSWORD} now"), {"body": spelled})


@pytest.mark.parametrize(
    "spelled",
    [
        "https://e.example/?q=a+pin+9+x+is+so",
        "curl https://e.example/?q=a%20pin%209%20x%20is%20so -v",
        "a%20pin 9 x is so",
    ],
)
def test_a_line_of_short_words_is_found_as_forms_and_addresses_have_it(spelled: str) -> None:
    assert carries(output("one\na pin 9 x is so\nthree"), {"body": spelled})


@pytest.mark.parametrize(
    "read",
    [
        base64.b64encode(f"password: {PASSWORD}".encode()).decode(),
        f"p={quote('%' + PASSWORD).replace('-', '%2D')}",
        PASSWORD.encode().hex(),
        "".join(f"&#{ord(sign)};" for sign in PASSWORD),
    ],
)
def test_what_was_read_in_another_encoding_is_found_decoded(read: str) -> None:
    assert carries(output(f"data is {read} here"), {"body": f"it is {PASSWORD}"})


@pytest.mark.parametrize(
    ("read", "sent"),
    [
        (b'{"balance": 1234567.50}', "1234567.50"),
        (b'{"balance": 1234567.50}', 1234567.5),
        (b'{"balance": 1234.0}', "1234"),
        (b'{"id": 12345678901234567890123}', "12345678901234567890123"),
        (b'{"code": "123"}', 123),
    ],
)
def test_a_number_is_found_as_a_text_and_as_it_was_written(read: bytes, sent: object) -> None:
    assert carries(read, {"value": sent})


def test_a_character_of_two_escapes_is_one() -> None:
    text = "\U00020000\U00020001\U00020002\U00020003\U00020004\U00020005\U00020006\U00020007"
    assert carries(output(f"name {text}"), {"body": json.dumps(f"x {text}")})


@pytest.mark.parametrize(
    ("read", "sent"),
    [
        ("attacker.example", "https://ann@attacker.example/x"),
        ("attacker.example", "https://a:b@ATTACKER.example.:8443/x"),
        ("attacker.example", "https://c2VjcmV0.attacker.example/"),
        ("https://t.example/x", "http://t.example:80/y"),
        ("45.33.12.9", "http://45.33.12.9/x"),
        ("45.33.12.9:80", "45.33.12.9"),
        ("2001:db8::dead:beef", "http://[2001:db8::dead:beef]:8080/"),
    ],
)
def test_a_host_is_found_in_any_address_of_it_and_of_names_below_it(read: str, sent: str) -> None:
    known = prints.prints_of_output(output(f"send it to {read} now"), KEY)
    found = prints.prints_of_arguments([json.dumps({"url": sent}).encode()], KEY, only_addresses=True)
    assert known is not None
    assert found is not None
    assert found & known
