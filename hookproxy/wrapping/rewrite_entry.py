"""Rewrites the entry of a server at an address as one with a command, and restores it again: pure.

The entry's own text is kept in a variable of its `env`: that is the one place which every agent's schema allows and
which other users of the machine cannot read. A value that moved into another variable is left out of that text, so
that it is not kept twice, and comes back as it is then. Keys that mean the same for a command stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..model.env_references import ENTRY_VARIABLE
from ..model.errors import ConfigError
from .find_servers import Entry
from .known_agents import REMOTE_ONLY_KEYS, REMOTE_TYPES
from .remote_entry import NotTranslatable, Remote
from .syntax_tree import Edit, Layout, Part, Syntax, apply_edits, location

MAX_ENTRY: Final = 100_000
"""Bytes of an entry that is kept: Linux starts no program with a variable of more than 131,072 bytes."""

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.-+/=:~@${},;!?%&*()")
"""Characters that every syntax spells the same in quotation marks."""

_TYPE_KEYS: Final = ("type", "transport")
_INHERITED: Final = "env_vars"
"""Codex's key for the names of variables that it passes on."""


def kept_text(entry: Entry) -> str | None:
    """What `wrap` kept of the entry's own text; None if there is nothing."""
    variables = entry.values.get(entry.shape.env)
    text = variables.get(ENTRY_VARIABLE) if isinstance(variables, dict) else None
    return text if isinstance(text, str) else None


def wrap(text: str, syntax: Syntax, entry: Entry, words: tuple[str, ...], remote: Remote) -> list[Edit]:
    """The edits that make the entry start these words. Raises NotTranslatable if its layout allows none."""
    layout = layout_of(text, syntax, entry)
    replaced = layout.part(remote.replaced) if layout is not None else None
    if layout is None or replaced is None or replaced.is_table:
        raise NotTranslatable("is laid out in a way that cannot be edited: write its keys below each other")
    own = kept = text[layout.start : layout.end]
    for name, value in {**_variables(entry), **remote.variables}.items():
        if isinstance(value, str) and _can_be_left_out(own, kept, name, value):
            kept = kept.replace(value, _mark(name))
    if len(kept.encode(errors="replace")) > MAX_ENTRY:
        raise NotTranslatable(f"is longer than {MAX_ENTRY} bytes")
    variables = {**remote.variables, ENTRY_VARIABLE: kept}
    edits = [*removals(layout, remote.removed, remote.replaced)]
    edits += _type_edits(text, syntax, entry, layout)
    environment = layout.part(entry.shape.env)
    pairs = [syntax.pair(key, syntax.quote(value)) for key, value in variables.items()]
    new = _command(syntax, entry, words)
    if remote.inherited and syntax.name == "TOML":
        new.append(syntax.pair(_INHERITED, f"[{', '.join(map(syntax.quote, remote.inherited))}]"))
    if environment is None:
        new.append(syntax.pair(entry.shape.env, f"{{{', '.join(pairs)}}}"))
    else:
        edits.append(_into_environment(text, environment, pairs))
    return [*edits, Edit(replaced.start, replaced.end, layout.separator.join(new))]


def layout_of(text: str, syntax: Syntax, entry: Entry) -> Layout | None:
    """Where the parts of an entry are; None: it cannot be edited in its text."""
    return syntax.layout(text, entry.name, entry.body) if entry.body is not None else None


def _mark(name: str) -> str:
    """What stands in the kept text for the value of a variable."""
    return f"<{name}>"


def _can_be_left_out(own: str, kept: str, name: str, value: str) -> bool:
    """True if a value can be put back where it was: it is there once, spelled as every syntax spells it."""
    once = own.count(value) == kept.count(value) == 1
    return once and len(value) > 1 and _PLAIN.issuperset(value) and _mark(name) not in own


def _command(syntax: Syntax, entry: Entry, words: tuple[str, ...]) -> list[str]:
    program, *arguments = map(syntax.quote, words)
    if entry.shape.command_is_list:
        return [syntax.pair(entry.shape.command, f"[{', '.join((program, *arguments))}]")]
    return [
        syntax.pair(entry.shape.command, program),
        syntax.pair(entry.shape.args, f"[{', '.join(arguments)}]"),
    ]


def removals(layout: Layout, removed: frozenset[str], replaced: str) -> Iterator[Edit]:
    """The edits that remove parts: what is before the command with the space after it, and the rest the other way."""
    parts = layout.parts
    place = next(at for at, part in enumerate(parts) if part.key == replaced)
    for at, part in enumerate(parts):
        if part.key in removed:
            yield Edit(part.start, parts[at + 1].start, "") if at < place else Edit(parts[at - 1].end, part.end, "")


def _type_edits(text: str, syntax: Syntax, entry: Entry, layout: Layout) -> Iterator[Edit]:
    for key in _TYPE_KEYS:
        part = layout.part(key)
        if part is not None and entry.values.get(key) in REMOTE_TYPES:
            yield Edit(part.value_start, part.end, syntax.quote(entry.shape.type))


def _into_environment(text: str, part: Part, pairs: list[str]) -> Edit:
    """The edit that adds variables to the entry's own ones, before the first of them."""
    at = part.value_start
    if part.is_table:
        return Edit(at, at, "".join(f"\n{pair}" for pair in pairs))
    if text.startswith("{", at):
        is_empty = not text[at + 1 : part.end - 1].strip()
        return Edit(at + 1, at + 1, ", ".join(pairs) + ("" if is_empty else ", "))
    indent = text[text.rfind("\n", 0, at) + 1 : at]
    if not indent.strip(" ") and at != part.start:
        return Edit(at, at, "".join(f"{pair}\n{indent}" for pair in pairs))
    raise NotTranslatable("has variables in a way that cannot be edited: write them as a table")


def unwrap(path: str, text: str, syntax: Syntax, entry: Entry, restored: str, before: Entry) -> Edit:
    """The edit that restores the entry: `restored` is a text with the kept entry, which is `before`.

    What somebody changed, added or removed since in keys that `wrap` left alone stays so. Raises ConfigError if the
    layout allows that no longer.
    """
    present, layout = layout_of(text, syntax, entry), layout_of(restored, syntax, before)
    if present is None or layout is None:
        raise changed_error(path, text, entry, "its layout")
    if restored[layout.start : layout.end] != restored_text(entry):
        raise changed_error(path, text, entry, f"its {ENTRY_VARIABLE}")
    return with_changes(path, text, entry, restored, _changed_keys(entry, before), present, layout)


def with_changes(  # noqa: PLR0913  # the entry in both texts
    path: str, text: str, entry: Entry, restored: str, changed: Sequence[str], present: Layout, layout: Layout
) -> Edit:
    """The edit that restores an entry with what somebody changed in these keys since. Raises ConfigError."""
    try:
        edits = [carried_over(text, key, present, layout) for key in changed]
        whole = apply_edits(restored[: layout.end], edits)
    except ValueError:
        raise changed_error(path, text, entry, f"its {', '.join(changed)}") from None
    return Edit(present.start, present.end, whole[layout.start :])


def carried_over(text: str, key: str, present: Layout, layout: Layout) -> Edit:
    """The edit of the restored text that gives a key its present value. Raises ValueError if there is none."""
    new, old, first = present.part(key), layout.part(key), layout.parts[0]
    if (new or old or first).is_table or (new is None and old in (None, first)):
        raise ValueError(key)
    if new is not None and old is not None:
        return Edit(old.value_start, old.end, text[new.value_start : new.end])
    if new is not None:
        return Edit(first.start, first.start, text[new.start : new.end] + layout.separator)
    at = next(at for at, part in enumerate(layout.parts) if part == old)
    return Edit(layout.parts[at - 1].end, layout.parts[at].end, "")


def changed_error(path: str, text: str, entry: Entry, what: str) -> ConfigError:
    """The error for an entry that somebody changed since it was wrapped, in a way that would be lost."""
    return ConfigError(
        location(path, text, entry.start),
        f"{entry.key_path} was changed since it was wrapped: {what}",
        "undo that change, or write the entry by hand as it was",
    )


def restored_text(entry: Entry) -> str:
    """The entry's own text, with the values that are now in its variables."""
    text = kept_text(entry) or ""
    for name, value in _variables(entry).items():
        if isinstance(value, str) and _PLAIN.issuperset(value):
            text = text.replace(_mark(name), value)
    return text


def with_restored(text: str, syntax: Syntax, entries: Sequence[Entry]) -> str:
    """The whole text with these kept entries in their places; an entry whose layout is not understood stays."""
    layouts = [(entry, layout_of(text, syntax, entry)) for entry in entries]
    edits = [Edit(one.start, one.end, restored_text(entry)) for entry, one in layouts if one is not None]
    return apply_edits(text, edits)


def lost_keys(entry: Entry, remote: Remote, before: Entry) -> list[str]:
    """The keys of a wrapped entry that somebody changed, and that would not be there any more: best none."""
    variables = _variables(entry)
    own = {name: value for name, value in variables.items() if name not in (*remote.variables, ENTRY_VARIABLE)}
    made = {name: variables.get(name) for name in remote.variables}
    lost = [] if made == dict(remote.variables) and own == _variables(before) else [entry.shape.env]
    values, old = entry.values, before.values
    return lost + [key for key in REMOTE_ONLY_KEYS if key in values and values[key] != old.get(key)]


def _variables(entry: Entry) -> dict[str, object]:
    variables = entry.values.get(entry.shape.env)
    return variables if isinstance(variables, dict) else {}


def _changed_keys(entry: Entry, before: Entry) -> list[str]:
    """The keys whose values differ, of those that `wrap` leaves alone."""
    present, other = unrelated(entry), unrelated(before)
    return [key for key in dict.fromkeys((*present, *other)) if present.get(key) != other.get(key)]


def unrelated(entry: Entry) -> dict[str, object]:
    """The values that stay the same when an entry is rewritten."""
    shape = entry.shape
    rewritten = {shape.command, shape.args, shape.env, *_TYPE_KEYS, _INHERITED, *REMOTE_ONLY_KEYS}
    return {key: value for key, value in entry.values.items() if key not in rewritten}
