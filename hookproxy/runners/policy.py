"""Runs policies of engines that are libraries: in this process if that takes no time, else in one of their own.

An evaluation holds the event loop and cannot be interrupted. So each policy says for which size of input it certainly
ends at once, and a larger input, which the agent chooses, goes to a worker process that a timeout can end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.hooks import Document, Ended, HookResult, HookSpec
from . import worker
from .runner import HookFailed, Report, StatefulRunner

_WORKER: Final = (sys.executable, "-P", "-m", "hookproxy.runners.policy_process")
"""-P: no module is imported from the working directory."""


class PolicyText(msgspec.Struct, frozen=True):
    """What of a HookSpec its evaluation depends on."""

    type: str
    label: str
    source: str
    expression: str
    policy: str
    policy_file: str
    policy_schema: str
    deny_reason: str


class Policy(Protocol):
    """A policy that is compiled."""

    def evaluate(self, document: bytes) -> bytes:
        """The output of the hook for this input document. Raises HookFailed."""

    def ends_at_once(self, size: int) -> bool:
        """Whether an input document of so many bytes is evaluated within a few milliseconds, whatever is in it."""


class Reply(msgspec.Struct, omit_defaults=True):
    """What the worker process prints."""

    output: str = ""
    failure: str = ""


def open_policies(
    hooks: list[HookSpec], report: Report, compile_policy: Callable[[HookSpec], Policy]
) -> StatefulRunner:
    """As `runner.OpenRunner`, for the policies of one engine, which `compile_policy` compiles or raises ConfigError."""
    policies = {id(spec): compile_policy(spec) for spec in hooks}
    workers = {id(spec): replace(spec, type="worker", argv=_WORKER, cwd="/") for spec in hooks}
    processes = worker.open_runner([], report)

    async def run_policy(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        policy = policies[id(spec)]
        if not policy.ends_at_once(len(document.stdin)):
            return _read_reply(await processes.run(workers[id(spec)], _request(spec, document), env))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            stdout = policy.evaluate(bytes(document.stdin))
        except HookFailed as failure:
            return HookResult(Ended.FAILED, ms=(loop.time() - begun) * 1000, detail=str(failure))
        return HookResult(Ended.EXITED, stdout=stdout, ms=(loop.time() - begun) * 1000)

    return StatefulRunner(run_policy, processes.aclose)


def _request(spec: HookSpec, document: Document) -> Document:
    policy = {name: getattr(spec, name) for name in PolicyText.__struct_fields__}
    return Document(raw_json.encode({"policy": policy, "input": msgspec.Raw(bytes(document.stdin).strip())}), env={})


def _read_reply(result: HookResult) -> HookResult:
    """The result of the evaluation that the process has printed."""
    if result.ended is not Ended.EXITED:
        return result
    reply = msgspec.json.decode(result.stdout, type=Reply)
    if reply.output:
        return replace(result, stdout=reply.output.encode())
    return HookResult(Ended.FAILED, ms=result.ms, detail=reply.failure or "gave no result")
