"""Rules about the URI of a resource hold for every spelling of it."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.hooks import Permission
from hookproxy.model.settings import Settings
from hookproxy.policy.matchers import allow_rule, permission_rule
from hookproxy.policy.rules import Rules

METHODS = ("resources/read", "resources/subscribe")


def _judged(settings: Settings, uri: str, names: tuple[str, ...] = ("resources/read",)) -> Permission | None:
    decision = Rules.of(settings).judge(names, json.dumps({"uri": uri}, ensure_ascii=False).encode())
    return decision.permission if decision else None


FILE_SPELLINGS = (
    "file:///srv/x/y",
    "file:///srv/%78/y",
    "file:///srv/%2578/y",
    "file:///srv/q/../x/y",
    "file:///srv/q/%2e%2e/x/y",
    "file:///srv/./x//y",
    "file:/srv/x/y",
    "file:srv/x/y",
    "file:////srv/x/y",
    "file://localhost/srv/x/y",
    "file://LOCALHOST/srv/x/y",
    "file://127.0.0.1/srv/x/y",
    "file://srv/x/y",
    "file:\\\\\\srv\\x\\y",
    "file:///srv\\x\\y",
    "FILE:///srv/x/y",
    "File:/srv/%78/y",
    " file:///srv/x/y",
    "fi\nle:///srv/\tx/y",
    "file:///srv/x/y?q=1",
    "file:///srv/x/y#f",
    "file:///srv\uff0fx/y",
    "file:///C:/srv/x/y",
    "view-source:file:///srv/x/y",
    "/srv/x/y",
    "file%3A///srv/x/y",
)
SECRET_SPELLINGS = (
    "demo://a/secret",
    "demo://a/%73ecret",
    "demo://a/%2573ecret",
    "demo://a/b/../secret",
    "demo://a/./secret",
    "demo://b/../a/secret",
    "demo://a/secret?x=1",
    "demo://a/secret?x=/../..",
    "demo://a/secret;v=1",
    "demo://a;v=1/secret",
    "demo://a/secret%3Fx=1",
    "demo://a/secret#x",
    "demo://a//secret",
    "demo:////a//secret",
    "demo:/a/secret",
    "demo:a/secret",
    "demo://A/secret",
    "DEMO://a/secret",
    "demo://a/SECRET",
    "demo://me@a/secret",
    "demo://a:80/secret",
    "demo://a/secret/",
    "demo://a/secret%20",
    "demo:\\\\a\\secret",
    "demo://a%2Fsecret",
    "demo://a/\uff53ecret",
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("permission", [Permission.DENY, Permission.ASK])
@pytest.mark.parametrize("pattern", ["file:///srv/x/*", "FILE:/srv/%78/*", "file://localhost/srv/q/../x/*"])
def test_a_rule_about_files_holds_for_each_spelling(method: str, permission: Permission, pattern: str) -> None:
    rule = (f"{method}({pattern})",)
    settings = Settings(deny=rule) if permission is Permission.DENY else Settings(ask=rule)
    assert [uri for uri in FILE_SPELLINGS if _judged(settings, uri, (method,)) is not permission] == []


@pytest.mark.parametrize("pattern", ["demo://a/secret", "demo://a//%73ecret", "DEMO://A/b/../secret", "*://a/secret"])
def test_a_rule_about_another_scheme_holds_for_each_spelling(pattern: str) -> None:
    settings = Settings(deny=(f"resources/read({pattern})",))
    assert [uri for uri in SECRET_SPELLINGS if _judged(settings, uri) is not Permission.DENY] == []


def test_a_rule_about_a_scheme_holds_for_all_of_it() -> None:
    for rule in ("secret://*", "secret:*"):
        for uri in ("secret://token", "SECRET:token", "secret:/a/b", "secret%3a//x", "secret://"):
            assert _judged(Settings(deny=(f"resources/read({rule})",)), uri) is Permission.DENY


@pytest.mark.parametrize(
    ("pattern", "uri"),
    [
        ("file:///srv/x/*", "file:///srv/y/x"),
        ("file:///srv/x/*", "file:///srv/xy/z"),
        ("file:///srv/x/*", "demo://srv/x/y"),
        ("file://other/srv/x", "file:///srv/x"),
        ("demo://a/secret", "demo://a/secrets"),
        ("demo://a/secret", "demo://b/secret"),
        ("demo://a/secret?x=1", "demo://a/secret?x=2"),
        ("demo://a/secret?x=1", "demo://a/secret"),
        ("secret://*", "memo://secret"),
    ],
)
def test_a_rule_says_nothing_of_other_resources(pattern: str, uri: str) -> None:
    assert _judged(Settings(deny=(f"resources/read({pattern})",)), uri) is None


@pytest.mark.parametrize(
    "uri", ["demo://b/%00", "demo://b/%ff", "demo://" + "b" * 9000, "demo://b/%" + "25" * 9 + "41"]
)
def test_a_uri_that_may_mean_anything_is_refused(uri: str) -> None:
    assert _judged(Settings(deny=("resources/read(demo://a/secret)",)), uri) is Permission.DENY


def test_a_rule_by_the_familiar_name_holds_for_each_spelling() -> None:
    settings = Settings(deny=("ReadMcpResourceTool(demo://a/secret)",))
    names = ("resources/read", "ReadMcpResourceTool")
    assert _judged(settings, "demo://a/%73ecret", names) is Permission.DENY


@pytest.mark.parametrize("name", ["resources/read", "resources/subscribe", "ReadMcpResourceTool"])
def test_a_hook_for_a_uri_runs_for_each_spelling(name: str) -> None:
    runs_for = permission_rule(f"{name}(demo://a/secret)")
    assert [uri for uri in SECRET_SPELLINGS if not runs_for(name, json.dumps({"uri": uri}).encode())] == []
    assert runs_for(name, b'{"uri":"demo://b/%00"}')
    assert not runs_for(name, b'{"uri":"demo://b/%73ecret"}')


def test_what_hooks_and_people_allow_needs_every_reading() -> None:
    allows = allow_rule("resources/read(file:///srv/x/*)")
    assert allows("resources/read", b'{"uri":"file:///srv/x/y"}')
    assert not allows("resources/read", b'{"uri":"file:///srv/x/%252e%252e/y"}')


def test_names_of_prompts_are_no_uris() -> None:
    rules = Rules.of(Settings(deny=("prompts/get(demo://a/secret)",)))
    assert rules.judge(("prompts/get",), b'{"name":"demo://a/%73ecret"}') is None
    assert rules.judge(("prompts/get",), b'{"name":"demo://a/secret"}') is not None


@pytest.mark.parametrize(
    ("pattern", "uri", "allowed"),
    [
        ("file:///srv/x/*", "file:///srv/x/y", True),
        ("file:///srv/x/*", "file:///srv/x/%79", True),
        ("file:///srv/x/*", "file:///srv/x/%2e%2e/y", False),
        ("file:///srv/x/*", "file:///srv/x/%252e%252e/y", False),
        ("file:///srv/x/*", "file:///srv/x/%252e%252e%252fy", False),
        ("file:///srv/x/*", "file:///srv/x/%5C%2e.%5Cy", False),
        ("file:///srv/x/*", "file:///srv/x/\uff0e\uff0e/y", False),
        ("file:///srv/*/a", "file:///srv/x?/a", False),
        ("file:///srv/*/a", "file:///srv/x%3F/a", False),
        ("demo://a/*", "demo://a/x", True),
        ("demo://a/*", "demo://a/x?q=1", True),
        ("demo://a/search?q=*", "demo://a/search?q=1", True),
        ("demo://a/open", "demo://a/open#x", False),
        ("http://localhost:8000/*", "http://localhost:8000/x", True),
        ("http://localhost:8000/*", "http://localhost/x", False),
        ("demo://a*", "demo://a@b/x", False),
        ("memo:insights", "memo:insights", True),
        ("urn:isbn:1*", "urn:isbn:12", True),
        ("demo://a/*", "demo://a/%00", False),
    ],
)
def test_an_allow_rule_needs_every_reading(pattern: str, uri: str, allowed: bool) -> None:
    expected = Permission.ALLOW if allowed else None
    assert _judged(Settings(allow=(f"resources/read({pattern})",)), uri) is expected
