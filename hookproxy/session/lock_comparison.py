"""Compares what a server says of itself with `hookproxy.lock`, and edits what the agent gets of it.

What must hold, unless `on_change` is "warn":

- No entry of a list reaches the agent that is not as it is pinned, and no instructions that are not.
- A difference is reported to people once, with all that they need, and stands in the audit.
- What is withheld now, and why, is in `withheld`; `lock_guard` refuses requests by it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..authorization import addresses
from ..hooks import bounded_cache
from ..jsonrpc import raw_json
from ..lock import hidden_text
from ..lock.changes import Change, What
from ..lock.compare import Compared, Names, Pinned, unreadable
from ..lock.description import NAMES, Description, Entry, Identity, Kind, entry, identity
from ..model.errors import UserError, printable
from ..model.hooks import Session
from ..model.lock_settings import LockSettings
from ..protocol import feedback, list_edits, response_edits
from ..protocol.calls import SERVER_INFO_KEY
from ..protocol.response_edits import error_response
from . import beside_lists, lock_updates
from .list_pages import ListPages, Pages
from .lock_command import lock_command
from .lock_reports import LockReports
from .shared_lock import shared_lock

KINDS: Final = {b'"%b"' % kind.list_method.encode(): kind for kind in Kind}
"""The kinds of entries, by the method that lists them, as compact JSON."""

_LOGIN: Final = b"`hookproxy login "
"""In an error of ours: a login at the server helps."""
"""The command by which people see and accept what differs."""

_LONGEST_CHECKED: Final = 16 * 1024  # bytes of an entry that is remembered: ten times what most have
_LONGEST_KEPT: Final = 64 * 1024  # bytes of a withheld entry that can be accepted on a console
_MOST_WITHHELD: Final = 1000  # entries: as many as servers have; then the whole server is refused
_LONGEST_WHY: Final = 1000  # characters of an error of our own, with what it quotes
_MOST_SENTENCES: Final = 4  # a model needs to know that something differs; people get all of it
_WITHHELD: Final = ", so it is withheld"
_NO_LIST: Final = "the server says something else of itself than is recorded in hookproxy.lock"


class Withheld(Struct, frozen=True):
    """An entry that differs from what is pinned, or hides something."""

    raw: bytes
    """As it came; empty: it is too long to be kept."""
    changes: tuple[Change, ...]
    hides: tuple[str, ...] = ()
    """What its texts hide, if that is why, each as a line for people."""

    def why(self) -> str:
        """Why, without any word that the server chose."""
        sentences = dict.fromkeys(change.sentence() for change in self.changes)
        return " and ".join([*sentences][:_MOST_SENTENCES]) or "its texts hide something from whoever reads them"


class _Read(Struct, frozen=True):
    """One item of a page."""

    raw: bytes
    compared: Compared
    hides: tuple[str, ...]


class LockComparison:
    """The comparison in one session. `report` reports one line to people, once; `record` writes one to the audit.

    It is long because lists, instructions and errors are withheld for one set of reasons, which refusals and people
    need whole: what is withheld, and what was reported, changes with each of them.
    """

    def __init__(
        self,
        settings: LockSettings,
        session: Session,
        report: Callable[[str], None],
        record: Callable[[str], None],
        agent_capabilities: Callable[[], bytes] = lambda: b"{}",
    ) -> None:
        self.settings = settings
        self.server = session.server
        self._session = session
        self.shared = shared_lock(settings)
        self.denied = ""
        """Why the whole server is refused, without a full stop; empty: it is not."""
        self.withheld: dict[tuple[Kind, str], Withheld] = {}
        """What the last lists had and the agent does not get, by kind and name."""
        self.instructions: tuple[Change, ...] = ()
        """What differs in the instructions."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when something is withheld."""
        self.reports = LockReports(self.server, report, record)
        """What people and the audit get."""
        self.reports.on_too_many = self._refuse_as_too_much
        self._agent_capabilities = agent_capabilities
        self._pages = ListPages()
        self.identity = Identity()
        """What the server said of itself last, beside its lists."""
        self._version = self.shared.version
        self._checked: dict[bytes, tuple[str, ...]] = {}

    @property
    def pinned(self) -> Pinned | None:
        """What is pinned of the server; None: it is not in the file."""
        return self.shared.servers.get(self.server)

    @property
    def warns_only(self) -> bool:
        """Differences are reported, and withhold nothing."""
        return self.settings.on_change == "warn"

    def is_open(self, kind: Kind) -> bool:
        """True if nothing of this kind is pinned yet, and the first use pins it."""
        pinned = self.pinned
        if pinned is None or not self.settings.create:
            return pinned is None
        if self._has_any(kind):
            return False
        capability = "resources" if kind is Kind.TEMPLATE else f"{kind.value}s"
        return bytes(pinned.description.identity.capabilities) == b"{}" or capability in raw_json.fields(
            pinned.description.identity.capabilities
        )

    def _has_any(self, kind: Kind) -> bool:
        """Whether something of this kind is pinned."""
        return self.pinned is not None and any(its_kind is kind for its_kind, _ in self.pinned.description.entries)

    # --- what the server says of itself ---

    def edited(self, method: bytes, line: bytes, cursor: bytes, *, is_ours: bool = False) -> bytes:
        """The response to a request of this method as the agent gets it. Raises Unreadable, DuplicateKeys.

        `cursor` is that of the request, as spelled; `is_ours`: we have written an error in the response's place.
        """
        kind = KINDS.get(method)
        if self.pinned is None and not self.settings.create and self.settings.hidden_text == "warn":
            self.reports.report(
                f"{self.server} is not in {self.settings.file}, so nothing is compared: {self._command()} records it"
            )
            return line
        line = self.edited_identity(line) if kind is None else self.edited_list(kind, line, cursor)
        return line if self.pinned is None or self.denied else self._without_other_texts(kind, line, is_ours=is_ours)

    def _without_other_texts(self, kind: Kind | None, line: bytes, *, is_ours: bool) -> bytes:
        """The response without what is around what is pinned."""
        plain, what = beside_lists.without_other_texts(kind, line, self._why_ours(line) if is_ours else "")
        if what and is_ours:
            error = response_edits.member_or_empty(line, "error")
            why = raw_json.text(response_edits.member_or_empty(error, "message")) or ""
            self.reports.report(printable(f"{self.server}: {why[:_LONGEST_WHY]}"))
        elif what:
            where = "what it says of itself" if kind is None else f"its list of {kind.value}s"
            withheld = "" if self.warns_only else _WITHHELD
            # agents that know both eras ask at each start whether the server does: the error in place of it is no news
            expected = (kind is None or not self._has_any(kind)) and "error" in raw_json.members(line)
            self.reports.note(f"{where}: {what} cannot be pinned{withheld}", only_audit=expected)
        return line if self.warns_only else plain

    def _why_ours(self, line: bytes) -> str:
        """What the agent reads of an error of our own: with no word of the server's, which the error may quote."""
        url = addresses.shown(self._session.url) if self._session.url else ""
        if not url or _LOGIN not in line:
            return beside_lists.OF_OWN_ERROR
        return feedback.login_needed(url, shlex.join(("hookproxy", "login", url)))

    def edited_identity(self, line: bytes) -> bytes:
        """The response to `initialize` or `server/discover` as the agent gets it. Raises Unreadable, DuplicateKeys."""
        span = raw_json.members(line).get("result")
        if span is None:
            return line
        result = line[slice(*span)]
        spans = raw_json.members(result)
        list_edits.check_lookalikes(spans, "instructions", "serverInfo")
        members = {name: msgspec.Raw(result[slice(*place)]) for name, place in spans.items()}
        raw_meta = bytes(members.get("_meta", b"{}"))
        meta = raw_json.fields(raw_meta) if raw_meta[:1] == b"{" else {}
        came = self.identity = identity(members, meta.get(SERVER_INFO_KEY))
        pinned = self.pinned
        if pinned is None or (self.settings.create and pinned.description.identity == Identity()):
            if self.settings.create:
                self._pin(None, Description(came, {}))
            changes: tuple[Change, ...] = ()
        else:
            changes = pinned.compare_identity(came)
        differs = [change.member for change in changes if not _is_notice(change)]
        self.instructions = _of_instructions(changes)
        hides = self.settings.hidden_text == "withhold" and self._hidden_in_instructions(came.instructions)
        self._note_changes(changes)
        if self.instructions:
            self.on_change()
        if differs and self.settings.on_change == "deny":
            return self._deny(line)
        new = result
        if hides or ("instructions" in differs and not self.warns_only):
            new = raw_json.without_member(new, "instructions")
        if "details" in differs and not self.warns_only:
            new = _without_details(new)
        return line if new is result else raw_json.splice(line, [(span, new)])

    def _hidden_in_instructions(self, instructions: str) -> bool:
        """Report what the instructions hide. True: they are withheld because of it."""
        hidden = hidden_text.in_instructions(instructions, self.foreign())
        for text in hidden:
            self.reports.note(f"{text.line()}{_WITHHELD}")
        return bool(hidden)

    def foreign(self) -> dict[str, str]:
        """The tools of other servers in the file, without those whose names it has itself."""
        pinned = self.pinned
        own = {name for _, name in pinned.description.entries} if pinned is not None else set[str]()
        return {tool: server for tool, server in self.shared.tools.items() if server != self.server and tool not in own}

    def edited_list(self, kind: Kind, line: bytes, cursor: bytes) -> bytes:
        """A page of a list as the agent gets it; `cursor` is that of its request. Raises Unreadable, DuplicateKeys."""
        if self.denied:
            return self._deny(line)
        line = self._edited_names(line)
        items, next_cursor = list_edits.items_of(line, kind.list_member)
        if items is None:
            return line
        pages = self._pages.before(kind, cursor)
        out = self._settle(kind, self._compare(kind, items, pages))
        if next_cursor:
            self._pages.keep(kind, next_cursor, pages)
            if self.settings.create and self.is_open(kind):
                self.reports.report(f"{self.server}: its list of {kind.value}s is recorded once its last page has come")
        elif pages.whole:
            self._list_is_complete(kind, pages)
        if self.settings.on_change == "deny" and out:
            return self._deny(line)
        if not out:
            return line
        numbers = iter(range(len(items)))
        return list_edits.edited(line, kind.list_member, lambda item: None if next(numbers) in out else item)

    def _edited_names(self, line: bytes) -> bytes:
        """A page of a list in which the server names itself, as in the stateless era it may do in each result."""
        if b"modelcontextprotocol" not in line and not (b"\\" in line and b"\\u00" in line):  # only an escape hides it
            return line
        pinned, span = self.pinned, raw_json.members(line).get("result")
        if pinned is None or span is None or pinned.description.identity == Identity():
            return line
        result = line[slice(*span)]
        info = raw_json.fields(raw_json.fields(result).get("_meta", b"{}")).get(SERVER_INFO_KEY)
        if info is None:
            return line
        before = pinned.description.identity
        same = {"instructions": before.instructions, "capabilities": before.capabilities}
        changes = pinned.compare_identity(replace(identity({}, info), **same))
        self._note_changes(changes)
        if self.warns_only or all(map(_is_notice, changes)):
            return line
        if self.settings.on_change == "deny":
            return self._deny(line)
        return raw_json.splice(line, [(span, _without_details(result))])

    def _compare(self, kind: Kind, items: Sequence[bytes], pages: Pages) -> list[_Read]:
        """Compare the items of a page. `pages` has the pages before it, and gets this one."""
        pinned = None if self.is_open(kind) else self.pinned
        names = Names()
        for name in pages.names:
            names.note(name)
        read, looks = [], self.settings.hidden_text == "withhold"
        for raw in items:
            compared = self._first_seen(kind, raw, pages) if pinned is None else pinned.compare_entry(kind, raw, names)
            if compared.name:
                pages.note(compared.name)
            read.append(_Read(raw, compared, self._hides(kind, raw) if looks else ()))
        return read

    def _first_seen(self, kind: Kind, raw: bytes, pages: Pages) -> Compared:
        """An entry of a kind of which nothing is pinned."""
        try:
            came = entry(kind, raw)
        except raw_json.AMBIGUOUS as problem:
            return unreadable(kind, problem)
        if self.settings.create and not (self.settings.hidden_text == "withhold" and self._hides(kind, raw)):
            pages.note_first(kind, came)
        return Compared(came.name, ())

    def _settle(self, kind: Kind, read: Sequence[_Read]) -> set[int]:
        """Note what of a page is withheld from now on, and what no longer. Returns the places of what is left out."""
        differing: dict[str, Withheld] = {}
        for item in read:
            if item.compared.changes or item.hides:
                raw = item.raw if len(item.raw) <= _LONGEST_KEPT else b""
                differing.setdefault(item.compared.name, Withheld(raw, item.compared.changes, item.hides))
                self._note_changes(item.compared.changes)
                for hidden in item.hides:
                    self.reports.note(hidden)
        if self.withheld:
            for item in read:
                self.withheld.pop((kind, item.compared.name), None)
        if not differing:
            return set()
        self.withheld |= {(kind, name): withheld for name, withheld in differing.items() if name}
        if len(self.withheld) > _MOST_WITHHELD and not self.warns_only:
            self.denied = _NO_LIST
        self.on_change()
        left_out = {name for name, withheld in differing.items() if withheld.hides or not self.warns_only}
        return {number for number, item in enumerate(read) if item.compared.name in left_out}

    def _hides(self, kind: Kind, raw: bytes) -> tuple[str, ...]:
        """What the texts of an entry hide, if that withholds it; an entry that was read is not read again."""
        known = self._checked.get(raw)
        if known is None:
            came = entry_or_none(kind, raw)
            hidden = () if came is None else hidden_text.in_entry(came, self.foreign())
            known = tuple(f"{text.line()}{_WITHHELD}" for text in hidden)
            if len(raw) <= _LONGEST_CHECKED:
                bounded_cache.keep(self._checked, raw, known)
        return known

    def _list_is_complete(self, kind: Kind, pages: Pages) -> None:
        if self.settings.create and self.is_open(kind):
            if pages.first or self.pinned is None:
                self._pin(kind, Description(self.identity, pages.first))
        elif self.pinned is not None and not self.is_open(kind):
            self._note_gone(self.pinned.removed([(kind, name) for name in pages.names], (kind,)))

    def _note_gone(self, removed: Sequence[Change]) -> None:
        """Report what is not listed: once for all sessions with this file, because some agents are shown less."""
        new = [change for change in removed if (self.server, change.name) not in self.shared.gone]
        if not new:
            return
        self.shared.gone |= {(self.server, change.name) for change in new}
        self._note_changes(new)
        if lacks := _not_declared(self._agent_capabilities()):
            self.reports.report(
                f"{self.server}: it may show that only to agents with other capabilities than this one, {lacks}"
            )

    def _pin(self, kind: Kind | None, came: Description) -> None:
        """Pin what the server says at its first use: a complete list of a kind, or (None) its identity."""
        what = "what it says of itself" if kind is None else f"the list of its {kind.value}s"
        try:
            now = lock_updates.update(
                self.shared.path, self.server, lambda before: lock_updates.first_use(before, kind, came)
            )
            self.reports.note(f"{what} is recorded in {self.shared.path}, because lock.create is true")
        except UserError as problem:
            pinned = self.pinned
            now = lock_updates.first_use(None if pinned is None else pinned.description, kind, came)
            self.reports.note(f"{what} cannot be recorded: {problem}")
        self.shared.pin(self.server, now)

    def _deny(self, line: bytes) -> bytes:
        """An error in place of the response, because the whole server is refused."""
        self._refuse_server()
        raw_id = line[slice(*raw_json.members(line)["id"])]
        return error_response(raw_id, feedback.REFUSED, feedback.changed(self.denied, self.remedy))

    def _refuse_server(self) -> None:
        """Refuse every further request."""
        if not self.denied:
            self.denied = _NO_LIST
            self.reports.note(
                f'the server is refused, because it is not as {self.settings.file} has it (on_change = "deny")'
            )

    def _note_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.reports.note(f"{change.line()}{'' if _is_notice(change) or self.warns_only else _WITHHELD}")
        if any(not _is_notice(change) for change in changes):
            accept = self._command("--accept", "NAME")
            self.reports.report(f"{self.remedy} shows what {self.server} has changed, and {accept} accepts it")

    @property
    def remedy(self) -> str:
        """The command that shows a person what has changed, and how to accept it."""
        return self._command("--diff")

    def _command(self, *options: str) -> str:
        return lock_command(self._session, *options, file=self.settings.file, config=self.settings.config)

    def _refuse_as_too_much(self) -> None:
        """Refuse the server if something of it is withheld, because what is remembered of that has no room."""
        if not self.warns_only and not self.denied:
            self.denied = _NO_LIST
            self.reports.report_always("the server is refused: it has said too much that differs")

    def why_withheld(self, kind: Kind, name: str) -> str:
        """Why something of this name is withheld, without a full stop; empty: it is not."""
        if self._version != self.shared.version:
            self.compare_again()
        withheld = self.withheld.get((kind, name))
        if withheld is not None and (not self.warns_only or withheld.hides):
            return withheld.why()
        pinned = self.pinned
        if self.warns_only or pinned is None or pinned.has(kind, name) or self.is_open(kind):
            return ""
        return f"the {kind.value} is not in hookproxy.lock"

    def compare_again(self, former: LockComparison | None = None) -> None:
        """Compare what is withheld with what is pinned now; `former` is the comparison before a reload."""
        self._version = self.shared.version
        for (kind, name), withheld in [*(former or self).withheld.items()]:
            if withheld.raw:
                self._settle(kind, self._compare(kind, [withheld.raw], Pages()))
            elif not self.is_open(kind):  # nobody knows what it is: until the next list it stays as it was
                self.withheld[kind, name] = withheld
        if former is not None:
            identity_differs = self._compare_identity_again(former)
            if self.settings.on_change == "deny" and (self.withheld or identity_differs):
                self._refuse_server()

    def _compare_identity_again(self, former: LockComparison) -> bool:
        """Compare what the server said of itself before a reload, if it has said it. False: nothing is withheld."""
        self.identity, pinned = former.identity, self.pinned
        changes: tuple[Change, ...] = ()
        if pinned is not None and self.identity != Identity():
            changes = pinned.compare_identity(self.identity)
            self.instructions = _of_instructions(changes)
            self._note_changes(changes)
        return any(not _is_notice(change) for change in changes)


def _is_notice(change: Change) -> bool:
    """A difference that is reported, and withholds nothing: of the names, version or capabilities, and what is gone."""
    if change.subject == "server":
        return change.member not in ("instructions", "details") or change.what is What.REMOVED
    return change.what is What.REMOVED and not change.member


def _not_declared(capabilities: bytes) -> str:
    """Which capabilities `hookproxy lock` declares and this agent does not, for people; empty: none."""
    try:
        declared = raw_json.fields(capabilities)
        elicitation = raw_json.fields(declared.get("elicitation", b"{}"))
    except ValueError:
        declared = elicitation = {}
    lacks = [name for name in ("elicitation", "roots", "sampling") if name not in declared]
    lacks += ["elicitation by URL"] * ("elicitation" in declared and "url" not in elicitation)
    return f"which declares no {', '.join(lacks)}" if lacks else ""


def _of_instructions(changes: Sequence[Change]) -> tuple[Change, ...]:
    """What differs in the instructions so that they are withheld."""
    return tuple(change for change in changes if change.member == "instructions" and not _is_notice(change))


def _without_details(result: bytes) -> bytes:
    """The result without what `serverInfo` has beside the server's name, version and title, in both eras."""
    for parent, name in (("", "serverInfo"), ("_meta", SERVER_INFO_KEY)):
        holder = response_edits.member_or_empty(result, parent) if parent else result
        info = response_edits.member_or_empty(holder, name)
        if not info:
            continue
        for member in raw_json.members(info).keys() - NAMES:
            info = raw_json.without_member(info, member)
        holder = raw_json.with_member(holder, name, info)
        result = raw_json.with_member(result, parent, holder) if parent else holder
    return result


def entry_or_none(kind: Kind, raw: bytes) -> Entry | None:
    """The entry; None: it cannot be read."""
    try:
        return entry(kind, raw)
    except raw_json.AMBIGUOUS:
        return None
