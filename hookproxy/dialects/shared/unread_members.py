"""Which members of what a hook printed its system does not know, as sentences for the hook's author.

To most systems such a member is nothing: a misspelled denial lets the call pass without a word. `Dialect.output_fields`
says what a system knows, so there is nothing here about any of them. A hook that prints members for several systems is
right: what another system knows is not named if this one has read a verdict beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Final

from ...model.errors import printable
from ...model.hooks import NO_VERDICT, Ended, HookResult, Verdict
from ..dialect import Dialect, Effect
from .hook_file import suggestion
from .output import LOST, truncate

_LONGEST: Final = 64 * 1024  # bytes: a longer object is a result, whose members nobody has misspelled by hand
_MOST_NAMED: Final = 4  # members in a sentence
_LONGEST_NAME: Final = 60  # characters of one
_LONGEST_DENIAL: Final = 4 * 1024  # bytes of a text in which a denial is looked for: longer ones are reports, or logs
_SIMILAR: Final = 0.8  # as in `hook_file`: `permissionDecison` is `permissionDecision`
_ENVELOPE: Final = frozenset({"hookEventName", "hook_event_name", "async", "asyncTimeout", "version"})
"""Members that say of which event or form the output is. Systems read them, or expect them, but they do nothing."""


_DOCUMENT: Final = frozenset({"tool_input", "toolInput", "toolArgs", "tool_args", "tool_info"})
"""Members of the documents that hooks get, one of which is in each that is about a call."""


def unread(dialect: Dialect, result: HookResult, verdict: Verdict) -> tuple[str, ...]:
    """Sentences without a full stop, that follow the hook's name; `verdict` is what the dialect has read.

    Empty: all is known, it is no JSON object, the verdict is another failure, which says what is wrong already, or
    it is a resolver's answer, which has a form of its own.
    """
    if result.ended is not Ended.EXITED or result.cut or len(result.stdout) > _LONGEST:
        return ()
    if verdict.answer or (verdict.failure and not verdict.failure.startswith(LOST)):
        return ()
    text = dialect.unframed(bytes(result.stdout)).strip()
    if not text.startswith(b"{"):
        behind = _json_behind_text(dialect, text) if verdict == NO_VERDICT else ()
        decides = verdict.failure or verdict.permission is not None or verdict.stop
        return behind or (() if decides else _denial_in_text(dialect, text))
    try:
        output = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(output, dict):
        return ()
    if not dialect.output_fields:
        from . import clean_verdict  # its patterns take 3 ms, and most hooks print what is known

        lost = next(clean_verdict.undecided(output, {}, verdict), "")
        return (f"{lost}: it reads no JSON of hooks, so the exit status decides",) if lost else ()
    has_verdict = not verdict.failure and verdict is not NO_VERDICT and verdict != NO_VERDICT
    unknown = {
        path: member
        for path, member in _unknown(output, _known(tuple(dialect.output_fields)))
        if not _is_quiet(path, has_verdict)
    }
    if not _DOCUMENT.isdisjoint(output):  # it has printed what it got, as `tee` does
        unknown = {path: member for path, member in unknown.items() if _may_decide(path)}
    return (_sentence(dialect, unknown),) if unknown else ()


def _json_behind_text(dialect: Dialect, text: bytes) -> tuple[str, ...]:
    """A sentence about JSON that would decide something, and is not read because other text stands around it."""
    known = _known(tuple(dialect.output_fields)) if dialect.output_fields else frozenset()
    for found in re.finditer(rb"^\{", text, re.MULTILINE):
        try:
            output, _ = json.JSONDecoder().raw_decode(text[found.start() :].decode())
        except (ValueError, RecursionError):
            continue
        if isinstance(output, dict) and any(name in known or f"{name}." in known for name in output):
            return ("printed text around its JSON, which is then not read: print the text to standard error",)
    return ()


def _denial_in_text(dialect: Dialect, text: bytes) -> tuple[str, ...]:
    """A sentence about a denial in plain text, which lets the call pass."""
    from .clean_verdict import is_plain_denial  # as below

    if len(text) > _LONGEST_DENIAL or not is_plain_denial(text.decode(errors="replace")):
        return ()
    deciding = " or ".join(_deciding(dialect.output_fields))
    repair = f"it decides by {deciding} in JSON, or by the exit status" if deciding else "the exit status decides"
    return (f"printed a denial as plain text, which {dialect.name} does not read: {repair}",)


def _sentence(dialect: Dialect, unknown: Mapping[str, object]) -> str:
    named = [
        f"{_shown(path)}{_hint(path, member, dialect.output_fields)}"
        for path, member in islice(unknown.items(), _MOST_NAMED)
    ]
    more = f", and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    return f"printed what {dialect.name} does not read: {', '.join(named)}{more}"


def _unknown(output: Mapping[str, object], known: frozenset[str], path: str = "") -> Iterator[tuple[str, object]]:
    """The members that are neither known nor hold known ones, by their paths."""
    for name, member in output.items():
        place = f"{path}.{name}" if path else name
        if name in _ENVELOPE or place in known:
            continue
        if f"{place}." not in known:
            yield place, member
        elif isinstance(member, dict):
            yield from _unknown(member, known, place)
        elif member is not None:  # a decision in the place of the object that has it
            yield place, member


@cache
def _known(fields: tuple[str, ...]) -> frozenset[str]:
    """The paths of the fields; and those of the objects that hold some, each with a dot at its end."""
    parts = [field.split(".") for field in fields]
    holders = {".".join(names[:count]) + "." for names in parts for count in range(1, len(names))}
    return frozenset({*fields, *holders})


def _is_quiet(path: str, has_verdict: bool) -> bool:
    """Whether the member is for another system that runs the same hook, which this one has understood."""
    return has_verdict and path in _of_all_systems()


@cache
def _of_all_systems() -> frozenset[str]:
    from ..registry import DIALECTS  # 10 ms, only for a hook that prints such a member

    return frozenset(place for dialect in DIALECTS.values() for place in _known(tuple(dialect.output_fields)))


def _may_decide(path: str) -> bool:
    from .clean_verdict import may_decide  # as above

    return may_decide(path.rpartition(".")[2])


def _shown(path: str) -> str:
    return repr(truncate(printable(path), _LONGEST_NAME))


@lru_cache(256)  # a hook prints the same members again and again
def _hint_among(path: str, fields: tuple[str, ...], deciding: tuple[str, ...], denies: bool) -> str:
    name = path.rpartition(".")[2]
    places = [field.rpartition(".")[0] for field in fields if field.rpartition(".")[2] == name]
    if places:
        where = f"in {' or in '.join(places)}" if all(places) else "at the top"
        return f" (it belongs {where})"
    if near := suggestion(name, [part for field in fields for part in field.split(".")], _SIMILAR):
        return f" ({near})"
    if not deciding or not (denies or _may_decide(path)):
        return ""
    by_status = ", or by the exit status of the hook itself" if denies else ""
    return f" (it decides by {' or '.join(deciding)}{by_status})"


def _hint(path: str, member: object, fields: Mapping[str, Effect]) -> str:
    from .clean_verdict import denies  # as above

    return _hint_among(path, tuple(fields), _deciding(fields), denies(path.rpartition(".")[2], member))


def _deciding(fields: Mapping[str, Effect]) -> tuple[str, ...]:
    """The members by which a system decides."""
    return tuple(field for field, effect in fields.items() if effect is Effect.DECIDES)
