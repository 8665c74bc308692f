"""The command line in hints about the lock works as it is printed."""

from __future__ import annotations

import shlex

from hookproxy.cli.lock import build_parser
from hookproxy.model.hooks import Session
from hookproxy.model.principal import Principal
from hookproxy.session.lock_command import lock_command


def test_it_names_the_file_the_server_and_its_command_as_a_shell_reads_them() -> None:
    session = Session("i", "my files", "/", "/", command=("npx", "-y", "a b", "--", "x"))
    line = lock_command(session, "--diff", file="/a b/hookproxy.lock")
    words = shlex.split(line)
    assert words[-6:] == ["--", "npx", "-y", "a b", "--", "x"]
    options = build_parser().parse_args(words[2:-6])
    assert (options.file, options.name, options.diff) == ("/a b/hookproxy.lock", "my files", True)


def test_a_long_or_odd_command_is_not_repeated() -> None:
    secrets = ("--api-key", "TOKEN=x", "https://u:p@host/", "sk-ant-0123456789abcdefghij", "s?k=1")
    for word in ("x" * 500, "a\nb", *secrets):
        line = lock_command(Session("i", "s", "/", "/", command=(word,)), "--accept", "NAME", file="f")
        assert line == "hookproxy lock --accept NAME --file f --name s -- COMMAND"


def test_a_server_at_an_address_and_one_of_a_gateway() -> None:
    assert (
        lock_command(Session("i", "s", "/", "/", url="https://x/mcp")) == "hookproxy lock --name s --url https://x/mcp"
    )
    other = lock_command(Session("i", "s", "/", "/", url="http://other/mcp"))
    assert other == "hookproxy lock --name s --url http://other/mcp --allow-http"
    secret = lock_command(Session("i", "s", "/", "/", url="https://x/mcp?token=1"))
    assert secret == "hookproxy lock --name s --url URL"
    of_gateway = Session("i", "s", "/", "/", command=("a",), principal=Principal("u", "u"))
    assert lock_command(of_gateway, "--diff", file="f") == "hookproxy lock --diff"
    line = lock_command(of_gateway, "--diff", file="f", config="/etc/my gateway.toml")
    options = build_parser().parse_args(shlex.split(line)[2:])
    assert (options.config, options.server, options.diff) == ("/etc/my gateway.toml", ["s"], True)
