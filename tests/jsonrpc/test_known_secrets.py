"""Secrets are removed from texts whole, in parts and in other spellings, and before a text is cut."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.jsonrpc.known_secrets import MARK, MAX_SEARCHED, NO_SECRETS, PART, KnownSecrets, known_secrets, spellings

TOKEN = "ghp_Zx81/kQ+v0~Lm=42&né"
SECRETS = KnownSecrets([TOKEN])


@pytest.mark.parametrize(
    "spelled",
    [
        TOKEN,
        quote(TOKEN),
        quote(TOKEN, safe=""),
        quote_plus(TOKEN),
        quote(TOKEN, safe="").replace("%2F", "%2f").replace("%C3", "%c3"),
        json.dumps(TOKEN),
        json.dumps(TOKEN).replace("\\u00e9", "\\u00E9"),
        json.dumps(TOKEN, ensure_ascii=False).replace("/", "\\/"),
        base64.b64encode(TOKEN.encode()).decode(),
        base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="),
        base64.b64encode(f"u:{TOKEN}".encode()).decode(),
        base64.b64encode(f"me:{TOKEN}".encode()).decode(),
        base64.b64encode(f"anna:{TOKEN}".encode()).decode(),
        TOKEN.encode().hex(),
        TOKEN.encode().hex().upper(),
    ],
)
def test_no_part_of_a_secret_remains_in_any_spelling(spelled: str) -> None:
    for text in (f"bad token {spelled}", f"{spelled} is bad", f"x={spelled}&y={spelled[-16:]}", spelled):
        left = SECRETS.removed_from(text).replace(MARK, "\0")
        assert not any(spelled[at : at + PART] in left for at in range(1, len(spelled) - PART)), left


@pytest.mark.parametrize("part", [TOKEN[:8], TOKEN[:15], TOKEN[-8:], TOKEN[5:14], TOKEN[: len(TOKEN) // 2]])
def test_a_part_is_removed_and_the_text_around_it_stays(part: str) -> None:
    assert SECRETS.removed_from(f"the token {part}… is wrong") == f"the token {MARK}… is wrong"


def test_parts_that_touch_or_overlap_are_one_and_others_are_not() -> None:
    assert SECRETS.removed_from(TOKEN[:9] + TOKEN[4:13]) == MARK
    assert SECRETS.removed_from(f"{TOKEN[:9]} {TOKEN[4:13]}") == f"{MARK} {MARK}"
    assert SECRETS.removed_from(TOKEN[:9] + "-" + TOKEN) == f"{MARK}-{MARK}"


@pytest.mark.parametrize("text", ["", "short", "nothing of it is here", TOKEN[:7], f"{TOKEN[:7]}x{TOKEN[8:15]}"])
def test_what_has_no_part_of_a_secret_stays_as_it_is(text: str) -> None:
    assert SECRETS.removed_from(text) == text
    assert NO_SECRETS.removed_from(text + TOKEN) == text + TOKEN


def test_short_secrets_are_left_because_they_are_in_ordinary_texts() -> None:
    assert KnownSecrets(["1234567"]).removed_from("1234567") == "1234567"
    assert KnownSecrets(["12345678"]).removed_from("12345678") == MARK


def test_a_secret_of_several_lines_is_removed_line_by_line() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nc3VwZXJzZWNyZXQ1\n-----END KEY-----"
    assert known_secrets([key]).removed_from("x c3VwZXJzZWNyZXQ1 y") == f"x {MARK} y"
    assert json.dumps(key)[1:-1] in spellings(key)


@given(
    st.integers(0, 60), st.integers(0, 60), st.text("abc ", max_size=40), st.sampled_from([TOKEN, TOKEN.encode().hex()])
)
def test_wherever_a_text_is_cut_no_part_of_a_secret_is_at_its_end(
    before: int, longest: int, rest: str, secret: str
) -> None:
    text = " " * before + secret + rest
    cut = SECRETS.shortened(text, longest)
    assert len(cut) <= longest
    assert not any(secret[at : at + PART] in cut for at in range(len(secret) - PART + 1))
    visible = cut.replace(MARK, "").strip()
    assert not visible or visible.strip("abc ") in ("", *(MARK[:size] for size in range(1, len(MARK))))


def test_a_text_without_secrets_is_cut_where_it_is_too_long() -> None:
    assert NO_SECRETS.shortened("x" * 10, 4) == SECRETS.shortened("x" * 10, 4) == "xxxx"
    assert SECRETS.shortened("x" * 10, 10) == "x" * 10


def test_a_text_that_is_too_long_to_be_searched_is_removed() -> None:
    assert TOKEN not in SECRETS.removed_from("x" * MAX_SEARCHED + TOKEN)
    assert NO_SECRETS.removed_from("x" * MAX_SEARCHED + "y")[-1] == "y"
    assert SECRETS.shortened("x" * MAX_SEARCHED + TOKEN, 3) == "xxx"


def test_bytes_that_are_not_utf8_are_searched_and_kept() -> None:
    assert SECRETS.removed_from_bytes(b"\xff" + TOKEN.encode() + b"\xfe") == b"\xff" + MARK.encode() + b"\xfe"
    assert NO_SECRETS.removed_from_bytes(b"\xff") == b"\xff"


def test_a_very_long_secret_is_found_as_it_is() -> None:
    long = "".join(f"{number:08x}" for number in range(800))
    assert known_secrets([long]).removed_from(f"a {long[100:150]} b") == f"a {MARK} b"
    assert long.encode().hex() not in spellings(long)
