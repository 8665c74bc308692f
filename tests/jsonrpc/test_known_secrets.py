"""Secrets are removed from texts whole, in parts and in other spellings, and before a text is cut."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
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
        TOKEN.encode().hex()[:20] + TOKEN.encode().hex()[20:].upper(),
        quote(quote(TOKEN, safe=""), safe=""),
        quote(quote(quote(TOKEN, safe=""), safe=""), safe=""),
        "".join(f"%{byte:02x}" for byte in TOKEN.encode()),
        "".join(f"%25{byte:02X}" for byte in TOKEN.encode()),
        html.escape(TOKEN),
        html.escape(html.escape(TOKEN)),
        "".join(f"&#{ord(char)};" for char in TOKEN),
        "".join(f"&#x{ord(char):X}" for char in TOKEN),
        html.escape("".join(f"&#x{ord(char):04x};" for char in TOKEN)),
        json.dumps(json.dumps(TOKEN)),
        json.dumps(json.dumps(json.dumps(TOKEN)).replace("/", "\\/")),
        "".join(f"\\u{ord(char):04X}" for char in TOKEN),
        json.dumps("".join(f"\\u{ord(char):04X}" for char in TOKEN)),
        "".join(f"\\x{byte:02x}" for byte in TOKEN.encode()),
        "".join(f"\\u{{{ord(char):x}}}" for char in TOKEN),
        json.dumps(html.escape(quote(TOKEN, safe=""))),
        quote(base64.b64encode(TOKEN.encode()).decode(), safe=""),
        json.dumps({"a": base64.b64encode(TOKEN.encode()).decode().replace("/", "\\/")}),
    ],
)
def test_no_part_of_a_secret_remains_in_any_spelling(spelled: str) -> None:
    for text in (f"bad token {spelled}", f"{spelled} is bad", f"x={spelled}&y={spelled}", spelled):
        left = SECRETS.removed_from(text)
        around = len(left.replace(MARK, "")) - len(text.replace(spelled, ""))
        assert around <= 16 * text.count(spelled)  # quotes, and what is encoded before it
        assert left.count(MARK) == text.count(spelled)
    tail, size = spelled[len(spelled) // 4 :], len(spelled) // len(TOKEN) + 1
    left = SECRETS.removed_from(f"{tail} {tail}")
    assert left.count(MARK) == 2
    assert len(left) < 2 * len(MARK) + 2 * 8 * size  # a character that was cut at each beginning


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
    assert known_secrets([key]).removed_from(f"x {json.dumps(key)} y") == f'x "{MARK}" y'


@pytest.mark.parametrize("secret", ['p%41ss"w&amp;rd', "back\\slash\\u0041", "&#38;&#39;&#40;&lt"])
@pytest.mark.parametrize("write", [str, json.dumps, quote, html.escape, lambda text: json.dumps(quote(text, safe=""))])
def test_a_secret_that_looks_like_an_escape_is_found_all_the_same(secret: str, write: Callable[[str], str]) -> None:
    assert KnownSecrets([secret]).removed_from(f"a {write(secret)} b").replace('"', "") == f"a {MARK} b"


@pytest.mark.parametrize(
    "spelled", [TOKEN, quote(quote(TOKEN, safe="")), html.escape(TOKEN), TOKEN.encode().hex().upper()]
)
def test_where_only_whole_secrets_are_removed_parts_remain(spelled: str) -> None:
    whole = KnownSecrets([TOKEN], whole=True)
    assert whole.removed_from(f"a {spelled} b {spelled}") == f"a {MARK} b {MARK}"
    assert whole.removed_from(f"a {spelled[:-3]} b") == f"a {spelled[:-3]} b"


@pytest.mark.parametrize(
    "text", ["100%", "a&b", "&", "\\", "%zz", "&#x110000;", "&#9999999;", "&nosuchentity;", "\\ud800", "%ff%"]
)
def test_what_is_no_escape_or_stands_for_nothing_is_left(text: str) -> None:
    for around in ("{}", "{} and more {}", "x{}"):
        written = around.replace("{}", text)
        assert SECRETS.removed_from(written) == written
        assert SECRETS.removed_from(f"{written} {TOKEN}") == f"{written} {MARK}"


def test_a_text_with_more_escapes_around_escapes_than_can_be_searched_is_removed() -> None:
    assert "too many" in SECRETS.removed_from("%2525252541" * 5000)
    assert SECRETS.removed_from("%41" * 5000) == "%41" * 5000


@given(
    st.text(alphabet='ab%&;\\"/ué<x10\ud800', min_size=PART, max_size=20),
    st.lists(st.sampled_from([json.dumps, html.escape, lambda text: quote(text.encode(errors="replace"), safe="")])),
)
def test_however_escapes_are_put_around_a_secret_it_is_found(secret: str, writers: list[Callable[[str], str]]) -> None:
    secret = secret.encode(errors="replace").decode()
    written = secret
    for write in writers[:3]:
        written = write(written)
    left = KnownSecrets([secret], whole=True).removed_from(f"a {written} b")
    assert MARK in left


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
