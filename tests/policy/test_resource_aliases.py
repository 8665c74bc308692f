"""The names under which guards and rules of agents know requests about resources."""

from __future__ import annotations

import pytest

from hookproxy.jsonrpc.raw_json import Unreadable
from hookproxy.model.aliases import Alias
from hookproxy.policy import resource_aliases

READ = Alias("resources/read", "Read", {"file_path": "uri"}, automatic=True, uri="uri")
TOOL = Alias("resources/read", "ReadMcpResourceTool", automatic=True, server="files")


@pytest.mark.parametrize(
    ("method", "aliases"),
    [
        ("resources/list", (Alias("resources/list", "ListMcpResourcesTool", automatic=True, server="files"),)),
        ("resources/read", (TOOL, READ)),
        (
            "resources/subscribe",
            (Alias("resources/subscribe", "Read", {"file_path": "uri"}, automatic=True, uri="uri"),),
        ),
        ("prompts/get", ()),
        ("tools/call", ()),
        ("RESOURCES/READ", ()),
    ],
)
def test_a_method_has_the_names_that_agents_have_for_it(method: str, aliases: tuple[Alias, ...]) -> None:
    assert resource_aliases.of_method(method, "files") == aliases


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (b'{"uri":"file:///a/.env"}', ["ReadMcpResourceTool", "Read"]),
        (b'{"uri":"notes://a/.env"}', ["ReadMcpResourceTool", "Read"]),
        (b'{"uri":""}', ["ReadMcpResourceTool"]),
        (b'{"uri":7}', ["ReadMcpResourceTool"]),
        (b"{}", ["ReadMcpResourceTool"]),
        (b'{"URI":"file:///a"}', ["ReadMcpResourceTool"]),
    ],
)
def test_a_request_reads_a_file_only_if_its_uri_has_a_path(arguments: bytes, names: list[str]) -> None:
    found = resource_aliases.for_request((TOOL, READ), arguments)
    assert [alias.name for alias in found] == names


@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
def test_a_uri_that_may_mean_anything_is_unreadable(method: str) -> None:
    uri = b"file:///%" + b"25" * 8 + b"65"  # encoded again and again
    with pytest.raises(Unreadable):
        resource_aliases.check(method, b'{"uri":"' + uri + b'"}')
    resource_aliases.check("resources/list", b'{"uri":"' + uri + b'"}')
    resource_aliases.check(method, b'{"uri":"file:///a"}')
