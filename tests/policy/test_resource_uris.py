"""Rules about the URI of a resource hold for every spelling of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial

import pytest

from hookproxy.model import resource_paths
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Permission
from hookproxy.model.settings import Settings
from hookproxy.policy import resource_uris
from hookproxy.policy.globs import OF_RESOURCE, BudgetExceeded, WorkBudget
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


def function_calls(action: Callable[[], object]) -> int:
    """How many functions an action calls: its work, on however busy a machine."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


SHAPES: dict[str, Callable[[int], str]] = {
    "escapes": lambda size: "file:///srv/" + "%252e" * size,
    "escaped escapes": lambda size: "repo://a/" + "%25" * size + "2e",
    "folders": lambda size: "file:///" + "a/" * size,
    "ways up": lambda size: "file:///" + "a/../" * size,
    "dots": lambda size: "repo://a/" + "\u2025" * size,
    "marks": lambda size: "file:///" + "\u0307\u0323" * size,
    "values": lambda size: "repo://a?" + "&".join(f"p{number}=x" for number in range(size)),
    "schemes": lambda size: "view-source:" * 7 + "file:///x" + "/%2541" * size,
}


def _read(uri: str) -> object:
    try:
        return resource_uris.readings.__wrapped__(uri), resource_paths.paths.__wrapped__(uri)
    except ValueError:
        return None


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_a_uri_takes_work_in_proportion_to_its_length(shape: str) -> None:
    _read(SHAPES[shape](3))  # what is imported for the first one
    small, large = (function_calls(partial(_read, SHAPES[shape](size))) for size in (200, 800))
    assert large <= 4 * small + 100
    assert large < 60_000


@pytest.mark.parametrize("shape", SHAPES)
def test_the_readings_of_a_uri_are_so_few_that_they_can_be_judged_or_it_has_none(shape: str) -> None:
    for size in (10, 100, 1000):
        try:
            paths = resource_paths.paths(SHAPES[shape](size))
        except ValueError:
            continue
        assert sum(map(len, paths)) <= 262_144


def test_all_readings_of_a_request_have_one_budget_beyond_which_rules_apply() -> None:
    uri = SHAPES["escapes"](1500)
    settings = Settings(deny=tuple(f"{name}(/nothing/{n}/*)" for n in range(50) for name in ("Read", "resources/read")))
    rules, budget = Rules.of(settings), WorkBudget(OF_RESOURCE)
    arguments = json.dumps({"uri": uri}).encode()
    as_read = Alias("resources/read", "Read", {"file_path": "uri"}, automatic=True, uri="uri").readings(arguments)
    decisions = [rules.about(("resources/read",)).judge(arguments, budget)]
    decisions += [rules.about(("resources/read", "Read")).judge(reading, budget) for reading in as_read]
    assert any(decision is not None and "too large" in decision.reason for decision in decisions)
    with pytest.raises(BudgetExceeded):
        budget.spend(OF_RESOURCE // 4)


@pytest.mark.skipif("MUTANT_UNDER_TEST" in os.environ, reason="mutants are called through other functions")
def test_three_hundred_rules_about_other_resources_leave_nearly_all_of_the_budget() -> None:
    rules = Rules.of(Settings(deny=tuple(f"resources/read(secret{number}://x/*)" for number in range(300))))
    about, budget = rules.about(("resources/read",)), WorkBudget(OF_RESOURCE)
    arguments = b'{"uri":"repo://owner/name/contents/src/deep/er/path/of/a/file.py?ref=main"}'
    work = function_calls(lambda: about.judge(arguments, budget))
    budget.spend(OF_RESOURCE // 2)
    assert work < 15_000  # so none of their patterns is made
    assert about.judge(b'{"uri":"secret299://x/a"}', WorkBudget(OF_RESOURCE)) is not None
    assert about.judge(b'{"uri":"SECRET299:/x/%61"}', WorkBudget(OF_RESOURCE)) is not None


@pytest.mark.parametrize(
    ("rule", "uri"),
    [
        ("file://localhost/etc/*", "file:///etc/x"),
        ("demo://a%20b/*", "demo://a b/x"),
        ("demo://a/long-name/../b", "demo://a/b"),
        ("demo://caf\u00e9s/*", "demo://cafe\u0301s/x"),
        ("file:///c:/*", "file:///x"),
        ("demo://secret/*", "demo://\uff53ecret/x"),
        ("/etc/shadow", "file:///etc/%73hadow"),
        ("src/name", "../y"),
        ("resource-name", "RESOURCE-NAME"),
    ],
)
def test_no_rule_is_left_out_because_a_uri_lacks_its_word(rule: str, uri: str) -> None:
    assert _judged(Settings(deny=(f"resources/read({rule})",)), uri) is Permission.DENY


# --- what servers may take a URI for ---


@pytest.mark.parametrize(
    ("uri", "meant"),
    [
        ("etc/passwd", "file:///etc/passwd"),
        ("/etc/q/../passwd", "file:///etc/passwd"),
        ("file://SRV/q/../x/y", "file://srv/x/y"),
        ("file://SRV/q/../x/y", "file:///x/y"),
        ("file://localhost/x", "file:///x"),
        ("file://localhost/x", "file:///localhost/x"),
        ("file:///", "file://"),
        ("file:///q/../a/", "file:///a/"),
        ("file:///c:/x", "file:///C:/x"),
        ("file:///c:/x", "file:///x"),
        ("file:///c:", "file:///"),
        ("https://u@H:80/A/b", "https://h/A/b"),
        ("https://u@H:80/A/b", "https://h:80/A/b"),
        ("https://u@H", "https://h"),
        ("https://x/../H/A/b", "https://h/A/b"),
    ],
)
def test_a_uri_may_mean_another_one(uri: str, meant: str) -> None:
    assert meant in resource_uris.readings(uri).texts


@pytest.mark.parametrize(
    ("uri", "other"),
    [
        ("https://Xhost/a", "https://host/a"),
        ("https://x/../H/A/b", "https://h/a/b"),
        ("https://H/A/b", "https://h/a/b"),
        ("https://u@H/A", "https://H/A"),
        ("https://h", "https://h/"),
    ],
)
def test_a_uri_does_not_mean_any_other_one(uri: str, other: str) -> None:
    assert other not in resource_uris.readings(uri).texts


def test_the_readings_of_a_plain_uri_are_few() -> None:
    assert set(resource_uris.readings("file:///a").texts) == {"file:///a"}


@pytest.mark.parametrize(
    ("specifier", "reading", "matches"),
    [
        ("/srv/x/*", "file:///srv/x/y", True),
        ("/srv/q/../x/*", "file:///srv/x/y", True),
        ("srv/x/*", "file:///srv/x/y", False),
        ("file://localhost/x", "file:///x", True),
        ("file://localhost/x", "file:///localhost/x", False),
        ("file://srv/x", "file:///srv/x", True),
        ("file://srv/x", "file:///x", False),
        ("file://srv/q/../x", "file://srv/x", True),
        ("http://h:8080/x", "http://h:8080/x", True),
        ("http://h:8080/x", "http://h/x", False),
        ("http://u@h/x", "http://h/x", False),
    ],
)
def test_the_host_in_a_rule_is_meant(specifier: str, reading: str, matches: bool) -> None:
    assert resource_uris.matcher(specifier)(reading) is matches


@pytest.mark.parametrize(
    "uri", ["file://LOCALHOST/srv/x", "file://localhost/srv/x", "file:///srv/x", "file://other/srv/x"]
)
def test_a_file_of_this_machine_is_told_from_one_of_another(uri: str) -> None:
    here = "other" not in uri
    assert _judged(Settings(deny=("resources/read(file:///srv/x)",)), uri) is Permission.DENY
    assert _judged(Settings(deny=("resources/read(file://other/srv/x)",)), uri) is (None if here else Permission.DENY)


def test_a_rule_with_a_user_or_a_port_is_about_that_address() -> None:
    with_port = Settings(deny=("resources/read(demo://a:1/*)",))
    assert _judged(with_port, "demo://a:1/x") is Permission.DENY
    assert _judged(with_port, "demo://a/x") is None
    assert _judged(Settings(deny=("resources/read(demo://a/*)",)), "demo://me@a:1/x") is Permission.DENY


@pytest.mark.parametrize("uri", ["demo://a/\u212a", "demo://a/k", "demo://a/K", "demo://a/\uff2b"])
def test_letters_that_fold_to_the_same_are_the_same(uri: str) -> None:
    assert _judged(Settings(deny=("resources/read(demo://a/k)",)), uri) is Permission.DENY
    assert _judged(Settings(deny=("resources/read(demo://a/\u212a)",)), uri) is Permission.DENY


def test_a_rule_about_a_file_holds_for_it_with_and_without_the_name_of_this_machine() -> None:
    for pattern in ("file://localhost/srv/mine/*", "file:///srv/mine/*"):
        settings = Settings(deny=(f"resources/read({pattern})",))
        for uri in ("file:///srv/mine/a", "file://localhost/srv/mine/a"):
            assert _judged(settings, uri) is Permission.DENY
        assert _judged(settings, "file:///srv/yours/\u00e9t\u00e9") is None


def test_a_request_without_a_uri_is_none_that_a_rule_is_about() -> None:
    rules = Rules.of(Settings(deny=("resources/read(file:///srv/*)",)))
    assert rules.judge(("resources/read",), b'{"cursor":"a"}') is None
