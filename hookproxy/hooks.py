"""Runs the hooks that match an occasion in their dialect's order, groups one after another, and hears them out."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from . import aliases, legible, policy, schema, wire
from .aside import Aside, Report
from .decision import Comments, Decision, Proceed, Refuse
from .dialects.base import Group
from .dialects.identities import foreign_to
from .groups import Chosen, Groups
from .model import SILENT, Ended, Event, HookResult, HookSpec, Occasion, Order, Statement, Tool, Verdict
from .permissions import Permissions
from .runners import Runners
from .runners.base import CallTool, no_server
from .settings import Settings

_AT_ONCE: Final = 128  # hooks running at a time: more only wait for each other
_DESCRIPTORS: Final = 8  # that starting a hook may take at a time: three pipes, its exit, and one for the folder
_OTHERS: Final = 64  # descriptors that are left to all else


class Hearing(Struct, frozen=True):
    """What came of asking the PreToolUse hooks of all groups."""

    decision: Decision
    arguments: bytes
    """The arguments that the decision is about, as hooks read them."""


class Hooks:
    """All hooks of one run, for the server of this name."""

    def __init__(self, groups: Sequence[Group], settings: Settings, server: str, environ: Mapping[str, str]) -> None:
        self.groups = Groups(groups, server, settings.aliases)
        self.permissions = Permissions(self.groups, settings)
        self.environ = environ
        self._settings = settings
        places = _places()
        self._places_aside = anyio.Semaphore(max(places // 4, 1), fast_acquire=True)
        self._places = anyio.Semaphore(max(places - places // 4, 1), fast_acquire=True)
        self._environments = {group.dialect.name: _environment(group, environ) for group in groups}
        self._report: Report = lambda _statement: None
        self.aside = Aside(self._run_aside)
        self.runners = Runners((spec for group in groups for spec in group.hooks), self._say, self._call_tool)
        self._server: CallTool = no_server

    def _say(self, spec: HookSpec, text: str) -> None:
        self._report(Statement(spec, HookResult(Ended.EXITED), Verdict(messages=(text,))))

    async def _call_tool(self, server: str, tool: str, arguments: bytes) -> bytes:
        return await self._server(server, tool, arguments)

    def begin(
        self, tasks: anyio.abc.TaskGroup, report: Report, tell: Callable[[], None], call_tool: CallTool = no_server
    ) -> None:
        """Hooks that nobody waits for run in `tasks` and end with it; `tell` is called when one has ended.

        `report` gets each statement when it is made. Hooks that are tools are called by `call_tool`.
        """
        self._server = call_tool
        self._report = report
        self.aside.begin(tasks, report, tell)

    async def before(self, occasion: Occasion, listed: Tool | None, heard: list[Statement]) -> Hearing:
        """Ask the PreToolUse hooks: each group sees the arguments as rewritten so far, and a denial ends it.

        `listed` is what is known of the tool: a rewrite that does not fit its schema is trouble. All that is said
        goes to `heard` at once. On cancel the hooks that run are ended with their whole process groups.
        """
        proceed = Proceed()
        for chosen in self.groups.choose(occasion.event, occasion.tool):
            occasion = chosen.shown(occasion)
            said = await self._ask(chosen.group, chosen.applying(occasion), occasion, heard, listed)
            if not any(one.verdict != SILENT for one in said):  # as of most calls, and it decides nothing
                continue
            decision = policy.decide(said, self._settings, chosen.group.on_trouble)
            feedback = proceed.feedback + decision.feedback
            if isinstance(decision, Refuse):
                return Hearing(replace(decision, feedback=feedback), occasion.arguments)
            rewritten = proceed.arguments
            if decision.arguments is not None:
                rewritten = decision.arguments
                occasion = replace(occasion, arguments=legible.normalise(rewritten))
            proceed = Proceed(rewritten, feedback, proceed.question or decision.question)
        ruled = self.permissions.ruled(proceed, occasion)
        requests = self.groups.choose(Event.PERMISSION_REQUEST, occasion.tool)
        if isinstance(ruled, Proceed) and (requests or ruled.question):
            return await self._permitted(requests, ruled, occasion, listed, heard)
        return Hearing(ruled, occasion.arguments)

    async def after(self, occasion: Occasion, heard: list[Statement]) -> Comments:
        """Ask the PostToolUse or PostToolUseFailure hooks of all groups; else as `before`."""
        comments = Comments()
        for chosen in self.groups.choose(occasion.event, occasion.tool):
            occasion = chosen.shown(occasion)
            said = await self._ask(chosen.group, chosen.applying(occasion), occasion, heard)
            comments = policy.merge_comments(comments, policy.comments(said, self._settings, chosen.group.on_trouble))
        return comments

    async def at(self, occasion: Occasion, only_told: bool = False) -> list[Statement]:
        """Ask the hooks of an occasion that decides nothing: of the session, or beside a call.

        `only_told`: those that may answer a question of the server are asked elsewhere.
        """
        heard: list[Statement] = []
        for chosen in self.groups.at(occasion):
            if not (only_told and chosen.answers):
                heard += await self.asked(chosen, occasion)
        return heard

    async def asked(self, chosen: Chosen, occasion: Occasion) -> list[Statement]:
        """Ask one group's hooks; statements stand in the order in which the last one wins."""
        shown = chosen.shown(occasion)
        return await self._ask(chosen.group, chosen.applying(shown), shown, [])

    async def _permitted(
        self,
        requests: Sequence[Chosen],
        proceed: Proceed,
        occasion: Occasion,
        listed: Tool | None,
        heard: list[Statement],
    ) -> Hearing:
        """Ask the PermissionRequest hooks: all, if somebody wants a person to be asked, else those for each call."""
        question, yes = proceed.question, False
        request = replace(occasion, event=Event.PERMISSION_REQUEST, message=question.reason if question else "")
        for chosen in requests:
            request, group = chosen.shown(request), chosen.group
            hooks = [spec for spec in chosen.applying(request) if question or spec.unasked]
            said = await self._ask(group, hooks, request, heard, listed)
            answer = policy.permitted(said, self._settings, group.on_trouble, group.dialect.later_overrides)
            if isinstance(answer, Refuse):
                return Hearing(replace(answer, feedback=proceed.feedback + answer.feedback), request.arguments)
            yes = yes or answer
            rewritten = policy.allowed_instead(said) if answer else None
            if rewritten is not None:
                proceed = replace(proceed, arguments=rewritten)
                request = replace(request, arguments=legible.normalise(rewritten))
        if question and (yes or self.permissions.allow(request)):
            proceed = replace(proceed, question=None, asked=True)
        if request.arguments is occasion.arguments:
            return Hearing(proceed, request.arguments)
        return Hearing(self.permissions.ruled(proceed, request), request.arguments)  # no rule has seen these

    async def _ask(
        self,
        group: Group,
        hooks: Sequence[HookSpec],
        occasion: Occasion,
        heard: list[Statement],
        listed: Tool | None = None,
    ) -> list[Statement]:
        """Run hooks in their dialect's order. Statements stand in the order in which the last one wins."""
        order = group.dialect.order
        awaited = [spec for spec in hooks if not (spec.background and self.aside.start(group, spec, occasion))]
        if len(awaited) > 1 and order in (Order.PARALLEL, Order.TOGETHER):
            said = await self._ask_at_once(group, awaited, occasion, heard, listed)
            return said if order is Order.PARALLEL else sorted(said, key=lambda one: awaited.index(one.spec))
        said = []
        for spec in awaited:
            one = await self._run(group, spec, occasion, heard, listed)
            said.append(one)
            if order is Order.UNTIL_DENIED and policy.blocks(one, self._settings, group.on_trouble):
                break
            if order is Order.PIPELINE and one.verdict.arguments is not None:
                occasion = replace(occasion, arguments=legible.normalise(one.verdict.arguments))
        return said

    async def _ask_at_once(
        self,
        group: Group,
        hooks: Sequence[HookSpec],
        occasion: Occasion,
        heard: list[Statement],
        listed: Tool | None,
    ) -> list[Statement]:
        """In the order in which they finish."""
        said: list[Statement] = []

        problems: list[OSError] = []

        async def run(spec: HookSpec) -> None:
            try:
                said.append(await self._run(group, spec, occasion, heard, listed))
            except OSError as problem:  # too few descriptors or processes; told when the others have ended
                problems.append(problem)

        async with anyio.create_task_group() as tasks:
            for spec in hooks:
                tasks.start_soon(run, spec)
        if problems:
            raise problems[0]
        return said

    async def _run_aside(self, group: Group, spec: HookSpec, occasion: Occasion) -> None:
        await self._run(group, spec, occasion, [])

    async def _run(
        self, group: Group, spec: HookSpec, occasion: Occasion, heard: list[Statement], listed: Tool | None = None
    ) -> Statement:
        places = self._places_aside if spec.background else self._places
        document = group.dialect.write(spec, occasion)
        if occasion.trace:
            document = replace(document, env={**document.env, **dict(occasion.trace)})
        environment = self._environments[group.dialect.name]
        try:
            places.acquire_nowait()  # nearly always: to ask whether to wait costs a tenth of a small hook
        except anyio.WouldBlock:
            await places.acquire()
        try:
            result = await self.runners.by_type[spec.type](spec, document, environment)
        except anyio.get_cancelled_exc_class():
            heard.append(Statement(spec, HookResult(Ended.CANCELLED), SILENT))
            raise
        finally:
            places.release()
        verdict = group.dialect.read(spec, result)
        if verdict.arguments is not None:
            verdict = await _fitting(verdict, occasion, listed)
        if verdict.allows and not spec.background:
            verdict = self.permissions.add(verdict)
        one = Statement(spec, result, verdict)
        heard.append(one)
        self._report(one)
        return one


async def _fitting(verdict: Verdict, occasion: Occasion, listed: Tool | None) -> Verdict:
    """The verdict with whole arguments; that they do not fit the tool's schema is trouble, and nothing is applied."""
    arguments = verdict.arguments or b"{}"
    try:
        if verdict.merges:
            arguments = _merged(occasion.arguments, arguments)
        if not legible.normalise(arguments).startswith(b"{"):
            raise wire.Unreadable("they are no object")
        sent = aliases.sent(occasion.alias, arguments)
    except ValueError as unreadable:
        trouble = f"rewrote the arguments so that they cannot be read: {unreadable}"
        return replace(verdict, arguments=None, trouble=trouble)
    if listed is None or not listed.input_schema:
        return replace(verdict, arguments=arguments, merges=False) if verdict.merges else verdict
    # in a thread: the validator takes 70 ms to import, and a schema may be written to take long
    names = {own: name for name, own in occasion.alias.arguments.items()} if occasion.alias else {}
    problem = await anyio.to_thread.run_sync(schema.misfit, listed.input_schema, sent, names)
    if not problem:
        return replace(verdict, arguments=arguments, merges=False)
    trouble = f"rewrote the arguments so that they do not fit the tool: {problem}"
    return replace(verdict, arguments=None, trouble=trouble)


def _merged(arguments: bytes, changes: bytes) -> bytes:
    """The object with the members of another over its own."""
    for name, value in wire.fields(changes).items():
        arguments = wire.with_member(arguments, name, bytes(value))
    return arguments


def _places() -> int:
    """How many hooks may run at a time, so that none lacks a descriptor: a guard that cannot start guards nothing."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _AT_ONCE if limit == resource.RLIM_INFINITY else max(min(_AT_ONCE, (limit - _OTHERS) // _DESCRIPTORS), 1)


def _environment(group: Group, environ: Mapping[str, str]) -> dict[str, str]:
    """What a group's hooks inherit: our environment without what tells of other hook systems."""
    foreign = foreign_to(group.dialect.variables)
    return {name: value for name, value in environ.items() if name not in foreign}
