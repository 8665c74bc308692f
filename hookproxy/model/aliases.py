"""What hooks call a tool and its arguments where the configuration gives them familiar names: there and back.

Law 1: hooks see one argument for each that the server gets, and under its one name; what could be two things is an
error here, never a choice. Law 2: values stay byte for byte, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..jsonrpc import raw_json


class Alias(Struct, frozen=True):
    """The names by which hooks know one tool of the server."""

    tool: str
    """As the server spells it, exactly."""
    name: str = ""
    """What hooks call it; empty: what they call it anyway."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The server's name of an argument by the hooks'; no two are one. Arguments that are not here have one name."""
    preset: str = ""
    """The preset that says so; empty: the configuration says it of this tool."""
    used_by_agent: frozenset[str] = frozenset()
    """Arguments that the agent gave by the hooks' name itself, in the call at hand: they go by it on both sides."""

    def for_call(self, arguments: bytes) -> Alias:
        """The names that hold for a call with these arguments, a JSON object as the agent sent it.

        Raises Unreadable, DuplicateKeys for arguments that the server may take otherwise than hooks would see them.
        """
        keys = raw_json.fields(arguments).keys()
        self._check_spelling(keys)
        given = frozenset((self.arguments.keys() - self.arguments.values()) & keys)
        for name in sorted(given):
            if self.arguments[name] in keys:
                raise raw_json.Unreadable(f"its arguments {self.arguments[name]!r} and {name!r} are one to its hooks")
        return replace(self, used_by_agent=given) if given else self

    def for_hooks(self, arguments: bytes) -> bytes:
        """The server's arguments under the names that hooks know; `arguments` itself where no name differs."""
        return _renamed(arguments, {self.arguments[name]: name for name in self.arguments.keys() - self.used_by_agent})

    def for_server(self, arguments: bytes) -> bytes:
        """A hook's arguments under the server's names; `arguments` itself where no name differs.

        Raises Unreadable, DuplicateKeys for names that the server may take for one that hooks know by another.
        """
        keys = raw_json.fields(arguments).keys()
        self._check_spelling(keys)
        for name, own in self.arguments.items():
            if own in keys and own not in self.arguments:
                raise raw_json.Unreadable(f"{own!r} is the tool's own name for {name!r}")
        return _renamed(arguments, {name: self.arguments[name] for name in self.arguments.keys() - self.used_by_agent})

    def _check_spelling(self, keys: Iterable[str]) -> None:
        """Raise Unreadable for a name that some readers take for one of ours: in another case, or up to a NUL."""
        known = {*self.arguments, *self.arguments.values()}
        taken = {raw_json.folded_key(name): name for name in known}
        for key in keys:
            if key not in known and (meant := taken.get(raw_json.folded_key(key))) is not None:
                raise raw_json.Unreadable(f"the argument {key!r} may be taken for {meant!r}")


def for_hooks(alias: Alias | None, arguments: bytes) -> bytes:
    """As `Alias.for_hooks`; without an alias nothing differs."""
    return arguments if alias is None else alias.for_hooks(arguments)


def for_server(alias: Alias | None, arguments: bytes) -> bytes:
    """As `Alias.for_server`; without an alias nothing differs."""
    return arguments if alias is None else alias.for_server(arguments)


def _renamed(arguments: bytes, names: Mapping[str, str]) -> bytes:
    """The object with its members under other names. Raises Unreadable, DuplicateKeys."""
    members = raw_json.fields(arguments)
    if members.keys().isdisjoint(names):
        return arguments
    renamed: dict[str, bytes] = {}
    for key, value in members.items():
        name = names.get(key, key)
        if name in renamed:
            raise raw_json.DuplicateKeys(name)
        renamed[name] = bytes(value)
    return b"{%b}" % b",".join(b"%b:%b" % (raw_json.encode(name), value) for name, value in renamed.items())
