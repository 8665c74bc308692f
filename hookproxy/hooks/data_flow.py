"""Applies `[flow]`: which calls of a session are sources and sinks, for each layer, and what follows from it.

A call is compared with the sinks on its final arguments, after all hooks and rules. Its result is a reading when it is
about to reach the agent, as hooks have left it: so nothing reaches the agent without its labels (law 1). Labels belong
to the session, whichever layer has given them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from time import time
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..flow import prints
from ..flow.arguments import looked_at
from ..flow.matching import Act, View
from ..flow.places import place_of
from ..flow.policy import FlowPolicy, Violation
from ..flow.sentences import reasons
from ..flow.session_labels import SessionLabels
from ..flow.texts import annotations_in
from ..model.decision import ApprovalRequest, Comments, Decision, Proceed, RefusalCause, Refuse
from ..model.flow import BY_ADDRESS, BY_SESSION, Chain, ClearedFlow, KnownLabels, Reading, Sink, Source
from ..model.hooks import EventContext, HookRun, Tool
from ..model.settings import Settings
from ..policy import methods
from ..policy.shared_state import SharedLabels, StoreUnavailable
from . import bounded_cache
from .permissions import Permissions
from .session_approvals import under_aliases

_COMMENT = "Note: {}."
_LONGEST_TOOL: Final = 256  # characters of its name that are kept: the agent chooses it


class _Layer(Struct, frozen=True):
    permissions: Permissions
    policy: FlowPolicy
    where: str
    """What its configuration is called."""


class _Content(NamedTuple):
    """What some sinks look for, where they do not take the session's labels whatever is sent."""

    arguments: tuple[str, ...]
    only_addresses: bool


_Look: TypeAlias = _Content | None


def _look(sink: Sink) -> _Look:
    return None if sink.by == BY_SESSION else _Content(sink.arguments, sink.by == BY_ADDRESS)


def _looks(sinks: Sequence[Sequence[Sink]]) -> set[_Look]:
    return {_look(sink) for of_layer in sinks for sink in of_layer}


class DataFlow:
    """The sources and sinks of all layers, for one server, and the labels of the session."""

    def __init__(
        self, layers: Sequence[tuple[Permissions, Settings]], server: str, labels: SharedLabels | None
    ) -> None:
        """`labels` is who keeps them for several runs together; None: they are kept here."""
        self._layers = [
            _Layer(
                permissions,
                FlowPolicy(settings.flow_sources, settings.flow_sinks, managed=permissions.managed),
                permissions.where,
            )
            for permissions, settings in layers
        ]
        self._reads_results = any(layer.policy.reads_results for layer in self._layers)
        self._by_content = frozenset[str]().union(*(layer.policy.by_content for layer in self._layers))
        self._server = server
        self._concerned: dict[str, tuple[bool, bool]] = {}
        self._now: Callable[[], float] = time
        self.labels: SharedLabels = SessionLabels() if labels is None else labels

    def use_clock(self, clock: Callable[[], float]) -> None:
        """Take the time from another clock from now on, before anything is read: a trial has a time of its own."""
        self._now = clock
        if isinstance(self.labels, SessionLabels):
            self.labels.use_clock(clock)

    def forget_tools(self) -> None:
        """Decide anew which tools may be sources and sinks: more is known of the server's tools."""
        self._concerned.clear()

    @property
    def has_sources(self) -> bool:
        """Some results get labels."""
        return any(layer.policy.has_sources for layer in self._layers)

    def concerns(self, tool: str) -> bool:
        """True if calls of this tool, or requests of this method, may be a source or a sink."""
        return any(self._may_be(tool))

    def has_source(self, tool: str) -> bool:
        """True if results of this tool, or of requests of this method, may get labels."""
        return self._may_be(tool)[0]

    def _may_be(self, tool: str) -> tuple[bool, bool]:
        """Whether some calls of this tool, or requests of this method, may be a source, and a sink."""
        known = self._concerned.get(tool)
        if known is None:
            names = [(layer.policy, layer.permissions.groups.possible_names(tool)) for layer in self._layers]
            is_source = any(policy.may_have_source(self._server, of_layer) for policy, of_layer in names)
            is_sink = any(policy.may_have_sink(self._server, of_layer) for policy, of_layer in names)
            known = is_source, is_sink
            bounded_cache.keep(self._concerned, tool, known)
        return known

    async def decide(
        self, decision: Decision, contexts: Sequence[EventContext], listed: Tool | None, runs: Sequence[HookRun]
    ) -> Decision:
        """The decision about a call that its hooks and rules have decided on, with the labels that its hooks set.

        `listed` is the tool's entry in `tools/list`; None: not known.
        """
        added = tuple(label for run in runs for label in run.verdict.added_labels)
        removed = [label for run in runs for label in run.verdict.removed_labels]
        try:
            if removed:
                await self.labels.remove(removed)
            if added:
                act = _act(self._layers[-1], contexts[-1])
                await self.labels.add(_reading(act, added, (), "", self._now()), (), whole=True)
        except StoreUnavailable as problem:
            return _refuse_without_store(problem, decision.feedback, asked=decision.asked)
        return await self.judge(decision, contexts, listed) if isinstance(decision, Proceed) else decision

    async def judge(
        self, proceed: Proceed, contexts: Sequence[EventContext], listed: Tool | None, answer: bytes | None = None
    ) -> Decision:
        """The decision about a call that nothing else refuses; `contexts` are those of the layers, in their order.

        `listed` is as in `decide`. What is in flight does not count: a reading does from the moment at which it goes to
        the agent. Of a request of the server, what may leave is the agent's `answer`, a JSON value; None: there is none
        yet.
        """
        if not self._may_be(contexts[0].tool)[1]:
            return proceed
        acts = [_act(layer, context, listed) for layer, context in zip(self._layers, contexts, strict=True)]
        sinks = [layer.policy.sinks_of(act) for layer, act in zip(self._layers, acts, strict=True)]
        if answer is None and methods.JUDGED.get(acts[0].tool) is methods.Direction.FROM_SERVER:
            sinks = [[sink for sink in of_layer if sink.by == BY_SESSION] for of_layer in sinks]
        if not any(sinks):
            return proceed
        approved = tuple(map(_cleared, proceed.chains)) if answer is not None else ()
        try:
            known = {look: await self._known(look, acts, answer, approved) for look in _looks(sinks)}
        except StoreUnavailable as problem:
            return _refuse_without_store(problem, proceed.feedback, asked=proceed.asked)
        decision: Decision = proceed
        for layer, act, of_layer in zip(self._layers, acts, sinks, strict=True):
            violations = layer.policy.violations(act, [(sink, known[_look(sink)]) for sink in of_layer])
            if violations and isinstance(decision, Proceed):
                decision = _decided(decision, violations, layer)
        return decision

    async def names(self) -> tuple[str, ...]:
        """All labels of what the session has read, for hooks. Raises StoreUnavailable."""
        known = await self.labels.known(())
        return tuple(dict.fromkeys(label for reading in known.readings for label in reading.labels))

    async def note_result(
        self, contexts: Sequence[EventContext], output: bytes, call: str, comments: Comments
    ) -> Sequence[str]:
        """Note what a result of a call brings into the session: it is about to reach the agent. Returns its labels.

        `contexts` are as in `judge`, `output` is a JSON value with all texts of the result, `call` the id of the call
        in the audit, and `comments` are what hooks said about it. Raises StoreUnavailable.
        """
        if comments.removed_labels:
            await self.labels.remove(comments.removed_labels)
        if not self.has_source(contexts[0].tool) and not comments.added_labels:
            return ()
        said = annotations_in(output) if self._reads_results else ()
        acts = [
            replace(_act(layer, context), of_result=said) for layer, context in zip(self._layers, contexts, strict=True)
        ]
        sources = [
            source for layer, act in zip(self._layers, acts, strict=True) for source in layer.policy.sources_of(act)
        ]
        labels: list[str] = []
        for secrets in (False, True):
            alike = [source for source in sources if source.secrets is secrets]
            added = () if secrets else comments.added_labels
            if (alike and (not secrets or prints.has_secret(output))) or added:
                reading = _reading(acts[0], added, alike, call, self._now())
                found = None
                if any(label in self._by_content for label in reading.labels):
                    key = await self.labels.key()
                    found = (prints.prints_of_secrets if secrets else prints.prints_of_output)(output, key)
                await self.labels.add(reading, found or (), whole=found is None)
                labels += reading.labels
        return tuple(dict.fromkeys(labels))

    async def note_begun(self, contexts: Sequence[EventContext], call: str) -> Sequence[str]:
        """Note a call that may begin, where it is not certain that anybody hears of its result. Returns its labels.

        What the result says is not known: it only is in the session. Raises StoreUnavailable.
        """
        acts = [_act(layer, context) for layer, context in zip(self._layers, contexts, strict=True)]
        sources = [
            source
            for layer, act in zip(self._layers, acts, strict=True)
            for source in layer.policy.sources_of(act)
            if not source.secrets
        ]
        if not sources:
            return ()
        reading = _reading(acts[0], (), sources, call, self._now())
        await self.labels.add(reading, (), whole=False)
        return reading.labels

    async def _known(
        self, look: _Look, acts: Sequence[Act], answer: bytes | None, approved: tuple[ClearedFlow, ...]
    ) -> KnownLabels:
        """What the session has read, and what of it the texts that some sinks look at may carry.

        Raises StoreUnavailable.
        """
        found: Collection[int] | None = ()
        if look is not None:
            sent = {answer} if answer is not None else {raw for act in acts for raw in looked_at(act, look.arguments)}
            found = prints.prints_of_arguments(sent, await self.labels.key(), only_addresses=look.only_addresses)
        known = await self.labels.known(found)
        return replace(known, cleared=(*known.cleared, *approved))

    async def clear(self, chains: Sequence[Chain]) -> None:
        """A person allows these chains for the rest of the session. Raises StoreUnavailable."""
        for chain in chains:
            await self.labels.clear(_cleared(chain))


def _act(layer: _Layer, context: EventContext, listed: Tool | None = None) -> Act:
    own = View(layer.permissions.groups.own_names(context.tool), (context.arguments,))
    of_method = (context.tool,) if methods.is_method(context.tool) else ()
    familiar = [View((*of_method, name), tuple(readings)) for name, readings in under_aliases(context)]
    names = None if listed is None else frozenset(listed.by_loose_key)
    return Act(context.session.server, context.tool, (own, *familiar), context.annotations, listed=names)


def _cleared(chain: Chain) -> ClearedFlow:
    return ClearedFlow(chain.numbers, chain.sink, chain.tool, chain.server, chain.managed, chain.labels)


def _reading(act: Act, added: Sequence[str], sources: Sequence[Source], call: str, at: float) -> Reading:
    labels = tuple(dict.fromkeys((*added, *(label for source in sources for label in source.labels))))
    lasting = bool(added) or any(not source.seconds for source in sources)
    seconds = 0.0 if lasting else max(source.seconds for source in sources)
    place = place_of(act.views[-1].readings[0])
    return Reading(labels, act.tool[:_LONGEST_TOOL], act.server, place, at, seconds, call)


def _decided(proceed: Proceed, violations: Sequence[Violation], layer: _Layer) -> Decision:
    """What follows from what the sinks of one layer do not take; the strictest is the first."""
    first = violations[0]
    if first.action == "ask" and (comments := [one for one in violations if one.action == "comment"]):
        proceed = _with_comment(proceed, comments)
    alike = [violation for violation in violations if violation.action == first.action]
    chains = tuple(violation.chain for violation in alike)
    why, request = reasons(chains), proceed.approval_request
    if first.action == "comment":
        return _with_comment(proceed, alike)
    if first.action == "deny":
        return Refuse(
            first.sink.key,
            why,
            asked=proceed.asked,
            cause=RefusalCause.FLOW,
            feedback=proceed.feedback,
            where=layer.where,
            place=first.sink.place,
            chains=chains,
        )
    by = f"{first.sink.key} of {layer.where}"
    managed = layer.permissions.managed
    if request is not None:
        by, why = f"{request.by}, and {by}", "\n".join(filter(None, (why, request.reason)))
        chains, managed = (*request.chains, *chains), managed or request.managed
    asked = replace(request or ApprovalRequest("", ""), by=by, reason=why, managed=managed, chains=chains)
    return replace(proceed, approval_request=asked)


def _with_comment(proceed: Proceed, violations: Sequence[Violation]) -> Proceed:
    """The decision with what the model reads where sinks only comment."""
    chains = tuple(violation.chain for violation in violations)
    comment = _COMMENT.format(reasons(chains))
    return replace(proceed, feedback=(*proceed.feedback, comment), chains=(*proceed.chains, *chains))


def _refuse_without_store(problem: StoreUnavailable, feedback: tuple[str, ...], *, asked: bool) -> Refuse:
    what, cause = "what the session has read", RefusalCause.STORE_AWAY
    return Refuse(what, str(problem), asked=asked, cause=cause, feedback=feedback)
