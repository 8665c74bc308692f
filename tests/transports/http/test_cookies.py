"""Cookies of one server: kept for it, and for nobody else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.http.cookies import Cookies

NOW = 1_800_000_000.0
SPENT = b"Thu, 01 Jan 1970 00:00:00 GMT"
LATER = b"Fri, 01-Jan-2100 00:00:00 GMT"


def header(*written: bytes, target: bytes = b"/mcp", host: str = "a.example.com", now: float = NOW) -> bytes:
    cookies = Cookies(host, is_tls=True)
    for one in written:
        cookies.note(one, b"/mcp", NOW)
    return cookies.header(target, now)


def test_a_cookie_goes_back_with_its_value_as_it_came() -> None:
    assert header(b"AWSALB=a/b+c=d; Expires=%b; Path=/" % LATER) == b"Cookie: AWSALB=a/b+c=d\r\n"
    assert header(b"a=1", b"b=2; HttpOnly; SameSite=None", b"a=3") == b"Cookie: a=3; b=2\r\n"
    assert header(b'a="x y"; path=/') == b'Cookie: a="x y"\r\n'


def test_a_cookie_of_another_host_is_not_kept() -> None:
    for domain in (b"example.org", b"b.example.com", b"x.a.example.com", b"le.com"):
        assert header(b"a=1; Domain=" + domain) == b""
    for domain in (b"example.com", b".Example.com", b"a.example.com"):
        assert header(b"a=1; domain=" + domain) == b"Cookie: a=1\r\n"


def test_a_cookie_is_sent_only_to_its_path_and_below() -> None:
    assert header(b"a=1; Path=/mcp", target=b"/mcp/x?y") == b"Cookie: a=1\r\n"
    assert header(b"a=1; Path=/mcp", target=b"/mcpx") == b""
    assert header(b"a=1; Path=/other") == b""
    assert header(b"a=1; Path=/", b"b=2; Path=/mcp") == b"Cookie: b=2; a=1\r\n"


def test_a_secure_cookie_needs_tls() -> None:
    cookies = Cookies("localhost", is_tls=False)
    cookies.note(b"a=1; Secure", b"/", NOW)
    cookies.note(b"b=1", b"/", NOW)
    assert cookies.header(b"/", NOW) == b"Cookie: b=1\r\n"


def test_a_cookie_ends_when_the_server_says() -> None:
    assert header(b"a=1", b"a=; Max-Age=0") == b""
    assert header(b"a=1", b"a=; Expires=" + SPENT) == b""
    assert header(b"a=1; Max-Age=-5") == b""
    assert header(b"a=1; Max-Age=60; Expires=" + SPENT) == b"Cookie: a=1\r\n"
    assert header(b"a=1; Max-Age=60", now=NOW + 59) == b"Cookie: a=1\r\n"
    assert header(b"a=1; Max-Age=60", now=NOW + 61) == b""
    assert header(b"a=1; Max-Age=soon; Expires=whenever") == b"Cookie: a=1\r\n"


def test_what_is_no_cookie_is_ignored() -> None:
    for written in (b"", b";", b"a", b"=1", b"a b=1", b"a=\x01", b"a=\xff", b"a=" + b"x" * 5000):
        assert header(written) == b""


def test_a_server_cannot_fill_the_memory() -> None:
    assert header(*(b"c%d=1" % i for i in range(1000))).count(b"=") == 50


@given(
    st.sampled_from([b"/", b"/mcp", b"/mcp?a=1"]),
    st.lists(
        st.sampled_from([b"", b"a=1;", b"a=1; Expires=", b"a=1; Path=/"]).flatmap(
            lambda start: st.one_of(
                st.binary(max_size=60), st.text("0123456789:, -+JanFeb", max_size=40).map(str.encode)
            ).map(start.__add__)
        ),
        max_size=5,
    ),
)
def test_whatever_the_server_sets_the_request_has_one_header_line_more_at_most(
    target: bytes, written: list[bytes]
) -> None:
    cookies = Cookies("a.example.com", is_tls=True)
    for one in written:
        cookies.note(one, target, NOW)
    line = cookies.header(target, NOW)
    assert line == b"" or (line.startswith(b"Cookie: ") and line.endswith(b"\r\n"))
    assert not any(byte < 32 or byte > 126 for byte in line[:-2])
