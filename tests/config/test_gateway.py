"""gateway.toml: its keys, its errors, who may own its files, and how a server's keys go over those for all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.config import gateway as gateway_config
from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.config.gateway_models import DEFAULT_SOCKET, GatewayTable
from hookproxy.model.errors import ConfigError
from hookproxy.model.principal import Principal
from tests.support.managed_folder import NOBODY, ROOT_ONLY
from tests.support.signed_audit import make_audit_keys

ALICE = Principal("uid:1000", "alice", ("developers",))
BOB = Principal("uid:1001", "bob")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def load(folder: Path, text: str, environ: dict[str, str] | None = None) -> GatewayConfig:
    (folder / "gateway.toml").write_text(text)
    return load_gateway("gateway.toml", environ or {}, str(folder))


def refusal(folder: Path, text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, environ)
    assert caught.value.hint
    return str(caught.value)


def test_a_small_file(folder: Path) -> None:
    config = load(folder, '[servers.git]\ncommand = ["mcp-server-git"]\n')
    server = config.servers["git"]
    assert config.path == str(folder / "gateway.toml")
    assert config.gateway == GatewayTable()
    assert server.table.command == ["mcp-server-git"]
    assert server.cwd == str(folder)
    assert server.allows(ALICE)
    assert server.table.share == "session"


def test_every_key(folder: Path) -> None:
    config = load(
        folder,
        """
[gateway]
listen = ["unix:/run/x/mcp.sock", "http://127.0.0.1:8765"]
socket_mode = "0666"
socket_group = "mcp"
max_sessions_per_user = 3
max_requests = 4
instance = "a-1"
public_url = "https://mcp.example.com"
tokens = "tokens"
trusted_proxies = ["10.0.0.0/8"]
drain_seconds = 5
[gateway.oidc]
issuer = "https://idp.example.com"
audience = "https://mcp.example.com"
user_claim = "email"
groups_claim = "roles"
required_scopes = ["mcp"]
any_type = true
ca = "ca.pem"
[gateway.tls]
certificate = "c.pem"
key = "k.pem"
[servers.db]
command = ["db-mcp", "--ro"]
env = { A = "1" }
credentials = { TOKEN = "file:secret" }
cwd = "work"
user = "nobody"
share = "user"
idle_seconds = 60
max_sessions = 7
allow = ["alice", "@developers"]
[servers.hub]
url = "https://hub.example.com/mcp"
headers = { Authorization = "Bearer %{TOKEN}" }
credentials = { TOKEN = "file:/etc/secret" }
ca = "ca.pem"
cert = "c.pem"
key = "k.pem"
allow_http = true
[servers.mine]
from_caller = true
""",
    )
    database, hub, mine = config.servers.values()
    assert database.cwd == str(folder / "work")
    assert database.credentials == {"TOKEN": str(folder / "secret")}
    assert hub.credentials == {"TOKEN": "/etc/secret"}
    assert mine.table.from_caller
    assert config.gateway.oidc is not None
    assert config.gateway.oidc.required_scopes == ["mcp"]
    assert config.gateway.socket_mode == "0666"


COMMAND = 'command = ["cat"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no server"),
        ("[gateway]\n", "names no server"),
        ("x = 1\n", "gateway.toml:1"),
        ("[gateway]\nx = 1\n", "gateway.toml:2"),
        ("[servers.a]\nx = 1\n", "gateway.toml:2"),
        ("[servers.a\n", "gateway.toml:1"),
        ("[servers.a]\n", "gateway.toml:1: servers.a names no server"),
        ("\n[servers.a]\n" + COMMAND + 'url = "https://x"\n', "gateway.toml:2: servers.a says in several ways"),
        ("[servers.a]\n" + COMMAND + "from_caller = true\n", "servers.a says in several ways"),
        ("[servers.a]\ncommand = []\n", "servers.a.command"),
        ('[servers.a]\ncommand = [""]\n', "servers.a.command"),
        ('[servers."a b"]\n' + COMMAND, "servers"),
        ('[servers."../a"]\n' + COMMAND, "servers"),
        ('[servers."a\\n"]\n' + COMMAND, "servers"),
        ('[servers.a]\nfrom_caller = true\nenv = { A = "1" }\n', "runs as the user"),
        ('[servers.a]\nfrom_caller = true\ncredentials = { A = "file:x" }\n', "runs as the user"),
        ('[servers.a]\nfrom_caller = true\nuser = "nobody"\n', "runs as the user"),
        ("[servers.a]\n" + COMMAND + 'headers = { A = "1" }\n', "servers.a.headers are for a server with a url"),
        ('[servers.a]\nurl = "https://x"\nuser = "nobody"\n', "servers.a.user is for a server with a command"),
        ('[servers.a]\nurl = "https://x"\nshare = "all"\n', "servers.a.share is for a server with a command"),
        ('[servers.a]\nfrom_caller = true\nshare = "all"\n', "servers.a.share is for a server with a command"),
        ("[servers.a]\n" + COMMAND + 'credentials = { A = "secret" }\n', "servers.a.credentials"),
        ("[servers.a]\n" + COMMAND + 'share = "none"\n', "servers.a.share"),
        ("[servers.a]\n" + COMMAND + "idle_seconds = 0\n", "servers.a.idle_seconds"),
        ("[servers.a]\n" + COMMAND + "max_sessions = 0\n", "servers.a.max_sessions"),
        ('[gateway]\nsocket_mode = "999"\n[servers.a]\n' + COMMAND, "gateway.socket_mode"),
        ("[gateway]\nlisten = []\n[servers.a]\n" + COMMAND, "gateway.listen"),
        ("[gateway]\ndrain_seconds = -1\n[servers.a]\n" + COMMAND, "gateway.drain_seconds"),
        ('[gateway]\ninstance = "a.b"\n[servers.a]\n' + COMMAND, "gateway.instance"),
        ("managed_only = true\n[servers.a]\n" + COMMAND, "managed_only has no meaning"),
        ("[servers.a]\n" + COMMAND + "require_trust = true\n", "servers.a.require_trust has no meaning"),
        ('[permissions]\ndeny = ["("]\n[servers.a]\n' + COMMAND, "permissions.deny[0]"),
        ('[[permissions.for]]\nusers = ["a"]\ndeny = ["("]\n[servers.a]\n' + COMMAND, "permissions.for[0].deny[0]"),
        ('[[permissions.for]]\ndeny = ["x"]\n[servers.a]\n' + COMMAND, "permissions.for[0]"),
        ("[[permissions.for]]\nusers = []\n[servers.a]\n" + COMMAND, "permissions.for[0]"),
        (
            "[servers.a]\n" + COMMAND + '[[servers.a.permissions.for]]\nusers = ["a"]\nask = ["("]\n',
            "servers.a.permissions.for[0].ask[0]",
        ),
        ('[[use]]\nfile = "absent.json"\n[servers.a]\n' + COMMAND, "absent.json"),
        ("[servers.a]\n" + COMMAND + 'allow = ["@"]\n', "servers.a.allow[0]: '@' is not the name"),
        ("[servers.a]\n" + COMMAND + 'allow = ["bob", "*"]\n', "servers.a.allow[1]: '*' is not the name"),
        ("[servers.a]\n" + COMMAND + 'allow = ["bob "]\n', "servers.a.allow[0]: 'bob ' is not the name"),
        ('[[permissions.for]]\nusers = ["*"]\n[servers.a]\n' + COMMAND, "permissions.for[0].users[0]: '*' is not the"),
        (
            '[servers.a]\nurl = "https://x"\nheaders = { Authorization = "Bearer %{TOKEN}" }\n',
            "gateway.toml:3: servers.a.headers.Authorization needs the credential TOKEN",
        ),
        ('[servers."a/b"]\n' + COMMAND, "gateway.toml:1: servers: 'a/b' is not a valid name"),
        ("[servers.a]\n" + COMMAND + '[[servers.a.use]]\nfile = "absent.json"\n', "absent.json"),
    ],
)
def test_an_error_names_its_place_and_a_fix(folder: Path, text: str, said: str) -> None:
    assert said in refusal(folder, text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[servers.a]\n" + COMMAND + 'credentials = { A = "x" }\n', 'write A = "file:/etc/hookproxy/A"'),
        ('[gateway]\nprobes = "9090"\n[servers.a]\n' + COMMAND, 'write probes = "http://127.0.0.1:9090"'),
        (
            '[gateway]\nsocket_mode = "x"\n[servers.a]\n' + COMMAND,
            'write socket_mode = "0660"',
        ),
    ],
)
def test_a_value_of_the_wrong_form_gets_a_hint_that_helps(folder: Path, text: str, hint: str) -> None:
    assert hint in refusal(folder, text)


def test_rules_for_people_and_groups_hold_for_these_alone(folder: Path) -> None:
    config = load(
        folder,
        """
[permissions]
deny = ["all"]
[[permissions.for]]
users = ["alice"]
deny = ["a"]
[[permissions.for]]
users = ["@developers", "bob"]
ask = ["b"]
[servers.x]
command = ["cat"]
[[servers.x.permissions.for]]
users = ["bob"]
allow = ["c"]
[servers.y]
command = ["cat"]
""",
    )
    x, y = config.servers.values()
    assert (x.settings_for(ALICE).deny, x.settings_for(ALICE).ask, x.settings_for(ALICE).allow) == (
        ("all", "a"),
        ("b",),
        (),
    )
    assert (x.settings_for(BOB).deny, x.settings_for(BOB).ask, x.settings_for(BOB).allow) == (("all",), ("b",), ("c",))
    assert y.settings_for(BOB).allow == ()
    stranger = x.settings_for(Principal("uid:2", "developers"))
    assert (stranger.deny, stranger.ask, stranger.allow) == (("all",), (), ())
    assert x.settings_for(ALICE).rule_places["deny a"].endswith("gateway.toml:6: permissions.for[0].deny[0]")


def test_of_the_defaults_that_hold_for_a_user_the_strictest_counts(folder: Path) -> None:
    config = load(
        folder,
        """
[permissions]
default = "ask"
[[permissions.for]]
users = ["@developers"]
default = "deny"
[[permissions.for]]
users = ["alice", "bob"]
default = "ask"
[servers.x]
command = ["cat"]
[servers.x.permissions]
default = "allow"
[servers.y]
command = ["cat"]
""",
    )
    x, y = config.servers.values()
    assert [one.settings_for(ALICE).default_permission for one in (x, y)] == ["deny", "deny"]
    assert [one.settings_for(BOB).default_permission for one in (x, y)] == ["ask", "ask"]
    doubtful = Principal("uid:2", "carol", in_doubt=True)
    assert x.settings_for(doubtful).default_permission == "deny", "nobody knows that she is not a developer"
    stranger = Principal("uid:2", "carol")
    assert [one.settings_for(stranger).default_permission for one in (x, y)] == ["allow", "ask"]
    assert x.settings_for(ALICE).rule_places["default"].endswith("gateway.toml:6: permissions.for[0].default")
    assert y.settings_for(stranger).rule_places["default"].endswith("gateway.toml:3: permissions.default")


def test_lists_of_a_server_are_added_and_other_keys_replace_those_for_all(folder: Path) -> None:
    config = load(
        folder,
        """
on_failure = "deny"
on_ask = "deny"
[permissions]
deny = ["a"]
[[limits]]
tool = "*"
calls = 9
per = "minute"
[audit]
redact = ["one"]
[servers.x]
command = ["cat"]
on_failure = "allow"
[servers.x.permissions]
deny = ["b"]
[[servers.x.limits]]
tool = "t"
calls = 1
per = "minute"
[servers.x.audit]
redact = ["two"]
[servers.y]
command = ["cat"]
""",
    )
    x, y = (one.loaded.settings for one in config.servers.values())
    assert (x.deny, y.deny) == (("a", "b"), ("a",))
    assert (x.on_failure, y.on_failure) == ("allow", "deny")
    assert x.on_ask == y.on_ask == "deny"
    assert [one.most for one in x.limits] == [9, 1]
    assert (x.audit_redact, y.audit_redact) == (("one", "two"), ("one",))


def test_hooks_for_all_run_before_those_of_a_server(folder: Path) -> None:
    config = load(
        folder,
        """
[[hooks.PreToolUse]]
command = "true all"
[servers.x]
command = ["cat"]
[[servers.x.hooks.PreToolUse]]
command = "true x"
[servers.y]
command = ["cat"]
""",
    )
    x, y = ([spec.shell for group in one.loaded.groups for spec in group.hooks] for one in config.servers.values())
    assert x == ["true all", "true x"]
    assert y == ["true all"]


def test_the_version_changes_with_any_file(folder: Path) -> None:
    hooks = folder / "hooks.json"
    hooks.write_text('{"hooks": {}}')
    text = '[[use]]\nfile = "hooks.json"\ndialect = "claude"\n[servers.a]\n' + COMMAND
    first = load(folder, text).version
    assert load(folder, text).version == first
    assert load(folder, text + "\n").version != first
    hooks.write_text('{"hooks":  {}}')
    assert load(folder, text).version != first


def test_credentials_are_beside_the_file_or_systemds(folder: Path) -> None:
    text = "[servers.a]\n" + COMMAND + 'credentials = { T = "file:$CREDENTIALS_DIRECTORY/t" }\n'
    config = load(folder, text, {"CREDENTIALS_DIRECTORY": "/run/credentials/x"})
    assert config.servers["a"].credentials == {"T": "/run/credentials/x/t"}
    for environ in ({}, {"CREDENTIALS_DIRECTORY": ""}, {"CREDENTIALS_DIRECTORY": "relative"}):
        assert "CREDENTIALS_DIRECTORY is not set" in refusal(folder, text, environ)


def test_certificates_for_a_server_at_an_address_are_beside_the_file(folder: Path) -> None:
    text = '[servers.a]\nurl = "https://h/mcp"\nca = "ca.pem"\ncert = "/etc/c.pem"\nkey = "private/k.pem"\n'
    table = load(folder, text).servers["a"].table
    assert (table.ca, table.cert, table.key) == (f"{folder}/ca.pem", "/etc/c.pem", f"{folder}/private/k.pem")


def test_roots_are_those_that_are_listed_and_nobody_elses(folder: Path) -> None:
    text = """
        [servers.files]
        command = ["files"]
        roots = ["data", "/srv/a b/../ü", "file:///srv/x%20y", "file://localhost/z", "/"]
        [servers.none]
        command = ["none"]
        [servers.empty]
        command = ["none"]
        roots = []
        [servers.any]
        url = "https://any.example/mcp"
        roots = ["*"]
        [servers.own]
        from_caller = true
        [servers.own_listed]
        from_caller = true
        roots = ["/srv"]
    """
    servers = load(folder, text).servers
    given = {name: server.loaded.settings.roots.given for name, server in servers.items()}
    assert given["files"] == (
        (f"file://{folder}/data", "data"),
        ("file:///srv/%C3%BC", "ü"),
        ("file:///srv/x%20y", "x y"),
        ("file:///z", "z"),
        ("file:///", "/"),
    )
    assert given["none"] == given["empty"] == ()
    assert given["any"] is given["own"] is None
    assert given["own_listed"] == (("file:///srv", "srv"),)


@pytest.mark.parametrize(
    "root", ["https://x.example/a", "file://other.example/a", "file:///a?b", "file:///a%0Ab", "/srv/*", "file:///a#b"]
)
def test_a_root_that_is_no_folder_is_an_error_at_its_line(folder: Path, root: str) -> None:
    said = refusal(folder, f'[servers.s]\ncommand = ["s"]\nroots = ["/srv", "{root}"]\n')
    assert "gateway.toml:3: servers.s.roots[1]: " in said
    assert "is not a folder" in said


def test_what_agents_say_is_not_listed_beside_folders(folder: Path) -> None:
    said = refusal(folder, '[servers.s]\ncommand = ["s"]\nroots = ["*", "/srv"]\n')
    assert "servers.s.roots[0]: '*' is not a folder" in said


def test_what_starts_differently(folder: Path) -> None:
    base = load(folder, "[servers.a]\n" + COMMAND).servers["a"]
    for more in (
        'env = { A = "1" }',
        'cwd = "/"',
        'user = "nobody"',
        'share = "all"',
        'credentials = { A = "file:x" }',
    ):
        assert load(folder, "[servers.a]\n" + COMMAND + more).servers["a"].starts_differently(base), more
    for more in ("idle_seconds = 5", 'allow = ["x"]', 'on_failure = "allow"', "max_sessions = 2"):
        assert not load(folder, "[servers.a]\n" + COMMAND + more).servers["a"].starts_differently(base), more


def test_the_default_socket_is_that_of_connect() -> None:
    from hookproxy.cli import connect

    assert connect.DEFAULT_SOCKET == DEFAULT_SOCKET


# --- who may own the files ---


def test_others_may_write_neither_the_file_nor_a_folder_above_it(folder: Path) -> None:
    text = "[servers.a]\n" + COMMAND
    inner = folder / "inner"
    inner.mkdir()
    load(inner, text)
    for path, mode in (
        (inner, 0o777),
        (inner, 0o775),
        (inner / "gateway.toml", 0o646),
        (inner / "gateway.toml", 0o664),
    ):
        before = path.stat().st_mode
        path.chmod(mode)
        with pytest.raises(ConfigError, match="is writable by"):
            load_gateway("gateway.toml", {}, str(inner))
        path.chmod(before)
    inner.chmod(0o1777)  # as /tmp: only its owner can replace the file
    load_gateway("gateway.toml", {}, str(inner))


def test_others_may_not_write_a_hook_file_or_what_a_hook_starts(folder: Path) -> None:
    (folder / "hooks.json").write_text('{"hooks": {}}')
    (folder / "hook.sh").write_text("#!/bin/sh\n")
    (folder / "hook.sh").chmod(0o755)
    text = '[[use]]\nfile = "hooks.json"\ndialect = "claude"\n'
    text += '[servers.a]\ncommand = ["cat"]\n[[servers.a.hooks.PreToolUse]]\ncommand = "./hook.sh"\n'
    load(folder, text)
    for name, mode in (("hooks.json", 0o666), ("hook.sh", 0o777), ("hook.sh", 0o775)):
        before = (folder / name).stat().st_mode
        (folder / name).chmod(mode)
        assert name in refusal(folder, text)
        (folder / name).chmod(before)
    load(folder, text)


def test_a_hook_may_not_be_in_a_folder_where_others_can_put_one(folder: Path) -> None:
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    text = f'[servers.a]\ncommand = ["cat"]\n[[servers.a.hooks.PreToolUse]]\ncommand = "{shared}/hook.sh"\n'
    assert "writable by others" in refusal(folder, text)  # it is missing: anybody could create it
    (shared / "hook.sh").write_text("#!/bin/sh\n")
    assert "writable by others" in refusal(folder, text)  # a module beside it would be imported
    shared.chmod(0o755)
    load(folder, text)


def test_a_link_is_followed_and_what_it_names_is_checked(folder: Path) -> None:
    real = folder / "real"
    real.mkdir()
    (real / "gateway.toml").write_text("[servers.a]\n" + COMMAND)
    (folder / "gateway.toml").symlink_to(real / "gateway.toml")
    load_gateway("gateway.toml", {}, str(folder))
    real.chmod(0o777)
    with pytest.raises(ConfigError, match="writable by others"):
        load_gateway("gateway.toml", {}, str(folder))


@ROOT_ONLY
def test_another_account_may_own_neither_the_file_nor_a_link_or_folder_on_the_way(folder: Path) -> None:
    text = "[servers.a]\n" + COMMAND
    inner = folder / "inner"
    inner.mkdir()
    load(inner, text)
    (folder / "link.toml").symlink_to(inner / "gateway.toml")
    os.lchown(folder / "link.toml", NOBODY, NOBODY)
    with pytest.raises(ConfigError, match="belongs to user"):
        load_gateway("link.toml", {}, str(folder))
    for path in (inner, inner / "gateway.toml"):
        os.chown(path, NOBODY, NOBODY)
        with pytest.raises(ConfigError, match="belongs to user"):
            load_gateway("gateway.toml", {}, str(inner))
        os.chown(path, 0, 0)


def test_the_folder_of_a_socket_is_checked_all_the_way(folder: Path) -> None:
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    gateway_config.check_folder(str(inner))
    gateway_config.check_folder(str(inner / "missing"))
    (folder / "a").chmod(0o777)
    with pytest.raises(ConfigError, match="writable by others"):
        gateway_config.check_folder(str(inner))


# --- what several gateways share ---

SERVER = '[servers.a]\ncommand = ["cat"]\n'


def with_key(folder: Path, data: bytes = os.urandom(32), mode: int = 0o600, name: str = "seal.key") -> Path:
    path = folder / name
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_seal_keys_are_read_from_files_of_any_form(folder: Path) -> None:
    with_key(folder, b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=\n", 0o640)
    with_key(folder, bytes(range(32)), 0o400, "old")
    config = load(
        folder,
        f'[gateway]\nseal_keys = ["seal.key", "$CREDENTIALS_DIRECTORY/old"]\n{SERVER}',
        {"CREDENTIALS_DIRECTORY": str(folder)},
    )
    assert len({key.prefix for key in config.seal_keys}) == 2
    again = load(folder, f'[gateway]\nseal_keys = ["seal.key"]\n{SERVER}')
    assert [key.prefix for key in again.seal_keys] == [config.seal_keys[0].prefix]
    assert load(folder, SERVER).seal_keys == ()


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 31, bytes(32), b"0123" * 16, os.urandom(5000)])
def test_a_file_without_a_random_key_is_an_error_that_says_how_to_make_one(folder: Path, data: bytes) -> None:
    path = with_key(folder, data)
    text = refusal(folder, f'[gateway]\nseal_keys = ["seal.key"]\n{SERVER}')
    assert f"gateway.seal_keys[0]: {path} has no random key of at least 32 bytes" in text
    assert f"openssl rand -base64 -out {path} 32" in text


def test_a_key_that_is_not_there_is_an_error(folder: Path) -> None:
    text = refusal(folder, f'[gateway]\nseal_keys = ["seal.key"]\n{SERVER}')
    assert f"gateway.seal_keys[0]: {folder}/seal.key cannot be read: No such file or directory" in text


@pytest.mark.parametrize(
    ("mode", "said"),
    [(0o604, "is readable by others, but it is a secret"), (0o644, "is readable by others"), (0o660, "is writable by")],
)
def test_a_key_that_others_may_read_or_change_is_an_error(folder: Path, mode: int, said: str) -> None:
    with_key(folder, mode=mode)
    assert said in refusal(folder, f'[gateway]\nseal_keys = ["seal.key"]\n{SERVER}')


@ROOT_ONLY
def test_a_key_of_another_account_is_an_error(folder: Path) -> None:
    os.chown(with_key(folder), NOBODY, -1)
    assert "belongs to user" in refusal(folder, f'[gateway]\nseal_keys = ["seal.key"]\n{SERVER}')


def test_a_key_is_no_part_of_the_policy_nor_of_what_is_shown(folder: Path) -> None:
    text = f'[gateway]\nseal_keys = ["seal.key"]\n{SERVER}'
    with_key(folder, b"sekret-of-the-gateway-0123456789")
    first = load(folder, text)
    with_key(folder)
    second = load(folder, text)
    assert first.seal_keys[0].prefix != second.seal_keys[0].prefix
    assert (first.version, first.policy) == (second.version, second.policy)
    assert "sekret" not in repr(first)


def test_gateways_whose_files_differ_in_their_addresses_have_one_policy(tmp_path: Path) -> None:
    hook = '[[hooks.PreToolUse]]\nargv = ["./hook.sh"]\n'
    configs = []
    for name, more in (("a", ""), ("b", ""), ("c", '[permissions]\ndeny = ["x"]\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hook.sh").write_text("#!/bin/sh\n")
        (tmp_path / name / "hook.sh").chmod(0o755)
        configs.append(load(tmp_path / name, f'{more}{hook}[gateway]\ninstance = "{name}"\n{SERVER}'))
    a, b, c = configs
    assert a.version != b.version
    assert a.policy == b.policy
    assert a.policy != c.policy


def test_a_store_and_its_password(folder: Path) -> None:
    config = load(
        folder, f'[gateway.store]\nurl = "unix:///run/valkey/valkey.sock"\npassword = "file:secret"\n{SERVER}'
    )
    assert config.gateway.store is not None
    assert config.gateway.store.password == str(folder / "secret")
    assert config.gateway.store.prefix == "hookproxy:"


@pytest.mark.parametrize(
    "url", ["http://localhost", "localhost:6379", "", "redis://", "redis://h:port", "redis://[::1"]
)
def test_a_store_at_no_address_is_an_error(folder: Path, url: str) -> None:
    assert "gateway.store" in refusal(folder, f'[gateway.store]\nurl = "{url}"\n{SERVER}')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'seal_keys = ["seal.key"]',
            ["gateway.seal_keys without [gateway.store]: an approval can be used once at each"],
        ),
        (
            'store = {url = "unix:///x"}',
            ["[gateway.store] without gateway.seal_keys: no gateway continues what another"],
        ),
        ('seal_keys = ["seal.key"]\nstore = {url = "redis://localhost"}', []),
        ('seal_keys = ["seal.key"]\nstore = {url = "rediss://other"}', []),
        (
            'seal_keys = ["seal.key"]\nstore = {url = "redis://u:pw@other"}',
            ["gateway.store: to other without TLS; who"],
        ),
        ("", []),
    ],
)
def test_what_is_shared_only_in_part_is_reported(folder: Path, text: str, said: list[str]) -> None:
    with_key(folder)
    notes = load(folder, f"[gateway]\n{text}\n{SERVER}").notes
    assert len(notes) == len(said)
    assert all(note.startswith(start) for note, start in zip(notes, said, strict=True))


@pytest.mark.parametrize(
    ("key", "entry", "what"),
    [
        ("read", "admin", "the administration socket"),
        ("read", "admin/admin.sock", "the administration socket"),
        ("read", "run", "the folder of the gateway's sockets"),
        ("write", "run/more", "the folder of the gateway's sockets"),
        ("read", "keys", "the key that signs the gateway's audit"),
        ("write", "hooks", "a file with rules, hooks or certificates"),
        ("write", "hooks/team.json", "a file with rules, hooks or certificates"),
        ("write", "authorities", "contains a file with rules, hooks or certificates"),
        ("write", "authorities/idp.pem", "is a file with rules, hooks or certificates"),
        ("write", "authorities/url.pem", "is a file with rules, hooks or certificates"),
        ("write", "authorities/tls.pem", "is a file with rules, hooks or certificates"),
        ("read", "audit.jsonl.1", "belongs to the gateway's audit"),
        ("read", "audit.jsonl.checkpoints", "belongs to the gateway's audit"),
        ("write", "audit.jsonl.12", "belongs to the gateway's audit"),
        ("read", "keys/audit-sign.key.old", "belongs to the key that signs the gateway's audit"),
    ],
)
def test_no_sandbox_shows_what_is_the_gateways(folder: Path, key: str, entry: str, what: str) -> None:
    for name in ("admin", "run", "keys", "hooks", "authorities"):
        (folder / name).mkdir()
    make_audit_keys(folder / "keys")
    (folder / "hooks" / "team.json").write_text('{"hooks": {}}')
    text = f"""
[gateway]
admin_socket = "{folder}/admin/admin.sock"
public_url = "https://mcp.example.com"
[gateway.oidc]
issuer = "https://idp.example.com"
ca = "authorities/idp.pem"
[gateway.tls]
certificate = "authorities/tls.pem"
key = "tls.key"
[audit]
file = "audit.jsonl"
sign_key = "keys/audit-sign.key"
[[use]]
file = "hooks/team.json"
[servers.far]
url = "https://far.example.com/mcp"
ca = "authorities/url.pem"
[servers.git]
command = ["mcp-server-git"]
sandbox = {{ {key} = ["{entry}"] }}
"""
    assert what in refusal(folder, text, {"RUNTIME_DIRECTORY": f"{folder}/run"})


@pytest.mark.parametrize("key", ["read", "write"])
def test_no_sandbox_shows_the_administration_socket_beside_that_of_agents(folder: Path, key: str) -> None:
    (folder / "run").mkdir()
    text = f"""
[gateway]
listen = ["unix:{folder}/run/mcp.sock"]
[servers.git]
command = ["mcp-server-git"]
sandbox = {{ {key} = ["run/mcp-admin.sock"] }}
"""
    assert "is the administration socket" in refusal(folder, text)


@pytest.mark.parametrize("entry", ["sockets/mcp.sock", "sockets", "sockets/mcp-admin.sock"])
def test_no_sandbox_shows_the_sockets_of_systemd_wherever_they_are(folder: Path, entry: str) -> None:
    (folder / "sockets").mkdir()
    table = f'[servers.git]\ncommand = ["mcp-server-git"]\nsandbox = {{ write = ["{entry}"] }}\n'
    (folder / "gateway.toml").write_text(table)
    load_gateway("gateway.toml", {}, str(folder))
    with pytest.raises(ConfigError, match="socket"):
        load_gateway("gateway.toml", {}, str(folder), sockets=[f"{folder}/sockets/mcp.sock"])
    (folder / "gateway.toml").write_text('[servers.git]\ncommand = ["mcp-server-git"]\n')
    config = load_gateway("gateway.toml", {}, str(folder), sockets=[f"{folder}/sockets/mcp.sock"])
    around = config.servers["git"].surroundings
    assert {f"{folder}/sockets/mcp.sock", f"{folder}/sockets/mcp-admin.sock"} <= set(around.protected)


def test_a_sandbox_may_read_files_with_rules(folder: Path) -> None:
    (folder / "hooks").mkdir()
    (folder / "hooks" / "team.json").write_text('{"hooks": {}}')
    use = '[[use]]\nfile = "hooks/team.json"\n'
    config = load(folder, f'{use}[servers.git]\ncommand = ["mcp-server-git"]\nsandbox = {{ read = ["hooks"] }}\n')
    assert config.servers["git"].sandbox is not None


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ('groups = "dev"', 'users = ["@developers"]'),
        ('user = "dev"', "did you mean 'users'? expected one of: users, allow, ask, deny, default, mode"),
    ],
)
def test_an_unknown_key_of_rules_for_some_people_is_answered_with_theirs(folder: Path, key: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=r"permissions\.for\[0\]\.\w+: unknown key") as caught:
        load(folder, f'[servers.git]\ncommand = ["x"]\n[[permissions.for]]\n{key}\n')
    assert hint in caught.value.hint
