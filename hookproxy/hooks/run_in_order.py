"""Runs one group's hooks for an occasion in their dialect's order, in the environment that is theirs, and hears them.

Law 3: what a hook does is a statement, whatever it does. What must be trusted is looked at before and after it runs.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
import anyio.to_thread
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..dialects.shared.identity_variables import foreign_to
from ..jsonrpc import normalize, raw_json, schema
from ..model import aliases
from ..model.hooks import NO_VERDICT, Document, Ended, EventContext, HookResult, HookRun, HookSpec, Order, Tool, Verdict
from ..model.settings import Settings
from ..policy import decide
from ..runners.registry import Runners
from ..runners.runner import CallTool, no_server
from .background import BackgroundHooks, Report

if TYPE_CHECKING:
    from ..trust.trusted_files import Trust

_AT_ONCE: Final = 128  # hooks running at a time: more only wait for each other
_DESCRIPTORS: Final = 8  # that starting a hook may take at a time: three pipes, its exit, and one to spare
_OTHERS: Final = 64  # descriptors that are left to all else


class HookExecutor:
    """All hooks of one run, and the places in which they run."""

    def __init__(
        self,
        groups: Sequence[Group],
        settings: Settings,
        environ: Mapping[str, str],
        trust: Trust | None,
        allowing: Callable[[Group, Verdict], Verdict],
    ) -> None:
        """`allowing` adds the permission rules of a verdict to the session, and gives the verdict."""
        self._settings = settings
        self._trust = trust
        self._allowing = allowing
        places = _places()
        self._places_aside = anyio.Semaphore(max(places // 4, 1), fast_acquire=True)
        self._places = anyio.Semaphore(max(places - places // 4, 1), fast_acquire=True)
        shared = {_environment_key(group): _environment(group, environ) for group in groups}
        self._environments = {id(group): shared[_environment_key(group)] for group in groups}
        self._report: Report = lambda _statement: None
        self.aside = BackgroundHooks(self._run_aside)
        specs = [spec for group in groups for spec in group.hooks]
        with trust.importing() if trust else nullcontext():
            self.runners = Runners(specs, self._say, self._call_tool)
        self._server: CallTool = no_server

    async def _call_tool(self, server: str, tool: str, arguments: bytes) -> bytes:
        return await self._server(server, tool, arguments)

    def begin(self, tasks: anyio.abc.TaskGroup, report: Report, tell: Callable[[], None], call_tool: CallTool) -> None:
        """As `Hooks.begin`."""
        self._server = call_tool
        self._report = report
        self.aside.begin(tasks, report, tell)

    def _say(self, spec: HookSpec, text: str) -> None:
        self._report(HookRun(spec, HookResult(Ended.EXITED), Verdict(messages=(text,))))

    async def ask(
        self,
        group: Group,
        hooks: Sequence[HookSpec],
        context: EventContext,
        hook_runs: list[HookRun],
        listed: Tool | None = None,
    ) -> list[HookRun]:
        """Run hooks in their dialect's order. Statements stand in the order in which the last one wins."""
        if len(hooks) == 1 and not hooks[0].background:  # as nearly always: there is no order
            return [await self._run(group, hooks[0], context, hook_runs, listed)]
        order = group.dialect.order
        awaited = [spec for spec in hooks if not (spec.background and self.aside.start(group, spec, context))]
        if len(awaited) > 1 and order in (Order.PARALLEL, Order.TOGETHER):
            said = await self._ask_at_once(group, awaited, context, hook_runs, listed)
            return said if order is Order.PARALLEL else sorted(said, key=lambda one: awaited.index(one.spec))
        said = []
        for spec in awaited:
            one = await self._run(group, spec, context, hook_runs, listed)
            said.append(one)
            if order is Order.UNTIL_DENIED and decide.blocks(one, self._settings, group.on_failure):
                break
            if order is Order.PIPELINE and one.verdict.arguments is not None:
                context = replace(context, arguments=normalize.normalise(one.verdict.arguments))
        return said

    async def _ask_at_once(
        self,
        group: Group,
        hooks: Sequence[HookSpec],
        context: EventContext,
        hook_runs: list[HookRun],
        listed: Tool | None,
    ) -> list[HookRun]:
        """In the order in which they finish."""
        said: list[HookRun] = []

        problems: list[OSError] = []

        async def run(spec: HookSpec) -> None:
            try:
                said.append(await self._run(group, spec, context, hook_runs, listed))
            except OSError as problem:  # too few descriptors or processes; told when the others have ended
                problems.append(problem)

        async with anyio.create_task_group() as tasks:
            for spec in hooks:
                tasks.start_soon(run, spec)
        if problems:
            raise problems[0]
        return said

    async def _run_aside(self, group: Group, spec: HookSpec, context: EventContext) -> None:
        await self._run(group, spec, context, [])

    async def _run(
        self, group: Group, spec: HookSpec, context: EventContext, hook_runs: list[HookRun], listed: Tool | None = None
    ) -> HookRun:
        places = self._places_aside if spec.background else self._places
        document = group.dialect.write(spec, context)
        document = _traced(document, context) if context.trace else document
        environment = self._environments[id(group)]
        try:
            places.acquire_nowait()  # nearly always: to ask whether to wait costs a tenth of a small hook
        except anyio.WouldBlock:
            await places.acquire()
        try:
            mark = self._trust.mark(spec) if self._trust else None  # as late as can be
            if mark is not None and mark.failure:
                untried = HookRun(spec, HookResult(Ended.NOT_STARTED), _untrusted(mark.failure))
                return self._hear(group, untried, hook_runs)
            if mark is not None and mark.touched:
                self.runners.invalidate(spec)
            result = await self.runners.by_type[spec.type](spec, document, environment)
        except anyio.get_cancelled_exc_class():
            hook_runs.append(HookRun(spec, HookResult(Ended.CANCELLED), NO_VERDICT))
            raise
        finally:
            places.release()
        verdict = group.dialect.read(spec, result)
        if mark is not None and self._trust and (failure := self._trust.failure_since(mark, spec)):
            verdict = _untrusted(failure)
        if verdict.arguments is not None:
            verdict = await _fitting(verdict, context, listed)
        if verdict.allows and not spec.background:
            verdict = self._allowing(group, verdict)
        return self._hear(group, HookRun(spec, result, verdict), hook_runs)

    def _hear(self, group: Group, one: HookRun, hook_runs: list[HookRun]) -> HookRun:
        if one.verdict.failure:
            one = replace(one, consequence=decide.consequence(one, self._settings, group.on_failure))
        hook_runs.append(one)
        self._report(one)
        return one


def _traced(document: Document, context: EventContext) -> Document:
    """The document with the variables by which a hook continues the agent's trace."""
    return replace(document, env={**document.env, **dict(context.trace)})


def _untrusted(failure: str) -> Verdict:
    return Verdict(failure=failure, untrusted=True)


async def _fitting(verdict: Verdict, context: EventContext, listed: Tool | None) -> Verdict:
    """The verdict with whole arguments; that they do not fit the tool's schema is trouble, and nothing is applied."""
    arguments = verdict.arguments or b"{}"
    try:
        if verdict.merges:
            arguments = _merged(context.arguments, arguments)
        if not normalize.normalise(arguments).startswith(b"{"):
            raise raw_json.Unreadable("they are no object")
        sent = aliases.for_server(context.alias, arguments)
    except ValueError as unreadable:
        failure = f"rewrote the arguments so that they cannot be read: {unreadable}"
        return replace(verdict, arguments=None, failure=failure)
    if listed is None or not listed.input_schema:
        return replace(verdict, arguments=arguments, merges=False) if verdict.merges else verdict
    # in a thread: the validator takes 70 ms to import, and a schema may be written to take long
    names = {own: name for name, own in context.alias.arguments.items()} if context.alias else {}
    problem = await anyio.to_thread.run_sync(schema.misfit, listed.input_schema, sent, names)
    if not problem:
        return replace(verdict, arguments=arguments, merges=False)
    failure = f"rewrote the arguments so that they do not fit the tool: {problem}"
    return replace(verdict, arguments=None, failure=failure)


def _merged(arguments: bytes, changes: bytes) -> bytes:
    """The object with the members of another over its own."""
    for name, value in raw_json.fields(changes).items():
        arguments = raw_json.with_member(arguments, name, bytes(value))
    return arguments


def _places() -> int:
    """How many hooks may run at a time, so that none lacks a descriptor: a guard that cannot start guards nothing."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _AT_ONCE if limit == resource.RLIM_INFINITY else max(min(_AT_ONCE, (limit - _OTHERS) // _DESCRIPTORS), 1)


def _environment_key(group: Group) -> tuple[str, str]:
    return group.dialect.name, group.source if group.managed else ""


def _environment(group: Group, environ: Mapping[str, str]) -> dict[str, str]:
    """What a group's hooks inherit: our environment without what tells of other hook systems."""
    if group.managed:
        from ..trust.managed_files import environment

        environ = environment(environ, [name for spec in group.hooks for name in spec.allowed_env_vars])
    foreign = foreign_to(group.dialect.variables)
    return {name: value for name, value in environ.items() if name not in foreign}
