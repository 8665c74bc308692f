"""What is known of the clients of a shared server: tables that keep themselves consistent, without lines or I/O.

    InFlight        the requests that the server has, and whose they are
    ServerRequests  the requests of the server that clients have to answer
    Subscriptions   which clients subscribe to which resource
    People          whether several people use the server
    SharedTasks     who may use which task
    LogLevels       which log messages each client wants
    Elicitations    to whom the end of an elicitation on a page is announced

Each table is changed only by its own methods. What must hold of each stands at its head, and a property test
(`tests/random/test_multiplex.py`) checks it after every step of random schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field

SERVER: Final = 0
"""The receiver of a line that is for the server; clients have numbers from 1."""

MAX_CANCELLED: Final = 1024  # cancelled requests whose late response still finds its client: servers rarely send one
MAX_TASKS: Final = 1024  # tasks of one owner, as in `tasks`; the oldest is forgotten, and nobody can use it any more
MAX_ELICITATIONS: Final = 1024  # ids of elicitations on a page; the oldest is forgotten, and its end is not announced
MAX_OWN: Final = 1024  # requests of ours that the server has not answered: some servers never answer them

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_DEFAULT_LEVEL: Final = LEVELS.index("info")
"""What a client wants that has set no level, once another client has set one."""


class Kind(Enum):
    """What must be done when the response to a request comes."""

    OTHER = auto()
    INITIALIZE = auto()
    LISTEN = auto()  # `subscriptions/listen`, which is answered when the subscription ends
    SUBSCRIBE = auto()
    TASK = auto()  # the client asks for a task (2025-11-25)
    STATELESS = auto()  # the server may create a task (2026-07-28)
    OWN = auto()  # of the multiplexer itself; nobody gets the response


class Request(Struct, eq=False, gc=False):
    """A request of a client that the server has."""

    number: int
    """The id under which the server knows it."""
    client: int
    """SERVER: the client has left."""
    id: bytes
    """As the client spelled it."""
    key: bytes
    kind: Kind = Kind.OTHER
    token: bytes = b""
    """The progress token as the client spelled it; empty: it has none."""
    uri: str = ""
    """The resource of a subscription."""


_NONE: Final[Mapping[bytes, Request]] = {}


class InFlight(Struct):
    """The requests that the server has, by their numbers: in flight, cancelled, or our own. No number is used twice.

        add_request ──▶ in flight ──cancel──▶ cancelled        add_own ──▶ own
                            └────────take────────┴────────────────take──────┘──▶ gone

    What must hold: a request in flight is in the table of its client too, by the key of its id, until the client
    leaves.
    """

    last_number: int = 0
    requests: dict[int, Request] = {}
    """In flight, the oldest first."""
    by_client: dict[int, dict[bytes, Request]] = {}
    cancelled: dict[int, Request] = {}
    own: dict[int, Request] = {}

    def of(self, client: int) -> Mapping[bytes, Request]:
        """The client's requests in flight, by the keys of their ids."""
        return self.by_client.get(client, _NONE)

    def add_request(self, client: int, raw_id: bytes, key: bytes, kind: Kind, number: int = 0) -> Request:
        """Note a request, and give it a number if it has none."""
        if not number:
            number = self.last_number = self.last_number + 1
        request = self.requests[number] = Request(number, client, raw_id, key, kind)
        mine = self.by_client.get(client)
        if mine is None:
            self.by_client[client] = {key: request}
        else:
            mine[key] = request
        return request

    def add_own(self) -> int:
        """Note a request of ours; return its number."""
        self.last_number += 1
        self.own[self.last_number] = Request(self.last_number, SERVER, b"", b"", Kind.OWN)
        if len(self.own) > MAX_OWN:
            del self.own[next(iter(self.own))]
        return self.last_number

    def find(self, number: int) -> Request | None:
        """The client's request with this number, in flight or cancelled."""
        return self.requests.get(number) or self.cancelled.get(number)

    def subscription(self, number: int) -> Request | None:
        """The `subscriptions/listen` in flight with this number."""
        request = self.requests.get(number)
        return request if request is not None and request.kind is Kind.LISTEN else None

    def cancel(self, request: Request) -> None:
        """Move a request to the cancelled ones: its late response still finds its client."""
        del self.requests[request.number]
        if request.client != SERVER:
            del self.by_client[request.client][request.key]
        self.cancelled[request.number] = request
        if len(self.cancelled) > MAX_CANCELLED:
            del self.cancelled[next(iter(self.cancelled))]

    def take(self, number: int) -> Request | None:
        """Remove the request that is answered; None: there is none. The server no longer works on it."""
        request = self.requests.pop(number, None)
        if request is None:
            return self.cancelled.pop(number, None) or self.own.pop(number, None)
        if request.client != SERVER:
            del self.by_client[request.client][request.key]
        return request

    def leave(self, client: int) -> list[Request]:
        """Forget a client. Returns its requests that are cancelled by that: an `initialize` cannot be cancelled."""
        abandoned = [request for request in self.of(client).values() if request.kind is not Kind.INITIALIZE]
        for request in abandoned:
            self.cancel(request)
        for late in (*self.by_client.pop(client, _NONE).values(), *self.cancelled.values()):
            if late.client == client:
                late.client = SERVER
        return abandoned

    def newest_client(self) -> int:
        """The client with the newest request that the server will answer; SERVER: there is none."""
        awaited = (request for request in reversed(self.requests.values()) if request.kind is not Kind.LISTEN)
        return next((request.client for request in awaited if request.client != SERVER), SERVER)


class ServerRequest(Struct, eq=False, frozen=True):
    """A request of the server that a client has, or has to answer."""

    client: int
    id: bytes
    token: bytes
    """The key of its progress token; empty: it has none."""


class ServerRequests(Struct):
    """The requests of the server that are not answered, by the keys of their ids.

    What must hold: `counts` has how many each client has to answer, and no zeros.
    """

    by_key: dict[bytes, ServerRequest] = {}
    counts: dict[int, int] = {}

    def add_request(self, key: bytes, request: ServerRequest) -> None:
        """Note a request that goes to its client."""
        self.by_key[key] = request
        self.counts[request.client] = self.counts.get(request.client, 0) + 1

    def take(self, key: bytes) -> ServerRequest:
        """Remove a request that is answered or cancelled."""
        request = self.by_key.pop(key)
        self.counts[request.client] -= 1
        if not self.counts[request.client]:
            del self.counts[request.client]
        return request

    def leave(self, client: int) -> list[ServerRequest]:
        """Forget a client; return the requests that it has not answered."""
        return [self.take(key) for key, request in [*self.by_key.items()] if request.client == client]

    def is_token(self, client: int, token: bytes) -> bool:
        """True if a request that the client has to answer has this progress token."""
        return bool(token) and any((asked.client, asked.token) == (client, token) for asked in self.by_key.values())


class Subscriptions(Struct):
    """Who subscribes to which resource. What must hold: both tables have the same pairs, and no empty sets."""

    by_client: dict[int, set[str]] = {}
    by_uri: dict[str, set[int]] = {}

    def subscribe(self, client: int, uri: str) -> None:
        """Note a subscription."""
        self.by_client.setdefault(client, set()).add(uri)
        self.by_uri.setdefault(uri, set()).add(client)

    def unsubscribe(self, client: int, uri: str) -> bool:
        """End a client's subscription. True: it had it, and no other client has it."""
        uris = self.by_client.get(client, set())
        if uri not in uris:
            return False
        uris.remove(uri)
        if not uris:
            del self.by_client[client]
        self.by_uri[uri].discard(client)
        if self.by_uri[uri]:
            return False
        del self.by_uri[uri]
        return True

    def leave(self, client: int) -> list[str]:
        """Forget a client; return the resources to which nobody subscribes any more."""
        return [uri for uri in sorted(self.by_client.get(client, ())) if self.unsubscribe(client, uri)]

    def subscribers(self, uri: str, *, with_parts: bool) -> list[int]:
        """The clients that subscribe to a resource; `with_parts`: or to one that it is a part of."""
        subscribers = set(self.by_uri.get(uri, ()))
        if with_parts or not subscribers:  # else the name of the part would be another person's business
            ends = [at for at, sign in enumerate(uri) if sign == "/"]
            subscribers.update(*(self.by_uri.get(uri[:end], ()) for at in ends for end in (at, at + 1)))
        return sorted(subscribers)


class People(Struct):
    """Whether more than one person has ever used the server. Once several have, it stays so."""

    first: str | None = None
    """The name of the person who came first; None: nobody has come yet."""
    are_several: bool = False

    def note(self, name: str) -> None:
        """Note who uses the server; empty: somebody about whom nothing is known."""
        if self.first is None:
            self.first = name
        elif not name or name != self.first:
            self.are_several = True


class Task(Struct, frozen=True):
    """A task of the server."""

    client: int
    """The client that created it."""
    number: int
    """The request that created it."""


class Owner(Struct, eq=False):
    """Who may use a task: one client, or all clients that were attached under one name."""

    name: str
    clients: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    """The oldest first."""


class SharedTasks(Struct):
    """The tasks of the server, and who may use each.

    What must hold: a task of an owner is in `owners_of` with this owner, or with None; an owner with a name is in
    `named` as long as it has clients or tasks. `tokens` has the requests whose tasks are known and report progress.
    """

    named: dict[str, Owner] = {}
    owners_of: dict[str, Owner | None] = {}
    """None: two owners have got the same id, and neither may use it."""
    tokens: dict[int, Request] = {}
    """By number: progress of a task goes on after the response to the request that created it."""
    has_forgotten: bool = False
    """The server may have a task of a client that nobody here knows any more."""

    def attach(self, name: str) -> Owner:
        """The owner of a new client's tasks."""
        owner = self.named.get(name) if name else Owner("")
        if owner is None:
            owner = self.named[name] = Owner(name)
        owner.clients += 1
        return owner

    def detach(self, owner: Owner) -> list[str]:
        """Forget a client of this owner; return the tasks that nobody may use any more."""
        owner.clients -= 1
        if owner.name:
            if not (owner.clients or owner.tasks):
                del self.named[owner.name]
            return []
        left = list(owner.tasks)
        for task_id in left:
            self._forget(owner, task_id)
        return left

    def claim(self, owner: Owner, client: int, task_id: str, request: Request) -> bool:
        """Note a task that a request of the client has created. False: another owner has its id, so nobody has it."""
        if self.owners_of.setdefault(task_id, owner) is not owner:
            self.owners_of[task_id] = None
            return False
        if task_id not in owner.tasks:
            owner.tasks[task_id] = Task(client, request.number)
            if request.token:
                self.tokens[request.number] = request
            if len(owner.tasks) > MAX_TASKS:
                self._forget(owner, next(iter(owner.tasks)))
        return True

    def _forget(self, owner: Owner, task_id: str) -> None:
        self.has_forgotten = True
        self.tokens.pop(owner.tasks.pop(task_id).number, None)
        self.owners_of.pop(task_id, None)

    def may_use(self, owner: Owner, task_id: str) -> bool:
        """True if the task is known, and this owner's."""
        return self.owners_of.get(task_id) is owner

    def is_nobodys(self, task_id: str) -> bool:
        """True if the task is certainly no client's."""
        return task_id not in self.owners_of and not self.has_forgotten

    def creator(self, task_id: str) -> int:
        """The client that created a task, even if it has left; SERVER: nobody has such a task."""
        owner = self.owners_of.get(task_id)
        return SERVER if owner is None else owner.tasks[task_id].client


class LogLevels(Struct):
    """The least severe log messages that clients want, as places in LEVELS, and what the server was asked for."""

    wanted: dict[int, int] = {}
    """Of the clients that have said."""
    server: int | None = None

    def ask(self, client: int, level: int, clients: int) -> int:
        """Note what one of so many clients wants; return what to ask the server for."""
        self.wanted[client] = level
        self.server = self._least(clients)
        return self.server

    def leave(self, client: int, clients: int) -> int | None:
        """Forget a client, of which so many stay. Returns for what less to ask the server; None: nothing changes."""
        if self.wanted.pop(client, None) is None or not clients or self.server is None:
            return None
        least = self._least(clients)
        if least <= self.server:
            return None
        self.server = least
        return least

    def _least(self, clients: int) -> int:
        silent = (_DEFAULT_LEVEL,) if clients > len(self.wanted) else ()
        return min((*self.wanted.values(), *silent), default=_DEFAULT_LEVEL)

    def wants(self, client: int, severity: int) -> bool:
        """False if the client has not asked for messages of this severity, which another has."""
        return self.server is None or severity >= self.wanted.get(client, _DEFAULT_LEVEL)


class Elicitations(Struct):
    """The ids of elicitations on a page, and their clients: the server announces their end without naming a request."""

    clients: dict[str, int] = {}
    """SERVER: two clients have got the same id."""

    def claim(self, name: str, client: int) -> None:
        """Note an elicitation that a client gets."""
        if self.clients.setdefault(name, client) != client:
            self.clients[name] = SERVER
        if len(self.clients) > MAX_ELICITATIONS:
            del self.clients[next(iter(self.clients))]
