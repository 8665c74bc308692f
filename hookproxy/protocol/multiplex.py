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
  not announced gets the error -32601, and so does a task that a client would have to keep.
- A request of the server names no client. While one person uses the server, it goes to the client with the newest
  request, or to the only one. Once several people have, nobody can say whose it is: the server gets an error at once.
  So it is with log messages, which are dropped, and with `tasks/list`. What is dropped or refused so is counted.
- State that the server keeps for its session is that of all clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from . import fast_scan, feedback
from .fast_scan import ReadCall
from .roots import Roots
from .shared_client_side import ClientSide, Shared
from .shared_handshake import Client
from .shared_messages import Send
from .shared_server_side import ServerSide
from .shared_tables import SERVER, Kind

__all__ = ["SERVER", "Multiplexer", "Send"]

MAX_REPORTS: Final = 100  # different sentences: some of them contain a method, which the server chooses


class Multiplexer:
    """The clients of one server process: what each of them awaits, and where each line goes.

    `one_owner`: all clients belong to one principal, so a message of the server that names no request may go to several
    of them. Else it reaches a client only as long as one owner has ever had clients: it might contain the data of
    another one. `report` gets a sentence, without a full stop, about what is dropped; each sentence comes once.
    `note_dropped` is called for each message of the server that belongs to nobody certainly. `roots` are those that
    the server gets in place of the clients' own; None: it asks the clients.
    """

    def __init__(
        self,
        one_owner: bool,
        report: Callable[[str], None],
        note_dropped: Callable[[], None] = lambda: None,
        roots: Roots | None = None,
    ) -> None:
        self._one_owner = one_owner
        self._report_line = report
        self._reported: set[str] = set()
        self._shared = Shared()
        self._in_flight = self._shared.in_flight
        self._client_side = ClientSide(self._shared, self._report)
        self._server_side = ServerSide(self._shared, self._client_side.forward, self._report, note_dropped, roots)
        self._passed: dict[bytes, tuple[int, bytes, str]] = {}
        # Calls on the fast path by their numbers, the oldest first: the client, the id as spelled, and the owner. They
        # are in no other table.

    def attach(self, owner: str = "") -> int:
        """Return the number, never used again, of a new client. Its tasks are its own, and end with it.

        Clients of one `owner` share theirs, which do not end: over HTTP each stateless request may be a client.
        """
        self._note_passed()
        self._note_owner(owner)
        shared = self._shared
        number = shared.last_client = shared.last_client + 1
        shared.clients[number] = Client(number, shared.tasks.attach(owner))
        return number

    def awaits_response(self, client: int) -> bool:
        """True if a request of the client is in flight, other than one that only ends with its subscription."""
        self._note_passed()
        return any(request.kind is not Kind.LISTEN for request in self._in_flight.of(client).values())

    def detach(self, client: int) -> list[Send]:
        """Forget a client; return lines for the server, which end all that it does for this client alone.

        They cancel requests and tasks, end subscriptions, lower the log level, and answer the server's open requests.
        """
        self._note_passed()
        who = self._shared.clients.pop(client, None)
        return [] if who is None else self._client_side.leave(who)

    def from_client(self, client: int, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of a client: to the server, or back to the same client."""
        if self._passed:
            self._note_passed()
        who = self._shared.clients.get(client)
        return [] if who is None else self._client_side.read(who, line)

    def from_server(self, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of the server: to clients, or back to the server."""
        if self._passed:
            self._note_passed()
        return self._server_side.read(line)

    def lost_from_server(self, raw_id: bytes, size: int, limit: int) -> list[Send]:
        """Return the error for the request to which a line of `size` bytes, over the limit, was the response."""
        self._note_passed()
        return self._server_side.lost(raw_id, lambda own_id: feedback.response_too_long(own_id, size, limit))

    # --- the fast path: clients of the stateless era that each send one call ---

    def pass_call(self, owner: str, call: ReadCall) -> tuple[int, ReadCall] | None:
        """As `attach` and `from_client` for a client's only message, as the server gets it; None: nothing is done."""
        in_flight, shared = self._in_flight, self._shared
        number = b"%d" % (in_flight.last_number + 1)
        line = fast_scan.with_id(call.line, call.id, number) if call.version else None
        if line is None:
            return None
        in_flight.last_number += 1
        self._note_owner(owner)
        client = shared.last_client = shared.last_client + 1
        self._passed[number] = client, call.id, owner
        return client, ReadCall(number, call.name, call.arguments, call.meta, line, call.version)

    def take_back(self, number: bytes) -> None:
        """Undo `pass_call`: the server does not get the call, whose number is used all the same."""
        del self._passed[number]

    def pass_response(self, number: bytes, line: bytes) -> tuple[int, bytes] | None:
        """As `from_server` and `detach` for the response to such a call, without a line end. None: nothing was done."""
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
            self._shared.clients[client] = Client(client, self._shared.tasks.attach(name), is_open=True)
            self._in_flight.add_request(client, raw_id, raw_id, Kind.STATELESS, int(number))

    def _note_owner(self, owner: str) -> None:
        if not self._one_owner:
            self._shared.people.note(owner)

    def _report(self, sentence: str) -> None:
        if sentence not in self._reported and len(self._reported) < MAX_REPORTS:
            self._reported.add(sentence)
            self._report_line(sentence)
