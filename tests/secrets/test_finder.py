"""Secrets are found whole, wherever and however they stand, and nothing else."""

from __future__ import annotations

import json
from base64 import b64encode
from binascii import hexlify
from collections.abc import Callable
from hashlib import sha256

import pytest

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.literals import Found, find_in_json

VALUE = b'Kd83&xQ/+2.mT"uw'
TOKEN = b"ghp_" + b"aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
FINDER = Finder(SecretSettings(), {"MY_KEY": VALUE})


def test_a_text_without_a_secret_has_none() -> None:
    assert FINDER.find(b"token: none, password=changeme, see https://example.com/?a=b%20c") == []


def test_what_a_rule_knows_is_found_under_the_name_of_the_most_specific_rule() -> None:
    assert FINDER.find(b"token: " + TOKEN + b"\n") == [Found(7, 47, "github-pat")]


def test_what_is_found_in_json_lies_within_its_strings() -> None:
    raw = json.dumps({"a": VALUE.decode(), "b": [1, TOKEN.decode()]}).encode()
    secrets = find_in_json(FINDER, raw)
    assert [secret.value for secret in secrets] == [VALUE, TOKEN]
    assert [raw[start - 1 : start] + raw[end : end + 1] for secret in secrets for start, end in secret.parts] == [
        b'""',
        b'""',
    ]


def test_no_character_is_cut() -> None:
    finder = Finder(SecretSettings(detectors={"five": "k-.{5}"}), {})
    text = "k-日本語 key".encode()
    assert [text[start:end].decode() for start, end, _ in finder.find(text)] == ["k-日本"]


def test_a_users_pattern_is_about_what_a_text_reads() -> None:
    finder = Finder(SecretSettings(detectors={"quoted": 'ticket "([0-9]+)"'}), {})
    text = 'a ticket "4711" b'
    for spelled in (text, json.dumps(text), json.dumps(json.dumps(text))):
        assert [spelled[start:end] for start, end, _ in finder.find(spelled.encode())] == ["4711"]


def test_letters_as_escapes_hide_nothing() -> None:
    spelled = "".join(f"\\u{ord(char):04x}" for char in f"see {TOKEN.decode()} there")
    for _ in range(2):
        (found,) = FINDER.find(spelled.encode())
        assert found.rule == "github-pat"
        assert json.loads(f'"{spelled[found.start : found.end]}"').replace("\\", "").replace("u00", "")
        spelled = json.dumps(spelled)[1:-1]


def test_a_false_alarm_is_not_found_but_a_named_value_is() -> None:
    finder = Finder(SecretSettings(allow=("ghp_.*",)), {})
    assert finder.find(TOKEN) == []
    named = Finder(SecretSettings(allow=(".*",)), {"MY_KEY": VALUE})
    assert named.find(b"a " + VALUE) == [Found(2, 2 + len(VALUE), "MY_KEY")]


def test_a_rule_that_is_skipped_finds_nothing() -> None:
    assert Finder(SecretSettings(skip=("github-pat",)), {}).find(TOKEN) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"key = " + TOKEN, "github-pat"),
        (b"my-key = " + TOKEN, "github-pat"),
        (b"api_key = T-123456-aB3dE6gH9jK2mN5p", "own"),
        (b"api_key = " + b"k3J9x8Lq2Wm4Zt7Rv1Ny6", "generic-api-key"),
        (b"discord_key = " + b"k3j9x8lq2wm4zt7rv1ny6k3j9x8lq2wm", "discord-client-secret"),
    ],
)
def test_the_most_specific_rule_names_what_several_find(text: bytes, rule: str) -> None:
    finder = Finder(SecretSettings(detectors={"own": "T-[0-9]{6}"}), {"MY_KEY": VALUE})
    (found,) = finder.find(text)
    assert found.rule == rule
    assert text[found.start : found.end] == text.rpartition(b" ")[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        b"ghp_" * 500_000,
        b"api_key: " * 200_000,
        b"-----BEGIN PRIVATE KEY-----\n" * 20_000,
        b"-----BEGIN PRIVATE KEY-----" + b"A" * 2_000_000,
        b"curl x -u a:b " * 50_000,
        b"\\" * 2_000_000,
        b"\\u0061" * 100_000,
        b'{"key":' * 200_000,
        VALUE[:-1] * 100_000,
        b"%25" * 500_000,
        b"&amp;" * 400_000,
        b"kind: secret data: " * 50_000,
        b"discord linear okta adobe = " * 50_000,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_hostile_text_of_megabytes_is_searched_in_linear_time(text: bytes) -> None:
    """It would take minutes otherwise, and be ended by the time limit of tests."""
    FINDER.find(text)
    find_in_json(FINDER, json.dumps({"a": text.decode()}).encode())


def test_no_value_is_in_a_repr() -> None:
    (secret,) = find_in_json(FINDER, json.dumps({"a": VALUE.decode()}).encode())
    assert VALUE.decode() not in f"{FINDER!r} {secret!r} {vars(FINDER)!r}"


@pytest.mark.parametrize("digits", [8, 9, 10, 32, 64])
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        'api_key = "{}"',
        "token: {}",
        "Authorization: Bearer {}",
        "https://u:{}@host/",
        '{{"password": "{}"}}',
        'curl -u "me:{}" https://a.example',
    ],
)
def test_a_placeholder_is_not_a_secret(text: str, digits: int) -> None:
    digest = sha256(text.encode()).hexdigest()[:digits]
    for rule in ("generic-api-key", "github-pat", "MY_KEY"):
        assert FINDER.find(text.format(f"{{{{secret:{rule}:{digest}}}}}").encode()) == []


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password: {{secret: hunter22", ["{{secret: hunter22"]),
        ("password: {{secret:pw:12345678}} or hunter22", [" or hunter22"]),
        ("password: hunter22 {{secret:pw:12345678}} x", ["hunter22 "]),
        ("password: {{secret:pw:12345678}}", []),
        ("password: Bearer {{secret:pw:12345678}}", []),
    ],
)
def test_a_placeholder_hides_nothing_beside_it(text: str, hidden: list[str]) -> None:
    finder = Finder(SecretSettings(detectors={"pw": "password: (.*)"}), {})
    assert [text[one.start : one.end] for one in finder.find(text.encode())] == hidden


@pytest.mark.parametrize("written", [bytes, b64encode, hexlify, lambda key: key.replace(b"\n", b"\\n")])
def test_lines_of_a_key_are_found_beside_the_whole_of_it(written: Callable[[bytes], bytes]) -> None:
    lines = [b64encode(bytes((7 * line + 11 * at) % 256 for at in range(48))) for line in range(1, 20)]
    key = b"-----BEGIN KEY-----\n" + b"\n".join(lines) + b"\n-----END KEY-----\n"
    finder = Finder(SecretSettings(), {"deploy": key})
    whole = written(key)
    half = key[: len(key) // 2 + 20]  # ends within a line, of which nothing but lines before it are found
    text = b"a " + whole + b" b " + b"  12 " + lines[3] + b" c " + whole + half
    found = finder.find(text)
    rest = bytearray(text)
    for start, end, rule in reversed(found):
        assert rule == "deploy"
        del rest[start:end]
    assert not any(line in rest for line in lines)
    assert bytes(rest).replace(b"=", b"").startswith(b"a  b   12  c "), "but for what fills up base64"
