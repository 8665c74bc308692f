"""`hookproxy top`: the calls of all runs in a terminal, and answers to the approvals that wait, by keyboard.

Nothing is allowed by a key that was meant for something else: an approval is opened first, and answered there.
"""

from __future__ import annotations

import os
import time
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.coordinate import Coordinate
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Log, Static, TextArea

from ..live.messages import LONGEST_REASON, Action
from . import terminal_text, visible
from .call_filter import CallFilter
from .follow import Follower, Open
from .state import EndedCall, ShownApproval

_REFRESH_SECONDS: Final = 0.2
"""Between two drawings: people see no difference to at once, and a thousand calls a second cost little more."""

_STYLES: Final = {"good": "green", "bad": "red", "warn": "yellow", "wait": "bold yellow", "note": "cyan", "quiet": ""}
_COLUMNS: Final = ("time", "outcome", "server", "tool", "took", "arguments")
_PARTS: Final = 4  # of the first screen, which `draw` changes
_WIDTHS: Final = (8, 18, 9, 13, 7, None)
"""All of it but a part of the arguments is seen at 80 columns."""


_EDIT_NOTE: Final = (
    "All hooks and rules judge them again. What is masked stays what it is where you leave its mark.\n"
    "Ctrl+S allows the call once with these arguments."
)
_OF_THE_LIST: Final = ("approval", "filter", "no_filter", "pause")
"""Actions of the list."""


class Top(App[None]):
    """The list of calls."""

    TITLE = "hookproxy top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #counts { background: $primary; color: $text; height: 1; }
    #unread, #problem { color: $text-warning; height: auto; }
    #filter { height: 3; display: none; }
    DataTable { height: 1fr; }
    Log { height: 1fr; }
    #choices, #taken { height: auto; background: $panel; }
    #reason { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "approval", "What waits"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "no_filter", "No filter", show=False),
        Binding("p", "pause", "Pause"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, follower_folder: str, calls: CallFilter, place: str, open_run: Open | None = None) -> None:
        """`place`: where the person is, for the audit."""
        super().__init__()
        self.follower = Follower(follower_folder, self._report, open_run)
        self.state = self.follower.state
        self.calls = calls
        self.place = place
        self._paused = False
        self._known: set[tuple[str, str]] = set()

    def compose(self) -> ComposeResult:
        """The sums and what is wrong above the list, the field of the filter below it."""
        for name in ("counts", "unread", "problem"):
            yield Static("", id=name, markup=False)
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Input(placeholder="server:NAME tool:NAME agent:NAME decision:refused words", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        """Follow the runs, and draw what changes."""
        table = self.table
        for name, width in zip(_COLUMNS, _WIDTHS, strict=True):
            table.add_column(name, width=width, key=name)
        table.focus()
        self.run_worker(self.follower.follow(), exclusive=False)
        self.set_interval(_REFRESH_SECONDS, self.draw)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the list mean nothing while something else is open."""
        return len(self.screen_stack) == 1 or action not in _OF_THE_LIST

    @property
    def table(self) -> DataTable[Text]:
        """The list."""
        return self.screen_stack[0].query_one(DataTable)

    @property
    def _is_shown(self) -> bool:
        """Its parts are there: when it ends, timers may go off that find none of them any more."""
        stack = self.screen_stack
        return bool(stack) and len(stack[0].query("#counts, #unread, #problem, DataTable")) == _PARTS

    def _report(self, text: str) -> None:
        if not self._is_shown:
            return
        self.screen_stack[0].query_one("#problem", Static).update(visible.visible(text))

    def draw(self) -> None:
        """Show what is known now."""
        if not self._is_shown:
            return
        state, first = self.state, self.screen_stack[0]
        sums = terminal_text.counts(state.counts, len(state.runs), state.in_flight_count, len(state.approvals))
        first.query_one("#counts", Static).update(f"{sums}{' (paused)' if self._paused else ''}")
        unread, text = first.query_one("#unread", Static), terminal_text.unread_runs(state)
        unread.update(text)
        unread.display = bool(text)
        self._notice_approvals()
        if not self._paused and self.screen is first:
            self._draw_rows()

    def _draw_rows(self) -> None:
        """Fill the list anew; the cursor stays on its call, or at the top if it was there."""
        table = self.table
        rows = list(terminal_text.rows(self.state, self.calls, time.time()))
        row = table.cursor_row
        chosen = self._key_at(row) if row else ""
        scroll = table.scroll_y
        table.clear()
        for call in rows:
            cells = (call.time, call.outcome, call.server, call.tool, call.took, call.arguments)
            style = _STYLES.get(call.kind, "")
            shown = [Text(cell, style if number == 1 else "", no_wrap=True) for number, cell in enumerate(cells)]
            table.add_row(*shown, key=call.key)
        if chosen and (place := next((number for number, call in enumerate(rows) if call.key == chosen), 0)):
            table.move_cursor(row=place, scroll=False)
            table.scroll_to(y=scroll + place - row, animate=False)

    def _key_at(self, row: int) -> str:
        if not self.table.is_valid_row_index(row):
            return ""
        return self.table.coordinate_to_cell_key(Coordinate(row, 0)).row_key.value or ""

    def _notice_approvals(self) -> None:
        """Ring for approvals that are new; the title says how many wait."""
        waiting = self.state.approvals.keys()
        if waiting - self._known:
            self.bell()
        self._known = set(waiting)

    # --- keys ---

    def action_approval(self) -> None:
        """Open the oldest approval that waits."""
        oldest = next(iter(self.state.approvals.values()), None)
        if oldest is None:
            self.notify("No call waits for approval.")
        else:
            self.push_screen(ApprovalScreen(oldest))

    def action_filter(self) -> None:
        """Open the filter."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_no_filter(self) -> None:
        """Close the filter, and show all calls."""
        self.calls = CallFilter()
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.table.focus()

    def action_pause(self) -> None:
        """Stop and go on drawing the list."""
        self._paused = not self._paused

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Use the filter."""
        try:
            self.calls = terminal_text.read_filter(event.value)
        except ValueError as problem:
            self.notify(visible.visible(str(problem)), severity="error", markup=False)
            return
        event.input.display = bool(event.value.strip())
        self.table.focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the page of a call; of one that waits for a person, its approval."""
        key = event.row_key.value or ""
        run, _, call = key.partition("/")
        waiting = self.state.approvals.values()
        shown = next((shown for shown in waiting if (shown.run, shown.approval.call) == (run, call)), None)
        self.push_screen(CallScreen(run, call) if shown is None else ApprovalScreen(shown))


class _TextScreen(Screen[None]):
    """A long text that scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Back")]

    def __init__(self) -> None:
        super().__init__()
        self._shown = ""

    @property
    def top(self) -> Top:
        """The app."""
        assert isinstance(self.app, Top)
        return self.app

    def compose(self) -> ComposeResult:
        """The text, and the keys below it."""
        yield Log()
        yield Footer()

    def show(self, text: str) -> None:
        """Show this text, whole."""
        if text == self._shown:
            return
        log = self.query_one(Log)
        at = log.scroll_y
        self._shown = text
        log.clear()
        log.write_lines(visible.lines(text, self.app.size.width - 3), scroll_end=False)
        log.scroll_to(y=at, animate=False)

    def action_close(self) -> None:
        """Go back to the list."""
        self.dismiss()


class CallScreen(_TextScreen):
    """The page of one call."""

    def __init__(self, run: str, call: str) -> None:
        super().__init__()
        self._run, self._call = run, call
        self._ended: EndedCall | None = None

    def on_mount(self) -> None:
        """Follow the call."""
        self.query_one(Log).focus()
        self.draw()
        self.set_interval(_REFRESH_SECONDS, self.draw)

    def draw(self) -> None:
        """Show what is known now."""
        state = self.top.state
        run = state.runs.get(self._run)
        call = run.calls.get(self._call) if run else None
        if self._ended is None:
            known = (ended for ended in reversed(state.ended) if ended.run == self._run)
            self._ended = next((ended for ended in known if ended.record.call == self._call), None)
        if self._ended is not None:
            self.show(terminal_text.ended_call(self._ended.record))
        elif run is not None and call is not None:
            self.show(terminal_text.call_in_flight(run, call, time.time()))
        elif not self._shown:
            self.show("This call is not kept here any more: hookproxy audit shows it.")


class ApprovalScreen(_TextScreen):
    """An approval, and the keys that answer it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('allow')", "Allow once"),
        Binding("s", "answer('allow_session')", "Allow for this session"),
        Binding("c", "answer('allow_similar')", "Allow calls like this"),
        Binding("e", "edit", "Change the arguments"),
        Binding("d", "deny", "Deny"),
    ]

    def __init__(self, waiting: ShownApproval) -> None:
        super().__init__()
        self._waiting = waiting

    def compose(self) -> ComposeResult:
        """The text, and below it what was answered and the field of the reason."""
        yield Log()
        with Vertical(id="choices"):
            yield Static("", id="taken", markup=False)
            yield Input(
                placeholder="Why? The model reads it. Enter denies, Escape goes back.",
                id="reason",
                max_length=LONGEST_REASON,
            )
        yield Footer()

    def on_mount(self) -> None:
        """Show the approval, and say so when it no longer waits."""
        self.show(terminal_text.approval(self._waiting, self.top.state.agent_of(self._waiting)))
        self.query_one(Log).focus()
        self.set_interval(_REFRESH_SECONDS, self.draw)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what is possible can be chosen."""
        if action not in ("answer", "edit", "deny"):
            return True
        approval = self._waiting.approval
        possible: dict[tuple[object, ...], bool] = {
            ("answer", "allow_session"): approval.may_allow_session,
            ("answer", "allow_similar"): bool(approval.similar),
            ("edit",): approval.may_edit,
        }
        return possible.get((action, *parameters), True) and self._key in self.top.state.approvals

    @property
    def _key(self) -> tuple[str, str]:
        return self._waiting.run, self._waiting.approval.id

    def draw(self) -> None:
        """Say what became of the approval, once it no longer waits."""
        if self._key not in self.top.state.approvals:
            settled = self.top.state.settled.get(self._key)
            became = settled.action if settled else "withdrawn"
            by = f" by {settled.by}" if settled and settled.by else ""
            self.say(f"This call no longer waits for approval: {became.replace('_', ' for the ')}{by}.")
            self.refresh_bindings()

    def say(self, text: str) -> None:
        """Tell the person what became of the answer."""
        self.query_one("#taken", Static).update(visible.visible(text))

    def action_deny(self) -> None:
        """Ask for the reason."""
        field = self.query_one("#reason", Input)
        field.display = True
        field.focus()

    def action_edit(self) -> None:
        """Open the arguments in a field in which they can be changed."""
        self.app.push_screen(EditScreen(self._waiting), self._leave)

    def _leave(self, answered: bool | None) -> None:
        if answered:
            self.dismiss()

    async def action_answer(self, action: Action) -> None:
        """Answer the approval."""
        await self._answer(action, "")

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny with the reason."""
        event.stop()
        await self._answer("deny", event.value)

    async def _answer(self, action: Action, reason: str) -> None:
        taken = await self.top.follower.answer(*self._key, action, reason, self.top.place)
        if taken.accepted:
            self.dismiss()
        else:
            self.say(taken.why)

    def action_close(self) -> None:
        """Close the field of the reason, or go back to the list."""
        field = self.query_one("#reason", Input)
        if field.display:
            field.display = False
            self.query_one(Log).focus()
        else:
            self.dismiss()


class EditScreen(Screen[bool]):
    """The arguments of a call that waits, in a field. Dismissed with True if the call was allowed with them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "allow", "Allow once with these arguments", priority=True),
        Binding("escape", "close", "Back", priority=True),
    ]

    def __init__(self, waiting: ShownApproval) -> None:
        super().__init__()
        self._waiting = waiting

    def compose(self) -> ComposeResult:
        """The field, and below it what became of the answer."""
        yield TextArea(visible.editable(self._waiting.approval.arguments))
        yield Static(_EDIT_NOTE, id="taken", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin in the field."""
        self.query_one(TextArea).focus()

    async def action_allow(self) -> None:
        """Allow the call with what stands in the field."""
        shown, top = self._waiting, self.app
        assert isinstance(top, Top)
        text = self.query_one(TextArea).text
        taken = await top.follower.answer(shown.run, shown.approval.id, "allow", "", top.place, text)
        if taken.accepted:
            self.dismiss(True)
        else:
            self.query_one("#taken", Static).update(visible.visible(taken.why))

    def action_close(self) -> None:
        """Go back, and change nothing."""
        self.dismiss(False)


def place() -> str:
    """Where the person is: this program, and its terminal."""
    return f"hookproxy top, {os.ttyname(0)}"
