"""Patterns of gitignore on the paths of calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.policy.path_rules import PathPattern, allows


def pattern(text: str, base: str = "/repo", *, fold: bool = True) -> PathPattern:
    return PathPattern.of((base,), text, ("/repo", "/work"), "/home/u", fold=fold)


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("./.env", ["/repo/.env", ".env", "./.env", "a/../.env", "/repo/./.env", "/a/../repo/.env"], ["/repo/a/.env"]),
        (".env", [".env", "a/b/.env", "/repo/a/.env"], ["/other/.env", ".env.local", "/home/u/.env"]),
        ("*.env", ["x.env", "a/x.env"], ["x.envy"]),
        ("secrets/**", ["secrets", "secrets/a/b", "/repo/secrets/x"], ["a/secrets/x", "/other/secrets/x", "secretsx"]),
        ("secrets/", ["secrets/a", "a/secrets/b"], ["secretsx"]),
        ("/src/*.ts", ["src/a.ts", "/repo/src/a.ts"], ["src/b/a.ts", "/src/a.ts"]),
        ("src/**/*.ts", ["src/a.ts", "src/b/c/a.ts"], ["a.ts", "src/a.js"]),
        ("**/.ssh/**", [".ssh/id", "a/b/.ssh/id", "/repo/.ssh"], ["/home/u/.ssh/id"]),
        ("[ab].txt", ["a.txt", "c/b.txt"], ["c.txt"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("../other/x", ["/other/x", "../other/x"], ["other/x", "/repo/other/x"]),
        ("../x", ["/x", "../x"], ["x"]),
        ("a/../b/c", ["b/c"], ["a/b/c"]),
        ("caf\u00e9", ["cafe\u0301", "CAF\u00c9"], ["cafe"]),
        ("**", ["a", "/repo", "a/b"], ["/other"]),
    ],
)  # fmt: skip
def test_a_pattern_matches_paths_below_its_folder(text: str, matching: list[str], others: list[str]) -> None:
    one = pattern(text)
    assert [path for path in matching if not one.may_match(path)] == []
    assert [path for path in others if one.may_match(path)] == []


@pytest.mark.parametrize(
    "path",
    [
        "~/.ssh/id", "/home/u/.ssh/id", "/HOME/U/.SSH/ID", " ~/.ssh/id ", "file:///home/u/.ssh/id",
        "file:/home/u/%2essh/id", "/home/u/x/../.ssh/id", "//home/u/.ssh/id", "\\home\\u\\.ssh\\id",
        "/home//u/.ssh//id", "../home/u/.ssh/id",
    ],
)  # fmt: skip
def test_every_spelling_of_a_denied_path_matches(path: str) -> None:
    assert pattern("/.ssh/**", "/home/u").may_match(path)


@pytest.mark.parametrize("path", ["/" + "a" * 5000, "x\0y", "$HOME/x", "${HOME}/x", "%USERPROFILE%\\x", "~root/x"])
def test_a_path_that_only_the_server_knows_may_match(path: str) -> None:
    assert pattern("/other").may_match(path)


def test_a_pattern_matches_below_its_folder_with_and_without_links() -> None:
    one = PathPattern.of(("/link", "/real"), "x", ("/link",), "/home/u", fold=True)
    assert all(map(one.may_match, ("/link/x", "/real/x", "x")))


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/repo/src/a", True),
        ("/repo/src", False),
        ("/repo/SRC/a", False),
        ("src/a", False),  # it may start from /work
        ("/repo/src/../x", False),
        ("/repo/src/%2e%2e/x", False),
        ("/repo/src\\..\\x", False),
        (" /repo/src/a", False),
        ("file:/repo/src/a", False),
        ("/repo/src/a\0b", False),
    ],
)
def test_an_allow_rule_covers_only_paths_without_doubt(path: str, allowed: bool) -> None:
    assert pattern("src/**", fold=False).must_match(path) is allowed


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (b'{"file_path":"/repo/src/a","content":"/etc/passwd","replace_all":true}', True),
        (b'{"file_path":"/repo/src/a","destination":"/etc"}', False),
        (b'{"file_path":"/repo/src/a","more":["/etc"]}', False),
        (b'{"file_path":["/repo/src/a"]}', False),
        (b'{"path":"/repo/src/a"}', False),
        (b"[]", False),
        (b'{"file_path":"/repo/src/a","edits":[{"old_string":"a","new_string":"/etc/x","replace_all":true}]}', True),
        (b'{"file_path":"/repo/src/a","edits":[{"file_path":"/etc/x","new_string":""}]}', False),
        (b'{"file_path":"/repo/src/a","old_string":{"file_path":"/etc/x"}}', False),
    ],
)
def test_an_allow_rule_needs_the_path_and_no_other_text(arguments: bytes, allowed: bool) -> None:
    assert allows(pattern("src/**", fold=False), "file_path", arguments) is allowed


names = st.text("ab*?[]!.", min_size=1, max_size=4)


@given(text=st.lists(names | st.just("**"), max_size=5).map("/".join), path=st.lists(names, max_size=6).map("/".join))
def test_any_pattern_can_be_tried_on_any_path(text: str, path: str) -> None:
    strict, lax = pattern(text, fold=False), pattern(text)
    if strict.must_match("/repo/" + path):
        assert lax.may_match("/repo/" + path)


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("/x", ["x", "/repo/x", "/repo/x/y"], ["a/x", "/repo/a/x", "/x"]),
        (".ENV", [".env", "a/.Env"], ["env"]),
        ("[^a].txt", ["b.txt", "c/b.txt"], ["a.txt"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
    ],
)
def test_a_pattern_of_one_name(text: str, matching: list[str], others: list[str]) -> None:
    assert [path for path in (*matching, *others) if pattern(text).may_match(path)] == matching


def test_the_case_of_the_folder_that_a_pattern_starts_from_does_not_matter() -> None:
    assert pattern(".env", "/Repo").may_match("/repo/.env")
    assert pattern(".env", "/repo").may_match("/REPO/.env")


def test_the_home_folder_is_one_alone_and_an_absolute_path_needs_no_folder() -> None:
    assert pattern("**", "/home/u").may_match("~")
    assert pattern("**", "/home/u").may_match("~/x")
    assert PathPattern.of(("/",), ".env", (), "/home/u", fold=True).may_match("/x/.env")


def test_an_allow_rule_for_what_is_in_a_folder_is_not_one_for_the_folder() -> None:
    inside = PathPattern.of(("/repo",), "a/b/**", ("/repo",), "/home/u", fold=False)
    assert inside.must_match("a/b/c")
    assert not inside.must_match("a/b")
    everything = PathPattern.of(("/repo",), "**", ("/repo",), "/home/u", fold=False)
    assert not everything.must_match(".")


def test_no_allow_rule_covers_a_path_with_a_way_up_or_a_call_with_an_object() -> None:
    everything = PathPattern.of(("/repo",), "**", ("/repo",), "/home/u", fold=False)
    assert not everything.must_match("a/../b")
    assert allows(everything, "path", b'{"path":"a","limit":1,"x":2}')
    assert not allows(everything, "path", b'{"path":"a","x":{}}')
