"""The differences between two descriptions of one thing, member by member, and how each member differs.

How it works: both descriptions are walked side by side down to the first values that are not the same JSON. A
difference in a schema that lets the tool accept more is `WIDENED`, and a hint that now promises harmlessness is
`READ_ONLY`: both may make the tool more dangerous. What must hold: no difference is left out. Where a member or an
entry has too many of them, they are reported as one change of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct

from .names import shown


class What(Enum):
    """How something differs; the value says it of a member."""

    ADDED = "was added"
    REMOVED = "was removed"
    CHANGED = "changed"
    WIDENED = "was widened"
    READ_ONLY = "turned to a promise of harmlessness"
    REFERENCE = "refers to something else"
    RENAMED = "is another one under a new name"
    LOOK_ALIKE = "is named like another one"
    UNSEEN = "has a character in its name that is not seen"
    TWICE = "is listed twice"
    UNREADABLE = "cannot be read in one way only"


class Change(Struct, frozen=True):
    """One difference. Its texts are the server's: `before` and `after` are for people, and never for the model."""

    what: What
    subject: str
    """What it is about: "tool", "prompt", "resource template", or "server"."""
    name: str
    """The name of what is listed, as it came; a server has none."""
    member: str = ""
    """The member of it, from a list of known ones; "other member" for one that MCP does not have; empty: all of it."""
    path: str = ""
    """The place within the tool, as `inputSchema.properties.bcc`: the server has named its parts."""
    before: str = ""
    after: str = ""
    like: str = ""
    """The pinned name that it was known by, or is taken for."""

    def sentence(self) -> str:
        """For the model and for lines of an audit: nothing in it was chosen by the server since it was pinned."""
        if self.subject == "server":
            happened = self.what.value.replace("was ", "were ") if self.member.endswith("s") else self.what.value
            return f"the server's {self.member} {happened}"
        if self.member:
            return f"{self.member} of the {self.subject} {self.what.value}"
        if self.what is What.ADDED:
            return f"the {self.subject} is not in the lock"
        return f"the {self.subject} {self.what.value}"

    def line(self) -> str:
        """For people: with names and the place, each on one line and without what a terminal would act on."""
        where = shown(shortened(self.path or self.member))
        who = f"{self.subject} {shown(shortened(self.name))}".strip() if self.name else self.subject
        like = f" ({shown(shortened(self.like))})" if self.like else ""
        return f"{who}: {where} {self.what.value}{like}" if where else f"{who} {self.what.value}{like}"


LONGEST_SHOWN: Final = 200  # characters of a name in a line: MCP's names have at most 128


def shortened(text: str) -> str:
    """The text, or its beginning with a sign that more was there."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


_MEMBERS: Final = frozenset(
    [
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "icons",
        "execution",
        "_meta",
        "arguments",
        "uriTemplate",
        "mimeType",
    ]
)
"""What MCP has in tools, prompts and templates."""
_SCHEMAS: Final = frozenset(("inputSchema", "outputSchema"))
_DEFINITIONS: Final = frozenset(("$defs", "definitions"))
_REFERENCES: Final = frozenset(("$ref", "$dynamicRef", "$id", "$anchor", "$dynamicAnchor", "$schema"))
_NARROWING: Final = frozenset(
    [
        "additionalProperties",
        "unevaluatedProperties",
        "enum",
        "const",
        "pattern",
        "format",
        "maxLength",
        "minLength",
        "maximum",
        "minimum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "not",
        "maxProperties",
        "minProperties",
        "propertyNames",
        "required",
        "dependentRequired",
        "type",
    ]
)
"""Keywords without which a schema accepts more."""
_OPENING: Final = frozenset(("additionalProperties", "unevaluatedProperties", "default"))
_HARMLESS: Final = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False, "idempotentHint": True}
_NOTHING: Final = object()
_DEEPEST: Final = 64  # levels of a schema that are distinguished; what differs below is reported as a whole
_MOST_OF_MEMBER: Final = 20  # changes of one member, and
_MOST_CHANGES: Final = 100  # of one entry, that are reported one by one


def member_changes(
    subject: str, name: str, before: Mapping[str, object], after: Mapping[str, object]
) -> tuple[Change, ...]:
    """What differs between the members of two entries of this name."""
    changes: list[Change] = []
    for member, old, new in _differing(before, after):
        known = member if member in _MEMBERS else "other member"
        differences = [*islice(_walk((member,), old, new, 0), _MOST_OF_MEMBER + 1)]
        if len(differences) > _MOST_OF_MEMBER:  # none is left out, so they are reported as one
            differences = [((member,), _kind_of_change((member,), old, new), old, new)]
        changes += (
            Change(what, subject, name, known, ".".join(path), _text(old_part), _text(new_part))
            for path, what, old_part, new_part in differences
        )
        if len(changes) > _MOST_CHANGES:
            return (Change(What.CHANGED, subject, name, before=_text(before), after=_text(after)),)
    return tuple(changes)


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    for key in (*before, *(key for key in after if key not in before)):
        old, new = before.get(key, _NOTHING), after.get(key, _NOTHING)
        if _differs(old, new):
            yield key, old, new


def _differs(old: object, new: object) -> bool:
    """True unless they are the same JSON: in Python, `True == 1` and `1 == 1.0`."""
    if old is new:
        return False
    if old is _NOTHING or new is _NOTHING:
        return True
    return _encoded(old) != _encoded(new)


Difference = tuple[tuple[str, ...], What, object, object]


def _walk(path: tuple[str, ...], old: object, new: object, depth: int) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict) and depth < _DEEPEST:
        for key, old_value, new_value in _differing(old, new):
            yield from _walk((*path, key), old_value, new_value, depth + 1)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and depth < _DEEPEST:
        for at, (old_value, new_value) in enumerate(zip(old, new, strict=True)):
            if _differs(old_value, new_value):
                yield from _walk((*path, str(at)), old_value, new_value, depth + 1)
    else:
        yield path, _kind_of_change(path, old, new), old, new


def _kind_of_change(path: Sequence[str], old: object, new: object) -> What:
    last = path[-1]
    if path[0] == "annotations" and last in _HARMLESS and new is _HARMLESS[last]:
        return What.READ_ONLY
    if path[0] in _SCHEMAS:
        if last in _REFERENCES or (len(path) > 2 and not _DEFINITIONS.isdisjoint(path)):
            return What.REFERENCE
        if _widens(path, old, new):
            return What.WIDENED
    return What.ADDED if old is _NOTHING else What.REMOVED if new is _NOTHING else What.CHANGED


def _widens(path: Sequence[str], old: object, new: object) -> bool:
    last, parent = path[-1], path[-2] if len(path) > 1 else ""
    if parent in ("properties", "patternProperties"):
        return old is _NOTHING
    if last in _OPENING and new is not _NOTHING:
        return new is not False
    if last in ("anyOf", "oneOf") and isinstance(new, list):
        return not isinstance(old, list) or len(new) > len(old)
    if isinstance(old, list) and isinstance(new, list):
        return len(new) < len(old) if last == "required" else last in _NARROWING and len(new) > len(old)
    return last in _NARROWING and new is _NOTHING


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _text(value: object) -> str:
    """A value for people: a text as it is."""
    if value is _NOTHING:
        return ""
    return value if isinstance(value, str) else _encoded(value).decode()
