"""`hookproxy connect NAME --url URL`: the address, the token, and what excludes each other."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
import pytest

from hookproxy.cli import connect, connect_url
from hookproxy.model.errors import UserError
from hookproxy.network.address import parse
from hookproxy.session.remote_server import RemoteOptions


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


ADDRESS = parse("https://mcp.example.com/mcp/git")


def value_of(token_file: str | None) -> str | None:
    """What requests have as `Authorization`."""
    return connect_url._credentials(ADDRESS, token_file, RemoteOptions(), lambda _text: None).value_now()


def test_a_token_comes_from_a_file_of_the_user_or_from_the_environment_which_children_do_not_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("abc.def\n")
    path.chmod(0o600)
    assert value_of(str(path)) == "Bearer abc.def"
    monkeypatch.setenv("HOOKPROXY_TOKEN", "xyz")
    assert value_of(None) == "Bearer xyz"
    assert "HOOKPROXY_TOKEN" not in os.environ
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert value_of(None) is None


@pytest.mark.parametrize("value", ["a b", "a\nb", "\N{SNOWMAN}", "a" * 20_000, " "])
def test_a_variable_that_has_no_token_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOOKPROXY_TOKEN", value)
    with pytest.raises(UserError, match="HOOKPROXY_TOKEN has no token"):
        value_of(None)


def test_a_token_of_a_pipe_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("abc.def\n",))
    writer.start()
    credentials = connect_url._credentials(ADDRESS, str(path), RemoteOptions(), lambda _text: None)
    writer.join()
    assert anyio.run(credentials.refused, 401, "", "Bearer abc.def") is None


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
        value_of(str(path))
    assert "abc" not in str(raised.value)
    with pytest.raises(UserError, match="No such file"):
        value_of(str(tmp_path / "gone"))


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


@pytest.mark.parametrize(
    ("url", "said", "hint"),
    [
        ("http://mcp.example.com", "http://mcp.example.com would send everything unencrypted", "--allow-http"),
        ("ftp://x", "--url ftp://x is not an address of a server: it begins with ftp://", "https://HOST[:PORT]"),
        ("nonsense", "--url nonsense is not an address of a server", "https://HOST[:PORT]"),
        ("mcp.example.com:8443", "--url mcp.example.com:8443 is not an address", "https://HOST[:PORT]"),
        ("https://user:secret@x", "--url https://…@x contains credentials", "--token-file"),
        ("ftp://user:secret@x", "--url ftp://…@x is not an address of a server: it begins", "https://HOST[:PORT]"),
    ],
)
def test_an_address_that_cannot_be_used_is_an_error(url: str, said: str, hint: str) -> None:
    with pytest.raises(UserError) as raised:
        connect.main(["git", "--url", url])
    assert said in raised.value.message
    assert hint in raised.value.hint
    assert "secret" not in str(raised.value)
