"""Labels of one session hold at all servers that share them: what was read at one does not leave by another one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.flow.session_labels import SessionLabels
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.decision import ApprovalRequest, Comments, Decision, Proceed, RefusalCause, Refuse
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.hooks import Event, EventContext, Session
from hookproxy.model.settings import Settings
from hookproxy.policy.shared_state import Shared
from tests.support.data_flow import AwayLabels, own_group
from tests.support.proxy_rig import hook

pytestmark = pytest.mark.anyio

ANYWHERE = FlowMatch(servers=("*",))
SECRETS = Settings(
    flow_sources=(Source(ANYWHERE, ("secret",), "flow.sources[0]", secrets=True),),
    flow_sinks=(Sink(ANYWHERE, ("secret",), "flow.sinks[0]", "deny", "value", back_to_origin=True),),
)
"""A secret may go back to where it was read, and nowhere else."""

FOUND = [
    ("STRIPE_KEY=AKIA5MZXN8QRF3WBY6OE", "AKIA5MZXN8QRF3WBY6OE"),
    ("STRIPE_KEY=ghp_Xa2bC3dEf4gH5iJk6Lm7nN8oP", "ghp_Xa2bC3dEf4gH5iJk6Lm7nN8oP"),
    ("STRIPE_KEY=sk_live_4eC7aRm9Kx2bNw5pQj8sYd", "sk_live_4eC7aRm9Kx2bNw5pQj8sYd"),
]
"""As in the cases `relaybleed-*` of the interceptors working group, experimental-ext-interceptors at 4d5bad74."""


class Server:
    """One server of an agent, with the hooks of one policy."""

    def __init__(self, name: str, settings: Settings, labels: SessionLabels) -> None:
        self.name = name
        self.hooks = Hooks((), settings, name, {}, shared=Shared(labels=labels))

    def context(self, tool: str, **arguments: object) -> EventContext:
        session = Session("s", self.name, "/", "/")
        raw = json.dumps(arguments).encode()
        return EventContext(Event.PRE_TOOL_USE, session, tool, tool, arguments=raw)

    async def call(self, tool: str, **arguments: object) -> Decision:
        return (await self.hooks.run_pre_hooks(self.context(tool, **arguments), None, [])).decision

    async def read(self, text: str, tool: str = "read_file", **arguments: object) -> None:
        """A call of the tool has this result."""
        assert isinstance(await self.call(tool, **arguments), Proceed)
        output = json.dumps({"content": [{"type": "text", "text": text}]}).encode()
        await self.hooks.note_result(self.context(tool, **arguments), output, "", Comments())


def servers(settings: Settings, *names: str) -> list[Server]:
    labels = SessionLabels()
    return [Server(name, settings, labels) for name in names]


@pytest.mark.parametrize(("text", "secret"), FOUND)
async def test_a_secret_of_one_server_is_not_sent_to_another_one(text: str, secret: str) -> None:
    files, database = servers(SECRETS, "filesystem", "sqlite")
    await files.read(text, path="/workspace/.env")
    decision = await database.call("write_query", query=f"INSERT INTO notes (body) VALUES ('{secret}')")
    assert isinstance(decision, Refuse)
    assert decision.cause is RefusalCause.FLOW
    assert "what `read_file` read from `/workspace/.env` (label secret, " in decision.reason
    assert decision.reason.endswith(" to `write_query` of sqlite")


async def test_a_secret_that_was_not_read_before_may_be_sent() -> None:
    (database,) = servers(SECRETS, "sqlite")
    query = "INSERT INTO notes (body) VALUES ('ghp_Xa2bC3dEf4gH5iJk6Lm7nN8oP')"
    assert isinstance(await database.call("write_query", query=query), Proceed)


async def test_a_secret_may_be_written_back_to_where_it_was_read() -> None:
    (files,) = servers(SECRETS, "filesystem")
    await files.read("KEY=sk_live_4eC7aRm9Kx2bNw5pQj8sYd", path="/workspace/.env")
    decision = await files.call("write_file", path="/workspace/.env.bak", content="sk_live_4eC7aRm9Kx2bNw5pQj8sYd")
    assert isinstance(decision, Proceed)


async def test_other_words_of_a_file_with_a_secret_may_be_sent() -> None:
    files, database = servers(SECRETS, "filesystem", "sqlite")
    await files.read("documentation of everything\nSTRIPE_KEY=AKIA5MZXN8QRF3WBY6OE")
    assert isinstance(await database.call("write_query", query="documentation of everything"), Proceed)


async def test_sessions_know_nothing_of_each_other() -> None:
    (files,), (database,) = servers(SECRETS, "filesystem"), servers(SECRETS, "sqlite")
    await files.read("KEY=AKIA5MZXN8QRF3WBY6OE")
    assert isinstance(await database.call("write_query", query="AKIA5MZXN8QRF3WBY6OE"), Proceed)


async def test_a_chain_that_a_person_has_cleared_passes_until_more_is_read() -> None:
    settings = replace(SECRETS, flow_sinks=(replace(SECRETS.flow_sinks[0], action="ask"),))
    files, database = servers(settings, "filesystem", "sqlite")
    await files.read("KEY=AKIA5MZXN8QRF3WBY6OE")
    asking = await database.call("write_query", query="AKIA5MZXN8QRF3WBY6OE")
    assert isinstance(asking, Proceed)
    assert asking.approval_request is not None
    await database.hooks.allow_tool("write_query", asking.approval_request)
    again = await database.call("write_query", query="AKIA5MZXN8QRF3WBY6OE")
    assert again == Proceed()
    other_tool = await database.call("execute", query="AKIA5MZXN8QRF3WBY6OE")
    assert isinstance(other_tool, Proceed)
    assert other_tool.approval_request is not None
    await files.read("KEY=ghp_Xa2bC3dEf4gH5iJk6Lm7nN8oP")
    further = await database.call("write_query", query="ghp_Xa2bC3dEf4gH5iJk6Lm7nN8oP")
    assert isinstance(further, Proceed)
    assert further.approval_request is not None


async def test_an_approval_of_the_tool_for_another_reason_clears_nothing() -> None:
    settings = replace(SECRETS, ask=("write_query",), flow_sinks=(replace(SECRETS.flow_sinks[0], action="ask"),))
    files, database = servers(settings, "filesystem", "sqlite")
    asking = await database.call("write_query", query="1")
    assert isinstance(asking, Proceed)
    await database.hooks.allow_tool("write_query", asking.approval_request)
    assert await database.call("write_query", query="1") == Proceed(asked=True)
    await files.read("KEY=AKIA5MZXN8QRF3WBY6OE")
    again = await database.call("write_query", query="AKIA5MZXN8QRF3WBY6OE")
    assert isinstance(again, Proceed)
    assert again.approval_request is not None


async def test_what_a_server_says_of_a_part_of_a_result_gives_labels() -> None:
    sensitive = Source(FlowMatch(annotations=("sensitiveHint=high",)), ("private",), "flow.sources[0]")
    sink = Sink(FlowMatch(servers=("web",)), ("private",), "flow.sinks[0]", "deny")
    files, web = servers(Settings(flow_sources=(sensitive,), flow_sinks=(sink,)), "files", "web")
    await files.read("nothing special")
    assert isinstance(await web.call("post"), Proceed)
    item = {"type": "text", "text": "memo", "_meta": {"annotations": {"sensitiveHint": "high"}}}
    await files.hooks.note_result(
        files.context("read_file"), json.dumps([{"content": [item]}]).encode(), "", Comments()
    )
    assert isinstance(await web.call("post"), Refuse)


async def test_without_the_store_no_sink_and_no_hook_that_reads_labels_gets_a_call() -> None:
    shared = Shared(labels=AwayLabels())
    sink = Settings(flow_sinks=(Sink(FlowMatch(tools=("post",)), ("private",), "flow.sinks[0]"),))
    without_hooks = Hooks((), sink, "web", {}, shared=shared)
    context = Server("web", sink, SessionLabels()).context
    assert isinstance((await without_hooks.run_pre_hooks(context("get"), None, [])).decision, Proceed)
    refused = (await without_hooks.run_pre_hooks(context("post"), None, [])).decision
    assert isinstance(refused, Refuse)
    assert refused.cause is RefusalCause.STORE_AWAY
    with_hooks = Hooks((own_group(hook("true")),), sink, "web", {}, shared=shared)
    refused = (await with_hooks.run_pre_hooks(context("get"), None, [])).decision
    assert isinstance(refused, Refuse)
    assert refused.cause is RefusalCause.STORE_AWAY


async def test_the_administrators_sinks_judge_by_labels_of_the_user_and_only_their_own_approval_clears_them() -> None:
    posts = FlowMatch(tools=("post",))
    own = Settings(
        flow_sources=(Source(FlowMatch(tools=("get",)), ("private",), "flow.sources[0]"),),
        flow_sinks=(Sink(posts, ("private",), "flow.sinks[0]"),),
        managed=Settings(flow_sinks=(Sink(posts, ("private",), "flow.sinks[0]"),)),
    )
    (web,) = servers(own, "web")
    await web.read("memo", "get")
    asking = await web.call("post")
    assert isinstance(asking, Proceed)
    assert asking.approval_request is not None
    assert asking.approval_request.managed
    assert [chain.managed for chain in asking.approval_request.chains] == [False, True]
    of_user = replace(asking.approval_request, chains=asking.approval_request.chains[:1], managed=False)
    await web.hooks.allow_tool("post", of_user)
    again = await web.call("post")
    assert isinstance(again, Proceed)
    assert again.approval_request is not None
    assert [chain.managed for chain in again.approval_request.chains] == [True]
    await web.hooks.allow_tool("post", again.approval_request)
    assert await web.call("post") == Proceed()


async def test_a_comment_of_one_sink_comes_with_the_question_of_another_one() -> None:
    settings = replace(
        SECRETS,
        flow_sinks=(
            replace(SECRETS.flow_sinks[0], action="ask"),
            replace(SECRETS.flow_sinks[0], action="comment", place="flow.sinks[1]"),
        ),
    )
    files, database = servers(settings, "filesystem", "sqlite")
    await files.read("KEY=AKIA5MZXN8QRF3WBY6OE")
    asking = await database.call("write_query", query="AKIA5MZXN8QRF3WBY6OE")
    assert isinstance(asking, Proceed)
    assert asking.approval_request is not None
    assert len(asking.approval_request.chains) == 1
    assert [chain.sink for chain in asking.chains] == [settings.flow_sinks[1].key]
    (comment,) = asking.feedback
    assert "what `read_file` read" in comment


async def ask_to_send(server: Server, secret: str) -> ApprovalRequest:
    asking = await server.call("write_query", query=secret)
    assert isinstance(asking, Proceed)
    assert asking.approval_request is not None
    return asking.approval_request


@pytest.mark.parametrize("later", [{"labels": ("secret", "private")}, {"action": "deny"}])
async def test_what_a_person_has_cleared_clears_no_other_sink_that_has_its_name_after_a_reload(
    later: dict[str, Any],
) -> None:
    source, sink = SECRETS.flow_sources[0], replace(SECRETS.flow_sinks[0], action="ask")
    settings = replace(SECRETS, flow_sources=(replace(source, labels=("secret", "private")),), flow_sinks=(sink,))
    files, database = servers(settings, "filesystem", "sqlite")
    await files.read("KEY=AKIA5MZXN8QRF3WBY6OE")
    await database.hooks.allow_tool("write_query", await ask_to_send(database, "AKIA5MZXN8QRF3WBY6OE"))
    assert await database.call("write_query", query="AKIA5MZXN8QRF3WBY6OE") == Proceed()
    flow = database.hooks.flow
    assert flow is not None
    assert isinstance(flow.labels, SessionLabels)
    reloaded = replace(settings, flow_sinks=(replace(sink, **later),))
    database = Server("sqlite", reloaded, flow.labels)
    assert await database.call("write_query", query="AKIA5MZXN8QRF3WBY6OE") != Proceed()


async def test_own_tools_are_no_server_to_which_something_may_go_back() -> None:
    sink = replace(SECRETS.flow_sinks[0], back_to_origin=True)
    files, own = servers(replace(SECRETS, flow_sinks=(sink,)), "", "")
    await files.read("KEY=AKIA5MZXN8QRF3WBY6OE")
    assert isinstance(await own.call("write_query", query="AKIA5MZXN8QRF3WBY6OE"), Refuse)
