"""What an entry becomes when its agent itself speaks HTTP to the gateway: pure, and the same for every syntax.

    "command": "npx", "args": ["-y", "server"], "env": {"KEY": "value"}
    "url": "https://HOST/mcp/git", "headers": {"Authorization": "Bearer ${HOOKPROXY_TOKEN}"}

The token stays in a variable of the agent's environment, as the agent spells it (`HttpForm`). Such an entry has no
place for what `unwrap` needs, because agents refuse an `env` beside an address, and headers are sent: what it was, and
what it was made to, is in the record of what was written (`Replaced`). Keys that hold for an address, too, stay.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec.json
from msgspec import Struct

from ..config.gateway_models import SERVER_NAME
from ..jsonrpc import raw_json
from ..model.env_references import TOKEN_VARIABLE
from .find_servers import Entry, Kind
from .known_agents import HEADER_KEYS, REMOTE_KEYS, REMOTE_ONLY_KEYS, HttpForm
from .remote_entry import NotTranslatable
from .rewrite_entry import changed_error, layout_of, removals, with_changes
from .syntax_tree import Edit, Syntax, apply_edits
from .toml_file import TOML
from .yaml_file import YAML

_NAME: Final = re.compile(SERVER_NAME)
_COMMAND_KEYS: Final = frozenset(
    {"command", "cmd", "args", "env", "environment", "envs", "env_vars", "env_keys", "envFile", "cwd"}
)
"""Keys that hold for a command alone."""

_TYPE_KEYS: Final = ("type", "transport")
_OWN_KEYS: Final = frozenset({*_COMMAND_KEYS, *REMOTE_ONLY_KEYS, *_TYPE_KEYS})


class Replaced(Struct, frozen=True, omit_defaults=True):
    """An entry before and after: its text, from its first key to its last value."""

    before: str
    after: str


def address_of(gateway: str, entry: Entry) -> str:
    """The address of the entry's server at the gateway. Raises NotTranslatable."""
    if not _NAME.match(entry.name):
        raise NotTranslatable("has a name that no server of a gateway can have: rename it as the gateway has it")
    return f"{gateway.rstrip('/')}/mcp/{entry.name}"


def reaches_gateway(entry: Entry) -> str:
    """The address of the gateway's server that this entry reaches over HTTP, as it was written here; empty: none."""
    if entry.kind is not Kind.REMOTE:
        return ""
    values = entry.values
    url = next((value for key in REMOTE_KEYS if isinstance(value := values.get(key), str) and value), "")
    has_token = any(TOKEN_VARIABLE in str(values.get(key, "")) for key in HEADER_KEYS)
    return url if has_token and urlsplit(url).path.endswith(f"/mcp/{entry.name}") else ""


def wrap(text: str, syntax: Syntax, entry: Entry, form: HttpForm, url: str) -> list[Edit]:
    """The edits that make the entry one of this address. Raises NotTranslatable if its layout allows none."""
    layout = layout_of(text, syntax, entry)
    keys = [key for key in (*REMOTE_KEYS, entry.shape.command) if entry.values.get(key)]
    replaced = layout.part(keys[-1]) if layout is not None and keys else None
    if layout is None or replaced is None or replaced.is_table:
        raise NotTranslatable("is laid out in a way that cannot be edited: write its keys below each other")
    new = _pairs(syntax, form, url)
    edits: list[Edit] = []
    removed = {key for key in _COMMAND_KEYS | {*REMOTE_ONLY_KEYS} if layout.part(key) is not None} - {replaced.key}
    for key in _TYPE_KEYS:
        if (part := layout.part(key)) is None:
            continue
        if key == "type" and form.type:
            edits.append(Edit(part.value_start, part.end, syntax.quote(form.type)))
        else:
            removed.add(key)
    if form.type and layout.part("type") is None:
        new.insert(0, syntax.pair("type", syntax.quote(form.type)))
    edits += removals(layout, frozenset(removed), replaced.key)
    return [*edits, Edit(replaced.start, replaced.end, layout.separator.join(new))]


def new_entry(form: HttpForm, name: str, url: str) -> str:
    """What a person adds to an agent's configuration that has no such entry yet."""
    quoted = raw_json.encode(name).decode()
    if form.syntax == "TOML":
        return "\n".join((f"[{form.under}.{quoted}]", *_pairs(TOML, form, url), ""))
    type_pair = [YAML.pair("type", form.type)] if form.type else []
    if form.syntax == "YAML":
        lines = [f"name: {quoted}", "enabled: true", *type_pair, *_pairs(YAML, form, url)]
        return "\n".join((f"{form.under}:", f"  {quoted}:", *(f"    {line}" for line in lines), ""))
    entry = {"type": form.type, form.address: url, "headers": {"Authorization": f"Bearer {form.token}"}}
    whole = {form.under: {name: {key: value for key, value in entry.items() if value}}}
    return msgspec.json.format(raw_json.encode(whole), indent=2).decode() + "\n"


def _pairs(syntax: Syntax, form: HttpForm, url: str) -> list[str]:
    pairs = [syntax.pair(form.address, syntax.quote(url))]
    if form.token_key:
        return [*pairs, syntax.pair(form.token_key, syntax.quote(TOKEN_VARIABLE))]
    header = syntax.pair("Authorization", syntax.quote(f"Bearer {form.token}"))
    pairs.append(syntax.pair("headers", f"{{{header}}}"))
    if form.names_variables:
        pairs.append(syntax.pair("env_keys", f"[{syntax.quote(TOKEN_VARIABLE)}]"))
    return pairs


def region(text: str, syntax: Syntax, entry: Entry) -> str:
    """The text of an entry, from its first key to its last value; empty: its layout is not understood."""
    layout = layout_of(text, syntax, entry)
    return "" if layout is None else text[layout.start : layout.end]


def with_region(text: str, syntax: Syntax, entry: Entry, new: str) -> str:
    """The whole text with another one in the place of the entry's; the same if its layout is not understood."""
    layout = layout_of(text, syntax, entry)
    return text if layout is None else apply_edits(text, [Edit(layout.start, layout.end, new)])


def unwrap(  # noqa: PLR0913  # the entry in three texts
    path: str, text: str, syntax: Syntax, entry: Entry, restored: str, before: Entry, made: Entry
) -> Edit:
    """The edit that restores an entry: `restored` is a text with the entry as it was, `before`; `made` is as written.

    What somebody changed since in keys that `wrap` left alone stays so. Raises ConfigError if something else would be
    lost, or the layout allows that no longer.
    """
    present, layout = layout_of(text, syntax, entry), layout_of(restored, syntax, before)
    if present is None or layout is None:
        raise changed_error(path, text, entry, "its layout")
    keys = dict.fromkeys((*entry.values, *made.values))
    changed = [key for key in keys if entry.values.get(key) != made.values.get(key)]
    if lost := [key for key in changed if key in _OWN_KEYS]:
        raise changed_error(path, text, entry, f"its {', '.join(lost)}")
    return with_changes(path, text, entry, restored, changed, present, layout)
