"""Runs one group's hooks for an event in their dialect's order and environment, and reads their output.

Law 3: whatever a hook does results in a hook run. Scripts that must be trusted are checked before and after they run.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import anyio.abc
import anyio.to_thread
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..dialects.shared.identity_variables import foreign_variables
from ..dialects.shared.input import utf8
from ..jsonrpc import normalize, raw_json
from ..model import aliases
from ..model.decision import Refuse
from ..model.hooks import (
    NO_VERDICT,
    Document,
    Ended,
    Event,
    EventContext,
    HookResult,
    HookRun,
    HookSpec,
    Order,
    Permission,
    Tool,
    Verdict,
)
from ..model.principal import Principal
from ..model.settings import Arguments, Results, Settings
from ..policy import decide
from ..runners.registry import Runners
from ..runners.runner import CallTool, no_server
from ..runners.slow_hooks import SlowHooks
from . import rewrites
from .background import BackgroundHooks, ReportHookRun, Rest
from .read_verdict import read_verdict
from .select import MatchedHook

if TYPE_CHECKING:
    from ..trust.check_unchanged import Trust
    from .emission import Consult

_MAX_RUNNING: Final = 128  # hooks that run at a time: more would only wait for each other
_DESCRIPTORS_PER_HOOK: Final = 8  # needed to start a hook: three pipes, its pidfd, and one to spare
_RESERVED_DESCRIPTORS: Final = 64  # left for everything else

_STOPPED_BY_DENIALS: Final = (Order.UNTIL_DENIED, Order.PIPELINE_UNTIL_DENIED, Order.PIPELINE_UNTIL_ASKED)

_OWN_NAME: Final = "mcp_tool_name"
"""The member with the server's own name for a tool, as the hook's system composes it: the same in all dialects."""


class HookSecrets(Protocol):
    """Hides secrets from hooks, and from whoever reads what they print."""

    def context_for(self, spec: HookSpec, context: EventContext, /) -> EventContext:
        """The event as this hook may see it."""

    def masked_result(self, result: HookResult, spec: HookSpec, context: EventContext, /) -> HookResult:
        """What a hook printed, without secrets; `context` is the event, as a hook has it that may see no values."""

    def as_meant(
        self, verdict: Verdict, context: EventContext, seen: EventContext, printed: bytes, masked: bytes, /
    ) -> Verdict:
        """The verdict on such a result, with the secrets that the hook, or the agent, has put in itself.

        `context` is the event, and `seen` what the hook has got of it; `masked` is `printed` without secrets.
        """

    def masked_document(self, document: Document, spec: HookSpec, context: EventContext, /) -> bytes | bytearray:
        """What a hook got on standard input, without secrets, for the audit; `context` as in `masked_result`."""


class _NothingHidden:
    """As HookSecrets, where none are hidden."""

    def context_for(self, _spec: HookSpec, context: EventContext) -> EventContext:
        return context

    def masked_result(self, result: HookResult, _spec: HookSpec, _context: EventContext) -> HookResult:
        return result

    def as_meant(
        self, verdict: Verdict, _context: EventContext, _seen: EventContext, _printed: bytes, _masked: bytes
    ) -> Verdict:
        return verdict

    def masked_document(self, document: Document, _spec: HookSpec, _context: EventContext) -> bytes | bytearray:
        return document.stdin


_Applicable = Callable[[EventContext], Sequence[MatchedHook]]

_LONGEST_KEPT: Final = 1024  # bytes of output: a decision with its reason, and not a result
_MOST_KEPT: Final = 128  # outputs: hooks have few answers, unless they put the call into them


class HookExecutor:
    """Runs hooks, each in one of a bounded number of slots."""

    def __init__(
        self,
        groups: Sequence[Group],
        settings: Settings,
        environ: Mapping[str, str],
        trust: Trust | None,
        add_allowed_rules: Callable[[Group, Verdict], Verdict],
    ) -> None:
        """`add_allowed_rules` adds the permission rules of a verdict to the session, and returns the verdict."""
        self._groups = groups
        self.settings = settings
        self._trust = trust
        self._add_allowed_rules = add_allowed_rules
        self.keeps_input = bool(settings.audit_file) and (
            settings.audit_arguments is Arguments.FULL or settings.audit_results is Results.FULL
        )
        """Hook runs have the document that the hook got."""
        self.secrets: HookSecrets = _NothingHidden()
        self._slow = SlowHooks(self._report_message)
        self.running = self._slow.running
        shared = {_environment_key(group): _environment(group, environ) for group in groups}
        self._environments = {id(group): shared[_environment_key(group)] for group in groups}
        self.variables: dict[tuple[str, str], dict[str, str]] = {}
        """What SessionStart hooks have set for the later hooks of their system, by the system and its managed file."""
        self._report: ReportHookRun = lambda _hook_run: None
        self.background = BackgroundHooks(lambda group, hook, context: self.run_hook(group, hook, context, []))
        specs = [spec for group in groups for spec in group.programs]
        with trust.importing() if trust else nullcontext():
            self.runners = Runners(specs, self._report_message, self._call_tool)
        self._call_server_tool: CallTool = no_server
        self._unread_of: dict[tuple[int, Event, int, bool, bytes], tuple[str, ...]] = {}

    @cached_property
    def _background_slots(self) -> anyio.Semaphore:
        return anyio.Semaphore(max(_slot_count() // 4, 1), fast_acquire=True)

    @cached_property
    def _slots(self) -> anyio.Semaphore:
        return anyio.Semaphore(max(_slot_count() - _slot_count() // 4, 1), fast_acquire=True)

    async def _call_tool(self, server: str, tool: str, arguments: bytes) -> bytes:
        return await self._call_server_tool(server, tool, arguments)

    def open(
        self, tasks: anyio.abc.TaskGroup, report: ReportHookRun, notify: Callable[[], None], call_tool: CallTool
    ) -> None:
        """As `Hooks.open`."""
        self._call_server_tool = call_tool
        self._report = report
        self.background.open(tasks, report, notify)

    def _report_message(self, spec: HookSpec, text: str) -> None:
        self._report(HookRun(spec, HookResult(Ended.EXITED), Verdict(messages=(text,))))

    async def run_group(
        self,
        group: Group,
        hooks: Sequence[MatchedHook],
        context: EventContext,
        hook_runs: list[HookRun],
        listed: Tool | None = None,
        applicable: _Applicable | None = None,
    ) -> list[HookRun]:
        """Run hooks in their dialect's order. Of contradicting hook runs in the returned list, the last one wins.

        `applicable` selects the hooks of a later stage anew: they may have conditions on arguments that were rewritten.

        Arguments in `context` and in the returned verdicts are under the server's names.
        """
        if group.dialect.host is not None and hooks:
            from . import emission  # few systems demand something of their host

            if emission.is_emission(group, context.event):
                return await _SeveralHooks(self, group, hook_runs, listed).emit(hooks, context)
        if applicable is None and len(hooks) == 1 and not hooks[0].spec.background:  # true of most events
            return [await self.run_hook(group, hooks[0], context, hook_runs, listed)]
        several = _SeveralHooks(self, group, hook_runs, listed)
        if applicable is not None:
            return await several.run_stages(applicable, context)
        return await several.run_in_order(hooks, context)

    async def run_hook(
        self,
        group: Group,
        hook: MatchedHook,
        call_context: EventContext,
        hook_runs: list[HookRun],
        listed: Tool | None = None,
    ) -> HookRun:
        """Run one hook in a slot, as it sees the call. On cancel its whole process group is ended."""
        spec, event = hook.spec, hook.context(call_context)
        context = self.secrets.context_for(spec, event)
        slots = self._background_slots if spec.background else self._slots
        document = _document(group, spec, context)
        environment = self._environments[id(group)]
        try:
            slots.acquire_nowait()  # succeeds nearly always; `acquire` would cost a tenth of a small hook
        except anyio.WouldBlock:
            await slots.acquire()
        begun = self._slow.begin(spec, context.request_id)
        try:
            mark = self._trust.check(spec) if self._trust else None  # as late as possible
            if mark is not None and mark.failure:
                not_run = HookRun(spec, HookResult(Ended.NOT_STARTED), _untrusted(mark.failure))
                return self._finish(group, not_run, hook_runs)
            if mark is not None and mark.rewritten:
                self.runners.invalidate(spec)
            result = await self.runners.by_type[spec.type](spec, document, environment)
            if result.rest is not None and not self._goes_on(group, spec, event, result.rest):
                result = await result.rest()  # too many hooks are in the background, so this one is awaited
        except anyio.get_cancelled_exc_class():
            ms = (monotonic() - begun) * 1000
            hook_runs.append(HookRun(spec, HookResult(Ended.CANCELLED, ms=ms), NO_VERDICT))
            raise
        finally:
            self._slow.end(begun)
            slots.release()
        printed, result = result.stdout, self.secrets.masked_result(result, spec, event)
        verdict = read_verdict(group, spec, result, self.settings, input_cut=document.cut)
        if mark is not None and self._trust and (failure := self._trust.failure_after(mark, spec)):
            verdict = _untrusted(failure)
        if verdict is not NO_VERDICT:
            verdict = self.secrets.as_meant(verdict, event, context, printed, result.stdout)
            verdict = await self._checked(group, hook, call_context, verdict, listed)
        kept = self.secrets.masked_document(document, spec, event) if self.keeps_input else b""
        unread = self._unread(group, spec, result, verdict) if result.stdout else ()
        run = HookRun(spec, result, verdict, tool_name=context.tool_name, input=kept, unread=unread)
        return self._finish(group, run, hook_runs)

    def _unread(self, group: Group, spec: HookSpec, result: HookResult, verdict: Verdict) -> tuple[str, ...]:
        """As `HookRun.unread`. A hook prints the same few objects again and again: what they mean is kept."""
        if b"{" not in result.stdout and spec.event is not Event.PRE_TOOL_USE:
            return ()  # before a call, text may be meant as a denial
        key = (id(group), spec.event, result.code, bool(verdict.failure), bytes(result.stdout[:_LONGEST_KEPT]))
        known = self._unread_of.get(key) if len(result.stdout) <= _LONGEST_KEPT else None
        if known is None:
            from ..dialects.shared import unread_members  # most hooks print no JSON

            known = unread_members.unread(group.dialect, result, verdict)
            if len(self._unread_of) >= _MOST_KEPT:
                self._unread_of.clear()
            if len(result.stdout) <= _LONGEST_KEPT:
                self._unread_of[key] = known
        return known

    async def _checked(
        self, group: Group, hook: MatchedHook, call_context: EventContext, verdict: Verdict, listed: Tool | None
    ) -> Verdict:
        """The verdict in the server's terms; what it cannot have is a failure."""
        context = hook.context(call_context)
        if verdict.arguments is not None:
            try:
                arguments = group.dialect.real_arguments(hook.spec, context, verdict.arguments)
            except ValueError as different:
                failure = f"rewrote the arguments so that they cannot be sent: {different}"
                # the hook is valid for its system: the call that it did not want must not run
                return replace(verdict, arguments=None, failure=failure, fails_closed=True)
            verdict = replace(verdict, arguments=arguments) if arguments is not verdict.arguments else verdict
            verdict = await _checked_arguments(verdict, context, call_context, listed, self.settings.max_depth)
        if verdict.replacement is not None:
            try:
                verdict = replace(verdict, replacement=group.dialect.real_output(context, verdict.replacement))
            except ValueError as different:
                failure = f"rewrote the result so that it cannot be delivered: {different}"
                return replace(verdict, replacement=None, failure=failure)
        if verdict.added_labels or verdict.removed_labels:
            verdict = _with_labels_if_it_may(group, hook.spec, context, verdict)
        if verdict.allows and not hook.spec.background:
            verdict = self._add_allowed_rules(group, verdict)
        if verdict.variables:
            self.set_variables(_environment_key(group), dict(verdict.variables))
        return verdict

    def set_variables(self, key: tuple[str, str], variables: Mapping[str, str]) -> None:
        """Give these variables to the later hooks of a system, as in `variables`: a user's hook sets none for managed
        hooks."""
        self.variables[key] = {**self.variables.get(key, {}), **variables}
        groups = [group for group in self._groups if _environment_key(group) == key]
        if groups:  # a new mapping, because runners keep what they have made of the old one
            environment = {**self._environments[id(groups[0])], **variables}
            self._environments |= {id(group): environment for group in groups}

    def _goes_on(self, group: Group, spec: HookSpec, event: EventContext, rest: Rest) -> bool:
        """Let a hook go on in the background, in a slot of its own; False: there is none."""
        try:
            self._background_slots.acquire_nowait()
        except anyio.WouldBlock:
            return False

        async def wait() -> None:
            later = replace(spec, background=True)
            try:
                result = await rest()
            finally:
                self._background_slots.release()
            result = self.secrets.masked_result(result, spec, event)
            self._finish(group, HookRun(later, result, group.dialect.read_output(later, result)), [])

        if self.background.follow(wait):
            return True
        self._background_slots.release()
        return False

    def _finish(self, group: Group, run: HookRun, hook_runs: list[HookRun]) -> HookRun:
        if run.verdict.failure:
            consequence = decide.consequence(run, self.settings, group.on_failure)
            run = replace(run, verdict=_without_secrets(run.verdict), consequence=consequence)
        hook_runs.append(run)
        self._report(run)
        return run


def _without_secrets(verdict: Verdict) -> Verdict:
    """The verdict of a hook that failed, without what looks like a secret in the texts about that: a program that fails
    may print its configuration, and people, the audit and the model read it."""
    from ..secrets.mask import Masking  # most hooks do not fail

    masking = Masking()
    messages = tuple(masking.text(text) for text in verdict.messages)
    return replace(verdict, failure=masking.text(verdict.failure), messages=messages)


def _with_labels_if_it_may(group: Group, spec: HookSpec, context: EventContext, verdict: Verdict) -> Verdict:
    """The verdict; without its labels, and with a sentence about them for people, if they have no effect."""
    if not group.managed:
        why = "only hooks of the administrator's files set labels"
    elif spec.background:
        why = "it runs in the background, where it decides nothing"
    elif context.labels is None:
        why = "the configuration has no [flow]"
    else:
        return verdict
    message = f"addLabels and removeLabels of the hook {spec.label} have no effect: {why}"
    return replace(verdict, added_labels=(), removed_labels=(), messages=(*verdict.messages, message))


class _SeveralHooks:
    """Runs several hooks of one group for one event, in the order of their dialect."""

    def __init__(self, executor: HookExecutor, group: Group, hook_runs: list[HookRun], listed: Tool | None) -> None:
        self._executor = executor
        self._group = group
        self._hook_runs = hook_runs
        self._listed = listed
        self._consult: Consult | None = None

    async def emit(self, hooks: Sequence[MatchedHook], context: EventContext) -> list[HookRun]:
        """As `run_in_order`, with what the hooks' system demands of their host."""
        from .emission import Emission

        def document(hook: MatchedHook, event: EventContext) -> Document:
            seen = self._executor.secrets.context_for(hook.spec, hook.context(event))
            return _document(self._group, hook.spec, seen)

        async def run_all(consult: Consult) -> list[HookRun]:
            self._consult = consult
            return await self.run_in_order(hooks, context)

        emission = Emission(self._group, hooks, self._hook_runs, self._run_hook, document, self._as_left)
        return await emission.run(run_all, context)

    def _as_left(self, context: EventContext, runs: Sequence[HookRun]) -> EventContext:
        """The event as these runs have left it."""
        for run in runs:
            context = self._rewritten(context, run.verdict)
        return context

    async def run_in_order(self, hooks: Sequence[MatchedHook], context: EventContext) -> list[HookRun]:
        """As `HookExecutor.run_group`."""
        group, background = self._group, self._executor.background
        if len({hook.spec.stage for hook in hooks}) > 1:
            return await self.run_stages(lambda _context: hooks, context)
        order = Order.PIPELINE if any(hook.spec.sequential for hook in hooks) else group.dialect.order
        awaited = [hook for hook in hooks if not (hook.spec.background and background.start(group, hook, context))]
        if len(awaited) > 1 and order in (Order.PARALLEL, Order.TOGETHER):
            ended = await self._run_in_parallel(awaited, context)
            runs = _in_file_order(ended, awaited, last_ended_counts=order is Order.PARALLEL)
        else:
            runs = await self._run_in_turn(awaited, order, context)
        settled = list(group.dialect.settle(_allowing_all_readings(runs, awaited)))
        return settled if self._consult is None else await self._consult(settled, context)

    async def run_stages(self, applicable: _Applicable, context: EventContext) -> list[HookRun]:
        """Run the hooks of one stage after another. Before a call, a denial ends it, and rewrites are passed on."""
        group = self._group
        runs: list[HookRun] = []
        for stage in sorted({spec.stage for spec in group.hooks if spec.event is context.event}):
            of_stage = [hook for hook in applicable(context) if hook.spec.stage == stage]
            if not of_stage:
                continue
            done = await self._executor.run_group(group, of_stage, context, self._hook_runs, self._listed)
            runs += done
            if context.event not in decide.BEFORE_CALL:
                continue
            decision = decide.decide(done, self._executor.settings, group.on_failure)
            if isinstance(decision, Refuse):
                break
            if decision.arguments is not None:
                context = replace(context, arguments=normalize.normalize(decision.arguments))
        return runs

    async def _run_hook(self, hook: MatchedHook, context: EventContext) -> HookRun:
        return await self._executor.run_hook(self._group, hook, context, self._hook_runs, self._listed)

    def _blocks(self, hook_run: HookRun) -> bool:
        return decide.blocks(hook_run, self._executor.settings, self._group.on_failure)

    async def _run_in_turn(self, hooks: Sequence[MatchedHook], order: Order, context: EventContext) -> list[HookRun]:
        """Run one hook after another."""
        runs: list[HookRun] = []
        for hook in hooks:
            before = [run for run in runs if run.spec is hook.spec] if hook.one_of_several else []
            if any(map(self._blocks, before)):  # under another name of the tool
                continue
            if hook.path and _is_rewritten(before):  # it has chosen another file than any that this URI may mean
                continue
            run = await self._run_hook(hook, _as_left_by(before, context))
            counting = [_without_repeats(run, before)]
            if self._consult is not None and order is Order.PIPELINE_UNTIL_DENIED:
                counting = await self._consult(counting, context)
            runs += counting
            if any(self._skips_the_rest(order, run) for run in counting):
                break
            if order.passes_rewrites:
                context = self._as_left(context, counting)
        return runs

    def _skips_the_rest(self, order: Order, run: HookRun) -> bool:
        """Whether no hook runs after this one."""
        if order in _STOPPED_BY_DENIALS and self._blocks(run):
            return True
        if order is Order.PIPELINE_UNTIL_ASKED and run.verdict.permission is Permission.ASK:
            return True
        return order is Order.UNTIL_STOPPED and run.verdict.stop

    def _rewritten(self, context: EventContext, verdict: Verdict) -> EventContext:
        """The event as a hook has left it for the next one."""
        if verdict.arguments is not None:
            context = replace(context, arguments=normalize.normalize(verdict.arguments))
        if verdict.replacement is not None:
            context = self._group.dialect.with_result(context, verdict.replacement)
        return context

    async def _run_in_parallel(self, hooks: Sequence[MatchedHook], context: EventContext) -> list[HookRun]:
        """Run hooks at the same time; return their runs in the order in which they finish, those of one hook together.

        Under all names of the tool a hook runs at the same time, too: that takes no longer than one run.
        """
        finished: dict[int, HookRun] = {}  # by the hook's place in `hooks`
        problems: list[OSError] = []

        async def run_at(place: int, hook: MatchedHook) -> None:
            try:
                finished[place] = await self._run_hook(hook, context)
            except OSError as problem:  # too few descriptors or processes; raised when the others have ended
                problems.append(problem)

        async with anyio.create_task_group() as tasks:
            for place, hook in enumerate(hooks):
                tasks.start_soon(run_at, place, hook)
        if problems:
            raise problems[0]
        if not any(hook.one_of_several for hook in hooks):
            return list(finished.values())
        by_hook: dict[int, list[int]] = {}
        for place in reversed(finished):  # so that the last run of a hook says where it stands
            by_hook.setdefault(id(hooks[place].spec), []).append(place)
        runs: list[HookRun] = []
        for places in reversed(by_hook.values()):
            runs += await self._as_if_in_turn([(hooks[place], finished[place]) for place in sorted(places)], context)
        return runs

    async def _as_if_in_turn(
        self, views: Sequence[tuple[MatchedHook, HookRun]], context: EventContext
    ) -> list[HookRun]:
        """The runs of a hook under several names of the tool at the same time, as if one had followed the other.

        A run that did not refuse the call, and has not seen what an earlier one has rewritten, is repeated.
        """
        settled: list[HookRun] = []
        for hook, run in views:
            left = _as_left_by(settled, context)
            if hook.path and left is not context:  # it has chosen another file, and may still refuse this one
                run = replace(run, verdict=replace(run.verdict, arguments=None))
            elif left is not context and not any(map(self._blocks, (*settled, run))):
                run = await self._run_hook(hook, left)
            settled.append(_without_repeats(run, settled))
        return settled


def _as_left_by(before: Sequence[HookRun], context: EventContext) -> EventContext:
    """The event with the arguments as these runs of the same hook have left them."""
    left = next((run.verdict.arguments for run in reversed(before) if run.verdict.arguments is not None), None)
    return context if left is None else replace(context, arguments=normalize.normalize(left))


def _is_rewritten(before: Sequence[HookRun]) -> bool:
    return any(run.verdict.arguments is not None for run in before)


def _allowing_all_readings(runs: list[HookRun], hooks: Sequence[MatchedHook]) -> list[HookRun]:
    """The runs, where a hook that runs for each path of a URI allows nothing unless it allows each."""
    of_paths = {id(hook.spec) for hook in hooks if hook.path}
    if not of_paths:  # true of nearly all events
        return runs
    partly = {id(run.spec) for run in runs if run.verdict.permission is not Permission.ALLOW} & of_paths
    return [
        replace(run, verdict=replace(run.verdict, permission=None))
        if id(run.spec) in partly and run.verdict.permission is Permission.ALLOW
        else run
        for run in runs
    ]


def _without_repeats(hook_run: HookRun, before: Sequence[HookRun]) -> HookRun:
    """A hook's run under a further name of the tool, without what its runs `before` have said.

    Where one of them denies, it approves nothing.
    """
    if not before or hook_run.verdict is NO_VERDICT:
        return hook_run
    verdict, verdicts = hook_run.verdict, [run.verdict for run in before]
    said = {text for earlier in verdicts for text in earlier.feedback}
    denied = any(earlier.permission is Permission.DENY for earlier in verdicts)
    return replace(
        hook_run,
        verdict=replace(
            verdict,
            permission=None if denied and verdict.permission is Permission.ALLOW else verdict.permission,
            reason="" if verdict.reason in [earlier.reason for earlier in verdicts] else verdict.reason,
            feedback=tuple(text for text in verdict.feedback if text not in said),
        ),
    )


def _in_file_order(ended: list[HookRun], hooks: Sequence[MatchedHook], *, last_ended_counts: bool) -> list[HookRun]:
    """Runs in the order in which they ended, as their file lists the hooks.

    `last_ended_counts`: of several rewrites, only the one of the hook that ended last stays.
    """
    if last_ended_counts:
        rewriting = [
            at for at, run in enumerate(ended) if run.verdict.arguments is not None and not run.verdict.failure
        ]
        for at in rewriting[:-1]:
            ended[at] = replace(ended[at], verdict=replace(ended[at].verdict, arguments=None))
    specs = [hook.spec for hook in hooks]
    return sorted(ended, key=lambda hook_run: specs.index(hook_run.spec))


def _document(group: Group, spec: HookSpec, context: EventContext) -> Document:
    """The dialect's document, with the agent's trace, which a hook continues, and with who calls at a gateway."""
    if group.project:
        context = replace(context, session=context.session.in_project(group.project))
    document = group.dialect.write_input(spec, context)
    if context.trace:
        document = replace(document, env={**document.env, **dict(context.trace)})
    if context.own_tool_name not in ("", context.tool_name):
        document = _with_members(document, {_OWN_NAME: utf8(context.own_tool_name)})
    principal = context.session.principal
    return document if principal is None or document.names_caller else _with_user(document, principal)


def _with_user(document: Document, principal: Principal) -> Document:
    """The document with who calls, as its last members and as variables."""
    groups = ",".join(principal.groups)
    env = {**document.env, "HOOKPROXY_USER": principal.name, "HOOKPROXY_GROUPS": groups}
    return replace(_with_members(document, {"user": principal.name, "groups": principal.groups}), env=env)


def _with_members(document: Document, members: Mapping[str, object]) -> Document:
    """The document with these as its last members. No dialect has members of these names."""
    start, brace, end = bytes(document.stdin).rpartition(b"}")
    if not brace or start.strip() == b"{":
        return document
    return replace(document, stdin=b"%b,%b%b" % (start, raw_json.encode(members)[1:], end))


def _untrusted(failure: str) -> Verdict:
    return Verdict(failure=failure, untrusted=True)


async def _checked_arguments(
    verdict: Verdict, context: EventContext, call_context: EventContext, listed: Tool | None, max_depth: int
) -> Verdict:
    """The verdict with complete arguments under the server's names; a failure without arguments if they do not fit.

    `context` is the event as the hook saw it. Other hooks of the call may see the alias of `call_context`.
    """
    arguments = verdict.arguments or b"{}"
    try:
        if verdict.merges:
            arguments = _merged(context.arguments, arguments)
        if not normalize.normalize(arguments).startswith(b"{"):
            raise raw_json.Unreadable("they are not an object")
        sent = aliases.for_server(context.alias, arguments)
        rewrites.check(call_context, sent, max_depth)
    except ValueError as unreadable:
        failure = f"rewrote the arguments so that they cannot be read: {unreadable}"
        return replace(verdict, arguments=None, failure=failure)
    names = {own: name for name, own in context.alias.arguments.items()} if context.alias else {}
    problem = await rewrites.mismatch(listed, sent, names)
    if not problem:
        return verdict if sent is verdict.arguments else replace(verdict, arguments=sent, merges=False)
    failure = f"rewrote the arguments so that they do not fit the tool: {problem}"
    return replace(verdict, arguments=None, failure=failure)


def _merged(arguments: bytes, changes: bytes) -> bytes:
    """The arguments with the members of `changes` in place of their own."""
    for name, value in raw_json.fields(changes).items():
        arguments = raw_json.with_member(arguments, name, bytes(value))
    return arguments


def _slot_count() -> int:
    """How many hooks may run at a time without lack of descriptors: a guard that cannot start guards nothing."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        _MAX_RUNNING
        if limit == resource.RLIM_INFINITY
        else max(min(_MAX_RUNNING, (limit - _RESERVED_DESCRIPTORS) // _DESCRIPTORS_PER_HOOK), 1)
    )


def _environment_key(group: Group) -> tuple[str, str]:
    alone = group.managed or any(spec.only_narrows for spec in group.hooks)  # a pack sets none for others
    return group.dialect.name, group.source if alone else ""


def _environment(group: Group, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a group's hooks: ours without the identity variables of other hook systems."""
    if group.managed:
        from ..trust.managed_files import environment

        environ = environment(environ, [name for spec in group.hooks for name in spec.allowed_env_vars])
    foreign = foreign_variables(group.dialect.variables)
    return {name: value for name, value in environ.items() if name not in foreign}
