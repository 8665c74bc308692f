"""From a shared server: which client gets what it writes, or that the server gets an error back (law 2).

Whose a message is, in this order: that of the request, the progress token, the subscription or the task that it names;
all that subscribe to its resource; all clients, for a changed list, of which each then learns no more than that it has
changed. What names nothing of this belongs to the one person who uses the server, or, once several people have used it,
to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import Span
from . import calls, fast_scan, feedback, shared_messages, tasks
from .handshake import supports_forms
from .roots import ROOTS_LIST, Roots
from .shared_client_side import TASKS_PREFIX, Shared
from .shared_handshake import Client, Forward
from .shared_messages import PROGRESS_TOKEN, SUBSCRIPTION_ID, Message, Send
from .shared_tables import LEVELS, SERVER, Kind, Request, ServerRequest

MAX_ASKED: Final = 1000  # requests of the server that one client has not answered, as MAX_IN_FLIGHT: people have a few

_SMALL_BYTES: Final = 65_536  # a line in which an elicitation may announce its id: they are short texts for people
_LIST_CHANGED: Final = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
_CAPABILITY_OF: Final = {"sampling/createMessage": "sampling", "roots/list": "roots"}
_ELICITATION_ID: Final = re.compile(rb'"elicitationId"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")')


class ServerSide:
    """Reads what the server writes. `forward` is for clients; the other arguments are as for the multiplexer."""

    def __init__(
        self,
        shared: Shared,
        forward: Forward,
        report: Callable[[str], None],
        note_dropped: Callable[[], None],
        roots: Roots | None,
    ) -> None:
        self._shared = shared
        self._clients = shared.clients
        self._in_flight = shared.in_flight
        self._people = shared.people
        self._forward = forward
        self._report = report
        self._note_dropped = note_dropped
        self._roots = roots

    def _drop(self, why: str) -> None:
        """Report and count a message of the server that certainly belongs to nobody, or to nobody certainly."""
        self._report(why)
        self._note_dropped()

    def read(self, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of the server: to clients, or back to the server."""
        if line.lstrip()[:1] != b"{":
            return self._not_an_object(line)
        try:
            message = shared_messages.read(shared_messages.ended(line))
        except raw_json.AMBIGUOUS as problem:
            why = f"The server's response is withheld, because it cannot be read with certainty: {problem}."
            raw_id = fast_scan.response_id(line[: fast_scan.END_BYTES], line[-fast_scan.END_BYTES :])
            return self.lost(raw_id or b"null", lambda own_id: feedback.failed_call(own_id, why))
        if not message.method:
            return self._response_from_server(message)
        if message.id:
            return [self._request_from_server(message)]
        return self._notification_from_server(message)

    def _not_an_object(self, line: bytes) -> list[Send]:
        """A batch is taken apart; other text is not a message."""
        try:
            if line.lstrip()[:1] == b"[":
                items = raw_json.all_items(line.strip())
                return [send for item in items if item[:1] == b"{" for send in self.read(item + b"\n")]
        except raw_json.Unreadable:
            pass
        if line.strip():
            self._report("the server wrote a line that is not JSON, and it is dropped")
        return []

    def lost(self, raw_id: bytes, error: Callable[[bytes], bytes]) -> list[Send]:
        """Return an error in the place of a response that cannot be delivered."""
        request = self._in_flight.take(_number(raw_id))
        if request is None:
            self._report("the server wrote a line that cannot be delivered, and it is dropped")
            return []
        return self._answered(request, shared_messages.read(error(request.id or b"null")))

    def _response_from_server(self, message: Message) -> list[Send]:
        request = self._in_flight.take(_number(message.id))
        if request is None:
            self._drop("the server responded to a request that nobody has sent, and the response is dropped")
            return []
        edits: list[tuple[Span, bytes]] = [(message.id_span, request.id)]
        if request.kind is Kind.LISTEN:
            place = shared_messages.place_in_result(message, "_meta", SUBSCRIPTION_ID)
            if place is not None and _number(message.line[slice(*place)]) == request.number:
                edits.append((place, request.id))
        return self._answered(request, message, edits)

    def _answered(self, request: Request, message: Message, edits: Iterable[tuple[Span, bytes]] = ()) -> list[Send]:
        """Return the response to the client, with these edits, and what follows from it."""
        sends: list[Send] = []
        who = self._clients.get(request.client)
        if who is not None:
            sends.append(Send(who.number, raw_json.splice(message.line, sorted(edits))))
            if request.kind is Kind.TASK or request.kind is Kind.STATELESS:
                self._note_tasks(who, request, message)
            self._note_elicitations(who, message.line)
            if request.kind is Kind.SUBSCRIBE and message.is_error:
                self._shared.subscriptions.unsubscribe(who.number, request.uri)
        if request.kind is Kind.INITIALIZE:
            sends += self._shared.handshake.answered(message, self._forward)
        return sends

    def _note_tasks(self, who: Client, request: Request, message: Message) -> None:
        """Note the tasks that a result creates. Other results, which a client might influence, claim no task."""
        if message.is_error or b'"taskId"' not in message.line:
            return
        try:
            result = raw_json.fields(message.line[slice(*message.content)])
            may_create = request.kind is Kind.TASK or bytes(result.get("resultType", b"")) == b'"task"'
            created = list(tasks.task_ids(result)) if may_create else []
        except ValueError:
            self._report("a task of the server cannot be read, and nobody can use it")
            return
        for task_id in created:
            if not self._shared.tasks.claim(who.owner, who.number, task_id, request):
                self._report("the server gave the same task id to two clients, and neither can use it")

    def _creator_of(self, task_id: str) -> Client | None:
        """The client that created a task; None: it has left, or no client has such a task."""
        return self._clients.get(self._shared.tasks.creator(task_id))

    def _note_elicitations(self, who: Client, line: bytes) -> None:
        """Note the ids of elicitations on a page: the server announces their end without naming a request."""
        if len(line) > _SMALL_BYTES or b'"elicitationId"' not in line:
            return
        for raw in filter(shared_messages.is_id, _ELICITATION_ID.findall(line)):
            self._shared.elicitations.claim(raw_json.text(raw) or "", who.number)

    # --- requests of the server ---

    def _request_from_server(self, message: Message) -> Send:
        key, asked = calls.id_key(message.id), self._shared.asked
        if key in asked.by_key:
            self._report("the server used the id of a request twice, and the second request gets an error")
            return Send(SERVER, feedback.error(message.id, feedback.NO_CLIENT))
        if message.method == ROOTS_LIST and self._roots is not None and self._roots.are_fixed:
            return Send(SERVER, self._roots.response(message.id))
        related = message.related_task
        who = self._one_recipient() if related is None else self._creator_of(related)
        if who is None:
            if message.method == "ping" and self._people.are_several:  # it asks whether anybody is there
                return Send(SERVER, b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % message.id)
            self._drop(f"the request {message.method[:100]!r} of the server got an error, because it names no client")
            return Send(SERVER, feedback.error(message.id, feedback.NO_CLIENT))
        if not self._has_announced(who, message):
            return Send(SERVER, feedback.error(message.id, feedback.NOT_ANNOUNCED))
        token = calls.id_key(message.in_meta(PROGRESS_TOKEN)) if PROGRESS_TOKEN in message.meta else b""
        if asked.counts.get(who.number, 0) >= MAX_ASKED or max(len(key), len(token)) > shared_messages.MAX_ID_BYTES:
            return Send(SERVER, feedback.error(message.id, feedback.CLIENT_IS_BUSY))
        asked.add_request(key, ServerRequest(who.number, message.id, token))
        self._note_elicitations(who, message.line)
        return Send(who.number, message.line)

    def _has_announced(self, who: Client, message: Message) -> bool:
        """True if the client accepts this request. The server only knows the capabilities of the first client."""
        method = message.method
        if method == "ping":
            return True
        if "task" in message.params or method.startswith(TASKS_PREFIX):
            return False  # a client that keeps tasks: nobody could say whose an id is
        try:
            announced = raw_json.fields(who.capabilities)
            if method == "elicitation/create":
                if message.text_param("mode") != "url":
                    return supports_forms(who.capabilities)
                return "url" in raw_json.fields(announced.get("elicitation", b"{}"))
        except raw_json.AMBIGUOUS:
            return False
        if method in _CAPABILITY_OF:
            return _CAPABILITY_OF[method] in announced
        return who.has_handshake and who.capabilities == self._shared.handshake.capabilities

    def _one_recipient(self) -> Client | None:
        """Return the client for which a message is that names no request; None: it is uncertain."""
        if self._people.are_several:
            return None  # whoever has a request in flight: it may be an afterthought to the call of another person
        if newest := self._in_flight.newest_client():
            return self._clients[newest]
        return next(iter(self._clients.values())) if len(self._clients) == 1 else None

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
            line = self._for_several(message, b"")
            return [Send(client.number, line) for client in self._clients.values() if client.is_open]
        if method == "notifications/resources/updated":
            uri = message.text_param("uri")
            line = self._for_several(message, b',"params":{"uri":%b}' % message.param("uri"))
            subscribers = self._shared.subscriptions.subscribers(uri, with_parts=not self._people.are_several)
            return [Send(client, line) for client in subscribers]
        if method == "notifications/elicitation/complete":
            client = self._shared.elicitations.clients.get(message.text_param("elicitationId"), SERVER)
            return [Send(client, message.line)] if client in self._clients else []
        return self._of_nobody(message)

    def _for_several(self, message: Message, params: bytes) -> bytes:
        """The line for several people: the rest of it might be meant for one of them."""
        if not self._people.are_several:
            return message.line
        return b'{"jsonrpc":"2.0","method":"%b"%b}\n' % (message.method.encode(), params)

    def _progress(self, message: Message) -> list[Send]:
        number = _number(message.param("progressToken"))
        request = self._in_flight.find(number) or self._shared.tasks.tokens.get(number)
        if request is None or not request.token or request.client not in self._clients:
            self._drop("the server reported progress of a request that is not in flight")
            return []
        edited = raw_json.splice(message.line, [(message.params["progressToken"], request.token)])
        return [Send(request.client, edited)]

    def _cancelled_by_server(self, message: Message) -> list[Send]:
        raw_id = message.param("requestId")
        key, asked = calls.id_key(raw_id), self._shared.asked
        if key in asked.by_key:
            return [Send(asked.take(key).client, message.line)]
        request = self._in_flight.subscription(_number(raw_id))
        if request is None:
            return []
        self._in_flight.take(request.number)
        return [Send(request.client, raw_json.splice(message.line, [(message.params["requestId"], request.id)]))]

    def _of_subscription(self, message: Message) -> list[Send]:
        request = self._in_flight.subscription(_number(message.in_meta(SUBSCRIPTION_ID)))
        if request is None:  # cancelled
            return []
        owner = self._clients[request.client].owner
        if "taskId" in message.params and not self._shared.tasks.may_use(owner, message.text_param("taskId")):
            self._drop("the server sent the status of a task to the subscription of another client")
            return []
        edit = (message.meta[SUBSCRIPTION_ID], request.id)
        return [Send(request.client, raw_json.splice(message.line, [edit]))]

    def _of_task(self, task_id: str, message: Message) -> list[Send]:
        if task_id not in self._shared.tasks.owners_of and not self._people.are_several:
            return self._of_nobody(message)
        who = self._creator_of(task_id)
        if who is None:
            self._drop("the server sent the status of a task that no client has")
            return []
        return [Send(who.number, message.line)]

    def _of_nobody(self, message: Message) -> list[Send]:
        """A message that names no request: a log message, or an unknown method."""
        is_log, who = message.method == "notifications/message", self._one_recipient()
        if self._people.are_several:
            receivers = []
        elif who is None or (is_log and self._shared.handshake.is_agreed):
            receivers = [*self._clients.values()]
        else:
            receivers = [who]
        if not receivers:
            self._drop(f"the message {message.method[:100]!r} of the server is dropped, because it names no client")
        level = message.text_param("level")
        severity = LEVELS.index(level) if is_log and level in LEVELS else len(LEVELS)
        return [Send(client.number, message.line) for client in receivers if self._wants(client, severity)]

    def _wants(self, who: Client, severity: int) -> bool:
        """False if the client has not asked for messages of this severity, which another has."""
        is_open = who.is_open or len(self._clients) == 1
        return is_open and self._shared.levels.wants(who.number, severity)


def _number(raw_id: bytes) -> int:
    """Return the number of a request of ours that the server names; 0: it names none."""
    key = calls.id_key(raw_id)
    return int(key) if fast_scan.is_plain_integer(key) else 0
