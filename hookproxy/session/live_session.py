"""A session as consoles see it: its calls in flight, and each call that has ended, as one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic, time
from typing import TYPE_CHECKING, Final

from msgspec import Raw
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.lines import Lines
from ..live.messages import NOTHING, CallInFlight, RunningHook, RunSession, Stage
from ..model.settings import Results
from ..protocol.calls import Call, Phase

if TYPE_CHECKING:
    from .proxy import Proxy

_LONGEST_RECORD: Final = 256 * 1024
"""Bytes of a call that has ended as it is sent: of a longer one, digests are sent."""

_LONGEST_ARGUMENTS: Final = 64 * 1024
"""Bytes of the arguments of a call in flight: longer ones are shown when it has ended, or in its approval."""


def show_all(proxy: Proxy) -> None:
    """Let the records of calls have what hooks get, and how calls end: without a console, few need that."""
    proxy.policy.hooks.keep_inputs()
    proxy.policy.audit.needs_results = True


class LiveSession:
    """A session, and how its calls are written for consoles."""

    def __init__(self, proxy: Proxy, user: str) -> None:
        self.proxy = proxy
        self.user = user

    @property
    def described(self) -> RunSession:
        """As consoles get it."""
        session = self.proxy.session
        return RunSession(session.id, session.server, self.proxy.calls.agent(), self.user)

    def line(self, record: Record) -> Raw | None:
        """A call that has ended, as the audit records it, but whole; of a long one, digests. None: still too long."""
        for whole in (True, False):
            settings = replace(
                self.proxy.policy.settings,
                audit_file="",
                otel=False,
                audit_digest=not whole,
                audit_results=Results.FULL if whole else Results.NONE,
            )
            line = Lines(settings).of_call(record).rstrip(b"\n")
            if len(line) <= _LONGEST_RECORD:
                return Raw(line)
        return None

    def calls(self, is_waiting: Callable[[str], bool]) -> Iterator[CallInFlight]:
        """The calls in flight."""
        session, now = self.proxy.session.id, time()
        hooks = self._running_hooks(now)
        for name, (record, call, at) in self.proxy.policy.audit.in_flight.items():
            waits = hooks.get(call.key.decode(errors="replace"), ())
            stage = _stage(call, asked=is_waiting(name))
            since = waits[0].since if waits else at
            arguments = Raw(record.arguments) if len(record.arguments) <= _LONGEST_ARGUMENTS else NOTHING
            rewritten = Raw(record.final) if 0 < len(record.final) <= _LONGEST_ARGUMENTS else NOTHING
            yield CallInFlight(
                name,
                session,
                at,
                record.tool,
                stage,
                since,
                arguments,
                len(record.arguments),
                rewritten,
                record.alias,
                tuple(waits),
            )

    def _running_hooks(self, now: float) -> dict[str, list[RunningHook]]:
        """The hooks that run now, by the id of the request that waits for them."""
        offset = now - monotonic()
        found: dict[str, list[RunningHook]] = {}
        for since, spec, request in self.proxy.policy.hooks.running():
            if not spec.background:
                found.setdefault(request, []).append(RunningHook(spec.source, spec.event, round(since + offset, 3)))
        return found


def size(record: Record) -> int:
    """Bytes of the long texts of a record."""
    texts = len(record.arguments) + len(record.final) + len(record.result_before) + len(record.result_after)
    return texts + sum(len(run.input) + len(run.result.stdout) + len(run.result.stderr) for run in record.hook_runs)


def _stage(call: Call, *, asked: bool) -> Stage:
    if asked:
        return "approval"
    if call.phase is Phase.HELD:
        return "hooks"
    return "sent" if call.phase is Phase.FORWARDED else "after"
