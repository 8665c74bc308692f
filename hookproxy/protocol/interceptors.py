"""MCP interceptors (SEP-2624): what their servers list and answer, and which of them run when, in which order. Pure.

How it works: a server lists *descriptors*; each says at which events (methods) and phases its interceptor runs. For one
message, `plan` selects them: mutations one after another, by priority and then by name; validations all at once. What
is sent is first mutated and then validated; what is received is first validated and then mutated. So validation always
stands at the boundary. Whatever cannot be read is refused: a descriptor that was misread would be a guard that is off.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, cast

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from .responses import Members

LIST: Final = "interceptors/list"
INVOKE: Final = "interceptor/invoke"
EXTENSION: Final = "io.modelcontextprotocol/interceptors"
"""The capability's key among the extensions."""

TIMED_OUT: Final = -32000
"""The code of an invocation that was not done in time."""
FAILED: Final = -32603
"""The code of an interceptor that could not do it."""
INVALID: Final = -32602
"""The code of an invocation that is not one: an unknown name, an event or a phase that it is not for."""

Phase = Literal["request", "response"]
PHASES: Final[tuple[Phase, Phase]] = ("request", "response")
Type = Literal["validation", "mutation", "sink"]
Mode = Literal["enforce", "audit"]
Severity = Literal["info", "warn", "error"]

_MODES: Final[Mapping[str, Mode]] = {"enforce": "enforce", "active": "enforce", "audit": "audit"}
"""`active` is what later drafts call `enforce`."""

_LARGEST_PRIORITY: Final = 2**31 - 1  # the draft: a 32-bit signed integer
_MOST_LISTED: Final = 1000  # interceptors of one server: more is not a list


class Hook(Struct, frozen=True):
    """Events of one phase at which an interceptor runs."""

    events: tuple[str, ...]
    phase: Phase


class Descriptor(Struct, frozen=True):
    """One interceptor, as its server lists it."""

    name: str
    type: Type
    hooks: tuple[Hook, ...]
    mode: Mode = "enforce"
    fail_open: bool = False
    priorities: tuple[int, int] = (0, 0)
    """Of the request and of the response; lower ones run first."""
    description: str = ""
    version: str = ""

    def runs_at(self, event: str, phase: Phase) -> bool:
        """Whether it runs for messages of this method, in this phase."""
        return any(
            hook.phase == phase and any(_covers(own, event, phase) for own in hook.events) for hook in self.hooks
        )

    def concerns(self, event: str) -> bool:
        """Whether it runs for messages of this method in some phase."""
        return any(self.runs_at(event, phase) for phase in PHASES)

    def priority(self, phase: Phase) -> int:
        """Its priority in this phase."""
        return self.priorities[PHASES.index(phase)]

    def listed(self) -> dict[str, object]:
        """As a server lists it: what is the default is left out."""
        entry: dict[str, object] = {"name": self.name}
        entry |= {key: text for key in ("version", "description") if (text := getattr(self, key))}
        entry |= {
            "type": self.type,
            "hooks": [{"events": list(hook.events), "phase": hook.phase} for hook in self.hooks],
        }
        if self.mode != "enforce":
            entry["mode"] = self.mode
        if self.fail_open:
            entry["failOpen"] = True
        request, response = self.priorities
        if request or response:
            entry["priorityHint"] = request if request == response else {"request": request, "response": response}
        return entry


def both(*events: str) -> tuple[Hook, ...]:
    """The hooks of an interceptor that runs for requests and responses of these events."""
    return tuple(Hook(events, phase) for phase in PHASES)


def _covers(own: str, event: str, phase: Phase) -> bool:
    """Whether what a hook calls an event means this one: a name, `*`, `*/request`, `*/response`, or a glob."""
    if own in (event, "*"):
        return True
    if own in ("*/request", "*/response"):
        return own == f"*/{phase}"
    return "*" in own and fnmatch.fnmatchcase(event, own)


class Plan(Struct, frozen=True):
    """What runs for one message, in order."""

    mutations: tuple[int, ...]
    """The places of the descriptors; one after another, each on what the one before has left."""
    validations: tuple[int, ...]
    """All at once."""
    sinks: tuple[int, ...]
    """Beside everything else: nobody waits for them."""
    mutates_first: bool

    def __bool__(self) -> bool:
        return bool(self.mutations or self.validations or self.sinks)


def plan(descriptors: Sequence[Descriptor], event: str, phase: Phase) -> Plan:
    """What runs for a message of this method, as whoever sends the request and receives the response."""
    running = [place for place, descriptor in enumerate(descriptors) if descriptor.runs_at(event, phase)]

    def of_type(kind: Type) -> list[int]:
        return [place for place in running if descriptors[place].type == kind]

    def order(place: int) -> tuple[int, str]:
        return descriptors[place].priority(phase), descriptors[place].name

    mutations = tuple(sorted(of_type("mutation"), key=order))
    return Plan(mutations, tuple(of_type("validation")), tuple(of_type("sink")), phase == "request")


# --- what servers send ---


def read_list(result: Members) -> tuple[Descriptor, ...]:
    """The descriptors in one page of a list. Raises ValueError, with a sentence about what is wrong."""
    entries = raw_json.all_items(bytes(result.get("interceptors", b"null"))) if "interceptors" in result else None
    if entries is None:
        raise ValueError("it lists no interceptors")
    if len(entries) > _MOST_LISTED:
        raise ValueError(f"it lists more than {_MOST_LISTED} interceptors")
    return tuple(_descriptor(raw_json.fields(entry)) for entry in entries)


def check_names(descriptors: Iterable[Descriptor]) -> None:
    """Raise ValueError for a name that two interceptors of one server have: an invocation would mean one of them."""
    seen: set[str] = set()
    for descriptor in descriptors:
        if descriptor.name in seen:
            raise ValueError(f"it lists two interceptors {descriptor.name!r}")
        seen.add(descriptor.name)


def _descriptor(members: Members) -> Descriptor:
    name = raw_json.text(bytes(members.get("name", b"")))
    if not name:
        raise ValueError("it lists an interceptor without a name")

    def wrong(what: str) -> ValueError:
        return ValueError(f"the interceptor {name!r} {what}")

    kind = raw_json.text(bytes(members.get("type", b""))) or ""
    if kind not in ("validation", "mutation", "sink"):
        raise wrong(f"is of the type {kind!r}, which hookproxy does not know")
    mode = _MODES.get((raw_json.text(bytes(members["mode"])) or "") if "mode" in members else "enforce")
    if mode is None:
        raise wrong(f"has a mode that hookproxy does not know: {_shown(members['mode'])}")
    fail_open = bytes(members.get("failOpen", b"false"))
    if fail_open not in (b"true", b"false"):
        raise wrong("has a failOpen that is neither true nor false")
    try:
        hooks = _hooks(members)
        priorities = _priorities(bytes(members.get("priorityHint", b"0")))
    except ValueError as problem:
        raise wrong(str(problem)) from None
    return Descriptor(
        name,
        cast("Type", kind),
        hooks,
        mode,
        fail_open == b"true",
        priorities,
        raw_json.text(bytes(members.get("description", b""))) or "",
        raw_json.text(bytes(members.get("version", b""))) or "",
    )


def _hooks(members: Members) -> tuple[Hook, ...]:
    """The hooks: a list, or a single one as in earlier drafts, whose phase may be `both`."""
    if ("hooks" in members) == ("hook" in members):
        raise ValueError("has not either hooks or a hook")
    raw = raw_json.all_items(bytes(members["hooks"])) if "hooks" in members else [bytes(members["hook"])]
    hooks: list[Hook] = []
    for entry in raw:
        try:
            hook = raw_json.fields(entry)
            events = tuple(raw_json.text(event) or "" for event in raw_json.all_items(bytes(hook["events"])))
            phase = raw_json.text(bytes(hook["phase"])) or ""
        except (KeyError, ValueError):
            raise ValueError("has a hook without events or without a phase") from None
        if not events or "" in events:
            raise ValueError("has a hook with an event that has no name")
        if phase not in (*PHASES, "both"):
            raise ValueError(f"has a hook of the phase {phase!r}, which hookproxy does not know")
        hooks += both(*events) if phase == "both" else (Hook(events, cast("Phase", phase)),)
    if not hooks:
        raise ValueError("has no hook")
    return tuple(hooks)


def _priorities(raw: bytes) -> tuple[int, int]:
    if raw[:1] == b"{":
        members = raw_json.fields(raw)
        return _priority(bytes(members.get("request", b"0"))), _priority(bytes(members.get("response", b"0")))
    return (_priority(raw),) * 2


def _priority(raw: bytes) -> int:
    value = raw_json.decoded(raw) if raw_json.is_integer(raw) else None
    if not isinstance(value, int) or not -_LARGEST_PRIORITY - 1 <= value <= _LARGEST_PRIORITY:
        raise ValueError(f"has a priorityHint that is not a 32-bit number: {_shown(raw)}")
    return value


def _shown(raw: bytes | msgspec.Raw) -> str:
    return bytes(raw)[:60].decode(errors="replace")


# --- invocations and their results ---


def invocation(  # the members of the request
    name: str, event: str, phase: Phase, payload: bytes, timeout: float, context: Mapping[str, object]
) -> dict[str, object]:
    """The params of `interceptor/invoke`; `timeout` in seconds."""
    return {
        "name": name,
        "event": event,
        "phase": phase,
        "payload": msgspec.Raw(payload),
        "timeoutMs": round(timeout * 1000),
        "context": context,
    }


class Outcome(Struct, frozen=True):
    """What one invocation has resulted in."""

    valid: bool = True
    """validation: False blocks, unless its severity is below an error."""
    severity: Severity = "error"
    """validation: of the result as a whole."""
    messages: tuple[str, ...] = ()
    """validation: what it says, for people and models."""
    payload: bytes | None = None
    """mutation: the payload in place of the one that it got; None: it has not changed it."""

    @property
    def blocks(self) -> bool:
        """Whether the message must not pass."""
        return not self.valid and self.severity == "error"


def read_outcome(descriptor: Descriptor, phase: Phase, result: Members) -> Outcome:
    """What the result of an invocation says. Raises ValueError, with a sentence about what is wrong.

    A result of another interceptor, type or phase says nothing about this message. The draft's own examples leave out
    these three members, so each of them may be absent.
    """
    expected = {"interceptor": descriptor.name, "type": descriptor.type, "phase": phase}
    for key, value in expected.items():
        if key in result and raw_json.text(bytes(result[key])) != value:
            raise ValueError(f"gave a result whose {key} is not {value!r}: {_shown(result[key])}")
    if descriptor.type == "mutation":
        return _mutated(result)
    if descriptor.type == "sink":
        return Outcome()
    return _validated(result)


def _mutated(result: Members) -> Outcome:
    if _flag(result, "modified") is False:
        return Outcome()
    if "payload" not in result:
        raise ValueError("says that it has modified the payload, and gives none")
    return Outcome(payload=bytes(result["payload"]))


def _validated(result: Members) -> Outcome:
    valid = _flag(result, "valid")
    texts: list[str] = []
    severities: list[str] = []
    for raw in raw_json.all_items(bytes(result["messages"])) if "messages" in result else []:
        message = raw_json.fields(raw)
        if text := raw_json.text(bytes(message.get("message", b""))):
            path = raw_json.text(bytes(message.get("path", b"")))
            texts.append(f"{path}: {text}" if path else text)
        severities.append(raw_json.text(bytes(message.get("severity", b'"error"'))) or "error")
    severity = raw_json.text(bytes(result["severity"])) if "severity" in result else None
    if severity is not None:
        severities = [severity]
    if "error" in severities or not severities or not set(severities) <= {"info", "warn"}:
        return Outcome(valid, "error", tuple(texts))
    return Outcome(valid, "warn" if "warn" in severities else "info", tuple(texts))


def _flag(result: Members, name: str) -> bool:
    raw = bytes(result.get(name, b""))
    if raw not in (b"true", b"false"):
        raise ValueError(f"gave a result whose {name} is neither true nor false")
    return raw == b"true"
