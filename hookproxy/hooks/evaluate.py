"""Runs the hooks that match an event, group by group, and returns the decision: the managed layer comes last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ..dialects.dialect import Effect, Group
from ..dialects.shared.output import truncate
from ..jsonrpc import normalize
from ..model.aliases import Alias
from ..model.decision import ApprovalRequest, Comments, Decision, Proceed, RefusalCause, Refuse, first_request
from ..model.errors import ConfigError
from ..model.hooks import Event, EventContext, HookRun, Tool, Verdict
from ..model.settings import ServerNamed, Settings
from ..policy import decide, methods
from ..policy.shared_state import NOTHING_SHARED, SessionCalls, Shared, StoreUnavailable
from ..protocol import calls, request_edits
from ..runners.runner import CallTool, no_server
from .background import ReportHookRun
from .familiar_tools import FamiliarTools, has_command
from .permissions import Permissions, layers
from .run_hooks import HookExecutor, HookSecrets
from .select import HookGroups, SelectedHooks

if TYPE_CHECKING:
    import anyio.abc

    from ..audit.call_record import Record
    from ..model.reported_call import ReportedCall
    from ..policy.shared_state import SharedLabels
    from ..trust.check_unchanged import Trust
    from .data_flow import DataFlow


class Evaluation(Struct, frozen=True):
    """The result of the PreToolUse hooks of all groups."""

    decision: Decision
    arguments: bytes
    """The arguments that the decision is about, as hooks get them."""
    managed_alias: Alias | UnsetType | None = UNSET
    """As in EventContext: under these names the managed layer has decided; UNSET: it has not."""

    def context_after(self, context: EventContext) -> EventContext:
        """The context of the same call for what follows the decision; `context` itself if nothing has changed."""
        if self.arguments is context.arguments and self.managed_alias is context.managed_alias:
            return context
        return replace(context, arguments=self.arguments, managed_alias=self.managed_alias)


class Hooks:
    """All hooks of one run, for the server of this name.

    It is long because whatever is asked about calls is asked here once, and goes to each layer and to the flow of data:
    nobody else knows that there are layers.
    """

    def __init__(  # noqa: PLR0913  # its parts, which are read elsewhere
        self,
        groups: Sequence[Group],
        settings: Settings,
        server: str | None,
        environ: Mapping[str, str],
        trust: Trust | None = None,
        command: Sequence[str] = (),
        shared: Shared = NOTHING_SHARED,
        named: ServerNamed = ServerNamed.FOR_CERTAIN,
    ) -> None:
        """`command` is the server's command line; empty: not known. `shared` is what it has in common with other runs.

        `server` and `named` are as in `HookGroups`.

        Raises ConfigError for a hook that would bypass managed hooks or rules.
        """
        self._familiar = FamiliarTools(command, server=server or "")
        known = self._familiar if settings.auto_aliases else None
        self.groups = HookGroups(groups, server, settings.aliases, known, named)
        self._layers = layers(self.groups, settings, self._familiar, shared)
        self.has_rules = any(self._layers)
        """Some permission rule or limit is configured."""
        self.has_limits = any(layer.limits is not None for layer in self._layers)
        """Some limit on calls is configured."""
        self.flow = self._data_flow(settings, server or "", shared)
        """Where data may go; None: nothing says so."""
        self._labels: SharedLabels | None = None  # of the session, also while nothing says where data may go
        self._shows_labels = any(group.dialect.has_effect(Effect.SETS_LABELS) for group in groups)
        self._calls = _calls_for(groups, shared)
        self._shows_past = self._calls is not None or (self.flow is not None and self._shows_labels)
        self._transcript = shared.transcript
        self.native = shared.native
        """Knows what the agent's own hooks tell; None: nobody does."""
        check_mcp_tool_hooks(groups, settings)
        self.environ = environ
        self._settings = settings
        self._trust = trust
        self._executor = self._new_executor(groups)
        self.background = self._executor.background
        self.runners = self._executor.runners
        self.running = self._executor.running

    def hide(self, secrets: HookSecrets) -> None:
        """Let hooks see placeholders in the place of secrets, but those that may see the values."""
        self._executor.secrets = secrets

    def note_call(self, record: Record) -> None:
        """A call has ended: hooks of later ones may get it."""
        if self._calls is not None:
            arguments = record.final or record.arguments
            self._calls.note(record.server, record.tool, arguments, record.decision, record.result)

    def keep_inputs(self) -> None:
        """Keep the document that each hook gets from now on, for people who look at the calls."""
        self._executor.keeps_input = True

    def _new_executor(self, groups: Sequence[Group]) -> HookExecutor:
        return HookExecutor(groups, self._settings, self.environ, self._trust, self._add_allowed_rules)

    def _data_flow(self, settings: Settings, server: str, shared: Shared) -> DataFlow | None:
        if not settings.has_flow:
            return None
        from .data_flow import DataFlow  # only for such configurations

        of_managed = (settings.managed or Settings(),) if self._layers[-1].managed else ()
        of_layers = (settings, *settings.pack_rules, *of_managed)
        labels = shared.new_labels() if shared.labels is None and shared.new_labels is not None else shared.labels
        return DataFlow(list(zip(self._layers, of_layers, strict=True)), server, labels)

    def go_on_from(self, former: Hooks) -> None:
        """Go on with what holds for the session whatever its policy: the variables of its hooks, and its labels."""
        for key, variables in former._executor.variables.items():
            self._executor.set_variables(key, variables)
        self._labels = former._labels if former.flow is None else former.flow.labels
        if self.flow is not None and self._labels is not None:
            self.flow.labels = self._labels

    def note_tools(self, tools: Iterable[Tool], server_name: str) -> bool:
        """Note the tools on a page of tools/list: hooks may know them by names that follow from their arguments.

        `server_name` is `serverInfo.name`; empty: not known. Returns whether the names of other tools may change too.
        """
        renamed = self._familiar.note_tools(tools, server_name)
        for groups in (self.groups, *(layer.groups for layer in self._layers)):
            groups.forget_tools()
        if self.flow is not None:
            self.flow.forget_tools()
        return renamed

    def note_own_tool(self, alias: Alias) -> None:
        """The agent itself has this tool: what is about one of the alias's names is about the tool."""
        new = [groups.note_own_tool(alias) for groups in (self.groups, *(layer.groups for layer in self._layers))]
        if any(new) and self.flow is not None:
            self.flow.forget_tools()

    def prepare_names(self) -> None:
        """Import what recognises tools by their names, if it will be needed."""
        if (self.groups or self.has_rules or self.flow is not None) and any(
            layer.groups.recognises_names for layer in self._layers
        ):
            self._familiar.prepare()

    def keep_managed_alias(self, context: EventContext) -> EventContext:
        """The context with the managed layer's alias, which then holds for the whole call."""
        managed = _context_for_layer(self._layers[-1], context) if self._layers[-1].managed else context
        return replace(context, managed_alias=managed.alias)

    def concerns_method(self, method: str) -> bool:
        """True if some hook, rule, limit, source or sink names this method, other than `tools/call`."""
        if self.flow is not None and self.flow.concerns(method):
            return True
        return any(layer.concerns_method(method) for layer in self._layers)

    # --- permission rules ---

    async def apply_limits(self, decision: Decision, context: EventContext) -> Decision:
        """Count a call that is about to be forwarded against each layer's rate limits; refuse it beyond one."""
        for layer in self._layers:
            if isinstance(decision, Proceed) and layer.limits is not None:
                decision = await layer.limits.count_call(decision, _context_for_layer(layer, context))
        return decision

    def needs_outcome(self, tool: str) -> bool:
        """True if a hook may need the outcome of calls of this tool, or a limit must know how they end."""
        if self.observes_outcome(tool):
            return True
        return self.has_limits and any(layer.measures_results(tool) for layer in self._layers)

    def note_end(self, context: EventContext, size: int, seconds: float) -> None:
        """Count the bytes of the response to a call against limits, and how long it took."""
        if self.has_limits:
            for layer in self._layers:
                if layer.limits is not None:
                    layer.limits.note_end(_context_for_layer(layer, context), size, seconds)

    async def may_repeat(self, context: EventContext) -> bool:
        """Count a repeat of a call: only against managed limits, because a hook of the user wants the repeat."""
        for layer in self._layers:
            if layer.managed and layer.limits is not None:
                decision = await layer.limits.count_call(Proceed(), _context_for_layer(layer, context))
                if not isinstance(decision, Proceed):
                    return False
        return True

    def concerns(self, tool: str) -> bool:
        """True if any hook, rule, limit, source or sink is about calls of this tool."""
        for layer in self._layers:
            if layer.concerns(tool):
                return True
        return self.flow is not None and self.flow.concerns(tool)

    def has_post_hooks_for(self, tool: str) -> bool:
        """True if some layer's PostToolUse or PostToolUseFailure hook may match calls of this tool, or it is a source.

        Then nothing of its output reaches the agent before that.
        """
        if any(layer.groups.has_post_hooks_for(tool) for layer in self._layers):
            return True
        return self.has_source(tool)

    def observes_outcome(self, tool: str) -> bool:
        """True if some layer's hook may need the outcome of calls of this tool."""
        for layer in self._layers:
            if layer.groups.observes_outcome(tool):
                return True
        return self.has_source(tool)

    # --- where data may go ---

    def has_source(self, tool: str) -> bool:
        """True if results of this tool, or of requests of this method, may get labels."""
        return self.flow is not None and self.flow.has_source(tool)

    @property
    def has_sources(self) -> bool:
        """Results of some calls may get labels, and so may what the server asks before these come."""
        return self.flow is not None and self.flow.has_sources

    async def judge_answer(self, proceed: Proceed, context: EventContext, answer: bytes) -> Decision:
        """The decision about what the agent sends in answer to a request of the server, a JSON value.

        `context` is that of the request, or of the call in whose further round it comes, and `proceed` what was decided
        about it: what a person has approved then is not asked again.
        """
        if self.flow is None:
            return proceed
        return await self.flow.judge(proceed, self._contexts(context), None, answer)

    async def note_result(self, context: EventContext, output: bytes, call: str, comments: Comments) -> Sequence[str]:
        """Note that a result of a call is about to reach the agent; return the labels that it has.

        `output` is a JSON value with all of its texts, and `call` the id of the call in the audit. Raises
        StoreUnavailable: then it must not reach the agent.
        """
        if self.flow is None:
            return ()
        return await self.flow.note_result(self._contexts(context), output, call, comments)

    async def note_begun(self, context: EventContext, call: str) -> Sequence[str]:
        """Note a call that may begin, where nobody may hear of its result; `call` and what it returns as above."""
        return () if self.flow is None else await self.flow.note_begun(self._contexts(context), call)

    def _contexts(self, context: EventContext) -> list[EventContext]:
        """The context as each layer sees it."""
        return [_context_for_layer(layer, context) for layer in self._layers]

    def hides(self, tool: str) -> bool:
        """True if the tool must not be listed, because a rule denies each of its calls."""
        return any(layer.hides(tool) for layer in self._layers)

    async def allow_tool(self, tool: str, request: ApprovalRequest | None) -> None:
        """Allow the tool for the session, as a person answered; in the managed layer only for its own request.

        What the call would carry to sinks is allowed, too. Raises StoreUnavailable.
        """
        for layer in self._layers:
            if not layer.managed or (request is not None and request.managed):
                await layer.approvals.allow_tool(tool, () if request is None else request.limits)
                if request is not None and request.limits and request.else_asked:
                    await layer.approvals.allow_tool(tool)
        if self.flow is not None and request is not None:
            await self.flow.clear(request.chains)

    def similar_calls(self, context: EventContext, request: ApprovalRequest) -> str:
        """The calls like this one that a person may allow for the session, as a permission rule; empty: none."""
        return self._layer(request.managed).approvals.similar_calls(context, request)

    async def allow_similar(self, context: EventContext, request: ApprovalRequest) -> None:
        """Allow the calls like this one for the session, as a person answered; as `allow_tool`."""
        for layer in self._layers:
            if not layer.managed or request.managed:
                await layer.approvals.allow_similar(context, request)

    def _layer(self, managed: bool) -> Permissions:
        return self._layers[-1 if managed else 0]

    def _add_allowed_rules(self, group: Group, verdict: Verdict) -> Verdict:
        return self._layer(group.managed).approvals.add_allowed_rules(verdict)

    def prompter_environment(self, managed: bool) -> Mapping[str, str]:
        """The environment that a prompter inherits."""
        if not managed:
            return self.environ
        from ..trust.managed_files import DISPLAY_VARIABLES, environment

        return environment(self.environ, DISPLAY_VARIABLES, real_home=True)

    def prompter_failure(self, managed: bool) -> str:
        """Why the prompter must not run, in one sentence without a full stop; empty if it may."""
        return self._trust.prompter_failure() if self._trust and not managed else ""

    def open(
        self,
        tasks: anyio.abc.TaskGroup,
        report: ReportHookRun,
        notify: Callable[[], None],
        call_tool: CallTool = no_server,
    ) -> None:
        """Run background hooks in `tasks` from now on, which ends them; `notify` is called when one has ended.

        `report` gets each hook run when it has ended. `call_tool` runs the hooks that are tools of the server.
        """
        self._executor.open(tasks, report, notify, call_tool)

    async def run_pre_hooks(self, context: EventContext, listed: Tool | None, hook_runs: list[HookRun]) -> Evaluation:
        """Run the PreToolUse hooks: each group sees the arguments as rewritten so far, and a denial ends it.

        `context.arguments` and the arguments in the result are under the server's names.
        `listed` is the tool's entry in `tools/list`: a rewrite that does not fit its schema is a failure. Each hook
        run is appended to `hook_runs` at once. On cancel the hooks that run are ended with their whole process groups.
        """
        if self._transcript is not None and not methods.is_method(context.tool):
            self._transcript.note_call(context)
        try:
            context = await self._with_past(context) if self._shows_past else context
        except StoreUnavailable as problem:  # hooks may decide by them
            refuse = Refuse("what the session has read", str(problem), cause=RefusalCause.STORE_AWAY)
            return Evaluation(refuse, context.arguments)
        evaluation, first, before = Evaluation(Proceed(), context.arguments), context, len(hook_runs)
        for layer in self._layers:
            decision = evaluation.decision
            if isinstance(decision, Refuse):
                break
            evaluator = _LayerEvaluator(self._executor, layer, listed, hook_runs)
            evaluation = await evaluator.evaluate_after(decision, evaluation.arguments, context)
        if self.flow is not None:
            contexts = self._contexts(evaluation.context_after(first))
            decision = await self.flow.decide(evaluation.decision, contexts, listed, hook_runs[before:])
            evaluation = replace(evaluation, decision=decision)
        return evaluation

    async def judge_again(self, context: EventContext, listed: Tool | None, reported: ReportedCall) -> Decision:
        """The decision on a call for which these very hooks have run elsewhere, where nothing refused it.

        What needs no hook is judged again, as what has been reported may be wrong: a rule that denies the call does,
        and what its agent has read meanwhile counts. There is no managed layer: what that requires is never judged
        elsewhere alone.
        """
        for layer in self._layers:
            decision = layer.apply_rules(Proceed(), context, allowed=True)
            if isinstance(decision, Refuse):
                return decision
        proceed = Proceed(asked=reported.asked, exceeds=reported.exceeds, chains=reported.chains)
        return proceed if self.flow is None else await self.flow.judge(proceed, self._contexts(context), listed)

    async def run_meta_hooks(self, context: EventContext, hook_runs: list[HookRun]) -> bytes | Refuse | None:
        """Run the PreMcpToolCall hooks on a call that is about to be sent, managed ones last: each sees `_meta` so far.

        Returns the `_meta` to send as in `Verdict.meta`; or the refusal that follows from a hook's failure.
        """
        chosen: bytes | None = None
        for layer in self._layers:
            alias = _context_for_layer(layer, context).alias  # only for matchers: the call has the server's own names
            for selected in layer.groups.select(context.event, context.tool, alias):
                sent_context, group = replace(context, alias=None), selected.group
                runs = await self._executor.run_group(group, selected.hooks, sent_context, hook_runs)
                if refuse := decide.failure_refusal(runs, self._settings, group.on_failure):
                    return refuse
                meta = decide.chosen_meta(runs)
                if meta is not None:
                    chosen = meta
                    sent = request_edits.meta_for_server(calls.meta(context.meta), meta)
                    context = replace(context, meta=normalize.normalize(sent) if sent else b"")
        return chosen

    async def run_post_hooks(self, context: EventContext, hook_runs: list[HookRun]) -> Comments:
        """Run the PostToolUse or PostToolUseFailure hooks of all groups; otherwise as `run_pre_hooks`."""
        if self._transcript is not None and not methods.is_method(context.tool):
            self._transcript.note_result(context)
        comments = Comments()
        with suppress(StoreUnavailable):  # then its documents have no labels, and the output itself waits for the store
            context = await self._with_past(context) if self._shows_past else context
        for layer in self._layers:
            own_context = _context_for_layer(layer, context)
            for selected in layer.groups.select(context.event, context.tool, own_context.alias):
                group = selected.group
                if group.dialect.after_results_only and not (context.outcome and context.outcome.has_result):
                    continue
                runs = await self._executor.run_group(group, selected.applicable(own_context), own_context, hook_runs)
                own = decide.comments(runs, self._settings, group.on_failure)
                if group.dialect.longest_feedback:
                    own = replace(own, feedback=_joined(own.feedback, group.dialect.longest_feedback))
                comments = decide.merge_comments(comments, own)
        return comments

    async def _with_past(self, context: EventContext) -> EventContext:
        """The context with what was before in the session, if some hook gets it: calls, and labels of what was read.

        Raises StoreUnavailable.
        """
        if self._calls is not None:
            context = replace(context, calls=self._calls.json)
        if self.flow is None or not self._shows_labels:
            return context
        return replace(context, labels=await self.flow.names())

    async def run_event_hooks(self, context: EventContext, only_observers: bool = False) -> list[HookRun]:
        """Run the hooks of an event that decides nothing: an event of the session, or one during a call.

        `only_observers`: leave out the hooks that may answer an elicitation; they run elsewhere.
        """
        hook_runs: list[HookRun] = []
        for layer in self._layers:
            own_context = _context_for_layer(layer, context)
            for selected in layer.groups.select_for(own_context):
                if not (only_observers and selected.may_answer):
                    hook_runs += await self.run_group(selected, own_context)
        return hook_runs

    async def run_group(self, selected: SelectedHooks, context: EventContext) -> list[HookRun]:
        """Run one group's hooks. Of contradicting hook runs in the returned list, the last one wins."""
        if context.event is Event.NOTIFICATION:
            context = replace(context, trigger=selected.group.dialect.notifications[context.trigger])
        return await self._executor.run_group(selected.group, selected.applicable(context), context, [])


class _LayerEvaluator(Struct):
    """Evaluates one call in one layer: its hooks group by group, its rules, and its PermissionRequest hooks."""

    executor: HookExecutor
    layer: Permissions
    listed: Tool | None
    hook_runs: list[HookRun]

    async def evaluate_after(self, proceed: Proceed, arguments: bytes, context: EventContext) -> Evaluation:
        """Go on from what earlier layers decided about a call, with the arguments that they left."""
        if self.layer.managed:
            return await self.evaluate_managed(proceed, replace(context, arguments=arguments))
        if arguments is not context.arguments:
            context = _with_arguments(self.layer, context, arguments)
        if wrong := self.layer.wrong_arguments(context, self.listed):
            return Evaluation(replace(wrong, feedback=proceed.feedback), context.arguments)
        return await (self.evaluate_pack if self.layer.of_pack else self.evaluate)(proceed, context)

    async def evaluate_managed(self, proceed: Proceed, context: EventContext) -> Evaluation:
        """As `evaluate`, on the final arguments, under the names of managed aliases instead of the user's."""
        earlier_request, proceed = proceed.approval_request, replace(proceed, approval_request=None)
        try:
            alias = _of_agent_too(self.layer.groups.alias(context.tool, context.arguments), context)
            context = replace(context, alias=alias)
            if wrong := self.layer.wrong_arguments(context, self.listed):
                return Evaluation(replace(wrong, feedback=proceed.feedback), context.arguments, alias)
            evaluation = await self.evaluate(proceed, context, earlier_request)
            return replace(evaluation, managed_alias=alias)
        except ValueError as unreadable:  # names that the two sides would read differently
            refuse = Refuse("the managed hooks", str(unreadable), cause=RefusalCause.FAILURE)
            return Evaluation(refuse, context.arguments)

    async def evaluate_pack(self, proceed: Proceed, context: EventContext) -> Evaluation:
        """As `evaluate` for the rules of a pack: what was asked before stays asked."""
        evaluation = await self.evaluate(replace(proceed, approval_request=None), context)
        decision = evaluation.decision
        if isinstance(decision, Refuse):
            return evaluation
        earlier, own = proceed.approval_request, decision.approval_request
        request = earlier.joined(own) if earlier is not None and own is not None else earlier or own
        return replace(evaluation, decision=replace(decision, approval_request=request))

    async def evaluate(
        self, proceed: Proceed, context: EventContext, earlier_request: ApprovalRequest | None = None
    ) -> Evaluation:
        """Go on from what earlier layers decided; `earlier_request` is the approval request of the layer before."""
        layer, settings = self.layer, self.executor.settings
        allowed = False
        for selected in layer.groups.select(context.event, context.tool, context.alias):
            group = selected.group
            hooks = selected.applicable(context) if selected.conditional else selected.hooks
            anew = selected.applicable if selected.selected_by_stage else None
            runs = await self.executor.run_group(group, hooks, context, self.hook_runs, self.listed, anew)
            if decide.no_verdicts(runs):  # true of most calls
                continue
            decision = decide.decide(runs, settings, group.on_failure)
            feedback = proceed.feedback + decision.feedback
            if isinstance(decision, Refuse):
                return Evaluation(replace(decision, feedback=feedback), context.arguments)
            counts = partial(_may_allow, selected, context)
            in_turn = group.dialect.order.passes_rewrites
            allowed = decide.allows_final(runs, counts, decision.arguments, allowed, in_turn=in_turn)
            rewritten = proceed.arguments
            if decision.arguments is not None:
                rewritten = decision.arguments
                context = _with_arguments(layer, context, rewritten)
            request = first_request(proceed.approval_request, decision.approval_request)
            asked = proceed.asked or decision.asked
            proceed = replace(proceed, arguments=rewritten, feedback=feedback, approval_request=request, asked=asked)
        after_rules = await self._apply_rules(proceed, context, allowed=allowed)
        if isinstance(after_rules, Refuse):
            return Evaluation(after_rules, context.arguments)
        if layer.managed:
            request = _merge_requests(earlier_request, after_rules.approval_request)
            after_rules = replace(after_rules, approval_request=request)
        requests = layer.groups.select(Event.PERMISSION_REQUEST, context.tool, context.alias)
        if requests or after_rules.approval_request:
            return await self._request_permission(after_rules, context, requests)
        return Evaluation(after_rules, context.arguments)

    async def _apply_rules(self, proceed: Proceed, context: EventContext, *, allowed: bool) -> Decision:
        """As `Permissions.apply_rules`, with the limits that are counted elsewhere, if they may do else than refuse."""
        after_rules, limits = self.layer.apply_rules(proceed, context, allowed=allowed), self.layer.limits
        if isinstance(after_rules, Proceed) and limits is not None and limits.must_ask_store:
            return await limits.count_call(after_rules, context, count=False)
        return after_rules

    async def _request_permission(
        self, proceed: Proceed, context: EventContext, requests: Sequence[SelectedHooks]
    ) -> Evaluation:
        """Run the PermissionRequest hooks: all of them if a person should be asked, else those that see every call."""
        layer, settings = self.layer, self.executor.settings
        wanted, allowed, allows_rewritten = proceed.approval_request, False, False
        counted = layer.limits
        if wanted and counted and counted.counted_together and not counted.must_ask_store:  # nobody has asked them
            within = await counted.count_call(proceed, context, count=False)
            if isinstance(within, Refuse):
                return Evaluation(within, context.arguments)
        request = replace(context, event=Event.PERMISSION_REQUEST, message=wanted.reason if wanted else "")
        for selected in requests:
            group = selected.group
            hooks = [hook for hook in selected.applicable(request) if wanted or hook.spec.every_call]
            runs = await self.executor.run_group(group, hooks, request, self.hook_runs, self.listed)
            decided = decide.permission_decision(runs, settings, group.on_failure, group.dialect.last_answer_counts)
            if isinstance(decided, Refuse):
                return Evaluation(replace(decided, feedback=proceed.feedback + decided.feedback), request.arguments)
            allowing = decided and decide.allows([run for run in runs if _may_allow(selected, context, run)])
            allowed = allowed or allowing
            rewritten = decide.allowed_arguments(runs) if decided else None
            if rewritten is not None:
                proceed, allows_rewritten = replace(proceed, arguments=rewritten), allowing
                request = _with_arguments(layer, request, rewritten)
        if wanted and (allowed or await self._is_approved(wanted, request)):
            proceed = replace(proceed, approval_request=None, asked=True)
        if request.arguments is context.arguments:
            return Evaluation(proceed, request.arguments)
        # no rule has seen these arguments
        after_rules = await self._apply_rules(proceed, request, allowed=allows_rewritten)
        return Evaluation(after_rules, request.arguments)

    async def _is_approved(self, wanted: ApprovalRequest, context: EventContext) -> bool:
        """True if what was allowed for the session answers all that requires the approval."""
        approvals = self.layer.approvals
        reasons = ((wanted.limits, ()) if wanted.else_asked else (wanted.limits,)) if wanted.limits else ((),)
        for limits in reasons:
            if not (approvals.allow(context, limits) or await approvals.allow_elsewhere(context, limits)):
                return False
        return True


def _calls_for(groups: Sequence[Group], shared: Shared) -> SessionCalls | None:
    """Keeps the calls of the session, if some hook gets them; None: none does."""
    if not any(spec.type == "python" for group in groups for spec in group.hooks):
        return None
    if shared.calls is not None:
        return shared.calls
    from . import session_calls

    return session_calls.SessionCalls()


def _with_arguments(layer: Permissions, context: EventContext, rewritten: bytes) -> EventContext:
    """The context after a rewrite. A method's familiar names depend on its URI, so they are found anew.

    Raises Unreadable, DuplicateKeys for a URI that may mean anything.
    """
    context = replace(context, arguments=normalize.normalize(rewritten))
    if not methods.is_method(context.tool):
        return context
    return replace(context, alias=layer.groups.alias(context.tool, context.arguments))


def _may_allow(selected: SelectedHooks, context: EventContext, run: HookRun) -> bool:
    return selected.may_allow(run.tool_name, context.alias)


def check_mcp_tool_hooks(groups: Sequence[Group], settings: Settings) -> None:
    """Check that no user's hook calls a tool to which managed hooks or rules apply: they do not see calls of hooks.

    Raises ConfigError.
    """
    for spec in (spec for group in groups if not group.managed for spec in group.hooks if spec.type == "mcp_tool"):
        whole = HookGroups(groups, spec.server, settings.aliases)
        familiar = FamiliarTools(any_server=True, guesses=has_command(spec.input))
        last = layers(whole, settings, familiar)[-1]
        if last.managed and last.concerns(spec.tool):
            why = f"calls the tool {spec.tool}, to which managed hooks or rules apply; they do not see calls of hooks"
            raise ConfigError(spec.source, why, "use a hook of type command or worker instead")


def _joined(texts: Sequence[str], longest: int) -> tuple[str, ...]:
    """The texts as one, with blank lines between them, cut to this length."""
    return (truncate("\n\n".join(texts), longest),) if len(texts) > 1 else tuple(texts)


def _context_for_layer(layer: Permissions, context: EventContext) -> EventContext:
    """The context with this layer's alias: a user's alias does not hold for managed hooks."""
    if not (layer.managed and context.tool):
        return context
    alias = context.managed_alias
    if alias is UNSET:
        alias = None
        with suppress(ValueError):  # arguments that its names make ambiguous keep the server's names
            alias = layer.groups.alias(context.tool, context.arguments)
    return context if alias is context.alias else replace(context, alias=alias)


def _of_agent_too(alias: Alias | None, context: EventContext) -> Alias | None:
    """A managed alias, behind the one that the agent's own tool has: nobody's configuration takes that away."""
    own = context.managed_alias
    if context.session.server or own is UNSET or own is None:
        return alias
    more = () if alias is None else (alias, *alias.alternatives)
    known = (*own.alternatives, *(other for other in more if other.name not in own.names))
    return replace(own, alternatives=known)


def _merge_requests(earlier_request: ApprovalRequest | None, request: ApprovalRequest | None) -> ApprovalRequest | None:
    """One approval request from those of earlier layers and the managed one: that replaces them."""
    if request is None or earlier_request is None:
        return earlier_request if request is None else replace(request, managed=True)
    return replace(request.joined(earlier_request), managed=True)
