"""The table `[flow]` is read; an entry that says nothing, or cannot be used, stops start-up with its key and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.gateway import load_gateway
from hookproxy.config.load import load
from hookproxy.model.errors import ConfigError
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.settings import Settings


def settings(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "hookproxy.toml"
    file.write_text(text)
    return load(str(file), [], None, {}, str(tmp_path)).settings


def test_sources_and_sinks_are_read(tmp_path: Path) -> None:
    read = settings(
        tmp_path,
        """
[flow]
seconds = 60
[[flow.sources]]
tool = "Read"
path = ["~/.ssh/**", "**/.env"]
labels = ["secret"]
[[flow.sinks]]
server = "web"
annotation = "!readOnlyHint"
labels = ["secret", "team-x"]
action = "deny"
by = "value"
back_to_origin = true
""",
    )
    at = f"{tmp_path}/hookproxy.toml"
    source = FlowMatch(tools=("Read",), paths=("~/.ssh/**", "**/.env"))
    sink = FlowMatch(servers=("web",), annotations=("!readOnlyHint",))
    assert read.flow_sources == (
        Source(source, ("secret",), "flow.sources[0]", seconds=60.0, place=f"{at}:4: flow.sources[0]"),
    )
    labels, place = ("secret", "team-x"), f"{at}:8: flow.sinks[0]"
    assert read.flow_sinks == (Sink(sink, labels, "flow.sinks[0]", "deny", "value", back_to_origin=True, place=place),)


@pytest.mark.parametrize(
    ("text", "names"), [('"to"', ("to",)), ('["to", "cc"]', ("to", "cc"))], ids=["a text", "a list"]
)
def test_a_sink_may_look_at_some_arguments_for_addresses(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    sink = f'[[flow.sinks]]\ntool = "send"\nlabels = ["x"]\nby = "address"\narguments = {text}\n'
    [read] = settings(tmp_path, sink).flow_sinks
    assert (read.by, read.arguments) == ("address", names)


def test_a_sink_does_not_look_at_no_argument(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"flow\.sinks\[0\]\.arguments"):
        settings(tmp_path, '[[flow.sinks]]\ntool = "send"\nlabels = ["x"]\narguments = []\n')


@pytest.mark.parametrize(
    ("entry", "where", "why"),
    [
        ('labels = ["x"]', "flow.sources[0]", "says nothing of what it is about"),
        ('tool = "Read(x)"\nlabels = ["x"]', "flow.sources[0].tool", "has parentheses"),
        ('method = "read"\nlabels = ["x"]', "flow.sources[0].method", "is not a method"),
        ('method = "resources/reed"\nlabels = ["x"]', "flow.sources[0].method", "is not a method that is judged"),
        ('method = "tools/call"\nlabels = ["x"]', "flow.sources[0].method", "is not a method that is judged"),
        ('host = "https://example.com/"\nlabels = ["x"]', "flow.sources[0].host", "is not a domain"),
        ('host = "ann@example.com"\nlabels = ["x"]', "flow.sources[0].host", "is not a domain"),
        ('host = "example.com:443"\nlabels = ["x"]', "flow.sources[0].host", "is not a domain"),
        ('tool = ""\nlabels = ["x"]', "flow.sources[0].tool: is empty", ""),
        ('tool = []\nlabels = ["x"]', "flow.sources[0].tool: ", ""),
        ('tool = "a|b"\nlabels = ["x"]', "flow.sources[0]", "has no meaning in a tool's name"),
        ('tool = "a"\nlabels = []', "flow.sources[0].labels", ""),
        ('tool = "a"\nlabels = ["a b"]', "flow.sources[0].labels[0]", ""),
        ('tool = "a"', "flow.sources[0].labels", ""),
    ],
)
def test_an_entry_that_cannot_be_used_is_an_error_with_its_key(
    tmp_path: Path, entry: str, where: str, why: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(tmp_path, f"[[flow.sources]]\n{entry}\n")
    assert where in raised.value.message
    assert why in raised.value.message
    assert raised.value.hint


def test_a_gateway_has_entries_for_all_servers_and_for_one(tmp_path: Path) -> None:
    sink = '[[{}flow.sinks]]\ntool = "{}"\nlabels = ["x"]\n'
    server = '[servers.{}]\ncommand = ["cat"]\n'
    text = sink.format("", "all") + server.format("a") + sink.format("servers.a.", "one") + server.format("b")
    (tmp_path / "gateway.toml").write_text(text)
    config = load_gateway("gateway.toml", {}, str(tmp_path))
    sinks = {name: server.loaded.settings.flow_sinks for name, server in config.servers.items()}
    assert [sink.match.tools for sink in sinks["a"]] == [("all",), ("one",)]
    assert [sink.key for sink in sinks["a"]] == ["flow.sinks[0]", "servers.a.flow.sinks[0]"]
    assert [sink.match.tools for sink in sinks["b"]] == [("all",)]


def test_a_key_that_lacks_a_letter_is_not_taken_for_that_of_another_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(tmp_path, '[[flow.source]]\ntool = "a"\nlabels = ["x"]\n')
    assert raised.value.hint == "did you mean 'sources'?"
