"""Compares what a server says of itself with `hookproxy.lock`, and keeps from the agent what differs.

There is one for each session. What must hold, unless `on_change` is "warn":

- No entry of a list reaches the agent that is not as it is pinned, and no instructions that are not.
- A tool or a prompt of which the last list had another form is not called; nor one that is not pinned at all.
- No text of the server that is not pinned is in what the model reads of it. People read it in full.
- A difference is reported once, and stands in the audit.

`SharedLock` is what all sessions with one file know of it: a server that is pinned at its first use, or accepted, is
pinned for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..hooks import bounded_cache
from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc import raw_json
from ..lock import hidden_text, lock_file
from ..lock.changes import Change, What
from ..lock.compare import Compared, Names, Pinned
from ..lock.description import Description, Entry, Identity, Kind, entry, identity
from ..model.decision import RefusalCause, Refuse
from ..model.errors import UserError, printable
from ..model.lock_settings import LockSettings
from ..protocol import feedback, list_edits
from ..protocol.calls import SERVER_INFO_KEY
from ..protocol.response_edits import json_string
from . import lock_updates
from .uri_templates import may_expand_to

KINDS: Final = {b'"%b"' % kind.list_method.encode(): kind for kind in Kind}
"""The kinds of entries, by the method that lists them, as compact JSON."""

_LONGEST_CHECKED: Final = 16 * 1024  # bytes of an entry that is remembered: ten times what most have
_MOST_CHAINS: Final = 64  # lists that are read in pages at the same time: agents read one after another
_WITHHELD: Final = ", so it is withheld"
_NO_LIST: Final = "the server says something else of itself than is recorded in hookproxy.lock"
_READS: Final = (b'"resources/read"', b'"resources/subscribe"')


class SharedLock:
    """The servers of one file."""

    def __init__(self, settings: LockSettings) -> None:
        self.path = settings.file
        lock = lock_file.parse(settings.data, settings.file) if settings.data else {}
        self.servers = {name: Pinned(description) for name, description in lock.items()}
        self.version = 0
        """Rises whenever something else is pinned."""
        self.asked: set[tuple[str, Kind | None, str, bytes]] = set()
        """What a person is asked about now, by server, kind, name and text: once, not in each session."""
        self.tools = hidden_text.tool_names(lock)
        """The tools of all servers by name, with their server, as far as they are no usual words."""

    def pin(self, server: str, description: Description) -> None:
        """Note that a server is pinned so."""
        self.servers[server] = Pinned(description)
        self.version += 1


@lru_cache(maxsize=64)  # a gateway may have a table for each server
def shared_lock(settings: LockSettings) -> SharedLock:
    """What is known of the file with this content: the same object for all sessions. Raises ConfigError."""
    return SharedLock(settings)


class Withheld(Struct, frozen=True):
    """An entry that the agent does not get."""

    raw: bytes
    changes: tuple[Change, ...]
    hides: tuple[str, ...] = ()
    """What its texts hide, if that is why, each as a line for people."""

    def why(self) -> str:
        """Why, without any word that the server chose."""
        sentences = dict.fromkeys(change.sentence() for change in self.changes)
        return " and ".join([*sentences][:_MOST_SENTENCES]) or "its texts hide something from whoever reads them"


class Question(Struct, frozen=True):
    """A difference that a person may accept."""

    kind: Kind | None
    """None: the instructions."""
    name: str
    raw: bytes
    """What the server says now, as JSON."""
    why: str
    recorded: bytes
    """What is recorded, as JSON; empty: nothing."""

    @property
    def subject(self) -> str:
        """What it is about, for people."""
        return "instructions" if self.kind is None else printable(f"{self.kind.value} {self.name}")


class _Read(Struct, frozen=True):
    """One item of a page."""

    raw: bytes
    compared: Compared
    hides: tuple[str, ...]


_MOST_SENTENCES: Final = 4  # a model needs to know that something differs; people get all of it


class LockGuard:
    """The comparison in one session. `report` tells people one line, once; `record` writes a sentence to the audit."""

    def __init__(
        self,
        settings: LockSettings,
        server: str,
        report: Callable[[str], None],
        record: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.server = server
        self.shared = shared_lock(settings)
        self.denied = ""
        """Why the whole server is refused, without a full stop; empty: it is not."""
        self.withheld: dict[tuple[Kind, str], Withheld] = {}
        """What the last lists had and the agent does not get, by kind and name."""
        self.instructions: tuple[Change, ...] = ()
        """What differs in the instructions."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when something is withheld."""
        self._report = report
        self._record = record
        self._chains: dict[tuple[Kind, bytes], list[str]] = {}  # the names on earlier pages, by the next cursor
        self._first: dict[Kind, dict[tuple[Kind, str], Entry]] = {}  # what the first use of a kind pins
        self._told: dict[str, None] = {}
        self._identity = Identity()
        self._version = self.shared.version
        self._checked: dict[bytes, tuple[str, ...]] = {}

    @property
    def pinned(self) -> Pinned | None:
        """What is pinned of the server; None: it is not in the file."""
        return self.shared.servers.get(self.server)

    @property
    def accept_command(self) -> str:
        """The command by which people see and accept what differs."""
        return "hookproxy lock"

    @property
    def _warns_only(self) -> bool:
        return self.settings.on_change == "warn"

    def _is_open(self, kind: Kind) -> bool:
        """True if nothing of this kind is pinned yet, and the first use pins it."""
        pinned = self.pinned
        if pinned is None or not self.settings.create:
            return pinned is None
        if any(its_kind is kind for its_kind, _ in pinned.description.entries):
            return False
        capability = "resources" if kind is Kind.TEMPLATE else f"{kind.value}s"
        return bytes(pinned.description.identity.capabilities) == b"{}" or capability in raw_json.fields(
            pinned.description.identity.capabilities
        )

    # --- requests of the agent ---

    def withholds(self, tool: str) -> bool:
        """Whether calls of this tool are refused."""
        return bool(self.denied) or bool(self._why(Kind.TOOL, tool))

    def refuse(self, tool: str) -> Refuse | None:
        """The refusal of a call of this tool; None: the lock has nothing against it."""
        why = self.denied or self._why(Kind.TOOL, tool)
        if not why:
            return None
        return Refuse("hookproxy.lock", why, cause=RefusalCause.CHANGED, remedy=self.accept_command)

    def why_withheld(self, method: bytes, params: bytes) -> str:
        """Why a request other than a tool call is refused, in sentences for the model; empty: it is not."""
        if self.denied:
            return "" if method in (b'"ping"', b'"initialize"') else feedback.changed(self.denied, self.accept_command)
        if method in _READS or method in (b'"prompts/get"', b'"completion/complete"'):
            try:
                why = self._why_request(method, params)
            except raw_json.AMBIGUOUS as problem:
                return f"It cannot be compared with hookproxy.lock: {problem}."
            return feedback.changed(why, self.accept_command) if why else ""
        return ""

    def _why_request(self, method: bytes, params: bytes) -> str:
        members = _clean_members(params, "name", "uri", "ref")
        if method == b'"completion/complete"':
            members = _clean_members(bytes(members.get("ref", b"{}")), "name", "uri")
            template = raw_json.text(members.get("uri", b"")) or ""
            if template:
                return self._why(Kind.TEMPLATE, template)
        if method in _READS:
            return self._why_uri(raw_json.text(members.get("uri", b"")) or "")
        name = raw_json.text(members.get("name", b""))
        return self._why(Kind.PROMPT, name) if name is not None else ""

    def _why_uri(self, uri: str) -> str:
        """Why a resource is not read: a withheld template may stand for it, and no other one."""
        first = ""
        pinned = self.pinned
        for (kind, template), withheld in self.withheld.items():
            if kind is Kind.TEMPLATE and not self._warns_only and may_expand_to(template, uri):
                first = first or withheld.why()
        if first and pinned is not None:
            for kind, template in pinned.description.entries:
                if kind is Kind.TEMPLATE and (kind, template) not in self.withheld and may_expand_to(template, uri):
                    return ""
        return first

    def _why(self, kind: Kind, name: str) -> str:
        """Why something of this name is withheld, without a full stop; empty: it is not."""
        if self._version != self.shared.version:
            self._version = self.shared.version
            self.compare_again(self)
        withheld = self.withheld.get((kind, name))
        if withheld is not None and (not self._warns_only or withheld.hides):
            return withheld.why()
        pinned = self.pinned
        if self._warns_only or pinned is None or pinned.has(kind, name) or self._is_open(kind):
            return ""
        return f"the {kind.value} is not in hookproxy.lock"

    # --- what the server says of itself ---

    def edited(self, method: bytes, line: bytes, cursor: bytes) -> bytes:
        """The response to a request of this method as the agent gets it. Raises Unreadable, DuplicateKeys.

        `cursor` is that of the request, as spelled.
        """
        kind = KINDS.get(method)
        return self.edited_identity(line) if kind is None else self.edited_list(kind, line, cursor)

    def edited_identity(self, line: bytes) -> bytes:
        """The response to `initialize` or `server/discover` as the agent gets it. Raises Unreadable, DuplicateKeys."""
        span = raw_json.members(line).get("result")
        if span is None:
            return line
        result = line[slice(*span)]
        spans = raw_json.members(result)
        list_edits.check_lookalikes(spans, "instructions")
        members = {name: msgspec.Raw(result[slice(*place)]) for name, place in spans.items()}
        meta = raw_json.fields(members["_meta"]) if "_meta" in members else {}
        came = self._identity = identity(members, meta.get(SERVER_INFO_KEY))
        pinned = self.pinned
        if pinned is None or (self.settings.create and pinned.description.identity == Identity()):
            if self.settings.create:
                self._pin(None, Description(came, {}))
            changes: tuple[Change, ...] = ()
            if pinned is None and not self.settings.create:
                self._tell(
                    f"{self.server} is not in {self.settings.file}, so nothing is compared: hookproxy lock records it"
                )
        else:
            changes = pinned.compare_identity(came)
        self.instructions = tuple(change for change in changes if not _is_notice(change))
        hides = self.settings.hidden_text == "withhold" and self._hidden_in_instructions(came.instructions)
        self._note_changes(changes)
        if self.instructions:
            self.on_change()
        if not (hides or (self.instructions and not self._warns_only)) or "instructions" not in spans:
            return line
        if self.settings.on_change == "deny" and self.instructions:
            return self._deny(line)
        return raw_json.splice(line, [(span, raw_json.without_member(result, "instructions"))])

    def _hidden_in_instructions(self, instructions: str) -> bool:
        """Tell what the instructions hide. True: they are withheld therefore."""
        hidden = hidden_text.in_instructions(instructions, self._foreign())
        for one in hidden:
            self._note(f"{one.line()}{_WITHHELD}")
        return bool(hidden)

    def _foreign(self) -> dict[str, str]:
        """The tools of other servers in the file."""
        return {tool: server for tool, server in self.shared.tools.items() if server != self.server}

    def edited_list(self, kind: Kind, line: bytes, cursor: bytes) -> bytes:
        """A page of a list as the agent gets it; `cursor` is that of its request. Raises Unreadable, DuplicateKeys."""
        if self.denied:
            return self._deny(line)
        items, next_cursor = list_edits.items_of(line, kind.list_member)
        if items is None:
            return line
        names = [*self._chains.get((kind, _cursor_text(cursor)), ())] if cursor else []
        if not cursor:
            self._first.pop(kind, None)
        out = self._settle(kind, self._compare(kind, items, names))
        if next_cursor:
            self._keep_chain(kind, _cursor_text(next_cursor), names)
        else:
            self._list_is_complete(kind, names)
        if self.settings.on_change == "deny" and out:
            return self._deny(line)
        if not out:
            return line
        numbers = iter(range(len(items)))
        return list_edits.edited(line, kind.list_member, lambda item: None if next(numbers) in out else item)

    def _compare(self, kind: Kind, items: Sequence[bytes], earlier: list[str]) -> list[_Read]:
        """Compare the items of a page. `earlier` are the names on the pages before it, and gets those of this one."""
        pinned = None if self._is_open(kind) else self.pinned
        names = Names()
        for name in earlier:
            names.note(name)
        read = []
        for raw in items:
            compared = self._first_seen(kind, raw) if pinned is None else pinned.compare_entry(kind, raw, names)
            if compared.name:
                earlier.append(compared.name)
            read.append(_Read(raw, compared, self._hides(kind, raw)))
        return read

    def _first_seen(self, kind: Kind, raw: bytes) -> Compared:
        """An entry of a kind of which nothing is pinned."""
        try:
            came = entry(kind, raw)
        except raw_json.AMBIGUOUS as problem:
            return Compared("", (Change(What.UNREADABLE, kind.value, "", after=str(problem)),))
        if self.settings.create and not self._hides(kind, raw):
            self._first.setdefault(kind, {})[kind, came.name] = came
        return Compared(came.name, ())

    def _settle(self, kind: Kind, read: Sequence[_Read]) -> set[int]:
        """Note what of a page is withheld from now on, and what no longer. Returns the places of what is left out."""
        differing: dict[str, Withheld] = {}
        for one in read:
            if one.compared.changes or one.hides:
                differing.setdefault(one.compared.name, Withheld(one.raw, one.compared.changes, one.hides))
                self._note_changes(one.compared.changes)
                for hidden in one.hides:
                    self._note(hidden)
        if self.withheld:
            for one in read:
                self.withheld.pop((kind, one.compared.name), None)
        if not differing:
            return set()
        self.withheld |= {(kind, name): withheld for name, withheld in differing.items() if name}
        self.on_change()
        left_out = {name for name, one in differing.items() if one.hides or not self._warns_only}
        return {number for number, one in enumerate(read) if one.compared.name in left_out}

    def _hides(self, kind: Kind, raw: bytes) -> tuple[str, ...]:
        """What the texts of an entry hide, if it is withheld therefore; one that was read is not read again."""
        if self.settings.hidden_text != "withhold":
            return ()
        known = self._checked.get(raw)
        if known is None:
            came = _entry_or_none(kind, raw)
            hidden = () if came is None else hidden_text.in_entry(came, self._foreign())
            known = tuple(f"{one.line()}{_WITHHELD}" for one in hidden)
            if len(raw) <= _LONGEST_CHECKED:
                bounded_cache.keep(self._checked, raw, known)
        return known

    def _keep_chain(self, kind: Kind, cursor: bytes, names: list[str]) -> None:
        if len(self._chains) >= _MOST_CHAINS:
            del self._chains[next(iter(self._chains))]
        self._chains[kind, cursor] = names

    def _list_is_complete(self, kind: Kind, names: list[str]) -> None:
        if self.settings.create and self._is_open(kind):
            first = self._first.pop(kind, {})
            if first or self.pinned is None:
                self._pin(kind, Description(self._identity, first))
        elif self.pinned is not None and not self._is_open(kind):
            self._note_changes(self.pinned.removed([(kind, name) for name in names], (kind,)))

    def _pin(self, kind: Kind | None, came: Description) -> None:
        """Pin what the server says at its first use: a complete list of a kind, or (None) its identity."""
        what = "what it says of itself" if kind is None else f"the list of its {kind.value}s"
        try:
            now = lock_updates.update(
                self.shared.path, self.server, lambda before: lock_updates.first_use(before, kind, came)
            )
            self._note(f"{what} is recorded in {self.shared.path}, because lock.create is true")
        except UserError as problem:
            pinned = self.pinned
            now = lock_updates.first_use(None if pinned is None else pinned.description, kind, came)
            self._note(f"{what} cannot be recorded: {problem}")
        self.shared.pin(self.server, now)

    def _deny(self, line: bytes) -> bytes:
        """An error in place of the response, because the whole server is refused."""
        if not self.denied:
            self.denied = _NO_LIST
            self._note(f'the server is refused, because it is not as {self.settings.file} has it (on_change = "deny")')
        raw_id = line[slice(*raw_json.members(line)["id"])]
        return feedback.refused_message(
            raw_id, feedback.changed(self.denied, self.accept_command), unreadable=False, code=feedback.REFUSED
        )

    def _note_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._note(f"{change.line()}{'' if _is_notice(change) or self._warns_only else _WITHHELD}")
        if any(not _is_notice(change) for change in changes):
            self._tell(
                f"hookproxy lock --diff shows what {self.server} has changed, and hookproxy lock --accept accepts it"
            )

    def _note(self, text: str) -> None:
        """Tell people one line, and write it to the audit; once each."""
        line = printable(f"{self.server}: {text}")
        if self._tell(line):
            self._record(f"hookproxy.lock: {line}")

    def _tell(self, line: str) -> bool:
        """Tell people one line, unless it was told before."""
        if line in self._told:
            return False
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[line] = None
        self._report(line)
        return True

    # --- what people accept ---

    def compare_again(self, former: LockGuard) -> None:
        """Compare what was withheld before a reload: what is not pinned now either stays withheld."""
        for (kind, _), withheld in [*former.withheld.items()]:
            self._settle(kind, self._compare(kind, [withheld.raw], []))

    def accept(self, question: Question, by: str) -> None:
        """Record what a person has accepted: for all sessions from now on."""
        kind, name = question.kind, question.name
        came = None if kind is None else _entry_or_none(kind, question.raw)

        def accepted(before: Description | None) -> Description:
            before = before or Description(Identity(), {})
            if came is None or kind is None:
                said = raw_json.text(question.raw) or ""
                return Description(replace(before.identity, instructions=said), before.entries)
            return Description(before.identity, {**before.entries, (kind, name): came})

        try:
            now = lock_updates.update(self.shared.path, self.server, accepted)
        except UserError as problem:
            self._note(f"what {by} has accepted cannot be recorded: {problem}")
            return
        self.shared.pin(self.server, now)
        self._record(f"hookproxy.lock: {self.server}: {question.subject}: accepted by {by}")

    def refused(self, question: Question, by: str) -> None:
        """A person has refused it: it stays withheld."""
        self._record(f"hookproxy.lock: {self.server}: {question.subject}: refused by {by}")

    def questions(self) -> list[Question]:
        """What a person may accept now, each thing once in all sessions."""
        pinned = self.pinned
        if pinned is None or self.settings.on_change != "ask":
            return []
        texts = [
            Question(kind, name, withheld.raw, withheld.why(), b"" if recorded is None else recorded.text)
            for (kind, name), withheld in self.withheld.items()
            if not withheld.hides and _entry_or_none(kind, withheld.raw) is not None
            for recorded in [pinned.description.entries.get((kind, name))]
        ]
        if self.instructions:
            why = " and ".join(change.sentence() for change in self.instructions)
            said = json_string(self._identity.instructions)
            texts.append(Question(None, "", said, why, json_string(pinned.description.identity.instructions)))
        return texts


def guard_of(
    settings: LockSettings, context: SessionContext, session_events: SessionEvents, former: LockGuard | None
) -> LockGuard:
    """The comparison in a session; `former` is that before a reload: what it withholds is compared anew."""
    if former is not None and former.settings == settings:
        return former
    guard = LockGuard(settings, context.session.server, context.report, session_events.note_in_audit)
    if former is not None:
        guard.compare_again(former)
    return guard


_MOST_TOLD: Final = 10_000  # lines: a server that changes for ever must not fill memory


def _is_notice(change: Change) -> bool:
    """A difference that is told, and withholds nothing: of the name, version or capabilities, and what is gone."""
    if change.subject == "server":
        return change.member != "instructions" or change.what is What.REMOVED
    return change.what is What.REMOVED and not change.member


def _clean_members(raw: bytes, *meant: str) -> dict[str, msgspec.Raw]:
    """The members of an object. Raises Unreadable, DuplicateKeys, also for a key that is taken for one of these."""
    if not raw:
        return {}
    list_edits.check_lookalikes(raw_json.members(raw), *meant)
    return raw_json.fields(raw)


def _entry_or_none(kind: Kind, raw: bytes) -> Entry | None:
    try:
        return entry(kind, raw)
    except raw_json.AMBIGUOUS:
        return None


def _cursor_text(raw: bytes) -> bytes:
    """A cursor in one spelling."""
    text = raw_json.text(raw)
    return raw if text is None else text.encode()
