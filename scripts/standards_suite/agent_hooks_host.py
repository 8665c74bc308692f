"""AGENT-HOOKS-0.1: hookproxy as a host, driven by the test kit of `agent-hooks-sdk` with its vectors.

The harness is an agent with the model that a scenario prescribes. It starts `hookproxy run` in front of a server with
the scenario's tools; the test kit's interceptors are hooks of type "agent-hooks" of that run, and the program that it
asks for approvals (`on_ask_fallback`) is the test kit's resolver. So what is judged at `pre_tool_call` and
`post_tool_call`, and what follows from it, is hookproxy's, and so are `agent_startup` and `agent_shutdown`. The points
of the model and of turns are the agent's own, with the SDK's emitter.

hookproxy's record of a call is its line in the audit; `_record` spells it as an InterceptionRecord. Its identities are
the SDK's, of the contexts that hooks got and of the arguments that the server got.
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
from agent_hooks.approval import ApprovalOutcome, ApprovalRequest, ApprovalResolver
from agent_hooks.canonical import context_identity
from agent_hooks.composition import CompositionConfig
from agent_hooks.ctk.harness import Capability, RunOutcome, RunRecord, Scenario
from agent_hooks.interceptor import Interceptor

FOLDER = Path(__file__).resolve().parent
HOOKPROXY = Path(sys.executable).parent / "hookproxy"
SYNTHESIZED = ("host_error:transform_conflict", "host_error:composition_disagreement")
"""Reasons of denials that are not a hook's own."""
RUN_SECONDS = 60
"""A run takes a second or two: the rest is for a busy machine."""

APPROVAL = "approval"
"""What the relay says in place of a hook's number if it is the program that is asked for an approval."""

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
        self._composition: dict[str, str] = composition.to_wire()
        self._last_context: dict[str, Any] = {}

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
        fallback = '"deny"' if self._resolver is None else f"{{ command = {json.dumps(relay)} }}"
        settings = f"on_ask_fallback = {fallback}\n"
        settings += '[audit]\nfile = "audit.jsonl"\narguments = "full"\nresults = "full"\n'
        keys = "".join(f'{key} = "{value}"\n' for key, value in self._composition.items())
        settings += f"[hooks.composition]\n{keys}"
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
                writer.write(json.dumps(self._response()).encode())
                return
            context = self._last_context = json.loads(text)
            verdict = self._interceptors[int(number)].intercept(context)
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
            await self._request("initialize", about)
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            outcome, final = await self._converse()
        finally:
            process.stdin.close()
            await process.wait()
        lines = self._lines("audit.jsonl")
        records = [record for line in lines if "tool" in line for record in self._records(line)]
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

    def _response(self) -> dict[str, str]:
        """The resolver's resolution as the response of a program: yes, or no with a reason."""
        assert self._resolver is not None
        context = self._last_context
        identity = None if self._provider is None else context_identity(context)
        verdict = Verdict.escalate(reason="asked")
        request = ApprovalRequest(identity, InterceptionPoint(context["interception_point"]), verdict, context)
        resolution = self._resolver.resolve(request)
        said = {} if resolution.verdict is None else resolution.verdict.to_wire()
        approves = resolution.outcome is ApprovalOutcome.APPROVE and said.get("decision") == "allow"
        if approves and resolution.context_identity == identity:
            return {"decision": "allow"}
        return {"decision": "deny", "reason": said.get("reason") or ""}

    # --- records ---

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self._folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _records(self, line: dict[str, Any]) -> list[dict[str, Any]]:
        """The records of a call, from its line in the audit: that of `pre_tool_call`, then that of `post_tool_call`."""
        runs = sorted(line["hooks"], key=lambda run: int(run["command"].rpartition(" ")[2]))  # as they are registered
        points = [
            [run for run in runs if run["event"] == "PreToolUse"],
            [run for run in runs if run["event"].startswith("PostToolUse")],
        ]
        return [self._record(line, of_point) for of_point in points if of_point]

    def _record(self, line: dict[str, Any], runs: list[dict[str, Any]]) -> dict[str, Any]:
        verdicts = [_verdict(run) for run in runs]
        context = json.loads(runs[0]["input"])
        before = context["interception_point"] == "pre_tool_call"
        combined, decided_by = _combined(line["decision"] if before and self._mode == "enforce" else "", verdicts)
        if combined["decision"] == "deny" and line.get("reason", "").startswith(SYNTHESIZED):
            combined["reason"], decided_by = line["reason"], None
        enforced = context
        if before and "rewritten" in line and self._mode == "enforce":
            arguments = line["rewritten"]
            enforced = {**context, "tool_call": {**context["tool_call"], "args": arguments}, "target": arguments}
        asked = {"asked-allow": "approval", "asked-deny": "rejection"}.get(line["decision"]) if before else None
        if asked == "rejection" and line.get("answered_by") and line.get("reason"):
            combined["reason"] = line["reason"]
        record = {
            "interception_point": context["interception_point"],
            "mode": self._mode,
            "verdict": combined,
            "input_identity": context_identity(context) if self._provider else None,
            "enforced_identity": context_identity(enforced) if self._provider else None,
            "identity_provider": self._provider,
            "session_id": context["session"]["id"],
            "sequence": context["sequence"],
            "timestamp": context["timestamp"],
            "decided_by": decided_by,
            "composition": self._composition,
            "verdicts": [
                {"index": number, **{name: verdict[name] for name in ("decision", "reason") if verdict.get(name)}}
                for number, verdict in enumerate(verdicts)
            ],
            "fold_truncated": len(runs) < len(self._interceptors),
            "interceptors_registered": len(self._interceptors),
        }
        return {**record, "resolved_by": asked} if asked else record


def _verdict(run: dict[str, Any]) -> dict[str, Any]:
    """What an interceptor decided, as hookproxy has read it: its own words only where they were a verdict."""
    if run["verdict"] == "trouble":
        return {"decision": "deny", "reason": run["reason"].rpartition("(")[2].rstrip(")")}
    verdict: dict[str, Any] = json.loads(run["stdout"])
    return verdict


def _combined(decision: str, verdicts: list[dict[str, Any]]) -> tuple[dict[str, Any], int | None]:
    """The verdict that counted, without what it would write, and whose it was. `decision`: hookproxy's on the call."""
    denials = [number for number, verdict in enumerate(verdicts) if verdict["decision"] == "deny"]
    plain = [number for number in denials if "approval" not in verdicts[number]]
    transforms = [number for number, verdict in enumerate(verdicts) if verdict["decision"] == "transform"]
    denied = decision in ("deny", "asked-deny") if decision else bool(denials)
    decided_by = (plain or denials or [None])[0] if denied or decision == "asked-allow" else None
    if denied:
        winner = verdicts[decided_by] if decided_by is not None else {"decision": "deny"}
    elif transforms:
        decided_by = transforms[-1] if decided_by is None else decided_by
        winner = verdicts[transforms[-1]]
    else:
        winner = {"decision": "allow"}
    combined = {name: winner[name] for name in ("decision", "reason") if name in winner}
    if "transform" in winner and not denied:
        combined["transform"] = {"path": winner["transform"]["path"]}
    if warnings := [warning for verdict in verdicts for warning in verdict.get("warnings") or ()]:
        combined["warnings"] = warnings
    labels = [
        label for verdict in verdicts if verdict["decision"] != "deny" for label in verdict.get("result_labels") or ()
    ]
    if labels and not denied:
        combined["result_labels"] = labels
    return combined, decided_by
