"""What will not work once agents come is said when gateway.toml is read."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.gateway.start_problems import check_servers, start_problems
from hookproxy.lock import lock_file
from hookproxy.lock.description import Description, Identity
from hookproxy.model.errors import UserError
from tests.support.program import HOOKPROXY


def config_of(folder: Path, text: str) -> GatewayConfig:
    (folder / "gateway.toml").write_text(text)
    return load_gateway("gateway.toml", {}, str(folder))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[servers.a]\ncommand = ["cat"]\nallow = ["@no-such-group"]\n',
            "servers.a.allow[0]: there is no group no-such-group, so it holds for nobody",
        ),
        ('[servers.a]\ncommand = ["/no/such-program"]\n', "servers.a.command: there is no program /no/such-program"),
        ('[servers.a]\ncommand = ["cat"]\ncwd = "/no/folder"\n', "servers.a.cwd: there is no folder /no/folder"),
        (
            '[servers.a]\ncommand = ["cat"]\ncredentials = { TOKEN = "file:/no/secret" }\n',
            "servers.a.credentials.TOKEN: the credential TOKEN cannot be read from /no/secret: No such",
        ),
        (
            '[servers.a]\ncommand = ["cat"]\n[[servers.a.hooks.PreToolUse]]\ncommand = "/no/hook.sh"\n',
            "servers.a.hooks.PreToolUse[0]: there is no file /no/hook.sh",
        ),
        (
            '[[hooks.PreToolUse]]\ncommand = "/no/hook.sh"\n[servers.a]\ncommand = ["cat"]\n'
            '[servers.b]\ncommand = ["cat"]\n',
            "hooks.PreToolUse[0]: there is no file /no/hook.sh",
        ),
    ],
)
def test_what_cannot_start_or_be_read_is_named_once_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    (problem,) = start_problems(config_of(tmp_path, text))
    assert problem.startswith(f"{tmp_path}/gateway.toml: {said}")


def test_a_credential_that_is_too_short_to_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter7\n")
    (tmp_path / "secret").chmod(0o600)
    config = config_of(tmp_path, '[servers.a]\ncommand = ["cat"]\ncredentials = { TOKEN = "file:secret" }\n')
    (problem,) = start_problems(config)
    assert "servers.a.credentials.TOKEN" in problem
    assert "has fewer than 8 characters" in problem
    assert "hunter7" not in problem


def test_what_is_there_is_not_mentioned(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123456789")
    (tmp_path / "secret").chmod(0o640)
    hook = tmp_path / "hook.sh"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    text = """
[servers.a]
command = ["cat"]
credentials = { TOKEN = "file:secret" }
[[servers.a.hooks.PreToolUse]]
command = "./hook.sh"
[servers.b]
url = "https://example.com/mcp"
[servers.c]
from_caller = true
"""
    assert list(start_problems(config_of(tmp_path, text))) == []


def test_a_server_whose_account_the_gateway_cannot_become_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path, '[servers.a]\ncommand = ["cat"]\nuser = "nobody"\n')
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(UserError, match=r"servers\.a\.user needs a gateway that runs as root"):
        check_servers(config)


@pytest.mark.slow  # a process of its own
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give up rights of root")
@pytest.mark.parametrize("key", ["servers.a.user", "gateway.hooks_user"])
def test_root_without_the_right_to_become_another_account_does_not_start(tmp_path: Path, key: str) -> None:
    table = 'user = "nobody"\n' if key == "servers.a.user" else '[gateway]\nhooks_user = "nobody"\n'
    (tmp_path / "gateway.toml").write_text(f'[servers.a]\ncommand = ["cat"]\n{table}')
    without = ["setpriv", "--bounding-set=-setuid,-kill", "--inh-caps=-setuid,-kill"]
    command = [*without, HOOKPROXY, "serve", "--config", str(tmp_path / "gateway.toml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert f"{key} needs a gateway with the right CAP_KILL and CAP_SETUID, and this one runs without" in ended.stderr
    assert "hint: CapabilityBoundingSet=CAP_KILL CAP_SETGID CAP_SETUID in the systemd unit" in ended.stderr


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('url = "example.com/mcp"', "servers.a.url: example.com/mcp is not an address of a server"),
        ('url = "http://example.com/mcp"', "servers.a.url: http://example.com would send everything unencrypted"),
        ('command = ["cat"]\nuser = "no-such-account"', "servers.a.user: there is no account no-such-account"),
    ],
)
def test_a_server_that_can_never_be_reached_stops_the_start(tmp_path: Path, keys: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        check_servers(config_of(tmp_path, f"[servers.a]\n{keys}\n"))
    assert said in str(caught.value)
    assert "--allow-http" not in caught.value.hint  # the option of another verb helps nobody here


def test_an_audit_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    text = '[audit]\nrequired = true\nfile = "{}"\n[servers.a]\ncommand = ["cat"]\n'
    (problem,) = start_problems(config_of(tmp_path, text.format("file/audit.jsonl")))
    assert f"audit.file: {tmp_path}/file/audit.jsonl cannot be written, so calls are refused (" in problem
    assert list(start_problems(config_of(tmp_path, text.format("new/folder/audit.jsonl")))) == []


def test_a_secret_from_a_pipe_is_not_read_before_it_is_needed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    config = config_of(tmp_path, '[servers.a]\ncommand = ["cat"]\ncredentials = { TOKEN = "file:pipe" }\n')
    assert list(start_problems(config)) == []


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("gateway.tls.key", '[gateway.tls]\ncertificate = "cert"\nkey = "secret"\n[servers.a]\ncommand = ["cat"]\n'),
        (
            "gateway.store.password",
            '[gateway.store]\nurl = "redis://localhost"\npassword = "file:secret"\n[servers.a]\ncommand = ["cat"]\n',
        ),
        (
            "gateway.audit_export.token",
            '[gateway.audit_export]\nurl = "https://c/"\ntoken = "file:secret"\n[servers.a]\ncommand = ["cat"]\n',
        ),
        ("servers.a.credentials.T", '[servers.a]\ncommand = ["cat"]\ncredentials = { T = "file:secret" }\n'),
        ("servers.a.key", '[servers.a]\nurl = "https://h/mcp"\ncert = "{folder}/cert"\nkey = "{folder}/secret"\n'),
        ("servers.a.cert", '[servers.a]\nurl = "https://h/mcp"\ncert = "{folder}/secret"\n'),
    ],
)
@pytest.mark.parametrize("mode", [0o604, 0o644, 0o640, 0o600])
def test_a_secret_that_everybody_can_read_is_named(tmp_path: Path, key: str, text: str, mode: int) -> None:
    secret = tmp_path / "secret"
    secret.write_text("0123456789")
    secret.chmod(mode)
    (tmp_path / "cert").write_text("everybody may read a certificate")
    (tmp_path / "cert").chmod(0o644)
    config = config_of(tmp_path, text.replace("{folder}", str(tmp_path)))
    said = f"{config.path}: {key}: {secret} is readable by others, but it is a secret (chmod o-rwx {secret})"
    assert [one for one in start_problems(config) if "readable" in one] == ([said] if mode & 0o004 else [])


def test_a_pinned_server_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    lock_file.update(
        str(tmp_path / "hookproxy.lock"), lambda _: {name: Description(Identity(), {}) for name in ("a", "gone\x1b")}
    )
    config = config_of(tmp_path, '[servers.a]\ncommand = ["cat"]\n[servers.b]\ncommand = ["cat"]\n')
    (problem,) = start_problems(config)
    assert problem == f"{tmp_path}/hookproxy.lock: gone\\x1b is pinned, and {tmp_path}/gateway.toml has no such server"
