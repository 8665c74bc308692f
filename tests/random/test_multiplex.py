"""Clients that share a server, all with the same ids, tokens and resources: each gets what its own server would write.

The server is played here. It knows by a mark in each request whose it is, and writes each line twice: with the names
that the shared process knows, and with the client's own, as a server for this client alone would write it.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hookproxy.protocol import fast_scan
from hookproxy.protocol.multiplex import SERVER, Multiplexer, Send
from hookproxy.protocol.shared_client_side import Shared
from hookproxy.protocol.shared_messages import lone_version
from tests.support import readers
from tests.support.examples import examples

IDS: Final = st.sampled_from(["1", '"1"', "1.0", "2", "3", '"a"', '"\\u0061b"', "12345678901234567890"])
TOKENS: Final = st.sampled_from(["", "1", '"1"', "2", '"token"'])
URIS: Final = st.sampled_from(["file:///a", "file:///b"])
GAPS: Final = st.sampled_from(["", " ", "\t", " \r"])
VERSION: Final = "2025-11-25"


class Work:
    """A request that the server has."""

    def __init__(self, client: int, raw_id: str, token: str) -> None:
        self.client, self.raw_id, self.token = client, raw_id, token
        self.number: Any = None
        self.sent_token: Any = None
        self.cancelled = False


def check_tables(shared: Shared) -> None:
    """What must hold of the tables, as the heads of their classes say."""
    in_flight, asked, subscriptions, tasks = shared.in_flight, shared.asked, shared.subscriptions, shared.tasks
    of_clients = {request.number: request for client in shared.clients for request in in_flight.of(client).values()}
    left = {number: one for number, one in in_flight.requests.items() if one.client == SERVER}
    assert {**of_clients, **left} == in_flight.requests
    assert all(one.client == client for client, of in in_flight.by_client.items() for one in of.values())
    assert all(key == one.key for of in in_flight.by_client.values() for key, one in of.items())
    assert in_flight.by_client.keys() <= shared.clients.keys()
    numbers = (*in_flight.requests, *in_flight.cancelled, *in_flight.own)
    assert len(set(numbers)) == len(numbers)
    assert max(numbers, default=0) <= in_flight.last_number
    assert asked.counts == Counter(one.client for one in asked.by_key.values())
    assert asked.counts.keys() <= shared.clients.keys()
    pairs = {(client, uri) for client, uris in subscriptions.by_client.items() for uri in uris}
    assert pairs == {(client, uri) for uri, clients in subscriptions.by_uri.items() for client in clients}
    assert all((*subscriptions.by_client.values(), *subscriptions.by_uri.values()))
    assert subscriptions.by_client.keys() <= shared.clients.keys()
    assert shared.levels.wanted.keys() <= shared.clients.keys()
    owners = {id(owner): owner for owner in (*tasks.named.values(), *(one.owner for one in shared.clients.values()))}
    for owner in owners.values():
        assert owner.clients == sum(one.owner is owner for one in shared.clients.values())
        assert all(tasks.owners_of.get(task_id, owner) in (owner, None) for task_id in owner.tasks)
    for task_id, whose in tasks.owners_of.items():
        assert whose is None or task_id in whose.tasks
    assert all(owner.clients or owner.tasks for owner in tasks.named.values())


class Sharing(RuleBasedStateMachine):
    @initialize(one_owner=st.booleans(), clients=st.sampled_from([1, 2, 2]))
    def begin(self, one_owner: bool, clients: int) -> None:
        self.one_owner = one_owner
        self.mux = Multiplexer(one_owner, lambda _sentence: None)
        self.work: list[Work] = []  # in flight or cancelled, the oldest first
        self.marked: dict[str, Work] = {}
        self.clients: list[int] = []
        self.attached = 0
        self.subscribed: dict[int, set[str]] = {}
        self.asked: dict[str, int] = {}
        self.got: dict[int, list[bytes]] = {}
        self.expected: dict[int, list[bytes]] = {}
        self.marks = 0
        for _ in range(clients):
            self.come()

    # --- both sides ---

    def deliver(self, sends: list[Send]) -> list[dict[str, Any]]:
        """Hand over all lines; return those for the server, which notes the requests among them."""
        for_server: list[dict[str, Any]] = []
        for send in sends:
            assert send.line.endswith(b"\n")
            if send.to == SERVER:
                message = json.loads(send.line)
                for_server.append(message)
                mark = message.get("params", {}).get("mark") if "method" in message else None
                if mark is not None and "id" in message:
                    work = self.marked[mark]
                    work.number = message["id"]
                    work.sent_token = message["params"].get("_meta", {}).get("progressToken")
                    assert bool(work.token) == (work.sent_token is not None)
                    self.work.append(work)
            else:
                self.got[send.to].append(send.line)
        return for_server

    def say(self, client: int, line: str) -> list[dict[str, Any]]:
        return self.deliver(self.mux.from_client(client, line.encode() + b"\n"))

    def write(self, line: str) -> list[dict[str, Any]]:
        """The server writes a line."""
        return self.deliver(self.mux.from_server(line.encode() + b"\n"))

    def expect(self, client: int, line: str) -> None:
        if client in self.clients:
            self.expected[client].append(line.encode() + b"\n")

    def a_client(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(self.clients))

    def settle(self, work: Work) -> None:
        self.work.remove(work)

    def in_flight(self, client: int) -> list[Work]:
        return [one for one in self.work if one.client == client and not one.cancelled]

    @rule(data=st.data(), what=st.sampled_from([*"cccccsxxlfffuv"]))
    def a_client_speaks(self, data: st.DataObject, what: str) -> None:
        """Few rules: Hypothesis leaves out some of many, and without calls little happens."""
        if not self.clients or (what == "x" and len(self.clients) < 4 and data.draw(st.booleans())):
            self.come()
        else:
            steps = {
                "c": self.call,
                "x": self.cancel,
                "f": self.forge,
                "s": self.subscribe,
                "u": self.unsubscribe,
                "l": self.leave,
                "v": self.answer_the_server,
            }
            steps["c" if what == "v" and not self.asked else what](data)

    @rule(data=st.data(), what=st.sampled_from([*"rrrppolliuc"]))
    def the_server_speaks(self, data: st.DataObject, what: str) -> None:
        steps = {
            "r": self.answer,
            "p": self.progress,
            "o": self.answer_what_nobody_asked,
            "l": self.log,
            "i": self.ask,
            "u": self.update,
            "c": self.change_list,
        }
        has_what_it_needs = {"r": bool(self.work), "p": any(work.token for work in self.work)}.get(what, True)
        steps[what if has_what_it_needs else "l"](data)

    # --- clients come, speak and leave ---

    def come(self) -> None:
        client = self.mux.attach()
        self.attached += 1
        self.clients.append(client)
        self.got[client], self.expected[client], self.subscribed[client] = [], [], set()
        params = f'{{"protocolVersion":"{VERSION}","capabilities":{{"roots":{{}}}}}}'
        sent = self.say(client, f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}')
        assert len(sent) == (self.attached == 1)
        result = f'"result":{{"protocolVersion":"{VERSION}", "capabilities":{{}}}}}}'
        for message in sent:
            self.write(f'{{"jsonrpc":"2.0","id":{message["id"]},{result}')
        self.expect(client, f'{{"jsonrpc":"2.0","id":1,{result}')
        sent = self.say(client, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
        assert len(sent) == (self.attached == 1)

    def call(self, data: st.DataObject) -> None:
        raw_id = data.draw(IDS)
        token = data.draw(TOKENS)
        gap = data.draw(GAPS)
        client = self.a_client(data)
        self.marks += 1
        mark, work = f"m{self.marks}", Work(client, raw_id, token)
        self.marked[mark] = work
        meta = f',"_meta":{{"x":1,"progressToken":{token}}}' if token else ""
        params = f'{{"name":"t","mark":"{mark}","id":{raw_id}{meta}}}'
        line = f'{{"jsonrpc":"2.0",{gap}"id":{raw_id},"method":"tools/call","params":{params}}}'
        plain = {one.raw_id.strip('"').removesuffix(".0") for one in self.in_flight(client)}
        sent = self.say(client, line)
        if raw_id.strip('"').removesuffix(".0") in plain:
            assert not sent
            refused = json.loads(self.got[client].pop())
            assert "in flight" in refused["error"]["message"]
            return
        ours = {"jsonrpc": "2.0", "id": work.number, "method": "tools/call", "params": json.loads(params)}
        if token:
            ours["params"]["_meta"]["progressToken"] = work.sent_token
        assert sent == [ours]

    def cancel(self, data: st.DataObject) -> None:
        """A client cancels one of its requests, or names a number that may be another's."""
        name = data.draw(st.integers(0, 40).map(str))
        client = self.a_client(data)
        mine = self.in_flight(client)
        name = data.draw(st.sampled_from([*(one.raw_id for one in mine), name]))
        line = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{name}}}}}'
        sent = self.say(client, line)
        for message in sent:
            (work,) = (one for one in self.work if one.number == message["params"]["requestId"])
            assert work in mine
            work.cancelled = True
        assert len(sent) == any(one.raw_id == name for one in mine) or name.isdigit()

    def forge(self, data: st.DataObject) -> None:
        """A client tries to reach what is another's. The server gets nothing of it."""
        number = data.draw(st.integers(0, 40))
        form = data.draw(st.integers(int(self.is_one_persons), 6))
        client = self.a_client(data)
        lines = (
            '{"jsonrpc":"2.0","id":99,"method":"tasks/get","params":{"taskId":"T"}}',  # nobody's: of one, it passes
            f'{{"jsonrpc":"2.0","id":{number},"result":{{"forged":true}}}}',
            f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number}}}}}',
            f'{{"jsonrpc":"2.0","id":99,"id":{number},"method":"x"}}',
            f'{{"jsonrpc":"2.0","id":99,"method":"x","params":{{"_meta":{{"progressToken":1,"ProgressToken":{number}}}}}}}',
            f'{{"jsonrpc":"2.0","method":"notifications/x","params":{{"_meta":{{"progressToken":{number}}}}}}}',
            f'[{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}}}}}]',
        )
        before = len(self.got[client])
        assert self.say(client, lines[form]) == []
        del self.got[client][before:]  # the refusal

    def subscribe(self, data: st.DataObject) -> None:
        uri = data.draw(URIS)
        client = self.a_client(data)
        (sent,) = self.say(
            client, f'{{"jsonrpc":"2.0","id":50,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}'
        )
        self.subscribed[client].add(uri)
        self.write(f'{{"jsonrpc":"2.0","id":{sent["id"]},"result":{{}}}}')
        self.expect(client, '{"jsonrpc":"2.0","id":50,"result":{}}')

    def unsubscribe(self, data: st.DataObject) -> None:
        uri = data.draw(URIS)
        client = self.a_client(data)
        sent = self.say(
            client, f'{{"jsonrpc":"2.0","id":50,"method":"resources/unsubscribe","params":{{"uri":"{uri}"}}}}'
        )
        self.subscribed[client].discard(uri)
        assert len(sent) == (not any(uri in uris for uris in self.subscribed.values()))
        for message in sent:
            self.write(f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{{}}}}')
        self.expect(client, '{"jsonrpc":"2.0","id":50,"result":{}}')

    def leave(self, data: st.DataObject) -> None:
        client = self.a_client(data)
        self.clients.remove(client)
        sent = self.deliver(self.mux.detach(client))
        cancelled = [
            message["params"]["requestId"] for message in sent if message.get("method", "").endswith("cancelled")
        ]
        assert cancelled == [work.number for work in self.in_flight(client)]
        for work in self.work:
            work.cancelled |= work.client == client
        given_up = self.subscribed.pop(client) - {uri for uris in self.subscribed.values() for uri in uris}
        ended = {message["params"]["uri"] for message in sent if message.get("method") == "resources/unsubscribe"}
        assert ended == given_up
        for message in sent:
            if message.get("method") == "resources/unsubscribe":
                assert self.write(f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{{}}}}') == []
        answered = {message["id"] for message in sent if "error" in message}
        assert answered == {name for name, whose in self.asked.items() if whose == client}
        self.asked = {name: whose for name, whose in self.asked.items() if whose != client}

    # --- the server speaks ---

    def answer(self, data: st.DataObject) -> None:
        gap = data.draw(GAPS)
        is_error = data.draw(st.booleans())
        work = data.draw(st.sampled_from(self.work))
        self.marks += 1
        what = '"error":{"code":1,"message":"x"}' if is_error else f'"result":{{"id":{work.number},"n":{self.marks}}}'
        self.settle(work)
        assert self.write(f'{{"jsonrpc":"2.0",{gap}"id":{work.number},{what}}}') == []
        self.expect(work.client, f'{{"jsonrpc":"2.0",{gap}"id":{work.raw_id},{what}}}')

    def progress(self, data: st.DataObject) -> None:
        work = data.draw(st.sampled_from([work for work in self.work if work.token]))
        self.marks += 1
        template = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s}}'
        self.write(template % (self.marks, work.sent_token))
        self.expect(work.client, template % (self.marks, work.token))

    def answer_what_nobody_asked(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, 40))
        if all(work.number != number for work in self.work):
            assert self.write(f'{{"jsonrpc":"2.0","id":{number},"result":{{"secret":1}}}}') == []

    def whose(self) -> int:
        """The client for which a message is that names no request; SERVER: unknown."""
        if not self.is_one_persons:
            return SERVER
        flying = [work.client for work in self.work if not work.cancelled]
        return flying[-1] if flying else self.clients[0] if len(self.clients) == 1 else SERVER

    @property
    def is_one_persons(self) -> bool:
        return self.one_owner or self.attached == 1

    def log(self, _data: st.DataObject) -> None:
        self.marks += 1
        line = f'{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{self.marks}}}}}'
        self.write(line)
        for client in self.clients if self.is_one_persons else []:
            self.expect(client, line)

    def ask(self, _data: st.DataObject) -> None:
        self.marks += 1
        line = f'{{"jsonrpc":"2.0","id":"q{self.marks}","method":"roots/list"}}'
        whose = self.whose()
        sent = self.write(line)
        if whose == SERVER:
            assert [message["error"]["code"] for message in sent] == [-32603]
        else:
            assert not sent
            self.expect(whose, line)
            self.asked[f"q{self.marks}"] = whose

    def answer_the_server(self, data: st.DataObject) -> None:
        name, client = data.draw(st.sampled_from(sorted(self.asked))), self.a_client(data)
        sent = self.say(client, f'{{"jsonrpc":"2.0","id":"{name}","result":{{"roots":[]}}}}')
        assert len(sent) == (self.asked[name] == client)
        if sent:
            del self.asked[name]

    def update(self, data: st.DataObject) -> None:
        uri = data.draw(URIS)
        line = f'{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}'
        self.write(line)
        for client, uris in self.subscribed.items():
            if uri in uris:
                self.expect(client, line)

    def change_list(self, _data: st.DataObject) -> None:
        line = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        self.write(line)
        for client in self.clients:
            self.expect(client, line)

    @invariant()
    def the_tables_are_consistent(self) -> None:
        if hasattr(self, "mux"):
            check_tables(self.mux._shared)

    @invariant()
    def each_client_has_what_its_own_server_would_have_written(self) -> None:
        for client in getattr(self, "clients", ()):
            assert self.got[client] == self.expected[client]
            assert self.mux.awaits_response(client) == bool(self.in_flight(client))


TestSharing = Sharing.TestCase
TestSharing.settings = examples(100, steps=40)


# --- calls that stand alone: the fast path leaves the same as the usual way ---

MARKS: Final = st.sampled_from(["", '"id":5', '"id":1}', ',\\"id\\":1}', "\\u0022id\\u0022:1"])


class CallsAlone(RuleBasedStateMachine):
    """The same is said to two multiplexers, and to one of them on the fast path wherever it takes that."""

    def __init__(self) -> None:
        super().__init__()
        self.fast, self.usual = (Multiplexer(True, lambda _sentence: None) for _ in range(2))
        self.open: dict[int, bytes] = {}  # clients with a call in flight, and its number
        self.gone: list[bytes] = []

    @rule(
        raw_id=st.sampled_from([b"1", b"1", b"2", b"40", b'"a"', b"1.0", b"123456789012345"]),
        inside=MARKS,
        meta=st.sampled_from(["", ',"progressToken":1', ',"x":{"id":1}', ',"ProgressToken":1', ',"a":1,"a":2']),
        order=st.permutations(['"jsonrpc":"2.0"', "I", '"method":"tools/call"', "P"]),
        gap=st.sampled_from(["", "", "", " "]),
    )
    def call(self, raw_id: bytes, inside: str, meta: str, order: list[str], gap: str) -> None:
        own = f'"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"{meta}}}'
        params = f'"params":{{"name":"t","arguments":{{"a":"{inside.replace(chr(34), "")}"}},{own}}}'
        members = [{"I": f'"id":{raw_id.decode()}', "P": params}.get(one, one) for one in order]
        line = ("{" + f",{gap}".join(members) + "}").encode()
        client = self.usual.attach("one")
        sends = self.usual.from_client(client, line + b"\n")
        read = fast_scan.read_call(line, "2026-07-28")
        alone = read is not None and lone_version(bytes(read.meta)) == "2026-07-28"
        passed = self.fast.pass_call("one", read) if read is not None and alone else None
        if passed is None:
            assert self.fast.attach("one") == client
            assert self.fast.from_client(client, line + b"\n") == sends
        else:
            assert passed[0] == client
            assert [Send(SERVER, passed[1].line + b"\n")] == sends
            assert fast_scan.read_call(passed[1].line, "2026-07-28") == passed[1]
        numbers = [json.loads(send.line)["id"] for send in sends if send.to == SERVER]
        if numbers:
            self.open[client] = b"%d" % numbers[0]
        else:
            assert self.fast.detach(client) == self.usual.detach(client)

    @rule(
        data=st.data(),
        form=st.sampled_from([
            b'{"jsonrpc":"2.0","id":N,"result":{"id":N}}',
            b'{"result":{"id":N},"jsonrpc":"2.0","id":N}',
            b'{"jsonrpc":"2.0","result":{"id":1},"id":N}',
            b'{"id":N,"jsonrpc":"2.0","result":{}}',
            b'{"jsonrpc":"2.0", "id":N,"result":{}}',
            b'{"jsonrpc":"2.0","id":N,"result":{},"result":1}',
            b'{"jsonrpc":"2.0","id":1,"id":N,"result":{}}',
            b'{"jsonrpc":"2.0","id":N,"error":{"code":-32602,"message":"m"}}',
            b'{"jsonrpc":"2.0","id":N,"result":{"resultType":"task","task":{"taskId":"T"},"taskId":"T"}}',
            b'{"jsonrpc":"2.0","id":N,"result":{"a":{"elicitationId":"E"}}}',
            b'{"jsonrpc":"2.0","id":N,"result":{"a":"\xff\xc3\xa9"}}',
        ]),
    )  # fmt: skip
    def answer(self, data: st.DataObject, form: bytes) -> None:
        numbers = [*self.open.values(), *self.gone, b"999"]
        number = data.draw(st.sampled_from(numbers))
        line = form.replace(b"N", number)
        sends = self.usual.from_server(line + b"\n")
        ended = [client for client, one in self.open.items() if one == number and any(s.to == client for s in sends)]
        left = [self.usual.detach(client) for client in ended]
        for client in ended:
            del self.open[client]
        passed = self.fast.pass_response(number, line)
        if passed is not None:
            assert [Send(passed[0], passed[1] + b"\n")] == sends
            assert left == [[]]
            return
        assert self.fast.from_server(line + b"\n") == sends
        assert [self.fast.detach(client) for client in ended] == left

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.open:
            client = data.draw(st.sampled_from(sorted(self.open)))
            self.gone.append(self.open.pop(client))
            assert self.fast.detach(client) == self.usual.detach(client)

    @rule()
    def take_back(self) -> None:
        """A call that must go the usual way after all: only its number is gone."""
        read = fast_scan.read_call(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}', "2026-07-28"
        )
        assert read is not None
        for mux in (self.fast, self.usual):
            before = self.tables(mux)
            passed = mux.pass_call("one", read)
            assert passed is not None
            mux.take_back(passed[1].id)
            assert self.tables(mux) == before

    @rule(number=st.integers(0, 3), what=st.sampled_from(["ping", "ping", "roots/list", "notifications/message"]))
    def the_server_speaks(self, number: int, what: str) -> None:
        raw_id = "" if what.startswith("not") else f'"id":"s{number}",'
        line = f'{{"jsonrpc":"2.0",{raw_id}"method":"{what}","params":{{"elicitationId":"E","mode":"url"}}}}\n'.encode()
        assert self.fast.from_server(line) == self.usual.from_server(line)

    @staticmethod
    def tables(mux: Multiplexer) -> str:
        """All that it knows, with the calls that are on the fast path, apart from the numbers it has given."""
        mux = copy.deepcopy(mux)
        mux._note_passed()
        mux._shared.in_flight.last_number = mux._shared.last_client = 0
        return repr(mux._shared)

    @invariant()
    def both_know_the_same(self) -> None:
        assert self.tables(self.fast) == self.tables(self.usual)
        assert numbers_given(self.fast) == numbers_given(self.usual)

    @invariant()
    def the_tables_are_consistent(self) -> None:
        check_tables(self.usual._shared)


def numbers_given(mux: Multiplexer) -> tuple[int, int]:
    return mux._shared.last_client, mux._shared.in_flight.last_number


TestCallsAlone = CallsAlone.TestCase
TestCallsAlone.settings = examples(70, steps=25)


# --- a client that writes what some reader could take for another's ---

KEYS: Final = ("id", "method", "params", "result", "_meta", "progressToken", "requestId", "taskId", "uri")
VICTIMS: Final = 5  # requests in flight of another client: they have the numbers from 1


@st.composite
def keys(draw: st.DrawFn) -> str:
    """A key that is read, or one that some reader takes for it, as JSON."""
    key = draw(st.sampled_from(KEYS))
    spell = draw(st.integers(0, 6))
    if spell == 0:
        return f'"{key.upper()}"'
    if spell == 1:
        return f'"{key}\\u0000x"'
    if spell == 2:
        return f'"\\u{ord(key[0]):04x}{key[1:]}"'
    if spell == 3:
        return '"' + key.replace("s", "\u017f").replace("k", "\u212a") + '"'
    return f'"{key}"'


ATOMS: Final = st.sampled_from(
    ["1", "2", '"3"', "4.0", "50e-1", "77", '"T"', '"\\u0054"', "null", '"tools/call"', '"notifications/cancelled"']
)
BLANKS: Final = st.sampled_from(["", "", "", " ", "\r", "\t", "\x0b", "\u2028", "\ufeff"])


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(BLANKS, keys(), BLANKS, values, BLANKS).map(
        lambda one: f"{one[0]}{one[1]}:{one[2]}{one[3]}{one[4]}"
    )
    return st.lists(member, max_size=4).map(lambda members: "{" + ",".join(members) + "}")


VALUES: Final = st.recursive(ATOMS, objects, max_leaves=6)


@st.composite
def hostile_lines(draw: st.DrawFn) -> bytes:
    method = draw(
        st.sampled_from(["tools/call", "notifications/cancelled", "notifications/progress", "tasks/get", "x"])
    )
    params = draw(objects(VALUES))
    parts = ['"jsonrpc":"2.0"', f'"id":{draw(ATOMS)}', f'"method":"{method}"', f'"params":{params}']
    parts = [part for part in parts if draw(st.integers(0, 4))]
    parts += draw(st.lists(st.tuples(keys(), VALUES).map(lambda one: f"{one[0]}:{one[1]}"), max_size=2))
    return ("{" + (draw(BLANKS) + ",").join(parts) + "}\n").encode()


def names_seen(data: bytes) -> list[tuple[str, str]]:
    """All that some reader could take for the name of something in these bytes."""
    found: list[tuple[str, str]] = []
    for _, message in readers.objects_seen(data):
        found += [("id", readers.plain_id(value)) for value in readers.members(message, "id")]
        for params in readers.members(message, "params"):
            if not isinstance(params, readers.Pairs):
                continue
            for key in ("requestid", "progresstoken", "taskid"):
                found += [(key, readers.plain_id(value)) for value in readers.members(params, key)]
            for meta in readers.members(params, "_meta"):
                if isinstance(meta, readers.Pairs):
                    found += [
                        ("progresstoken", readers.plain_id(one)) for one in readers.members(meta, "progresstoken")
                    ]
    return found


@examples(200)
@given(line=hostile_lines())
def test_no_reader_finds_the_name_of_what_is_another_clients_in_what_the_server_gets(line: bytes) -> None:
    mux = Multiplexer(True, lambda _sentence: None)
    victim, attacker = mux.attach(), mux.attach()
    for number in range(1, VICTIMS + 1):
        call = b'{"jsonrpc":"2.0","id":%d,"method":"t","params":{"task":{},"_meta":{"progressToken":1}}}\n' % number
        mux.from_client(victim, call)
    mux.from_server(b'{"jsonrpc":"2.0","id":5,"result":{"task":{"taskId":"T"}}}\n')
    mux.from_server(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')  # the victim's to answer
    sends = mux.from_client(attacker, line)
    for send in sends:
        if send.to == SERVER:
            seen = names_seen(send.line)
            assert not [name for name in seen if name[1] == "T" or name[1] in map(str, range(1, VICTIMS + 1))]
        else:
            assert send.to == attacker
