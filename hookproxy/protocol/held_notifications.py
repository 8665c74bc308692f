"""The server's notifications that may repeat the output of a judged call, held until its hooks have judged the output.

With `[hooks] notifications = "hold"`, everything that could show a person or a model the text of a call whose result
post hooks may replace waits: progress of the call, log messages, and what is said of its task (law 1). A log message
names no call, so it waits for all of them that are at the server. When the calls that it waits for have ended, a
notification passes, unless the output of one does not. A response about a task cannot wait: `mcp_task` takes the text
out of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.late_pattern import late_pattern
from . import calls
from .calls import Call, Phase, Progress, id_key
from .tasks import Tasks, TaskStage, may_become_a_task

_NAMES_WITHOUT_TEXT: Final = (
    *(b"cancelled", b"elicitation/complete"),
    *(b"prompts/list_changed", b"resources/list_changed", b"tools/list_changed"),
)
_WITHOUT_TEXT: Final = frozenset(b'"notifications/%b"' % name for name in _NAMES_WITHOUT_TEXT)
"""Notifications of MCP that carry no text of a tool. All others may."""

_WITHOUT_PARAMS: Final = frozenset(name for name in _WITHOUT_TEXT if name.endswith(b'list_changed"'))
"""Those that have no member but `_meta`: one that has others may carry text in them."""

_NOTIFICATION: Final = b'"notifications/'
_NO_TOKEN: Final = (b"n", b"t", b"f", b"[", b"{", b"")
"""How values begin that are not tokens: it is not known what an agent takes them for."""
_PROGRESS: Final = b'"notifications/progress"'
_PROGRESS_LINE: Final = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%b%b}}\n'
_NUMBER: Final = late_pattern(rb"-?[0-9]{1,15}(?:\.[0-9]{1,6})?")  # no more: many digits could spell something
_TASK: Final = b'"notifications/tasks'

_MOST_BYTES: Final = 4 * 1024 * 1024
"""Of all that waits: thousands of log messages. At more, the oldest ones are dropped: a server must not fill memory."""


class Released(Struct, frozen=True):
    """What becomes of the notifications that waited for a call when it has ended."""

    lines: tuple[bytes, ...] = ()
    """They pass, in the order in which they came."""
    behind: tuple[bytes, ...] = ()
    """They pass as well, behind the call's response: the server has sent them after it."""
    dropped: int = 0
    """How many do not."""


class _Held(Struct, eq=False):
    line: bytes
    waits_for: set[Call]
    behind: set[Call]
    """Those of them whose responses had come before it."""
    passes: bool = True
    """No call that has ended keeps it from passing."""


NOTHING: Final = Released()


class HeldNotifications:
    """The notifications that wait, in the order in which they came."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        self._bytes = 0
        self._lost = 0

    def take(self, line: bytes, in_flight: Iterable[Call], tasks: Tasks) -> bool:
        """Keep the message of the server if it may be about a call whose output will be judged. False: it passes."""
        owners = _calls_of(line, in_flight, tasks)
        if not owners:
            return False
        behind = {call for call in owners if call.phase is Phase.ANSWERED}
        self._held.append(_Held(line, owners, behind))
        self._bytes += len(line)
        while self._bytes > _MOST_BYTES:
            self._bytes -= len(self._held.pop(0).line)
            self._lost += 1
        return True

    def without_text(self, line: bytes, in_flight: Iterable[Call]) -> bytes | None:
        """What passes at once of a notification about the progress of calls; None: it waits, or is about no such call.

        An agent may give up a call of whose progress it hears nothing.
        """
        holding = {call for call in in_flight if call.holds_notifications and call.progress is not Progress.NOT_SENT}
        if not holding or _PROGRESS not in line:
            return None
        with contextlib.suppress(*raw_json.AMBIGUOUS):
            members = raw_json.fields(line)
            calls.check_spelling(members)
            params = raw_json.fields(bytes(members.get("params", b"{}")))
            token = bytes(params.get("progressToken", b"null"))
            about = list(_with_token(holding, token))
            is_own = len(about) == 1 and token == bytes(about[0].meta.get("progressToken", b""))
            if calls.method(members) == _PROGRESS and is_own and about[0].progress_passes:
                numbers = {name: bytes(params[name]) for name in ("progress", "total") if name in params}
                if all(_NUMBER.fullmatch(number) for number in numbers.values()):
                    written = b"".join(b',"%b":%b' % (name.encode(), number) for name, number in numbers.items())
                    return _PROGRESS_LINE % (token, written)
        return None

    def would_take(self, line: bytes, in_flight: Iterable[Call], tasks: Tasks) -> bool:
        """True if `take` would keep the line."""
        return bool(_calls_of(line, in_flight, tasks))

    def release(self, call: Call, tasks: Tasks) -> Released:
        """Note that the call has ended, or goes on in a task; return what waits for nothing else."""
        if not (self._held or self._lost) or any(task.call is call and _is_open(task.stage) for task in tasks.values()):
            return NOTHING
        lines: list[bytes] = []
        behind: list[bytes] = []
        dropped, self._lost = self._lost, 0
        for held in [held for held in self._held if call in held.waits_for]:
            held.waits_for.discard(call)
            held.passes = held.passes and call.output_passes
            if not held.waits_for:
                self._held.remove(held)
                self._bytes -= len(held.line)
                (behind if call in held.behind else lines).extend([held.line] * held.passes)
                dropped += not held.passes
        return Released(tuple(lines), tuple(behind), dropped)


def _is_open(stage: TaskStage) -> bool:
    return stage is not TaskStage.JUDGED


def _calls_of(line: bytes, in_flight: Iterable[Call], tasks: Tasks) -> set[Call]:
    holding = {call for call in in_flight if call.holds_notifications and call.progress is not Progress.NOT_SENT}
    holding.update(task.call for task in tasks.values() if _is_open(task.stage) and task.call.holds_notifications)
    return _owners(line, holding, tasks) if holding else holding


def _owners(line: bytes, holding: set[Call], tasks: Tasks) -> set[Call]:
    """Return the calls that a message of the server may be about: all of them if it cannot be read for certain."""
    with contextlib.suppress(*raw_json.AMBIGUOUS):
        members = raw_json.fields(line)
        calls.check_spelling(members)
        method = calls.method(members)
        is_request = bytes(members.get("id", b"null")) != b"null" and not method.startswith(_NOTIFICATION)
        params = raw_json.fields(bytes(members.get("params", b"{}")))
        if is_request or (method in _WITHOUT_TEXT and not (method in _WITHOUT_PARAMS and params.keys() - {"_meta"})):
            return set()
        if method == _PROGRESS:
            return set(_with_token(holding, bytes(params.get("progressToken", b"null"))))
        if method.startswith(_TASK):
            return _of_task(raw_json.text(bytes(params.get("taskId", b""))), holding, tasks)
    return holding


def _with_token(holding: set[Call], token: bytes) -> Iterator[Call]:
    """The calls of which a progress token may be the one, however an agent reads it: some take `"7"` or `7.0` for 7."""
    key, number = id_key(token), _number(token)
    for call in holding:
        own = bytes(call.meta.get("progressToken", b"null"))
        if key == id_key(own) or token[:1] in _NO_TOKEN or (number is not None and number == _number(own)):
            yield call


def _number(token: bytes) -> float | None:
    """The number that JavaScript makes of a token; None: none."""
    text = (raw_json.text(token) if token[:1] == b'"' else token.decode()) or "0"
    with contextlib.suppress(ValueError, OverflowError):
        return float(int(text, 0))
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _of_task(task_id: str | None, holding: set[Call], tasks: Tasks) -> set[Call]:
    if task_id is not None and (task := tasks.get(task_id)) is not None:
        return {task.call} & holding
    return {call for call in holding if may_become_a_task(call)}
