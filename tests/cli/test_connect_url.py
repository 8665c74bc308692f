"""`hookproxy connect NAME --url URL`: the address, the token, and what excludes each other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.cli import connect, connect_url
from hookproxy.model.errors import UserError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://mcp.example.com", "https://mcp.example.com/mcp/git"),
        ("https://mcp.example.com/", "https://mcp.example.com/mcp/git"),
        ("https://mcp.example.com/gate/", "https://mcp.example.com/gate/mcp/git"),
        ("https://mcp.example.com/mcp/git", "https://mcp.example.com/mcp/git"),
        ("https://mcp.example.com/mcp/other", "https://mcp.example.com/mcp/other/mcp/git"),
    ],
)
def test_the_address_is_that_of_the_gateway_or_of_its_server(url: str, address: str) -> None:
    assert connect_url.address_of(url, "git") == address


def test_a_token_comes_from_a_file_of_the_user_or_from_the_environment_which_children_do_not_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("abc.def\n")
    path.chmod(0o600)
    assert connect_url._headers(str(path)) == (("Authorization", "Bearer abc.def"),)
    monkeypatch.setenv("HOOKPROXY_TOKEN", "xyz")
    assert connect_url._headers(None) == (("Authorization", "Bearer xyz"),)
    assert "HOOKPROXY_TOKEN" not in os.environ
    assert connect_url._headers(None) == ()


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (b"abc", 0o640, "others can read or change it"),
        (b"abc", 0o606, "others can read or change it"),
        (b"", 0o600, "has no token"),
        (b"a b", 0o600, "has no token"),
        (b"a\nb", 0o600, "has no token"),
        (b"\xff", 0o600, "has no token"),
        (b"a" * 20_000, 0o600, "has no token"),
    ],
)
def test_a_file_that_has_no_token_or_that_others_can_read_is_refused(
    tmp_path: Path, content: bytes, mode: int, says: str
) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(UserError, match=says) as raised:
        connect_url._headers(str(path))
    assert "abc" not in str(raised.value)
    with pytest.raises(UserError, match="No such file"):
        connect_url._headers(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["git", "--url", "https://x", "--socket", "/s"],
        ["git", "--url", "https://x", "--", "cat"],
        ["git", "--token-file", "t"],
        ["git", "--socket", "/s", "--ca", "c"],
        ["git", "--allow-http"],
    ],
)
def test_options_of_the_socket_and_of_the_address_exclude_each_other(arguments: list[str]) -> None:
    with pytest.raises(UserError, match="--url"):
        connect.main(arguments)


@pytest.mark.parametrize("url", ["http://mcp.example.com", "ftp://x", "nonsense", "https://user:secret@x"])
def test_an_address_that_cannot_be_used_is_an_error(url: str) -> None:
    with pytest.raises(UserError) as raised:
        connect.main(["git", "--url", url])
    assert "secret" not in str(raised.value)
