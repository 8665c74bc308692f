"""What administrators get wrong: `check` and `serve` say of each mistake where it is, and what to write or to type.

A row is a gateway.toml, the line and key that are named, and a part of the repair. Errors are the same for both verbs,
because they run the same checks; warnings are what `serve` prints at its start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.checks.startup_notes import with_lines
from hookproxy.cli import check
from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.gateway.http_listeners import check_hosts
from hookproxy.gateway.start_checks import check_listening, check_policy
from hookproxy.gateway.start_problems import start_problems
from hookproxy.gateway.unix_listeners import check_places
from hookproxy.model.errors import UserError

L: Final = '[gateway]\nlisten = ["unix:{d}/s"]\n'
T: Final = '[gateway]\nlisten = ["http://127.0.0.1:18765"]\ntokens = "tokens"\n'
B: Final = '[servers.git]\ncommand = ["/bin/cat"]\n'
S: Final = '[servers.git]\ncommand = ["/bin/cat"]\n{keys}\n'
U: Final = '[servers.git]\nurl = "https://mcp.example.com/mcp"\n{keys}\n'
DIGEST: Final = f"sha256:{'ab' * 32}"
TOKEN: Final = f"0a0b0c0d alice dev 2026-01-01T00:00:00Z - {DIGEST}\n"
GITHUB: Final = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"

Prepare = Callable[[Path], object]


def at(keys: str, table: str = S) -> str:
    return L + table.format(keys=keys, d="{d}")


def file(name: str, text: str | bytes = "", mode: int = 0o600) -> Prepare:
    def make(folder: Path) -> None:
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)

    return make


def both(*steps: Prepare) -> Prepare:
    return lambda folder: [step(folder) for step in steps]


def certificate(*, days: int = 1, other_key: bool = False, password: bool = False) -> Prepare:
    """c.pem and k.pem; `days` from now on until the certificate expires."""

    def make(folder: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
        begins, ends = datetime.now(UTC) - timedelta(days=900), datetime.now(UTC) + timedelta(days=days)
        builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begins, ends)
        (folder / "c.pem").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        written = ec.generate_private_key(ec.SECP256R1()) if other_key else key
        secret = serialization.BestAvailableEncryption(b"x") if password else serialization.NoEncryption()
        pkcs8 = serialization.PrivateFormat.PKCS8
        (folder / "k.pem").write_bytes(written.private_bytes(serialization.Encoding.PEM, pkcs8, secret))
        (folder / "k.pem").chmod(0o600)

    return make


TLS: Final = T.replace("http:", "https:") + '[gateway.tls]\ncertificate = "c.pem"\nkey = "k.pem"\n' + B
IN_FORCE: Final = file("tokens", TOKEN)

ERRORS: Final[list[tuple[str, int | None, str, str, Prepare | None]]] = [
    # the text, the line, the key or what stands there, the repair, what else there is
    (L + 'max_requests = "many"\n' + B, 3, "gateway.max_requests", "write max_requests = 256", None),
    (L + "max_request = 5\n" + B, 3, "gateway.max_request", "did you mean 'max_requests'?", None),
    (L + "drain_seconds = -1\n" + B, 3, "gateway.drain_seconds", "write drain_seconds = 0 or more", None),
    (L + 'instance = "a b"\n' + B, 3, "gateway.instance", 'write instance = "gateway-1"', None),
    (L + 'socket_mode = "rw"\n' + B, 3, "gateway.socket_mode", 'write socket_mode = "0660"', None),
    (L + "socket_mode = 660\n" + B, 3, "gateway.socket_mode", 'write socket_mode = "660"', None),
    (L + "socket_mode = 0660\n" + B, 3, "not TOML", 'socket_mode = "0660"', None),
    (L + 'socket_group = "no-group"\n' + B, 3, "gateway.socket_group", "groupadd --system no-group", None),
    (L + '[server.git]\ncommand = ["/bin/cat"]\n', 3, "server", "did you mean 'servers'?", None),
    (L + '[permissions]\non_ask = "deny"\n' + B, 4, "permissions.on_ask", "move it above [permissions]", None),
    ('on_ask = "consol"\n' + L + B, 1, "on_ask", "did you mean 'console'?", None),
    ("deny = []\n" + L + B, 1, "deny", "it is a key of [permissions]: write it below that line", None),
    (L + B + B, 5, "[servers.git] stands twice", "the first is on line 3", None),
    (at('command = ["/bin/true"]'), 5, "cannot overwrite a value", "command stands on line 4 already", None),
    (at("", '[servers.git]\nshare = "all"\n'), 3, "servers.git names no server", 'command = ["…"]', None),
    (at('url = "https://x/"'), 3, "servers.git says in several ways", "write one of", None),
    (
        at("", '[servers.git]\ncommand = "uvx mcp-server-git"\n'),
        4,
        "servers.git.command",
        '["uvx", "mcp-server-git"]',
        None,
    ),
    (at("", '[servers."my server"]\ncommand = ["x"]\n'), 3, "servers: 'my server'", "[servers.my-server]", None),
    (at("", '[servers.git\ncommand = ["x"]\n'), 3, "not TOML", "close the bracket: [servers.git]", None),
    (at("", "[servers.git]\ncommand = [“x”]\n"), 4, "not TOML", 'straight quotes: "…"', None),
    (at("", '[servers.git]\ncommand = ["x]\n'), 4, "not TOML", "a quote is not closed in this line", None),
    (at("", '[servers.git]\ncommand = ["C:\\Users\\x"]\n'), 4, "not TOML", "use single quotes", None),
    (at("", "[servers.git]\ncommand = uvx\n"), 4, "not TOML", 'command = "uvx"', None),
    (at("allow_http = True"), 5, "not TOML", "write allow_http = true", None),
    ("servers:\n  git:\n", 1, "not TOML", "with = in place of the colon", None),
    ('{"servers": {}}', 1, "not TOML", "it is JSON", None),
    ("[servers.git]\rcommand = []\r", 1, "not TOML", "tr '\\r' '\\n'", None),
    (L, None, "names no server", "[servers.NAME]", None),
    (at("preset = 'giit'"), 5, "servers.git.preset", "did you mean 'git'?", None),
    (at('share = "users"'), 5, "servers.git.share", "did you mean 'user'?", None),
    (at('user = "no-such-user"'), 5, "servers.git.user", "useradd --system no-such-user", None),
    (L + 'hooks_user = "no-such-user"\n' + B, 3, "gateway.hooks_user", "useradd --system no-such-user", None),
    (at(f'credentials = {{ T = "{GITHUB}" }}'), 5, "servers.git.credentials.T", 'T = "file:/etc/hookproxy/T"', None),
    (
        at('credentials = { T = "file:$CREDENTIALS_DIRECTORY/t" }'),
        5,
        "servers.git.credentials.T",
        "LoadCredential=",
        None,
    ),
    (at('headers = { A = "Bearer %{T}" }', U), 5, "servers.git.headers.A", 'T = "file:/etc/hookproxy/T"', None),
    (at("", '[servers.git]\nurl = "mcp.example.com"\n'), 4, "servers.git.url", 'url = "https://mcp.example.com"', None),
    (at("", '[servers.git]\nurl = "http://mcp.example.com"\n'), 4, "servers.git.url", "https://HOST/PATH", None),
    (at("", '[servers.git]\nurl = "https://u:p@h/"\n'), 4, "servers.git.url", "sends the credential LOGIN", None),
    (L + '[permissions]\ndeny = ["a|b"]\n' + B, 4, "permissions.deny[0]", "write a rule for each: 'a', 'b'", None),
    (L + '[permissions]\ndeny = [""]\n' + B, 4, "permissions.deny[0]", "remove it", None),
    (L + '[permissions]\ndeny = "x"\n' + B, 4, "permissions.deny", 'write deny = ["x"]', None),
    (L + "[permissions.for]\nusers = ['a']\n" + B, 3, "permissions.for", "write [[permissions.for]]", None),
    (L + "[[permissions.for]]\ndeny = ['a']\n" + B, 3, "permissions.for[0].users", 'users = ["@developers"]', None),
    (L + "[[permissions.for]]\nusers = ['*']\n" + B, 4, "permissions.for[0].users[0]", "rules for all are in", None),
    (L + "[limits]\ncalls = 5\n" + B, 3, "limits", "write [[limits]]", None),
    (L + "[[limits]]\ntool = 'a'\ncalls = 0\nper = 'day'\n" + B, 5, "limits[0].calls", "calls = 1 or more", None),
    (L + "[[limits]]\ntool = 'a'\ncalls = 5\nper = 'min'\n" + B, 6, "limits[0].per", "did you mean 'minute'?", None),
    (L + "[[hooks.PreToolUs]]\ncommand = 'x'\n" + B, 3, "hooks.PreToolUs", "did you mean 'PreToolUse'?", None),
    (L + "[[use]]\nfile = 'gone.json'\n" + B, None, "gone.json: there is no such file", "gateway.toml:3: use[0]", None),
    (L + '[audit]\nfile = "a"\nchain = "keyed"\n' + B, 5, "audit.chain", "set audit.chain_key_file", None),
    (L + 'seal_keys = ["gone"]\n' + B, 3, "gateway.seal_keys[0]", "openssl rand -base64", None),
    (
        L + '[gateway.store]\nurl = "redis://h"\npassword = "file:gone"\n' + B,
        5,
        "gateway.store.password",
        "install -m 600",
        None,
    ),
    (L + '[gateway.store]\nurl = "localhost"\n' + B, 4, "gateway.store.url", '"redis://127.0.0.1:6379/0"', None),
    (L.replace("unix:{d}/s", "unix:s") + B, 2, "gateway.listen[0]", 'write "unix:/run/hookproxy/mcp.sock"', None),
    (L.replace("/s", "/" + "s" * 108) + B, 2, "gateway.listen[0]", "name a shorter one", None),
    (L.replace('/s"', '/s", "unix:{d}/s"') + B, 2, "gateway.listen[1]", "remove one of both", None),
    (L + B, 2, "gateway.listen[0]", "rm -i", file("s")),
    (T.replace("18765", "0") + B, 2, "gateway.listen[0]", 'write "http://127.0.0.1:8765"', IN_FORCE),
    (T.replace("18765", "18765/mcp") + B, 2, "gateway.listen[0]", 'write "http://127.0.0.1:18765"', IN_FORCE),
    (
        T.replace("127.0.0.1", "192.0.2.1") + 'trusted_proxies = ["10.0.0.1"]\n' + B,
        2,
        "gateway.listen[0]",
        "ip -brief",
        IN_FORCE,
    ),
    (T.replace("127.0.0.1", "0.0.0.0") + B, 2, "gateway.listen[0]", "gateway.trusted_proxies", IN_FORCE),
    (T.replace("http:", "https:") + B, 2, "gateway.listen[0]", 'certificate = "cert.pem"', IN_FORCE),
    (T.replace('tokens = "tokens"', "") + B, 2, "gateway.listen[0]", "hookproxy token new USER", None),
    (T + 'trusted_proxies = ["10.0.0.1/8"]\n' + B, 4, "gateway.trusted_proxies[0]", 'write "10.0.0.0/8"', IN_FORCE),
    (T + 'public_url = "mcp.example.com"\n' + B, 4, "gateway.public_url", "https://mcp.example.com", IN_FORCE),
    (T + "[gateway.oidc]\naudience = 'x'\n" + B, 4, "gateway.oidc.issuer", '"https://idp.example.com"', IN_FORCE),
    (T + B, None, "tokens: does not exist", "hookproxy token new USER --file", None),
    (T + B, None, "tokens:1: has a token itself", "remove the line", file("tokens", "alice hkp_secret\n")),
    (T + B, None, "tokens:2: has the id of line 1", "remove one", file("tokens", TOKEN + TOKEN)),
    (T + B, None, "tokens:1: '@dev' is not", "without @", file("tokens", TOKEN.replace("dev", "@dev"))),
    (TLS, 5, "gateway.tls.certificate", "name a file that exists", IN_FORCE),
    (TLS, 6, "gateway.tls.key", "openssl pkey -pubout", both(IN_FORCE, certificate(other_key=True))),
    (TLS, 6, "gateway.tls.key", "openssl pkey -in", both(IN_FORCE, certificate(password=True))),
    (TLS, 5, "gateway.tls.certificate", "-inform DER", both(IN_FORCE, certificate(), file("c.pem", b"0\x82"))),
    (
        TLS.replace('"c.pem"', '"@"').replace('"k.pem"', '"c.pem"').replace('"@"', '"k.pem"'),
        5,
        "gateway.tls.certificate",
        "exchange the values",
        both(IN_FORCE, certificate()),
    ),
]

WARNINGS: Final[list[tuple[str, int, str, str, Prepare | None]]] = [
    (at("", '[servers.git]\ncommand = ["no-such-program"]\n'), 4, "servers.git.command", "its full path", None),
    (at("", '[servers.git]\ncommand = ["./p"]\n'), 4, "servers.git.command", "chmod +x", file("p")),
    (at("cwd = 'gone'"), 5, "servers.git.cwd", "install -d", None),
    (at("allow = []"), 5, "servers.git.allow", 'allow = ["@developers"]', None),
    (at('credentials = { T = "file:gone" }'), 5, "servers.git.credentials.T", "install -m 600", None),
    (at('credentials = { T = "file:$HOME/t" }'), 5, "servers.git.credentials.T", "variables are not replaced", None),
    (at('credentials = { T = "file:t" }'), 5, "servers.git.credentials.T", "chmod o-rwx", file("t", "12345678", 0o644)),
    (
        at(f'env = {{ GITHUB_TOKEN = "{GITHUB}" }}'),
        5,
        "servers.git.env.GITHUB_TOKEN",
        "credentials = { GITHUB_TOKEN",
        None,
    ),
    (at('env = { DB_PASSWORD = "x" }'), 5, "servers.git.env.DB_PASSWORD", "credentials = { DB_PASSWORD", None),
    (at('env = { A = "${HOME}/x" }'), 5, "servers.git.env.A", "write its value", None),
    (
        at("", f'[servers.git]\ncommand = ["/bin/cat", "{GITHUB}"]\n'),
        4,
        "servers.git.command[1]",
        "credentials = {",
        None,
    ),
    (at(f'headers = {{ A = "Bearer {GITHUB}" }}', U), 5, "servers.git.headers.A", 'A = "Bearer %{TOKEN}"', None),
    (at('ca = "gone.pem"', U), 5, "servers.git.ca", "a relative path starts from", None),
    (at('ca = "x.pem"', U), 5, "servers.git.ca", "-inform DER", file("x.pem", "x")),
    (at('ca = "x.pem"'), 5, "servers.git.ca", "remove it", file("x.pem", "x")),
    (at('env = { A = "b" }', U), 5, "servers.git.env", "write headers", None),
    (
        L + '[[permissions.for]]\nusers = ["no-such-user"]\n' + B,
        4,
        "permissions.for[0].users[0]",
        "useradd no-such-user",
        None,
    ),
    (L + '[permissions]\ndeny = ["mcp__gti__x"]\n' + B, 4, "permissions.deny[0]", "did you mean 'git'?", None),
    (
        L + '[permissions]\ndeny = ["git_comit"]\n' + B.replace("/bin/cat", "mcp-server-git"),
        4,
        "permissions.deny[0]",
        "did you mean 'git_commit'?",
        None,
    ),
    (
        L + '[permissions]\ndeny = ["git_*"]\nask = ["git_push"]\n' + B,
        5,
        "permissions.ask[0]",
        "remove one of both",
        None,
    ),
    (
        L + '[permissions]\ndeny = ["*"]\nallow = ["read_*"]\n' + B,
        5,
        "permissions.allow[0]",
        "remove one of both",
        None,
    ),
    (L + '[permissions]\ndeny = ["x", "x"]\n' + B, 4, "permissions.deny[1]", "remove one", None),
    (
        L + "[[hooks.PreToolUse]]\ncommand = './g.sh'\n" + B,
        3,
        "hooks.PreToolUse[0]",
        "chmod +x",
        file("g.sh", "#!/bin/sh\n"),
    ),
    (T + B, 3, "gateway.tokens", "hookproxy token new USER --file", file("tokens")),
    (
        T + B,
        3,
        "gateway.tokens",
        "hookproxy token new USER --file",
        file("tokens", TOKEN.replace(" - ", " 2025-01-01T00:00:00Z ")),
    ),
    (T + 'trusted_proxies = ["0.0.0.0/0"]\n' + B, 4, "gateway.trusted_proxies[0]", "the proxy's own address", IN_FORCE),
    (L + 'tokens = "tokens"\n' + B, 3, "gateway.tokens", '"http://127.0.0.1:8765"', IN_FORCE),
    (
        T + '[gateway.tls]\ncertificate = "c.pem"\nkey = "k.pem"\n' + B,
        4,
        "gateway.tls",
        '"https://0.0.0.0:8443"',
        both(IN_FORCE, certificate()),
    ),
    (TLS, 5, "gateway.tls.certificate", "renew it", both(IN_FORCE, certificate(days=-2))),
    (
        TLS,
        6,
        "gateway.tls.key",
        "chmod o-rwx",
        both(IN_FORCE, certificate(), lambda folder: (folder / "k.pem").chmod(0o644)),
    ),
    (
        T + '[gateway.oidc]\nissuer = "https://i.example/.well-known/openid-configuration"\n' + B,
        5,
        "gateway.oidc.issuer",
        'write issuer = "https://i.example"',
        IN_FORCE,
    ),
    (
        T + '[gateway.oidc]\nissuer = "https://i.example"\nca = "gone.pem"\n' + B,
        6,
        "gateway.oidc.ca",
        "a relative path",
        IN_FORCE,
    ),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hookproxy.processes.spawn.start_as", lambda _account: None)
    return tmp_path


def write(folder: Path, text: str, prepare: Prepare | None) -> None:
    (folder / "gateway.toml").write_text(text.replace("{d}", str(folder)), "utf-8", newline="")
    if prepare is not None:
        prepare(folder)


def checked(capsys: pytest.CaptureFixture[str], status: int) -> dict[str, Any]:
    assert check.main(["gateway.toml", "--json"]) in {status, 2}  # 2: this machine has no sandbox
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def errors_of_check(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """Each error that `check` shows, with its place, and the repair."""
    try:
        errors = checked(capsys, 2)["errors"]
    except UserError as error:  # the file cannot be read
        return [(with_lines(error.message), with_lines(error.hint))]
    return [(": ".join(filter(None, (_place(one), one["key"], one["text"]))), one["hint"]) for one in errors]


def _place(error: dict[str, Any]) -> str:
    return f"{error['file']}:{error['line']}" if error["line"] else str(error["file"])


def prepared(folder: Path) -> GatewayConfig:
    """What `serve` does before it listens."""
    config = load_gateway("gateway.toml", {}, str(folder))
    check_policy(config)
    check_listening(config)
    check_places(config)
    check_hosts(config)
    return config


def number(row: tuple[object, ...]) -> str:
    return f"{row[2]}-{row[3]}".replace("/", " ")[:60]


@pytest.mark.parametrize("row", ERRORS, ids=number)
def test_a_mistake_that_stops_serve_has_its_place_and_a_repair(
    folder: Path, capsys: pytest.CaptureFixture[str], row: tuple[str, int | None, str, str, Prepare | None]
) -> None:
    text, line, key, repair, prepare = row
    write(folder, text, prepare)
    place = f"{folder}/gateway.toml:{line}: " if line else ""
    errors = errors_of_check(capsys)
    assert any(place in message and key in message and repair in hint for message, hint in errors), errors
    with pytest.raises(UserError) as caught:
        prepared(folder)
    assert caught.value.hint in {hint for _, hint in errors} or repair in with_lines(caught.value.hint)


@pytest.mark.parametrize("row", WARNINGS, ids=number)
def test_a_mistake_that_will_not_work_is_told_at_the_start_with_its_place_and_a_repair(
    folder: Path, capsys: pytest.CaptureFixture[str], row: tuple[str, int, str, str, Prepare | None]
) -> None:
    text, line, key, repair, prepare = row
    write(folder, text, prepare)
    config = prepared(folder)
    assert any(
        note.startswith(f"{folder}/gateway.toml:{line}: {key}") and repair in note
        for note in map(with_lines, start_problems(config))
    ), list(start_problems(config))
    findings = checked(capsys, 1)["findings"]
    assert any((found["line"], found["key"]) == (line, key) and repair in found["text"] for found in findings), findings


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and use everything")
def test_what_the_account_may_not_read_says_who_must_be_able_to(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, at('credentials = { T = "file:t" }'), file("t", "12345678", 0o000))
    (found,) = checked(capsys, 1)["findings"]
    assert "chmod 640" in found["text"]


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_named_with_its_line(folder: Path, encoding: str) -> None:
    (folder / "gateway.toml").write_bytes(f"{B}# für alle\n".encode(encoding))
    with pytest.raises(UserError, match="is not UTF-8") as caught:
        prepared(folder)
    assert ("iconv -f UTF-16" in caught.value.hint) is (encoding == "utf-16")


@pytest.mark.parametrize(
    "text", ["\ufeff" + L + B, (L + B).replace("\n", "\r\n"), (L + B).replace("listen", "\tlisten")]
)
def test_what_editors_on_windows_do_is_no_mistake(folder: Path, text: str) -> None:
    write(folder, text, None)
    assert list(start_problems(prepared(folder))) == []
