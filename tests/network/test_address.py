"""Addresses: what is refused before anything is sent, and what counts as the same origin."""

from __future__ import annotations

import pytest

from hookproxy.model.errors import UserError
from hookproxy.network.address import find_proxy, is_loopback, parse


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "host_header"),
    [
        ("https://mcp.example.com/mcp", "mcp.example.com", 443, b"/mcp", b"mcp.example.com"),
        ("HTTPS://MCP.example.com", "mcp.example.com", 443, b"/", b"mcp.example.com"),
        ("https://h:8443/a?b=c#d", "h", 8443, b"/a?b=c", b"h:8443"),
        ("http://localhost:3000/mcp", "localhost", 3000, b"/mcp", b"localhost:3000"),
        ("http://[::1]:80/mcp", "::1", 80, b"/mcp", b"[::1]"),
        ("https://b\u00fccher.example/\u00fc", "xn--bcher-kva.example", 443, b"/%C3%BC", b"xn--bcher-kva.example"),
    ],
)
def test_an_address_has_these_parts(url: str, host: str, port: int, target: bytes, host_header: bytes) -> None:
    address = parse(url)
    assert (address.host, address.port, address.target, address.host_header) == (host, port, target, host_header)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.com/mcp", "unencrypted"),
        ("http://10.0.0.1/mcp", "unencrypted"),
        ("http://localhost.example.com/", "unencrypted"),
        ("ftp://example.com/", "is not an address"),
        ("example.com/mcp", "is not an address"),
        ("https:///mcp", "is not an address"),
        ("https://h:0/", "is not an address"),
        ("https://h:x/", "Port"),
        ("https://user:hunter2@example.com/mcp", "contains credentials"),
        ("https://example.com/a b", "blank"),
        ("https://exa mple.com/", "blank"),
    ],
)
def test_an_address_is_refused_with_a_reason_and_without_its_secrets(url: str, why: str) -> None:
    with pytest.raises(UserError) as problem:
        parse(url)
    assert why in problem.value.message
    assert "hunter2" not in str(problem.value)


def test_a_line_end_in_an_address_never_becomes_a_header() -> None:
    with pytest.raises(UserError, match="blank or a control"):
        parse("https://example.com/a\r\nX: y")


def test_allow_http_allows_it() -> None:
    assert parse("http://example.com/mcp", allow_http=True).port == 80


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.8.9.1", "::1"])
def test_this_machine_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["example.com", "10.0.0.1", "0.0.0.0", "localhost.com", "::ffff:10.0.0.1"])
def test_other_machines_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", b"/b"),
        ("b?x=1", b"/a/b?x=1"),
        ("https://h/b", b"/b"),
        ("https://h:443/b", b"/b"),
        ("//h/b", b"/b"),
        ("https://h:444/b", None),
        ("http://h/b", None),
        ("https://h.example/b", None),
        ("//other/b", None),
        ("https://user@h/b", None),
        ("https://h@other/b", None),
        ("https://[h/b", None),
        ("javascript:x", None),
        ("\\\\other\\b", b"/a/\\\\other\\b"),
    ],
)
def test_a_redirect_is_followed_within_the_origin_only(location: str, target: bytes | None) -> None:
    assert parse("https://h/a/mcp").same_origin_target(b"", location) == target


@pytest.mark.parametrize(
    ("env", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:8080"}, ("p", 8080)),
        ({"https_proxy": "http://p:8080", "HTTPS_PROXY": "http://q:1"}, ("p", 8080)),
        ({"ALL_PROXY": "p:1"}, ("p", 1)),
        ({"HTTPS_PROXY": "http://p:8080", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "http://p:8080", "NO_PROXY": "a, example.com"}, None),
        ({"HTTPS_PROXY": "http://p:8080", "NO_PROXY": ".example.com"}, None),
        ({"HTTPS_PROXY": "http://p:8080", "NO_PROXY": "ample.com"}, ("p", 8080)),
        ({"HTTPS_PROXY": "http://p:8080", "NO_PROXY": "mcp.example.com:8443"}, ("p", 8080)),
        ({"HTTPS_PROXY": "http://p:8080", "NO_PROXY": "mcp.example.com:443"}, None),
        ({"HTTP_PROXY": "http://p:8080", "http_proxy": "http://p:8080"}, None),
    ],
)
def test_the_proxy_is_the_one_that_the_environment_names(env: dict[str, str], proxy: tuple[str, int] | None) -> None:
    found = find_proxy(parse("https://mcp.example.com/"), env)
    assert (found and (found.host, found.port)) == proxy


def test_a_network_in_no_proxy_exempts_its_addresses_and_loopback_is_always_exempt() -> None:
    env = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}
    assert find_proxy(parse("https://10.1.2.3/"), env) is None
    assert find_proxy(parse("https://11.1.2.3/"), env) is not None
    assert find_proxy(parse("https://127.0.0.1/"), env) is None


def test_credentials_of_a_proxy_become_its_header_and_its_errors_do_not_show_them() -> None:
    found = find_proxy(parse("https://h/"), {"HTTPS_PROXY": "http://u:p%40@proxy:1"})
    assert found is not None
    assert found.authorization == b"Basic dTpwQA=="
    with pytest.raises(UserError) as problem:
        find_proxy(parse("https://h/"), {"HTTPS_PROXY": "socks5://u:hunter2@proxy:1"})
    assert "hunter2" not in str(problem.value)
