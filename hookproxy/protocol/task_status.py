"""What one message says of a task: its id, how it stands, and where the output is, for reading and for editing.

Pure. A member that some reader could take for one that counts makes a message unreadable (law 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from .responses import Members, Said
from .tool_results import Reading

_RELATED: Final = "io.modelcontextprotocol/related-task"
"""The member of `_meta` by which messages of 2025-11-25 name the task that they belong to."""

_IMMEDIATE: Final = "io.modelcontextprotocol/model-immediate-response"
"""The member of a handle's `_meta` that agents of 2025-11-25 may show the model as the tool's result."""

_COUNTING: Final = {
    name.casefold(): name for name in ("taskId", "status", "result", "error", "content", "structuredContent")
}


class News(Struct, frozen=True):
    """What a message says of a task."""

    ids: frozenset[str] = frozenset()
    """One or none."""
    status: str = ""
    said: Said | None = None
    """Its output; None: the message has none."""
    place: tuple[str, ...] = ()
    """The members in which the output stands, from the outside in; none: the whole message is an answer with it."""
    refused: bool = False
    """The server did not answer the poll but with an error, which is not the task's."""

    @property
    def ends(self) -> bool:
        """It says that there will be no output."""
        return self.said is None and self.status in ("cancelled", "failed")


def clear_id(raw: msgspec.Raw) -> str:
    """The id of a task. Raises Unreadable for one that readers could take for another."""
    task_id = raw_json.text(bytes(raw))
    if not task_id or "\0" in task_id:
        raise raw_json.Unreadable("the id of its task is no clear text")
    return task_id


def handles(result: Members) -> Iterator[str]:
    """The ids of the tasks that a call's result hands over. Raises Unreadable, TwinKeys."""
    for name, raw in result.items():
        if raw_json.taken_for(name) == "task" and bytes(memoryview(raw)[:1]) == b"{":
            task = raw_json.fields(raw)
            if any(raw_json.taken_for(key) == "taskid" for key in task):
                if name != "task":
                    raise raw_json.Unreadable(f"its member {name!r} is taken for 'task' by readers that ignore case")
                yield _handle(task)
    if any(raw_json.taken_for(key) == "taskid" for key in result):
        yield _handle(result)


def _handle(members: Members) -> str:
    _check(members)
    if _inner(members):
        raise raw_json.Unreadable("a task that has only begun has output already")
    return clear_id(members["taskId"])


def of_task(members: Members, holder: str, *, whole: bool) -> News:
    """What an answer's result, or a notification's params, says of a task; `whole`: it is the output itself.

    Raises Unreadable, TwinKeys.
    """
    ids = frozenset(_ids(members))
    if len(ids) > 1:
        raise raw_json.Unreadable("it names two tasks")
    if whole:
        return News(ids, said=Said(result=members))
    _check(members)
    status = raw_json.text(bytes(members["status"])) or "" if "status" in members else ""
    inner = _inner(members)
    shown = not members.keys().isdisjoint({"content", "structuredContent"})  # an agent may show that
    if len(inner) + shown > 1:
        raise raw_json.Unreadable("it has more than one output")
    if shown:
        if holder != "result":
            raise raw_json.Unreadable("it has output where none belongs")
        return News(ids, status, Said(result=members))
    if not inner:
        return News(ids, status)
    (name,) = inner
    raw = members[name]
    said = Said(result=raw_json.fields(raw)) if name == "result" else Said(error=raw)
    return News(ids, status, said, (holder, name))


def _ids(members: Members) -> Iterator[str]:
    if "taskId" in members:
        yield clear_id(members["taskId"])
    meta = members.get("_meta")
    if meta is not None and bytes(memoryview(meta)[:1]) == b"{":
        related = raw_json.fields(meta).get(_RELATED)
        if related is not None:
            yield clear_id(raw_json.fields(related).get("taskId", msgspec.Raw(b"null")))


def _check(members: Members) -> None:
    """Raise Unreadable for a member that some readers take for one that counts."""
    for key in members:
        if _COUNTING.get(raw_json.taken_for(key), key) != key:
            raise raw_json.Unreadable(f"its member {key!r} is taken for another by readers that ignore case")


def _inner(members: Members) -> list[str]:
    """The members that hold output."""
    return [name for name in ("result", "error") if name in members and bytes(members[name]) != b"null"]


def digest(reading: Reading) -> bytes:
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


def as_answer(line: bytes, place: tuple[str, ...]) -> bytes:
    """The output of a message as an answer of its own."""
    if not place:
        return line
    return b'{"jsonrpc":"2.0","id":0,"%b":%b}\n' % (place[-1].encode(), line[slice(*_span(line, place))])


def with_answer(line: bytes, place: tuple[str, ...], answer: bytes) -> bytes:
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
        meta = raw_json.without_member(line[start:end], _IMMEDIATE)
    except KeyError:
        return line
    return raw_json.splice(line, [((start, end), meta)])
