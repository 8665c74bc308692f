"""Random lives of tasks: all events in any order, and each end is judged once.

The proxy and its hooks are real; the schedule is both the agent and the server, and the server is an enemy: its
outputs differ from one time to the next, and none may reach the agent.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import anyio
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.dialect import Group
from hookproxy.model.hooks import Event
from tests.support.examples import examples
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig, stub, stub_group

Json = dict[str, Any]

ERAS: Final = ("old", "new")
TASK_METHODS: Final = ("tasks/result", "tasks/get", "tasks/cancel", "tasks/update")
FORMS: Final = ("working", "done", "other", "bad", "failed", "cancelled", "error", "raw", "duplicates")
NOTIFICATIONS: Final = ("notifications/tasks", "notifications/tasks/status")
META: Final = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}

few: Final = st.integers(0, 3)
steps: Final = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from(ERAS), few),
        st.tuples(st.just("hand"), st.sampled_from(("handle", "handle", "handle", "result")), few),
        st.tuples(st.just("fetch"), st.sampled_from(TASK_METHODS), few),
        st.tuples(st.just("answer"), st.sampled_from(FORMS), few),
        st.tuples(st.just("answer"), st.sampled_from(FORMS), few),
        st.tuples(st.just("notify"), st.sampled_from(FORMS), few),
        st.tuples(st.just("cancel"), st.just(""), few),
        st.tuples(st.just("idle"), st.just(""), few),
    ),
    min_size=3,
    max_size=16,
)


def output(form: str) -> Json:
    text = {"type": "text", "text": f"SECRET {form}"}
    return {"content": [text], "isError": form == "bad"}


class Life:
    """One schedule over one proxy."""

    def __init__(self, one: Rig) -> None:
        self.one = one
        self.ids = 0
        self.calls: dict[int, str] = {}
        """Ids of calls, with the era of each."""
        self.task_requests: dict[int, tuple[str, int]] = {}
        """Ids of task requests, with the method and the call whose task it is about."""
        self.cancelled: set[int] = set()
        self.notified: set[int] = set()
        """Calls about whose tasks the server has sent notifications: each must have a task of its own."""
        self.answered: dict[int, str] = {}
        """Calls with their first answers: the agent knows a task's id from its handle only."""

    def fresh(self) -> int:
        self.ids += 1
        return self.ids

    async def asks(self, number: int, method: str, **params: object) -> None:
        """A request that the server gets, whatever else it gets."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.one.agent.send(json.dumps(message).encode() + b"\n")
        while (await self.one.server.message()).get("id") != number:
            pass

    async def server_sends(self, message: Json) -> None:
        await self.one.server.deliver(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def call(self, era: str, _which: int) -> None:
        number = self.fresh()
        self.calls[number] = era
        more: Json = {"task": {}} if era == "old" else {"_meta": META}
        await self.asks(number, "tools/call", name="write", arguments={}, **more)

    async def hand(self, form: str, which: int) -> None:
        """The answer to a call, perhaps not the first one."""
        for number, era in list(self.calls.items())[which : which + 1]:
            task = {"taskId": f"T{number}", "status": "working"}
            handle: Json = {"task": task} if era == "old" else {"resultType": "task", **task}
            self.answered.setdefault(number, "handle" if number in self.notified else form)
            await self.server_sends(
                {"id": number, "result": handle if form == "handle" or number in self.notified else output("direct")}
            )

    async def fetch(self, method: str, which: int) -> None:
        handed = [number for number, form in self.answered.items() if form == "handle"]
        for number in handed[which : which + 1]:
            task_request = self.fresh()
            self.task_requests[task_request] = (method, number)
            await self.asks(task_request, method, taskId=f"T{number}")

    async def answer(self, form: str, which: int) -> None:
        """The response to one of the last task requests, perhaps not the first one."""
        for task_request in list(self.task_requests)[-1 - which :][:1]:
            method, number = self.task_requests[task_request]
            if form == "duplicates":
                line = f'{{"id":{task_request},"result":{{"result":{{}},"result":{json.dumps(output(form))}}}}}\n'
                await self.one.server.deliver(line.encode())
            elif form == "error":
                await self.server_sends({"id": task_request, "error": {"code": 1, "message": "SECRET"}})
            elif method == "tasks/result" or form == "raw":
                await self.server_sends({"id": task_request, "result": output(form)})
            else:
                await self.server_sends({"id": task_request, "result": self.state(form, number)})

    def state(self, form: str, number: int) -> Json:
        state: Json = {"taskId": f"T{number}", "status": form if form in ("working", "cancelled") else "completed"}
        if form in ("done", "other", "bad", "raw"):
            state["result"] = output(form)
        if form in ("failed", "error", "duplicates"):
            state |= {"status": "failed", "error": {"code": 1, "message": f"SECRET {form}"}}
        return state

    async def notify(self, form: str, which: int) -> None:
        for number in list(self.calls)[which : which + 1]:
            if self.answered.get(number) != "result":
                self.notified.add(number)
                await self.server_sends({"method": NOTIFICATIONS[which % 2], "params": self.state(form, number)})

    async def cancel(self, _form: str, which: int) -> None:
        for task_request in list(self.task_requests)[-1 - which :][:1]:
            self.cancelled.add(task_request)
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": task_request}}
            await self.one.agent.deliver(json.dumps(message).encode() + b"\n")

    async def idle(self, _form: str, _which: int) -> None:
        for _ in range(20):
            await anyio.lowlevel.checkpoint()

    async def live(self, schedule: list[tuple[str, str, int]]) -> bytes:
        """All that the agent got, to the server's death and the end."""
        await self.call(schedule[0][1] if schedule[0][0] == "call" else "new", 0)
        for act, form, which in schedule:
            await getattr(self, act)(form, which)
        self.one.proxy.handle_server_exit("was ended by signal 9")
        with anyio.fail_after(30):
            await self.one.proxy.changes.until(lambda: not self.one.proxy.has_open_calls)
        _, received = await self.one.finish()
        return received


def hooks(path: Path) -> Group:
    note = f"cat >> {shlex.quote(str(path))}; "
    clean = """printf %s '{"replacement":"clean"}'"""
    return stub_group(
        stub(Event.PRE_TOOL_USE, note + ":"),
        stub(Event.POST_TOOL_USE, note + clean),
        stub(Event.POST_TOOL_USE_FAILURE, note + clean),
    )


@examples(20)
@given(schedule=steps)
def test_each_task_is_judged_once_and_each_task_request_answered_once(schedule: list[tuple[str, str, int]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "recorded")

        async def run() -> tuple[Life, bytes]:
            async with rig(hooks(path)) as one:
                life = Life(one)
                return life, await life.live(schedule)

        name, options = DIRECT_LOOP
        life, received = anyio.run(run, backend=name, backend_options=options)
        recorded = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert b"SECRET" not in received
    answers = Counter(message["id"] for message in map(json.loads, received.splitlines()) if "id" in message)
    assert max(answers.values(), default=0) <= 1
    assert answers.keys() >= (life.calls.keys() | life.task_requests.keys()) - life.cancelled
    for number in life.calls:
        events = Counter(one["event"] for one in recorded if one["id"] == str(number))
        assert events["PreToolUse"] == 1
        assert events["PostToolUse"] + events["PostToolUseFailure"] == 1
