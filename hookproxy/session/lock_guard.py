"""Refuses requests about what is withheld, because it is not as `hookproxy.lock` has it.

What must hold, unless `on_change` is "warn": a tool or a prompt of which the last list had another form is not called,
and none that is not pinned. A resource is not read if only a withheld template may stand for it. No text that the
server has chosen since it was pinned is in what the model reads of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..lock.description import Kind
from ..model.decision import RefusalCause, Refuse
from ..protocol import feedback, list_edits
from ..protocol.method_forms import LISTEN
from .lock_comparison import LockComparison
from .uri_templates import may_expand_to, stands_for

if TYPE_CHECKING:
    import msgspec

_READS: Final = (b'"resources/read"', b'"resources/subscribe"')


class LockGuard:
    """What is refused in one session."""

    def __init__(self, comparison: LockComparison) -> None:
        self._comparison = comparison

    def withholds(self, tool: str) -> bool:
        """Whether calls of this tool are refused."""
        return bool(self._comparison.denied) or bool(self._comparison.why_withheld(Kind.TOOL, tool))

    def refuse(self, tool: str) -> Refuse | None:
        """The refusal of a call of this tool; None: the lock has nothing against it."""
        why = self._comparison.denied or self._comparison.why_withheld(Kind.TOOL, tool)
        if not why:
            return None
        return Refuse("hookproxy.lock", why, cause=RefusalCause.CHANGED, remedy=self._comparison.remedy)

    def why_withheld(self, method: bytes, params: bytes) -> str:
        """Why a request other than a tool call is refused, in sentences for the model; empty: it is not."""
        if self._comparison.denied:
            why, passes = self._comparison.denied, method in (b'"ping"', b'"initialize"')
            return "" if passes else feedback.changed(why, self._comparison.remedy)
        if method == LISTEN or method in _READS or method in (b'"prompts/get"', b'"completion/complete"'):
            try:
                why = self._why_request(method, params)
            except raw_json.AMBIGUOUS as problem:
                return f"It cannot be compared with hookproxy.lock: {problem}."
            return feedback.changed(why, self._comparison.remedy) if why else ""
        return ""

    def _why_request(self, method: bytes, params: bytes) -> str:
        members = _clean_members(params, "name", "uri", "ref", "notifications")
        if method == LISTEN:
            members = _clean_members(_given(members, "notifications"), "resourceSubscriptions")
            raw = _given(members, "resourceSubscriptions")
            uris = raw_json.items(raw) if raw else []
            return next(filter(None, (self._why_uri(raw_json.text(uri) or "") for uri in uris)), "")
        if method == b'"completion/complete"':
            members = _clean_members(bytes(members.get("ref", b"{}")), "name", "uri")
            template = raw_json.text(members.get("uri", b"")) or ""
            if template and (why := self._comparison.why_withheld(Kind.TEMPLATE, template)):
                return why
        if method in _READS:
            return self._why_uri(raw_json.text(members.get("uri", b"")) or "")
        name = raw_json.text(members.get("name", b""))
        return self._comparison.why_withheld(Kind.PROMPT, name) if name is not None else ""

    def _why_uri(self, uri: str) -> str:
        """Why a resource is not read: a withheld template may stand for it, and no other one."""
        first = ""
        pinned = self._comparison.pinned
        for (kind, template), withheld in self._comparison.withheld.items():
            if kind is Kind.TEMPLATE and not self._comparison.warns_only and may_expand_to(template, uri):
                first = first or withheld.why()
        if first and pinned is not None:
            for kind, template in pinned.description.entries:
                if (
                    kind is Kind.TEMPLATE
                    and (kind, template) not in self._comparison.withheld
                    and stands_for(template, uri)
                ):
                    return ""
        return first


def _given(members: dict[str, msgspec.Raw], name: str) -> bytes:
    """A member; empty: it is not given, or null."""
    raw = bytes(members.get(name, b"null"))
    return b"" if raw == b"null" else raw


def _clean_members(raw: bytes, *meant: str) -> dict[str, msgspec.Raw]:
    """The members of an object. Raises Unreadable, DuplicateKeys, also for a key that is taken for one of these."""
    if not raw:
        return {}
    list_edits.check_lookalikes(raw_json.members(raw), *meant)
    return raw_json.fields(raw)
