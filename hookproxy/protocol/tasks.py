"""The tasks of judged calls: which messages speak of one, and where its output stands in them (law 1).

Rule: once a judged call has a task, whatever an agent could take for the task's output is held until hooks have
spoken about it. Two eras differ: in 2025-11-25 the answer to `tasks/result` is the output, whole; the tasks extension
has it as a member of what `tasks/get` answers and `notifications/tasks` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

_RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"
"""The member of `_meta` by which messages of 2025-11-25 name the task that they belong to."""

_IMMEDIATE_RESPONSE_KEY: Final = "io.modelcontextprotocol/model-immediate-response"
"""The member of a handle's `_meta` that agents of 2025-11-25 may show the model as the tool's result."""

_KNOWN_MEMBERS: Final = {
    name.casefold(): name for name in ("taskId", "status", "result", "error", "content", "structuredContent")
}


class TaskStatus(Struct, frozen=True):
    """What a message says of a task."""

    ids: frozenset[str] = frozenset()
    """One or none."""
    status: str = ""
    response: Response | None = None
    """Its output; None: the message has none."""
    path: tuple[str, ...] = ()
    """The members in which the output stands, from the outside in; none: the whole message is an answer with it."""
    request_failed: bool = False
    """The server did not answer the poll but with an error, which is not the task's."""

    @property
    def ends(self) -> bool:
        """It says that there will be no output."""
        return self.response is None and self.status in ("cancelled", "failed")


def unambiguous_id(raw: msgspec.Raw) -> str:
    """The id of a task. Raises Unreadable for one that readers could take for another."""
    task_id = raw_json.text(bytes(raw))
    if not task_id or "\0" in task_id:
        raise raw_json.Unreadable("the id of its task is no clear text")
    return task_id


def task_ids(result: Members) -> Iterator[str]:
    """The ids of the tasks that a call's result hands over. Raises Unreadable, TwinKeys."""
    for name, raw in result.items():
        if raw_json.folded_key(name) == "task" and bytes(memoryview(raw)[:1]) == b"{":
            task = raw_json.fields(raw)
            if any(raw_json.folded_key(key) == "taskid" for key in task):
                if name != "task":
                    raise raw_json.Unreadable(f"its member {name!r} is taken for 'task' by readers that ignore case")
                yield _handle(task)
    if any(raw_json.folded_key(key) == "taskid" for key in result):
        yield _handle(result)


def _handle(members: Members) -> str:
    _check_member_names(members)
    if _output_members(members):
        raise raw_json.Unreadable("a task that has only begun has output already")
    return unambiguous_id(members["taskId"])


def status_of(members: Members, holder: str, *, whole: bool) -> TaskStatus:
    """What an answer's result, or a notification's params, says of a task; `whole`: it is the output itself.

    Raises Unreadable, TwinKeys.
    """
    ids = frozenset(_ids(members))
    if len(ids) > 1:
        raise raw_json.Unreadable("it names two tasks")
    if whole:
        return TaskStatus(ids, response=Response(result=members))
    _check_member_names(members)
    status = raw_json.text(bytes(members["status"])) or "" if "status" in members else ""
    inner = _output_members(members)
    shown = not members.keys().isdisjoint({"content", "structuredContent"})  # an agent may show that
    if len(inner) + shown > 1:
        raise raw_json.Unreadable("it has more than one output")
    if shown:
        if holder != "result":
            raise raw_json.Unreadable("it has output where none belongs")
        return TaskStatus(ids, status, Response(result=members))
    if not inner:
        return TaskStatus(ids, status)
    (name,) = inner
    raw = members[name]
    said = Response(result=raw_json.fields(raw)) if name == "result" else Response(error=raw)
    return TaskStatus(ids, status, said, (holder, name))


def _ids(members: Members) -> Iterator[str]:
    if "taskId" in members:
        yield unambiguous_id(members["taskId"])
    meta = members.get("_meta")
    if meta is not None and bytes(memoryview(meta)[:1]) == b"{":
        related = raw_json.fields(meta).get(_RELATED_TASK_KEY)
        if related is not None:
            yield unambiguous_id(raw_json.fields(related).get("taskId", msgspec.Raw(b"null")))


def _check_member_names(members: Members) -> None:
    """Raise Unreadable for a member that some readers take for one that counts."""
    for key in members:
        if _KNOWN_MEMBERS.get(raw_json.folded_key(key), key) != key:
            raise raw_json.Unreadable(f"its member {key!r} is taken for another by readers that ignore case")


def _output_members(members: Members) -> list[str]:
    """The members that hold output."""
    return [name for name in ("result", "error") if name in members and bytes(members[name]) != b"null"]


def outcome_digest(reading: ParsedResponse) -> bytes:
    """What hooks are told of an output, in short: another output has another digest."""
    told = reading.outcome
    parts = (
        told.content,
        told.structured,
        told.error.encode(errors="replace"),
        b"%d%d" % (reading.failed, told.has_result),
    )
    import hashlib  # 2 ms, for runs with tasks only

    summary = hashlib.sha256()
    for part in parts:
        summary.update(b"%d:" % len(part))
        summary.update(part)
    return summary.digest()


def output_as_response(line: bytes, place: tuple[str, ...]) -> bytes:
    """The output of a message as an answer of its own."""
    if not place:
        return line
    return b'{"jsonrpc":"2.0","id":0,"%b":%b}\n' % (place[-1].encode(), line[slice(*_span(line, place))])


def with_output(line: bytes, place: tuple[str, ...], answer: bytes) -> bytes:
    """The message with the output that this answer has in the place of its own."""
    if not place:
        return answer
    return raw_json.splice(line, [(_span(line, place), answer[slice(*raw_json.members(answer)[place[-1]])])])


def _span(line: bytes, place: tuple[str, ...]) -> raw_json.Span:
    start, end = 0, len(line)
    for name in place:
        inner = raw_json.members(line[start:end])[name]
        start, end = start + inner[0], start + inner[1]
    return start, end


def without_immediate_response(line: bytes) -> bytes:
    """A handle without what agents may show the model as the result before there is one."""
    place = ("result", "_meta")
    try:
        start, end = _span(line, place)
        meta = raw_json.without_member(line[start:end], _IMMEDIATE_RESPONSE_KEY)
    except KeyError:
        return line
    return raw_json.splice(line, [((start, end), meta)])


RESULT_METHOD: Final = b'"tasks/result"'
_LIST_METHOD: Final = b'"tasks/list"'
_NOTIFICATION_PREFIX: Final = b'"notifications/tasks'

_MAX_TASKS: Final = 1024  # tasks that are known; what hooks said of each takes memory
_MAX_FORGOTTEN: Final = 65536  # tasks of which nothing is known but that they were judged calls'
_MAX_HELD_NOTIFICATIONS: Final = 64  # notifications that are held: a server that floods must not fill memory with them
_RESULT_MEMBERS: Final = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})


class TaskStage(Enum):
    """How far hooks are with a task."""

    AWAITED = auto()  # its handle has come, and is on its way through the call's own task
    OPEN = auto()  # the agent has the handle
    JUDGING = auto()  # its hooks are being asked
    JUDGED = auto()  # they have spoken, once and for all


class Task(Struct, eq=False):
    """One task of a judged call."""

    id: str
    call: Call
    stage: TaskStage = TaskStage.AWAITED
    guarded: bool = True
    """Hooks hear of its output: none passes but the one that they heard of."""
    event_context: EventContext | None = None
    """The call as its hooks were told of it last, with the arguments that ran."""
    texts: tuple[str, ...] = ()
    """What hooks said for the model before the call ran."""
    comments: Comments = field(default_factory=Comments)
    outcome_digest: bytes = b""
    """A digest of what its hooks were told."""
    withheld_because: str = ""
    """Why no output of it passes."""


class TaskRequest(Call, eq=False):
    """A request of the agent about tasks, or a message of the server about one, held as a call is."""

    method: bytes = b""
    """As compact JSON; empty: the server is gone, and the task with it."""
    task_id: str = ""
    """The task that it is about, as the agent said."""


class Tasks(dict[str, Task]):
    """The tasks of judged calls, by their ids. Empty: no message about tasks is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited: dict[Call, list[Task]] = {}
        self._held_notifications: set[str] = set()  # tasks of which a message of the server is held
        self._forgotten_hashes: set[int] = set()  # hashes: what collides is withheld for nothing, and that is all

    # --- handles ---

    def note_handles(self, call: Call) -> None:
        """A judged call is answered: if with a task, it is known from now on, for the next line may be its result.

        Where it cannot be told which task that is, the answer is one that readers take differently.
        """
        result = call.response.result if call.response else None
        if not result or result.keys() <= _RESULT_MEMBERS or isinstance(call, TaskRequest):
            return
        try:
            self._note_handles(call, result)
        except ValueError:
            call.response = None

    def _note_handles(self, call: Call, result: Members) -> None:
        for task_id in task_ids(result):
            other = self.get(task_id)
            if self._is_forgotten(task_id) or (other and other.call is not call):
                raise raw_json.Unreadable("its task has the id of another call's")
            if other is None:
                self[task_id] = Task(task_id, call)
                self._awaited.setdefault(call, []).append(self[task_id])

    def take_new(self, call: Call) -> list[Task]:
        """The tasks of a call whose handles nobody has dealt with yet."""
        return self._awaited.pop(call, [])

    def drop_surplus(self) -> list[Task]:
        """Forget tasks that are too many, judged ones first; no output of them passes any more. Gives them."""
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
        """A task that we do not know any more; after very many of them, every one that we do not know."""
        unknown = bool(task_id) and task_id not in self
        return unknown and (hash(task_id) in self._forgotten_hashes or len(self._forgotten_hashes) > _MAX_FORGOTTEN)

    def find(self, *ids: str) -> Task | None:
        """The first of these that a judged call has."""
        return next((self[one] for one in ids if one in self), None)

    # --- what the agent asks ---

    def request(self, line: bytes, members: Members, in_flight: dict[bytes, Call], others: InFlight) -> AgentAction:
        """A request about tasks: its answer is held. `others` are requests that nobody judges."""
        raw_id = calls.response_id(members)
        try:
            task_request = self._read_request(line, members, raw_id)
        except ValueError as problem:
            return Refused(f"This request about a task cannot be judged: {problem}.", raw_id)
        if task_request.key in others or others.was_cancelled(task_request.key):
            return Refused("Its id is that of a request in flight, or of a cancelled one.", raw_id)
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
            raise raw_json.Unreadable("the task ended so long ago that what its hooks said is not known any more")
        return _task_request(raw_json.one_line(line), calls.method(members), task_id, raw_id)

    # --- what the server tells ---

    def notification(
        self, line: bytes, in_flight: Mapping[bytes, Call], reply: ResponseFrame | None
    ) -> StartCall | Dropped | None:
        """What becomes of a line of the server that tells of the end of a judged call's task; None: it does not.

        `reply`: what it answers.
        """
        if not (self or in_flight) or (reply and reply.nothing_else) or not _may_be_notification(line):
            return None
        try:
            task_status = _read_notification(line, answers=reply is not None)
            task_id = self._ended_task(task_status) if task_status else ""
        except ValueError as problem:
            return Dropped(f"what the server told of a task: {problem}")
        if not task_id or not (task_id in self or any(map(may_become_a_task, in_flight.values()))):
            return None
        if task_id in self._held_notifications or len(self._held_notifications) >= _MAX_HELD_NOTIFICATIONS:
            return Dropped("what the server told of a task once more, while hooks judge it")
        self._held_notifications.add(task_id)
        return StartCall(_task_request(raw_json.one_line(line), _NOTIFICATION_PREFIX, task_id, b""))

    def _ended_task(self, task_status: TaskStatus) -> str:
        """The task that is said to have ended; none if it goes on. Raises Unreadable."""
        if not (task_status.ends or task_status.response):
            return ""
        if not task_status.ids:
            raise raw_json.Unreadable("it names none")
        (task_id,) = task_status.ids
        if self._is_forgotten(task_id):
            raise raw_json.Unreadable("it ended long ago")
        return task_id

    def notification_in_batch(self, line: bytes, in_flight: Mapping[bytes, Call]) -> bool:
        """True if a batch tells anything of a judged call's task."""
        if not (self or in_flight):
            return False
        return any(self.notification(bytes(item), in_flight, None) is not None for item in raw_json.items(line))

    def notification_done(self, task_request: TaskRequest) -> None:
        """A message of the server is dealt with."""
        self._held_notifications.discard(task_request.task_id)


def read(task_request: TaskRequest) -> TaskStatus:
    """What an answered poll, or a message of the server, says of its task. Raises Unreadable, TwinKeys."""
    if not task_request.id:
        task_status = _read_notification(task_request.line)
        assert task_status is not None, "else it would not be held"
        return task_status
    if task_request.response is None:
        raise raw_json.Unreadable("readers would take it differently")
    if task_request.response.error is not None:
        whole = task_request.method == RESULT_METHOD
        return TaskStatus(response=task_request.response if whole else None, request_failed=not whole)
    result = task_request.response.result or {}
    if task_request.method == _LIST_METHOD:
        _check_list(result)
        return TaskStatus()
    if not result and task_request.method != RESULT_METHOD:
        raw_json.fields(raw_json.fields(task_request.answer)["result"])  # what is no object may be output all the same
    return status_of(result, "result", whole=task_request.method == RESULT_METHOD)


def server_lost(task: Task) -> TaskRequest:
    """What stands for the end of the server in a task's life."""
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


def _may_be_notification(line: bytes) -> bool:
    """False if the line is certainly no notification of a task, as nearly all are not."""
    return (b'"method"' in line or b"\\u" in line) and (b"tasks" in line or b"\\" in line)


def _read_notification(line: bytes, answers: bool = False) -> TaskStatus | None:
    """What a line tells of a task; None: it is no such notification. Raises Unreadable, TwinKeys."""
    try:
        members = raw_json.fields(line)
    except (raw_json.DuplicateKeys, raw_json.Unreadable):
        if answers:  # that is withheld, or dropped, as such
            return None
        raise
    if any(raw_json.folded_key(key) in ("method", "params") and key not in ("method", "params") for key in members):
        raise raw_json.Unreadable("some readers take one of its members for another")
    if not calls.method(members).startswith(_NOTIFICATION_PREFIX):
        return None
    if not members.keys().isdisjoint({"id", "result", "error"}):
        raise raw_json.Unreadable("it may be an answer or a notification")
    params = bytes(members.get("params", b""))
    return status_of(raw_json.fields(params), "params", whole=False) if params[:1] == b"{" else None


def may_become_a_task(call: Call) -> bool:
    """The server has the call, and may answer it with a task."""
    answered = call.phase in (Phase.FORWARDED, Phase.ANSWERED)
    return answered and (call.stateless or call.task) and not isinstance(call, TaskRequest)


def _check_list(result: Members) -> None:
    """Raise Unreadable, TwinKeys if a list of tasks carries output, which no list does."""
    for item in _listed_tasks(result):
        if status_of(item, "result", whole=False).response is not None:
            raise raw_json.Unreadable("a list of tasks holds the output of one")


def _listed_tasks(result: Members) -> Iterator[Members]:
    for name, raw in result.items():
        if name == "tasks":
            yield from (raw_json.fields(item) for item in raw_json.items(raw))
        elif raw_json.folded_key(name) in ("tasks", "result", "error", "content", "structuredcontent"):
            raise raw_json.Unreadable("some readers would find output in a list of tasks")
