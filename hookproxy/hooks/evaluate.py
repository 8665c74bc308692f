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
from ..model.decision import Comments, Decision, Ground, Proceed, Question, Refuse
from ..model.errors import ConfigError
from ..model.hooks import Event, Occasion, Statement, Tool, Verdict
from ..model.settings import Settings
from ..policy import decide
from ..runners.runner import CallTool, no_server
from .background import Report
from .permissions import Permissions
from .run_in_order import Turns
from .select import Chosen, Groups

if TYPE_CHECKING:
    import anyio.abc

    from ..trust.trusted_files import Trust


class Hearing(Struct, frozen=True):
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
        self.groups = Groups(groups, server, settings.aliases)
        self._benches = _benches(groups, settings, server, self.groups)
        self.has_rules = any(self._benches)
        """Some permission rule or limit is configured."""
        self.has_limits = any(bench.limits is not None for bench in self._benches)
        """Some limit on calls is configured."""
        check_errands(groups, settings)
        self.environ = environ
        self._settings = settings
        self._trust = trust
        self._turns = self._new_turns(groups)
        self.aside = self._turns.aside
        self.runners = self._turns.runners

    def _new_turns(self, groups: Sequence[Group]) -> Turns:
        return Turns(groups, self._settings, self.environ, self._trust, self._allowing)

    # --- permission rules ---

    def counted(self, decision: Decision, tool: str) -> Decision:
        """Count a call of this tool that is about to be forwarded, against the limits of each layer."""
        for bench in self._benches:
            if isinstance(decision, Proceed):
                decision = bench.counted(decision, tool)
        return decision

    def may_repeat(self, tool: str) -> bool:
        """Count a call once more: not against the user's limits, whose hook it is that says so, but managed ones."""
        managed = (bench for bench in self._benches if bench.managed)
        return all(isinstance(bench.counted(Proceed(), tool), Proceed) for bench in managed)

    def concern(self, tool: str) -> bool:
        """True if any hook or rule is to see calls of this tool."""
        for bench in self._benches:  # noqa: SIM110 - each call asks: a generator would cost more than the answer
            if bench.concern(tool):
                return True
        return False

    def hide(self, tool: str) -> bool:
        """True if the tool is not to be listed: a rule denies each of its calls."""
        return any(bench.hide(tool) for bench in self._benches)

    def allow_tool(self, tool: str, question: Question | None) -> None:
        """A person, asked this, allows the tool for the session. Managed rules count it if they were what asked."""
        for bench in self._benches:
            if not bench.managed or (question is not None and question.managed):
                bench.allow_tool(tool)

    def _allowing(self, group: Group, verdict: Verdict) -> Verdict:
        return self._benches[-1 if group.managed else 0].add(verdict)

    def environment(self, managed: bool) -> Mapping[str, str]:
        """What a prompter inherits."""
        if not managed:
            return self.environ
        from ..trust.managed_files import SCREEN, environment

        return environment(self.environ, SCREEN, at_home=True)

    def prompter_trouble(self, managed: bool) -> str:
        """Why the prompter must not run, in one sentence without a full stop; empty: it may."""
        return self._trust.prompter_trouble() if self._trust and not managed else ""

    def begin(
        self, tasks: anyio.abc.TaskGroup, report: Report, tell: Callable[[], None], call_tool: CallTool = no_server
    ) -> None:
        """Hooks that nobody waits for run in `tasks` and end with it; `tell` is called when one has ended.

        `report` gets each statement when it is made. Hooks that are tools are called by `call_tool`.
        """
        self._turns.begin(tasks, report, tell, call_tool)

    async def before(self, occasion: Occasion, listed: Tool | None, heard: list[Statement]) -> Hearing:
        """Ask the PreToolUse hooks: each group sees the arguments as rewritten so far, and a denial ends it.

        `listed` is what is known of the tool: a rewrite that does not fit its schema is trouble. All that is said
        goes to `heard` at once. On cancel the hooks that run are ended with their whole process groups.
        """
        hearing = Hearing(Proceed(), occasion.arguments)
        for bench in self._benches:
            decision = hearing.decision
            if isinstance(decision, Refuse):
                break
            if bench.managed:
                occasion = replace(occasion, arguments=hearing.arguments)
                hearing = await self._judged_by_managed(bench, decision, occasion, listed, heard)
            else:
                hearing = await self._judged(bench, decision, occasion, listed, heard)
        return hearing

    async def _judged_by_managed(
        self, bench: Permissions, proceed: Proceed, occasion: Occasion, listed: Tool | None, heard: list[Statement]
    ) -> Hearing:
        """As `_judged`, of the arguments that are final, by the names that managed hooks know and no user's alias."""
        outer, earlier, proceed = occasion.alias, proceed.question, replace(proceed, question=None)
        try:
            sent = aliases.for_server(outer, occasion.arguments)
            inner = bench.groups.alias(occasion.tool, sent)
            if inner == outer:
                return await self._judged(bench, proceed, occasion, listed, heard, earlier)
            final = replace(occasion, alias=inner, arguments=aliases.for_hooks(inner, sent))
            judged = await self._judged(bench, proceed, final, listed, heard, earlier)
            if judged.arguments is final.arguments:
                return Hearing(judged.decision, occasion.arguments)
            back = aliases.for_hooks(outer, aliases.for_server(inner, judged.arguments))
        except ValueError as unreadable:  # names that two sides would take for different things
            return Hearing(Refuse("the managed hooks", str(unreadable), ground=Ground.TROUBLE), occasion.arguments)
        rewritten = isinstance(judged.decision, Proceed)
        return Hearing(replace(judged.decision, arguments=back) if rewritten else judged.decision, back)

    async def _judged(
        self,
        bench: Permissions,
        proceed: Proceed,
        occasion: Occasion,
        listed: Tool | None,
        heard: list[Statement],
        earlier: Question | None = None,
    ) -> Hearing:
        """What one layer makes of a call that the layer before it let go, with the `earlier` question of that."""
        for chosen in bench.groups.choose(occasion.event, occasion.tool):
            occasion = occasion if occasion.tool_name == chosen.tool_name else chosen.shown(occasion)
            hooks = chosen.applying(occasion) if chosen.conditional else chosen.hooks
            said = await self._turns.ask(chosen.group, hooks, occasion, heard, listed)
            if decide.silent(said):  # as of most calls, and it decides nothing
                continue
            decision = decide.decide(said, self._settings, chosen.group.on_trouble)
            feedback = proceed.feedback + decision.feedback
            if isinstance(decision, Refuse):
                return Hearing(replace(decision, feedback=feedback), occasion.arguments)
            rewritten = proceed.arguments
            if decision.arguments is not None:
                rewritten = decision.arguments
                occasion = replace(occasion, arguments=normalize.normalise(rewritten))
            question = proceed.question or decision.question
            proceed = replace(proceed, arguments=rewritten, feedback=feedback, question=question)
        ruled = bench.ruled(proceed, occasion)
        if isinstance(ruled, Refuse):
            return Hearing(ruled, occasion.arguments)
        if bench.managed:
            ruled = replace(ruled, question=_both(earlier, ruled.question))
        requests = bench.groups.choose(Event.PERMISSION_REQUEST, occasion.tool)
        if requests or ruled.question:
            return await self._permitted(bench, ruled, occasion, listed, heard)
        return Hearing(ruled, occasion.arguments)

    async def after(self, occasion: Occasion, heard: list[Statement]) -> Comments:
        """Ask the PostToolUse or PostToolUseFailure hooks of all groups; else as `before`."""
        comments = Comments()
        for bench in self._benches:
            known = _known_to(bench, occasion)
            for chosen in bench.groups.choose(occasion.event, occasion.tool):
                known, rule = chosen.shown(known), chosen.group.on_trouble
                said = await self._turns.ask(chosen.group, chosen.applying(known), known, heard)
                comments = decide.merge_comments(comments, decide.comments(said, self._settings, rule))
        return comments

    async def at(self, occasion: Occasion, only_told: bool = False) -> list[Statement]:
        """Ask the hooks of an occasion that decides nothing: of the session, or beside a call.

        `only_told`: those that may answer a question of the server are asked elsewhere.
        """
        heard: list[Statement] = []
        for bench in self._benches:
            known = _known_to(bench, occasion)
            for chosen in bench.groups.at(occasion):
                if not (only_told and chosen.answers):
                    heard += await self.asked(chosen, known)
        return heard

    async def asked(self, chosen: Chosen, occasion: Occasion) -> list[Statement]:
        """Ask one group's hooks; statements stand in the order in which the last one wins."""
        shown = chosen.shown(occasion)
        return await self._turns.ask(chosen.group, chosen.applying(shown), shown, [])

    async def _permitted(
        self,
        bench: Permissions,
        proceed: Proceed,
        occasion: Occasion,
        listed: Tool | None,
        heard: list[Statement],
    ) -> Hearing:
        """Ask the PermissionRequest hooks: all, if somebody wants a person to be asked, else those for each call."""
        question, yes = proceed.question, False
        request = replace(occasion, event=Event.PERMISSION_REQUEST, message=question.reason if question else "")
        for chosen in bench.groups.choose(Event.PERMISSION_REQUEST, occasion.tool):
            request, group = chosen.shown(request), chosen.group
            hooks = [spec for spec in chosen.applying(request) if question or spec.unasked]
            said = await self._turns.ask(group, hooks, request, heard, listed)
            answer = decide.permitted(said, self._settings, group.on_trouble, group.dialect.later_overrides)
            if isinstance(answer, Refuse):
                return Hearing(replace(answer, feedback=proceed.feedback + answer.feedback), request.arguments)
            yes = yes or answer
            rewritten = decide.allowed_instead(said) if answer else None
            if rewritten is not None:
                proceed = replace(proceed, arguments=rewritten)
                request = replace(request, arguments=normalize.normalise(rewritten))
        if question and (yes or bench.allow(request)):
            proceed = replace(proceed, question=None, asked=True)
        if request.arguments is occasion.arguments:
            return Hearing(proceed, request.arguments)
        return Hearing(bench.ruled(proceed, request), request.arguments)  # no rule has seen these


def _benches(groups: Sequence[Group], settings: Settings, server: str, whole: Groups) -> tuple[Permissions, ...]:
    """The layers that judge a call one after another: the managed one comes last, about what is final."""
    if settings.managed is None and not any(group.managed for group in groups):
        return (Permissions(whole, settings),)
    ruling = settings.managed or Settings()
    users = Groups([one for one in groups if not one.managed], server, settings.aliases)
    managed = Groups([one for one in groups if one.managed], server, ruling.aliases)
    return (Permissions(users, settings), Permissions(managed, ruling, managed=True))


def check_errands(groups: Sequence[Group], settings: Settings) -> None:
    """Nobody judges the call that a hook is: no user's hook is one that the administrator wants judged.

    Raises ConfigError.
    """
    for spec in (spec for group in groups if not group.managed for spec in group.hooks if spec.type == "mcp_tool"):
        last = _benches(groups, settings, spec.server, Groups(groups, spec.server, settings.aliases))[-1]
        if last.managed and last.concern(spec.tool):
            why = f"calls the tool {spec.tool}, whose calls managed hooks or rules judge, and nobody judges a hook's"
            raise ConfigError(spec.source, why, "ask a command or a worker instead")


def _known_to(bench: Permissions, occasion: Occasion) -> Occasion:
    """The occasion by the names that this layer's hooks know: no user's alias holds for managed ones."""
    if not bench.managed or not (occasion.alias or bench.groups.aliases):
        return occasion
    alias = None
    with suppress(ValueError):  # what two sides would take for different things goes by the server's names
        occasion = replace(occasion, arguments=aliases.for_server(occasion.alias, occasion.arguments), alias=None)
        alias = bench.groups.alias(occasion.tool, occasion.arguments)
    return replace(occasion, alias=alias, arguments=aliases.for_hooks(alias, occasion.arguments))


def _both(earlier: Question | None, question: Question | None) -> Question | None:
    """What is left of the questions of the users' layer and the managed one: the latter's stands for both."""
    if question is None:
        return earlier
    reasons = [one.reason for one in (question, earlier) if one is not None and one.reason]
    return replace(question, reason="\n".join(reasons), managed=True)
