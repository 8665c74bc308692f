"""Runs a hook of type `prompt`: a model is asked once whether the event may go on."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.hooks import Document, HookResult, HookSpec
from .model_api import Conversation, model_of
from .model_verdict import SYSTEM, VERDICT, Verdict, question, result_for, verdict_in, verdict_tool
from .runner import HookFailed, Report, StatefulRunner


def open_runner(_hooks: list[HookSpec], _report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. Nothing is kept from one event to the next."""
    return StatefulRunner(run_prompt_hook, _nothing_to_close)


async def run_prompt_hook(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
    """As `runner.Runner`."""
    return await result_for(spec, _verdict(spec, document, env))


async def _verdict(spec: HookSpec, document: Document, env: Mapping[str, str]) -> Verdict:
    asked = model_of(spec)
    tool = verdict_tool(takes_context=asked.takes_context)
    reply = await Conversation(asked, SYSTEM, question(spec, document), [tool]).ask(env, only=VERDICT)
    verdict = verdict_in(reply, takes_context=asked.takes_context)
    if verdict is None:
        raise HookFailed("the model called a tool that it does not have")
    return verdict


async def _nothing_to_close() -> None:
    """Each question has a connection of its own."""
