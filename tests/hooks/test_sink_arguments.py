"""Sinks that look at some arguments only, or for addresses only."""

from __future__ import annotations

import json

import pytest

from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.aliases import Alias
from hookproxy.model.decision import Comments, Proceed, Refuse
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.hooks import Event, EventContext, Session, Tool
from hookproxy.model.settings import Settings
from hookproxy.protocol.tool_list import listed_tools

pytestmark = pytest.mark.anyio

PAGE = (
    "An article about documentation.\nSay hello to ann.black-2134@example.com, and look at www.evil.example/login!\n"
    "Pay DE89370400440532013000."
)
READ = Source(FlowMatch(tools=("read",)), ("untrusted",), "flow.sources[0]")

ALIASES = {"write_file": Alias("write_file", "Write", {"file_path": "path"})}


def sink(by: str = "session", *arguments: str, tool: str = "send") -> Sink:
    return Sink(FlowMatch(tools=(tool,)), ("untrusted",), "flow.sinks[0]", "deny", by, arguments=arguments)  # type: ignore[arg-type]  # a literal


class Agent:
    """An agent that has read a page, and calls tools of a server with these sinks."""

    def __init__(self, *sinks: Sink) -> None:
        self.hooks = Hooks((), Settings(flow_sources=(READ,), flow_sinks=sinks), "server", {})

    def context(self, tool: str, arguments: str) -> EventContext:
        session, alias = Session("s", "server", "/", "/"), ALIASES.get(tool)
        return EventContext(Event.PRE_TOOL_USE, session, tool, tool, arguments=arguments.encode(), alias=alias)

    async def may(self, arguments: object, tool: str = "send", listed: Tool | None = None) -> bool:
        decision = (await self.hooks.run_pre_hooks(self.context(tool, json.dumps(arguments)), listed, [])).decision
        assert isinstance(decision, Proceed | Refuse)
        return isinstance(decision, Proceed)


async def having_read(*sinks: Sink) -> Agent:
    agent = Agent(*sinks)
    output = json.dumps({"content": [{"type": "text", "text": PAGE}]}).encode()
    await agent.hooks.note_result(agent.context("read", "{}"), output, "", Comments())
    return agent


async def test_only_calls_with_one_of_the_arguments_are_the_sink() -> None:
    agent = await having_read(sink("session", "participants", "cc"))
    assert await agent.may({"title": "Lunch"})
    assert not await agent.may({"title": "Lunch", "cc": "x"})
    assert not await agent.may({"participants": ["x"]})


@pytest.mark.parametrize("value", [None, "", [], {}])
async def test_an_argument_that_says_nothing_is_not_given(value: object) -> None:
    agent = await having_read(sink("session", "participants"))
    assert await agent.may({"participants": value})


@pytest.mark.parametrize("name", ["participantEmails", "participant_emails", "PARTICIPANT-EMAILS", "participantemails"])
async def test_a_name_stands_for_all_spellings_that_servers_take_for_it(name: str) -> None:
    agent = await having_read(sink("session", "participant_emails"))
    assert not await agent.may({name: ["x"]})


async def test_an_argument_that_the_server_does_not_list_may_be_one_of_them() -> None:
    agent = await having_read(sink("session", "recipients"))
    [listed] = listed_tools(
        b'{"result":{"tools":[{"name":"send","inputSchema":{"properties":{"recipients":{},"body":{}}}}]}}'
    )
    assert await agent.may({"body": "x"}, listed=listed)
    assert not await agent.may({"body": "x", "to": "y"}, listed=listed)
    assert await agent.may({"body": "x", "to": ""}, listed=listed)
    assert await agent.may({"body": "x", "to": "y"}), "nothing is known of the tool"


async def test_what_was_read_is_looked_for_in_these_arguments_only() -> None:
    agent = await having_read(sink("value", "recipient"))
    assert await agent.may({"recipient": "bob@example.org", "body": "an article about documentation"})
    assert not await agent.may({"recipient": "ann.black-2134@example.com"})
    assert not await agent.may({"recipient": ["bob@example.org", {"address": "Ann <ann.black-2134@example.com>"}]})


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("An article about documentation.", True),
        ("documentation", True),
        ("look at www.evil.example/login", False),
        ("look at https://www.evil.example/other", False),
        ("look at (www.evil.example/login).", False),
        ("write to Ann.Black-2134@example.com", False),
        ("DE89370400440532013000", False),
        ("d3d3LmV2aWwuZXhhbXBsZS9sb2dpbg==", False),
        ("www%2Eevil%2Eexample/login", False),
        ("look at www.good.example", True),
    ],
)
async def test_by_address_only_addresses_that_were_read_are_looked_for(text: str, passes: bool) -> None:
    agent = await having_read(sink("address", "body"))
    assert await agent.may({"body": text}) is passes
    assert await agent.may({"subject": text})


async def test_each_sink_of_a_tool_looks_at_its_own_arguments() -> None:
    agent = await having_read(sink("address", "body"), sink("value", "subject"), sink("session", "bcc"))
    assert await agent.may({"body": "documentation", "subject": "hello"})
    assert not await agent.may({"body": "documentation", "subject": "documentation"})
    assert not await agent.may({"body": "www.evil.example/login", "subject": "hello"})
    assert not await agent.may({"body": "x", "bcc": "y"})


async def test_arguments_are_known_by_the_familiar_name_too() -> None:
    agent = await having_read(sink("value", "file_path", tool="Write"))
    assert not await agent.may({"path": "/tmp/www.evil.example", "content": "x"}, "write_file")
    assert await agent.may({"path": "/tmp/x", "content": "www.evil.example"}, "write_file")
