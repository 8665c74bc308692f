"""Who may use the console: the token, the cookie, the host, the origin, the form."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from hookproxy.console.access import Access, Refused

ACCESS = Access(token="T" * 43, cookie="C" * 43, form_token="F" * 43, folder="a1b2")
HOST = {"host": "127.0.0.1:7800"}
COOKIE = {"cookie": f"theme=dark; hookproxy={ACCESS.cookie}"}


def status(method: str, path: str, headers: dict[str, str], query: dict[str, str] | None = None) -> int:
    try:
        return 200 if not ACCESS.check(method, path, headers, query or {}) else 299
    except Refused as refused:
        return refused.status


def test_the_first_address_is_served_with_its_token_only() -> None:
    assert status("GET", "/", HOST, {"token": ACCESS.token}) == 299
    assert status("GET", "/", HOST, {"token": "wrong"}) == 401
    assert status("GET", "/", HOST) == 401
    assert status("GET", "/", HOST | COOKIE) == 401


def test_a_page_needs_the_cookie_and_its_path() -> None:
    assert status("GET", "/a1b2/", HOST | COOKIE) == 200
    assert status("GET", "/a1b2/", HOST) == 401
    assert status("GET", "/a1b2/", HOST, {"token": ACCESS.token}) == 401
    assert status("GET", "/a1b2/", HOST | {"cookie": "hookproxy=guess"}) == 401
    assert status("GET", "/other/", HOST | COOKIE) == 401
    assert status("GET", "/a1b2/static/console.css", HOST) == 401


@pytest.mark.parametrize("host", ["127.0.0.1:7800", "localhost:9000", "localhost", "[::1]:1"])
def test_names_of_the_loopback_are_hosts(host: str) -> None:
    assert status("GET", "/a1b2/", {"host": host} | COOKIE) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:7800",
        "",
        "127.0.0.1:7800@evil.example",
        "127.0.0.2:7800",
    ],
)
def test_another_host_is_refused_even_with_the_cookie(host: str) -> None:
    assert status("GET", "/a1b2/", {"host": host} | COOKIE) == 421
    assert status("GET", "/", {"host": host}, {"token": ACCESS.token}) == 421


def test_a_form_needs_our_origin() -> None:
    assert status("POST", "/a1b2/try", HOST | COOKIE | {"origin": "http://127.0.0.1:7800"}) == 200
    for origin in (
        "http://127.0.0.1:9999",
        "http://localhost:7800",
        "null",
        "https://127.0.0.1:7800",
        "http://evil.example",
    ):
        assert status("POST", "/a1b2/try", HOST | COOKIE | {"origin": origin}) == 403
    assert status("POST", "/a1b2/try", HOST | COOKIE) == 403
    assert status("POST", "/", HOST | {"origin": "http://127.0.0.1:7800"}, {"token": ACCESS.token}) == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_asks_for_is_refused(site: str) -> None:
    """Another port of 127.0.0.1 is the same site: it may be the server of another user."""
    assert status("GET", "/a1b2/", HOST | COOKIE | {"sec-fetch-site": site}) == 403
    assert status("GET", "/", HOST | {"sec-fetch-site": site}, {"token": ACCESS.token}) == 299


def test_other_methods_do_not_exist() -> None:
    assert status("PUT", "/a1b2/", HOST | COOKIE) == 405
    assert status("OPTIONS", "/a1b2/", HOST | COOKIE) == 405


def test_a_form_needs_our_token() -> None:
    assert ACCESS.form(urlencode({"token": ACCESS.form_token, "tool": "a=b&c", "empty": ""}).encode()) == {
        "tool": "a=b&c",
        "empty": "",
    }
    for body in (b"", b"tool=x", b"token=wrong", urlencode({"token": ACCESS.token}).encode(), b"\xff=%ff"):
        with pytest.raises(Refused) as refused:
            ACCESS.form(body)
        assert refused.value.status == 403


def test_the_cookie_is_for_this_console_only() -> None:
    assert ACCESS.set_cookie.endswith("; Path=/a1b2/; HttpOnly; SameSite=Strict")
    secrets = [Access() for _ in range(2)]
    assert len({secret for one in secrets for secret in (one.token, one.cookie, one.form_token, one.folder)}) == 8
