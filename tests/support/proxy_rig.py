"""A proxy inside the test's own event loop, over real pipes: the test is both the agent and the server.

Tests that use it run in a DirectLoop: `anyio_backend` is overridden with DIRECT_LOOP.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from hookproxy.audit.log import Audit
from hookproxy.dialects.dialect import Dialect, Effect, Group, HookList
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared import input
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.hooks import (
    Document,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Order,
    Permission,
    Session,
    Verdict,
)
from hookproxy.model.settings import Settings, ToolNames
from hookproxy.policy import matchers
from hookproxy.session.hidden_secrets import HiddenSecrets
from hookproxy.session.proxy import Proxy
from hookproxy.transports.event_loop import new_loop
from hookproxy.transports.pipe import open_channel

DIRECT_LOOP: Final = ("asyncio", {"loop_factory": new_loop})
TIMEOUT: Final = 30.0  # seconds until a test gives up waiting; generous, because other tests run at the same time
SESSION: Final = Session(id="session", server="files", cwd="/", project_dir="/")

Json = dict[str, Any]


def hook(shell: str, event: Event = Event.PRE_TOOL_USE, matcher: str = "") -> HookSpec:
    """A hook of the claude dialect that runs a command line; its matcher is tried on the bare name."""
    return HookSpec(
        dialect="claude",
        source=f"hooks.json: {event}",
        event=event,
        label="guard",
        shell=shell,
        matcher=matcher,
        matches=matchers.claude_matcher(matcher),
        timeout=TIMEOUT,
    )


def group(*hooks: HookSpec) -> Group:
    return Group(DIALECTS["claude"], "hooks.json", hooks, ToolNames.BARE)


def _read(spec: HookSpec, result: HookResult) -> Verdict:
    output = json.loads(result.stdout or b"{}")
    for name in output.keys() & {"arguments", "replacement", "content", "meta"}:
        output[name] = json.dumps(output[name]).encode()
    for name in output.keys() & {"feedback", "messages", "allows"}:
        output[name] = tuple(output[name])
    if "permission" in output:
        output["permission"] = Permission[output["permission"].upper()]
    failure = f"exited with status {result.code}" if result.code else ""
    return replace(Verdict(**output), failure=failure) if failure else Verdict(**output)


def _write(spec: HookSpec, context: EventContext) -> Document:
    hook_input = {
        "event": context.event,
        "tool": context.tool_name,
        "arguments": json.loads(context.arguments),
        "by": context.trigger,
        "message": context.message,
        "content": json.loads((context.elicitation and context.elicitation.content) or b"null"),
        "id": context.request_id,
        "meta": json.loads(context.meta or b"null"),
        "text": input.result_text(context.outcome) if context.outcome else "",
    }
    return Document(json.dumps(hook_input).encode() + b"\n", {})


STUB: Final = Dialect(
    name="stub",
    described_by="tests: a hook prints the members of its verdict as JSON",
    events={event.value: event for event in Event},
    unavailable={},
    output_fields={
        **dict.fromkeys(Verdict.__struct_fields__, Effect.NONE),
        "permission": Effect.DECIDES,
        "action": Effect.ANSWERS_ELICITATION,
    },
    order=Order.SERIAL,
    default_timeout=TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=lambda _file: HookList(()),
    write_input=_write,
    read_output=_read,
)
"""A dialect whose hooks can print every member of a verdict."""


def stub(event: Event, shell: str = "", **verdict: object) -> HookSpec:
    """A hook of the dialect STUB: it runs `shell`, or prints the verdict."""
    spec = hook(shell or f"printf %s {shlex.quote(json.dumps(verdict))}", event)
    return replace(spec, dialect="stub", source=f"stub.json: {event}", label="stub")


def stub_group(*hooks: HookSpec, order: Order = Order.SERIAL, last_answer_counts: bool = False) -> Group:
    dialect = replace(STUB, order=order, last_answer_counts=last_answer_counts)
    return Group(dialect, "stub.json", hooks, ToolNames.BARE)


class Peer:
    """One peer's ends of its two pipes, and what it has read so far."""

    def __init__(self) -> None:
        self.theirs_in, self.to = os.pipe()
        self.source, self.theirs_out = os.pipe()
        os.set_blocking(self.to, False)
        os.set_blocking(self.source, False)
        self.partial = bytearray()

    async def send(self, *pieces: bytes) -> None:
        with anyio.fail_after(TIMEOUT):
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    try:
                        rest = rest[os.write(self.to, rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(self.to)

    async def deliver(self, piece: bytes) -> None:
        """Send it, and wait until the proxy has read and handled all of it."""
        with anyio.fail_after(TIMEOUT):
            await self.send(piece)
            while fcntl.ioctl(self.to, termios.FIONREAD, bytes(4)) != bytes(4):
                await anyio.lowlevel.checkpoint()

    async def line(self) -> bytes:
        """The next line, with its end; what is left, perhaps nothing, at the end of output."""
        with anyio.fail_after(TIMEOUT):
            while (end := self.partial.find(b"\n") + 1) == 0:
                if not await self.read():
                    end = len(self.partial)
                    break
            line = bytes(self.partial[:end])
            del self.partial[:end]
            return line

    async def message(self) -> Json:
        message: Json = json.loads(await self.line())
        return message

    async def read(self) -> bytes:
        """One piece more, nothing at the end of output; it is kept as well."""
        while True:
            try:
                piece = os.read(self.source, 1 << 20)
            except BlockingIOError:
                await anyio.wait_readable(self.source)
                continue
            self.partial += piece
            return piece

    async def rest(self) -> bytes:
        """All that is still to come, to the end of output."""
        with anyio.fail_after(TIMEOUT):
            while await self.read():
                pass
        rest = bytes(self.partial)
        self.partial.clear()
        return rest

    def stop_writing(self) -> None:
        """Send nothing more; what comes is still read."""
        if self.to >= 0:
            os.close(self.to)
            self.to = -1

    def stop_reading(self) -> None:
        """Read nothing more."""
        if self.source >= 0:
            os.close(self.source)
            self.source = -1

    def close(self) -> None:
        self.stop_writing()
        self.stop_reading()


class Rig:
    """A proxy at work between `agent` and `server`, the test's ends; `reports` is what was reported to people."""

    def __init__(self, groups: Sequence[Group], settings: Settings, secrets: HiddenSecrets | None = None) -> None:
        self.agent = Peer()
        self.server = Peer()
        self.reports: list[str] = []
        self.agent_ended = anyio.Event()
        self.server_ended = anyio.Event()
        self.proxy = Proxy(
            open_channel(self.agent.theirs_in, self.agent.theirs_out),
            open_channel(self.server.theirs_in, self.server.theirs_out),
            Hooks(groups, settings, SESSION.server, os.environ),
            settings,
            SESSION,
            Audit(settings),
            self.reports.append,
            secrets=secrets,
        )

    async def finish(self) -> tuple[bytes, bytes]:
        """End the agent's input, let calls end, then the rest: what the server and the agent still got."""
        self.agent.stop_writing()
        with anyio.fail_after(TIMEOUT):
            await self.agent_ended.wait()
            await self.proxy.changes.until(lambda: not self.proxy.has_open_calls)
        self.proxy.relay.server.end_output()
        received = await self.server.rest()
        self.server.stop_writing()
        with anyio.fail_after(TIMEOUT):
            await self.server_ended.wait()
        self.proxy.relay.agent.end_output()
        return received, await self.agent.rest()


@asynccontextmanager
async def rig(
    *groups: Group, settings: Settings | None = None, kind: type[Rig] = Rig, secrets: HiddenSecrets | None = None
) -> AsyncIterator[Rig]:
    """A Rig, of this class, that is closed completely afterwards."""
    one = kind(groups, settings or Settings(), *(() if secrets is None else (secrets,)))
    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            one.proxy.open(tasks)
            one.proxy.relay.start(one.agent_ended.set, one.proxy.changes.notify, one.server_ended.set)
            try:
                yield one
            except Exception as problem:  # of the test, which should not have to unwrap it
                failure = problem
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
    finally:
        one.proxy.relay.agent.close()
        one.proxy.relay.server.close()
        one.proxy.policy.audit.close()
        one.agent.close()
        one.server.close()
