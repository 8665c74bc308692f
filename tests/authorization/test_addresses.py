"""Addresses: which are the same, which are refused, and what of them is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.authorization.addresses import check_endpoint, is_loopback, server_address, shown
from hookproxy.model.errors import UserError

FAR = "https://mcp.example.com/mcp"
HERE = "http://127.0.0.1:8000/mcp"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("HTTPS://MCP.Example.com:443/mcp#top", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com", "https://mcp.example.com/"),
        ("http://[::1]:80/mcp", "http://[::1]/mcp"),
        ("http://localhost:8000/Mcp/?team=1", "http://localhost:8000/Mcp/?team=1"),
    ],
)
def test_spellings_of_one_address_are_the_same(url: str, address: str) -> None:
    assert server_address(url) == address == server_address(address)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mcp.example.com",
        "ftp://mcp.example.com/",
        "https:///mcp",
        "https://mcp.example.com:99999/",
        "https://mcp.example.com/a b",
        "https://mcp.example.com/\nHost: evil",
        "https://good.example\\@evil.example/",
        "https://user:secret@mcp.example.com/",
        "https://mcp.exämple.com/",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(UserError) as raised:
        server_address(url)
    assert "secret" not in str(raised.value)
    assert "\nHost" not in str(raised.value)


@given(st.text(alphabet="htps:/[]@?#%.\\\n\t aA1é0", max_size=30).map(lambda rest: f"https:{rest}"))
@pytest.mark.slow
def test_any_text_is_refused_or_an_address_that_stays_the_same(text: str) -> None:
    try:
        address = server_address(text)
    except UserError:
        return
    assert server_address(address) == address
    assert address.isascii()
    assert address.isprintable()
    assert " " not in address


def test_a_query_is_not_shown() -> None:
    assert shown("https://mcp.example.com/mcp?key=secret") == "https://mcp.example.com/mcp?…"
    assert shown("https://mcp.example.com/\x1b[2J") == "https://mcp.example.com/\\x1b[2J"


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://127.9.9.9:1/", "http://[::1]/", "https://localhost/"])
def test_loopback_is_known_by_its_text(url: str) -> None:
    assert is_loopback(url)
    check_endpoint("token_endpoint", url, HERE)
    with pytest.raises(UserError, match="token_endpoint"):
        check_endpoint("token_endpoint", url, FAR)


@pytest.mark.parametrize(
    "url",
    [
        "http://auth.example.com/token",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/token",
        "https://[::ffff:10.0.0.1]/token",
        "https://[64:ff9b::10.0.0.1]/token",
        "https://[2002:a00:1::1]/token",
        "https://[fe80::1]/token",
        "https://0x7f.1/token",
        "https://2130706433/token",
        "https://127.1/token",
        "https://app.localhost/token",
        "https://localhost./token",
        "https://user@auth.example.com/token",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://auth.example.com/a\r\nb",
    ],
)
def test_a_server_cannot_send_us_to_plain_http_or_into_a_private_network(url: str) -> None:
    with pytest.raises(UserError):
        check_endpoint("token_endpoint", url, FAR)


def test_a_server_in_a_private_network_may_have_its_login_there() -> None:
    check_endpoint("token_endpoint", "https://10.0.0.2/token", "https://192.168.1.1/mcp")
    check_endpoint("the address", "https://192.168.1.1/mcp", "https://192.168.1.1/mcp")
    with pytest.raises(UserError):
        check_endpoint("token_endpoint", "http://10.0.0.2/token", "https://192.168.1.1/mcp")
    spelled = ("169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "0xa9fea9fe")
    for url in (f"https://{host}/" for host in spelled):
        with pytest.raises(UserError):
            check_endpoint("token_endpoint", url, HERE)


def test_https_with_a_name_is_accepted_from_anywhere() -> None:
    check_endpoint("token_endpoint", "https://auth.example.com:8443/token?tenant=1", FAR)
    check_endpoint("token_endpoint", "https://auth.example.com/token", HERE)
