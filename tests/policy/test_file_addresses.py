"""The folders that `file:` addresses of roots may mean: each reading counts, and an unclear one means none."""

from __future__ import annotations

import pytest

from hookproxy.policy.file_addresses import meant_paths

LONGEST = 4096


@pytest.mark.parametrize(
    ("address", "paths"),
    [
        ("file:///a/b", {"/a/b"}),
        ("FILE:///a", {"/a"}),
        ("file:/a", {"/a"}),
        ("file://localhost/a", {"/a"}),
        ("file://LOCALHOST/a", {"/a"}),
        ("file:///a%20b", {"/a b"}),
        ("file:///a/%2e%2e/b", {"/a/%2e%2e/b", "/a/../b"}),
        ("file:///a%2Fb", {"/a%2Fb", "/a/b"}),
        ("file:///a%5cb", {"/a%5cb", "/a\\b", "/a/b"}),
        ("file:///a%5Cb", {"/a%5Cb", "/a\\b", "/a/b"}),
        ("file:///a%252e", {"/a%252e", "/a%2e", "/a."}),
        ("file:\\a", {"\\a", "/a"}),
        ("file:///a\\b", {"/a\\b", "/a/b"}),
        ("file:///a/../b", {"/a/../b"}),
        ("file:///%C3%A4", {"/ä"}),
    ],
)
def test_an_address_means_each_path_that_some_reader_finds(address: str, paths: set[str]) -> None:
    assert meant_paths(address) == paths


@pytest.mark.parametrize(
    "address",
    [
        "",
        "/a",
        "http:///a",
        "file:a",
        "file://server/a",
        "file:///a?b",
        "file:///a#b",
        " file:///a",
        "file:///a ",
        "file:///a\n",
        "file:///a\x00b",
        "file:///a%00b",
        "file:///a%0Ab",
        "file:///a%252500b",
        "file:///%25252565",
        "file:///%FF",
        "file:///" + "a" * (LONGEST - 7),
    ],
)
def test_an_address_that_is_unclear_or_elsewhere_means_no_path(address: str) -> None:
    assert meant_paths(address) == frozenset()


def test_the_longest_path_of_a_system_is_a_path() -> None:
    address = "file:///" + "a" * (LONGEST - 8)
    assert meant_paths(address) == {address.removeprefix("file://")}


@pytest.mark.parametrize(("escape", "decodings"), [("%65", 1), ("%2565", 2), ("%252565", 3)])
def test_what_a_reader_may_decode_twice_is_decoded(escape: str, decodings: int) -> None:
    paths = meant_paths(f"file:///{escape}")
    assert bool(paths) is (decodings < 3)
    assert not paths or "/e" in paths
