"""Several clients use one server process, and each gets what a server of its own would have given it (law 2).

It is a state machine without I/O, like the router. Its rules:

1. A response, progress and a task go to the client that asked for them, and to nobody else.
2. No client can name a request, a progress token, a subscription or a task of another client.
3. A line that two readers could take differently is refused (from a client) or dropped (from the server).

The server knows each request by a number of ours, which is also its progress token. The number replaces the client's
id in the line, and the client's own spelling comes back in the response; all other bytes stay. No number is used twice.

What sharing cannot hide:

- The handshake takes place once, with the first client's version, name and capabilities. Later clients get its result
  if they ask for that version or the one agreed on, otherwise an error. A request of the server that the client has
  not announced gets the error -32601, and so does `tasks/list`, and a task that a client would have to keep.
- A request of the server names no client. It goes to the one with the newest request, or to the only client; between
  different people, only to the one that the server works for. Otherwise the server gets an error at once.
- State that the server keeps for its session, such as roots, is that of all clients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import ClassVar, Final

from msgspec import Struct, field

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import Span
from . import calls, fast_scan, feedback, shared_messages, tasks
from .fast_scan import ReadCall
from .handshake import supports_forms
from .shared_messages import PROGRESS_TOKEN, SUBSCRIPTION_ID, Message

SERVER: Final = 0
"""The receiver of a line that is for the server; clients have numbers from 1."""

MAX_IN_FLIGHT: Final = 1000
"""Requests in flight of one client: agents have a few. Each takes about 600 bytes, and 2 KB more for long ids."""

MAX_CANCELLED: Final = 1024  # cancelled requests whose late response still finds its client: servers rarely send one
MAX_TASKS: Final = 1024  # tasks of one owner, as in `tasks`; the oldest is forgotten, and nobody can use it any more
MAX_ELICITATIONS: Final = 1024  # ids of elicitations on a page; the oldest is forgotten, and its end is not announced
MAX_OWN: Final = 1024  # requests of ours that the server has not answered: some servers answer such requests never
MAX_ASKED: Final = 1000  # requests of the server that one client has not answered, as MAX_IN_FLIGHT: people have a few
MAX_SUBSCRIPTIONS: Final = 1000  # resources that one client subscribes to: at most 4 MB with their addresses
MAX_URI_CHARACTERS: Final = 4096  # of such a resource's address: twice what browsers are sure to take
MAX_REPORTS: Final = 100  # different sentences: some of them contain a method, which the server chooses

_SMALL_BYTES: Final = 65_536  # a line in which an elicitation may announce its id: they are short texts for people

_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_DEFAULT_LEVEL: Final = _LEVELS.index("info")
"""What a client wants that has set no level, once another client has set one."""

_LIST_CHANGED: Final = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
_CAPABILITY_OF: Final = {"sampling/createMessage": "sampling", "roots/list": "roots"}
_WITHOUT_HANDSHAKE: Final = frozenset({"ping", "server/discover"})
_TASKS_PREFIX: Final = "tasks/"
_ELICITATION_ID: Final = re.compile(rb'"elicitationId"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")')

Edit = tuple[Span, bytes]
"""A place in a line, and what is to stand there."""


class Send(Struct, frozen=True):
    """One line, and who gets it."""

    to: int
    """The number of a client, or SERVER."""
    line: bytes
    """It ends with a line end."""
    refused: tuple[str, bytes, bytes] | None = None
    """Of a refusal: what `Refuses.on_refused` is called with."""


class _Kind(Enum):
    """What must be done when the response to a request comes."""

    OTHER = auto()
    INITIALIZE = auto()
    LISTEN = auto()  # `subscriptions/listen`, which is answered when the subscription ends
    SUBSCRIBE = auto()
    TASK = auto()  # the client asks for a task (2025-11-25)
    STATELESS = auto()  # the server may create a task (2026-07-28)
    OWN = auto()  # of the multiplexer itself; nobody gets the response


_KINDS: Final = {
    "initialize": _Kind.INITIALIZE,
    "subscriptions/listen": _Kind.LISTEN,
    "resources/subscribe": _Kind.SUBSCRIBE,
}


class _Request(Struct, eq=False, gc=False):
    """A request of a client that the server has."""

    number: int
    """The id under which the server knows it."""
    client: int
    """SERVER: the client has left."""
    id: bytes
    """As the client spelled it."""
    key: bytes
    token: bytes = b""
    """The progress token as the client spelled it; empty: it has none."""
    kind: _Kind = _Kind.OTHER
    uri: str = ""
    """The resource of a subscription."""


class _Task(Struct, frozen=True):
    """A task of the server."""

    client: int
    """The client that created it."""
    number: int
    """The request that created it."""


class _Owner(Struct, eq=False):
    """Who may use a task: one client, or all clients that were attached under one name."""

    name: str
    clients: int = 0
    tasks: dict[str, _Task] = field(default_factory=dict)
    """The oldest first."""


class _Client(Struct, eq=False):
    """One client."""

    number: int
    owner: _Owner
    in_flight: dict[bytes, _Request] = field(default_factory=dict)
    """Requests that are neither answered nor cancelled, by the key of their id."""
    is_open: bool = False
    """It may get messages that it did not ask for: it has the handshake, or is of the stateless era."""
    has_handshake: bool = False
    """Its `initialize` is answered."""
    initialized: bytes = b""
    """Its `notifications/initialized`, while the result of `initialize` is still awaited."""
    capabilities: bytes = b"{}"
    """As it announced them."""
    level: int | None = None
    """The least severe log messages that it wants; None: it has not said."""
    uris: set[str] = field(default_factory=set)
    asked: int = 0
    """Requests of the server that it has not answered."""


class _ServerRequest(Struct, eq=False, frozen=True):
    """A request of the server that a client has, or has to answer."""

    client: int
    id: bytes
    token: bytes
    """The key of its progress token; empty: it has none."""


class _Handshake(Struct):
    """The handshake of the server, which takes place once."""

    client: int = SERVER
    """The client whose `initialize` the server has."""
    is_pending: bool = False
    """The server has not answered it yet."""
    version: str = ""
    """The protocol version that it asks for."""
    capabilities: bytes = b""
    """The client's capabilities, as the server has got them."""
    result: bytes = b""
    """The line of the server's result; empty: there is none yet."""
    id_span: Span = (0, 0)
    versions: frozenset[str] = frozenset()
    """The protocol versions for which a client gets this result: the one asked for, and the one agreed on."""
    is_complete: bool = False
    """The server has `notifications/initialized`."""
    waiting: list[tuple[_Client, Message]] = field(default_factory=list)
    """The clients that wait for the result."""


class Multiplexer:
    """The clients of one server process: what each of them awaits, and where each line goes.

    `one_owner` says that all clients belong to one principal, so that a message of the server that names no request
    may go to several of them. If it is False, such a message goes to a client only while no other client has a request
    that the server may still be working on, because it could contain another person's data. `report` gets a sentence,
    without a full stop, about what is dropped; each sentence comes once.
    """

    def __init__(self, one_owner: bool, report: Callable[[str], None]) -> None:
        self._one_owner = one_owner
        self._report_line = report
        self._reported: set[str] = set()
        self._clients: dict[int, _Client] = {}
        self._last_client = 0
        self._last_number = 0
        self._requests: dict[int, _Request] = {}  # in flight, the oldest first
        self._passed: dict[bytes, tuple[int, bytes, str]] = {}
        # Calls on the fast path by their numbers, the oldest first: the client, the id as spelled, and the owner. They
        # are in no other table.
        self._cancelled: dict[int, _Request] = {}  # the oldest first
        self._own: dict[int, _Request] = {}  # of the multiplexer itself, the oldest first
        self._busy: dict[int, int] = {}
        # On how many requests of each client the server may be working: the cancelled ones that it has not answered
        # belong to them. Those of clients that have left are SERVER's.
        self._server_requests: dict[bytes, _ServerRequest] = {}
        self._handshake = _Handshake()
        self._subscribers: dict[str, set[int]] = {}
        self._server_level: int | None = None
        self._owners: dict[str, _Owner] = {}  # those with a name
        self._tasks: dict[str, _Owner | None] = {}  # None: two owners have got the same id, and neither may use it
        self._task_tokens: dict[int, _Request] = {}  # progress of a task goes on after the response
        self._elicitations: dict[str, int] = {}

    def attach(self, owner: str = "") -> int:
        """Return the number of a new client. A number is never used again.

        A client has its tasks alone, and they end with it. Clients with the same `owner` have theirs together, and
        these do not end: over HTTP each request of the stateless era may be a client of its own.
        """
        if self._passed:
            self._note_passed()
        self._last_client += 1
        shared = self._owner(owner)
        shared.clients += 1
        self._clients[self._last_client] = _Client(self._last_client, shared)
        return self._last_client

    def awaits_response(self, client: int) -> bool:
        """True if a request of the client is in flight, other than one that only ends with its subscription."""
        if self._passed:
            self._note_passed()
        who = self._clients.get(client)
        return who is not None and any(request.kind is not _Kind.LISTEN for request in who.in_flight.values())

    def detach(self, client: int) -> list[Send]:
        """Forget a client; return lines for the server.

        They cancel the client's requests in flight and its tasks, end subscriptions that no other client has, lower
        the log level if no other client wants as much, and answer the server's requests that are still open.
        """
        if self._passed:
            self._note_passed()
        who = self._clients.pop(client, None)
        if who is None:
            return []
        sends = self._abandon_requests(who)
        self._handshake.waiting = [one for one in self._handshake.waiting if one[0] is not who]
        unanswered = [key for key, one in self._server_requests.items() if one.client == client]
        sends += [Send(SERVER, feedback.no_client(self._server_requests.pop(key).id)) for key in unanswered]
        sends += self._leave_tasks(who.owner)
        left = [raw_json.encode(uri) for uri in sorted(who.uris) if self._leave(who, uri)]
        sends += [self._own_request(b"resources/unsubscribe", b'{"uri":%b}' % uri) for uri in left]
        if who.level is not None:
            sends += self._relax_level()
        return sends

    def _leave_tasks(self, owner: _Owner) -> list[Send]:
        """Cancel the tasks of a client that has left, unless other clients may use them."""
        owner.clients -= 1
        if owner.name:
            if not (owner.clients or owner.tasks):
                del self._owners[owner.name]
            return []
        left = list(owner.tasks)
        for task_id in left:
            self._forget_task(owner, task_id)
        if not self._handshake.result:  # a request of the stateless era would need the client's `_meta`
            return []
        return [self._own_request(b"tasks/cancel", b'{"taskId":%b}' % raw_json.encode(task_id)) for task_id in left]

    def _abandon_requests(self, who: _Client) -> list[Send]:
        """Cancel the requests of a client that has left, except an `initialize`, which cannot be cancelled."""
        sends = [self._cancel(one) for one in list(who.in_flight.values()) if one.kind is not _Kind.INITIALIZE]
        if still_busy := self._busy.pop(who.number, 0):
            for late in (*who.in_flight.values(), *self._cancelled.values()):
                if late.client == who.number:
                    late.client = SERVER
            self._busy[SERVER] = self._busy.get(SERVER, 0) + still_busy
        return sends

    # --- the fast path: clients of the stateless era that each send one call ---

    def pass_call(self, owner: str, call: ReadCall) -> tuple[int, ReadCall] | None:
        """As `attach` and `from_client`, for a client whose only message is a call that was read already.

        Return the client, and the call that the server is to get. None: nothing was done, and both must be called.
        """
        number = b"%d" % (self._last_number + 1)
        line = fast_scan.with_id(call.line, call.id, number) if call.version else None
        if line is None:
            return None
        self._last_number += 1
        self._last_client += 1
        self._passed[number] = self._last_client, call.id, owner
        return self._last_client, ReadCall(number, call.name, call.arguments, call.meta, line, call.version)

    def take_back(self, number: bytes) -> None:
        """Undo `pass_call`: the server does not get the call, whose number is used all the same."""
        del self._passed[number]

    def pass_response(self, number: bytes, line: bytes) -> tuple[int, bytes] | None:
        """As `from_server` and `detach`, for the response to such a call; `line` has no line end.

        Return the client and its line. None: nothing was done, and both must be called.
        """
        passed = self._passed.get(number)
        if passed is None or b'"taskId"' in line or b'"elicitationId"' in line:
            return None
        client, raw_id, _ = passed
        own = fast_scan.with_id(line, number, raw_id) if fast_scan.is_result(line, number) else None
        if own is None:
            return None
        del self._passed[number]
        return client, own

    def _note_passed(self) -> None:
        """Note the clients that are on the fast path like all others: something happens that may concern them."""
        passed, self._passed = self._passed, {}
        for number, (client, raw_id, name) in passed.items():
            owner = self._owner(name)
            owner.clients += 1
            request = _Request(int(number), client, raw_id, raw_id, kind=_Kind.STATELESS)
            self._clients[client] = _Client(client, owner, in_flight={raw_id: request}, is_open=True)
            self._requests[request.number] = request
            self._busy[client] = 1

    def _owner(self, name: str) -> _Owner:
        if not name:
            return _Owner("")
        if (owner := self._owners.get(name)) is None:
            owner = self._owners[name] = _Owner(name)
        return owner

    # --- lines from a client ---

    def from_client(self, client: int, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of a client: to the server, or back to the same client."""
        if self._passed:
            self._note_passed()
        who = self._clients.get(client)
        if who is None or line.isspace() or not line:
            return []
        try:
            message = _read(line)
        except raw_json.DuplicateKeys as problem:
            return [_refused(who, line, b"", f"Readers may read the message differently: {problem}.")]
        except raw_json.Unreadable as problem:
            if line.lstrip()[:1] == b"[":
                why = "The server is shared: send each message on its own, not in a batch."
                return [_refused(who, line, b"", why)]
            return [_refused(who, line, b"", f"It cannot be read: {problem}.", unreadable=True)]
        if not message.method:
            return self._response_from_client(who, message)
        if message.id:
            return self._request_from_client(who, message)
        return self._notification_from_client(who, message)

    def _request_from_client(self, who: _Client, message: Message) -> list[Send]:
        why = self._why_refused(who, message)
        if why:
            return [_refused(who, message.line, message.id, why)]
        if message.method == "initialize":
            return self._initialize(who, message)
        if message.is_stateless:
            who.is_open = who.is_open or message.method not in _WITHOUT_HANDSHAKE
        elif self._handshake.result and not who.has_handshake and message.method not in _WITHOUT_HANDSHAKE:
            return [_refused(who, message.line, message.id, "Send `initialize` first.")]
        if not self._may_name_tasks(who, message):
            return [_unknown_task(who, message)]
        special = self._SPECIAL.get(message.method)
        return [self._forward(who, message)] if special is None else special(self, who, message)

    def _why_refused(self, who: _Client, message: Message) -> str:
        """Return why a request must not get a number; empty: it may."""
        if not shared_messages.is_id(message.id):
            return f"Its id is neither a string nor a number of at most {shared_messages.MAX_ID_BYTES} bytes."
        if calls.id_key(message.id) in who.in_flight:
            return "Its id is the id of a request that is in flight."
        if len(who.in_flight) >= MAX_IN_FLIGHT:
            return f"More than {MAX_IN_FLIGHT} requests are in flight. Wait for responses."
        if PROGRESS_TOKEN in message.meta and not shared_messages.is_id(message.in_meta(PROGRESS_TOKEN)):
            return (
                f"Its progress token is neither a string nor a number of at most {shared_messages.MAX_ID_BYTES} bytes."
            )
        if SUBSCRIPTION_ID in message.meta:
            return "Only a server names a subscription."
        return ""

    def _may_name_tasks(self, who: _Client, message: Message) -> bool:
        """False if the message is about a task that is not the client's."""
        named = message.related_task
        if named is not None and self._tasks.get(named) is not who.owner:
            return False
        if "taskId" in message.params and self._tasks.get(message.text_param("taskId")) is not who.owner:
            return False
        if message.method.startswith(_TASKS_PREFIX):
            return "taskId" in message.params or message.method == "tasks/list"
        return True

    def _forward(self, who: _Client, message: Message, edit: Edit | None = None) -> Send:
        """Note a request and return it under its number. `edit` is one more change."""
        self._last_number += 1
        number = b"%d" % self._last_number
        request = _Request(self._last_number, who.number, message.id, calls.id_key(message.id))
        edits: list[Edit] = [(message.id_span, number)]
        if PROGRESS_TOKEN in message.meta:
            request.token = message.in_meta(PROGRESS_TOKEN)
            edits.append((message.meta[PROGRESS_TOKEN], number))
        if edit is not None:
            edits.append(edit)
        request.kind = _kind(message)
        who.in_flight[request.key] = self._requests[request.number] = request
        if request.kind is not _Kind.LISTEN:
            self._busy[who.number] = self._busy.get(who.number, 0) + 1
        return Send(SERVER, raw_json.splice(message.line, sorted(edits)))

    def _set_level(self, who: _Client, message: Message) -> list[Send]:
        level = message.text_param("level")
        if level not in _LEVELS:
            return [self._forward(who, message)]
        who.level = _LEVELS.index(level)
        self._server_level = self._wanted_level()
        wanted = b'"%b"' % _LEVELS[self._server_level].encode()
        return [self._forward(who, message, (message.params["level"], wanted))]

    def _wanted_level(self) -> int:
        levels = [_DEFAULT_LEVEL if one.level is None else one.level for one in self._clients.values()]
        return min(levels, default=_DEFAULT_LEVEL)

    def _relax_level(self) -> list[Send]:
        """Ask the server for fewer log messages if no client wants as many as before."""
        wanted = self._wanted_level()
        if not self._clients or self._server_level is None or wanted <= self._server_level:
            return []
        self._server_level = wanted
        return [self._own_request(b"logging/setLevel", b'{"level":"%b"}' % _LEVELS[wanted].encode())]

    def _subscribe(self, who: _Client, message: Message) -> list[Send]:
        uri = message.text_param("uri")
        if len(who.uris) >= MAX_SUBSCRIPTIONS or len(uri) > MAX_URI_CHARACTERS:
            limits = f"{MAX_SUBSCRIPTIONS} resources, and {MAX_URI_CHARACTERS} characters in each address"
            return [_refused(who, message.line, message.id, f"The limit of subscriptions is {limits}.")]
        send = self._forward(who, message)
        if uri:
            who.in_flight[calls.id_key(message.id)].uri = uri
            who.uris.add(uri)
            self._subscribers.setdefault(uri, set()).add(who.number)  # an update may come before the response
        return [send]

    def _unsubscribe(self, who: _Client, message: Message) -> list[Send]:
        uri = message.text_param("uri")
        self._leave(who, uri)
        if uri in self._subscribers:
            return [Send(who.number, b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % message.id)]
        return [self._forward(who, message)]

    def _leave(self, who: _Client, uri: str) -> bool:
        """End a client's subscription. True: no other client has it."""
        if uri not in who.uris:
            return False
        who.uris.discard(uri)
        self._subscribers[uri].discard(who.number)
        if self._subscribers[uri]:
            return False
        del self._subscribers[uri]
        return True

    def _listen(self, who: _Client, message: Message) -> list[Send]:
        """A subscription may name tasks whose status it reports."""
        try:
            filters = raw_json.fields(message.param("notifications") or b"{}")
            if any(raw_json.folded_key(key) == "taskids" and key != "taskIds" for key in filters):
                raise raw_json.Unreadable("one of its members is taken for 'taskIds' by some readers")
            named = [raw_json.text(one) or "" for one in raw_json.items(filters.get("taskIds", b"[]"))]
        except (raw_json.Unreadable, raw_json.DuplicateKeys) as problem:
            return [_refused(who, message.line, message.id, f"Its notifications cannot be read: {problem}.")]
        if any(self._tasks.get(one) is not who.owner for one in named):
            return [_unknown_task(who, message)]
        return [self._forward(who, message)]

    def _list_tasks(self, who: _Client, message: Message) -> list[Send]:
        return [Send(who.number, feedback.no_task_list(message.id))]

    _SPECIAL: ClassVar[Mapping[str, Callable[[Multiplexer, _Client, Message], list[Send]]]] = {
        "logging/setLevel": _set_level,
        "resources/subscribe": _subscribe,
        "resources/unsubscribe": _unsubscribe,
        "subscriptions/listen": _listen,
        "tasks/list": _list_tasks,
    }

    def _response_from_client(self, who: _Client, message: Message) -> list[Send]:
        key = calls.id_key(message.id)
        request = self._server_requests.get(key)
        if request is None or request.client != who.number:
            self._report("a client responded to a request that it does not have, and the response is dropped")
            return []
        self._forget_server_request(key)
        return [Send(SERVER, message.line)]

    def _notification_from_client(self, who: _Client, message: Message) -> list[Send]:
        method = message.method
        if not method.startswith("notifications/"):
            return [_refused(who, message.line, b"", "The server is shared: only a notification may have no id.")]
        if PROGRESS_TOKEN in message.meta or SUBSCRIPTION_ID in message.meta or not self._may_name_tasks(who, message):
            why = "The server is shared: this notification may concern another client."
            return [_refused(who, message.line, b"", why)]
        if method == "notifications/initialized":
            return self._initialized(who, message)
        if method == "notifications/cancelled":
            return self._cancel_for(who, message)
        if method == "notifications/progress":
            key = calls.id_key(message.param("progressToken"))
            mine = any(one.client == who.number and one.token == key for one in self._server_requests.values())
            return [Send(SERVER, message.line)] if mine and key else []  # late progress is no use to anyone
        if method.startswith("notifications/tasks"):
            self._report("a client reports a task of its own, which a shared server cannot have asked for")
            return []
        return [Send(SERVER, message.line)]

    def _cancel_for(self, who: _Client, message: Message) -> list[Send]:
        request = who.in_flight.get(calls.id_key(message.param("requestId")))
        if request is None or request.kind is _Kind.INITIALIZE:  # answered already, or it must not be cancelled
            return []
        self._cancel(request)
        return [Send(SERVER, raw_json.splice(message.line, [(message.params["requestId"], b"%d" % request.number)]))]

    def _cancel(self, request: _Request) -> Send:
        """Move a request to the cancelled ones; return a cancellation."""
        del self._requests[request.number]
        if (who := self._clients.get(request.client)) is not None:
            del who.in_flight[request.key]
        self._cancelled[request.number] = request
        if len(self._cancelled) > MAX_CANCELLED:
            del self._cancelled[next(iter(self._cancelled))]
        return Send(
            SERVER,
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n' % request.number,
        )

    def _own_request(self, method: bytes, params: bytes) -> Send:
        """Return a request of ours; its response goes to nobody."""
        self._last_number += 1
        self._own[self._last_number] = _Request(self._last_number, SERVER, b"", b"", kind=_Kind.OWN)
        if len(self._own) > MAX_OWN:
            del self._own[next(iter(self._own))]
        line = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}\n' % (self._last_number, method, params)
        return Send(SERVER, line)

    # --- the handshake ---

    def _initialize(self, who: _Client, message: Message) -> list[Send]:
        handshake = self._handshake
        if who.has_handshake or handshake.client == who.number or any(one is who for one, _ in handshake.waiting):
            return [_refused(who, message.line, message.id, "The session has been initialized already.")]
        who.capabilities = message.param("capabilities") or b"{}"
        if handshake.result:
            return [self._recorded_result(who, message)]
        if handshake.client != SERVER or handshake.is_pending:
            handshake.waiting.append((who, message))
            return []
        handshake.client, handshake.is_pending = who.number, True
        handshake.version, handshake.capabilities = message.text_param("protocolVersion"), who.capabilities
        return [self._forward(who, message)]

    def _recorded_result(self, who: _Client, message: Message) -> Send:
        """Return the result that the first client has got; an error if the client asks for another version."""
        handshake = self._handshake
        if message.text_param("protocolVersion") not in handshake.versions:
            supported = sorted(handshake.versions)
            return Send(who.number, feedback.other_version(message.id, message.param("protocolVersion"), supported))
        who.is_open = who.has_handshake = True
        return Send(who.number, raw_json.splice(handshake.result, [(handshake.id_span, message.id)]))

    def _initialize_answered(self, message: Message) -> list[Send]:
        """Return what follows from the response to `initialize`, besides the response to its client itself."""
        handshake = self._handshake
        first, waiting = self._clients.get(handshake.client), handshake.waiting
        handshake.is_pending, handshake.client, handshake.waiting = False, SERVER, []
        version = shared_messages.place_in_result(message, "protocolVersion")
        if message.is_error or version is None:
            return [send for who, request in waiting for send in self._initialize(who, request)]
        agreed = raw_json.text(message.line[slice(*version)]) or ""
        handshake.result, handshake.id_span = message.line, message.id_span
        handshake.versions = frozenset((agreed, handshake.version)) - {""}
        sends: list[Send] = []
        if first is not None:
            first.is_open = first.has_handshake = True
        for who, request in waiting:
            sends.append(self._recorded_result(who, request))
            if who.has_handshake and who.initialized and not handshake.is_complete:
                handshake.is_complete = True
                sends.append(Send(SERVER, who.initialized))
        return sends

    def _initialized(self, who: _Client, message: Message) -> list[Send]:
        """Pass on the first of these notifications."""
        handshake = self._handshake
        if any(one is who for one, _ in handshake.waiting):
            who.initialized = message.line
            return []
        if handshake.is_complete or (handshake.result and not who.has_handshake):
            return []
        handshake.is_complete = bool(handshake.result) or handshake.client == who.number
        return [Send(SERVER, message.line)]

    # --- lines from the server ---

    def from_server(self, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of the server: to clients, or back to the server."""
        if self._passed:
            self._note_passed()
        if line.lstrip()[:1] != b"{":
            return self._not_an_object(line)
        try:
            message = shared_messages.read(_ended(line))
        except (raw_json.Unreadable, raw_json.DuplicateKeys) as problem:
            why = f"The server's response is withheld, because it cannot be read with certainty: {problem}."
            raw_id = fast_scan.response_id(line[: fast_scan.END_BYTES], line[-fast_scan.END_BYTES :])
            return self._lost(raw_id or b"null", lambda own_id: feedback.failed_call(own_id, why))
        if not message.method:
            return self._response_from_server(message)
        if message.id:
            return [self._request_from_server(message)]
        return self._notification_from_server(message)

    def lost_from_server(self, raw_id: bytes, size: int, limit: int) -> list[Send]:
        """Return the error for the request to which a line of `size` bytes, over the limit, was the response."""
        if self._passed:
            self._note_passed()
        return self._lost(raw_id, lambda own_id: feedback.response_too_long(own_id, size, limit))

    def _not_an_object(self, line: bytes) -> list[Send]:
        """A batch is taken apart; other text is not a message."""
        try:
            if line.lstrip()[:1] == b"[":
                items = raw_json.all_items(line.strip())
                return [send for one in items if one[:1] == b"{" for send in self.from_server(one + b"\n")]
        except raw_json.Unreadable:
            pass
        if line.strip():
            self._report("the server wrote a line that is not JSON, and it is dropped")
        return []

    def _lost(self, raw_id: bytes, error: Callable[[bytes], bytes]) -> list[Send]:
        """Return an error in the place of a response that cannot be delivered."""
        request = self._take(raw_id)
        if request is None:
            self._report("the server wrote a line that cannot be delivered, and it is dropped")
            return []
        return self._answered(request, shared_messages.read(error(request.id or b"null")))

    def _take(self, raw_id: bytes) -> _Request | None:
        """Remove the request that a response with this id answers; None: there is none."""
        number = _number(raw_id)
        request = self._requests.pop(number, None)
        if request is not None:
            who = self._clients.get(request.client)
            if who is not None:
                del who.in_flight[request.key]
        else:
            request = self._cancelled.pop(number, None) or self._own.pop(number, None)
        if request is None:
            return None
        if request.kind is not _Kind.LISTEN and request.kind is not _Kind.OWN:
            self._settle(request.client)
        return request

    def _settle(self, client: int) -> None:
        """The server no longer works on a request of this client."""
        left = self._busy[client] - 1
        if left:
            self._busy[client] = left
        else:
            del self._busy[client]

    def _response_from_server(self, message: Message) -> list[Send]:
        request = self._take(message.id)
        if request is None:
            self._report("the server responded to a request that nobody has sent, and the response is dropped")
            return []
        edits: list[Edit] = [(message.id_span, request.id)]
        if request.kind is _Kind.LISTEN:
            place = shared_messages.place_in_result(message, "_meta", SUBSCRIPTION_ID)
            if place is not None and _number(message.line[slice(*place)]) == request.number:
                edits.append((place, request.id))
        return self._answered(request, message, edits)

    def _answered(self, request: _Request, message: Message, edits: Iterable[Edit] = ()) -> list[Send]:
        """Return the response to the client, with these edits, and what follows from it."""
        sends: list[Send] = []
        who = self._clients.get(request.client)
        if who is not None:
            sends.append(Send(who.number, raw_json.splice(message.line, sorted(edits))))
            if request.kind is _Kind.TASK or request.kind is _Kind.STATELESS:
                self._note_tasks(who, request, message)
            self._note_elicitations(who, message.line)
            if request.kind is _Kind.SUBSCRIBE and message.is_error:
                self._leave(who, request.uri)
        if request.kind is _Kind.INITIALIZE:
            sends += self._initialize_answered(message)
        return sends

    def _note_tasks(self, who: _Client, request: _Request, message: Message) -> None:
        """Note the tasks that a result creates. Other results, which a client might influence, claim no task."""
        if message.is_error or b'"taskId"' not in message.line:
            return
        try:
            result = raw_json.fields(message.line[slice(*message.content)])
            may_create = request.kind is _Kind.TASK or bytes(result.get("resultType", b"")) == b'"task"'
            found = list(tasks.task_ids(result)) if may_create else []
        except ValueError:
            self._report("a task of the server cannot be read, and nobody can use it")
            return
        for task_id in found:
            if self._tasks.setdefault(task_id, who.owner) is not who.owner:
                self._tasks[task_id] = None
                self._report("the server gave the same task id to two clients, and neither can use it")
            elif task_id not in who.owner.tasks:
                who.owner.tasks[task_id] = _Task(who.number, request.number)
                if request.token:
                    self._task_tokens[request.number] = request
                if len(who.owner.tasks) > MAX_TASKS:
                    self._forget_task(who.owner, next(iter(who.owner.tasks)))

    def _forget_task(self, owner: _Owner, task_id: str) -> None:
        self._task_tokens.pop(owner.tasks.pop(task_id).number, None)
        self._tasks.pop(task_id, None)

    def _creator_of(self, task_id: str) -> _Client | None:
        """Return the client that created a task; None: it has left, or no client has such a task."""
        owner = self._tasks.get(task_id)
        return None if owner is None else self._clients.get(owner.tasks[task_id].client)

    def _note_elicitations(self, who: _Client, line: bytes) -> None:
        """Note the ids of elicitations on a page: the server announces their end without naming a request."""
        if len(line) > _SMALL_BYTES or b'"elicitationId"' not in line:
            return
        for raw in filter(shared_messages.is_id, _ELICITATION_ID.findall(line)):
            name = raw_json.text(raw) or ""
            if self._elicitations.setdefault(name, who.number) != who.number:
                self._elicitations[name] = SERVER
            if len(self._elicitations) > MAX_ELICITATIONS:
                del self._elicitations[next(iter(self._elicitations))]

    # --- requests of the server ---

    def _request_from_server(self, message: Message) -> Send:
        key = calls.id_key(message.id)
        if key in self._server_requests:
            self._report("the server used the id of a request twice, and the second request gets an error")
            return Send(SERVER, feedback.no_client(message.id))
        related = message.related_task
        who = self._one_recipient() if related is None else self._creator_of(related)
        if who is None:
            self._report(f"the request {message.method[:100]!r} of the server got an error, because it names no client")
            return Send(SERVER, feedback.no_client(message.id))
        if not self._has_announced(who, message):
            return Send(SERVER, feedback.not_announced(message.id))
        token = calls.id_key(message.in_meta(PROGRESS_TOKEN)) if PROGRESS_TOKEN in message.meta else b""
        if who.asked >= MAX_ASKED or max(len(key), len(token)) > shared_messages.MAX_ID_BYTES:
            return Send(SERVER, feedback.client_is_busy(message.id))
        who.asked += 1
        self._server_requests[key] = _ServerRequest(who.number, message.id, token)
        self._note_elicitations(who, message.line)
        return Send(who.number, message.line)

    def _forget_server_request(self, key: bytes) -> None:
        """It is answered or cancelled."""
        request = self._server_requests.pop(key)
        self._clients[request.client].asked -= 1

    def _has_announced(self, who: _Client, message: Message) -> bool:
        """True if the client accepts this request. The server only knows the capabilities of the first client."""
        method = message.method
        if method == "ping":
            return True
        if "task" in message.params or method.startswith(_TASKS_PREFIX):
            return False  # a client that keeps tasks: nobody could say whose an id is
        try:
            announced = raw_json.fields(who.capabilities)
            if method == "elicitation/create":
                if message.text_param("mode") != "url":
                    return supports_forms(who.capabilities)
                return "url" in raw_json.fields(announced.get("elicitation", b"{}"))
        except (raw_json.Unreadable, raw_json.DuplicateKeys):
            return False
        if method in _CAPABILITY_OF:
            return _CAPABILITY_OF[method] in announced
        return who.has_handshake and who.capabilities == self._handshake.capabilities

    def _one_recipient(self) -> _Client | None:
        """Return the client for which a message is that names no request; None: it is uncertain."""
        if self._one_owner:
            for request in reversed(self._requests.values()):
                if request.kind is not _Kind.LISTEN and request.client != SERVER:
                    return self._clients[request.client]
            return next(iter(self._clients.values())) if len(self._clients) == 1 else None
        if len(self._busy) == 1:
            return self._clients.get(next(iter(self._busy)))
        # Otherwise it may be an afterthought to the call of a client that has left.
        return self._clients.get(1) if not self._busy and self._last_client == 1 else None

    # --- notifications of the server ---

    def _notification_from_server(self, message: Message) -> list[Send]:
        method = message.method
        if method == "notifications/progress":
            return self._progress(message)
        if method == "notifications/cancelled":
            return self._cancelled_by_server(message)
        if SUBSCRIPTION_ID in message.meta:
            return self._of_subscription(message)
        related = message.text_param("taskId") if "taskId" in message.params else message.related_task
        if related is not None:
            return self._of_task(related, message)
        if method in _LIST_CHANGED:
            return self._to_open(message.line)
        if method == "notifications/resources/updated":
            return [Send(one, message.line) for one in self._subscribers_of(message.text_param("uri"))]
        if method == "notifications/elicitation/complete":
            owner = self._elicitations.get(message.text_param("elicitationId"), SERVER)
            return [Send(owner, message.line)] if owner in self._clients else []
        return self._of_nobody(message)

    def _progress(self, message: Message) -> list[Send]:
        number = _number(message.param("progressToken"))
        request = self._requests.get(number) or self._cancelled.get(number) or self._task_tokens.get(number)
        if request is None or not request.token or request.client not in self._clients:
            self._report("the server reported progress of a request that is not in flight")
            return []
        edited = raw_json.splice(message.line, [(message.params["progressToken"], request.token)])
        return [Send(request.client, edited)]

    def _cancelled_by_server(self, message: Message) -> list[Send]:
        raw_id = message.param("requestId")
        if (own := self._server_requests.get(key := calls.id_key(raw_id))) is not None:
            self._forget_server_request(key)
            return [Send(own.client, message.line)]
        request = self._requests.get(_number(raw_id))
        if request is None or request.kind is not _Kind.LISTEN:
            return []
        self._take(raw_id)
        return [Send(request.client, raw_json.splice(message.line, [(message.params["requestId"], request.id)]))]

    def _of_subscription(self, message: Message) -> list[Send]:
        request = self._requests.get(_number(message.in_meta(SUBSCRIPTION_ID)))
        if request is None or request.kind is not _Kind.LISTEN:  # cancelled
            return []
        owner = self._clients[request.client].owner
        if "taskId" in message.params and self._tasks.get(message.text_param("taskId")) is not owner:
            self._report("the server sent the status of a task to the subscription of another client")
            return []
        edit = (message.meta[SUBSCRIPTION_ID], request.id)
        return [Send(request.client, raw_json.splice(message.line, [edit]))]

    def _of_task(self, task_id: str, message: Message) -> list[Send]:
        if task_id not in self._tasks and self._one_owner:
            return self._of_nobody(message)
        who = self._creator_of(task_id)
        if who is None:
            self._report("the server sent the status of a task that no client has")
            return []
        return [Send(who.number, message.line)]

    def _subscribers_of(self, uri: str) -> list[int]:
        """Return the clients that subscribe to a resource, or to one that it is a part of."""
        found = set(self._subscribers.get(uri, ()))
        if self._one_owner or not found:  # else the name of the part would be another person's business
            ends = [at for at, sign in enumerate(uri) if sign == "/"]
            found.update(*(self._subscribers.get(uri[:end], ()) for at in ends for end in (at, at + 1)))
        return sorted(found)

    def _of_nobody(self, message: Message) -> list[Send]:
        """A message that names no request: a log message, or an unknown method."""
        is_log = message.method == "notifications/message"
        receivers = [*self._clients.values()] if self._one_owner else []
        who = self._one_recipient()
        if who is not None and not (is_log and self._one_owner and self._handshake.result):
            receivers = [who]
        if not receivers:
            self._report(f"the message {message.method[:100]!r} of the server is dropped, because it names no client")
        level = message.text_param("level")
        severity = _LEVELS.index(level) if is_log and level in _LEVELS else len(_LEVELS)
        return [Send(one.number, message.line) for one in receivers if self._wants(one, severity)]

    def _wants(self, who: _Client, severity: int) -> bool:
        """False if the client has not asked for messages of this severity, which another has."""
        if not who.is_open and len(self._clients) > 1:
            return False
        if self._server_level is None:
            return True
        return severity >= (_DEFAULT_LEVEL if who.level is None else who.level)

    def _to_open(self, line: bytes) -> list[Send]:
        return [Send(one.number, line) for one in self._clients.values() if one.is_open]

    def _report(self, sentence: str) -> None:
        if sentence not in self._reported and len(self._reported) < MAX_REPORTS:
            self._reported.add(sentence)
            self._report_line(sentence)


def _read(line: bytes) -> Message:
    """Return the message in a line of a client, as the server is to get it. Raises Unreadable, DuplicateKeys."""
    if line.find(b"\n", 0, -1) >= 0:
        raise AssertionError("one message must not become two lines")
    message = shared_messages.read_call(line)
    if message is None:
        raw_json.check_utf8(line)
        message = shared_messages.read(_ended(raw_json.one_line(line)))
    return message


def _kind(message: Message) -> _Kind:
    if (kind := _KINDS.get(message.method)) is not None:
        return kind
    if "task" in message.params:
        return _Kind.TASK
    return _Kind.STATELESS if message.is_stateless else _Kind.OTHER


def _number(raw_id: bytes) -> int:
    """Return the number of a request of ours that the server names; 0: it names none."""
    key = calls.id_key(raw_id)
    return int(key) if fast_scan.is_plain_integer(key) else 0


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _refused(who: _Client, line: bytes, raw_id: bytes, why: str, *, unreadable: bool = False) -> Send:
    """The refusal of the message in a line."""
    named = raw_id if shared_messages.is_id(raw_id) else b"null"
    return Send(who.number, feedback.refused_message(named, why, unreadable=unreadable), (why, named, line))


def _unknown_task(who: _Client, message: Message) -> Send:
    why = "It names a task that is not known, or is another client's."
    return Send(who.number, feedback.unknown_task(message.id), (why, message.id, message.line))
