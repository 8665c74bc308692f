"""AGENT-HOOKS-0.1: hookproxy as a host, driven by the test kit of `agent-hooks-sdk` with its vectors.

The harness is an agent with the model that a scenario prescribes. It starts `hookproxy run` in front of a server with
the scenario's tools; the test kit's interceptors are hooks of type "agent-hooks" of that run, and its resolver is the
one of `[hooks.composition]`. So what is judged at `pre_tool_call` and
`post_tool_call`, and what follows from it, is hookproxy's, and so are `agent_startup` and `agent_shutdown`. The points
of the model and of turns are the agent's own, with the SDK's emitter.

The records are those in the audit's lines (`interceptions`), as they are there.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

from agent_hooks import AgentContextBuilder, InterceptionBlocked, InterceptionEmitter
from agent_hooks._types import EnforcementMode, InterceptionPoint, Verdict
from agent_hooks.approval import ApprovalRequest, ApprovalResolver
from agent_hooks.composition import CompositionConfig
from agent_hooks.ctk.harness import Capability, RunOutcome, RunRecord, Scenario
from agent_hooks.interceptor import Interceptor

FOLDER = Path(__file__).resolve().parent
HOOKPROXY = Path(sys.executable).parent / "hookproxy"
RUN_SECONDS = 60
"""A run takes a second or two: the rest is for a busy machine."""

REFUSES_TO_START = 2
"""The exit status of hookproxy with a configuration that it does not run, such as one without the hooks it is about."""

APPROVAL = "approval"
"""What the relay says in place of a hook's number if it is the resolver."""

HOOK = """
[[hooks.{event}]]
type = "agent-hooks"
argv = ["{python}", "{relay}", "{socket}", "{number}"]
mode = "{mode}"
timeout = 30
"""
EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd")


class HookproxyHost:
    """The harness: one scenario, one run of hookproxy."""

    name = "hookproxy"
    capabilities: ClassVar[set[Capability]] = {
        Capability.TOOL_CALLS,
        Capability.MODEL_CALLS,  # the scripted model, which this harness plays
        Capability.INT64_JSON,
        Capability.BIGINT_JSON,
    }
    tool_seam_host_error = "continue"

    def setup(  # noqa: PLR0913 - as the test kit calls it
        self,
        scenario: Scenario,
        interceptors: list[Interceptor],
        resolver: ApprovalResolver | None,
        mode: EnforcementMode,
        composition: CompositionConfig,
        identity_provider: str | None,
        redact_for_approval: list[str] | None = None,
    ) -> None:
        """Keep what the vector says."""
        self._scenario, self._interceptors, self._resolver = scenario, interceptors, resolver
        self._mode, self._provider = mode.value, identity_provider
        self._composition: dict[str, Any] = dict(composition.to_wire())
        self._redact = redact_for_approval

    def teardown(self) -> None:
        """Nothing: a run leaves nothing."""

    async def run(self) -> RunRecord:
        """Run the scenario."""
        with tempfile.TemporaryDirectory() as folder:
            self._folder = Path(folder)
            self._write_files()
            listener = await asyncio.start_unix_server(self._judge, self._folder / "socket", limit=2**24)
            async with listener, asyncio.timeout(RUN_SECONDS):
                return await self._run()

    def _write_files(self) -> None:
        hooks = "".join(
            HOOK.format(
                event=event, python=sys.executable, relay=FOLDER / "relay.py", socket=self._folder / "socket",
                number=number, mode=self._mode,
            )
            for number in range(len(self._interceptors))
            for event in EVENTS
        )  # fmt: skip
        relay = [sys.executable, str(FOLDER / "relay.py"), str(self._folder / "socket"), APPROVAL]
        keys = {"mode": self._mode, **self._composition}
        keys |= {"identity_provider": self._provider} if self._provider else {}
        keys |= {"redact": self._redact} if self._redact else {}
        settings = 'on_ask_fallback = "deny"\n[audit]\nfile = "audit.jsonl"\n[hooks.composition]\n'
        settings += "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        if self._resolver is not None:
            settings += f"resolver = {{ argv = {json.dumps(relay)} }}\n"
        (self._folder / "hookproxy.toml").write_text(settings + hooks)

        tools = [
            {
                "name": tool.name,
                "behavior": [
                    {
                        **({} if one.when_args is None else {"when_args": one.when_args}),
                        "return": one.return_,
                        "is_error": one.is_error,
                    }
                    for one in tool.behavior
                ],
            }
            for tool in self._scenario.tools.values()
        ]
        (self._folder / "tools.json").write_text(json.dumps(tools))

    async def _judge(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Have an interceptor or the resolver of the test kit judge. If it raises, the program gets nothing."""
        number, _, text = (await reader.read(-1)).partition(b"\n")
        try:
            if number == APPROVAL.encode():
                writer.write(json.dumps(self._resolution(json.loads(text))).encode())
                return
            verdict = self._interceptors[int(number)].intercept(json.loads(text))
            writer.write(json.dumps(verdict if isinstance(verdict, dict) else verdict.to_wire()).encode())
        except RuntimeError:
            pass
        finally:
            writer.close()

    async def _run(self) -> RunRecord:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "PWD": str(self._folder)}
        process = await asyncio.create_subprocess_exec(
            HOOKPROXY, "run", "--config", "hookproxy.toml", "--name", "scenario", "--",
            sys.executable, FOLDER / "tools.py", "tools.json", "calls.jsonl",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            cwd=self._folder, env=environment, limit=2**24,
        )  # fmt: skip
        self._process, self._next_id = process, 0
        assert process.stdin is not None
        try:
            about = {"protocolVersion": "2025-06-18", "capabilities": {},
                     "clientInfo": {"name": "harness", "version": "1"}}  # fmt: skip
            try:
                await self._request("initialize", about)
            except RuntimeError:
                if await process.wait() != REFUSES_TO_START:
                    raise
                return RunRecord(outcome=RunOutcome.BLOCKED, final_output=None)
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            outcome, final = await self._converse()
        finally:
            process.stdin.close()
            await process.wait()
        lines = self._lines("audit.jsonl")
        records = [record for line in lines for record in line.get("interceptions", ())]
        return RunRecord(
            outcome=outcome,
            final_output=final,
            tool_invocations=self._lines("calls.jsonl"),
            identities=[(record["input_identity"], record["enforced_identity"]) for record in records],
            records=records,
        )

    async def _converse(self) -> tuple[RunOutcome, Any]:
        """The agent's loop: the model's turns, and the calls that it makes."""
        emitter = InterceptionEmitter(mode=EnforcementMode(self._mode))
        for interceptor in self._interceptors:
            emitter.register(interceptor)
        builder = AgentContextBuilder(agent_id="scenario", framework="harness", session_id="harness")

        async def emit(context: dict[str, Any]) -> None:
            context["sequence"] = time.time_ns() // 1000  # as hookproxy's: the test kit sees the points of both
            await emitter.emit(context)

        said = self._scenario.input
        messages: list[dict[str, Any]] = [{"role": said["role"], "content": said["content"]}]
        try:
            await emit(builder.input(content=said["content"], role=said["role"]))
            for turn in self._scenario.model_script:
                await emit(builder.pre_model_call(model_id="mock", messages=list(messages)))
                await emit(
                    builder.post_model_call(
                        model_id="mock",
                        content=turn.content,
                        tool_calls=turn.tool_calls,
                        finish_reason=turn.finish_reason,
                    )
                )
                if not turn.tool_calls:
                    await emit(builder.output(content=turn.content))
                    return RunOutcome.COMPLETED, turn.content
                for call in turn.tool_calls:
                    params = {"name": call["name"], "arguments": call["args"], "_meta": {"callId": call["id"]}}
                    messages.append({"role": "tool", "content": json.dumps(await self._request("tools/call", params))})
        except InterceptionBlocked:
            return RunOutcome.BLOCKED, None
        return RunOutcome.COMPLETED, None

    # --- the agent's side of MCP ---

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The response to a request, a result or an error."""
        self._next_id += 1
        self._send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._next_id:
                return message
        raise RuntimeError("hookproxy has ended")

    def _resolution(self, request: dict[str, Any]) -> dict[str, Any]:
        """The resolver's resolution of a request, both as JSON."""
        assert self._resolver is not None
        verdict = Verdict.escalate(message=str(request["verdict"]))  # the SDK's class has no reasons of hosts
        point = InterceptionPoint(request["interception_point"])
        resolution = self._resolver.resolve(
            ApprovalRequest(request["context_identity"], point, verdict, request["context"])
        )
        return {
            "outcome": resolution.outcome.value,
            "context_identity": resolution.context_identity,
            **({} if resolution.verdict is None else {"verdict": resolution.verdict.to_wire()}),
        }

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self._folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
