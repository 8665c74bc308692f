"""What the entries of `[flow]` are about is said, and which of them decide nothing."""

from __future__ import annotations

from hookproxy.checks.flow_entries import (
    covered,
    labels_of_nobody,
    labels_without_sink,
    misspelled_annotations,
    summary,
)
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.hooks import Tool
from hookproxy.model.settings import Settings
from tests.support.data_flow import own_group

READ = Source(FlowMatch(tools=("read_file",), paths=("**/.env",)), ("secret",), "flow.sources[0]", place="f:1: sources")
SEND = Sink(FlowMatch(tools=("send_*",)), ("secret",), "flow.sinks[0]", place="f:2: sinks")
TOOLS = [Tool("read_file"), Tool("send_mail"), Tool("list")]


def settings(source: Source = READ, sink: Sink = SEND) -> Settings:
    return Settings(flow_sources=(source,), flow_sinks=(sink,))


def sink(match: FlowMatch, *labels: str) -> Sink:
    return Sink(match, labels or ("secret",), "flow.sinks[0]", place="f:2: sinks")


def test_an_entry_has_the_tools_of_the_server_that_it_may_be_about() -> None:
    of_source, of_sink = covered(settings(), (), "files", TOOLS, (), "")
    assert (of_source.kind, of_source.tools) == ("source", ("read_file",))
    assert (of_sink.kind, of_sink.tools) == ("sink", ("send_mail",))


def test_an_entry_for_another_server_has_none_and_is_no_mistake() -> None:
    _, of_sink = covered(settings(sink=sink(FlowMatch(servers=("mail",), tools=("send",)))), (), "files", TOOLS, (), "")
    assert (of_sink.tools, of_sink.idle) == ((), ())


def test_an_entry_without_tools_is_about_all_and_the_methods() -> None:
    _, of_sink = covered(settings(sink=sink(FlowMatch(servers=("f*",)))), (), "files", TOOLS, (), "")
    assert {"read_file", "list", "resources/read", "sampling/createMessage"} <= set(of_sink.tools)


def test_a_misspelled_tool_is_named_with_what_may_be_meant() -> None:
    _, of_sink = covered(settings(sink=sink(FlowMatch(tools=("send_mial",)))), (), "files", TOOLS, (), "")
    (rule,) = of_sink.idle
    assert (rule.text, rule.near) == ("send_mial", "did you mean 'send_mail'?")


def test_a_tool_that_another_server_may_have_is_no_mistake() -> None:
    _, of_sink = covered(settings(sink=sink(FlowMatch(tools=("tweet",)))), (), "files", TOOLS, (), "")
    assert of_sink.idle == ()


def test_a_label_that_no_source_gives_is_named_unless_a_managed_hook_may_add_it() -> None:
    wrong = settings(sink=sink(FlowMatch(tools=("send",)), "secret", "secrets"))
    (text,) = labels_of_nobody(wrong, ())
    assert text == "f:2: sinks: no source gives the label 'secrets' (did you mean 'secret'?)"
    assert not list(labels_of_nobody(wrong, (own_group(),)))


def test_a_label_that_no_sink_refuses_is_named() -> None:
    source = Source(READ.match, ("secret", "private"), "flow.sources[0]", place="f:1: sources")
    assert list(labels_without_sink(settings(source))) == ["f:1: sources: no sink refuses the label 'private'"]


def test_a_misspelled_annotation_is_named() -> None:
    wrong = settings(sink=sink(FlowMatch(annotations=("!readOnly", "openWorldHint", "x=y", "ours"))))
    assert list(misspelled_annotations(wrong)) == [
        "f:2: sinks: MCP has no annotation 'readOnly' (did you mean 'readOnlyHint'?)"
    ]


def test_labels_of_the_administrator_and_the_user_count_together() -> None:
    together = Settings(flow_sinks=(SEND,), managed=Settings(flow_sources=(READ,)))
    assert not list(labels_of_nobody(together, ()))
    assert not list(labels_without_sink(together))


def test_what_an_entry_says_is_said_in_words() -> None:
    assert summary(READ) == "tool read_file; path **/.env: what it returns is secret"
    by_value = Sink(FlowMatch(servers=("*",)), ("a", "b"), "k", "deny", "value", back_to_origin=True)
    assert summary(by_value) == "server *: it does not get a, b, by value, but for what comes from the same server"
