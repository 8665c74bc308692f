"""`hookproxy run --url`: what the command line says of the server is checked before anything else happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookproxy.cli import run, run_url
from hookproxy.config.load import Loaded
from hookproxy.jsonrpc import redact
from hookproxy.model.errors import UserError
from hookproxy.model.settings import Settings
from hookproxy.network.address import parse
from hookproxy.session import remote_server


def test_variables_in_headers_are_replaced_and_blanks_at_the_ends_removed() -> None:
    env = {"TOKEN": "secret", "ORG": "7"}
    assert remote_server.headers(["Authorization: Bearer ${TOKEN}", "X-Org:${ORG}-${ORG} "], env) == (
        ("Authorization", "Bearer secret"),
        ("X-Org", "7-7"),
    )


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("Authorization", "is not a header"),
        ("Bad Name: x", "is not a header"),
        (": x", "is not a header"),
        ("Bad\r\nName: x", "is not a header"),
        ("Host: other", "hookproxy sets it itself"),
        ("content-length: 7", "hookproxy sets it itself"),
        ("Transfer-Encoding: chunked", "hookproxy sets it itself"),
        ("Mcp-Session-Id: 7", "hookproxy sets it itself"),
        ("Authorization: ${MISSING}", "MISSING is not set"),
        ("Authorization: ${EMPTY}", "EMPTY is not set"),
        ("Authorization: ${EVIL}", "cannot contain"),
        ("Authorization: caf\u00e9", "cannot contain"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_without_its_value_in_the_message(header: str, why: str) -> None:
    with pytest.raises(UserError) as problem:
        remote_server.headers([header], {"EVIL": "hunter2\r\nX: y", "EMPTY": ""})
    assert why in problem.value.message
    assert "hunter2" not in str(problem.value)


def test_an_unknown_spelling_of_a_header_never_prints_its_secret() -> None:
    with pytest.raises(UserError) as problem:
        remote_server.headers(["Bearer hunter2"], {})
    assert "hunter2" not in str(problem.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.example.com/mcp", "example.com"),
        ("https://www.example.com/mcp", "example.com"),
        ("https://mcp.com/", "mcp.com"),
        ("http://localhost:3000/", "localhost"),
    ],
)
def test_the_servers_name_is_its_host(url: str, name: str) -> None:
    assert run_url.server_name(parse(url)) == name


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--url", "https://h/", "--", "server"], "and so does the command server"),
        (["--url=https://h/", "server"], "and so does the command server"),
        (["--url", "http://example.com/"], "unencrypted"),
        (["--url", "https://u:p@h/"], "contains credentials"),
        (["--url", "https://h/", "--key", "k"], "without --cert"),
        (["--url", "http://localhost/", "--ca", "c"], "are for https"),
        (["--url", "https://h/", "--header", "x"], "is not a header"),
        (["--url", ""], "--url"),
        (["--header", "a: b", "--", "server"], "--url"),
    ],
)
def test_contradictions_are_errors_before_anything_is_started(arguments: list[str], why: str) -> None:
    with pytest.raises(UserError) as problem:
        run.main(arguments)
    assert why in str(problem.value)


def test_certificates_that_cannot_be_used_are_errors_with_their_name(tmp_path: Path) -> None:
    from hookproxy.network.connect import tls_context

    (tmp_path / "bad.pem").write_text("no certificate")
    for name in ("bad.pem", "missing.pem"):
        with pytest.raises(UserError, match=name):
            tls_context(str(tmp_path / name), None, None)
        with pytest.raises(UserError, match=name):
            tls_context(None, str(tmp_path / name), None)


def test_the_audit_redacts_header_values_and_tokens_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "tok.en+123456")
    options = run.build_parser().parse_args(["--url", "https://h/", "--header", "Authorization: Bearer ${TOKEN}"])
    options.header.append("X-Flag: 1")
    loaded = Loaded(settings=Settings(audit_redact=("mine",)), groups=(), notes=())
    settings = run_url.with_secrets_redacted(loaded, options).settings
    redaction = redact.of(settings.audit_redact, settings.audit_redact_keys, settings.audit_secrets)
    assert redaction is not None
    text = "mine: Bearer 1 tok.en+123456 tok.en%252B123456"
    assert redaction.text(text) == "[redacted]: Bearer 1 [redacted] [redacted]"


def test_the_deadlines_of_the_configuration_reach_the_settings(tmp_path: Path) -> None:
    from hookproxy.config.load import load

    file = tmp_path / "hookproxy.toml"
    file.write_text("[remote]\nconnect_seconds = 1.5\nsilence_seconds = 0\nconnections = 7\n")
    settings = load(str(file), [], None, {"HOME": str(tmp_path)}, str(tmp_path), None).settings
    assert (settings.remote_connect_seconds, settings.remote_silence_seconds) == (1.5, 0)
    assert settings.remote_connections == 7
    assert json.dumps(settings.remote_silence_seconds) == "0.0"
