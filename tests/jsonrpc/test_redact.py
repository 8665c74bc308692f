"""Secrets do not get into the audit: found by a pattern or by the name of their member, in any spelling."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.jsonrpc import known_secrets, redact
from hookproxy.jsonrpc.known_secrets import MARK
from hookproxy.jsonrpc.redact import Redaction


def secrets(*patterns: str, keys: tuple[str, ...] = ()) -> Redaction:
    found = redact.of(patterns, keys)
    assert found is not None
    return found


def test_a_match_of_a_pattern_is_replaced_in_every_text() -> None:
    raw = b'{"a":"use sk-abc now","b":[{"c":"sk-xyz"}],"sk-key":1,"n":1e400}'
    assert secrets("sk-[a-z]+").json(raw) == (
        b'{"a":"use [redacted] now","b":[{"c":"[redacted]"}],"[redacted]":1,"n":1e400}'
    )


@pytest.mark.parametrize("spelled", [b'"sk-abc"', b'"\\u0073k-abc"', b'"s\\u006b\\u002dabc"', b'"sk-\\u0061bc"'])
def test_no_escape_hides_a_secret(spelled: bytes) -> None:
    assert secrets("sk-[a-z]+").json(b'{"a":' + spelled + b"}") == b'{"a":"[redacted]"}'


def test_a_number_can_be_a_secret() -> None:
    raw = b'{"card":4111111111111111,"text":"4111111111111111","n":[1.50,41]}'
    assert secrets(r"\b4\d{15}\b").json(raw) == b'{"card":"[redacted]","text":"[redacted]","n":[1.50,41]}'


@pytest.mark.parametrize("name", ["api_key", "apiKey", "API-KEY", "Api Key", "apikey"])
@pytest.mark.parametrize("value", ['"x"', "7", "[1,2]", '{"a":"b"}', "true", "null"])
def test_a_member_with_a_secret_name_loses_any_value(name: str, value: str) -> None:
    raw = f'{{"deep":[{{"{name}":{value},"other":1}}]}}'.encode()
    assert secrets(keys=("api_key",)).json(raw) == f'{{"deep":[{{"{name}":"{MARK}","other":1}}]}}'.encode()


def test_a_secret_name_does_not_match_a_part_of_a_name() -> None:
    raw = b'{"tokens":1,"my_token":2}'
    assert secrets(keys=("token",)).json(raw) == raw


def test_json_in_a_text_is_searched_for_names() -> None:
    inner = json.dumps({"password": "hunter2", "user": "x"})
    got = json.loads(secrets(keys=("password",)).json(json.dumps({"body": inner}).encode()))
    assert json.loads(got["body"]) == {"password": MARK, "user": "x"}
    assert secrets(keys=("password",)).text('{"a": 1.50}') == '{"a": 1.50}', "what has no secret stays as it is"
    assert secrets(keys=("password",)).text("{no json") == "{no json"


def test_two_members_with_secrets_as_names_both_stay() -> None:
    assert secrets("sk-[a-z]").json(b'{"sk-a":1,"sk-b":2}') == b'{"[redacted]":1,"[redacted]\'":2}'


def test_a_value_that_cannot_be_read_is_removed() -> None:
    for raw in (b"{nonsense", b'{"a":1,"a":2}', b'"\xff"', b"[" * 100_000):
        assert secrets("x").json(raw) == b'"[redacted]"'


def test_a_text_too_long_to_be_searched_is_removed() -> None:
    text = "y" * (known_secrets.MAX_SEARCHED + 1)
    assert secrets("x").text(text) == "[redacted: 65537 characters, too many to be searched]"
    assert secrets("x").text(text[1:]) == text[1:]
    assert secrets(keys=("x",)).text(text) == text, "names are not searched for in it"


def test_nothing_is_secret_unless_the_configuration_says_so() -> None:
    assert redact.of((), ()) is None


@pytest.mark.parametrize("text", ["(", "[", "*", "(?P<a>x)(?P<a>y)", "a{99999999999}", "x*", "^", "$", "|a"])
def test_an_invalid_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"regular expression|empty text"):
        redact.pattern(text)


def test_a_name_without_letters_and_digits_is_a_name() -> None:
    assert secrets(keys=("--",)).json(b'{"--":1,"-":2,"a":3}') == b'{"--":"[redacted]","-":2,"a":3}'


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(_JSON)
@pytest.mark.slow
def test_any_redacted_value_is_json_without_the_secret(value: object) -> None:
    raw = json.dumps({"a": [value, "pre-s3cret-post"], "token": value}).encode()
    got = secrets("s3cret", keys=("token",)).json(raw)
    assert b"s3cret" not in got
    assert json.loads(got)["token"] == MARK


@pytest.mark.parametrize(
    "document",
    [
        b'{"password":"hunter2"}',
        b'{"a":[{"Pass-Word":{"x":["hunter2"]}}]}',
        b'{"text":"{\\"password\\":\\"hunter2\\"}"}',
    ],
)
def test_a_value_of_a_secret_member_is_removed_wherever_it_occurs(document: bytes) -> None:
    redaction = redact.of([], ["password"])
    assert redaction
    one = redaction.with_values_of([b"no JSON", document])
    assert one.text("not hunter2, please") == "not [redacted], please"
    assert one.json(b'{"note":"hunter2","hunter2":1}') == b'{"note":"[redacted]","[redacted]":1}'
    assert redaction.text("hunter2") == "hunter2", "only in the record of its own call"


def test_a_value_is_found_in_the_spellings_of_json() -> None:
    redaction = redact.of([], ["password"])
    assert redaction
    one = redaction.with_values_of([json.dumps({"password": 'q"é\n'}).encode()])
    for text in ('q"é\n', 'q\\"é\\n', 'q\\"\\u00e9\\n'):
        assert one.text(f"it printed {text}!") == "it printed [redacted]!"


def test_a_number_is_a_value_and_a_short_value_is_not_searched_for() -> None:
    redaction = redact.of([], ["pin"])
    assert redaction
    assert redaction.with_values_of([b'{"pin":1234}']).text("1234 or 12") == "[redacted] or 12"
    assert redaction.with_values_of([b'{"pin":"abc"}']).text("abc") == "abc"


def test_too_many_values_to_search_for_remove_every_text() -> None:
    redaction = redact.of([], ["pin"])
    assert redaction
    many = json.dumps({"pin": [f"value{number}" for number in range(400)]}).encode()
    assert redaction.with_values_of([many]).text("anything") == "[redacted]"
