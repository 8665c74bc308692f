"""The tasks of judged calls: their table, the messages about them, and the place of a task's output in a message.

Rule (law 1): once a judged call has a task, everything that an agent could take for the task's output is held until
hooks have judged it. The two eras differ. In 2025-11-25, the whole response to `tasks/result` is the output. In the
tasks extension, the output is a member of the `tasks/get` response and of `notifications/tasks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Final

import msgspec
from msgspec import Struct, field

from ..jsonrpc import raw_json
from ..model.decision import Comments
from ..model.hooks import EventContext
from . import calls
from .actions import AgentAction, Dropped, Refused, StartCall
from .calls import Call, Phase
from .inflight import InFlight
from .responses import Members, Response, ResponseFrame
from .tool_results import ParsedResponse

RESULT_METHOD: Final = b'"tasks/result"'
_LIST_METHOD: Final = b'"tasks/list"'
_NOTIFICATION_PREFIX: Final = b'"notifications/tasks'

_RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"
"""The member of `_meta` by which messages of 2025-11-25 name the task that they belong to."""

_IMMEDIATE_RESPONSE_KEY: Final = "io.modelcontextprotocol/model-immediate-response"
"""The member of a handle's `_meta` that agents of 2025-11-25 may show the model as the tool's result."""

_KNOWN_MEMBERS: Final = {
    name.casefold(): name for name in ("taskId", "status", "result", "error", "content", "structuredContent")
}
_TASK_MEMBERS: Final = frozenset(
    {"taskId", "status", "resultType", "createdAt", "lastUpdatedAt"}
    | {"ttl", "ttlMs", "pollInterval", "pollIntervalMs", "pollFrequency"}
)
"""The members of a task that say nothing of its output: `statusMessage` may."""

_STATUS_MESSAGE: Final = "statusmessage"
"""The member of a task with a text for people, folded: it may say what the output says."""

_RESULT_MEMBERS: Final = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_OUTPUT_OF_LIST: Final = frozenset({"tasks", "result", "error", "content", "structuredcontent"})

_MAX_TASKS: Final = 1024  # tasks that are remembered: the hooks' comments on each take memory
_MAX_FORGOTTEN: Final = 65536  # tasks of which only a hash is remembered
_MAX_HELD_NOTIFICATIONS: Final = 64  # notifications held at once: a server that sends many must not fill memory


class TaskStage(Enum):
    """How far the hooks of a task are."""

    AWAITED = auto()  # the handle has come; the call's coroutine has not forwarded it yet
    OPEN = auto()  # the agent has the handle
    JUDGING = auto()  # its hooks are running
    JUDGED = auto()  # its hooks have run; the decision is final


class Task(Struct, eq=False):
    """One task of a judged call."""

    id: str
    call: Call
    stage: TaskStage = TaskStage.AWAITED
    guarded: bool = True
    """Hooks judge its output: only the output that they have judged passes."""
    event_context: EventContext | None = None
    """What the call's hooks got last, with the arguments that ran."""
    texts: tuple[str, ...] = ()
    """Texts for the model from the hooks that ran before the call."""
    comments: Comments = field(default_factory=Comments)
    outcome_digest: bytes = b""
    """The digest of the output that its hooks judged."""
    withheld_because: str = ""
    """Why no output of the task passes; empty: nothing is withheld."""


class TaskRequest(Call, eq=False):
    """A request of the agent about tasks, or a notification of the server about one; it is held as a call is."""

    method: bytes = b""
    """As compact JSON; empty: the server has ended, and the task with it."""
    task_id: str = ""
    """The task that the message is about."""


class Tasks(dict[str, Task]):
    """The tasks of judged calls, by their ids. While it is empty, no message about tasks is read."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited: dict[Call, list[Task]] = {}
        self._held_notifications: set[str] = set()  # tasks with a held notification
        self._forgotten_hashes: set[int] = set()  # a collision only withholds an output needlessly

    # --- handles ---

    def note_handles(self, call: Call) -> None:
        """Note the tasks that a response creates, before the next line. An unclear one makes the response ambiguous."""
        result = call.response.result if call.response else None
        if not result or result.keys() <= _RESULT_MEMBERS or isinstance(call, TaskRequest):
            return
        try:
            for task_id in task_ids(result):
                other = self.get(task_id)
                if self._is_forgotten(task_id) or (other and other.call is not call):
                    raise raw_json.Unreadable("its task has the same id as the task of another call")
                if other is None:
                    self[task_id] = Task(task_id, call)
                    self._awaited.setdefault(call, []).append(self[task_id])
        except ValueError:
            call.response = None

    def take_new(self, call: Call) -> list[Task]:
        """Return the call's new tasks, and mark them as handled."""
        return self._awaited.pop(call, [])

    def drop_surplus(self) -> list[Task]:
        """Forget and return the tasks above the limit, judged ones first. None of their output passes any more."""
        gone: list[Task] = []
        for stage in (TaskStage.JUDGED, TaskStage.OPEN):
            surplus = max(len(self) - _MAX_TASKS, 0)
            if surplus:
                gone += [task for task in self.values() if task.stage is stage][:surplus]
                for task in gone:
                    self.pop(task.id, None)
        self._forgotten_hashes.update(hash(task.id) for task in gone if task.guarded)
        return gone

    def _is_forgotten(self, task_id: str) -> bool:
        """True for a task that was forgotten; after very many forgotten tasks, for every unknown task."""
        unknown = bool(task_id) and task_id not in self
        return unknown and (hash(task_id) in self._forgotten_hashes or len(self._forgotten_hashes) > _MAX_FORGOTTEN)

    def find(self, *ids: str) -> Task | None:
        """Return the first of these tasks that belongs to a judged call."""
        return next((self[task_id] for task_id in ids if task_id in self), None)

    # --- requests of the agent ---

    def request(self, line: bytes, members: Members, in_flight: dict[bytes, Call], others: InFlight) -> AgentAction:
        """Handle a request about tasks; its response is held. `others` are the requests that no hook judges."""
        raw_id = calls.response_id(members)
        try:
            task_request = self._read_request(line, members, raw_id)
        except ValueError as problem:
            return Refused(f"This request about a task cannot be judged: {problem}.", raw_id)
        if task_request.key in others or others.was_cancelled(task_request.key):
            return Refused("Its id is the id of a request that is in flight or cancelled.", raw_id)
        in_flight[task_request.key] = task_request
        return StartCall(task_request)

    def _read_request(self, line: bytes, members: Members, raw_id: bytes) -> TaskRequest:
        if raw_id == b"null":
            raise raw_json.Unreadable("its id is neither a string nor an integer")
        params = raw_json.fields(bytes(members.get("params", b"{}")))
        if any(raw_json.folded_key(key) == "taskid" and key != "taskId" for key in params):
            raise raw_json.Unreadable("some readers take one of its members for taskId")
        task_id = unambiguous_id(params["taskId"]) if "taskId" in params else ""
        if self._is_forgotten(task_id):
            raise raw_json.Unreadable("the task ended so long ago that its hooks' decision is forgotten")
        return _task_request(line, calls.method(members), task_id, raw_id)

    # --- notifications of the server ---

    def notification(
        self, line: bytes, in_flight: Mapping[bytes, Call], frame: ResponseFrame | None
    ) -> StartCall | Dropped | None:
        """Handle a notification that a judged call's task has ended; None: the line, or response, is not such a one."""
        if not (self or in_flight) or (frame and frame.nothing_else) or not _may_be_notification(line):
            return None
        try:
            task_status = _read_notification(line, is_response=frame is not None)
            task_id = self._ended_task(task_status) if task_status else ""
        except ValueError as problem:
            return Dropped(f"a notification about a task that cannot be judged: {problem}")
        if not task_id or not (task_id in self or any(map(may_become_a_task, in_flight.values()))):
            return None
        if task_id in self._held_notifications or len(self._held_notifications) >= _MAX_HELD_NOTIFICATIONS:
            return Dropped("another notification about a task that hooks are judging")
        self._held_notifications.add(task_id)
        return StartCall(_task_request(raw_json.one_line(line), _NOTIFICATION_PREFIX, task_id, b""))

    def _ended_task(self, task_status: TaskStatus) -> str:
        """Return the id of the task that has ended; empty if it continues. Raises Unreadable."""
        if not (task_status.ends or task_status.response):
            return ""
        if not task_status.ids:
            raise raw_json.Unreadable("it names no task")
        (task_id,) = task_status.ids
        if self._is_forgotten(task_id):
            raise raw_json.Unreadable("the task ended long ago")
        return task_id

    def notification_in_batch(self, line: bytes, in_flight: Mapping[bytes, Call]) -> bool:
        """True if a batch has a notification about a judged call's task."""
        if not (self or in_flight):
            return False
        return any(self.notification(bytes(item), in_flight, None) is not None for item in raw_json.items(line))

    def notification_done(self, task_request: TaskRequest) -> None:
        """Note that a held notification has been handled."""
        self._held_notifications.discard(task_request.task_id)


def may_become_a_task(call: Call) -> bool:
    """True if the server has the call and may answer it with a task."""
    answered = call.phase in (Phase.FORWARDED, Phase.ANSWERED)
    return answered and (call.stateless or call.task) and not isinstance(call, TaskRequest)


def server_lost(task: Task) -> TaskRequest:
    """Return the task request that stands for the end of the server."""
    return _task_request(b"", b"", task.id, b"")


def _task_request(line: bytes, method: bytes, task_id: str, raw_id: bytes) -> TaskRequest:
    key = calls.id_key(raw_id) if raw_id else b""
    return TaskRequest(
        key=key,
        sent_key=key,
        id=raw_id,
        line=line,
        tool="",
        arguments=b"{}",
        meta={},
        stateless=False,
        task=True,
        phase=Phase.HELD if raw_id else Phase.ANSWERED,
        method=method,
        task_id=task_id,
    )


# --- what a message says about a task ---


class TaskStatus(Struct, frozen=True):
    """What a message says about a task."""

    ids: frozenset[str] = frozenset()
    """The task's id; at most one."""
    status: str = ""
    response: Response | None = None
    """The task's output; None: the message has none."""
    path: tuple[str, ...] = ()
    """The path of members to the output, from the outermost; empty: the whole message is a response with the output."""
    request_failed: bool = False
    """The server answered the request with an error that is not the task's own."""

    @property
    def ends(self) -> bool:
        """True if the message says that the task has ended without output."""
        return self.response is None and self.status in ("cancelled", "failed")


def read(task_request: TaskRequest) -> TaskStatus:
    """Return what a response or a notification says about its task. Raises Unreadable, DuplicateKeys."""
    if not task_request.id:
        task_status = _read_notification(task_request.line)
        assert task_status is not None, "only a notification about a task is held"
        return task_status
    if task_request.response is None:
        raise raw_json.Unreadable("readers may read it differently")
    if task_request.response.error is not None:
        whole = task_request.method == RESULT_METHOD
        return TaskStatus(response=task_request.response if whole else None, request_failed=not whole)
    result = task_request.response.result or {}
    if task_request.method == _LIST_METHOD:
        _check_list(result)
        return TaskStatus()
    if not result and task_request.method != RESULT_METHOD:
        raw_json.fields(raw_json.fields(task_request.response_line)["result"])  # it may be output that is not an object
    return status_of(result, "result", whole=task_request.method == RESULT_METHOD)


def status_of(members: Members, holder: str, *, whole: bool) -> TaskStatus:
    """Return what a message says about a task; `whole`: it is the output itself. Raises Unreadable, DuplicateKeys."""
    ids = frozenset(_ids(members))
    if len(ids) > 1:
        raise raw_json.Unreadable("it names two tasks")
    if whole:
        return TaskStatus(ids, response=Response(result=members))
    _check_member_names(members)
    status = raw_json.text(bytes(members["status"])) or "" if "status" in members else ""
    inner = _output_members(members)
    shown = not members.keys().isdisjoint({"content", "structuredContent"})  # an agent may show these to the model
    if len(inner) + shown > 1:
        raise raw_json.Unreadable("it has more than one output")
    if shown:
        if holder != "result":
            raise raw_json.Unreadable("it has output in a place where there must be none")
        return TaskStatus(ids, status, Response(result=members))
    if not inner:
        return TaskStatus(ids, status)
    (name,) = inner
    raw = members[name]
    response = Response(result=raw_json.fields(raw)) if name == "result" else Response(error=raw)
    return TaskStatus(ids, status, response, (holder, name))


def task_ids(result: Members) -> Iterator[str]:
    """Yield the ids of the tasks that a call's result creates. Raises Unreadable, DuplicateKeys."""
    for name, raw in result.items():
        if raw_json.folded_key(name) == "task" and bytes(memoryview(raw)[:1]) == b"{":
            task = raw_json.fields(raw)
            if any(raw_json.folded_key(key) == "taskid" for key in task):
                if name != "task":
                    raise raw_json.Unreadable(f"its member {name!r} is taken for 'task' by readers that ignore case")
                yield _handle(task)
    if any(raw_json.folded_key(key) == "taskid" for key in result):
        yield _handle(result)


def _read_notification(line: bytes, is_response: bool = False) -> TaskStatus | None:
    """Return what a notification says about a task; None: it is not such a one. Raises Unreadable, DuplicateKeys."""
    try:
        members = raw_json.fields(line)
    except (raw_json.DuplicateKeys, raw_json.Unreadable):
        if is_response:  # it is withheld or dropped as an ambiguous response
            return None
        raise
    if any(raw_json.folded_key(key) in ("method", "params") and key not in ("method", "params") for key in members):
        raise raw_json.Unreadable("some readers take one of its members for another")
    if not calls.method(members).startswith(_NOTIFICATION_PREFIX):
        return None
    if not members.keys().isdisjoint({"id", "result", "error"}):
        raise raw_json.Unreadable("it may be a response or a notification")
    params = bytes(members.get("params", b""))
    return status_of(raw_json.fields(params), "params", whole=False) if params[:1] == b"{" else None


def _may_be_notification(line: bytes) -> bool:
    """False if the line is certainly no notification about a task, as nearly all lines are not."""
    return (b'"method"' in line or b"\\u" in line) and (b"tasks" in line or b"\\" in line)


def _check_list(result: Members) -> None:
    for name in result:
        if name != "tasks" and raw_json.folded_key(name) in _OUTPUT_OF_LIST:
            raise raw_json.Unreadable("a list of tasks contains something that some readers may take for output")
    for item in raw_json.items(result.get("tasks", b"[]")):
        if status_of(raw_json.fields(item), "result", whole=False).response is not None:
            raise raw_json.Unreadable("a list of tasks contains the output of a task")


def _handle(members: Members) -> str:
    _check_member_names(members)
    if _output_members(members):
        raise raw_json.Unreadable("its task has only begun, but already has output")
    return unambiguous_id(members["taskId"])


def _ids(members: Members) -> Iterator[str]:
    if "taskId" in members:
        yield unambiguous_id(members["taskId"])
    meta = members.get("_meta")
    if meta is not None and bytes(memoryview(meta)[:1]) == b"{":
        related = raw_json.fields(meta).get(_RELATED_TASK_KEY)
        if related is not None:
            yield unambiguous_id(raw_json.fields(related).get("taskId", msgspec.Raw(b"null")))


def unambiguous_id(raw: msgspec.Raw) -> str:
    """Return the id of a task. Raises Unreadable for an id that readers could take for another."""
    task_id = raw_json.text(bytes(raw))
    if not task_id or "\0" in task_id:
        raise raw_json.Unreadable("the id of its task is not an unambiguous string")
    return task_id


def _check_member_names(members: Members) -> None:
    """Raise Unreadable for a member that some readers take for one with a meaning."""
    for key in members:
        if _KNOWN_MEMBERS.get(raw_json.folded_key(key), key) != key:
            raise raw_json.Unreadable(f"its member {key!r} is taken for another by readers that ignore case")


def _output_members(members: Members) -> list[str]:
    return [name for name in ("result", "error") if name in members and bytes(members[name]) != b"null"]


# --- a task's output in a message ---


def output_as_response(line: bytes, place: tuple[str, ...]) -> bytes:
    """Return a message's output as a response of its own."""
    if not place:
        return line
    return b'{"jsonrpc":"2.0","id":0,"%b":%b}\n' % (place[-1].encode(), line[slice(*_span(line, place))])


def with_output(line: bytes, place: tuple[str, ...], response: bytes, *, alone: bool = False) -> bytes:
    """Return the message with the output of this response; `alone`: nothing that may repeat the old one remains."""
    if not place:
        return response
    line = raw_json.splice(line, [(_span(line, place), response[slice(*raw_json.members(response)[place[-1]])])])
    if not alone:
        return line
    holder, name = place
    start, end = raw_json.members(line)[holder]
    inner = _with_only(line[start:end], _TASK_MEMBERS | {name})
    return _with_only(raw_json.splice(line, [((start, end), inner)]), frozenset({"jsonrpc", "id", "method", holder}))


def _with_only(raw: bytes, names: frozenset[str]) -> bytes:
    for name in raw_json.members(raw).keys() - names:
        raw = raw_json.without_member(raw, name)
    return raw


def without_status_message(line: bytes, withheld: Callable[[str], bool]) -> bytes:
    """Remove what a handle, a task, a list or a notification says about the state of tasks whose text is withheld."""
    spans = raw_json.members(line)
    start, end = spans["result"] if "result" in spans else spans.get("params", (0, 0))
    quiet = _without_status_message(line[start:end], withheld) if line[start : start + 1] == b"{" and start else b""
    return raw_json.splice(line, [((start, end), quiet)]) if quiet else line


def _without_status_message(raw: bytes, withheld: Callable[[str], bool]) -> bytes:
    spans = raw_json.members(raw)
    if "taskId" in spans and withheld(raw_json.text(raw[slice(*spans["taskId"])]) or ""):
        for name in [name for name in spans if raw_json.folded_key(name) == _STATUS_MESSAGE]:
            raw = raw_json.without_member(raw, name)
    for name in [name for name in spans if name in ("task", "tasks")]:
        start, end = raw_json.members(raw)[name]
        inner = raw[start:end]
        if inner[:1] == b"{":
            inner = _without_status_message(inner, withheld)
        elif inner[:1] == b"[":
            items = raw_json.all_items(inner)
            quiet = [_without_status_message(item, withheld) if item[:1] == b"{" else item for item in items]
            inner = inner if quiet == items else b"[%b]" % b",".join(quiet)
        raw = raw_json.splice(raw, [((start, end), inner)])
    return raw


def without_immediate_response(line: bytes) -> bytes:
    """Remove from a task handle the text that agents may show the model before there is a result."""
    place = ("result", "_meta")
    try:
        start, end = _span(line, place)
        meta = raw_json.without_member(line[start:end], _IMMEDIATE_RESPONSE_KEY)
    except KeyError:
        return line
    return raw_json.splice(line, [((start, end), meta)])


def _span(line: bytes, place: tuple[str, ...]) -> raw_json.Span:
    start, end = 0, len(line)
    for name in place:
        inner = raw_json.members(line[start:end])[name]
        start, end = start + inner[0], start + inner[1]
    return start, end


def outcome_digest(reading: ParsedResponse) -> bytes:
    """Return a digest of the output that hooks get: a different output has a different digest."""
    outcome = reading.outcome
    error, flags = outcome.error.encode(errors="replace"), b"%d%d" % (reading.failed, outcome.has_result)
    import hashlib  # 2 ms, for runs with tasks only

    summary = hashlib.sha256()
    for part in (outcome.content, outcome.structured, outcome.whole, error, flags):
        summary.update(b"%d:" % len(part))
        summary.update(part)
    return summary.digest()
