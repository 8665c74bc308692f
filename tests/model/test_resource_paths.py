"""The same file is the same path, however the URI of its resource is spelled."""

from __future__ import annotations

from typing import Final

import pytest

from hookproxy.hooks.evaluate import Hooks
from hookproxy.jsonrpc import raw_json
from hookproxy.model import resource_paths
from hookproxy.model.hooks import Event, EventContext, Session
from hookproxy.model.settings import AgentRule, Settings
from hookproxy.policy.rules import Rules

ENV: Final = "/home/a/.env"

SPELLINGS: Final = (
    "file:///home/a/.env",
    "file:/home/a/.env",
    "file://localhost/home/a/.env",
    "file://LOCALHOST/home/a/.env",
    "file://other.example/home/a/.env",
    "file://127.0.0.1:80/home/a/.env",
    "file://user@host/home/a/.env",
    "file:////home/a/.env",
    "file://///home//a//.env",
    "FILE:///home/a/.env",
    "File:/home/a/.env",
    "fi\tle:///home/a/.env",
    "file:///home/a/.e\nnv",
    "file:\r\n///home/a/.env",
    " file:///home/a/.env ",
    "\x01\x1ffile:///home/a/.env\x00".rstrip("\x00"),
    "\u00a0file:///home/a/.env\u2003",
    "file:///home/a/%2eenv",
    "file:///home/a/%2Eenv",
    "file:///home/a/%252eenv",
    "file:///home/a/%25252eenv",
    "file:///home%2fa%2f.env",
    "file:///home%252fa%252f.env",
    "file:%2f%2f%2fhome/a/.env",
    "file%3a///home/a/.env",
    "file:///home/a/b/../.env",
    "file:///home/a/b/%2e%2e/.env",
    "file:///home/a/b/.%2e/.env",
    "file:///home/a/b/%252e%252e/.env",
    "file:///home/a/./.env",
    "file:///home/a/.env/",
    "file:///home/a/.env#part",
    "file:///home/a/.env?version=1",
    "file:///home/a/.env?",
    "file:///home/a/.env;v=1",
    "file:///home/a/.env%23",
    "file:///home/a/.env%3fx",
    r"file:\\\home\a\.env",
    r"file:///home\a\.env",
    "file:///home%5ca%5c.env",
    "file:///home/a/\u2024env",
    "file:///home/a/\uff0eenv",
    "file:///home/a/%EF%BC%8Eenv",
    "file:///home/a\uff0f.env",
    "file:///home/a/.ENV",
    "file:///C:/home/a/.env",
    "file:///c|/home/a/.env",
    "file://C:/home/a/.env",
    r"C:\home\a\.env",
    "/home/a/.env",
    "view-source:file:///home/a/.env",
    "resource:///home/a/.env",
    "repo://project/home/a/.env",
    "git+file:///home/a/.env",
    "fs://home/a/.env",
    "https://example.org/home/a/.env",
    "fs:home/a/.env",
    "my_files:///home/a/.env",
    "x://home/a/.env",
    "notes://.env",
    "notes:.env",
    "notes://a@.env:80",
    "notes://read?path=.env",
    "notes://read?path=/home/a/.env&encoding=utf8",
    "notes://read?encoding=utf8&path=%2Fhome%2fa/%252eenv",
    "notes://read#.env",
    "notes://read/;path=.env;v=1",
    "notes://many/README,.env",
    "https://example.org?file=.env",
    "read?path=/home/a/.env&encoding=utf8",
)
REFUSED: Final = (
    "file:///home/a/.env\x00.txt",
    "file:///home/a/.env%00.txt",
    "file:///home/a/.env%2500.txt",
    "file:///home/a/%c0%aeenv",
    "file:///home/a/%ffenv",
    f"file:///home/a/%{'25' * 20}2eenv",
    f"file:///{'a/' * 5000}.env",
    f"repo://{'a/' * 40}.env",
    f"{'aa:' * 2700}/home/a/.env",
    f"repo://a/b?{'&'.join(map(str, range(1100)))}",
)
IN_FOLDER: Final = (
    "docs://secret/key",
    "docs:///secret/key",
    "docs://project/secret/key",
    "docs://owner/name/contents/secret/key",
    "docs://owner/name/contents/%73ecret%2fkey",
    "docs://owner/name/contents//srv/app/secret/key",
    "docs://owner/name/contents/%2Fsrv%2Fapp%2Fsecret%2Fkey",
    "docs://read?path=secret/key&encoding=utf8",
    "my_docs:///srv/app/secret/key",
    "docs://~/app/secret/key",
    "docs://project/~/app/secret/key",
    "file:///srv/app/secret/key",
)
"""What a server in `/srv/app`, whose home folder is `/srv`, may take for `secret/key`."""


def _allowed(settings: Settings, tool: str, arguments: dict[str, str]) -> bool:
    """Whether the rules let a call of a tool, or a request of a method, pass."""
    groups = Hooks((), settings, "files", {})
    layer = groups._layers[0]
    encoded = raw_json.encode(arguments)
    alias = groups.groups.alias(tool, encoded)
    context = EventContext(
        Event.PRE_TOOL_USE, Session("s", "files", "/", "/"), tool=tool, arguments=encoded, alias=alias
    )
    return layer._ruling(context) is None


@pytest.mark.parametrize("uri", SPELLINGS)
def test_a_spelling_of_a_path_is_judged_as_the_path(uri: str) -> None:
    settings = Settings(deny=("Read(**/.env)",))
    for method in ("resources/read", "resources/subscribe"):
        assert not _allowed(settings, method, {"uri": uri})
    assert not _allowed(settings, "read_file", {"path": ENV})


@pytest.mark.parametrize("uri", SPELLINGS)
def test_other_files_pass_in_each_spelling(uri: str) -> None:
    settings = Settings(deny=("Read(**/.env)",))
    other = uri.replace("nv", "xample").replace("NV", "XAMPLE")
    assert _allowed(settings, "resources/read", {"uri": other})


@pytest.mark.parametrize("uri", REFUSED)
def test_a_uri_that_may_mean_anything_has_no_path(uri: str) -> None:
    with pytest.raises(raw_json.Unreadable):
        resource_paths.paths(uri)


@pytest.mark.parametrize("uri", SPELLINGS[:34])
def test_hooks_see_the_path_of_the_file(uri: str) -> None:
    assert resource_paths.paths(uri)[0] == ENV


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("docs://read?path=a/.env", "a/.env"),
        ("docs://read?x=b.txt&Path=%252eenv#y", ".env"),
        ("docs://read?file=file:///home/a/.env", "/home/a/.env"),
        ("docs://a/id_rsa?path=README.md", "a/id_rsa"),
        ("docs://.env?path=README.md", ".env"),
        ("file:///home/a/.env?path=README.md", "/home/a/.env"),
    ],
)
def test_hooks_see_the_path_in_the_query_of_a_mere_name(uri: str, path: str) -> None:
    assert resource_paths.paths(uri)[0] == path


def test_an_absolute_rule_holds_for_a_resource() -> None:
    settings = Settings(deny=("Read(/etc/**)",))
    for uri in ("file:///etc/passwd", "file:///x/../etc/passwd", "file://etc/passwd", "fs://etc/passwd", "/etc/passwd"):
        assert not _allowed(settings, "resources/read", {"uri": uri})
    assert _allowed(settings, "resources/read", {"uri": "file:///home/etc-notes"})


@pytest.mark.parametrize("uri", IN_FOLDER)
def test_a_rule_that_starts_from_a_folder_holds_wherever_the_path_begins(uri: str) -> None:
    rule = AgentRule(
        "deny", "Read(./secret/**)", "s.json", ("Read",), "secret/**", ("/srv/app",), ("/srv/app",), "/srv"
    )
    settings = Settings(agent_rules=(rule,))
    assert not _allowed(settings, "resources/read", {"uri": uri})
    assert _allowed(settings, "resources/read", {"uri": uri.replace("secret", "public").replace("%73ecret", "public")})


@pytest.mark.parametrize(
    "uri", ["memo://insights", "memo:insights", "demo://a/", "memo://insights?version=1.5", "https://example.org/"]
)
def test_a_name_is_not_a_path(uri: str) -> None:
    assert resource_paths.paths(uri) == ()


def test_another_path_of_a_hook_becomes_a_uri() -> None:
    assert resource_paths.with_path("file:///a", "/b/c d") == "file:///b/c%20d"
    with pytest.raises(raw_json.Unreadable):
        resource_paths.with_path("repo://a/b", "/b")
    with pytest.raises(raw_json.Unreadable):
        resource_paths.with_path("file:///a", "b")


def test_a_rule_for_tools_alone_says_nothing_of_resources() -> None:
    assert _allowed(Settings(deny=("*", "*(**/.env)")), "resources/read", {"uri": "file:///home/a/.env"})
    assert Rules.of(Settings(deny=("resources/read(**/.env)",))).concerns(("resources/read",))
    assert not _allowed(Settings(deny=("resources/read(**/.env)",)), "resources/read", {"uri": "file:///a/%252eenv"})
