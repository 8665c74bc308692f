"""What kind of thing a line of the log is about: a code and a level, for programs that read the log as JSON.

The codes are stable, the sentences are not: whoever writes another sentence corrects its beginning here. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

OTHER: Final = "other"
"""The code of everything that has no other one."""


class Kind(Struct, frozen=True):
    """A kind of line."""

    code: str
    level: str
    """`error`: something does not work that should; `warning`: somebody should look at it; `info`."""
    user: str = ""
    """The user whom the line itself names, if its session does not."""


_LONGEST: Final = 1000  # characters in which the beginning of a sentence is looked for
_NAMED: Final = r"(?:[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}: )?"  # the name of a server before the sentence
_LINES: Final = (
    ("audit.not_written", "error", r"the audit (?:log|\S+) cannot be written|a call of .* because its audit line"),
    ("audit.written_again", "info", r"the audit log is written again"),
    ("audit.not_signed", "error", r"the audit cannot be signed"),
    ("audit.cut", "error", r"\S+: (?:checkpoint \d+, which was signed|its copy of the last signed checkpoint)"),
    ("audit.not_compared", "warning", r"the audit \S+ is not compared"),
    ("audit.not_sent", "warning", r"the audit .* cannot be sent to|(?:\S+: )?the collector has refused"),
    ("audit.not_sent", "warning", r"\S+: a rotated file was removed"),
    ("audit.sent_again", "info", r"the audit is sent to"),
    ("administration.refused", "warning", r"administration: (?P<user>.+?) \(uid \d+\) was refused"),
    ("administration", "info", r"administration: (?:(?P<user>\S+)(?: \(uid:?\d+\))? (?:ends|has) )?"),
    ("policy.in_force", "info", r"policy [0-9a-f]{12} is in force"),
    ("policy.refused", "error", r"the policy stays "),
    ("policy.changed_on_disk", "warning", r"\S+ has changed since policy "),
    ("policy.update", "warning", r"policy: "),
    ("policy.key_changed", "info", r"[\w.\[\]-]+: (?:new|removed|changed|in another order|added .*|removed .*)\Z"),
    ("policy.file_changed", "info", r"(?:changed|new|no longer used): "),
    ("gateway.listens", "info", r"listens at "),
    ("gateway.serves", "info", r"serves "),
    ("gateway.ends", "info", r"is ending: "),
    ("gateway.defect", "error", r"Traceback \(most recent call last\)|a request could not be handled"),
    ("gateway.defect", "error", r"the session has failed|a connection has failed"),
    ("store.away", "error", r"the store at .* cannot be reached"),
    ("store.forgets", "warning", r"the store at .* forgets"),
    ("store.back", "info", r"the store at .* responds"),
    ("http.refused", "warning", r"\S+: refused with \d{3}"),
    ("connection.not_accepted", "error", r"a connection cannot be accepted"),
    ("connection.accepted_again", "info", r"connections are accepted again"),
    ("message.refused", "warning", r"refused a message of the agent"),
    ("message.dropped", "warning", r"dropped "),
    ("message.withheld", "warning", r"(?:(?P<user>\S+): )?a message of \d+ bytes is withheld"),
    ("message.withheld", "warning", r"a (?:notification|response) about a task is withheld|the response to a call of "),
    ("call.refused", "warning", r"refused a call: |a call is denied because"),
    ("call.ended_early", "warning", r"a call of .* has ended early"),
    ("server.output", "info", _NAMED + r"the server (?:says: |printed a line)"),
    ("server.ended", "warning", r"the server \S+ has ended by itself|The MCP server has ended"),
    ("server.away", "error", _NAMED + r"cannot connect to "),
    ("server.back", "info", _NAMED + r"\S+ can be reached again"),
    ("session.ended", "info", r"the session ends|an operator of the gateway has ended the session"),
    ("hook.failed", "warning", r"[A-Z]\w+ hooks? "),
    ("approval.failed", "warning", r"the prompter |an approval for the session"),
    ("console.refused", "warning", r"a console (?:of user \d+ )?was turned away|a console cannot connect"),
    ("accounts.away", "error", r"accounts cannot be looked up"),
    ("accounts.back", "info", r"accounts can be looked up again"),
    ("issuer.away", "error", r"the keys of \S+ cannot be fetched"),
)  # fmt: skip
"""Codes, levels, and how the sentences begin. The first one that fits counts."""

_KINDS: Final = tuple((code, level, re.compile(begins)) for code, level, begins in _LINES)


def kind_of(text: str) -> Kind:
    """The kind of a line, by its first sentence."""
    for code, level, begins in _KINDS:
        if found := begins.match(text[:_LONGEST]):
            return Kind(code, level, found.groupdict().get("user") or "")
    return Kind(OTHER, "info")
