"""What the server says it is and has, as the agent gets it: without what is withheld, hidden or named otherwise.

The steps of a list, in this order: what is not as `hookproxy.lock` has it goes; outputSchemas go if the settings say
so; tools go of which every call is denied; then the names and descriptions of `[tools.X]` are put in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc import raw_json
from ..model.errors import describe_error, printable
from ..model.hooks import Tool
from ..model.settings import Delivery, Settings
from ..protocol import feedback, response_edits, tool_list
from ..protocol.fast_scan import clear_id
from ..protocol.inflight import INITIALIZE, TOOLS_LIST
from ..protocol.router import Router
from .running_calls import RunningCalls

if TYPE_CHECKING:
    from ..model.lock_settings import LockSettings
    from .hidden_text_watch import HiddenTextWatch
    from .lock_comparison import LockComparison

_NOT_LOOKED_AT: Final = "what the server says of itself was not searched for hidden text"
_NO_LOCK: Final = "tools not pinned: `{}` pins them"
_MAY_HIDE: Final = rb"[^\x20-\x7e\n\r\t]|\\[ubf]|<!|(?:[A-Za-z0-9+/_-]|\\/){24,}|(?:\s|\\[nrt]){100,}"
"""In JSON, whatever `lock.hidden_text` looks for has this: what looks closely takes six megabytes. It is compiled when
the first response has come: that takes a millisecond."""
_UNREADABLE: Final = "what the server says of itself is withheld, because it cannot be read"
_MOST_NAMES: Final = 10_000  # of a list in which misspelled names are looked for: a hundred times what servers have
_LIKE: Final = 0.75  # of a name that is meant for a listed tool: one letter in four may be wrong
_LONGEST_SHOWN: Final = 200  # characters of why: it may name a key that the server has chosen


class ServerLists:
    """The edits in one session. Without a configuration that asks for some, every line stays the same object."""

    def __init__(
        self,
        context: SessionContext,
        session_events: SessionEvents,
        router: Router,
        calls: RunningCalls,
        concerns: Callable[[str], bool],
        is_ours: Callable[[], bool],
    ) -> None:
        """`concerns` says of a tool whether calls of it are judged, and `is_ours` whether we have written the error
        that is handled, in place of a response.
        """
        self._is_ours = is_ours
        self._context = context
        self._session_events = session_events
        self._router = router
        self._calls = calls
        self._concerns = concerns
        self._comparison: LockComparison | None = None
        self._watch: HiddenTextWatch | None = None
        self._has_noted_unreadable = False
        self._listed: dict[str, None] | None = (
            None  # the tools on the pages of the list so far; None: not from the first
        )
        self._initialized = b""  # the response to `initialize`, if its instructions are still to be looked at
        self.withholds: Callable[[str], bool] | None = None
        """Whether calls of a tool are refused, because it is not as it is pinned; None: nothing is pinned."""

    def use(self, settings: Settings) -> None:
        """Edit by these settings from now on. What was withheld stays so, unless it is pinned now."""
        shown, former = None, self._comparison
        if settings.shown_tools:
            from ..protocol.shown_tools import ShownTools  # for configurations that have it only

            shown = ShownTools(settings.shown_tools)
        why_withheld = None
        self._comparison = self.withholds = self._calls.refuse = None
        if settings.lock is not None:
            from .lock_guard import LockGuard  # likewise

            self._comparison = self._comparison_by(settings.lock, former)
            guard = LockGuard(self._comparison)
            self.withholds, self._calls.refuse, why_withheld = guard.withholds, guard.refuse, guard.why_withheld
        self._router.session_data.refuses_server = self._comparison is not None and bool(self._comparison.denied)
        if shown or former or settings.lock or self._router.session_data.shown:
            self._router.show_tools(shown, why_withheld)

    def _comparison_by(self, lock: LockSettings, former: LockComparison | None) -> LockComparison:
        if former is not None and former.settings == lock:
            return former
        from .lock_comparison import LockComparison

        context, record = self._context, self._session_events.note_in_audit
        handshake = self._router.handshake
        comparison = LockComparison(lock, context.session, context.report, record, lambda: handshake.capabilities)
        if lock.on_change == "ask":
            from .lock_questions import LockQuestions

            questions = LockQuestions(
                comparison, self._calls.approvals, context.spawn, lambda: context.policy.settings.ask_seconds
            )
            comparison.on_change = questions.ask
        if former is not None:
            comparison.compare_again(former)
        return comparison

    def as_pinned(self, method: bytes, line: bytes, cursor: bytes = b"") -> bytes:
        """The response to a request of this method, without what is not as it is pinned.

        `cursor` is that of the request, as spelled.
        """
        if self._comparison is None:
            return line
        was_denied = self._comparison.denied
        try:
            return self._comparison.edited(method, line, cursor, is_ours=self._is_ours())
        except raw_json.AMBIGUOUS as problem:
            return self._unreadable(line, problem)
        finally:
            if self._comparison.denied != was_denied:
                self._router.session_data.refuses_server = True
                self._router.judged_tools.forget_all()

    def tools(self, line: bytes, tools: Sequence[Tool], server_name: str, cursor: bytes) -> bytes:
        """The tools/list response as the agent gets it; `tools` are those in it that can be read."""
        line = self.as_pinned(TOOLS_LIST, line, cursor)
        hooks, settings = self._context.policy.hooks, self._context.policy.settings
        renamed = hooks.note_tools(tools, server_name)
        self._report_misspelled(line, cursor)
        self._router.judged_tools.forget(list(self._router.tools) if renamed else [tool.name for tool in tools])
        if settings.feedback is Delivery.STRIP_OUTPUT_SCHEMA:
            line = feedback.without_output_schemas(line, self._concerns)
        line = feedback.without_tools(line, hooks.hides) if hooks.has_rules else line
        if (shown := self._router.session_data.shown) is None:
            return line
        try:
            return shown.edited_list(line, self._session_events.report_once)
        except raw_json.AMBIGUOUS as problem:
            return self._unreadable(line, problem)

    def _report_misspelled(self, line: bytes, cursor: bytes) -> None:
        """Report each `[tools.X]` whose name is nearly that of a listed tool, once the whole list is known.

        One that is like no tool may be about another server, for which the same configuration counts.
        """
        settings = self._context.policy.settings
        if not (settings.aliases or settings.shown_tools):
            return
        if not cursor:
            self._listed = {}
        if self._listed is None or len(self._listed) > _MOST_NAMES:
            return
        self._listed |= dict.fromkeys(tool.name for tool in tool_list.listed_tools(line))
        if tool_list.next_cursor(line) != "":
            return
        from ..policy.tool_tables import unknown_tools  # for such configurations only

        for name in unknown_tools(settings, self._listed):
            from ..dialects.shared.hook_file import suggestion

            if hint := suggestion(name, self._listed, _LIKE):
                server = self._context.session.server
                text = f"[tools.{name}] is about no tool that the server {server} lists: {hint}"
                self._session_events.report_once(printable(text))

    # --- what is reported, after the agent has it ---

    def tell_hidden(self, method: bytes, line: bytes) -> None:
        """Tell people what the texts of a response to this method hide, and at first that there may be a lock."""
        settings = self._context.policy.settings
        if settings.lock is None and method == TOOLS_LIST:
            from .lock_command import lock_command  # not before the first list: it would delay the start

            self._say_once(_NO_LOCK.format(lock_command(self._context.session)))
        if settings.lock is not None and settings.lock.hidden_text == "withhold":
            return
        may_hide = self._comparison is not None or re.search(_MAY_HIDE, line) is not None
        if method == INITIALIZE:
            self._initialized = line if may_hide and b'"instructions"' in line else b""
            return  # with the first list: nothing is imported before
        if self._initialized:
            self._context.spawn(self._look_at, INITIALIZE, self._initialized)
            self._initialized = b""
        if may_hide:
            self._context.spawn(self._look_at, method, line)

    def _say_once(self, text: str) -> None:
        """Tell people one line, unless a session of this process has."""
        if text not in self._calls.reports_of_tools:
            self._calls.reports_of_tools[text] = None
            self._context.report(text)

    async def _look_at(self, method: bytes, line: bytes) -> None:
        try:
            await self._look_closely(method, line)
        except Exception as problem:  # a shortage of descriptors, for example: no call depends on this
            self._session_events.report_once(f"{_NOT_LOOKED_AT}: {describe_error(problem)}")

    async def _look_closely(self, method: bytes, line: bytes) -> None:
        from .lock_comparison import KINDS  # not before the first list: it would delay the start

        if self._watch is None:
            from .hidden_text_watch import HiddenTextWatch

            foreign = {} if self._comparison is None else self._comparison.foreign()
            server = self._context.session.server
            self._watch = HiddenTextWatch(lambda text: self._calls.report_of_tool(server, text), foreign)
        if (kind := KINDS.get(method)) is not None:
            await self._watch.look_at_list(kind, line)
        else:
            await self._watch.look_at_instructions(line)

    def _unreadable(self, line: bytes, problem: ValueError) -> bytes:
        self._session_events.report_once(f"{_UNREADABLE}: {printable(str(problem)[:_LONGEST_SHOWN])}")
        if not self._has_noted_unreadable:
            self._has_noted_unreadable = True
            self._session_events.note_in_audit(_UNREADABLE)
        return feedback.unreadable_list(response_edits.member_or_empty(line, "id") or clear_id(line) or b"null")
