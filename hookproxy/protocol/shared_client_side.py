"""From the clients of a shared server: what the server, or the client itself, gets for each of their lines (law 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from msgspec import Struct, field

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import Span
from . import calls, feedback, shared_messages
from .shared_handshake import Client, SharedHandshake
from .shared_messages import PROGRESS_TOKEN, SUBSCRIPTION_ID, Message, Send, refused
from .shared_tables import (
    LEVELS,
    SERVER,
    Elicitations,
    InFlight,
    Kind,
    LogLevels,
    People,
    Request,
    ServerRequests,
    SharedTasks,
    Subscriptions,
)

MAX_IN_FLIGHT: Final = 1000
"""Requests in flight of one client: agents have a few. Each takes about 600 bytes, and 2 KB more for long ids."""

MAX_SUBSCRIPTIONS: Final = 1000  # resources that one client subscribes to: at most 4 MB with their addresses
MAX_URI_CHARACTERS: Final = 4096  # of such a resource's address: twice what browsers are sure to take

TASKS_PREFIX: Final = "tasks/"
_WITHOUT_HANDSHAKE: Final = frozenset({"ping", "server/discover"})
_KINDS: Final = {
    "initialize": Kind.INITIALIZE,
    "subscriptions/listen": Kind.LISTEN,
    "resources/subscribe": Kind.SUBSCRIBE,
}


class Shared(Struct, eq=False):
    """All that is known of the clients of one server."""

    last_client: int = 0
    """The number of the newest client that there has been."""
    clients: dict[int, Client] = {}
    in_flight: InFlight = field(default_factory=InFlight)
    asked: ServerRequests = field(default_factory=ServerRequests)
    handshake: SharedHandshake = field(default_factory=SharedHandshake)
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    people: People = field(default_factory=People)
    tasks: SharedTasks = field(default_factory=SharedTasks)
    levels: LogLevels = field(default_factory=LogLevels)
    elicitations: Elicitations = field(default_factory=Elicitations)


class ClientSide:
    """Reads what clients write, and notes what they begin and end. `report` as for the multiplexer."""

    def __init__(self, shared: Shared, report: Callable[[str], None]) -> None:
        self._shared = shared
        self._in_flight = shared.in_flight
        self._report = report

    def leave(self, who: Client) -> list[Send]:
        """Forget a client; return lines for the server, as `Multiplexer.detach` says."""
        shared = self._shared
        sends = [_cancellation(request) for request in self._in_flight.leave(who.number)]
        shared.handshake.leave(who)
        unanswered = shared.asked.leave(who.number)
        sends += [Send(SERVER, feedback.error(request.id, feedback.NO_CLIENT)) for request in unanswered]
        abandoned = shared.tasks.detach(who.owner)
        if shared.handshake.is_agreed:  # a request of the stateless era would need the client's `_meta`
            sends += [self._own_request(b"tasks/cancel", b'{"taskId":%b}' % raw_json.encode(id)) for id in abandoned]
        for uri in shared.subscriptions.leave(who.number):
            sends.append(self._own_request(b"resources/unsubscribe", b'{"uri":%b}' % raw_json.encode(uri)))
        level = shared.levels.leave(who.number, len(shared.clients))
        if level is not None:
            sends.append(self._own_request(b"logging/setLevel", b'{"level":"%b"}' % LEVELS[level].encode()))
        return sends

    def _own_request(self, method: bytes, params: bytes) -> Send:
        """Return a request of ours; its response goes to nobody."""
        number = self._in_flight.add_own()
        return Send(SERVER, b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}\n' % (number, method, params))

    def read(self, who: Client, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of a client: to the server, or back to the same client."""
        if line.isspace() or not line:
            return []
        try:
            message = _read(line)
        except raw_json.DuplicateKeys as problem:
            return [refused(who.number, line, b"", f"Readers may read the message differently: {problem}.")]
        except raw_json.Unreadable as problem:
            if line.lstrip()[:1] == b"[":
                why = "The server is shared: send each message on its own, not in a batch."
                return [refused(who.number, line, b"", why)]
            return [refused(who.number, line, b"", f"It cannot be read: {problem}.", unreadable=True)]
        if not message.method:
            return self._response_from_client(who, message)
        if message.id:
            return self._request_from_client(who, message)
        return self._notification_from_client(who, message)

    def _request_from_client(self, who: Client, message: Message) -> list[Send]:
        if why := self._why_refused(who, message):
            return [refused(who.number, message.line, message.id, why)]
        if message.method == "initialize":
            return self._shared.handshake.initialize(who, message, self.forward)
        if message.is_stateless:
            who.is_open = who.is_open or message.method not in _WITHOUT_HANDSHAKE
        elif not who.has_handshake and self._shared.handshake.is_agreed and message.method not in _WITHOUT_HANDSHAKE:
            return [refused(who.number, message.line, message.id, "Send `initialize` first.")]
        if not self._may_name_tasks(who, message):
            return [_unknown_task(who, message)]
        if message.method == "tasks/list" and self._shared.people.are_several:
            return [Send(who.number, feedback.error(message.id, feedback.NO_TASK_LIST))]
        special = self._SPECIAL.get(message.method)
        return [self.forward(who, message)] if special is None else special(self, who, message)

    def _why_refused(self, who: Client, message: Message) -> str:
        """Return why a request must not get a number; empty: it may."""
        if not shared_messages.is_id(message.id):
            return f"Its id is neither a string nor a number of at most {shared_messages.MAX_ID_BYTES} bytes."
        in_flight = self._in_flight.of(who.number)
        key = calls.id_key(message.id)
        if key in in_flight or self._shared.handshake.awaits_response(who, key):
            return "Its id is the id of a request that is in flight."
        if len(in_flight) >= MAX_IN_FLIGHT:
            return f"More than {MAX_IN_FLIGHT} requests are in flight. Wait for responses."
        if PROGRESS_TOKEN in message.meta and not shared_messages.is_id(message.in_meta(PROGRESS_TOKEN)):
            return (
                f"Its progress token is neither a string nor a number of at most {shared_messages.MAX_ID_BYTES} bytes."
            )
        if SUBSCRIPTION_ID in message.meta:
            return "Only a server names a subscription."
        return ""

    def _may_name_tasks(self, who: Client, message: Message) -> bool:
        """False if the message is about a task that is not the client's."""
        named = message.related_task
        if named is not None and not self._may_name(who, named):
            return False
        if "taskId" in message.params:
            task_id = message.text_param("taskId")
            return self._may_name(who, task_id) or (_is_removed(message) and self._shared.tasks.is_nobodys(task_id))
        names_none = message.method.startswith(TASKS_PREFIX) and message.method != "tasks/list"
        return not (names_none and self._shared.people.are_several)

    def _may_name(self, who: Client, task_id: str) -> bool:
        """True for the client's own task. What is nobody's is the server's business, unless it may be another person's.

        A server that says so itself would say it in other words than we do of the tasks of others.
        """
        tasks = self._shared.tasks
        may_ask = bool(task_id) and not self._shared.people.are_several
        return tasks.may_use(who.owner, task_id) or (may_ask and task_id not in tasks.owners_of)

    def forward(self, who: Client, message: Message, edit: tuple[Span, bytes] | None = None, uri: str = "") -> Send:
        """Note a request and return it under its number. `edit` is one more change; `uri` of a subscription."""
        request = self._in_flight.add_request(who.number, message.id, calls.id_key(message.id), _kind(message))
        number = b"%d" % request.number
        edits = [(message.id_span, number)]
        if PROGRESS_TOKEN in message.meta:
            request.token = message.in_meta(PROGRESS_TOKEN)
            edits.append((message.meta[PROGRESS_TOKEN], number))
        if edit is not None:
            edits.append(edit)
        request.uri = uri
        return Send(SERVER, raw_json.splice(message.line, sorted(edits)))

    def _set_level(self, who: Client, message: Message) -> list[Send]:
        level = message.text_param("level")
        if level not in LEVELS:
            return [self.forward(who, message)]
        wanted = self._shared.levels.ask(who.number, LEVELS.index(level), len(self._shared.clients))
        return [self.forward(who, message, (message.params["level"], b'"%b"' % LEVELS[wanted].encode()))]

    def _subscribe(self, who: Client, message: Message) -> list[Send]:
        uri, subscriptions = message.text_param("uri"), self._shared.subscriptions
        if len(subscriptions.by_client.get(who.number, ())) >= MAX_SUBSCRIPTIONS or len(uri) > MAX_URI_CHARACTERS:
            limits = f"{MAX_SUBSCRIPTIONS} resources, and {MAX_URI_CHARACTERS} characters in each address"
            return [refused(who.number, message.line, message.id, f"The limit of subscriptions is {limits}.")]
        if uri:
            subscriptions.subscribe(who.number, uri)  # an update may come before the response
        return [self.forward(who, message, uri=uri)]

    def _unsubscribe(self, who: Client, message: Message) -> list[Send]:
        uri, subscriptions = message.text_param("uri"), self._shared.subscriptions
        subscriptions.unsubscribe(who.number, uri)
        if uri in subscriptions.by_uri:  # other clients have it
            return [Send(who.number, b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % message.id)]
        return [self.forward(who, message)]

    def _listen(self, who: Client, message: Message) -> list[Send]:
        """A subscription may name tasks whose status it reports."""
        try:
            filters = raw_json.fields(message.param("notifications") or b"{}")
            if any(raw_json.folded_key(key) == "taskids" and key != "taskIds" for key in filters):
                raise raw_json.Unreadable("one of its members is taken for 'taskIds' by some readers")
            named = [raw_json.text(raw) or "" for raw in raw_json.items(filters.get("taskIds", b"[]"))]
        except raw_json.AMBIGUOUS as problem:
            return [refused(who.number, message.line, message.id, f"Its notifications cannot be read: {problem}.")]
        if not all(self._may_name(who, task_id) for task_id in named):
            return [_unknown_task(who, message)]
        return [self.forward(who, message)]

    _SPECIAL: ClassVar[Mapping[str, Callable[[ClientSide, Client, Message], list[Send]]]] = {
        "logging/setLevel": _set_level,
        "resources/subscribe": _subscribe,
        "resources/unsubscribe": _unsubscribe,
        "subscriptions/listen": _listen,
    }

    def _response_from_client(self, who: Client, message: Message) -> list[Send]:
        key = calls.id_key(message.id)
        request = self._shared.asked.by_key.get(key)
        if request is None or request.client != who.number:
            self._report("a client responded to a request that it does not have, and the response is dropped")
            return []
        self._shared.asked.take(key)
        return [Send(SERVER, message.line)]

    def _notification_from_client(self, who: Client, message: Message) -> list[Send]:
        method = message.method
        if not method.startswith("notifications/"):
            return [refused(who.number, message.line, b"", "The server is shared: only a notification may have no id.")]
        if PROGRESS_TOKEN in message.meta or SUBSCRIPTION_ID in message.meta or not self._may_name_tasks(who, message):
            why = "The server is shared: this notification may concern another client."
            return [refused(who.number, message.line, b"", why)]
        if method == "notifications/initialized":
            return self._shared.handshake.initialized(who, message)
        if method == "notifications/cancelled":
            return self._cancel_for(who, message)
        if method == "notifications/progress":
            is_awaited = self._shared.asked.is_token(who.number, calls.id_key(message.param("progressToken")))
            return [Send(SERVER, message.line)] if is_awaited else []  # late progress is of no use to anyone
        if method.startswith("notifications/tasks"):
            self._report("a client reports a task of its own, which a shared server cannot have asked for")
            return []
        return [Send(SERVER, message.line)]

    def _cancel_for(self, who: Client, message: Message) -> list[Send]:
        request = self._in_flight.of(who.number).get(calls.id_key(message.param("requestId")))
        if request is None or request.kind is Kind.INITIALIZE:  # answered already, or it must not be cancelled
            return []
        self._in_flight.cancel(request)
        return [Send(SERVER, raw_json.splice(message.line, [(message.params["requestId"], b"%d" % request.number)]))]


def _read(line: bytes) -> Message:
    """Return the message in a line of a client, as the server is to get it. Raises Unreadable, DuplicateKeys."""
    if line.find(b"\n", 0, -1) >= 0:
        raise AssertionError("one message must not become two lines")
    message = shared_messages.read_call(line)
    if message is None:
        raw_json.check_utf8(line)
        message = shared_messages.read(shared_messages.ended(raw_json.one_line(line)))
    return message


def _kind(message: Message) -> Kind:
    if (kind := _KINDS.get(message.method)) is not None:
        return kind
    if "task" in message.params:
        return Kind.TASK
    return Kind.STATELESS if message.is_stateless else Kind.OTHER


def _cancellation(request: Request) -> Send:
    params = b'{"requestId":%d}' % request.number
    return Send(SERVER, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}\n' % params)


def _is_removed(message: Message) -> bool:
    """True for a method that the stateless era has no more: a server says so, whatever task the request names."""
    return message.is_stateless and message.method == "tasks/result"


def _unknown_task(who: Client, message: Message) -> Send:
    error = feedback.METHOD_REMOVED if _is_removed(message) else feedback.UNKNOWN_TASK
    why = "It names a task that is not known, or is another client's."
    return Send(who.number, feedback.error(message.id, error), (why, message.id, message.line))
