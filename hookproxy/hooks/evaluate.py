"""Asks the hooks that match an occasion, group by group, and says what is decided: the managed layer comes last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..jsonrpc import normalize
from ..model import aliases
from ..model.decision import ApprovalRequest, Comments, Decision, Proceed, RefusalCause, Refuse
from ..model.errors import ConfigError
from ..model.hooks import Event, EventContext, HookRun, Tool, Verdict
from ..model.settings import Settings
from ..policy import decide
from ..runners.runner import CallTool, no_server
from .background import Report
from .permissions import Permissions
from .run_in_order import HookExecutor
from .select import HookGroups, SelectedHooks

if TYPE_CHECKING:
    import anyio.abc

    from ..trust.trusted_files import Trust


class Evaluation(Struct, frozen=True):
    """What came of asking the PreToolUse hooks of all groups."""

    decision: Decision
    arguments: bytes
    """The arguments that the decision is about, as hooks read them."""


class Hooks:
    """All hooks of one run, for the server of this name."""

    def __init__(
        self,
        groups: Sequence[Group],
        settings: Settings,
        server: str,
        environ: Mapping[str, str],
        trust: Trust | None = None,
    ) -> None:
        """Raises ConfigError for a hook that would lead past what is managed."""
        self.groups = HookGroups(groups, server, settings.aliases)
        self._layers = _layers(groups, settings, server, self.groups)
        self.has_rules = any(self._layers)
        """Some permission rule or limit is configured."""
        self.has_limits = any(layer.limits is not None for layer in self._layers)
        """Some limit on calls is configured."""
        check_mcp_tool_hooks(groups, settings)
        self.environ = environ
        self._settings = settings
        self._trust = trust
        self._executor = self._new_executor(groups)
        self.aside = self._executor.aside
        self.runners = self._executor.runners

    def _new_executor(self, groups: Sequence[Group]) -> HookExecutor:
        return HookExecutor(groups, self._settings, self.environ, self._trust, self._allowing)

    # --- permission rules ---

    def counted(self, decision: Decision, tool: str) -> Decision:
        """Count a call of this tool that is about to be forwarded, against the limits of each layer."""
        for layer in self._layers:
            if isinstance(decision, Proceed):
                decision = layer.counted(decision, tool)
        return decision

    def may_repeat(self, tool: str) -> bool:
        """Count a call once more: not against the user's limits, whose hook it is that says so, but managed ones."""
        managed = (layer for layer in self._layers if layer.managed)
        return all(isinstance(layer.counted(Proceed(), tool), Proceed) for layer in managed)

    def concern(self, tool: str) -> bool:
        """True if any hook or rule is to see calls of this tool."""
        for layer in self._layers:  # noqa: SIM110 - each call asks: a generator would cost more than the answer
            if layer.concern(tool):
                return True
        return False

    def hide(self, tool: str) -> bool:
        """True if the tool is not to be listed: a rule denies each of its calls."""
        return any(layer.hide(tool) for layer in self._layers)

    def allow_tool(self, tool: str, question: ApprovalRequest | None) -> None:
        """A person, asked this, allows the tool for the session. Managed rules count it if they were what asked."""
        for layer in self._layers:
            if not layer.managed or (question is not None and question.managed):
                layer.allow_tool(tool)

    def _allowing(self, group: Group, verdict: Verdict) -> Verdict:
        return self._layers[-1 if group.managed else 0].add(verdict)

    def environment(self, managed: bool) -> Mapping[str, str]:
        """What a prompter inherits."""
        if not managed:
            return self.environ
        from ..trust.managed_files import DISPLAY_VARIABLES, environment

        return environment(self.environ, DISPLAY_VARIABLES, real_home=True)

    def prompter_failure(self, managed: bool) -> str:
        """Why the prompter must not run, in one sentence without a full stop; empty: it may."""
        return self._trust.prompter_failure() if self._trust and not managed else ""

    def begin(
        self, tasks: anyio.abc.TaskGroup, report: Report, tell: Callable[[], None], call_tool: CallTool = no_server
    ) -> None:
        """Hooks that nobody waits for run in `tasks` and end with it; `tell` is called when one has ended.

        `report` gets each statement when it is made. Hooks that are tools are called by `call_tool`.
        """
        self._executor.begin(tasks, report, tell, call_tool)

    async def before(self, context: EventContext, listed: Tool | None, hook_runs: list[HookRun]) -> Evaluation:
        """Ask the PreToolUse hooks: each group sees the arguments as rewritten so far, and a denial ends it.

        `listed` is what is known of the tool: a rewrite that does not fit its schema is trouble. All that is said
        goes to `heard` at once. On cancel the hooks that run are ended with their whole process groups.
        """
        evaluation = Evaluation(Proceed(), context.arguments)
        for layer in self._layers:
            decision = evaluation.decision
            if isinstance(decision, Refuse):
                break
            if layer.managed:
                context = replace(context, arguments=evaluation.arguments)
                evaluation = await self._judged_by_managed(layer, decision, context, listed, hook_runs)
            else:
                evaluation = await self._judged(layer, decision, context, listed, hook_runs)
        return evaluation

    async def _judged_by_managed(
        self, layer: Permissions, proceed: Proceed, context: EventContext, listed: Tool | None, hook_runs: list[HookRun]
    ) -> Evaluation:
        """As `_judged`, of the arguments that are final, by the names that managed hooks know and no user's alias."""
        outer, earlier, proceed = context.alias, proceed.question, replace(proceed, question=None)
        try:
            sent = aliases.for_server(outer, context.arguments)
            inner = layer.groups.alias(context.tool, sent)
            if inner == outer:
                return await self._judged(layer, proceed, context, listed, hook_runs, earlier)
            final = replace(context, alias=inner, arguments=aliases.for_hooks(inner, sent))
            judged = await self._judged(layer, proceed, final, listed, hook_runs, earlier)
            if judged.arguments is final.arguments:
                return Evaluation(judged.decision, context.arguments)
            back = aliases.for_hooks(outer, aliases.for_server(inner, judged.arguments))
        except ValueError as unreadable:  # names that two sides would take for different things
            return Evaluation(
                Refuse("the managed hooks", str(unreadable), cause=RefusalCause.FAILURE), context.arguments
            )
        rewritten = isinstance(judged.decision, Proceed)
        return Evaluation(replace(judged.decision, arguments=back) if rewritten else judged.decision, back)

    async def _judged(
        self,
        layer: Permissions,
        proceed: Proceed,
        context: EventContext,
        listed: Tool | None,
        hook_runs: list[HookRun],
        earlier: ApprovalRequest | None = None,
    ) -> Evaluation:
        """What one layer makes of a call that the layer before it let go, with the `earlier` question of that."""
        for selected in layer.groups.select(context.event, context.tool):
            context = context if context.tool_name == selected.tool_name else selected.shown(context)
            hooks = selected.applying(context) if selected.conditional else selected.hooks
            said = await self._executor.ask(selected.group, hooks, context, hook_runs, listed)
            if decide.silent(said):  # as of most calls, and it decides nothing
                continue
            decision = decide.decide(said, self._settings, selected.group.on_failure)
            feedback = proceed.feedback + decision.feedback
            if isinstance(decision, Refuse):
                return Evaluation(replace(decision, feedback=feedback), context.arguments)
            rewritten = proceed.arguments
            if decision.arguments is not None:
                rewritten = decision.arguments
                context = replace(context, arguments=normalize.normalise(rewritten))
            question = proceed.question or decision.question
            proceed = replace(proceed, arguments=rewritten, feedback=feedback, question=question)
        ruled = layer.ruled(proceed, context)
        if isinstance(ruled, Refuse):
            return Evaluation(ruled, context.arguments)
        if layer.managed:
            ruled = replace(ruled, question=_both(earlier, ruled.question))
        requests = layer.groups.select(Event.PERMISSION_REQUEST, context.tool)
        if requests or ruled.question:
            return await self._permitted(layer, ruled, context, listed, hook_runs)
        return Evaluation(ruled, context.arguments)

    async def after(self, context: EventContext, hook_runs: list[HookRun]) -> Comments:
        """Ask the PostToolUse or PostToolUseFailure hooks of all groups; else as `before`."""
        comments = Comments()
        for layer in self._layers:
            known = _known_to(layer, context)
            for selected in layer.groups.select(context.event, context.tool):
                known, rule = selected.shown(known), selected.group.on_failure
                said = await self._executor.ask(selected.group, selected.applying(known), known, hook_runs)
                comments = decide.merge_comments(comments, decide.comments(said, self._settings, rule))
        return comments

    async def at(self, context: EventContext, only_observers: bool = False) -> list[HookRun]:
        """Ask the hooks of an occasion that decides nothing: of the session, or beside a call.

        `only_told`: those that may answer a question of the server are asked elsewhere.
        """
        hook_runs: list[HookRun] = []
        for layer in self._layers:
            known = _known_to(layer, context)
            for selected in layer.groups.at(context):
                if not (only_observers and selected.answers):
                    hook_runs += await self.asked(selected, known)
        return hook_runs

    async def asked(self, selected: SelectedHooks, context: EventContext) -> list[HookRun]:
        """Ask one group's hooks; statements stand in the order in which the last one wins."""
        shown = selected.shown(context)
        return await self._executor.ask(selected.group, selected.applying(shown), shown, [])

    async def _permitted(
        self,
        layer: Permissions,
        proceed: Proceed,
        context: EventContext,
        listed: Tool | None,
        hook_runs: list[HookRun],
    ) -> Evaluation:
        """Ask the PermissionRequest hooks: all, if somebody wants a person to be asked, else those for each call."""
        question, yes = proceed.question, False
        request = replace(context, event=Event.PERMISSION_REQUEST, message=question.reason if question else "")
        for selected in layer.groups.select(Event.PERMISSION_REQUEST, context.tool):
            request, group = selected.shown(request), selected.group
            hooks = [spec for spec in selected.applying(request) if question or spec.every_call]
            said = await self._executor.ask(group, hooks, request, hook_runs, listed)
            answer = decide.permitted(said, self._settings, group.on_failure, group.dialect.later_overrides)
            if isinstance(answer, Refuse):
                return Evaluation(replace(answer, feedback=proceed.feedback + answer.feedback), request.arguments)
            yes = yes or answer
            rewritten = decide.allowed_instead(said) if answer else None
            if rewritten is not None:
                proceed = replace(proceed, arguments=rewritten)
                request = replace(request, arguments=normalize.normalise(rewritten))
        if question and (yes or layer.allow(request)):
            proceed = replace(proceed, question=None, asked=True)
        if request.arguments is context.arguments:
            return Evaluation(proceed, request.arguments)
        return Evaluation(layer.ruled(proceed, request), request.arguments)  # no rule has seen these


def _layers(groups: Sequence[Group], settings: Settings, server: str, whole: HookGroups) -> tuple[Permissions, ...]:
    """The layers that judge a call one after another: the managed one comes last, about what is final."""
    if settings.managed is None and not any(group.managed for group in groups):
        return (Permissions(whole, settings),)
    ruling = settings.managed or Settings()
    users = HookGroups([one for one in groups if not one.managed], server, settings.aliases)
    managed = HookGroups([one for one in groups if one.managed], server, ruling.aliases)
    return (Permissions(users, settings), Permissions(managed, ruling, managed=True))


def check_mcp_tool_hooks(groups: Sequence[Group], settings: Settings) -> None:
    """Nobody judges the call that a hook is: no user's hook is one that the administrator wants judged.

    Raises ConfigError.
    """
    for spec in (spec for group in groups if not group.managed for spec in group.hooks if spec.type == "mcp_tool"):
        last = _layers(groups, settings, spec.server, HookGroups(groups, spec.server, settings.aliases))[-1]
        if last.managed and last.concern(spec.tool):
            why = f"calls the tool {spec.tool}, whose calls managed hooks or rules judge, and nobody judges a hook's"
            raise ConfigError(spec.source, why, "ask a command or a worker instead")


def _known_to(layer: Permissions, context: EventContext) -> EventContext:
    """The occasion by the names that this layer's hooks know: no user's alias holds for managed ones."""
    if not layer.managed or not (context.alias or layer.groups.aliases):
        return context
    alias = None
    with suppress(ValueError):  # what two sides would take for different things goes by the server's names
        context = replace(context, arguments=aliases.for_server(context.alias, context.arguments), alias=None)
        alias = layer.groups.alias(context.tool, context.arguments)
    return replace(context, alias=alias, arguments=aliases.for_hooks(alias, context.arguments))


def _both(earlier: ApprovalRequest | None, question: ApprovalRequest | None) -> ApprovalRequest | None:
    """What is left of the questions of the users' layer and the managed one: the latter's stands for both."""
    if question is None:
        return earlier
    reasons = [one.reason for one in (question, earlier) if one is not None and one.reason]
    return replace(question, reason="\n".join(reasons), managed=True)
