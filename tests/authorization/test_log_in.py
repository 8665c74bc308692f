"""`hookproxy login` and `logout` with an authorization server on loopback and a browser that follows every redirect."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from mcp.shared.auth import OAuthClientInformationFull

from hookproxy.authorization.credentials import StoredCredentials
from hookproxy.authorization.stored_login import StoredLogin
from hookproxy.cli.login import open_store
from hookproxy.cli.main import main
from tests.support.free_ports import free_port
from tests.support.http_post import post
from tests.support.oauth_server import OAuthServer, Tenant, open_page, self_signed, serving

pytestmark = pytest.mark.slow


class Browser:
    """A browser in threads: the address that is opened is followed to its end."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.pages: list[str] = []
        self._threads: list[threading.Thread] = []

    def open(self, address: str) -> bool:
        self.addresses.append(address)
        self._threads.append(threading.Thread(target=lambda: self.pages.append(open_page(address))))
        self._threads[-1].start()
        return True

    def close(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture(autouse=True)
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    browser = Browser()
    monkeypatch.setattr(webbrowser, "open", browser.open)
    monkeypatch.setenv("DISPLAY", ":0")
    yield browser
    browser.close()


Capture = pytest.CaptureFixture[str]


def login(capsys: Capture, *arguments: str, status: int = 0) -> str:
    """What `hookproxy login` prints."""
    assert main(["login", "--timeout", "20", *arguments]) == status
    ended = capsys.readouterr()
    assert status == 0 or ended.err.count("\n") == 2  # an error in one line, and its hint
    return ended.err if status else ended.out


def stored(url: str) -> StoredLogin | None:
    return anyio.run(open_store().read, url)


def value(url: str) -> str | None:
    return anyio.run(StoredCredentials(url, open_store(), post, os.environ).value)


def query(address: str) -> dict[str, str]:
    from urllib.parse import parse_qsl, urlsplit

    return dict(parse_qsl(urlsplit(address).query))


# --- the whole way ---


def test_a_login_in_the_browser_leaves_a_token_that_the_server_accepts(
    oauth: OAuthServer, capsys: Capture, browser: Browser, home: Path
) -> None:
    tenant = oauth.tenant(demanded="read", scopes=["read", "write", "admin"])
    output = login(capsys, tenant.url)
    assert f"logged in at {tenant.url}\n  issuer     {tenant.issuer}\n  scopes     read\n  expires    2" in output
    assert "and is renewed then\n" in output
    assert tenant.accepts(value(tenant.url))
    [page] = browser.pages
    assert "You can close this window" in page
    [file] = (home / ".local/state/hookproxy/logins").glob("*.json")
    assert f"  stored in  {file}\n" in output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_address_has_pkce_state_and_resource_and_nothing_secret(
    oauth: OAuthServer, capsys: Capture, browser: Browser
) -> None:
    tenant = oauth.tenant()
    output = login(capsys, tenant.url)
    [address] = browser.addresses
    members = query(address)
    assert members["code_challenge_method"] == "S256"
    assert members["resource"] == tenant.url == tenant.forms[0]["resource"]
    assert "scope" not in members  # nobody has asked for one
    assert members["redirect_uri"].startswith("http://127.0.0.1:")
    found = stored(tenant.url)
    assert found is not None
    assert found.secrets is not None
    for secret in (found.secrets.access_token, found.secrets.refresh_token, tenant.forms[0]["code_verifier"]):
        assert secret not in "".join([output, *browser.addresses, *tenant.requests])


def test_a_client_is_registered_without_a_secret_as_a_native_program(oauth: OAuthServer, capsys: Capture) -> None:
    tenant = oauth.tenant()
    login(capsys, tenant.url, "--scope", "b  a")
    [client] = tenant.clients.values()
    assert (client.client_name, client.token_endpoint_auth_method, client.client_secret) == ("hookproxy", "none", None)
    assert client.scope == "b a"
    [asked] = tenant.authorizations
    assert asked.scopes == ["b", "a"]


def test_an_issued_secret_is_stored_and_used(oauth: OAuthServer, capsys: Capture) -> None:
    only = ["client_secret_post"]
    tenant = oauth.tenant(
        lifetime=0, edit_metadata=lambda found: found | {"token_endpoint_auth_methods_supported": only}
    )
    output = login(capsys, tenant.url)
    found = stored(tenant.url)
    assert found is not None
    assert found.secrets is not None
    assert found.secrets.client_secret
    assert found.secrets.client_secret not in output
    assert tenant.accepts(value(tenant.url))
    assert tenant.renewals == 1


def test_offline_access_is_asked_for_where_it_exists(oauth: OAuthServer, capsys: Capture, browser: Browser) -> None:
    listed = ["read", "offline_access", "everything"]
    tenant = oauth.tenant(scopes=["read"], edit_metadata=lambda found: found | {"scopes_supported": listed})
    login(capsys, tenant.url)
    members = query(browser.addresses[0])
    assert (members["scope"], members["prompt"]) == ("read offline_access", "consent")


def test_more_scopes_come_by_another_login_as_the_hint_says(oauth: OAuthServer, capsys: Capture) -> None:
    import shlex

    tenant = oauth.tenant(demanded="read")
    login(capsys, tenant.url)
    run = StoredCredentials(tenant.url, open_store(), post, os.environ)

    async def step_up() -> None:
        used = await run.value()
        assert await run.refused(403, 'Bearer error="insufficient_scope", scope="write"', used) is None

    anyio.run(step_up)
    command = run.hint.partition("`hookproxy ")[2].partition("`")[0]
    assert main(shlex.split(command)) == 0
    assert "scopes     read write\n" in capsys.readouterr().out
    found = tenant.access[(value(tenant.url) or "").removeprefix("Bearer ")]
    assert found.scopes == ["read", "write"]
    assert anyio.run(run.value) == value(tenant.url)  # the run that was refused goes on without a restart


def test_metadata_of_openid_connect_is_enough(oauth: OAuthServer, capsys: Capture) -> None:
    tenant = oauth.tenant(openid=True)
    login(capsys, tenant.url)
    assert tenant.accepts(value(tenant.url))


def test_a_server_that_demands_nothing_is_asked_by_its_well_known_address(oauth: OAuthServer, capsys: Capture) -> None:
    tenant = oauth.tenant(demands_login=False, scopes=["read", "write"])
    assert "scopes     read write\n" in login(capsys, tenant.url)


def test_a_client_metadata_document_is_the_client_where_that_is_supported(
    oauth: OAuthServer, capsys: Capture, browser: Browser
) -> None:
    document = "https://client.example.com/hookproxy.json"
    tenant = oauth.tenant(edit_metadata=lambda found: found | {"client_id_metadata_document_supported": True})
    tenant.clients[document] = OAuthClientInformationFull.model_validate(
        {
            "client_id": document,
            "token_endpoint_auth_method": "none",
            "redirect_uris": [f"http://127.0.0.1:{(port := free_port())}/callback"],
        }
    )
    login(capsys, tenant.url, "--client-metadata-url", document, "--port", str(port))
    assert query(browser.addresses[0])["client_id"] == document
    assert not any("register" in request for request in tenant.requests)
    assert tenant.accepts(value(tenant.url))


def known_client(tenant: Tenant, port: int, secret: str | None) -> str:
    tenant.clients["known"] = OAuthClientInformationFull.model_validate(
        {
            "client_id": "known",
            "client_secret": secret,
            "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
        }
    )
    return str(port)


def test_a_registered_client_is_used_with_its_port(oauth: OAuthServer, capsys: Capture) -> None:
    tenant = oauth.tenant(edit_metadata=lambda found: {**found, "registration_endpoint": None})
    port = known_client(tenant, free_port(), None)
    login(capsys, tenant.url, "--client-id", "known", "--port", port)
    assert tenant.accepts(value(tenant.url))


def test_a_secret_comes_from_a_file_and_goes_only_to_the_named_issuer(
    oauth: OAuthServer, capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    tenant = oauth.tenant(lifetime=0)
    port = known_client(tenant, free_port(), "s3cret")
    given = ["--client-id", "known", "--client-secret-file", str(tmp_path / "secret"), "--port", port]
    assert "--issuer" in login(capsys, tenant.url, *given, status=2)
    assert tenant.requests == []
    other = login(capsys, tenant.url, *given, "--issuer", "https://auth.example.com", status=2)
    assert f"the server has logins at {tenant.issuer}, not at https://auth.example.com" in other
    assert tenant.forms == []
    login(capsys, tenant.url, *given, "--issuer", tenant.issuer)
    assert tenant.accepts(value(tenant.url))
    found = stored(tenant.url)
    assert found is not None
    assert found.options == ("--port", port, "--issuer", tenant.issuer, *given[:4])
    again = login(capsys, tenant.url)
    assert f"as before, with: --port {port} --issuer" in again
    assert [form["client_id"] for form in tenant.forms if "code" in form] == ["known", "known"]
    [file] = Path(os.environ["HOME"]).glob(".local/state/hookproxy/logins/*.json")
    assert "s3cret" not in file.read_text()


class SecretService:
    """Stands for the system's keyring, as the optional package finds it."""

    __module__ = "keyring.backends.SecretService"

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, *name: str) -> str | None:
        return self.entries.get((name[0], name[1]))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[(service, username)] = password

    def delete_password(self, *name: str) -> None:
        del self.entries[(name[0], name[1])]


def test_the_systems_keyring_keeps_the_tokens_unless_they_are_wanted_in_the_file(
    oauth: OAuthServer, capsys: Capture, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    keyring, package = SecretService(), ModuleType("keyring")
    package.get_keyring = lambda: keyring  # type: ignore[attr-defined]  # it stands for the optional package
    monkeypatch.setitem(sys.modules, "keyring", package)
    tenant = oauth.tenant(lifetime=0)
    assert "  stored in  the system's keyring, and /" in login(capsys, tenant.url)
    [name] = keyring.entries
    assert name == ("hookproxy", tenant.url)
    assert tenant.accepts(value(tenant.url))
    assert tenant.renewals == 1
    [file] = (home / ".local/state/hookproxy/logins").glob("*.json")
    for secret in (*tenant.access, *tenant.refresh):
        assert secret not in file.read_text()
    assert tenant.accepts(value(tenant.url))  # the renewed one came from the keyring
    assert "stored in  /" in login(capsys, "--no-keyring", tenant.url)
    assert keyring.entries == {}
    login(capsys, tenant.url)
    assert main(["logout", "--all"]) == 0
    assert keyring.entries == {}


# --- machines ---

BOT = ["--client-credentials", "--client-id", "bot", "--client-secret-env", "BOT_SECRET"]


def test_a_machine_logs_in_by_its_secret_without_a_browser(
    oauth: OAuthServer, capsys: Capture, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = oauth.tenant(machine_secret="s3cret", lifetime=1, edit_metadata=without_pkce)
    monkeypatch.setenv("BOT_SECRET", "s3cret")
    options = [
        "--client-credentials",
        "--client-id",
        "bot",
        "--client-secret-env",
        "BOT_SECRET",
        "--issuer",
        tenant.issuer,
    ]
    output = login(capsys, tenant.url, *options, "--scope", "read")
    assert "scopes     read\n" in output
    assert "and is renewed then" in output
    assert browser.addresses == []
    assert tenant.accepts(value(tenant.url))


def test_a_machine_signs_with_its_private_key(oauth: OAuthServer, capsys: Capture, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    tenant = oauth.tenant(machine_key=public)
    options = ["--client-credentials", "--client-id", "bot", "--private-key-file", str(tmp_path / "key.pem")]
    login(capsys, tenant.url, *options, "--issuer", tenant.issuer)
    assert tenant.accepts(value(tenant.url))
    assert "client_secret" not in tenant.forms[0]


def test_a_wrong_secret_is_refused_in_one_line(
    oauth: OAuthServer, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = oauth.tenant(machine_secret="s3cret")
    monkeypatch.setenv("BOT_SECRET", "wrong-secret")
    options = [
        "--client-credentials",
        "--client-id",
        "bot",
        "--client-secret-env",
        "BOT_SECRET",
        "--issuer",
        tenant.issuer,
    ]
    output = login(capsys, tenant.url, *options, status=2)
    assert f"error: {tenant.issuer} refuses the login: invalid_client\n" in output
    assert "wrong-secret" not in output
    assert stored(tenant.url) is None


# --- what is refused ---


def without_pkce(found: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in found.items() if name != "code_challenge_methods_supported"}


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"edit_metadata": without_pkce}, "does not say that it supports PKCE with S256"),
        ({"edit_metadata": lambda found: found | {"code_challenge_methods_supported": ["plain"]}}, "PKCE with S256"),
        (
            {"edit_metadata": lambda found: found | {"authorization_endpoint": "http://auth.example.com/authorize"}},
            "authorization_endpoint does not use https: http://auth.example.com/authorize",
        ),
        (
            {"edit_metadata": lambda found: found | {"token_endpoint": "http://auth.example.com/token"}},
            "token_endpoint does not use https",
        ),
        (
            {"edit_metadata": lambda found: found | {"registration_endpoint": "https://169.254.169.254/"}},
            "registration_endpoint is in a private network",
        ),
        ({"edit_metadata": lambda found: found | {"token_endpoint": "javascript:alert(1)"}}, "has no metadata"),
        ({"edit_metadata": lambda found: found | {"issuer": "https://other.example.com"}}, "issuer mismatch"),
        ({"edit_metadata": lambda found: {}}, "has no metadata of an authorization server"),
        ({"edit_metadata": lambda found: {"status": 500}}, "responds with status 500"),
        ({"edit_metadata": lambda found: {**found, "registration_endpoint": None}}, "does not let programs register"),
        (
            {"edit_metadata": lambda found: found | {"registration_endpoint": f"{found['issuer']}/none"}},
            "refuses to register hookproxy: status 404",
        ),
        (
            {"edit_resource": lambda found: found | {"resource": "https://other.example.com/mcp"}},
            "is about another server: https://other.example.com/mcp",
        ),
        ({"edit_resource": lambda found: {"status": 503}}, "responds with status 503"),
        (
            {"edit_resource": lambda found: found | {"authorization_servers": ["http://auth.example.com"]}},
            "the authorization server does not use https",
        ),
        ({"token_status": 500}, "the token endpoint responds with status 500"),
        ({"edit_token": lambda found: found | {"token_type": "DPoP"}}, "no token of type Bearer"),
        ({"edit_token": lambda found: found | {"access_token": "a\r\nb"}}, "no usable token"),
        (
            {"edit_redirect": lambda found: [{"error": "access_denied", "state": found["state"]}]},
            "refuses the login: access_denied",
        ),
        (
            {"edit_redirect": lambda found: [found | {"iss": "https://attacker.example.com"}]},
            "iss mismatch",
        ),
        (
            {
                "edit_metadata": lambda found: found | {"authorization_response_iss_parameter_supported": True},
            },
            "missing iss",
        ),
        ({"edit_redirect": lambda found: [found | {"code": "another"}]}, "refuses the login: invalid_grant"),
    ],
)
def test_a_fault_ends_the_login_with_one_line_and_leaves_nothing(
    oauth: OAuthServer, capsys: Capture, faults: dict[str, Any], message: str
) -> None:
    tenant = oauth.tenant(**faults)
    assert message in login(capsys, tenant.url, status=2)
    assert stored(tenant.url) is None


def test_nothing_is_sent_to_an_endpoint_that_is_refused(oauth: OAuthServer, capsys: Capture, browser: Browser) -> None:
    tenant = oauth.tenant(edit_metadata=lambda found: found | {"token_endpoint": "http://auth.example.com/token"})
    login(capsys, tenant.url, status=2)
    assert browser.addresses == []
    assert not any("register" in request for request in tenant.requests)


def test_a_redirect_with_another_state_is_ignored_and_the_right_one_counts(oauth: OAuthServer, capsys: Capture) -> None:
    wrong = {"code": "attackers", "state": "guessed"}
    tenant = oauth.tenant(edit_redirect=lambda found: [wrong, {"error": "access_denied"}, found])
    login(capsys, tenant.url)
    assert tenant.accepts(value(tenant.url))


def test_a_login_that_nobody_completes_ends(oauth: OAuthServer, capsys: Capture) -> None:
    tenant = oauth.tenant(edit_redirect=lambda found: [found | {"state": "other"}])
    assert main(["login", "--timeout", "2", tenant.url]) == 2
    assert "nobody has logged in within 2 s (1 redirects were of another login)" in capsys.readouterr().err


def test_a_right_issuer_in_the_redirect_is_accepted(oauth: OAuthServer, capsys: Capture) -> None:
    tenant = oauth.tenant()
    tenant.edit_metadata = lambda found: found | {"authorization_response_iss_parameter_supported": True}
    tenant.edit_redirect = lambda found: [found | {"iss": tenant.issuer}]
    login(capsys, tenant.url)
    assert tenant.accepts(value(tenant.url))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no address is named"),
        (["http://mcp.example.com/"], "does not use https"),
        (["https://user:secret@mcp.example.com/"], "holds a name or password"),
        (["mcp.example.com"], "is not the address of a server"),
        (["--list", "https://mcp.example.com/"], "--list does not take an address"),
        (["--port", "70000", "https://mcp.example.com/"], "out of range"),
        (["--timeout", "0", "https://mcp.example.com/"], "out of range"),
        (["--client-credentials", "https://mcp.example.com/"], "needs a secret"),
        (["--client-secret-env", "X", "https://mcp.example.com/"], "belongs to a client"),
        (
            [
                "--client-id",
                "x",
                "--client-secret-env",
                "NOT_SET",
                "--issuer",
                "https://a.example",
                "https://m.example/",
            ],
            "the environment variable NOT_SET is not set",
        ),
        (["--client-metadata-url", "http://a.example/x", "https://mcp.example.com/"], "client's metadata"),
        (["--ca", "/nowhere.pem", "https://mcp.example.com/"], "/nowhere.pem: cannot be read"),
        (["http://127.0.0.1:1/mcp"], "http://127.0.0.1:1/mcp cannot be reached"),
    ],
)
def test_a_wrong_command_line_is_an_error_with_a_hint(capsys: Capture, arguments: list[str], message: str) -> None:
    output = login(capsys, *arguments, status=2)
    assert message in output
    assert "secret@" not in output


def test_a_port_that_is_in_use_is_an_error(oauth: OAuthServer, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert f"port {port} of 127.0.0.1 cannot be used" in login(capsys, oauth.tenant().url, "--port", port, status=2)


def test_what_cannot_be_stored_is_not_begun(oauth: OAuthServer, capsys: Capture, browser: Browser, home: Path) -> None:
    folder = home / ".local/state/hookproxy/logins"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    tenant = oauth.tenant()
    assert "writable by others" in login(capsys, tenant.url, status=2)
    assert tenant.requests == []
    assert browser.addresses == []


def test_an_authority_of_ones_own_is_trusted_if_it_is_named(capsys: Capture, tmp_path: Path) -> None:
    certificate = self_signed(tmp_path / "server.pem")
    with serving(certificate) as oauth:
        tenant = oauth.tenant()
        assert "certificate verify failed" in login(capsys, tenant.url, status=2)
        assert tenant.requests == []
        login(capsys, tenant.url, "--ca", certificate)
        found = stored(tenant.url)
        assert found is not None
        assert found.options == ("--ca", certificate)
        login(capsys, tenant.url)
        assert main(["logout", "--ca", certificate, tenant.url]) == 0
        assert len(tenant.revoked) == 1


# --- the list, and logging out ---


def test_the_list_shows_logins_without_their_tokens(oauth: OAuthServer, capsys: Capture) -> None:
    assert login(capsys, "--list") == "there are no logins\n"
    first, second = oauth.tenant(demanded="read"), oauth.tenant(lifetime=None)
    login(capsys, first.url)
    login(capsys, second.url)
    output = login(capsys, "--list")
    assert output.count("\n") == 10
    assert f"{first.url}\n  issuer     {first.issuer}\n  scopes     read\n" in output
    assert f"{second.url}\n  issuer     {second.issuer}\n  scopes     not named\n  expires    unknown\n" in output
    for tenant in (first, second):
        for secret in (*tenant.access, *tenant.refresh, *tenant.clients):
            assert secret not in output


def test_logging_out_removes_and_revokes(oauth: OAuthServer, capsys: Capture) -> None:
    tenant, other = oauth.tenant(), oauth.tenant()
    login(capsys, tenant.url)
    login(capsys, other.url)
    run = StoredCredentials(tenant.url, open_store(), post, os.environ)
    assert anyio.run(run.value)
    assert main(["logout", tenant.url]) == 0
    assert capsys.readouterr().out == f"logged out of {tenant.url}\n"
    assert tenant.revoked == list(tenant.refresh)
    assert anyio.run(run.value) is None  # also for a run that has it in memory
    assert value(other.url)
    assert main(["logout", tenant.url]) == 2
    assert f"{tenant.url}: there is no login" in capsys.readouterr().err
    assert main(["logout", "--all"]) == 0
    assert capsys.readouterr().out == f"logged out of {other.url}\n"
    assert main(["logout", "--all"]) == 0
    assert capsys.readouterr().out == "there are no logins\n"


def test_a_file_that_cannot_be_used_hides_no_other_login(oauth: OAuthServer, capsys: Capture, home: Path) -> None:
    bad, good = oauth.tenant(), oauth.tenant()
    login(capsys, bad.url)
    [file] = (home / ".local/state/hookproxy/logins").glob("*.json")
    file.chmod(0o644)
    assert f"logged in at {good.url}\n" in login(capsys, good.url)
    assert main(["login", "--list"]) == 1
    output = capsys.readouterr().out
    assert f"{good.url}\n  issuer" in output
    assert f"{file}: can be read or written by others; chmod go= {file}" in output
    assert main(["logout", "--all"]) == 0
    output = capsys.readouterr().out
    assert f"logged out of {good.url}\nremoved {file}: can be read or written by others\n" in output
    assert not file.exists()


def test_logging_out_works_without_the_authorization_server(oauth: OAuthServer, capsys: Capture) -> None:
    tenant = oauth.tenant()
    dead = f"http://127.0.0.1:{free_port()}/revoke"
    tenant.edit_metadata = lambda found: found | {"revocation_endpoint": dead}
    login(capsys, tenant.url)
    assert main(["logout", tenant.url]) == 0
    output = capsys.readouterr().out
    problem = f"its tokens may stay valid until they expire: {dead} cannot be reached"
    assert f"logged out of {tenant.url}\n  {problem}" in output
    assert stored(tenant.url) is None


@pytest.mark.parametrize("arguments", [[], ["--all", "https://mcp.example.com/"]])
def test_logout_takes_one_address_or_all(capsys: Capture, arguments: list[str]) -> None:
    assert main(["logout", *arguments]) == 2
    assert "name one address, or --all" in capsys.readouterr().err


# --- processes ---

PROGRAM = [sys.executable, "-m", "hookproxy"]


def test_without_a_browser_the_address_is_printed_and_the_redirect_is_pasted(oauth: OAuthServer) -> None:
    tenant = oauth.tenant()
    with subprocess.Popen(
        [*PROGRAM, "login", "--no-browser", tenant.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin
        assert program.stdout
        address = program.stdout.readline().partition("machine: ")[2].strip()
        assert "paste the address" in program.stdout.readline()
        redirected = redirect_of(address)
        program.stdin.write("\nhttps://example.com/\n")
        program.stdin.write(redirected.replace("state=", "state=x") + "\n")
        program.stdin.flush()
        assert "this is not the address" in program.stdout.readline()
        assert "this is not the address" in program.stdout.readline()
        program.stdin.write(redirected[:40])
        program.stdin.flush()
        program.stdin.write(redirected[40:] + "\n")
        program.stdin.flush()
        assert program.stdout.readline() == f"logged in at {tenant.url}\n"
        program.stdout.read()
    assert program.returncode == 0
    assert tenant.accepts(value(tenant.url))


def redirect_of(address: str) -> str:
    """Where the authorization server sends the browser, which is on another machine."""
    import urllib.error
    import urllib.request

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.build_opener(Stay).open(address)
    with raised.value:
        return raised.value.headers["Location"]


def test_a_closed_input_is_not_read(oauth: OAuthServer) -> None:
    tenant = oauth.tenant()
    with subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&-', "sh", *PROGRAM, "login", "--no-browser", tenant.url],
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout
        address = program.stdout.readline().partition("machine: ")[2].strip()
        assert "You can close this window" in open_page(address)
        program.stdout.read()
    assert program.returncode == 0


@pytest.mark.parametrize("standard_input", [subprocess.DEVNULL, None])
def test_input_that_ends_leaves_the_redirect(oauth: OAuthServer, standard_input: int | None, tmp_path: Path) -> None:
    tenant = oauth.tenant()
    (tmp_path / "empty").touch()
    with (
        (tmp_path / "empty").open() as file,
        subprocess.Popen(
            [*PROGRAM, "login", "--no-browser", tenant.url],
            stdin=standard_input or file,
            stdout=subprocess.PIPE,
            text=True,
        ) as program,
    ):
        assert program.stdout
        address = program.stdout.readline().partition("machine: ")[2].strip()
        assert "You can close this window" in open_page(address)
        program.stdout.read()
    assert program.returncode == 0


RENEW = """
import sys, anyio
from hookproxy.authorization.credentials import StoredCredentials
from hookproxy.cli.login import open_store
from tests.support.http_post import post

async def main():
    run = StoredCredentials(sys.argv[1], open_store(), post, {})
    print("ready", flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)
    print(await run.value())

anyio.run(main)
"""


def test_processes_that_find_an_old_token_renew_it_once(oauth: OAuthServer) -> None:
    tenant = oauth.tenant()
    store = open_store()

    async def prepare() -> None:
        await store.write(tenant.login(ends_in=-1), keyring=False)

    anyio.run(prepare)
    root = Path(__file__).resolve().parents[2]
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", RENEW, tenant.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )
        for _ in range(3)
    ]
    try:
        for program in programs:
            assert program.stdout
            assert program.stdout.readline() == "ready\n"
        for program in programs:
            assert program.stdin
            program.stdin.write("\n")
            program.stdin.flush()
        printed = [program.communicate()[0].strip() for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.wait()
    assert [program.returncode for program in programs] == [0, 0, 0]
    assert len(set(printed)) == 1
    assert tenant.accepts(printed[0])
    assert tenant.renewals == 1


def test_what_a_run_imports_has_no_sdk_and_no_http_client() -> None:
    code = (
        "import sys, json, hookproxy.authorization.credentials\n"
        "print(json.dumps([name for name in ('mcp', 'httpx2', 'jwt', 'cryptography', 'keyring', 'pydantic')"
        " if name in sys.modules]))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout) == []
