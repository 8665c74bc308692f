"""`hookproxy sessions` and `users`: their command lines, and where they look for the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.cli import administration, audit, console, sessions, top, users
from hookproxy.model.errors import UserError


@pytest.mark.parametrize("words", [[], ["abcd", "--user", "anna"]])
def test_either_a_session_or_a_user_is_ended(words: list[str]) -> None:
    with pytest.raises(UserError, match="either the ID of a session or --user"):
        sessions.main(["end", *words])


def test_a_gateway_that_is_not_there_is_named(tmp_path: Path) -> None:
    for main, words in ((sessions.main, []), (users.main, ["block", "anna"])):
        with pytest.raises(UserError, match=f"cannot reach the gateway at {tmp_path}/mcp-admin.sock"):
            main([*words, "--socket", str(tmp_path / "mcp.sock")])


def test_the_socket_for_agents_and_the_one_for_administration_name_the_same_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents, admin = str(tmp_path / "mcp.sock"), str(tmp_path / "mcp-admin.sock")
    assert administration.place_of(agents) == admin
    Path(admin).touch()
    assert administration.place_of(admin) == admin
    assert administration.place_of(agents) == admin
    monkeypatch.setenv("HOOKPROXY_SOCKET", agents)
    assert administration.place_of(None) == admin
    assert administration.place_of(administration.USUAL) == admin


def test_gateway_without_a_value_is_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKPROXY_SOCKET", str(tmp_path / "mcp.sock"))
    for main, words in ((audit.main, ["--gateway"]), (audit.main, ["stats", "--gateway"])):
        with pytest.raises(UserError, match=f"cannot reach the gateway at {tmp_path}/mcp-admin.sock"):
            main(words)
    for parser in (top.build_parser(), console.build_parser()):
        with pytest.raises(UserError, match=f"cannot reach the gateway at {tmp_path}/mcp-admin.sock"):
            administration.console_of(parser.parse_args(["--gateway"]))
        assert administration.console_of(parser.parse_args([])) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1.0, "0 s"), (59.0, "59 s"), (120.0, "2 min"), (7300.0, "2 h"), (200_000.0, "2 d")]
)
def test_times_are_for_people(seconds: float, text: str) -> None:
    assert sessions._ago(seconds) == text
